"""Compaction of a log: the last record of each key stays where it is (`LogCleaner`, `LogCleanerManager`, `Cleaner`).

Tombstones, and markers of transactions whose records are all gone, stay for a while after the compaction that finds
them: until then a batch says, in the place of its first time stamp, when they may go (KIP-534). Segments of less than
`segment.bytes` become one by themselves, as segments follow from batches.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from typing import NamedTuple

import attrs

from kafka_proto.log import NO_PRODUCER_ID, AbortedTransaction, Marker, PartitionLog, RecordBatch
from kafka_proto.log.chunks import chunks
from kafka_proto.log.segments import COMPACT, LogConfig, Segment


class KeyedRecord(NamedTuple):
    """What compaction looks at in a record."""

    offset: int
    key: Hashable
    """None if it has none."""
    has_value: bool


@attrs.frozen
class BatchFormat:
    """How a driver writes batches: their bytes on disk, their records, and batches with fewer records.

    `rewritten` is given the offsets of the records that stay, and when tombstones and markers may go, if ever.
    """

    size_of: Callable[[RecordBatch], int]
    records: Callable[[RecordBatch], Iterable[KeyedRecord]]
    rewritten: Callable[[RecordBatch, Collection[int], int | None], RecordBatch]


@attrs.frozen
class Compaction:
    """What compaction makes of the batches below an offset that are not as they were: None for one that is gone."""

    end: int
    changed: dict[int, RecordBatch | None]
    """By base offset."""
    log: PartitionLog


def cleanable_to(
    log: PartitionLog, found: Sequence[Segment], config: LogConfig, clean_to: int, now: int
) -> int | None:
    """Return up to where a log is to be compacted now, if it is dirty enough, or was for long enough.

    The active segment is not, nor what is not stable, nor segments with records younger than the lag.
    """
    if COMPACT not in config.cleanup_policy or not found:
        return None
    ends = [*(segment.base_offset for segment in found[1:]), log.log_end_offset]
    first_dirty = clean_to if log.log_start_offset <= clean_to <= log.log_end_offset else log.log_start_offset
    dirty = [segment for segment, end in zip(found[:-1], ends, strict=False) if end > first_dirty]
    young = (each.base_offset for each in dirty if config.min_compaction_lag_ms > 0
             and each.largest_timestamp > now - config.min_compaction_lag_ms)
    limit = min(log.last_stable_offset, found[-1].base_offset, *young)
    there = [segment for segment, end in zip(found[:-1], ends, strict=False) if end <= limit]
    cleanable = sum(segment.size for segment in there if segment.base_offset >= first_dirty)
    total = cleanable + sum(segment.size for segment in found if segment.base_offset < first_dirty)
    since = min((each.first_timestamp for each in dirty if each.first_timestamp > 0), default=now)
    if cleanable and (since < now - config.max_compaction_lag_ms
                      or cleanable > config.min_cleanable_dirty_ratio * total):
        return ends[len(there) - 1]
    return None


class Transactions:
    """The transactions of batches that are read one after the other (`CleanedTransactionMetadata`)."""

    def __init__(self, aborted: Iterable[AbortedTransaction]) -> None:
        self._ahead = sorted(aborted, key=lambda txn: txn.first_offset, reverse=True)
        self._aborted: dict[int, tuple[AbortedTransaction, bool]] = {}
        """By producer id: the one that is under way, and whether anything of it was read."""
        self._committed: set[int] = set()
        self.index: list[AbortedTransaction] = []
        """Aborted transactions of which something was read."""

    def are_over(self, batch: RecordBatch) -> bool:
        """Read a batch; say whether it is void: aborted, or the marker of a transaction that has nothing else left."""
        while self._ahead and self._ahead[-1].first_offset <= batch.last_offset:
            txn = self._ahead.pop()
            self._aborted.setdefault(txn.producer_id, (txn, False))
        producer_id = batch.producer_id
        if batch.marker is None:
            if not batch.is_transactional:
                return False
            if producer_id not in self._aborted:
                self._committed.add(producer_id)
                return False
            self._aborted[producer_id] = self._aborted[producer_id][0], True
            return True
        if not batch.records:
            return True
        if batch.marker is Marker.COMMIT:
            has_more = producer_id in self._committed
            self._committed.discard(producer_id)
            return not has_more
        known = self._aborted.pop(producer_id, None)
        if known is None or not known[1]:
            return True
        self.index.append(known[0])
        return False


def compacted(
    log: PartitionLog, end: int, clean_to: int, config: LogConfig, form: BatchFormat, now: int
) -> Compaction:
    """Compact a log up to an offset: of each key that occurs between there and `clean_to` the last record stays."""
    last: dict[Hashable, int] = {}
    dirty = Transactions(log.aborted)
    below = [batch for batch in log.batches if batch.base_offset < end]
    for batch in below:
        is_void = dirty.are_over(batch)
        if batch.last_offset >= clean_to and batch.marker is None and not is_void:
            last.update((record.key, record.offset) for record in form.records(batch) if record.offset >= clean_to)
    transactions, changed = Transactions(log.aborted), dict[int, RecordBatch | None]()
    for batch in below:
        kept = _cleaned(log, batch, transactions.are_over(batch), last, end, config, form, now)
        if kept is not batch:
            changed[batch.base_offset] = kept
    batches = (changed.get(batch.base_offset, batch) for batch in log.batches)
    later = (txn for txn in log.aborted if txn.last_offset >= end)
    return Compaction(end, changed, attrs.evolve(
        log, batches=chunks(batch for batch in batches if batch is not None),
        aborted=chunks(sorted((*transactions.index, *later), key=lambda txn: txn.last_offset))))


def _cleaned(
    log: PartitionLog, batch: RecordBatch, is_void: bool, last: dict[Hashable, int], end: int, config: LogConfig,
    form: BatchFormat, now: int,
) -> RecordBatch | None:
    """Return what stays of a batch; an empty one if it is the last of its producer, or of the compaction."""
    horizon, is_marker = batch.delete_horizon, batch.marker is not None
    goes = horizon is not None and horizon <= now
    records = list(form.records(batch))
    kept = [] if is_void and (goes or not is_marker) else records
    if not is_void and not is_marker:
        kept = [record for record in records if record.key is not None
                and record.offset >= last.get(record.key, -1) and (record.has_value or not goes)]
    has_deletion = (is_void and is_marker) or not all(record.has_value for record in kept)
    if kept:
        until = now + config.delete_retention_ms if has_deletion and horizon is None else horizon
        if len(kept) == len(records) and until == horizon:
            return batch
        return form.rewritten(batch, {record.offset for record in kept}, until)
    if _is_last(log, batch) or batch.last_offset + 1 == end:
        return form.rewritten(batch, (), None) if records else batch
    return None


def _is_last(log: PartitionLog, batch: RecordBatch) -> bool:
    """Say whether a batch has the last sequence of its producer, or the last epoch of one without."""
    known = log.producers.get(batch.producer_id) if batch.producer_id != NO_PRODUCER_ID else None
    if known is None:
        return False
    if known.batches:
        return batch.last_offset == known.batches[-1].last_offset
    return batch.marker is not None and batch.producer_epoch == known.producer_epoch
