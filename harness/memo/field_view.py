"""A view that notes which fields of the records in a state are read: finer than the slots that a `SlotView` notes."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import attrs

from harness.memo.interning import Ids, SlotValues, SlotView
from harness.model import Value


class FieldView(SlotView):
    """A read-tracking view of a state of ids, whose `fields` are what was read of slots: each field for itself.

    What is in a slot and has fields is handed out as a value of the same class that notes what is read of it; all of it
    counts as read where it is compared or hashed.
    """

    __slots__ = ("fields",)

    def __init__(self, of: SlotValues, state: Ids) -> None:
        super().__init__(of, state)
        self.fields: dict[Any, None] = {}

    def __getitem__(self, name: str) -> Value:
        value = super().__getitem__(name)
        return self._traced(self._index[name], itself, value)

    def derived(self, name: str, function: Callable[[Value], Any]) -> Any:
        made = super().derived(name, function)
        return self._traced(self._index[name], function, made) if name in self._index else made

    def _traced(self, n: int, function: Callable[[Value], Any], made: Value) -> Value:
        """Return what a function makes of a slot's value, so that what is read of it is noted."""
        def read(field: str) -> Value:
            if field:
                return self._traced(n, field_of(function, field), getattr(made, field))
            self.fields[n if function is itself else self._of.derived(n, function)] = None
            return made

        if not attrs.has(type(made)):
            return read(ALL)
        cls: Any = type(made)
        found: Any = object.__new__(_traced_class(cls))
        object.__setattr__(found, "_read", read)
        return found


ALL = ""
"""What is read of a record where that is not one of its fields."""


def itself(value: Value) -> Value:
    """Return the value."""
    return value


@cache
def field_of(function: Callable[[Value], Value], field: str) -> Callable[[Value], Value]:
    """Return the function that gives a field of what a function makes: one and the same whenever it is asked for."""
    def made(value: Value) -> Value:
        return getattr(function(value), field, None)

    return made


@cache
def _traced_class(cls: Any) -> Any:
    names = frozenset(field.name for field in attrs.fields(cls))
    plain = object.__getattribute__

    def __getattribute__(self: Any, name: str) -> Any:
        return plain(self, "_read")(name) if name in names else plain(self, name)

    def __eq__(self: Any, other: object) -> bool:
        return bool(whole(self) == whole(other))

    def __hash__(self: Any) -> int:
        return hash(whole(self))

    def whole(one: Any) -> Any:
        return plain(one, "_read")(ALL) if hasattr(type(one), "_read") else one

    own = {"__slots__": ("_read",), "__getattribute__": __getattribute__, "__eq__": __eq__, "__hash__": __hash__,
           "__module__": cls.__module__, "__qualname__": cls.__qualname__}
    return type(cls.__name__, (cls,), own)
