"""A partition's log with what is derived from it, kept by each append (`UnifiedLog`, `ProducerStateManager`)."""

from __future__ import annotations

import attrs

from harness.model import FrozenMap
from kafka_proto.log.chunks import NOTHING, Chunks
from kafka_proto.log.producer_state import UNKNOWN_PRODUCER, ProducerState, after_batch, after_marker
from kafka_proto.log.records import NO_PRODUCER_ID, Marker, RecordBatch


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

        Where that was deleted it is the first batch that is left (`maybeIncrementFirstUnstableOffset`).
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
        """Return what is known of a producer, or the state of one of which nothing is."""
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
