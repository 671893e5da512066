"""The engines of the search as tests ask for them, and what it finds taken step by step on the reference semantics."""

from __future__ import annotations

import attrs
import pytest

from harness.explore.packed import kernel
from harness.explore.packed.result import Result, Violation
from harness.model import Model, State, View
from support.runs.made_runs import states_along

KERNEL = pytest.mark.skipif(not kernel.is_available(), reason="the compiled kernel is not available here")
ENGINES = ("python", pytest.param("kernel", marks=KERNEL))


def states_of(model: Model, violation: Violation) -> list[State]:
    """Take the steps of a counterexample one by one; return the states, the initial one first."""
    return list(states_along(model, violation.initial, violation.labels))


def assert_violates(model: Model, violation: Violation) -> None:
    """Assert that a counterexample is a run whose last state, and no other, violates its invariant, as it says."""
    prop = model.property(violation.name)
    *before, last = [model.why_not(prop, View(state)) for state in states_of(model, violation)]
    assert not any(before)
    assert last == violation.reason


def assert_witnessed(model: Model, witness: Violation) -> None:
    """Assert that the way to a witness ends in the state, or with the step, that it is about."""
    prop = model.property(witness.name)
    states = states_of(model, witness)
    if prop.on == "state":
        assert prop.check(View(states[-1]))
    else:
        (choice,) = [choice for choice in model.choices(states[-2]) if choice.label == witness.labels[-1]]
        assert prop.check(View(states[-2]), choice.step)


def safety(model: Model) -> tuple[str, ...]:
    """Return the names of the invariants of a model."""
    return tuple(prop.name for prop in model.properties if prop.is_safety)


def everything(found: Result) -> Result:
    """Return a result without what may differ between engines: which one it was, and how wide its states are."""
    return attrs.evolve(found, engine="", bits=0)
