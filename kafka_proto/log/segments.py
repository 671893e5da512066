"""Segments of a log as Kafka rolls them, and up to where retention deletes them (`LogSegment`, `UnifiedLog`).

They follow from the batches and the settings of the topic. Limits of index files are left out: records roll first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import attrs

from kafka_proto.log import PartitionLog, RecordBatch

LARGEST = 2**63 - 1
COMPACT, DELETE = "compact", "delete"
SizeOf = Callable[[RecordBatch], int]
"""The bytes of a batch on disk."""


@attrs.frozen
class LogConfig:
    """The settings of a topic that say when its logs become shorter, by Kafka's names; -1 is no limit."""

    cleanup_policy: frozenset[str] = frozenset({DELETE})
    retention_ms: int = 604_800_000
    retention_bytes: int = -1
    segment_bytes: int = 1_073_741_824
    segment_ms: int = 604_800_000
    delete_retention_ms: int = 86_400_000
    min_cleanable_dirty_ratio: float = 0.5
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = LARGEST

    @property
    def max_segment_ms(self) -> int:
        """Return after which time a segment is rolled: what is to be compacted must not stay active."""
        return min(self.segment_ms, self.max_compaction_lag_ms) if COMPACT in self.cleanup_policy else self.segment_ms


@attrs.define
class Segment:
    """Batches that are deleted, or compacted, together."""

    base_offset: int
    first_timestamp: int
    size: int = 0
    largest_timestamp: int = -1


def segments(
    batches: Iterable[RecordBatch], config: LogConfig, size_of: SizeOf, clean_to: int = 0
) -> list[Segment]:
    """Return the segments of a log, the active one last; a new one begins where compaction has come to."""
    found: list[Segment] = []
    last: Segment | None = None
    for batch in batches:
        size = size_of(batch)
        if last is None or last.size + size > config.segment_bytes or (
                batch.timestamp - last.first_timestamp > config.max_segment_ms) or (
                last.base_offset < clean_to <= batch.base_offset):
            last = Segment(batch.base_offset, batch.timestamp)
            found.append(last)
        last.size += size
        last.largest_timestamp = max(last.largest_timestamp, batch.timestamp)
    return found


def retained_from(log: PartitionLog, found: Sequence[Segment], config: LogConfig, now: int) -> int:
    """Return where a log begins once old segments are deleted, by size and then by time (`deleteOldSegments`).

    The active one is rolled first if it is to go, too. Nothing goes that is not below the high watermark.
    """
    if DELETE not in config.cleanup_policy:
        return log.log_start_offset
    ends = [*(segment.base_offset for segment in found[1:]), log.log_end_offset]
    gone, excess = 0, sum(segment.size for segment in found) - config.retention_bytes
    there = [segment for segment, end in zip(found, ends, strict=False) if end <= log.high_watermark]
    for segment in there if config.retention_bytes >= 0 else ():
        excess -= segment.size
        if excess < 0:
            break
        gone += 1
    for segment in there[gone:] if config.retention_ms >= 0 else ():
        if now - segment.largest_timestamp <= config.retention_ms:
            break
        gone += 1
    return ends[gone - 1] if gone else log.log_start_offset


def may_be_shorter(log: PartitionLog, config: LogConfig, now: int) -> bool:
    """Say whether retention may delete anything: without a limit of bytes only if the first batch is old."""
    if DELETE not in config.cleanup_policy or not log.batches:
        return False
    is_old = config.retention_ms >= 0 and now - log.batches[0].timestamp > config.retention_ms
    return config.retention_bytes >= 0 or is_old
