"""The actors of compaction: exhibits are found in flawed variants, and the right protocol is silent under faults."""

from __future__ import annotations

from itertools import islice

import pytest
from support.runs.compaction_runs import MODELS
from support.runs.made_runs import alternating, runs_of, scenario_runs, states_of
from support.searches.plain_search import search

from compaction.actor_properties import SAFETY
from compaction.bookkeeper import BOOKKEEPER, LedgerState, Store
from compaction.scenarios import SCENARIOS
from harness.model import NO_FAULTS, Faults, Scenario, find_model, find_scenario
from harness.simulate.runs.plan import Plan, everything
from harness.simulate.states.tables import Tables
from harness.simulate.strategies.by_name import NAMES

FLAWED = [row for row in SCENARIOS if row.expected is not None]
EVERYBODY = ("broker", "producer", "r1")
BUDGETS: dict[str, tuple[str, Faults]] = {
    "no fault": ("bag", NO_FAULTS),
    "messages": ("bag", Faults(drop=2, duplicate=2, delay=2)),
    "crash": ("bag", Faults(crash=3, targets=("broker",))),
    "everything": ("fifo", Faults(1, 1, 1, 1, 1, 1, 1, 2, 1, targets=EVERYBODY)),
}
FINDERS = {"pc-03-trimmed-too-early": "systematic", "pc-03-durable-too-late": "systematic",
           "pc-04-lost-property": "systematic", "pc-07-first-read-only": "pct"}
"""The strategy that is quickest to find a flaw, where that is not the random one."""
WITHIN = 2_000
"""Runs of a strategy within which a flaw is found; its twin is silent in `SILENCE` times as many as it took."""
SILENCE = 10
RUNS = 25
"""Runs under a budget; of the guided strategy, of which one costs as much as several others, a part of them."""


def twin_of(row: Scenario) -> Scenario:
    """Return the repaired row of a flawed one."""
    twin = find_scenario(row.repaired or "")
    assert twin is not None
    return twin


@pytest.mark.parametrize("row", FLAWED, ids=lambda row: row.name)
def test_exhibit_is_found_and_its_twin_is_silent(row: Scenario) -> None:
    """A strategy finds the expected property violated first; ten times as many runs of the twin violate nothing."""
    strategy = FINDERS.get(row.name, "random")
    runs, found = next((n, run) for n, run in enumerate(scenario_runs(row, strategy, WITHIN), 1) if not run.verdict.ok)
    assert found.verdict.violated == row.expected
    for silent in scenario_runs(twin_of(row), strategy, SILENCE * runs):
        assert silent.verdict.ok, (silent.trail.seed, silent.verdict)


def test_rows_of_an_exhibit_differ_in_one_setting_only() -> None:
    """Sizes, faults, claims and bounds are those of the twin, and each exhibit has a row."""
    for row in FLAWED:
        twin = twin_of(row)
        assert (row.model, row.sizes, row.faults, row.claims, row.steps) == (
            twin.model, twin.sizes, twin.faults, twin.claims, twin.steps
        )
        assert row.settings.keys() == twin.settings.keys() or not twin.settings
        assert row.settings != twin.settings


@pytest.mark.parametrize("row", [row for row in FLAWED if row.checked is not None], ids=lambda row: row.name)
def test_exhibit_is_found_in_the_spec_too(row: Scenario) -> None:
    """The search that a row names finds its property violated in the spec."""
    checked = row.checked
    assert checked is not None
    model = find_model(checked.model).make(checked.sizes, checked.settings)
    assert search(model, (checked.violates,)).violated == checked.violates


@pytest.mark.parametrize("runs", (RUNS // 2, pytest.param(RUNS, marks=pytest.mark.large)))
@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("name", MODELS)
def test_right_actors_are_silent_under_faults(name: str, budget: str, runs: int) -> None:
    """Whatever a budget allows, no strategy finds any property violated, temporal ones included."""
    network, faults = BUDGETS[budget]
    model = find_model(name).make(network=network, faults=faults)
    tables, plan = Tables(model), everything(model)
    for strategy in NAMES:
        few = strategy == "guided" and runs < RUNS
        for run in islice(runs_of(tables, plan, strategy), RUNS // 4 if few else runs):
            assert run.verdict.ok, (strategy, run.trail.seed, run.verdict)


@pytest.mark.parametrize("name", MODELS)
def test_witnesses_of_actors_are_reached(name: str) -> None:
    """What holds, holds of runs in which messages are dropped, brokers crash between effects, and readers return."""
    model = find_model(name).make({"keys": 1}, faults=Faults(crash=1, targets=("broker",)))
    wanted = {prop.name for prop in model.properties if prop.form == "sometimes"}
    reached: set[str] = set()
    for run in alternating(Tables(model), Plan((), steps=100), 3_000):
        reached |= run.witnessed
        if reached >= wanted:
            break
    assert reached == wanted


def test_store_never_loses_what_it_sealed_nor_gives_an_id_twice() -> None:
    """Over runs with crashes, a ledger goes through its states in order and a sealed one keeps its entries."""
    order = list(LedgerState)
    model = find_model("compaction/pulsar/actors").make(faults=Faults(crash=2, targets=("broker",)))
    tables, plan = Tables(model), Plan(SAFETY)
    for run in islice(runs_of(tables, plan, "random"), 20):
        before = Store()
        for state in states_of(model, run):
            after: Store = state[BOOKKEEPER]
            for n, held in before.ledgers.items():
                now = after.ledgers[n]
                assert order.index(now.state) >= order.index(held.state)
                if held.state is now.state is LedgerState.SEALED:
                    assert now.entries == held.entries
            before = after
        assert before.ledgers
