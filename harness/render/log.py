"""Log lines of a recorded run: each event rendered by structlog, stamped with its step and virtual time.

A rendering of the history, never a second source of truth: nothing is logged that is not in an event.
"""

from __future__ import annotations

from io import StringIO

import structlog

from harness.model import Message
from harness.render.timeline import RECEIVED, Timeline


def render_log(timeline: Timeline) -> str:
    """Return a run as log lines in logfmt: step, at_ms, process, event, received, sent, violated."""
    lines = StringIO()
    logger = structlog.wrap_logger(
        structlog.PrintLogger(lines),
        processors=[
            structlog.processors.LogfmtRenderer(
                key_order=["step", "at_ms", "level", "process", "event"], drop_missing=True, bool_as_flag=False
            )
        ],
        cache_logger_on_first_use=False,
    )
    for row in timeline.rows:
        event = row.event
        if row.is_minor:
            continue
        told = row.telling is not None
        fields: dict[str, object] = {"step": event.n, "process": row.column if told else event.process or "model"}
        if event.at_us is not None:
            fields["at_ms"] = f"{event.at_us / 1000:.3f}"
        if event.detail and not told:
            fields["detail"] = event.detail
        if event.op is not None:
            fields["op"] = f"{event.op['name']} {event.op['outcome']}"
        for name, messages in (("sent", event.sent), ("lost", event.lost), ("held", event.held)):
            if messages:
                fields[name] = "; ".join(_brief(message) for message in messages)
        if event.received is not None:
            fields["received"] = _brief(event.received)
        for name, flights in (("sent", row.sent), ("received", row.arrived), ("taken", row.taken)) if told else ():
            if flights:
                fields[name] = "; ".join(
                    f"{flight.message.brief()}{'' if flight.end == RECEIVED else f' ({flight.end})'}"
                    for flight in flights)
        if told and row.changes:
            fields["changed"] = "; ".join(row.changes)
        if event.violated:
            fields["violated"] = ", ".join(sorted(event.violated))
        level = "warning" if event.violated else "info"
        logger.msg(row.label if told else event.name, level=level, **fields)
    return lines.getvalue().rstrip("\n")


def _brief(message: object) -> str:
    return message.brief() if isinstance(message, Message) else str(message)
