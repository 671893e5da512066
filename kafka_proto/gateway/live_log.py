"""A session request by request, for a watcher: `kafka-proto serve --log info`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harness.model.live import is_watched, tell
from kafka_proto.errors import NAMES
from kafka_proto.gateway.codec import structures
from kafka_proto.gateway.faults import Exchanged, name_of
from kafka_proto.gateway.front import Front
from kafka_proto.gateway.inputs import Close, Ended, Gone, Injected, Input, Opened, Output

NO_ERROR = 0


def told(host: Front, see: Callable[[Input, list[Output]], None]) -> Callable[[Input, list[Output]], None]:
    """Return an observer that tells of every input, and then passes it on; the next one alone if nothing is watched."""
    if not is_watched():
        return see

    def tells(given: Input, outputs: list[Output]) -> None:
        if isinstance(given, Opened):
            tell("connection opened", "debug", connection=given.connection, broker=f"b{given.broker}")
        elif isinstance(given, Gone):
            tell("connection gone", "debug", connection=given.connection)
        elif isinstance(given, Injected | Ended):
            begins = isinstance(given, Injected)
            tell("fault begins" if begins else "fault ends", "warning", fault=given.number, what=" ".join(host.said))
        for each in (each for each in host.exchanged if not (each.has_come or each.is_again)):
            tell("request" if each.answer is None else "answer", **fields_of(each))
        for output in outputs:
            if isinstance(output, Close):
                tell("connection closed", connection=output.connection, reason=output.reason)
        see(given, outputs)

    return tells


def fields_of(each: Exchanged) -> dict[str, Any]:
    """Return what identifies a request, by client, broker and connection; an answer has its error codes, too."""
    request = each.request
    found = {"client": request.client_id, "broker": f"b{each.broker}", "connection": each.connection,
             "api": name_of(request), "version": request.version, "correlation_id": request.correlation_id,
             "transaction": each.transaction, "faults": ", ".join(each.faults)}
    if each.answer is not None:
        found["errors"] = ", ".join(sorted({NAMES[code] for part in structures(each.answer)
                                            if (code := part.get("error_code", NO_ERROR)) != NO_ERROR}))
    return found
