"""What can be said of a replicated log from its end offset or its records (`FiniteReplicatedLog`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from kafka_proto.replication.records import NIL, AnyLog, WrittenRecord

R = TypeVar("R", bound=WrittenRecord)


def record_at(log: Sequence[R], offset: int) -> R | None:
    """Return the record at an offset, or None where the log holds none (`HasEntry`, `GetRecordAtOffset`)."""
    return log[offset] if 0 <= offset < len(log) else None


def last_epoch(log: AnyLog) -> int:
    """Return the leader epoch of a log's last record, `NIL` where it has none."""
    return log[-1].epoch if log else NIL


def first_disagreement(one: AnyLog, other: AnyLog, upto: int) -> int | None:
    """Return the first offset below `upto` at which the logs do not hold the same record, or None."""
    for offset in range(upto):
        record = record_at(one, offset)
        if record is None or record != record_at(other, offset):
            return offset
    return None
