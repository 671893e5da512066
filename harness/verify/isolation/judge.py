"""Judges a history of logs in one pass: looks at each operation once, and says at the end what is violated."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import attrgetter
from typing import Any

import attrs

from harness.model.log_operations import (
    ASSIGN,
    CRASH,
    FAULT,
    INVOKE,
    MIXED,
    OK,
    SEND,
    SUBSCRIBE,
    LogOperation,
)
from harness.record.wording import counted
from harness.verify.isolation import cycles, order, records
from harness.verify.isolation.anomalies import ANOMALIES, Breach, breach, forbidden
from harness.verify.isolation.columns import NOBODY, UNKNOWN, Known, KnownLog, KnownRecord


class LogJudge:
    """Looks at the operations of one history in their order, and says what they violate at a level of isolation."""

    def __init__(self, level: str = "read_committed") -> None:
        self._level = level
        self._known = Known()
        self._begun: dict[str, int] = {}
        """By process: the operation that has not ended."""
        self._is_whole = True
        """Whether each operation that ended was seen to begin: then all that was sent is known."""
        self._positions: dict[str, dict[int, tuple[int, int]]] = {}
        """How far each reader got in each log, and in which operation; unknown after a failure."""
        self._assigned: dict[str, tuple[int, ...]] = {}
        self._grouped: set[str] = set()
        """Readers whose logs are dealt out to them: they may be given older positions at any time."""
        self._seen: list[Breach] = []
        """What is known without the rest of the history."""

    def look(self, operation: LogOperation) -> None:
        """Look at the next operation."""
        name, outcome, process = operation.name, operation.outcome, operation.process
        if outcome == FAULT:
            return
        if outcome == INVOKE:
            self._begun[process] = operation.n
            return
        begun = self._begun.pop(process, 0)
        if outcome != OK or name == CRASH:
            self._positions.pop(process, None)
        if name in (ASSIGN, SUBSCRIBE) and outcome == OK:
            self._dealt(operation)
        elif name in MIXED:
            self._is_whole = self._is_whole and begun > 0
            self._mixed(operation, self._known.operation(operation.n, begun, process, name, outcome))

    def breaches(self) -> tuple[Breach, ...]:
        """Return what is violated so far: of each property the first breach, which says how many more there are."""
        found = []
        ordered = sorted(self.anomalies(), key=lambda one: (one.property, one.step, one.reason))
        for _, group in groupby(ordered, attrgetter("property")):
            first, *rest = group
            more = f"; and {counted(len(rest), 'more such case')}" if rest else ""
            found.append(attrs.evolve(first, reason=first.reason + more))
        return tuple(sorted(found, key=lambda one: (one.step, one.property)))

    def anomalies(self) -> tuple[Breach, ...]:
        """Return all that the level forbids, in the order in which it can be seen."""
        found = [*self._seen, *self._at_the_end()]
        forbids = {anomaly for anomaly in ANOMALIES if forbidden(anomaly, self._level)}
        return tuple(sorted((one for one in found if one.anomaly in forbids), key=lambda one: (one.step, one.reason)))

    def _at_the_end(self) -> Iterator[Breach]:
        placed = records.place(self._known)
        yield from placed.conflicts
        yield from records.judge(self._known, placed, self._is_whole)
        yield from order.skipped(self._known)
        yield from order.sends(self._known)
        yield from cycles.judge(self._known, forbidden("G0", self._level))

    def _dealt(self, operation: LogOperation) -> None:
        """Note which logs a reader is given, and where it is in them."""
        process, (kind, keys, from_start) = operation.process, operation.parts[0]
        logs = tuple(self._known.log(key).number for key in keys)
        if kind == SUBSCRIBE:
            self._grouped.add(process)
            self._assigned.pop(process, None)
        else:
            self._grouped.discard(process)
            self._assigned[process] = logs
        known = self._positions.pop(process, {})
        if not from_start:
            self._positions[process] = {log: known[log] for log in logs if log in known}

    def _mixed(self, operation: LogOperation, op: int) -> None:
        """Note what an operation sent and read."""
        known = self._known
        read: dict[int, tuple[int, int]] = {}
        for part in operation.parts:
            if part[0] == SEND:
                self._sent(op, operation.outcome, *part[1:])
                continue
            for key, found in part[1]:
                if found:
                    log = known.log(key)
                    read[log.number] = self._polled(op, operation, log, found, read.get(log.number))
        for log_number, (first, last) in read.items():
            known.read_op.append(op)
            known.read_log.append(log_number)
            known.read_first.append(first)
            known.read_last.append(last)
            if operation.outcome == OK:
                self._positions.setdefault(operation.process, {})[log_number] = last, op
        process = known.process(operation.process)
        for number in self._assigned.get(operation.process, ()):
            polled = operation.outcome == OK and any(part[0] != SEND for part in operation.parts)
            if polled and not read:
                known.logs[number].emptied[process] = op
            else:
                known.logs[number].emptied.pop(process, None)

    def _sent(self, op: int, outcome: str, key: Any, offset: int | None, value: Any) -> None:
        known, log = self._known, self._known.log(key)
        number = known.names.number(value)
        known.send_op.append(op)
        known.send_log.append(log.number)
        known.send_value.append(number)
        known.send_offset.append(UNKNOWN if offset is None else offset)
        if offset is not None and outcome == OK:
            self._tell(log, op, log.note(offset, number, writer=op), value)

    def _polled(
        self, op: int, operation: LogOperation, log: KnownLog, found: Iterable[tuple[int, Any]],
        before: tuple[int, int] | None,
    ) -> tuple[int, int]:
        """Note the records of a poll, and return the first offset that the operation read of the log, and the last."""
        known = self._known
        first, last = before if before is not None else (UNKNOWN, UNKNOWN)
        last_op = op
        if before is None and operation.process not in self._grouped and operation.outcome == OK:
            last, last_op = self._positions.get(operation.process, {}).get(log.number, (UNKNOWN, op))
        for offset, value in found:
            if last != UNKNOWN and offset <= last:
                self._goes_back(operation, log, offset, last, op, last_op)
            elif last != UNKNOWN and offset > last + 1:
                known.gap(last_op, op, log.number, last, offset)
            self._tell(log, op, log.note(offset, known.names.number(value), reader=op), value)
            first, last, last_op = offset if first == UNKNOWN else first, offset, op
        if last > log.end:
            log.reached.append(last)
            log.reached_by.append(op)
        return first, last

    def _goes_back(self, operation: LogOperation, log: KnownLog, offset: int, last: int, op: int, last_op: int) -> None:
        is_same = last_op == op
        where = "the same one" if is_same else f"operation {self._known.ends[last_op]}"
        reason = (f"{operation.process} reads offset {offset} of log {log.name} in operation {operation.n}, after "
                  f"offset {last} in {where}")
        steps = () if is_same else (self._known.step(last_op, f"reads up to offset {last} of log {log.name}"),)
        then = self._known.step(op, f"reads offset {offset} of log {log.name}" + (
            f" after offset {last}" if is_same else ""))
        self._seen.append(breach("int-nonmonotonic-poll" if is_same else "nonmonotonic-poll", reason, *steps, then))

    def _tell(self, log: KnownLog, op: int, other: KnownRecord | None, value: Any) -> None:
        """Note that an offset has two contents."""
        if other is not None:
            before = min(who for who in (other.writer, other.reader) if who != NOBODY)
            self._seen.append(records.conflict(self._known, log, other, before, op, value))
