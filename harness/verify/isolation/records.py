"""Records at the end of a history: which operation sent each, and what was lost, torn, doubled or never sent."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from itertools import groupby

import attrs

from harness.model.log_operations import FAIL, INFO, OK
from harness.verify.isolation.anomalies import Breach, breach
from harness.verify.isolation.columns import NOBODY, SIZE, UNKNOWN, Known, KnownLog, KnownRecord

MOST = 1 << 19
"""Sends that are looked up at a time."""


@attrs.define
class Placed:
    """Where sends went that were not told."""

    conflicts: list[Breach] = attrs.field(factory=list)
    doubled: list[tuple[int, int]] = attrs.field(factory=list)
    """Sends with another offset at which their record is, too."""
    foreign: list[tuple[int, int]] = attrs.field(factory=list)
    """Log and offset of the records that no send of that log accounts for."""
    elsewhere: dict[tuple[int, int], tuple[int, int]] = attrs.field(factory=dict)
    """By log and value of those: the log and offset."""


def place(known: Known) -> Placed:
    """Find the sender of each record that was read, and what unknown outcomes were."""
    found = Placed()
    open_ = array("q", (row for row in range(len(known.send_op)) if not _is_placed(known, row)))
    for start in range(0, len(open_), MOST):
        rows = {(known.send_log[row], known.send_value[row]): row for row in open_[start : start + MOST]}
        for log in known.logs:
            _match(known, log, rows, found)
    _take_offsets_of_proven(known, found)
    for log in known.logs:
        for record in log.records():
            if record.writer == NOBODY:
                found.foreign.append((log.number, record.offset))
                found.elsewhere.setdefault((log.number, record.value), (log.number, record.offset))
    return found


def _is_placed(known: Known, row: int) -> bool:
    record = known.sent_record(row)
    return record is not None and record.writer == known.send_op[row]


def _match(known: Known, log: KnownLog, rows: dict[tuple[int, int], int], found: Placed) -> None:
    """Give the records of a log that were read, and have no sender yet, those of some sends."""
    for record in log.records():
        row = rows.get((log.number, record.value)) if record.writer == NOBODY else None
        if row is None:
            continue
        op, told = known.send_op[row], known.send_offset[row]
        if known.is_(op, OK) and told not in (UNKNOWN, record.offset):
            continue  # it was told another offset
        if told != UNKNOWN and known.sent_record(row) is not None and told != record.offset:
            found.doubled.append((row, record.offset))
        known.proven[op] = known.proven[op] or known.is_(op, INFO)
        known.send_offset[row] = record.offset
        log.pages[record.offset // SIZE].writer[record.offset % SIZE] = op


def _take_offsets_of_proven(known: Known, found: Placed) -> None:
    """Believe the offsets that an operation of unknown outcome was told, once a record of it was read."""
    for row, op in enumerate(known.send_op):
        offset = known.send_offset[row]
        if offset != UNKNOWN and known.is_(op, INFO) and known.proven[op]:
            log, value = known.logs[known.send_log[row]], known.send_value[row]
            other = log.note(offset, value, writer=op)
            if other is not None:
                before = min(who for who in (other.writer, other.reader) if who != NOBODY)
                found.conflicts.append(conflict(known, log, other, before, op, known.names.value(value)))


def conflict(known: Known, log: KnownLog, other: KnownRecord, before: int, op: int, value: object) -> Breach:
    """Return that two operations were told different contents of an offset."""
    old = known.names.value(other.value)
    first = known.step(before, f"has {old} at offset {other.offset} of log {log.name}")
    then = known.step(op, f"has {value} at offset {other.offset} of log {log.name}")
    return breach("inconsistent-offsets", f"offset {other.offset} of log {log.name} is {old} in {first.words} and "
                  f"{value} in {then.words}", first, then)


def judge(known: Known, placed: Placed, is_whole: bool) -> Iterator[Breach]:
    """Yield what is wrong with records; with `is_whole` all sends are known."""
    for log in known.logs:
        yield from _lost(known, log, placed)
    yield from _senders(known)
    yield from _torn(known)
    yield from _strangers(known, placed, is_whole)
    for row, offset in placed.doubled:
        yield _doubled(known, row, known.send_offset[row], offset)


def _sent(known: Known, record: KnownRecord, log: KnownLog) -> str:
    return f"{known.names.value(record.value)} was acknowledged at offset {record.offset} of log {log.name}"


def _lost(known: Known, log: KnownLog, placed: Placed) -> Iterator[Breach]:
    """Yield the acknowledged records of a log that nobody reads, though a reader read on, or to the end."""
    for record in log.records():
        if record.writer == NOBODY or record.reader != NOBODY or (log.number, record.value) in placed.elsewhere:
            continue
        said = _sent(known, record, log)
        sent = known.step(record.writer, f"sends {known.names.value(record.value)} and is told offset {record.offset} "
                                         f"of log {log.name}")
        passed = log.reader_of(record.offset)
        if passed is not None:
            offset, who = passed
            reader = known.step(who, f"reads offset {offset} of log {log.name}")
            yield breach("lost-write", f"{said} in {sent.words} and is read by nobody, though {reader.words} reads "
                         f"offset {offset}", sent, reader)
            continue
        after = [op for _, op in sorted(log.emptied.items()) if known.begins[op] > known.ends[record.writer]]
        if after:
            reader = known.step(after[0], f"begins after that, and gets nothing of log {log.name}")
            yield breach("unseen", f"{said} in {sent.words} and is read by nobody, though {reader.words} begins later "
                         "and finds nothing more", sent, reader)


def _senders(known: Known) -> Iterator[Breach]:
    """Yield what was read though its operation failed, or before it was sent."""
    for row, op in enumerate(known.send_op):
        record = known.sent_record(row)
        if record is None or record.reader == NOBODY:
            continue
        log, value = known.logs[known.send_log[row]], known.names.value(record.value)
        reader = known.step(record.reader, f"reads {value} at offset {record.offset} of log {log.name}")
        if known.is_(op, FAIL):
            sent = known.step(op, f"sends {value} to log {log.name} and fails")
            yield breach("G1a", f"{value} was sent to log {log.name} in {sent.words}, which failed, and {reader.words} "
                         "reads it", sent, reader)
        if 0 < known.ends[record.reader] < known.begins[op]:
            sent = known.step(op, f"begins after that to send {value}")
            yield breach("future-read", f"{reader.words} reads {value} of log {log.name} before {sent.words} begins to "
                         "send it", reader, sent)


def _torn(known: Known) -> Iterator[Breach]:
    """Yield the operations of which one record was read, and another one is missing where a reader read on."""
    for op, rows in groupby(range(len(known.send_op)), known.send_op.__getitem__):
        if not known.proven[op]:
            continue
        mine = list(rows)
        there = [row for row in mine if (record := known.sent_record(row)) is not None and record.reader != NOBODY]
        if not there or len(there) == len(mine):
            continue
        has = known.sent_record(there[0])
        assert has is not None
        for row in mine:
            how = None if row in there else _missing(known, op, row, there)
            if how is None:
                continue
            value, log = known.names.value(known.send_value[row]), known.logs[known.send_log[row]].name
            other, its = known.names.value(has.value), known.logs[known.send_log[there[0]]].name
            sent = known.step(op, f"sends {other} to log {its} and {value} to log {log}")
            reader = known.step(has.reader, f"reads {other} at offset {has.offset} of log {its}")
            without = known.step(how[0], how[1])
            yield breach("torn-transaction", f"{sent.words} sent {other} to log {its} and {value} to log {log}; "
                         f"{reader.words} reads {other}, but nobody reads {value}, though {without}", sent, reader,
                         without)
            break


def _missing(known: Known, op: int, row: int, there: list[int]) -> tuple[int, str] | None:
    """Return the operation that would have read a record if it were there, and what it did."""
    log, offset = known.logs[known.send_log[row]], known.send_offset[row]
    later = [known.send_offset[other] for other in there if other > row and known.send_log[other] == log.number]
    bound = offset if offset != UNKNOWN else later[0] if later else None
    passed = log.reader_of(bound) if bound is not None else None
    if passed is not None:
        return passed[1], f"reads offset {passed[0]} of log {log.name}"
    after = [who for _, who in sorted(log.emptied.items()) if known.begins[who] > known.ends[op]]
    return (after[0], f"begins after that, and finds nothing more in log {log.name}") if after else None


def _strangers(known: Known, placed: Placed, is_whole: bool) -> Iterator[Breach]:
    """Yield the records that were sent to another log, are at another offset than was told, or were never sent."""
    if not placed.foreign:
        return
    wanted = {value for _, value in placed.elsewhere}
    sends: dict[int, list[int]] = {}
    for row, value in enumerate(known.send_value):
        if value in wanted:
            sends.setdefault(value, []).append(row)
    for number, offset in placed.foreign:
        log = known.logs[number]
        record = log.at(offset)
        assert record is not None
        rows = sends.get(record.value, ())
        here = [row for row in rows if known.send_log[row] == number]
        value = known.names.value(record.value)
        reader = known.step(record.reader, f"reads {value} at offset {offset} of log {log.name}")
        if here:
            yield _doubled(known, here[0], known.send_offset[here[0]], offset)
        elif rows:
            other = known.logs[known.send_log[rows[0]]].name
            sent = known.step(known.send_op[rows[0]], f"sends {value} to log {other}")
            yield breach("wrong-key", f"{value} was sent to log {other} in {sent.words}, and {reader.words} reads it "
                         f"in log {log.name}", sent, reader)
        elif is_whole:
            yield breach("garbage-read", f"{reader.words} reads {value} at offset {offset} of log {log.name}, and "
                         "nobody sent that", reader)


def _doubled(known: Known, row: int, told: int, offset: int) -> Breach:
    """Return that a record is at another offset, too, or only there."""
    log, value = known.logs[known.send_log[row]], known.names.value(known.send_value[row])
    at_told, other = known.sent_record(row), log.at(offset)
    assert other is not None
    sent = known.step(known.send_op[row], f"sends {value} to log {log.name} and is told offset {told}")
    reader = known.step(other.reader, f"reads {value} at offset {offset} of log {log.name}")
    if at_told is None or at_told.reader == NOBODY:
        return breach("wrong-offset", f"{sent.words} was told that {value} is at offset {told} of log {log.name}, and "
                      f"{reader.words} reads it at offset {offset}", sent, reader)
    first = known.step(at_told.reader, f"reads {value} at offset {told} of log {log.name}")
    return breach("duplicate", f"{value} of {sent.words} is in log {log.name} twice: {first.words} reads it at offset "
                  f"{told}, {reader.words} at offset {offset}", sent, first, reader)
