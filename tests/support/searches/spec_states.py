"""States of specs: the initial one with some slots replaced."""

from __future__ import annotations

from collections.abc import Mapping

from harness.model import Model, State, Value

Slots = Mapping[str, Value]


def state(model: Model, slots: Slots) -> State:
    """Return the initial state with some slots replaced; every slot named must exist."""
    initial = model.initial_states()[0]
    assert set(slots) <= set(initial)
    return {**initial, **slots}
