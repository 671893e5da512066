"""Messages: frozen values with a source and a destination. How they travel is the network's affair."""

from __future__ import annotations

from typing import Any, ClassVar

import attrs

from harness.model.values import canonical_text


@attrs.frozen
class Message:
    """What one process sends another; subclass it with frozen attrs fields. `type` is the class's name.

    `reliable` marks a class that stays inside a machine or goes to a service modelled as atomic: such messages are FIFO
    per connection and no network fault touches them.
    """

    reliable: ClassVar[bool] = False

    source: str = attrs.field(kw_only=True)
    dest: str = attrs.field(kw_only=True)

    @property
    def type(self) -> str:
        return type(self).__name__

    def brief(self) -> str:
        """Return the message in one line: type, source and destination, then its fields in order."""
        return f"{self.type} {self.source}->{self.dest}{_fields(self)}"


def _fields(message: Message) -> str:
    shown = []
    for field in attrs.fields(type(message)):
        if field.name not in ("source", "dest"):
            shown.append(f"{field.name}={brief_value(getattr(message, field.name))}")
    return " " + " ".join(shown) if shown else ""


def brief_value(value: Any) -> str:
    """Return a value as short readable text, for labels and timelines (never for identity)."""
    if isinstance(value, str):
        return str(value)
    if isinstance(value, frozenset):
        return "{" + ",".join(sorted(brief_value(item) for item in value)) + "}"
    if isinstance(value, tuple):
        return "<" + ",".join(brief_value(item) for item in value) + ">"
    if value is None or isinstance(value, bool | int):
        return str(value)
    if attrs.has(type(value)):
        inside = " ".join(f"{f.name}={brief_value(getattr(value, f.name))}" for f in attrs.fields(type(value)))
        return f"[{inside}]"
    return canonical_text(value)
