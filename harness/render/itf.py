"""A history as an ITF trace (Informal Trace Format of Apalache and Quint), with the model's own variable names."""

from __future__ import annotations

import json
from typing import Any

import attrs

from harness.model import FrozenMap, Model, Value, record_of
from harness.record import History

DESCRIPTION = "https://apalache-mc.org/docs/adr/015adr-trace.html"


def write(history: History, model: Model) -> str:
    """Return the trace as JSON text: one state per event, the initial state first."""
    return json.dumps(trace(history, model), ensure_ascii=False) + "\n"


def trace(history: History, model: Model) -> dict[str, Any]:
    """Return the trace as a JSON object."""
    states = []
    for event, state in zip(history.events, history.states(), strict=True):
        meta: dict[str, Any] = {"index": event.n, "action": event.name}
        if event.at_us is not None:
            meta["at_us"] = event.at_us
        if event.violated:
            meta["violated"] = dict(event.violated)
        variables = {name: itf_value(value) for name, value in model.variables(state).items()}
        states.append({"#meta": meta, **variables})
    header = history.header
    meta = {
        "format": "ITF", "format-description": DESCRIPTION, "source": header["model"],
        "status": "ok" if history.end["verdict"]["ok"] else "violation",
        "description": f"{header['strategy']}, seed {header['seed']}, digest {history.digest}",
    }
    return {"#meta": meta, "vars": [name for name in states[0] if name != "#meta"], "states": states}


def itf_value(value: Value) -> Any:
    """Return a value in ITF: `#bigint`, `#set`, `#map`, lists for sequences, objects for records, "None" for None.

    Bytes are text in hexadecimal. A message's record has its class name as `type`. A field with metadata
    `absent_if_none` that is None is left out.
    """
    if value is None:
        return "None"
    if isinstance(value, str):
        return str(value)
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        return {"#bigint": str(value)}
    if isinstance(value, tuple):
        return [itf_value(item) for item in value]
    if isinstance(value, frozenset):
        return {"#set": sorted((itf_value(item) for item in value), key=json.dumps)}
    if isinstance(value, FrozenMap):
        return {"#map": [[itf_value(key), itf_value(item)] for key, item in value.items()]}
    if attrs.has(type(value)):
        return {name: itf_value(item) for name, item in record_of(value).items()}
    raise TypeError(f"a {type(value).__name__} has no form in ITF; use the values of harness.model.values")
