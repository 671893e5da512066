"""A transaction as its coordinator keeps it (`TransactionMetadata`), its states, and what each of them may become.

What a decision about it is: an answer, or an append with the answers to its outcome. And producer ids in blocks: a
controller gives each block once, a broker uses it up (`RPCProducerIdManager`, KIP-730).
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce

import attrs

from harness.model import FrozenMap, absent_if_none
from kafka_proto.broker.ghosts import Ghosts
from kafka_proto.errors import Error
from kafka_proto.log import MAX_EPOCH, NO_PRODUCER_EPOCH, NO_PRODUCER_ID, RecordBatch
from kafka_proto.requests import AddPartitionsToTxnRequest, CoordinatorRequest, EndTxnRequest
from kafka_proto.requests import TxnState as TxnState

PREPARED = (TxnState.PREPARE_COMMIT, TxnState.PREPARE_ABORT)
COMPLETE = (TxnState.COMPLETE_COMMIT, TxnState.COMPLETE_ABORT)
AT_REST = (TxnState.EMPTY, *COMPLETE)
VALID_PREVIOUS = {
    TxnState.EMPTY: AT_REST,
    TxnState.ONGOING: (TxnState.ONGOING, *AT_REST),
    TxnState.PREPARE_COMMIT: (TxnState.ONGOING,),
    TxnState.PREPARE_ABORT: (TxnState.ONGOING, TxnState.PREPARE_EPOCH_FENCE, *AT_REST),
    TxnState.COMPLETE_COMMIT: (TxnState.PREPARE_COMMIT,),
    TxnState.COMPLETE_ABORT: (TxnState.PREPARE_ABORT,),
    TxnState.DEAD: AT_REST,
    TxnState.PREPARE_EPOCH_FENCE: (TxnState.ONGOING,),
}
"""`TransactionState.validPreviousStates`; an abort of what is at rest is KIP-890's, and its EndTxn alone gets there."""
LAST_EPOCH = MAX_EPOCH - 1
"""The last one that a client is given; the one after it is for fencing only."""


@attrs.frozen
class TransactionMetadata:
    """What the transaction log has of a transactional id; `previous_producer_id` is the one before the last change."""

    producer_id: int
    state: TxnState = TxnState.EMPTY
    producer_epoch: int = NO_PRODUCER_EPOCH
    last_producer_epoch: int = NO_PRODUCER_EPOCH
    previous_producer_id: int = NO_PRODUCER_ID
    next_producer_id: int = NO_PRODUCER_ID
    """Between Prepare* and Complete* of a transaction that used up its epochs (KIP-890)."""
    partitions: tuple[str, ...] = ()
    """Names, sorted."""
    timeout_ms: int = 0
    start_timestamp: int = -1
    last_update_timestamp: int = -1
    transaction_version: int = 0
    """Of the client that made the last change: 2 bumps the epoch at each end (KIP-890)."""
    next_producer_epoch: int | None = attrs.field(default=None, metadata=absent_if_none())
    """Of a transaction that was kept for a new producer (KIP-939): with `next_producer_id` what that one has."""

    @property
    def owner(self) -> tuple[int, int]:
        """Return the producer id and epoch that the client has: other ones than its transaction, if that was kept."""
        if self.next_producer_epoch is None:
            return self.producer_id, self.producer_epoch
        return self.next_producer_id, self.next_producer_epoch

    @property
    def is_epoch_exhausted(self) -> bool:
        return self.producer_epoch >= LAST_EPOCH

    @property
    def bumps_epoch(self) -> bool:
        return self.transaction_version >= 2


@attrs.frozen
class CachedTransaction:
    """A transaction in a coordinator's cache, with what is under way and not yet in the log."""

    metadata: TransactionMetadata
    pending_state: TxnState | None = None
    has_failed_epoch_fence: bool = False
    """A fence's append failed: its epoch was never given to a client, so the next fence needs no other (KAFKA-9666)."""


class IllegalTransition(Exception):
    """A change that the coordinator's code takes for impossible; a client is told UNKNOWN_SERVER_ERROR."""


def prepare(cached: CachedTransaction, **changes: object) -> TransactionMetadata:
    """Return a transaction after a change that is to be appended (`prepareTransitionTo`).

    Raises IllegalTransition if the change is none of `VALID_PREVIOUS`, or the epoch no epoch.
    """
    now = cached.metadata
    after = attrs.evolve(now, previous_producer_id=now.producer_id, **changes)  # type: ignore[arg-type]
    if cached.pending_state is not None:
        raise IllegalTransition(f"{after.state} while {cached.pending_state} is pending")
    if not 0 <= after.producer_epoch <= MAX_EPOCH:
        raise IllegalTransition(f"epoch {after.producer_epoch}")
    if now.state not in VALID_PREVIOUS[after.state]:
        raise IllegalTransition(f"{after.state} after {now.state}")
    return after


