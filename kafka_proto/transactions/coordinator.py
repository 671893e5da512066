"""What a transaction coordinator decides: pure functions of explicit arguments, used by the specs and by the actors.

Guards stand in the order of the specs. Nothing here knows where the arguments come from or when the effects land.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs

from kafka_proto.transactions.messages import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    Error,
    InitPidRequest,
    InitPidResponse,
    Request,
    Response,
    answer,
)
from kafka_proto.transactions.records import (
    FINISHED,
    PREPARED,
    VALID_PREVIOUS,
    Callback,
    Entry,
    TxnMetadata,
    TxnState,
    fresh_metadata,
)
from kafka_proto.transactions.variants import Variant


@attrs.frozen
class Decision:
    """What a coordinator does about a request: answer now, or append an entry whose callback answers later.

    `metadata` and `pid_source` are what it caches from now on; None leaves them as they are.
    """

    reply: Response | None = None
    entry: Entry | None = None
    metadata: TxnMetadata | None = None
    pid_source: int | None = None


def reply(request: Request, code: Error) -> Decision:
    """Refuse a request with an error code."""
    return Decision(reply=answer(request, code))


def transition(
    pending: TxnMetadata | None, current: TxnMetadata, becomes: TxnState, **changes: object
) -> TxnMetadata | Error:
    """Return the pending metadata of a state change, or the error that forbids it (`GenTransition`)."""
    if pending is not None:
        return Error.CONCURRENT_TRANSACTIONS
    if current.state not in VALID_PREVIOUS[becomes]:
        return Error.INVALID_TRANSITION
    return attrs.evolve(current, state=becomes, last_pid=None, **changes)  # type: ignore[arg-type]


def receive_init_pid_request(
    request: InitPidRequest,
    *,
    leads: bool,
    metadata: TxnMetadata | None,
    pending: TxnMetadata | None,
    pid_source: int,
    variant: Variant,
) -> Decision:
    """Give a client its producer id with a new epoch, fencing whoever holds the id (`ReceiveInitPidRequest`)."""
    if not leads:
        return reply(request, Error.NOT_COORDINATOR)
    current = metadata if metadata is not None else fresh_metadata(pid_source + 1)
    next_source = variant.pid_source_after(pid_source, current.pid)
    result = init_pid_transition(current, pending)
    if isinstance(result, Error):
        return attrs.evolve(reply(request, result), metadata=current, pid_source=next_source)
    if result.state is TxnState.PREPARE_EPOCH_FENCE:
        fencing = abort_fenced(request, current, result, pending)
        return attrs.evolve(fencing, metadata=current, pid_source=next_source)
    done = InitPidResponse(
        Error.OK, result.pid, result.pepoch, source=request.dest, dest=request.source, correlation=request.correlation
    )
    callback = Callback(request.type, done, answer(request, Error.NOT_COORDINATOR))
    return Decision(entry=Entry(request.tid, result, callback), metadata=current, pid_source=next_source)


def init_pid_transition(current: TxnMetadata, pending: TxnMetadata | None) -> TxnMetadata | Error:
    """Return the transition that an InitPidRequest asks for (`GenInitPidTransition`)."""
    if current.state in FINISHED:
        return transition(
            pending, current, TxnState.EMPTY,
            pepoch=current.pepoch + 1, last_pepoch=current.pepoch, partitions=frozenset(),
        )
    if current.state is TxnState.ONGOING:
        return transition(pending, current, TxnState.PREPARE_EPOCH_FENCE, pepoch=current.pepoch + 1, last_pepoch=-1)
    if current.state in PREPARED:
        return Error.CONCURRENT_TRANSACTIONS
    return Error.ILLEGAL_STATE


def abort_fenced(
    request: InitPidRequest, current: TxnMetadata, fenced: TxnMetadata, pending: TxnMetadata | None
) -> Decision:
    """Abort the ongoing transaction of the producer that was just fenced (`EndTransaction` with Abort)."""
    if fenced.pepoch < current.pepoch:
        return reply(request, Error.PRODUCER_FENCED)
    if current.state is not TxnState.ONGOING:
        return reply(request, Error.ILLEGAL_STATE)
    prepared = transition(
        pending, current, TxnState.PREPARE_ABORT, pepoch=fenced.pepoch, last_pepoch=fenced.last_pepoch
    )
    if isinstance(prepared, Error):
        return reply(request, prepared)
    callback = Callback(
        TxnState.PREPARE_ABORT.value,
        answer(request, Error.CONCURRENT_TRANSACTIONS),
        answer(request, Error.NOT_COORDINATOR),
    )
    return Decision(entry=Entry(request.tid, prepared, callback))


def receive_add_partitions(
    request: AddPartitionsToTxnRequest, *, leads: bool, metadata: TxnMetadata | None, pending: TxnMetadata | None
) -> Decision:
    """Add partitions to a producer's transaction, or say why not (`ReceiveAddPartitionsToTxnRequest`)."""
    if not leads:
        return reply(request, Error.NOT_COORDINATOR)
    if metadata is None:
        return reply(request, Error.INVALID_PRODUCER_ID_MAPPING)
    if request.pid != metadata.pid:
        return reply(request, Error.INVALID_PRODUCER_ID_MAPPING)
    if request.pepoch != metadata.pepoch:
        return reply(request, Error.PRODUCER_FENCED)
    if pending is not None or metadata.state in PREPARED:
        return reply(request, Error.CONCURRENT_TRANSACTIONS)
    ongoing = transition(pending, metadata, TxnState.ONGOING, partitions=metadata.partitions | request.partitions)
    if isinstance(ongoing, Error):
        return reply(request, ongoing)
    added = AddPartitionsToTxnResponse(
        Error.OK, ongoing.partitions, source=request.dest, dest=request.source, correlation=request.correlation
    )
    callback = Callback(request.type, added, answer(request, Error.NOT_COORDINATOR))
    return Decision(entry=Entry(request.tid, ongoing, callback))


