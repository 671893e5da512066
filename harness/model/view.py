"""Slots of the global state, and the view through which processes read them while their reads are noted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import TypeVar

from harness.model.values import Value

T = TypeVar("T")
State = Mapping[str, Value]
"""A global state: from the name of each slot to its value."""


@cache
def slot(variable: str, *index: str) -> str:
    """Return the name of a slot: `slot("tc_log", "b1", "p1")` is `tc_log[b1][p1]`."""
    return variable + "".join(f"[{part}]" for part in index)


@cache
def parts(name: str) -> tuple[str, ...]:
    """Return a slot's variable and index: the inverse of `slot`."""
    variable, *rest = name.replace("]", "").split("[")
    return (variable, *rest)


class View:
    """A read-only look at one state; remembers, in order, which slots were read."""

    __slots__ = ("_reads", "_values")

    def __init__(self, values: Mapping[str, Value]) -> None:
        self._values = values
        self._reads: dict[str, None] = {}

    def __getitem__(self, name: str) -> Value:
        self._reads[name] = None
        return self._values[name]

    def at(self, variable: str, *index: str) -> Value:
        """Read the slot `slot(variable, *index)`."""
        return self[slot(variable, *index)]

    def derived(self, name: str, function: Callable[[Value], T]) -> T:
        """Read what a pure function computes from a slot's value: the reader depends on that alone.

        The function returns a value, and is the same object on each call, as a function of a module is.
        """
        return function(self[name])

    def reads(self) -> tuple[str, ...]:
        """Return the slots read so far, each once, in the order of their first reading."""
        return tuple(self._reads)
