"""Records by the names that their producers gave them, as readers of a session get them and as logs have them.

`1000.0#5` is the record with sequence 5 of producer id 1000, epoch 0; one of no producer has no name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from kafka_proto.gateway.codec import Fields
from kafka_proto.gateway.records import BatchHeader, read_marker
from kafka_proto.log import MAX_SEQUENCE, Marker, PartitionLog


def log_name(p: str, is_committed: bool) -> str:
    """Return a partition as those readers see it."""
    return p if is_committed else f"{p} (uncommitted)"


class NamedRecords(NamedTuple):
    """Records of a batch one after the other: where they are, whose, and the sequence of the first."""

    offset: int
    producer_id: int
    epoch: int
    sequence: int
    length: int

    @property
    def producer(self) -> tuple[int, int]:
        return self.producer_id, self.epoch

    def rows(self) -> Iterator[list[Any]]:
        """Yield the offset of each, and its name; sequences begin again after the last one."""
        for n in range(self.length):
            yield [self.offset + n, f"{self.producer_id}.{self.epoch}#{(self.sequence + n) % (MAX_SEQUENCE + 1)}"]

    def since(self, offset: int) -> NamedRecords:
        """Return those from an offset on, none if all are before it."""
        n = min(max(0, offset - self.offset), self.length)
        return self._replace(offset=self.offset + n, sequence=self.sequence + n, length=self.length - n)


def is_named(header: BatchHeader) -> bool:
    """Say whether the records of a batch have names."""
    return (header.producer_id >= 0 and header.base_sequence >= 0 and not header.is_control
            and header.count == header.last_offset_delta + 1)


def named_in(header: BatchHeader) -> NamedRecords:
    """Return the records of a batch that have names."""
    return NamedRecords(
        header.base_offset, header.producer_id, header.producer_epoch, header.base_sequence, header.count)


def not_aborted(batches: Iterable[tuple[BatchHeader, bytes]], aborted: Iterable[Fields]) -> Iterator[BatchHeader]:
    """Yield the batches that a reader of committed records takes, by the transactions that it is told are aborted."""
    listed = sorted((txn["first_offset"], txn["producer_id"]) for txn in aborted)
    skipped: set[int] = set()
    for header, data in batches:
        while listed and listed[0][0] <= header.base_offset + header.last_offset_delta:
            skipped.add(listed.pop(0)[1])
        if header.is_control:
            if read_marker(data, header)[0] == 0:
                skipped.discard(header.producer_id)
        elif not (header.is_transactional and header.producer_id in skipped):
            yield header


def has_no_holes(log: PartitionLog, start: int) -> bool:
    """Say whether a log has all that was written from an offset on: nothing was deleted, and no batch compacted away.
    """
    for batch in log.batches:
        if batch.base_offset != start or not batch.records:
            return False
        start = batch.last_offset + 1
    return start == log.log_end_offset


def readable(log: PartitionLog, end: int, is_committed: bool) -> tuple[list[NamedRecords], bool]:
    """Return the records below an offset that a reader gets, and whether these are all up to the end of the log.

    A reader of committed records gets to the first batch of a transaction that no marker below the offset ends.
    """
    batches = [batch for batch in log.batches if batch.last_offset < end]
    last: dict[int, Marker] = {}
    ends: list[Marker | None] = []
    for batch in reversed(batches):
        if batch.marker is not None:
            last[batch.producer_id] = batch.marker
            ends.append(None)
        else:
            ends.append(last.get(batch.producer_id) if batch.is_transactional else Marker.COMMIT)
    found: list[NamedRecords] = []
    for batch, marker in zip(batches, reversed(ends), strict=True):
        if batch.marker is not None:
            continue
        if is_committed and marker is None:
            return found, False
        if batch.producer_id >= 0 and batch.base_sequence >= 0 and (not is_committed or marker is Marker.COMMIT):
            found.append(NamedRecords(batch.base_offset, batch.producer_id, batch.producer_epoch, batch.base_sequence,
                                      batch.last_offset_delta + 1))
    return found, end >= log.log_end_offset
