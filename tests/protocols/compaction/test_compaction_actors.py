"""The actors of compaction: exhibits are found in flawed variants, and the right protocol is silent under faults.

Each property of theirs can fail: a published flaw or one wrong turn breaks it. The reasons are pinned in part, so that
each sentence that a property can say is said by some bad run.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from itertools import islice
from typing import Any

import attrs
import pytest
from support.mutants.actor_mutants import Change, knowing
from support.runs.made_runs import alternating, model_runs, runs_of, scenario_runs, states_of
from support.runs.refinement_runs import acting
from support.searches.plain_search import search

from compaction.actor_properties import SAFETY
from compaction.bookkeeper import BOOKKEEPER, LedgerState, Store
from compaction.compactor import latest_for_key
from compaction.scenarios import SCENARIOS
from harness.model import NO_FAULTS, Faults, Model, Scenario, find_model, find_scenario
from harness.simulate.runs.plan import Plan, everything
from harness.simulate.states.tables import Tables
from harness.simulate.strategies.by_name import NAMES

MODELS = PLAIN, TRIMMING = "compaction/pulsar/actors", "compaction/pulsar-trimming/actors"
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
    plan = everything(model)
    with closing(Tables(model)) as tables:
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
    for run in alternating(model, Plan((), steps=100), 3_000):
        reached |= run.witnessed
        if reached >= wanted:
            break
    assert reached == wanted


def test_store_never_loses_what_it_sealed_nor_gives_an_id_twice() -> None:
    """Over runs with crashes, a ledger goes through its states in order and a sealed one keeps its entries."""
    order = list(LedgerState)
    model = find_model("compaction/pulsar/actors").make(faults=Faults(crash=2, targets=("broker",)))
    for run in model_runs(model, Plan(SAFETY), "random", 20):
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


CRASH = Faults(crash=1, targets=("broker",))
SMALL = {"messages": 2, "keys": 1}
SHORT, TIMES, LEAST = 300, 3, 30
"""Runs in which something wrong is found, how many times as many of the twin's runs are silent, and the fewest."""


WRONG: Mapping[str, tuple[str, str, Change]] = {
    "a read is answered with a position and no messages": ("broker", "ServeRead", lambda before, turn: attrs.evolve(
        turn, sent=tuple(attrs.evolve(answer, entries=()) for answer in turn.sent))),
    "the store's answer to the seal is not taken": ("broker", "ReceiveLedgerSealed", lambda before, turn: None),
    "the horizon moves over an empty ledger": ("broker", "WriteLedger", lambda before, turn: attrs.evolve(
        knowing(turn, written=()), sent=turn.sent[1:])),
    "the ledger in use is deleted": ("broker", "CompactorPhaseTwoDeleteLedger", lambda before, turn: attrs.evolve(
        turn, sent=tuple(attrs.evolve(delete, ledger=before.context) for delete in turn.sent))),
    "the cursor is not written": (
        "broker", "CompactorPhaseTwoPersistCusror", lambda before, turn: knowing(turn, cursor=before.cursor)),
    "phase one notes the last message of each key, tombstones too": (
        "broker", "CompactorPhaseOne", lambda before, turn: knowing(turn, phase_one_result=attrs.evolve(
            turn.local.phase_one_result,
            latest_for_key=latest_for_key((m.id, m.key) for entry in before.topic for m in entry.messages)))),
    "a reader takes down each message as a tombstone": ("r1", "ReceiveReadResponse", lambda before, turn: knowing(
        turn, seen=tuple(attrs.evolve(message, value=0) for message in turn.local.seen))),
}
"""What happens instead, by an actor's action."""


def row(
    prop: str, reason: str, model: str = PLAIN, settings: Mapping[str, str] | None = None, wrong: str = "",
    faults: Faults = NO_FAULTS, **sizes: int,
) -> Any:
    """Return a line of the table: what fails, how, and what makes it fail."""
    id_ = f"{prop}-{wrong or '-'.join((settings or {}).values())}"
    return pytest.param(prop, reason, model, dict(settings or {}), wrong, faults, {**SMALL, **sizes}, id=id_)


TABLE = [
    row("CompactionEquivalence", "have key 1 not at all", TRIMMING, {"flaw": "PC-05"}),
    row("CompactionEquivalence", "with the null key", wrong="the horizon moves over an empty ledger"),
    row("CompactionEquivalence", "which deletes key 1", TRIMMING,
        wrong="phase one notes the last message of each key, tombstones too"),
    row("ReaderView", "twice: from compacted ledger", PLAIN, {"repair": "S11"}, readers=2),
    row("ReaderView", "gets message 1 2 times", TRIMMING, {"flaw": "PC-06"}),
    row("ReaderView", "given message 1, the latest of key", wrong="a read is answered with a position and no messages"),
    row("ReaderView", "given message 1 (null key)", wrong="a read is answered with a position and no messages"),
    row("ReaderView", "the durable cursor says", wrong="the cursor is not written"),
    row("ReaderView", "which is not in the store", wrong="the ledger in use is deleted"),
    row("NoLeak", "neither cursor nor context names ledger", PLAIN, {"repair": "S12"}, faults=CRASH),
    row("CompactionCompletes", "has not finished its compaction", wrong="the store's answer to the seal is not taken"),
    row("ReadersCatchUp", "has key 1 not at all", wrong="a reader takes down each message as a tombstone"),
    row("CompactionHorizonCorrectness", "nor replaces it", wrong="the horizon moves over an empty ledger"),
    row("CompactedLedgerLeak", "exist at once", PLAIN, {"repair": "S12"}, faults=attrs.evolve(CRASH, crash=2)),
    row("DuplicateNullKeyMessage", "null-key message 1 from compacted ledger 1", PLAIN, {"repair": "S11"}),
]


def made(model: str, settings: Mapping[str, str], wrong: str, faults: Faults, sizes: Any) -> Model:
    """Build a model, with one actor wrong."""
    built = find_model(model).make(sizes, settings, faults=faults)
    actor, action, change = WRONG[wrong] if wrong else ("", "", None)
    return acting(built, action, change, actor) if change else built


@pytest.mark.parametrize(("prop", "reason", "model", "settings", "wrong", "faults", "sizes"), TABLE)
def test_property_fails_where_something_is_wrong_and_holds_where_not(
    prop: str, reason: str, model: str, settings: dict[str, str], wrong: str, faults: Faults, sizes: dict[str, int]
) -> None:
    """Some run of the bad variant violates the property with this reason; no run of the right one violates it."""
    plan = Plan((prop,), steps=100, timeouts=1)
    bad = alternating(made(model, settings, wrong, faults, sizes), plan, SHORT)
    runs = next(n for n, run in enumerate(bad, 1) if reason in (run.verdict.reason or ""))
    for run in alternating(made(model, {}, "", faults, sizes), plan, max(LEAST, TIMES * runs)):
        assert run.verdict.ok, run.verdict


def test_every_property_of_every_actor_model_is_in_the_table() -> None:
    """And none is in it that no actor model has."""
    broken = {param.values[0] for param in TABLE}
    assert broken == {
        prop.name for name in MODELS for prop in find_model(name).make().properties if prop.form != "sometimes"
    }
