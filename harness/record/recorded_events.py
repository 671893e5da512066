"""An event of a history as it is read back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs

from harness.model import Kind, Message, Telling, Value, decode
from harness.record.changes import CHANGES, changed
from harness.record.fields import ANY, COUNT, NAMES, OBJECT, TEXT, TEXTS, FieldKind, one_of

EVENT_FIELDS: Mapping[str, FieldKind] = {
    "n": COUNT, "at_us": COUNT, "process": TEXT, "kind": one_of(*Kind), "action": TEXT, "args": TEXTS,
    "detail": TEXT, "input": ANY, "op": OBJECT, "violated": NAMES, "initial": OBJECT, "writes": OBJECT,
}
ALL_FIELDS = frozenset((*EVENT_FIELDS, "received", "sent", "lost", "held"))


@attrs.frozen
class Event:
    """One event of a history, read back: step 0 is the initial state."""

    n: int
    at_us: int | None
    process: str
    kind: str
    action: str
    args: tuple[str, ...]
    detail: str
    received: Value
    sent: tuple[Value, ...]
    lost: tuple[Value, ...]
    held: tuple[Value, ...]
    op: Mapping[str, Any] | None
    writes: Mapping[str, Value]
    violated: Mapping[str, str]
    input: Value = None
    """The input from outside, in an event of that kind."""
    told: Callable[[], Telling] | None = attrs.field(default=None, eq=False, repr=False)
    """`Step.told`, which no file has."""

    @property
    def name(self) -> str:
        """The spec's label of the step."""
        return f"{self.action}({','.join(self.args)})" if self.args else self.action

    @property
    def label(self) -> str:
        """The label of the step: its name and detail."""
        return f"{self.name} {self.detail}" if self.detail else self.name


CHANGE_TYPES = {cls.__name__: cls for cls in CHANGES}


def event_of(line: Mapping[str, Any], types: Mapping[str, type] | None, before: Mapping[str, Value]) -> Event:
    """Return the event of a line, given the values of slots before it.

    `types` names the classes that its values may have, None makes them plain maps.
    """
    def value(data: Any) -> Value:
        return decode(data, types) if types is not None else decode(_untyped(data), CHANGE_TYPES)

    def values(name: str) -> tuple[Value, ...]:
        return tuple(value(item) for item in line.get(name, ()))

    slots = line["initial"] if line["n"] == 0 else line["writes"]
    if unknown := line.keys() - ALL_FIELDS:
        raise ValueError(f"unknown fields {', '.join(sorted(unknown))}")
    first = line["n"] == 0
    received = value(line["received"]) if "received" in line else None
    messages = (*values("sent"), *values("lost"), *values("held"), *(() if received is None else (received,)))
    if types is not None and not all(isinstance(message, Message) for message in messages):
        raise ValueError("what is received, sent, lost and held should be messages")
    return Event(
        line["n"], line.get("at_us"), "" if first else line["process"], "initial" if first else line["kind"],
        "Initial predicate" if first else line["action"], tuple(line.get("args", ())), line.get("detail", ""),
        received, values("sent"), values("lost"), values("held"),
        line.get("op"), {name: changed(before.get(name), value(item)) for name, item in slots.items()},
        line.get("violated", {}),
        value(line["input"]) if "input" in line else None,
    )


def _untyped(data: Any) -> Any:
    """Turn typed records into plain maps whose `type` field is their class's name."""
    if isinstance(data, list):
        return [_untyped(item) for item in data]
    if isinstance(data, dict):
        is_ours = data.get("$type") in CHANGE_TYPES
        return {("type" if name == "$type" and not is_ours else name): _untyped(item) for name, item in data.items()}
    return data
