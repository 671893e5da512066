"""A replica's log as somebody looks at it: its records with their leader epochs, and its high watermark."""

from __future__ import annotations

from collections.abc import Callable

from harness.model import LogEntry, LogMark, ShownLog, Value
from kafka_proto.replication.replica_state import ReplicaState


def replica_log(partition: str, holder: str, state: ReplicaState, text: Callable[[Value], str] = str) -> ShownLog:
    """Return the log of a replica; `text` gives what a record carries in a word or two."""
    entries = tuple(
        LogEntry(offset, text(entry.value), note=f"e{entry.epoch}", details=(("leader epoch", str(entry.epoch)),))
        for offset, entry in enumerate(state.log)
    )
    known = (("leader", state.leader or "nobody"), ("leader epoch", str(state.leader_epoch)),
             ("ISR", ", ".join(sorted(state.isr)) or "nobody"))
    marks = (LogMark("high watermark", "HW", state.high_watermark),)
    return ShownLog(partition, holder, state.end_offset, entries, marks, known)
