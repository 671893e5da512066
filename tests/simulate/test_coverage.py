"""Coverage: what a campaign reached, held against what a search finds reachable."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest
from support.commands.command_line import call
from support.runs.named_runs import registering, strategy_of
from support.searches import plain_search
from support.toys import toy_refinement as toy

from harness.explore.reach import reachable
from harness.model import Faults, Model, find_model
from harness.simulate.runs.plan import Plan, resolve
from harness.simulate.runs.session import run_plain
from harness.simulate.states.guards import Guards
from harness.simulate.states.tables import Tables
from harness.simulate.strategies.by_name import Strategies
from harness.simulate.strategies.coverage import Coverage, KnownStates

SPEC = {"clients": 1, "brokers": 2, "elections": 1}


def covered(
    model: Model, runs: int, strategy: str = "random", known: KnownStates | None = None, steps: int = 60,
    starts_over: bool = False,
) -> Coverage:
    """Return what some runs reach."""
    tables, source = Tables(model, Guards()), Strategies(strategy)
    coverage = source.cover(tables, known)
    for seed in range(runs):
        run_plain(tables, Plan((), steps=steps), strategy_of(source, seed))
        if starts_over:
            tables.start_over()
    return coverage


def toys(flaw: str = "", faults: Faults = toy.CRASH) -> Model:
    return toy.build({"values": 2, "fetches": 3}, {"flaw": flaw}, toy.m.BAG, faults, False)


@pytest.mark.parametrize("engine", ["auto", "python"])
def test_reachable_states_are_those_of_the_plain_search(engine: str) -> None:
    """Each state of the reference search is there, with either engine; a state with a value of its own is not."""
    model = find_model("transactions/diary-02").make(SPEC)
    states = plain_search.search(model, keep_graph=True).states
    found = reachable(model, engine)
    assert found is not None and len(found) == len(states)
    assert all(found.has(state) for state in states)
    name = next(name for name in states[0] if name.startswith("tc_log"))
    longer = next(state for state in states if state[name])
    assert not found.has({**longer, name: longer[name] * 2})


def test_states_are_not_known_where_there_are_too_many() -> None:
    """A search that meets more than it may look at says nothing."""
    assert reachable(find_model("transactions/diary-02").make({**SPEC, "clients": 2}), most=100) is None


def test_runs_of_a_spec_reach_part_of_what_a_search_reaches_then_all() -> None:
    """Every state that a run comes through is among the search's; guided runs of a small spec reach all of them."""
    model = find_model("transactions/diary-02").make(SPEC)
    found = reachable(model)
    assert found is not None
    known = KnownStates(len(found), found.has, model.sizes)
    few, many = covered(model, 1, known=known), covered(model, 400, "guided", known)
    assert 0 < few.states == few.within < len(found)
    assert many.states == many.within == len(found)
    assert many.to_json()["reachable"] == {
        "states": len(found), "reached": len(found), "sizes": dict(model.sizes), "percent": 100.0,
    }


def test_states_of_actors_count_as_the_states_of_the_spec_that_they_stand_for() -> None:
    """What differs in messages only is one state; at the bounds of the runs all that is reached is reachable."""
    model = toys()
    spec = toy.refinement(2).spec
    found = reachable(spec)
    assert found is not None
    coverage = covered(model, 200, known=KnownStates(len(found), found.has, {}))
    own = covered(attrs.evolve(model, refinement=None), 200)
    assert coverage.states == coverage.within <= len(found) < own.states
    assert coverage.to_json()["spec"] == "toy/spec" and not coverage.unmapped
    flawed = toys("confirms too much", toy.HARD)
    assert (wrong := covered(flawed, 400, known=KnownStates(len(found), found.has, {}))).within < wrong.states


def test_state_that_the_mapping_fails_on_is_counted_as_such() -> None:
    """All of them together are one state, and the runs go on."""

    def failing(view: toy.m.View, ghost: toy.m.Value) -> object:
        if view["reg"].value:
            raise KeyError("value")
        return toy.abstract(view, ghost)

    broken = attrs.evolve(toys(), refinement=lambda: toy.refinement(2, failing))
    coverage = covered(broken, 20)
    assert coverage.unmapped > 0
    assert coverage.states == 2


@pytest.mark.large
@pytest.mark.usefixtures("settled")
def test_counts_do_not_depend_on_when_tables_start_over() -> None:
    """Ids mean something else afterwards; what was reached is the same."""
    model, _ = resolve("exactly-once-zombie")
    whole, coverage = covered(model, 30), covered(model, 30, starts_over=True)
    assert coverage.to_json() == whole.to_json()
    assert coverage.turns == whole.turns


def test_actions_and_guards_are_reported() -> None:
    """What was possible and not taken is named; guards are those evaluated, with the outcomes that are missing."""
    none, found = covered(toys(), 1, steps=1).to_json(), covered(toys(), 100).to_json()
    assert none["actions_never_taken"] and not found["actions_never_taken"]
    assert set(found["actions"]) == {"Apply", "Ask", "Crash", "IgnoreOldValue", "Restart", "Serve", "Set"}
    one_way = {guard["guard"]: guard["always"] for guard in found["guards_one_way"]}
    assert one_way == {}
    assert "value > copy" in {guard["guard"] for guard in none["guards_one_way"]} | set(
        told_of.split(" ", 1)[1] for told_of in none["guards_not_evaluated"]
    )
    assert found["guards_both_ways"] == found["guards"] > none["guards_both_ways"]


toy_is_known = registering(toy.system(), autouse=False)


@pytest.mark.usefixtures("toy_is_known")
def test_simulate_tells_coverage_as_text_and_json(tmp_path: Path) -> None:
    """The same figures either way; with another strategy they are its own."""
    given = ("transactions/diary-02", "--size", "clients=1", "--size", "elections=1", "--seeds", 100, "--coverage")
    outcome = call("simulate", *given, "--out", tmp_path, "--json")
    found = outcome.json["coverage"]
    assert found["reachable"]["states"] >= found["states"] == found["reachable"]["reached"] > 0
    said = " ".join(call("simulate", *given, "--out", tmp_path).out.split())
    percent = found["reachable"]["percent"]
    assert f"reached {found['states']} states of transactions/diary-02, {percent:g} % of the" in said
    assert f"{found['guards_both_ways']} of {found['guards']} guards came out both ways" in said
    assert "always true: kafka_proto/transactions/decisions/client.py:" in said
    guided = call("simulate", "toy/actors", "--seeds", 5, "--coverage", "--strategy", "guided", "--out", tmp_path,
                  "--json").json["coverage"]
    assert (guided["runs"], guided["spec"], guided["reachable"]) == (5, "toy/spec", None)


def test_bounds_without_something_to_hold_against_are_refused(tmp_path: Path) -> None:
    """They say what to do instead."""
    asked = call("simulate", "happy-path", "--within", "clients=1", "--out", tmp_path)
    assert (asked.code, "--within needs --coverage" in asked.err) == (2, True)
    spec = call("simulate", "transactions/diary-02", "--coverage", "--within", "clients=1", "--out", tmp_path)
    assert (spec.code, "leave --within out" in spec.err) == (2, True)
    opened = call("simulate", "kafka/4.0", "--coverage", "--within", "producers=1", "--out", tmp_path)
    assert opened.code == 2
    assert "takes steps only when its environment asks for them" in opened.err
