"""Runs of whole transactions, judged by what their clients saw: as the properties of their states say, run by run."""

from __future__ import annotations

from contextlib import closing

import attrs
import pytest

from harness.model import Model
from harness.record import EventRecorder
from harness.simulate.runs.plan import Plan, resolve
from harness.simulate.runs.session import run_plain
from harness.simulate.states.tables import Tables
from harness.simulate.strategies.by_name import Strategies
from harness.verify.isolation.anomalies import Breach
from harness.verify.isolation.clients import judged

OUTCOMES = {"AcknowledgedOutcome", "Atomicity", "AcknowledgedSurvives", "AcknowledgedOnce", "NoHangingTransaction",
            "NoIntermediateRead"}
"""Properties of states whose violation a client may see."""


def plan_of(what: str) -> tuple[Model, Plan]:
    """Return a scenario with every invariant claimed, whose runs go on where one is violated."""
    model, plan = resolve(what)
    names = tuple(each.name for each in model.properties if each.is_safety)
    return model, attrs.evolve(plan, claims=names, stop_at_violation=False)


def both(tables: Tables, plan: Plan, seed: int) -> tuple[set[str], tuple[Breach, ...]]:
    """Return what a run violates by its states, and what by its clients."""
    recorder, strategy = EventRecorder(), Strategies("random").run(seed)
    assert strategy is not None
    run = run_plain(tables, plan, strategy, recorder)
    history = recorder.history({}, run.verdict.to_json(), tables.model)
    return {each.violated or "" for each in run.violations}, judged(tables.model, history.events)


@pytest.mark.parametrize(("what", "seed", "anomaly", "words"), [
    ("late-batch-joins", 54, "G1a", "which failed, and operation"),
    ("hanging-transaction", 6, "G1a", "(poll by final reader) reads it"),
    ("late-producer-goes-on", 3, "torn-transaction", "but nobody reads c1.1#1"),
    ("late-marker", 5, "unseen", "and is read by nobody"),
    ("unclean-election", 21, "unseen", "i1#1 was acknowledged at offset 0 of log T-0"),
])
def test_clients_see_an_exhibit(what: str, seed: int, anomaly: str, words: str) -> None:
    """A run of a version with the flaw: the operations prove it, and the states violate a property, too."""
    model, plan = plan_of(what)
    violated, found = both(Tables(model), plan, seed)
    assert violated & OUTCOMES
    assert anomaly in {one.anomaly for one in found}
    assert any(words in one.reason for one in found if one.anomaly == anomaly)


def test_an_edited_history_is_judged_too() -> None:
    """Without the steps in which transactions begin, nobody sends anything in one."""
    model, plan = plan_of("late-batch-joins")
    recorder, strategy = EventRecorder(), Strategies("random").run(54)
    assert strategy is not None
    run = run_plain(Tables(model), plan, strategy, recorder)
    events = recorder.history({}, run.verdict.to_json(), model).events
    without = [event for event in events if event.action != "BeginTransaction"]
    assert {one.anomaly for one in judged(model, events)} == {"G1a"}
    assert {one.anomaly for one in judged(model, without)} == {"garbage-read"}


@pytest.mark.parametrize("what", [
    "late-end-repaired", "late-batch-joins-repaired", "late-producer-goes-on-repaired", "fencing-battle",
    "slow-follower", "leaders-crash", "late-controller",
])
def test_clients_see_nothing_that_the_states_do_not_violate(what: str) -> None:
    """Crashes, elections, late messages and fences where nothing is wrong."""
    model, plan = plan_of(what)
    with closing(Tables(model)) as tables:
        for seed in range(15):
            violated, found = both(tables, plan, seed)
            assert violated & OUTCOMES or not found, (seed, found)
