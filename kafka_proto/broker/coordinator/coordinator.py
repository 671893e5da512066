"""The transaction coordinator as a role: requests, appended entries, answers to markers and time in, effects out.

Each function takes the coordinator's whole state and returns it changed, with what is to be done. How that is carried
out (by a log that commits at once, a replicated one, a network or none) is not known here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import StrEnum

import attrs

from harness.model import FrozenMap, Value
from kafka_proto.broker.coordinator.init_producer_id import Fenced, fence
from kafka_proto.broker.coordinator.transaction import (
    AT_REST,
    PREPARED,
    Answer,
    CachedTransaction,
    IllegalTransition,
    Outcome,
    ProducerIds,
    TransactionMetadata,
    TransactionRecord,
    TxnState,
    can_log_any,
    prepare,
    refuse_once_logged,
)
from kafka_proto.errors import Error
from kafka_proto.log import NO_PRODUCER_ID
from kafka_proto.requests import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    CoordinatorRequest,
    EndTxnRequest,
    InitProducerIdRequest,
    WriteTxnMarkersRequest,
)

PERMANENT = (Error.INVALID_PRODUCER_EPOCH, Error.TRANSACTION_COORDINATOR_FENCED)
"""The transaction has ended there already: the coordinator sends no more markers for it."""
RETRIABLE = (
    Error.UNKNOWN_TOPIC_OR_PARTITION, Error.NOT_LEADER_OR_FOLLOWER, Error.NOT_ENOUGH_REPLICAS,
    Error.NOT_ENOUGH_REPLICAS_AFTER_APPEND, Error.REQUEST_TIMED_OUT, Error.KAFKA_STORAGE_ERROR,
    Error.COORDINATOR_LOAD_IN_PROGRESS, Error.COORDINATOR_NOT_AVAILABLE, Error.NOT_COORDINATOR, Error.NETWORK_EXCEPTION,
)


FATAL = (
    Error.PRODUCER_FENCED, Error.INVALID_PRODUCER_EPOCH, Error.INVALID_TXN_STATE, Error.INVALID_PRODUCER_ID_MAPPING,
)
"""Refusals that make a producer unusable."""


class AfterMarker(StrEnum):
    """What a coordinator does about the answer to a marker (`TransactionMarkerRequestCompletionHandler`)."""

    DONE = "done"
    AGAIN = "again"
    GIVE_UP = "give up"


def after_marker(error: Error) -> AfterMarker:
    """Say what follows from a partition's answer. Raises ValueError for a code that the coordinator does not expect."""
    if error is Error.NONE:
        return AfterMarker.DONE
    if error in PERMANENT:
        return AfterMarker.GIVE_UP
    if error in RETRIABLE:
        return AfterMarker.AGAIN
    raise ValueError(f"no coordinator expects {error} in an answer to its markers")


def completed(metadata: TransactionMetadata, now: int) -> TransactionMetadata:
    """Return a prepared transaction as Complete* is logged (`prepareComplete`): a new producer id is switched in.

    After a transaction that was kept (KIP-939) it is the one of its new producer.
    """
    committed = metadata.state is TxnState.PREPARE_COMMIT
    state = TxnState.COMPLETE_COMMIT if committed else TxnState.COMPLETE_ABORT
    switches = metadata.bumps_epoch and metadata.next_producer_id != NO_PRODUCER_ID
    after = prepare(
        CachedTransaction(metadata), state=state, partitions=(), last_update_timestamp=now,
        producer_id=metadata.next_producer_id if switches else metadata.producer_id,
        producer_epoch=0 if switches else metadata.producer_epoch, next_producer_id=NO_PRODUCER_ID,
    )
    if metadata.next_producer_epoch is None:
        return after
    return attrs.evolve(after, producer_epoch=metadata.next_producer_epoch, next_producer_epoch=None,
                        previous_producer_id=metadata.previous_producer_id)


def without_partition(cached: CachedTransaction, partition: str) -> CachedTransaction:
    """Return a prepared transaction without a partition that has its marker."""
    left = tuple(name for name in cached.metadata.partitions if name != partition)
    return attrs.evolve(cached, metadata=attrs.evolve(cached.metadata, partitions=left))


