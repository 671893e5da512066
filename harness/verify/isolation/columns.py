"""What is known of logs and operations, in columns of numbers: a hundred bytes or less for an operation.

Offsets that were reported are in pages, each content with the first operation that wrote and the first that read it.
Whole numbers stand for themselves, texts for a number from a table.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Any

import attrs

from harness.model.log_operations import FAIL, INFO, MIXED, OK
from harness.verify.isolation.anomalies import ProofStep

SIZE = 256
"""Offsets of a page."""
NOBODY, UNKNOWN = -1, -1
"""No operation, and no offset."""
OUTCOMES = (OK, FAIL, INFO)
LEAST = -(1 << 62)
"""Numbers below stand for texts."""
EMPTY_VALUES, EMPTY_WHO = array("q", [0]) * SIZE, array("i", [NOBODY]) * SIZE


class ValueNumbers:
    """Numbers for texts and for what is no whole number of 62 bits."""

    def __init__(self) -> None:
        self._numbers: dict[Any, int] = {}
        self._known: list[Any] = []

    def number(self, value: Any) -> int:
        if isinstance(value, int) and LEAST < value < -LEAST:
            return value
        found = self._numbers.get(value)
        if found is None:
            found = self._numbers[value] = LEAST - len(self._known)
            self._known.append(value)
        return found

    def value(self, number: int) -> Any:
        return number if number > LEAST else self._known[LEAST - number]


class RecordPage:
    """`SIZE` offsets of a log: the content of each, and who first wrote and first read it."""

    __slots__ = ("reader", "value", "writer")

    def __init__(self) -> None:
        self.value, self.writer, self.reader = EMPTY_VALUES[:], EMPTY_WHO[:], EMPTY_WHO[:]


@attrs.frozen
class KnownRecord:
    """A record of a log that was reported: by number its value, the operation that sent it, and its first reader."""

    offset: int
    value: int
    writer: int
    reader: int


class KnownLog:
    """What is known of one log."""

    def __init__(self, number: int, name: Any) -> None:
        self.number = number
        self.name = name
        self.pages: dict[int, RecordPage] = {}
        self.reached, self.reached_by = array("q"), array("i")
        """How far readers got: each offset beyond all before at which a reader stopped, with that reader."""
        self.emptied: dict[int, int] = {}
        """By process: its last operation, if that was a poll which returned nothing at all."""

    @property
    def end(self) -> int:
        """Return the last offset that was read."""
        return self.reached[-1] if self.reached else UNKNOWN

    def reader_of(self, bound: int) -> tuple[int, int] | None:
        """Return where the first reader stopped who read up to an offset, and the reader."""
        at = bisect_left(self.reached, bound)
        return (self.reached[at], self.reached_by[at]) if at < len(self.reached) else None

    def at(self, offset: int) -> KnownRecord | None:
        """Return the record at an offset, if one was reported."""
        page, place = self.pages.get(offset // SIZE), offset % SIZE
        if page is None or (page.writer[place] == NOBODY and page.reader[place] == NOBODY):
            return None
        return KnownRecord(offset, page.value[place], page.writer[place], page.reader[place])

    def note(self, offset: int, value: int, writer: int = NOBODY, reader: int = NOBODY) -> KnownRecord | None:
        """Note a record that is sent or read; return what is known to be there instead, if it is another one."""
        page, place = self.pages.get(offset // SIZE), offset % SIZE
        if page is None:
            page = self.pages[offset // SIZE] = RecordPage()
        is_new = page.writer[place] == NOBODY and page.reader[place] == NOBODY
        if not is_new and page.value[place] != value:
            return self.at(offset)
        page.value[place] = value
        if writer != NOBODY and page.writer[place] == NOBODY:
            page.writer[place] = writer
        if reader != NOBODY and page.reader[place] == NOBODY:
            page.reader[place] = reader
        return None

    def records(self, low: int = 0, high: int | None = None) -> Iterator[KnownRecord]:
        """Yield the records that were reported from an offset up to another, in order."""
        first, stop = low // SIZE, max(self.pages, default=-1) + 1 if high is None else (high - 1) // SIZE + 1
        numbers: Sequence[int] = range(first, stop)
        if len(numbers) > len(self.pages):
            numbers = sorted(n for n in self.pages if first <= n < stop)
        for n in numbers:
            page = self.pages.get(n)
            if page is None:
                continue
            values, writers, readers, start = page.value, page.writer, page.reader, n * SIZE
            for place in range(max(low - start, 0), SIZE if high is None else min(high - start, SIZE)):
                if writers[place] != NOBODY or readers[place] != NOBODY:
                    yield KnownRecord(start + place, values[place], writers[place], readers[place])


class Known:
    """All that the operations of a history tell, by numbers of operations in the order in which they ended."""

    def __init__(self) -> None:
        self.names = ValueNumbers()
        self.logs: list[KnownLog] = []
        self._by_name: dict[Any, KnownLog] = {}
        self.ends, self.begins = array("I"), array("I")
        """The place of each operation in the history, and of its invocation, 0 if there is none."""
        self.processes, self.actions, self.outcomes = array("i"), array("B"), array("B")
        self._texts: list[str] = []
        self._numbers: dict[str, int] = {}
        self.proven = bytearray()
        """Whether an operation happened: it says so, or a record of it was read."""
        self.send_op, self.send_log = array("i"), array("i")
        self.send_value, self.send_offset = array("q"), array("q")
        """Of each send: the operation, the log, the value and the offset, which is unknown at first or for ever."""
        self.read_op, self.read_log, self.read_first, self.read_last = array("i"), array("i"), array("q"), array("q")
        """Of each operation that read a log: the first and the last offset."""
        self.gap_from, self.gap_op, self.gap_log = array("i"), array("i"), array("i")
        self.gap_low, self.gap_high = array("q"), array("q")
        """Neighbours that a process read with offsets between them, in one operation or in two."""

    def log(self, name: Any) -> KnownLog:
        known = self._by_name.get(name)
        if known is None:
            known = self._by_name[name] = KnownLog(len(self.logs), name)
            self.logs.append(known)
        return known

    def process(self, text: str) -> int:
        number = self._numbers.get(text)
        if number is None:
            number = self._numbers[text] = len(self._texts)
            self._texts.append(text)
        return number

    def operation(self, n: int, begun: int, process: str, action: str, outcome: str) -> int:
        """Add an operation that ended, and return its number."""
        self.ends.append(n)
        self.begins.append(begun)
        self.processes.append(self.process(process))
        self.actions.append(MIXED.index(action))
        self.outcomes.append(OUTCOMES.index(outcome))
        self.proven.append(outcome == OK)
        return len(self.ends) - 1

    def is_(self, op: int, outcome: str) -> bool:
        return OUTCOMES[self.outcomes[op]] == outcome

    def gap(self, before: int, op: int, log: int, low: int, high: int) -> None:
        self.gap_from.append(before)
        self.gap_op.append(op)
        self.gap_log.append(log)
        self.gap_low.append(low)
        self.gap_high.append(high)

    def step(self, op: int, what: str) -> ProofStep:
        """Return a line of a proof about an operation."""
        process, action = self._texts[self.processes[op]], MIXED[self.actions[op]]
        return ProofStep(self.ends[op], process, action, what)

    def sent_record(self, row: int) -> KnownRecord | None:
        """Return the record of a send, if it is known where it is."""
        offset = self.send_offset[row]
        found = self.logs[self.send_log[row]].at(offset) if offset != UNKNOWN else None
        return found if found is not None and found.value == self.send_value[row] else None
