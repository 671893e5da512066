"""A history as a ShiViz log: one event per step with the vector clock of its host.

The first line is the parser expression and the second the (empty) delimiter of executions, as ShiViz reads log files.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from harness.render.changes import brief_message
from harness.render.timeline import Flight, Row, Timeline

PARSER = r"(?<event>.*)\n(?<host>\S*) (?<clock>{.*})"

Clock = dict[str, int]


def write(timeline: Timeline) -> str:
    """Return the log."""
    lines = [PARSER, ""]
    for row, flight, host, clock in _events(timeline):
        if flight is not None:
            said = f"{row.n} <- {brief_message(flight.message, flight.message.source)}"
            lines += [said.replace("\n", " "), f"{host} {json.dumps(clock, sort_keys=True)}"]
            continue
        words = [f"{row.n} {row.label}"]
        if row.received is not None:
            words.append(f"<- {brief_message(row.received.message, row.received.message.source)}")
        words += [f"<- {brief_message(flight.message, flight.message.source)}" for flight in row.arrived]
        words += [f"{flight.end} {brief_message(flight.message, flight.dest)}" for flight in row.taken]
        words += [f"-> {brief_message(flight.message, flight.dest)}" for flight in row.sent
                  if flight.source == row.column or not flight.is_at_once]
        words += [f"FAILS {name}: {row.event.violated[name]}" for name in row.began]
        event = "; ".join(words).replace("\n", " ")
        lines += [event, f"{host} {json.dumps(clock, sort_keys=True)}"]
    return "\n".join(lines) + "\n"


def clocks(timeline: Timeline) -> list[Clock]:
    """Return the vector clock of each step after the initial one."""
    return [clock for _, flight, _, clock in _events(timeline) if flight is None]


def _events(timeline: Timeline) -> Iterator[tuple[Row, Flight | None, str, Clock]]:
    """Yield each event with its host and clock: the steps, and after each the messages that are received at once.

    A step ticks its own host and merges the clock of the send behind every message that it received or took, and, for a
    copy that a fault made, the clock of the original's send.
    """
    at_host: dict[str, Clock] = {}
    at_step: dict[int, Clock] = {}
    for row in timeline.rows[1:]:
        if row.is_minor:
            continue
        clock = dict(at_host.get(row.column, {}))
        received = (row.received,) if row.received is not None else row.arrived
        causes = [flight.sent_at for flight in (*received, *row.taken)]
        causes += [flight.copy_of for flight in row.sent if flight.copy_of is not None]
        for cause in causes:
            for host, time in at_step.get(cause, {}).items():
                clock[host] = max(time, clock.get(host, 0))
        clock[row.column] = clock.get(row.column, 0) + 1
        at_host[row.column] = at_step[row.n] = clock
        yield row, None, row.column, clock
        for flight in row.drawn:
            merged = dict(at_host.get(flight.dest, {}))
            for host, time in at_host.get(flight.source, {}).items():
                merged[host] = max(time, merged.get(host, 0))
            merged[flight.dest] = merged.get(flight.dest, 0) + 1
            at_host[flight.dest] = merged
            yield row, flight, flight.dest, merged
