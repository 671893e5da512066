"""Runs held against a spec: what counts as a step of it, served responses, mappings that are wrong, explanations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import pytest
from support.toys import toy_refinement as toy

from harness.model import NO_FAULTS, Faults, FrozenMap, Model, Value, View, find_model
from harness.record import Recorder, header_of, read_history, write_history
from harness.simulate.runs.plan import Plan
from harness.simulate.runs.session import Session, run_plain
from harness.simulate.states.nodes import Option
from harness.simulate.states.tables import Tables
from harness.simulate.strategies.strategy import InteractiveStrategy, RandomStrategy
from harness.verify import refinement as refine
from harness.verify.explanation import Explanation, explain
from harness.verify.linearization import with_changes
from harness.verify.refinement import Refined, Refiner
from harness.verify.simulated_runs import Totals, refine_runs

PLAN = Plan(("ConfirmedIsHeld",), 60)
UNJUDGED = Plan((), 60)
RUNS = range(150)
STRICT: Mapping[str, Any] = {"extensions": {}, "forgets": False}
"""A refinement without the extension action."""
SERVED = ("Ask(f1)", "Ask(f1)", "Set", "Serve(f1) Fetch f1->reg number=1", "Set", "Serve(f1) Fetch f1->reg number=2")
"""Two responses are under way."""


def model(flaw: str = "", faults: Faults = toy.HARD, **refinement: Any) -> Model:
    """The toy's actors, with parts of their refinement replaced."""
    built = find_model("toy/actors").make({}, {"flaw": flaw}, "bag", faults)
    return attrs.evolve(built, refinement=lambda: toy.refinement(3, **refinement)) if refinement else built


def explained(totals: Totals) -> Explanation:
    """Why the first run that left the spec did."""
    assert totals.explanation is not None
    return totals.explanation


def follow(refiner: Refiner, labels: Sequence[str]) -> Refined:
    """Make the run whose labels start as given, one after the other, and judge it."""
    left = iter(labels)

    def wanted(options: Sequence[Option]) -> int:
        begins = next(left)
        return next(n for n, option in enumerate(options) if option.label.startswith(begins))

    _, trace = refiner.follow(Session(refiner.tables, Plan((), len(labels)), InteractiveStrategy(wanted)))
    return refiner.judge(trace)


def test_runs_of_the_toy_follow_its_spec() -> None:
    """No run leaves the spec under any fault, and every action is refined at least once, the extension too."""
    refiner = Refiner(model())
    totals = refine_runs(refiner.model, PLAN, RUNS, refiner=refiner)
    assert (totals.runs, totals.failed, totals.violated) == (150, 0, {})
    assert set(totals.actions) == {"Set", "Copy", "Confirm"} and totals.extensions["Forget"] > 0
    assert totals.untaken == ()
    assert 0 < totals.stutters < totals.steps
    assert totals.reached <= reachable(refiner)
    known = totals.by_action()
    assert set(known["Serve"]) == {"Confirm", "Copy and Confirm", "Copy", "stutter"} and set(known["Set"]) == {"Set"}
    assert set(known["Ask"]) == set(known["Apply"]) == {"stutter"} and set(known["Crash"]) == {"Forget", "stutter"}


def reachable(refiner: Refiner) -> set[int]:
    """Fingerprints of all states of the spec."""
    tables = refiner.spec_tables
    found, waiting = set(), [tables.start()]
    while waiting:
        node = waiting.pop()
        if refiner.fingerprint(node.state) not in found:
            found.add(refiner.fingerprint(node.state))
            waiting += [tables.follow(node, n) for n in range(len(node.options))]
    return found


def test_fingerprints_are_the_same_whatever_was_met_before() -> None:
    """Two refiners that met the states in another order name them alike."""
    forward, backward = Refiner(model()), Refiner(model())
    one = refine_runs(forward.model, PLAN, range(40), refiner=forward)
    other = refine_runs(backward.model, PLAN, reversed(range(40)), refiner=backward)
    assert one.reached == other.reached
    assert one.actions == other.actions


@pytest.mark.parametrize("variable", sorted(toy.INITIAL))
def test_mapping_that_freezes_a_variable_fails(variable: str) -> None:
    """A mapping that leaves any one variable at its first value is refuted: by a run, or by an action never taken."""

    def frozen(view: View, ghost: Value) -> tuple[Mapping[str, Value], Value]:
        slots, after = toy.abstract(view, ghost)
        return {**slots, variable: toy.INITIAL[variable]}, after

    totals = refine_runs(model(mapping=frozen), PLAN, RUNS)
    if variable == "confirmed":  # no other action depends on it
        assert (totals.failed, totals.untaken) == (0, ("Confirm",))
    else:
        assert totals.failed > 0


