"""Offsets as the log of a group coordinator makes them: committed ones, and those staged by open transactions."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from harness.model import FrozenMap, absent_if_none
from kafka_proto.log import NO_PRODUCER_ID, Marker, RecordBatch

Key = tuple[str, str]
"""A group and a partition."""


@attrs.frozen
class OffsetRecord:
    """A record of the offsets log; an offset of None is a tombstone."""

    group_id: str
    partition: str
    offset: int | None
    leader_epoch: int | None = attrs.field(default=None, metadata=absent_if_none())
    """Of the record before the offset, as the client knows it (KIP-320)."""
    metadata: str | None = attrs.field(default=None, metadata=absent_if_none())
    """What the client keeps with the offset."""
    transaction: str | None = attrs.field(default=None, metadata=absent_if_none())
    """The ghost: the application's transaction that it is part of."""

    @property
    def key(self) -> Key:
        return self.group_id, self.partition


@attrs.frozen
class Committed:
    """An offset, and where in the log its record is: the later record wins, whenever it became visible."""

    offset: int
    record_offset: int
    leader_epoch: int | None = attrs.field(default=None, metadata=absent_if_none())
    metadata: str | None = attrs.field(default=None, metadata=absent_if_none())


@attrs.frozen
class Offsets:
    """What a group coordinator knows of its offsets log (`OffsetMetadataManager`)."""

    committed: FrozenMap[Key, Committed] = FrozenMap()
    staged: FrozenMap[int, FrozenMap[Key, Committed]] = FrozenMap()
    """By producer id."""

    def is_stable(self, key: Key) -> bool:
        """Say whether no open transaction has an offset of this group and partition staged."""
        return not any(key in staged for staged in self.staged.values())

    def of_partitions(self, partitions: Iterable[str]) -> tuple[Key, ...]:
        """Return the groups and partitions that have an offset of some partitions, committed or staged, sorted."""
        wanted = frozenset(partitions)
        keys = {*self.committed, *(key for staged in self.staged.values() for key in staged)}
        return tuple(sorted(key for key in keys if key[1] in wanted))


def replay(offsets: Offsets, batch: RecordBatch, *, by_record: bool = True) -> Offsets:
    """Return the offsets after a batch of the log: the live view is this, and so is what an election loads.

    With `by_record` a transaction's offsets do not replace those of later records (KAFKA-5247). Without it they do, as
    the live view did before: what a replay of the log gave was another one.
    """
    if batch.marker is not None:
        return _materialised(offsets, batch.producer_id, batch.marker, by_record)
    for place, record in enumerate(batch.records):
        if isinstance(record, OffsetRecord):
            offsets = _replayed(offsets, batch, record, batch.base_offset + place)
    return offsets


def _replayed(offsets: Offsets, batch: RecordBatch, record: OffsetRecord, record_offset: int) -> Offsets:
    if record.offset is None:
        staged = FrozenMap((owner, keys.without(record.key)) for owner, keys in offsets.staged.items())
        return Offsets(offsets.committed.without(record.key), staged)
    written = Committed(record.offset, record_offset, record.leader_epoch, record.metadata)
    if batch.producer_id == NO_PRODUCER_ID or not batch.is_transactional:
        return attrs.evolve(offsets, committed=offsets.committed.set(record.key, written))
    keys: FrozenMap[Key, Committed] = offsets.staged.get(batch.producer_id, FrozenMap())
    return attrs.evolve(offsets, staged=offsets.staged.set(batch.producer_id, keys.set(record.key, written)))


def _materialised(offsets: Offsets, producer_id: int, marker: Marker, by_record: bool) -> Offsets:
    """End a producer's transaction: its offsets become visible, or are dropped."""
    if producer_id not in offsets.staged:
        return offsets
    staged = offsets.staged[producer_id]
    kept = offsets.staged.without(producer_id)
    if marker is Marker.ABORT:
        return attrs.evolve(offsets, staged=kept)
    committed = offsets.committed
    for key, written in staged.items():
        known = committed.get(key)
        if known is None or not by_record or written.record_offset > known.record_offset:
            committed = committed.set(key, written)
    return Offsets(committed, kept)


def load(batches: Iterable[RecordBatch]) -> Offsets:
    """Return the offsets that a log holds, as a newly elected coordinator reads it."""
    offsets = Offsets()
    for batch in batches:
        offsets = replay(offsets, batch)
    return offsets
