"""Order at the end of a history: what readers passed over, and senders whose records are the other way round."""

from __future__ import annotations

from collections.abc import Iterator

from harness.model.log_operations import FAIL, OK
from harness.verify.isolation.anomalies import Breach, breach
from harness.verify.isolation.columns import NOBODY, UNKNOWN, Known


def skipped(known: Known) -> Iterator[Breach]:
    """Yield the records that one reader read, and another one passed over. If acknowledged, they are not durable."""
    for before, op, number, low, high in zip(
        known.gap_from, known.gap_op, known.gap_log, known.gap_low, known.gap_high, strict=True
    ):
        log, is_one = known.logs[number], before == op
        for record in log.records(low + 1, high):
            if record.reader == NOBODY or (record.writer != NOBODY and known.is_(record.writer, FAIL)):
                continue
            value, where = known.names.value(record.value), f"offset {record.offset} of log {log.name}"
            is_acked = record.writer != NOBODY and known.is_(record.writer, OK)
            other = known.step(record.reader, f"reads {value} at {where}")
            sent = [known.step(record.writer, f"sends {value} and is told {where}")] if is_acked else []
            first = [] if is_one else [known.step(before, f"reads up to offset {low} of log {log.name}")]
            reader = known.step(op, f"passes over it from offset {low} to {high}" if is_one
                                else f"goes on at offset {high}")
            said = (f"{value} was acknowledged at {where} in {sent[0].words}" if sent
                    else f"{other.words} reads {value} at {where}")
            passes = f"passes over it from offset {low} to {high}" if is_one else (
                f"passes over it, from offset {low} in {first[0].words} to {high}")
            yield breach("int-poll-skip" if is_one else "poll-skip", f"{said}, and {reader.words} {passes}", *sent,
                         other, *first, reader, of="AckDurability" if sent else None)
            break


def sends(known: Known) -> Iterator[Breach]:
    """Yield records that a client sent one after the other, and that are in the log the other way round."""
    last: dict[tuple[int, int], int] = {}
    for row, op in enumerate(known.send_op):
        offset, key = known.send_offset[row], (known.processes[op], known.send_log[row])
        if offset == UNKNOWN or known.is_(op, FAIL) or not known.proven[op]:
            continue
        before = last.get(key)
        last[key] = row
        if before is None or known.send_offset[before] < offset or known.send_value[before] == known.send_value[row]:
            continue
        first, is_one = known.send_op[before], known.send_op[before] == op
        if not is_one and not (known.is_(first, OK) and known.is_(op, OK)):
            continue
        log = known.logs[known.send_log[row]].name
        values = [known.names.value(known.send_value[each]) for each in (before, row)]
        steps = [known.step(known.send_op[each], f"sends {value} to log {log}: offset {known.send_offset[each]}")
                 for each, value in zip((before, row), values, strict=True)]
        yield breach("int-nonmonotonic-send" if is_one else "nonmonotonic-send", (
            f"{steps[0].words} sent {values[0]} before {'' if is_one else steps[1].words + ' sent '}{values[1]}, and "
            f"in log {log} they are at the offsets {known.send_offset[before]} and {offset}"), *steps)