@attrs.frozen
class Answer:
    """What is answered: a code, and a producer id and epoch where the request asks for them."""

    error: Error = Error.NONE
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_PRODUCER_EPOCH
    kept: tuple[int, int] | None = attrs.field(default=None, metadata=absent_if_none())
    """Producer id and epoch of the transaction that InitProducerId kept (KIP-939)."""


@attrs.frozen
class Outcome:
    """Without `entry`, `answer` is given at once; with it, when it is appended, and `cached` holds until then."""

    answer: Answer
    entry: TransactionMetadata | None = None
    cached: CachedTransaction | None = None
    ends: bool = False
    """The entry is a Prepare*: once it is appended, the markers are sent."""
    fences: bool = False
    """A failed append is remembered as a failed fence."""
    takes_producer_id: bool = False
    """The producer id that was on offer is used up."""

    @property
    def repeats(self) -> bool:
        """Whether the entry is the last one again, on nobody's behalf: a log that takes it is the coordinator's still.
        """
        return self.cached is not None and self.cached.metadata == self.entry


def refuse(error: Error) -> Outcome:
    """Answer with a code and do nothing."""
    return Outcome(Answer(error))


def refuse_once_logged(refused: Outcome, cached: CachedTransaction) -> Outcome:
    """Give a refusal once the last entry is in the log again.

    What is pending, or prepared, is waited for.
    """
    known = cached.metadata
    if cached.pending_state is not None or known.state in PREPARED:
        return refuse(Error.CONCURRENT_TRANSACTIONS)
    return Outcome(refused.answer, known, attrs.evolve(cached, pending_state=known.state))


def log_change(
    cached: CachedTransaction, entry: TransactionMetadata, answer: Answer, *, takes: bool = False
) -> Outcome:
    """Append a change, and answer when it is done; until then it is pending."""
    return Outcome(answer, entry, attrs.evolve(cached, pending_state=entry.state), takes_producer_id=takes)


@attrs.frozen
class Block:
    first: int
    size: int


@attrs.frozen
class ProducerIds:
    """A broker's block of ids, and the next free one of them. A crash loses the rest of a block."""

    block: Block | None = None
    used: int = 0

    @property
    def next_id(self) -> int | None:
        """Return the next free id, or None: a block has to be asked for."""
        if self.block is None or self.used == self.block.size:
            return None
        return self.block.first + self.used

    def take(self) -> ProducerIds:
        """Return the ids without the next one."""
        return attrs.evolve(self, used=self.used + 1)


@attrs.frozen
class TransactionRecord:
    """An entry of a transactional id; None is a tombstone."""

    transactional_id: str
    entry: TransactionMetadata | None
    transaction: str = ""
    """The ghost: the application's transaction that was added to, or whose EndTxn this is."""

    @property
    def timestamp(self) -> int:
        return -1 if self.entry is None else self.entry.last_update_timestamp


def entries_of(record: TransactionRecord | RecordBatch) -> tuple[TransactionRecord, ...]:
    """Return what is left of a record of the transaction log: compaction makes a batch of it."""
    if isinstance(record, TransactionRecord):
        return (record,)
    return tuple(each for each in record.records if isinstance(each, TransactionRecord))


def last_entries(records: Iterable[TransactionRecord]) -> FrozenMap[str, TransactionMetadata]:
    """Return the last entry of each transactional id."""
    last = {record.transactional_id: record.entry for record in records}
    return FrozenMap({tid: entry for tid, entry in last.items() if entry is not None})


def ghosts_after(ghosts: Ghosts, record: TransactionRecord) -> Ghosts:
    """Return the ghosts after an entry is in the log: which transaction is ongoing, and which decided its end."""
    tid, entry = record.transactional_id, record.entry
    if entry is None:
        return ghosts
    if entry.state is TxnState.ONGOING:
        transaction = record.transaction or ghosts.ongoing.get(tid, "")
        return attrs.evolve(ghosts, ongoing=ghosts.ongoing.set(tid, transaction))
    if entry.state not in PREPARED:
        return ghosts
    cause = record.transaction or ghosts.ongoing.get(tid, "")
    decided = {cause} if entry.state is TxnState.PREPARE_COMMIT else set()
    return attrs.evolve(ghosts, causes=ghosts.causes.set(tid, cause), committed=ghosts.committed | decided)


def ghosts_of(records: Iterable[TransactionRecord]) -> Ghosts:
    """Return what a transaction log tells of the application's transactions."""
    return reduce(ghosts_after, records, Ghosts())


def can_log_any(request: CoordinatorRequest) -> bool:
    """Log what any request makes of a transaction (`TransactionLog.valueToBytes`)."""
    return True


def can_log_old_clients(request: CoordinatorRequest) -> bool:
    """Log nothing of a client that speaks part 2 of KIP-890: version 0 of `TransactionLogValue` has no field for it.

    So it is at `transaction.version` 0 of Kafka 4. What was begun stays pending, and the id is of no use any more.
    """
    if isinstance(request, AddPartitionsToTxnRequest):
        return request.version <= 3
    return not isinstance(request, EndTxnRequest) or request.version < 5