def test_guard_that_an_actor_forgets_is_named() -> None:
    """A register that confirms more than was reported leaves the spec; the guard it lacks is shown with values. Lines
    of an explanation are wrapped, and the first one names the step."""
    refiner = Refiner(model("confirms-too-much", NO_FAULTS))
    totals = refine_runs(refiner.model, PLAN, range(3), refiner=refiner)
    assert totals.failed == 3 and totals.violated["ConfirmedIsHeld"] == 3
    why = explained(totals)
    assert why.changes == {"confirmed": ("0", "1")}
    assert why.nearest == "Confirm of spec with known = 1"
    (sentence,) = why.why
    assert sentence.startswith("its guard fails: toy_refinement.py:")
    assert sentence.endswith(': if known > view["copy[f1]"], with known = 1')
    lines = why.lines(60)
    assert lines[0].startswith("step 3 is not a step of the spec: Serve(f1)") and max(map(len, lines)) <= 60


def test_guard_in_a_decision_function_is_named_with_it() -> None:
    """A follower that goes back to an old value: the guard that keeps Copy away, and the decision that it asks."""
    reordered = Faults(delay=1, duplicate=1)
    refiner = Refiner(model("takes-old-values", reordered, **STRICT))
    totals = refine_runs(refiner.model, UNJUDGED, RUNS, refiner=refiner)
    why = explained(totals)
    assert why.nearest is not None and why.nearest.startswith("Copy")
    assert set(why.changes) == {"copy[f1]"}
    said = " ".join(why.why)
    assert "it would leave copy[f1] at" in said or "return value > copy" in said
    assert refine_runs(model("", reordered, **STRICT), UNJUDGED, RUNS).failed == 0


LATE = (
    "Set", "Ask(f1)", "Serve(f1) Fetch f1->reg number=1", "Set", "Apply(f1) Fetched reg->f1 number=1 value=1",
)


ONE, TWO = "(f1) Fetched reg->f1 number=1", "(f1) Fetched reg->f1 number=2"
CALM = {"faults": NO_FAULTS}


@pytest.mark.parametrize(("of", "labels", "taken"), [
    (CALM, LATE, "Set - Copy Set -"),
    ({}, (*LATE[:3], "Drop Fetched reg->f1 number=1", "Ask(f1)"), "Set - - - -"),
    ({}, LATE[:4], "Set - - Set"),
    ({}, (*LATE[:3], "Duplicate Fetched reg->f1 number=1", "Apply(f1)", "Set", "IgnoreOldValue(f1)"),
     "Set - Copy - - Set -"),
    (CALM, (*SERVED, "Set", f"Apply{ONE}", f"Apply{TWO}"), "- - Set Copy Set Copy Set - -"),
    (CALM, (*SERVED, "Set", f"Apply{TWO}", f"IgnoreOldValue{ONE}"), "- - Set - Set Copy Set - -"),
], ids=["applied late", "lost", "never applied", "doubled", "in order", "overtaken"])
def test_response_counts_when_it_was_served(of: dict[str, Any], labels: tuple[str, ...], taken: str) -> None:
    """The register has gone on when a response is applied: a Copy at the moment of serving, none later. One that a
    fault takes, or that is never applied, is none; the second copy of a response is ignored by the follower, and by the
    mapping. Of responses under way together each counts, in their order, but for one that a newer one overtakes."""
    refined = follow(Refiner(model(**of)), labels)
    assert refined.failure is None
    assert refined.taken == tuple(() if action == "-" else (action,) for action in taken.split())


def test_response_that_does_not_count_where_it_was_served_leaves_the_spec() -> None:
    """So it is where the mapping knows nothing of serving; and a follower without its guard goes back to an old value,
    which is not excused by its response having been served first."""
    unserved = follow(Refiner(model(faults=NO_FAULTS, served=(), **STRICT)), LATE)
    assert unserved.failure is not None and unserved.failure.step == 5
    refiner = Refiner(model("takes-old-values", NO_FAULTS, **STRICT))
    refined = follow(refiner, (*SERVED, f"Apply{TWO}", f"Apply{ONE}"))
    assert refined.failure is not None and refined.failure.step == 7


def test_changes_of_a_response_are_laid_over_keys_of_maps_and_whole_fields() -> None:
    """Of maps only the keys that the response sets or removes are seen; other fields as it leaves them."""

    @attrs.frozen
    class Local:
        known: FrozenMap[str, int]
        asked: int = 0
        last: int = 0

    before = Local(FrozenMap({"a": 1, "b": 1, "c": 1}), 1, 5)
    after = Local(FrozenMap({"a": 2, "c": 1, "d": 1}), 2, 5)
    local = Local(FrozenMap({"b": 7, "c": 7, "e": 7}), 0, 9)
    assert with_changes(local, before, after) == Local(FrozenMap({"a": 2, "c": 7, "d": 1, "e": 7}), 2, 9)


