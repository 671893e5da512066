"""The log of a partition: batches, what a broker derives from them about producers and transactions, how it is read.

Everything is derived: a log is what `append` makes of its batches one by one, on a leader, on a follower, and on a new
leader that reads its own disk again (`rebuild`). What may be appended is decided by the leader (`broker.leader`).
A record is any value: text in a model, bytes on the wire. A batch that a codec keeps packed is one record with the
`last_offset_delta` of all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum

import attrs

from harness.model import FrozenMap, Value, absent_if_none
from kafka_proto.log.chunks import NOTHING, Chunks, chunks

NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
NO_SEQUENCE = -1
MAX_SEQUENCE = 2**31 - 1
MAX_EPOCH = 2**15 - 1


class Marker(StrEnum):
    """The type of a control record that ends a transaction (Kafka's `ControlRecordType`)."""

    COMMIT = "COMMIT"
    ABORT = "ABORT"


@attrs.frozen
class RecordBatch:
    """Records that were written together; `base_offset` is given by the leader's log."""

    records: tuple[Value, ...]
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_PRODUCER_EPOCH
    base_sequence: int = NO_SEQUENCE
    is_transactional: bool = False
    marker: Marker | None = None
    """Set in a control batch."""
    coordinator_epoch: int = -1
    """Of a marker."""
    timestamp: int = -1
    """Logical milliseconds of the newest record."""
    base_offset: int = -1
    last_offset_delta: int = attrs.Factory(lambda self: len(self.records) - 1, takes_self=True)
    delete_horizon: int | None = attrs.field(default=None, metadata=absent_if_none())
    """When tombstones in it may go, or the marker that it is, once compaction has found them (KIP-534)."""

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def last_sequence(self) -> int:
        """Return the sequence of the last record; it wraps after `MAX_SEQUENCE` (`DefaultRecordBatch`)."""
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return (self.base_sequence + self.last_offset_delta) % (MAX_SEQUENCE + 1)


def marker_batch(
    producer_id: int, producer_epoch: int, marker: Marker, coordinator_epoch: int, timestamp: int = -1
) -> RecordBatch:
    """Return the control batch that ends a producer's transaction (`MemoryRecords.withEndTransactionMarker`)."""
    return RecordBatch((marker,), producer_id, producer_epoch, is_transactional=True, marker=marker,
                       coordinator_epoch=coordinator_epoch, timestamp=timestamp)


BATCHES_REMEMBERED = 5
"""As many as a producer may have in flight (`NUM_BATCHES_TO_RETAIN`)."""


@attrs.frozen
class RememberedBatch:
    """The sequences of a batch, and where its last record is (`BatchMetadata`)."""

    first_sequence: int
    last_sequence: int
    last_offset: int
    offset_delta: int

    @property
    def first_offset(self) -> int:
        return self.last_offset - self.offset_delta


@attrs.frozen
class ProducerState:
    """A producer id's state: no epoch before its first batch or marker, no batches after a marker of a new epoch."""

    producer_epoch: int = NO_PRODUCER_EPOCH
    batches: tuple[RememberedBatch, ...] = ()
    """The oldest first, all of `producer_epoch`."""
    coordinator_epoch: int = -1
    last_timestamp: int = -1
    open_from: int | None = None
    """The first offset of its open transaction."""

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    def duplicate_of(self, batch: RecordBatch) -> RememberedBatch | None:
        """Return the remembered batch of the same epoch with exactly these sequences (`findDuplicateBatch`)."""
        if batch.producer_epoch != self.producer_epoch:
            return None
        wanted = batch.base_sequence, batch.last_sequence
        return next((known for known in self.batches if (known.first_sequence, known.last_sequence) == wanted), None)


UNKNOWN_PRODUCER = ProducerState()


def after_batch(state: ProducerState, batch: RecordBatch) -> ProducerState:
    """Return the state after a batch of data (`addBatch`): a new epoch forgets the batches of the old one."""
    known = state.batches if batch.producer_epoch == state.producer_epoch else ()
    added = RememberedBatch(batch.base_sequence, batch.last_sequence, batch.last_offset, batch.last_offset_delta)
    opens = state.open_from is None and batch.is_transactional
    return ProducerState(
        batch.producer_epoch, (*known, added)[-BATCHES_REMEMBERED:], state.coordinator_epoch, batch.timestamp,
        batch.base_offset if opens else state.open_from,
    )


def after_marker(state: ProducerState, marker: RecordBatch) -> ProducerState:
    """Return the state after a marker (`ProducerStateEntry.update`): no transaction is open any more."""
    known = state.batches if marker.producer_epoch == state.producer_epoch else ()
    return ProducerState(marker.producer_epoch, known, marker.coordinator_epoch, marker.timestamp, None)


@attrs.frozen
class OpenTransaction:
    """A transaction without marker (`TxnMetadata`)."""

    first_offset: int
    producer_id: int


@attrs.frozen
class EndedTransaction:
    """A transaction whose marker, at `last_offset`, was not below the high watermark when last looked at."""

    first_offset: int
    last_offset: int
    producer_id: int


@attrs.frozen
class AbortedTransaction:
    """An entry of the index of aborted transactions (`AbortedTxn`): records from `first_offset` to the marker are void.

    `last_stable_offset` is that of the log once the marker is replicated; it grows from entry to entry.
    """

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


@attrs.frozen
class PartitionLog:
    """Batches and offsets are what a disk keeps; the rest follows from them."""

    batches: Chunks[RecordBatch] = NOTHING
    log_start_offset: int = 0
    log_end_offset: int = 0
    high_watermark: int = 0
    producers: FrozenMap[int, ProducerState] = FrozenMap()
    open: tuple[OpenTransaction, ...] = ()
    """By first offset."""
    unreplicated: tuple[EndedTransaction, ...] = ()
    """Ended transactions whose marker is not below the high watermark, by first offset."""
    aborted: Chunks[AbortedTransaction] = NOTHING

    @property
    def first_unstable_offset(self) -> int | None:
        """Return the first offset of a transaction that is open or whose marker is not replicated.

        If that was deleted it is the first remaining batch (`maybeIncrementFirstUnstableOffset`).
        """
        firsts = [ended.first_offset for ended in self.unreplicated[:1]] + [txn.first_offset for txn in self.open[:1]]
        first = min(firsts, default=None)
        if first is None or first >= self.log_start_offset:
            return first
        return max(first, next((batch.base_offset for batch in self.batches), self.log_start_offset))

    @property
    def last_stable_offset(self) -> int:
        """Return up to where a reader of committed records may read."""
        unstable = self.first_unstable_offset
        return self.high_watermark if unstable is None else min(self.high_watermark, unstable)

    def producer(self, producer_id: int) -> ProducerState:
        """Return the state of a producer, or the initial state of an unknown one."""
        return self.producers.get(producer_id, UNKNOWN_PRODUCER)


EMPTY_LOG = PartitionLog()


def append(log: PartitionLog, batch: RecordBatch) -> PartitionLog:
    """Put a batch at the end of a log and update what is derived; whether it may be there was decided before."""
    placed = _placed(batch, log.log_end_offset)
    grown = attrs.evolve(log, batches=log.batches.add(placed), log_end_offset=placed.last_offset + 1)
    if placed.producer_id == NO_PRODUCER_ID:
        return grown
    known = log.producer(placed.producer_id)
    if placed.marker is not None:
        return _ended(grown, placed, placed.marker, known)
    now = after_batch(known, placed)
    opened = () if now.open_from == known.open_from else (OpenTransaction(placed.base_offset, placed.producer_id),)
    return attrs.evolve(grown, producers=log.producers.set(placed.producer_id, now), open=log.open + opened)


def _placed(batch: RecordBatch, offset: int) -> RecordBatch:
    return batch if batch.base_offset == offset else attrs.evolve(batch, base_offset=offset)


def _ended(log: PartitionLog, placed: RecordBatch, marker: Marker, known: ProducerState) -> PartitionLog:
    """Return a log whose last batch is a marker: the producer's transaction, if it had one open, has ended."""
    producers = log.producers.set(placed.producer_id, after_marker(known, placed))
    if known.open_from is None:
        return attrs.evolve(log, producers=producers)
    still_open = tuple(txn for txn in log.open if txn.producer_id != placed.producer_id)
    ended = EndedTransaction(known.open_from, placed.last_offset, placed.producer_id)
    waiting = tuple(sorted((*log.unreplicated, ended), key=lambda txn: txn.first_offset))
    aborted = log.aborted
    if marker is Marker.ABORT:
        stable = still_open[0].first_offset if still_open else placed.last_offset + 1
        aborted = aborted.add(AbortedTransaction(placed.producer_id, known.open_from, placed.last_offset, stable))
    return attrs.evolve(log, producers=producers, open=still_open, unreplicated=waiting, aborted=aborted)


def with_high_watermark(log: PartitionLog, high_watermark: int) -> PartitionLog:
    """Return a log whose high watermark is at an offset: markers below it are replicated (`onHighWatermarkUpdated`)."""
    waiting = tuple(txn for txn in log.unreplicated if txn.last_offset >= high_watermark)
    return attrs.evolve(log, high_watermark=high_watermark, unreplicated=waiting)


def batches_between(log: PartitionLog, start: int, stop: int, most: int | None = None) -> tuple[RecordBatch, ...]:
    """Return the batches from one offset up to another, the one that holds `start` first; at most `most` of them.

    A batch is given whole, and one that ends after `stop` not at all.
    """
    first = log.batches.first_after(start - 1, lambda batch: batch.last_offset)
    end = log.batches.first_after(stop - 1, lambda batch: batch.last_offset)
    return tuple(log.batches.between(first, end if most is None else min(end, first + most)))


def aborted_between(log: PartitionLog, start: int, stop: int) -> tuple[AbortedTransaction, ...]:
    """Return the aborted transactions that overlap a range of offsets (`TransactionIndex.collectAbortedTxns`).

    The index is by last offset, so what ends before `start` is skipped. It is read up to the first entry whose stable
    offset reaches `stop`: a later entry's transaction cannot have begun before.
    """
    found = []
    first = log.aborted.first_after(start - 1, lambda txn: txn.last_offset)
    for txn in log.aborted.between(first, len(log.aborted)):
        if txn.first_offset < stop:
            found.append(txn)
        if txn.last_stable_offset >= stop:
            break
    return tuple(found)


def visible(batches: Iterable[RecordBatch], aborted: Iterable[AbortedTransaction]) -> Iterator[Value]:
    """Yield the records that a consumer of committed records shows (`CompletedFetch.nextFetchedRecord`)."""
    return (record for _, record in visible_at(batches, aborted))


def visible_at(
    batches: Iterable[RecordBatch], aborted: Iterable[AbortedTransaction]
) -> Iterator[tuple[int, Value]]:
    """Yield the same with their offsets.

    An aborted transaction of the list is in force from its first offset to the ABORT marker of its producer.
    """
    ahead = sorted(aborted, key=lambda txn: txn.first_offset)
    void: set[int] = set()
    for batch in batches:
        while ahead and ahead[0].first_offset <= batch.last_offset:
            void.add(ahead.pop(0).producer_id)
        if batch.marker is Marker.ABORT:
            void.discard(batch.producer_id)
        if batch.marker is not None or (batch.is_transactional and batch.producer_id in void):
            continue
        yield from enumerate(batch.records, batch.base_offset)


def read_on(log: PartitionLog, batches: Iterable[RecordBatch]) -> PartitionLog:
    """Return a log with the batches that a disk has; what those before its end make is derived already."""
    found = log
    for batch in batches:
        if -1 < batch.last_offset < log.log_end_offset:
            found = attrs.evolve(found, batches=found.batches.add(batch))
            continue
        if batch.base_offset not in (found.log_end_offset, -1):  # it holds the start, or what was between is gone
            found = attrs.evolve(found, log_end_offset=batch.base_offset)
        found = append(found, batch)
    return found


def rebuild(log: PartitionLog) -> PartitionLog:
    """Derive everything anew from the batches, as a broker that starts or becomes leader does without a snapshot.

    Equal to the log itself while nothing was removed: what a snapshot holds of deleted records is not in the batches.
    """
    empty = PartitionLog(log_start_offset=log.log_start_offset)
    found = read_on(empty, log.batches)
    return with_high_watermark(attrs.evolve(found, log_end_offset=log.log_end_offset), log.high_watermark)


def truncate(log: PartitionLog, offset: int) -> PartitionLog:
    """Cut what begins at or after an offset, and derive the rest anew (`truncateTo`)."""
    kept = chunks(batch for batch in log.batches if batch.last_offset < offset)
    end = min(log.log_end_offset, max(offset, log.log_start_offset))
    shorter = attrs.evolve(log, batches=kept, log_end_offset=end, high_watermark=min(log.high_watermark, end))
    return rebuild(shorter)


def delete_records(log: PartitionLog, offset: int) -> PartitionLog:
    """Move the start of the log up to an offset (`maybeIncrementLogStartOffset`); it is at most the high watermark.

    Batches that are wholly before it go. Producers stay known until they expire (since Kafka 2.4, KAFKA-7190).
    """
    if offset <= log.log_start_offset:
        return log
    kept = chunks(batch for batch in log.batches if batch.last_offset >= offset)
    waiting: tuple[EndedTransaction, ...] = tuple(txn for txn in log.unreplicated if txn.last_offset >= offset)
    aborted = chunks(txn for txn in log.aborted if txn.last_offset >= offset)
    return attrs.evolve(log, batches=kept, log_start_offset=offset, unreplicated=waiting, aborted=aborted)


def beginning(
    before: PartitionLog | None, batches: Iterable[RecordBatch], offset: int, end: int | None = None
) -> PartitionLog:
    """Return what is known where a log begins, by batches that are gone: producers, and open transactions.

    With `end` it is what batches up to there have made, if they are to be compacted.
    """
    log = read_on(before or EMPTY_LOG, batches)
    log = attrs.evolve(log, log_end_offset=max(log.log_end_offset, end or 0))
    log = delete_records(with_high_watermark(log, log.log_end_offset), offset)
    return attrs.evolve(log, batches=NOTHING)


def open_from_start(log: PartitionLog) -> PartitionLog:
    """Let transactions begin at the start of the log where it lies within a batch of theirs (up to Kafka 3.9).

    From 4.0 on a reader of committed records may read up to that batch, which is as far.
    """
    moved = tuple(attrs.evolve(txn, first_offset=max(txn.first_offset, log.log_start_offset)) for txn in log.open)
    return log if moved == log.open else attrs.evolve(log, open=moved)


def forget_deleted_producers(log: PartitionLog) -> PartitionLog:
    """Forget producers whose last batch is not in the log any more, open transactions and all (up to Kafka 2.3).

    `ProducerStateManager.truncateHead`; why a producer was told UNKNOWN_PRODUCER_ID, and KIP-360's reason.
    """
    kept = FrozenMap((producer_id, state) for producer_id, state in log.producers.items()
                     if state.batches and state.batches[-1].last_offset >= log.log_start_offset)
    still_open = tuple(txn for txn in log.open if txn.producer_id in kept)
    return open_from_start(attrs.evolve(log, producers=kept, open=still_open))