def times_out_always(known: TransactionMetadata) -> bool:
    """Give each open transaction a time-out."""
    return True


@attrs.frozen
class CoordinatorDecisions:
    """What a coordinator decides: one entry a request or event. A version of a broker lists them."""

    init_producer_id: Callable[..., Outcome | Fenced]
    add_partitions: Callable[..., Outcome]
    verify_partitions: Callable[..., FrozenMap[str, Error]]
    end_txn: Callable[..., Outcome]
    end_txn_bumping: Callable[..., Outcome]
    """For EndTxn from version 5."""
    abort_fenced: Callable[..., Outcome]
    """What a coordinator does of itself: after a time-out, and before a new producer of an open transaction."""
    recovered: Callable[[TransactionMetadata], TransactionMetadata]
    """What of an entry a coordinator has that reads it from the log."""
    waits: bool = True
    """Whether an entry has to be committed before what was decided counts, and its client is answered."""
    checks_refusals: bool = False
    """Whether a refusal that a producer does not survive waits until the log has taken an entry."""
    completes_twice: bool = False
    """Whether Complete* is appended once more, at any later moment: the answers of two partitions may race."""
    marker_version: int = 1
    fence: Callable[[CachedTransaction], Fenced] = fence
    """The epoch with which an open transaction is aborted for a new producer."""
    fence_timed_out: Callable[[CachedTransaction], Fenced] = fence
    """The same for a transaction that is open for too long."""
    times_out: Callable[[TransactionMetadata], bool] = times_out_always
    """Whether an open transaction has a time-out."""
    can_log: Callable[[CoordinatorRequest], bool] = can_log_any
    """Whether the log has a format for what a request makes of a transaction."""


@attrs.frozen
class CoordinatorConfig:
    """Settings of a broker, by Kafka's names, in milliseconds."""

    transaction_max_timeout_ms: int = 900_000
    transactional_id_expiration_ms: int = 604_800_000


KAFKAS_DEFAULTS = CoordinatorConfig()


@attrs.frozen
class Waiting:
    """An append under way, and the client to answer when it is done, if the coordinator did not act of itself."""

    token: Value
    request: CoordinatorRequest | None
    outcome: Outcome


@attrs.frozen
class Coordinator:
    """The leader of a partition of the transaction log: its cache, and what it waits for. All of it is volatile."""

    transactions: FrozenMap[str, CachedTransaction] = FrozenMap()
    waiting: FrozenMap[str, Waiting] = FrozenMap()
    ids: ProducerIds = ProducerIds()
    coordinator_epoch: int = 0
    loading: bool = False
    config: CoordinatorConfig = CoordinatorConfig()


@attrs.frozen
class Markers:
    """Markers to be written to each of the partitions, on behalf of a transactional id."""

    transactional_id: str
    request: WriteTxnMarkersRequest


Effect = Answer | TransactionRecord | Markers
"""An answer is for the client that asked, or waits for the entry; no client does if the coordinator acted of itself."""
Step = tuple[Coordinator, tuple[Effect, ...]]


def receive(
    decisions: CoordinatorDecisions, state: Coordinator, request: CoordinatorRequest, *, now: int, token: Value = None
) -> Step:
    """Decide on a client's request. While its log loads, a coordinator answers only that."""
    if state.loading:
        return state, (Answer(Error.COORDINATOR_LOAD_IN_PROGRESS),)
    tid = request.transactional_id or ""
    cached = state.transactions.get(tid)
    try:
        outcome = _decide(decisions, state, request, cached, now)
    except IllegalTransition:
        outcome = Outcome(Answer(Error.UNKNOWN_SERVER_ERROR))
    if decisions.checks_refusals and cached is not None and outcome.answer.error in FATAL and outcome.entry is None:
        outcome = refuse_once_logged(outcome, cached)
    elif outcome.entry is not None and not decisions.can_log(request):
        outcome = attrs.evolve(outcome, answer=Answer(Error.UNSUPPORTED_VERSION), entry=None)
    return _carry(state, tid, Waiting(token, request, outcome))


