"""How fair endings are judged: each temporal form, held against what is true of the whole run."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.toys.walk import FORMS, walking

from harness.explore.liveness.lasso import why_no_counterexample
from harness.model import Model
from harness.simulate.runs.plan import Plan
from harness.simulate.runs.session import run_plain
from harness.simulate.states.tables import Tables
from harness.simulate.strategies.strategy import RandomStrategy
from harness.simulate.trails.replay import replay_plain


def chain(last: int, back_to: int | None, good: set[int], asked: set[int]) -> Model:
    """Make a walk from state to state, and from the last one back to another, if there is a way."""
    return walking([(n, "A", n + 1) for n in range(last)] + [(last, "A", back_to)] * (back_to is not None), good, asked)


def violated(model: Model, steps: int) -> set[str | None]:
    """Return the properties that a run of so many steps with its fair ending violates."""
    run = run_plain(Tables(model), Plan(FORMS, steps, stop_at_violation=False), RandomStrategy(0))
    return {verdict.violated for verdict in run.violations}


@pytest.mark.parametrize(("back_to", "good", "asked", "found"), [
    (None, {1}, set(), {"Stays", "Again"}),
    (None, set(), set(), {"Stays", "Again", "Once"}),
    (None, {1}, {0}, {"Stays", "Again"}),
    (None, {1}, {2}, {"Stays", "Again", "Answered"}),
    (None, {3}, {0, 2}, set()),
    (2, {3}, {2}, {"Stays"}),
    (2, {1}, {3}, {"Stays", "Again", "Answered"}),
    (2, {1}, {1}, {"Stays", "Again"}),
])
@pytest.mark.parametrize("steps", [0, 2, 9])
def test_each_form_is_judged_by_the_whole_run_wherever_its_fair_ending_begins(
    back_to: int | None, good: set[int], asked: set[int], found: set[str], steps: int
) -> None:
    """What `<>P` asks may have been before the ending; what `P ~> Q` owes may stem from there."""
    assert violated(chain(3, back_to, good, asked), steps) == found


states = st.sets(st.integers(0, 4))


@given(st.integers(0, 4), st.one_of(st.none(), st.integers(0, 4)), states, states, st.integers(0, 12))
def test_endings_are_judged_as_the_liveness_checker_judges_lassos(
    last: int, back_to: int | None, good: set[int], asked: set[int], steps: int
) -> None:
    """Each verdict is confirmed by the lasso's own rules, and each property without one is refuted by them."""
    model = chain(last, None if back_to is None else min(back_to, last), good, asked)
    run = run_plain(Tables(model), Plan(FORMS, steps, stop_at_violation=False), RandomStrategy(0))
    assert {v.violated for v in replay_plain(run.trail, None, Tables(model)).violations} == {
        v.violated for v in run.violations
    }
    labels = [chosen.label for chosen in run.trail.choices]
    at = len(labels) if run.trail.back_to is None else run.trail.back_to
    for name in FORMS:
        why = why_no_counterexample(model, 0, labels[:at], labels[at:], name, "none")
        assert (why is None) == (name in {v.violated for v in run.violations}), (name, why)
        assert why is None or re.search("is not violated", why)
