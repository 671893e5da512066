"""What replicas and the controller keep: records of the log, and the requests that announce a leader and its ISR."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

import attrs

from harness.model import Value
from kafka_proto.log import RecordBatch
from kafka_proto.log.chunks import Chunks, EpochStart, rewritten, same

NIL = -1
"""The leader epoch of a replica that has not heard of any, and the record at an unwritten offset in the spec's log."""

Isr = frozenset[str]


def members(isr: Isr) -> str:
    """Return an ISR as text: `{r1, r2}`."""
    return "{" + ", ".join(sorted(isr)) + "}"


@attrs.frozen
class Record:
    """A record of the log: a unique id, and the leader epoch in which it was written."""

    id: int
    epoch: int


Log = tuple[Record, ...]
"""The records of a replica, from offset 0 to its end offset."""


@attrs.frozen
class ReplicaEntry:
    """A record of an actor's log: the leader epoch in which it was written, and what it carries."""

    epoch: int
    value: Value


EntryLog = tuple[ReplicaEntry, ...] | Chunks[ReplicaEntry]
"""An actor's log: a tuple in a model; on brokers that run, a sequence that may forget its beginning, but for epochs."""


class WrittenRecord(Protocol):
    """What decisions need of a record, the spec's or an actor's: its leader epoch, and whether it equals another."""

    @property
    def epoch(self) -> int: ...


AnyLog = Sequence[WrittenRecord]
"""A log of either composition."""


@attrs.frozen
class LeaderAndIsrRequest:
    """What the controller tells replicas: the leader (None: no leader), its epoch, and the in-sync replicas."""

    leader: str | None
    leader_epoch: int
    isr: Isr


R = TypeVar("R", bound=WrittenRecord)


def record_at(log: Sequence[R], offset: int) -> R | None:
    """Return the record at an offset, or None if the log holds none (`HasEntry`, `GetRecordAtOffset`)."""
    return log[offset] if 0 <= offset < len(log) else None


def offset_at(log: Chunks[ReplicaEntry], place: int) -> int:
    """Return the offset of a place of a log, one that is not forgotten: behind the last batch that is there before it.

    What is no batch is a record, whose offset is its place.
    """
    for entry in map(log.__getitem__, reversed(range(log.gone, place))):
        if isinstance(entry.value, RecordBatch):
            return entry.value.last_offset + 1
        if entry.value is not None and not isinstance(entry.value, EpochStart):
            return place
    return 0 if log.start is None else log.start.offset


def last_epoch(log: AnyLog) -> int:
    """Return the leader epoch of a log's last record, `NIL` if it has none."""
    return log[-1].epoch if log else NIL


def first_disagreement(one: AnyLog, other: AnyLog, upto: int) -> int | None:
    """Return the first offset below `upto` at which the logs do not hold the same record, or None.

    What either has forgotten, or compacted, is not looked at.
    """
    start = max(rewritten(one), rewritten(other))
    if len(one) >= upto and same(one, other, start, upto):
        return None
    for offset in range(start, upto):
        record = record_at(one, offset)
        if record is None or record != record_at(other, offset):
            return offset
    return None