def _decide(
    decisions: CoordinatorDecisions, state: Coordinator, request: CoordinatorRequest,
    cached: CachedTransaction | None, now: int,
) -> Outcome:
    free = state.ids.next_id
    if isinstance(request, AddPartitionsToTxnRequest | AddOffsetsToTxnRequest):
        return decisions.add_partitions(request, cached, now=now)
    if isinstance(request, EndTxnRequest):
        end = decisions.end_txn_bumping if request.version >= 5 else decisions.end_txn
        return end(request, cached, producer_id=free, now=now)
    assert isinstance(request, InitProducerIdRequest)
    found = decisions.init_producer_id(
        request, cached, producer_id=free, now=now, max_timeout_ms=state.config.transaction_max_timeout_ms,
        fences=decisions.fence,
    )
    if isinstance(found, Outcome):
        return found
    again = Answer(Error.CONCURRENT_TRANSACTIONS)
    return decisions.abort_fenced(found, answer=again, producer_id=free, now=now)


def _carry(state: Coordinator, tid: str, waiting: Waiting) -> Step:
    """Do what was decided: an answer now, or an append and the answer after it."""
    outcome = waiting.outcome
    if outcome.takes_producer_id:
        state = attrs.evolve(state, ids=state.ids.take())
    if outcome.cached is not None:
        state = attrs.evolve(state, transactions=state.transactions.set(tid, outcome.cached))
    if outcome.entry is None:
        return state, (outcome.answer,)
    return attrs.evolve(state, waiting=state.waiting.set(tid, waiting)), (TransactionRecord(tid, outcome.entry),)


def appended(decisions: CoordinatorDecisions, state: Coordinator, tid: str, *, now: int) -> Step:
    """Go on after the entry that a transactional id waits for was committed (`appendTransactionToLog`'s callback)."""
    outcome = state.waiting[tid].outcome
    entry, cached = outcome.entry, state.transactions.get(tid)
    assert entry is not None
    state = attrs.evolve(state, waiting=state.waiting.without(tid))
    if entry.state is TxnState.DEAD:
        return attrs.evolve(state, transactions=state.transactions.without(tid)), ()
    failed = cached is not None and cached.has_failed_epoch_fence and not outcome.ends
    state = _cached(state, tid, CachedTransaction(entry, None, failed))
    if not outcome.ends:
        return state, (outcome.answer,)
    state, markers = send_markers(decisions, state, tid, now=now)
    return state, (outcome.answer, *markers)


def append_failed(state: Coordinator, tid: str, error: Error) -> Step:
    """Give up the entry that a transactional id waits for; `error` is what its client is told."""
    cached = state.transactions[tid]
    fenced = state.waiting[tid].outcome.fences or cached.has_failed_epoch_fence
    state = _cached(state, tid, attrs.evolve(cached, pending_state=None, has_failed_epoch_fence=fenced))
    return attrs.evolve(state, waiting=state.waiting.without(tid)), (Answer(error),)


def send_markers(decisions: CoordinatorDecisions, state: Coordinator, tid: str, *, now: int) -> Step:
    """Begin to complete a prepared transaction: markers to its partitions, or Complete* if it has none."""
    cached = state.transactions[tid]
    known = cached.metadata
    committed = known.state is TxnState.PREPARE_COMMIT
    pending = TxnState.COMPLETE_COMMIT if committed else TxnState.COMPLETE_ABORT
    state = _cached(state, tid, attrs.evolve(cached, pending_state=pending))
    if not known.partitions:
        return _complete(state, tid, now)
    request = WriteTxnMarkersRequest(
        decisions.marker_version, known.producer_id, known.producer_epoch, state.coordinator_epoch, committed,
        known.partitions, known.transaction_version,
    )
    return state, (Markers(tid, request),)


