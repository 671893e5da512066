"""Messages: frozen values with a source and a destination. How they travel is up to the link between these."""

from __future__ import annotations

from typing import Any

import attrs

from harness.model.values import Value, canonical_text, fields_there

ADDRESS = ("source", "dest")
SHOWN_BYTES = 16
"""Bytes of a longer value that are shown."""
SHOWN_INPUT = 80
"""Characters of input from outside that are shown in a label."""

MOST_BRIEF = 2_000
_BRIEF: dict[int, tuple[Any, str]] = {}
"""Messages in one line by the identity of the message, which is kept alive with it."""


@attrs.frozen
class Message:
    """What one process sends another; subclass it with frozen attrs fields. `type` is the class's name."""

    source: str = attrs.field(kw_only=True)
    dest: str = attrs.field(kw_only=True)

    @property
    def type(self) -> str:
        return type(self).__name__

    def brief(self) -> str:
        """Return the message in one line: type, source and destination, then its fields in order."""
        known = _BRIEF.get(id(self))
        if known is not None and known[0] is self:  # it waits, and is looked at again and again
            return known[1]
        fields = [f"{name}={brief_value(value)}" for name, value in fields_there(self) if name not in ADDRESS]
        text = " ".join([self.type, f"{self.source}->{self.dest}", *fields])
        if len(_BRIEF) >= MOST_BRIEF:
            _BRIEF.clear()
        _BRIEF[id(self)] = (self, text)
        return text


def record_of(record: Any) -> dict[str, Value]:
    """Return a record's fields as specs write them: without those that are absent, a message's with its `type`."""
    return {**({"type": record.type} if isinstance(record, Message) else {}), **dict(fields_there(record))}


def brief_value(value: Any) -> str:
    """Return a value as short readable text, for labels and timelines (never for identity)."""
    if isinstance(value, str):
        return str(value) if value.isprintable() else canonical_text(value)
    if isinstance(value, bytes):
        return f"0x{value[:SHOWN_BYTES].hex()}{'...' if len(value) > SHOWN_BYTES else ''} ({len(value)} bytes)"
    if isinstance(value, frozenset):
        return "{" + ",".join(sorted(brief_value(item) for item in value)) + "}"
    if isinstance(value, tuple):
        return "<" + ",".join(brief_value(item) for item in value) + ">"
    if value is None or isinstance(value, bool | int):
        return str(value)
    if attrs.has(type(value)):
        return f"[{' '.join(f'{name}={brief_value(item)}' for name, item in fields_there(value))}]"
    return canonical_text(value)


def brief_input(value: Any) -> str:
    """Return input from outside as short readable text, for the label of its step."""
    brief = brief_value(value)
    return brief if len(brief) <= SHOWN_INPUT else f"{brief[: SHOWN_INPUT - 3]}..."
