"""Auxiliary variables: slots that steps write and no process reads, for properties that depend on the past.

They are part of the state: states that differ in one of them only are two. TLA+ calls those that remember the past
history variables (Abadi and Lamport, "The Existence of Refinement Mappings").
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs

from harness.model.step import Step
from harness.model.values import Value
from harness.model.view import View


@attrs.frozen(eq=False)
class Auxiliary:
    """A variable of a model, in the slot of that name. Both functions are pure.

    Only steps that are noted in it read and write it, so that all others are remembered without it.
    """

    name: str
    initial: Value
    noted: Callable[[Step], tuple[Any, ...]]
    """Returns what to note of a step; empty: nothing."""
    after: Callable[[Value, tuple[Any, ...]], Value]
    """Returns the value after a step, given the value before it and what was noted of it."""
    types: tuple[type, ...] = ()
    """The attrs classes that its values are made of, besides those of the model."""

    def of(self, view: View) -> Value:
        """Return the value of the variable."""
        return view[self.name]

    def write(self, view: View, step: Step) -> tuple[tuple[str, Value], ...]:
        """Return what a step writes to the variable, if anything."""
        noted = self.noted(step)
        return ((self.name, self.after(view[self.name], noted)),) if noted else ()
