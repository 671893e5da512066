"""Log lines of a recorded run: each event rendered by structlog, stamped with its step and virtual time.

A rendering of the history, never a second source of truth: nothing is logged that is not in an event.
"""

from __future__ import annotations

from io import StringIO

import structlog

from harness.model import Message
from harness.record import History


def render_log(history: History) -> str:
    """Return the events of a history as log lines in logfmt: step, at_ms, process, event, received, sent, violated."""
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
    for event in history.events:
        fields: dict[str, object] = {"step": event.n, "process": event.process or "model"}
        if event.at_us is not None:
            fields["at_ms"] = f"{event.at_us / 1000:.3f}"
        if event.detail:
            fields["detail"] = event.detail
        if event.op is not None:
            fields["op"] = f"{event.op['name']} {event.op['outcome']}"
        for name, messages in (("sent", event.sent), ("lost", event.lost), ("held", event.held)):
            if messages:
                fields[name] = "; ".join(_brief(message) for message in messages)
        if event.received is not None:
            fields["received"] = _brief(event.received)
        if event.violated:
            fields["violated"] = ", ".join(sorted(event.violated))
        level = "warning" if event.violated else "info"
        logger.msg(event.name, level=level, **fields)
    return lines.getvalue().rstrip("\n")


def _brief(message: object) -> str:
    return message.brief() if isinstance(message, Message) else str(message)