def test_step_that_is_several_steps_of_the_spec_needs_leave_for_it() -> None:
    """A request that confirms and is served is two steps of the spec: allowed with two, not with one."""
    labels = (*LATE, "Ask(f1)", "Serve(f1)", "Apply(f1)")
    both = follow(Refiner(model(faults=NO_FAULTS)), labels)
    assert both.failure is None and sorted(both.taken[6]) == ["Confirm", "Copy"]
    refiner = Refiner(model(faults=NO_FAULTS, steps=1))
    one = follow(refiner, labels)
    assert one.failure is not None and one.failure.step == 7
    assert set(explain(refiner, one.failure).changes) == {"confirmed", "copy[f1]"}


def test_extension_that_is_switched_off_is_missed() -> None:
    """Without the extension a crash that loses an unflushed copy is not a step of the spec."""
    assert refine_runs(model(faults=toy.CRASH, **STRICT), UNJUDGED, RUNS).failed > 0
    assert refine_runs(model(faults=toy.CRASH), UNJUDGED, RUNS).failed == 0


def test_action_of_the_spec_may_be_kept_to_some_actions_of_the_actors() -> None:
    """Forget is what a crash may be: a follower that goes back by itself is reported."""
    refiner = Refiner(model("takes-old-values", Faults(crash=1, targets=("f1",))))
    labels = (*SERVED, f"Apply{TWO}", f"Apply{ONE}")
    refined = follow(refiner, labels)
    assert refined.failure is not None and refined.failure.step == 7
    why = explain(refiner, refined.failure)
    assert (why.nearest, why.why) == ("Forget", ("only Crash may be Forget, and this step is Apply",))
    anywhere = Refiner(model("takes-old-values", Faults(crash=1, targets=("f1",)), by={}))
    assert follow(anywhere, labels).extensions == {"Forget": 1}


def test_recorded_events_are_judged_as_the_run_was(tmp_path: Path) -> None:
    """A run read back from its events comes to the same as in the process that made it."""
    built, path = model(), tmp_path / "run.history.jsonl"
    tables, refiner, reader = Tables(built), Refiner(built), Refiner(built)
    for seed in range(30):
        recorder = Recorder()
        run = run_plain(tables, PLAN, RandomStrategy(seed), recorder)
        write_history(path, header_of(run.trail, built, "plain"), recorder, run.verdict.to_json())
        history = read_history(path, built)
        again, refined = refiner.simulate(PLAN, RandomStrategy(seed))
        assert again.trail == run.trail
        assert reader.check(history) == refined == reader.check(history.events)


@pytest.mark.parametrize(("mapping", "said"), [
    (lambda view, ghost: ({"value": toy.abstract(view, ghost)[0]["nowhere"]}, ghost),
     "the mapping fails on this state with KeyError: 'nowhere' (test_refinement.py, line "),
    (lambda view, ghost: ({"value": 0, "extra": 1}, ghost),
     "the mapping gives a state without confirmed, copy[f1] and with extra, which the spec has not"),
    (lambda view, ghost: ({**toy.INITIAL, "value": 1}, ghost), "the spec does not start in this state"),
])
def test_mapping_that_gives_no_state_of_the_spec_is_reported(mapping: Any, said: str) -> None:
    """A mapping that fails, forgets slots or starts elsewhere is refused in the first state, and says where."""
    refiner = Refiner(model(mapping=mapping))
    why = explained(refine_runs(refiner.model, PLAN, range(1), refiner=refiner))
    assert why.step == 0
    assert said in why.why[0]


def counting(view: View, ghost: Value) -> tuple[Mapping[str, Value], Value]:
    """A mapping that knows from its ghost alone how often the register was set."""
    slots, _ = toy.abstract(view, ghost)
    now = max(ghost, slots["value"])
    return {**slots, "value": now}, now


def test_ghost_is_carried_from_state_to_state() -> None:
    """What a mapping remembers comes back with the next state."""
    assert refine_runs(model(mapping=counting, ghost=0), PLAN, RUNS).failed == 0
    assert refine_runs(model(mapping=counting, ghost=1), PLAN, range(1)).failed == 1


@pytest.mark.usefixtures("settled")
def test_tables_that_take_too_much_start_over_between_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """A campaign comes to the same however often its tables start over."""
    whole = refine_runs(model(), PLAN, range(60))
    monkeypatch.setattr(refine, "ROOM", 60_000)
    refiner = Refiner(model())
    parts = refine_runs(refiner.model, PLAN, range(60), refiner=refiner)
    assert refiner.tables.renewals > 5 and refiner.spec_tables.renewals > 0
    assert (parts.actions, parts.extensions, parts.reached) == (whole.actions, whole.extensions, whole.reached)
    assert (parts.steps, parts.stutters, parts.failed) == (whole.steps, whole.stutters, 0)