@attrs.frozen
class Completion:
    """What the commit of an entry sets off: an entry to append next, and a response to send."""

    entry: Entry | None = None
    response: Response | None = None


def entry_committed(entry: Entry) -> Completion:
    """Run the callback of a committed entry (the Handle... formulas of `CommitTxnLogAppend`)."""
    if entry.callback.type in PREPARED:
        completion = complete(entry.tid, entry.transition)
        if isinstance(completion, Error):
            assert entry.callback.response is not None
            return Completion(response=attrs.evolve(entry.callback.response, code=completion))
        return Completion(completion, entry.callback.response)
    return Completion(response=entry.callback.response)


def complete(tid: str, prepared: TxnMetadata) -> Entry | Error:
    """Return the entry that completes a prepared transaction (`GenCompleteTransition`)."""
    commits = prepared.state is TxnState.PREPARE_COMMIT
    result = transition(None, prepared, TxnState.COMPLETE_COMMIT if commits else TxnState.COMPLETE_ABORT)
    return result if isinstance(result, Error) else Entry(tid, result, Callback(result.state.value))


def complete_partial_txn(
    tid: str, *, leads: bool, metadata: TxnMetadata | None, pending: TxnMetadata | None
) -> Entry | None:
    """Return the entry with which a new coordinator finishes what its predecessor prepared (`CompletePartialTxn`)."""
    if not leads or metadata is None or metadata.state not in PREPARED or pending is not None:
        return None
    entry = complete(tid, metadata)
    return None if isinstance(entry, Error) else entry


def must_follow(broker: str, known_leader: str, cepoch: int, leader: str, epoch: int, variant: Variant) -> bool:
    """Say whether a broker becomes a follower under the controller's leader and epoch (`BecomeFollower`'s guard)."""
    return cepoch < epoch and variant.learns_epoch(broker, known_leader) and broker != leader


def uncommitted(log: tuple[Entry, ...], hwm: int) -> tuple[Entry, ...]:
    """Return the entries above the high watermark."""
    return log[hwm:]


def failed_responses(entries: Iterable[Entry]) -> tuple[Response, ...]:
    """Return the error responses owed for entries that a deposed coordinator gives up, each once, in log order."""
    return tuple(dict.fromkeys(entry.callback.err for entry in entries if entry.callback.err is not None))


def materialized(
    tid: str, on_partition: bool, loaded: TxnMetadata | None, own: TxnMetadata | None, variant: Variant
) -> TxnMetadata | None:
    """Return an elected broker's metadata of an id: as loaded on its partition; elsewhere kept or wiped (S3)."""
    if on_partition:
        return loaded
    return own if variant.keeps_other_metadata else None


def replay(log: Iterable[Entry]) -> Mapping[str, TxnMetadata]:
    """Return the metadata that a committed log prefix stands for: the last transition of each id."""
    return {entry.tid: entry.transition for entry in log}