def marked(state: Coordinator, tid: str, request: WriteTxnMarkersRequest, errors: FrozenMap[str, Error], *,
           now: int) -> Step:
    """Take the answers of partitions to a transaction's markers; answers to an earlier coordinator's are stale."""
    if not _is_awaited(state, tid, request):
        return state, ()
    then = {partition: after_marker(error) for partition, error in errors.items()}
    state = _without(state, tid, (partition for partition in then if then[partition] is AfterMarker.DONE))
    if AfterMarker.GIVE_UP in then.values():
        return state, ()
    if again := [partition for partition in then if then[partition] is AfterMarker.AGAIN]:
        return state, (Markers(tid, attrs.evolve(request, partitions=tuple(again))),)
    return _complete_if_marked(state, tid, now)


def without_leader(
    state: Coordinator, tid: str, request: WriteTxnMarkersRequest, partitions: Iterable[str], *, now: int
) -> Step:
    """Go on without the partitions of a transaction that have no leader: their topic is deleted, so they get no marker.

    A coordinator looks for leaders each time that it sends markers (`addTxnMarkersToBrokerQueue`).
    """
    if not _is_awaited(state, tid, request):
        return state, ()
    return _complete_if_marked(_without(state, tid, partitions), tid, now)


def _is_awaited(state: Coordinator, tid: str, request: WriteTxnMarkersRequest) -> bool:
    """Say whether a transaction still waits for these markers, and this coordinator sent them."""
    cached = state.transactions.get(tid)
    if cached is None or cached.metadata.state not in PREPARED or request.coordinator_epoch != state.coordinator_epoch:
        return False
    return request.producer_epoch == cached.metadata.producer_epoch and tid not in state.waiting


def _without(state: Coordinator, tid: str, partitions: Iterable[str]) -> Coordinator:
    cached = state.transactions[tid]
    for partition in partitions:
        cached = without_partition(cached, partition)
    return _cached(state, tid, cached)


def _complete_if_marked(state: Coordinator, tid: str, now: int) -> Step:
    return (state, ()) if state.transactions[tid].metadata.partitions else _complete(state, tid, now)


def _complete(state: Coordinator, tid: str, now: int) -> Step:
    """Append Complete*: every partition has its marker."""
    cached = state.transactions[tid]
    entry = completed(cached.metadata, now)
    outcome = Outcome(Answer(), entry, attrs.evolve(cached, pending_state=entry.state, has_failed_epoch_fence=False))
    return _carry(state, tid, Waiting(None, None, outcome))


def time_out(decisions: CoordinatorDecisions, state: Coordinator, tid: str, *, now: int) -> Step:
    """Abort an open transaction that is older than its client wished (`abortTimedOutTransactions`)."""
    cached = state.transactions[tid]
    if cached.pending_state is not None or cached.metadata.state is not TxnState.ONGOING:
        return state, ()
    try:
        outcome = decisions.abort_fenced(
            decisions.fence_timed_out(cached), answer=Answer(), producer_id=state.ids.next_id, now=now
        )
    except IllegalTransition:
        return state, ()
    return _carry(state, tid, Waiting(None, None, outcome))


def times_out_at(known: TransactionMetadata) -> int:
    """Return when an open transaction is older than its time-out (`timedOutTransactions`)."""
    return known.start_timestamp + known.timeout_ms + 1


def expires_at(known: TransactionMetadata, config: CoordinatorConfig) -> int:
    """Return when a transactional id at rest is forgotten."""
    return known.last_update_timestamp + config.transactional_id_expiration_ms


def expire(state: Coordinator, tid: str, *, now: int) -> Step:
    """Forget a transactional id that was at rest for long: a tombstone (`removeExpiredTransactionalIds`)."""
    cached = state.transactions[tid]
    old = expires_at(cached.metadata, state.config) <= now
    if cached.pending_state is not None or cached.metadata.state not in AT_REST or not old:
        return state, ()
    dead = attrs.evolve(cached.metadata, state=TxnState.DEAD, partitions=())
    outcome = Outcome(Answer(), dead, attrs.evolve(cached, pending_state=TxnState.DEAD))
    state, _ = _carry(state, tid, Waiting(None, None, outcome))
    return state, (TransactionRecord(tid, None),)


def _cached(state: Coordinator, tid: str, cached: CachedTransaction) -> Coordinator:
    return attrs.evolve(state, transactions=state.transactions.set(tid, cached))
