"""A history as a ShiViz log: one event per step with the vector clock of its host.

The first line is the parser expression and the second the (empty) delimiter of executions, as ShiViz reads log files.
"""

from __future__ import annotations

import json

from harness.render.changes import brief_message
from harness.render.timeline import Timeline

PARSER = r"(?<event>.*)\n(?<host>\S*) (?<clock>{.*})"

Clock = dict[str, int]


def write(timeline: Timeline) -> str:
    """Return the log."""
    lines = [PARSER, ""]
    for row, clock in zip(timeline.rows[1:], clocks(timeline), strict=True):
        words = [f"{row.n} {row.label}"]
        if row.received is not None:
            words.append(f"<- {brief_message(row.received.message, row.received.message.source)}")
        words += [f"{flight.end} {brief_message(flight.message, flight.dest)}" for flight in row.taken]
        words += [f"-> {brief_message(flight.message, flight.dest)}" for flight in row.sent]
        words += [f"FAILS {name}: {row.event.violated[name]}" for name in row.began]
        event = "; ".join(words).replace("\n", " ")
        lines += [event, f"{row.column} {json.dumps(clock, sort_keys=True)}"]
    return "\n".join(lines) + "\n"


def clocks(timeline: Timeline) -> list[Clock]:
    """Return the vector clock of each step after the initial one.

    A step ticks its own host and merges the clock of the send behind every message that it received or took, and, for a
    copy that a fault made, the clock of the original's send.
    """
    at_host: dict[str, Clock] = {}
    at_step: dict[int, Clock] = {}
    for row in timeline.rows[1:]:
        clock = dict(at_host.get(row.column, {}))
        received = (row.received,) if row.received is not None else ()
        causes = [flight.sent_at for flight in (*received, *row.taken)]
        causes += [flight.copy_of for flight in row.sent if flight.copy_of is not None]
        for cause in causes:
            for host, time in at_step.get(cause, {}).items():
                clock[host] = max(time, clock.get(host, 0))
        clock[row.column] = clock.get(row.column, 0) + 1
        at_host[row.column] = at_step[row.n] = clock
    return [at_step[row.n] for row in timeline.rows[1:]]
