"""Records by the names that their producers gave them, as readers of a session get them and as logs have them.

`1000.0#5` is the record with sequence 5 of producer id 1000, epoch 0; one of no producer has no name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from kafka_proto.gateway.codec import Fields
from kafka_proto.gateway.records import BatchHeader, read_marker
from kafka_proto.log import MAX_SEQUENCE, Marker, PartitionLog


def log_name(p: str, is_committed: bool) -> str:
    """Return a partition as those readers see it."""
    return p if is_committed else f"{p} (uncommitted)"


def is_named(header: BatchHeader) -> bool:
    """Say whether the records of a batch have names."""
    return (header.producer_id >= 0 and header.base_sequence >= 0 and not header.is_control
            and header.count == header.last_offset_delta + 1)


def names_of(producer_id: int, epoch: int, sequence: int, count: int) -> Iterator[str]:
    """Yield the names of some records of a producer, one after the other; sequences begin again after the last one."""
    who = producer_name(producer_id, epoch)
    return (f"{who}#{(sequence + n) % (MAX_SEQUENCE + 1)}" for n in range(count))


def producer_name(producer_id: int, epoch: int) -> str:
    """Return what the names of a producer's records begin with."""
    return f"{producer_id}.{epoch}"


def names_in(header: BatchHeader) -> Iterator[str]:
    """Yield the names of the records of a batch."""
    return names_of(header.producer_id, header.producer_epoch, header.base_sequence, header.last_offset_delta + 1)


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


def readable(log: PartitionLog, end: int, is_committed: bool) -> tuple[list[list[Any]], bool]:
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
    found: list[list[Any]] = []
    for batch, marker in zip(batches, reversed(ends), strict=True):
        if batch.marker is not None:
            continue
        if is_committed and marker is None:
            return found, False
        if batch.producer_id >= 0 and batch.base_sequence >= 0 and (not is_committed or marker is Marker.COMMIT):
            names = names_of(batch.producer_id, batch.producer_epoch, batch.base_sequence, batch.last_offset_delta + 1)
            found += [[offset, name] for offset, name in enumerate(names, batch.base_offset)]
    return found, end >= log.log_end_offset
