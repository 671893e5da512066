"""Histories of logs as clients of any system saw them: sends with the offsets they got, polls with what they read.

Two properties are judged, from the operations alone. Nothing is known of the system but what it answered:

- **AckDurability** (R4): a record whose send was acknowledged at an offset is read by some reader, if any reads on to
  that offset; and no reader that reads both sides of it in one poll passes over it.
- **StableReads** (R5): an offset has one content in all sends and reads; and a reader does not go back.

Operations that fail, or whose outcome is not known, prove nothing and are left out.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import attrs

from harness.record.wording import counted

DURABILITY, STABILITY = "AckDurability", "StableReads"
PROPERTIES: Mapping[str, str] = {
    DURABILITY: "an acknowledged record is read by those who read past its offset",
    STABILITY: "an offset has one content, and no reader goes back",
}
"""The properties of every history of a log: name to what it says."""
INVOKE, OK, FAIL, INFO, FAULT = "invoke", "ok", "fail", "info", "fault"
SEND, POLL, ASSIGN, SUBSCRIBE, CRASH = "send", "poll", "assign", "subscribe", "crash"
MIXED = ("send", "poll", "txn")
"""Operations that send and read, by their names."""


@attrs.frozen
class LogOperation:
    """An operation of a client as it begins or ends, or something that was done to the system."""

    n: int
    """Its place in the history, from 1."""
    at_us: int | None
    process: str
    outcome: str
    """`invoke`, `ok`, `fail` or `info` (outcome unknown); `fault` for what was done to the system."""
    name: str
    parts: tuple[Sequence[Any], ...]
    """What it consists of, as JSON: `["send", key, offset, value]`, the offset null where it is unknown;
    `["poll", [[key, [[offset, value], ...]], ...]]`, nothing before it has ended; `["assign", [key, ...], from start]`
    and `["subscribe", [key, ...], false]`."""


@attrs.frozen
class Breach:
    """A property that a history violates: where, by which operation, and why."""

    property: str
    step: int
    action: str
    reason: str


@attrs.frozen
class _Seen:
    """Where a record was reported: the operation, and whether that sent or read it."""

    n: int
    process: str
    action: str
    value: Any

    @property
    def words(self) -> str:
        return f"operation {self.n} ({self.action} by {self.process})"


@attrs.define
class _Log:
    """What is known of one log."""

    contents: dict[int, _Seen] = attrs.field(factory=dict)
    """The content of each offset, as it was first reported."""
    acked: dict[int, _Seen] = attrs.field(factory=dict)
    read: set[int] = attrs.field(factory=set)
    values: set[Any] = attrs.field(factory=set)
    """All values that were read."""
    reached: list[tuple[int, _Seen]] = attrs.field(factory=list)
    """How far readers got: each offset beyond all before, with its reader."""
    gaps: dict[tuple[int, int], _Seen] = attrs.field(factory=dict)
    """Neighbours in one poll that have offsets between them."""


class LogJudge:
    """Looks at the operations of one history in their order, and says what they violate."""

    def __init__(self) -> None:
        self._logs: dict[Any, _Log] = {}
        self._positions: dict[str, dict[Any, tuple[int, int]]] = {}
        """How far each reader got in each log, and in which operation; unknown after a failure."""
        self._grouped: set[str] = set()
        """Readers whose logs are dealt out to them: they may be given older positions at any time."""
        self._unstable: list[Breach] = []

    def look(self, operation: LogOperation) -> None:
        """Look at the next operation."""
        name, outcome = operation.name, operation.outcome
        if outcome in (FAULT, INVOKE):
            return
        if outcome in (FAIL, INFO) or name == CRASH:
            self._positions.pop(operation.process, None)
        elif name in (ASSIGN, SUBSCRIBE):
            self._assigned(operation)
        elif name in MIXED:
            for part in operation.parts:
                if part[0] == SEND:
                    self._sent(operation, *part[1:])
                else:
                    for key, records in part[1]:
                        self._polled(operation, key, records)

    def breaches(self) -> tuple[Breach, ...]:
        """Return what is violated so far: of each property the first breach, which says how many more there are."""
        lost = [breach for key, log in self._logs.items() for breach in (*_lost(key, log), *_passed_over(key, log))]
        found = []
        for breaches in (lost, self._unstable):
            ordered = sorted(breaches, key=lambda breach: (breach.step, breach.reason))
            if ordered:
                more = f"; and {counted(len(ordered) - 1, 'more such case')}" if ordered[1:] else ""
                found.append(attrs.evolve(ordered[0], reason=ordered[0].reason + more))
        return tuple(sorted(found, key=lambda breach: (breach.step, breach.property)))

    def _assigned(self, operation: LogOperation) -> None:
        kind, keys, from_start = operation.parts[0]
        if kind == SUBSCRIBE:
            self._grouped.add(operation.process)
        else:
            self._grouped.discard(operation.process)
        known = self._positions.pop(operation.process, {})
        if not from_start:
            self._positions[operation.process] = {key: known[key] for key in keys if key in known}

    def _sent(self, operation: LogOperation, key: Any, offset: int | None, value: Any) -> None:
        if offset is not None:
            log = self._logs.setdefault(key, _Log())
            seen = _Seen(operation.n, operation.process, operation.name, value)
            self._tell(key, log, offset, seen)
            log.acked.setdefault(offset, seen)

    def _polled(self, operation: LogOperation, key: Any, records: Iterable[tuple[int, Any]]) -> None:
        log = self._logs.setdefault(key, _Log())
        positions = self._positions.setdefault(operation.process, {})
        known = None if operation.process in self._grouped else positions.get(key)
        before: int | None = None
        for offset, value in records:
            seen = _Seen(operation.n, operation.process, operation.name, value)
            last = before if before is not None else known[0] if known is not None else None
            if last is not None and offset <= last:
                n = operation.n if before is not None or known is None else known[1]
                self._unstable.append(Breach(STABILITY, operation.n, operation.name, (
                    f"{operation.process} reads offset {offset} of log {key} in operation {operation.n}, after offset "
                    f"{last} in {'the same one' if n == operation.n else f'operation {n}'}")))
            if before is not None and offset > before + 1:
                log.gaps.setdefault((before, offset), seen)
            self._tell(key, log, offset, seen)
            log.read.add(offset)
            log.values.add(value)
            if not log.reached or offset > log.reached[-1][0]:
                log.reached.append((offset, seen))
            before = offset
        if before is not None:
            positions[key] = before, operation.n

    def _tell(self, key: Any, log: _Log, offset: int, seen: _Seen) -> None:
        """Note the content of an offset, and whether it is another one than before."""
        old = log.contents.setdefault(offset, seen)
        if old.value != seen.value:
            self._unstable.append(Breach(STABILITY, seen.n, seen.action, (
                f"offset {offset} of log {key} is {old.value} in {old.words} and {seen.value} in {seen.words}")))


def _lost(key: Any, log: _Log) -> Iterator[Breach]:
    """Yield the acknowledged records of a log that were never read, though a reader read on to their offset."""
    offsets = [offset for offset, _ in log.reached]
    for offset, sent in sorted(log.acked.items()):
        at = bisect_left(offsets, offset)
        if at == len(offsets) or sent.value in log.values:
            continue
        reached, reader = log.reached[at]
        last = max(sent, reader, key=lambda seen: seen.n)
        yield Breach(DURABILITY, last.n, last.action, (
            f"{sent.value} was acknowledged at offset {offset} of log {key} in {sent.words} and is read by nobody, "
            f"though {reader.words} reads offset {reached}"))


def _passed_over(key: Any, log: _Log) -> Iterator[Breach]:
    """Yield the acknowledged records of a log that one reader read, and another one passed over in one poll."""
    acked = sorted(log.acked)
    for (low, high), reader in sorted(log.gaps.items()):
        for offset in acked[bisect_right(acked, low) : bisect_left(acked, high)]:
            sent = log.acked[offset]
            if offset in log.read and sent.value in log.values:
                last = max(sent, reader, key=lambda seen: seen.n)
                yield Breach(DURABILITY, last.n, last.action, (
                    f"{sent.value} was acknowledged at offset {offset} of log {key} in {sent.words}, and "
                    f"{reader.words} passes over it from offset {low} to {high}"))
