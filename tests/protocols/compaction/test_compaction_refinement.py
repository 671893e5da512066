"""Compaction's actors held against their spec: actions are refined, variables count, extensions are needed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import pytest
from support.mutants.actor_mutants import Change, knowing
from support.runs.refinement_runs import acting, freezing, lacking, remade
from support.searches.plain_search import search

from compaction.extensions import EXTENSIONS
from compaction.properties import CHECKED
from compaction.records import PhaseOneResult
from compaction.refinement import BY
from harness.model import Faults, FrozenMap, Model, Turn, find_model
from harness.simulate.runs.plan import Plan
from harness.simulate.states.nodes import Option
from harness.simulate.strategies.strategy import RandomStrategy
from harness.verify.refinement import Refined, Refiner
from harness.verify.simulated_runs import refine_runs

SPEC_ACTIONS = set(BY) - set(EXTENSIONS)
SIZES = {"messages": 2, "keys": 1}
CRASHES = Faults(crash=2, targets=("broker",))
EVERYTHING = Faults(1, 1, 1, 1, 1, 1, 1, 2, 1, targets=("broker", "producer", "r1"))
PLAN = Plan(("CompactionCompletes",), steps=100)
RUNS = range(60)


def actors(faults: Faults = CRASHES, network: str = "bag", **settings: str) -> Model:
    """Build the actors of the spec's model."""
    return find_model("compaction/pulsar/actors").make(SIZES, settings, network, faults)


@pytest.mark.parametrize("repair", ["S11,S12", "S11", "S12", ""])
@pytest.mark.parametrize(("network", "faults"), [("bag", CRASHES), ("fifo", EVERYTHING)])
def test_actors_follow_their_spec_and_take_each_action(network: str, faults: Faults, repair: str) -> None:
    """No step is anything else than the spec's, a stutter or an extension, under every kind of fault."""
    totals = refine_runs(actors(faults, network, repair=repair), PLAN, RUNS)
    assert (totals.runs, totals.failed, totals.untaken) == (len(RUNS), 0, ())
    assert set(totals.actions) == SPEC_ACTIONS
    assert totals.extensions.keys() == (set() if "S11" in repair else set(EXTENSIONS))
    assert 0 < totals.stutters < totals.steps


@pytest.mark.parametrize(
    "variable",
    ["messages", "compactedLedgers", "cursor", "compactorState", "phaseOneResult", "compactionHorizon",
     "compactedTopicContext", "crashTimes"],
)
def test_mapping_that_freezes_a_variable_fails(variable: str) -> None:
    """A mapping that leaves any one variable as it was at the start is refuted by some run."""
    model = actors()
    assert refine_runs(remade(model, freezing(variable)), PLAN, RUNS, stop=True).failed > 0
    assert refine_runs(model, PLAN, range(10)).failed == 0


class CrashingAt(RandomStrategy):
    """Crashes the broker where a step of the given action could be taken, and nowhere else while there is another."""

    def __init__(self, seed: int, action: str) -> None:
        super().__init__(seed)
        self.action = action

    def pick(self, options: Sequence[Option]) -> int:
        crash = [n for n, option in enumerate(options) if option.action == "Crash"]
        if crash and any(option.action == self.action for option in options):
            return crash[0]
        others = [n for n in range(len(options)) if n not in crash] or crash
        return others[super().pick([options[n] for n in others])]


CRASH_AT = {
    "WriteAfterCrash": "SealLedger",
    "DeleteAfterCrash": "DeleteLedger",
    "DeleteReplacedLedger": "CompactorPhaseTwoUpdateContext",
}
"""Where a crash makes each extension necessary."""


def judged(model: Model, action: str) -> list[Refined]:
    """Hold runs with one crash at an action against the spec."""
    refiner = Refiner(model)
    return [refiner.simulate(PLAN, CrashingAt(seed, action))[1] for seed in range(20)]


@pytest.mark.parametrize("name", EXTENSIONS)
def test_extension_is_taken_and_missed_where_it_is_off(name: str) -> None:
    """A crash at the right moment makes it necessary; without it the same runs leave the spec."""
    model = actors(Faults(crash=1, targets=("broker",)), repair="S12")
    found = judged(model, CRASH_AT[name])
    assert all(run.failure is None for run in found)
    assert any(run.extensions[name] for run in found)
    bare = remade(model, lambda whole: attrs.evolve(lacking("extensions")(whole), extensions={}))
    assert any(run.failure for run in judged(bare, CRASH_AT[name]))


@pytest.mark.parametrize("extend", [*EXTENSIONS, ",".join(EXTENSIONS)])
@pytest.mark.parametrize("repair", ["", "S12"])
def test_extended_spec_keeps_its_invariants(repair: str, extend: str) -> None:
    """With extensions on, a complete search still proves what holds; with S12 repaired also DuplicateNullKeyMessage."""
    sizes = {"messages": 2, "compactions": 3, "keys": 1, "values": 1, "crashes": 1}
    settings = {"producer": "true", "repair": repair, "extend": extend}
    holds = (*CHECKED, "DuplicateNullKeyMessage") if repair else CHECKED
    found = search(find_model("compaction/pulsar").make(sizes, settings), holds)
    assert found.violated is None
    plain = search(find_model("compaction/pulsar").make(sizes, {"producer": "true", "repair": repair}), holds)
    assert found.generated > plain.generated


def writing_everything(before: Any, turn: Turn[Any]) -> Turn[Any]:
    """Phase two finds each message to be the latest of its key."""
    add, seal = turn.sent
    return attrs.evolve(knowing(turn, written=before.topic), sent=(attrs.evolve(add, entries=before.topic), seal))


WRONG: Mapping[str, Change] = {
    "CompactorPhaseTwoPersistCusror": lambda before, turn: attrs.evolve(turn, flush=False),
    "WriteLedger": writing_everything,
    "CompactorPhaseTwoUpdateHorizon": lambda before, turn: knowing(turn, horizon=before.end),
    "CompactorPhaseOne": lambda before, turn: knowing(turn, phase_one_result=PhaseOneResult(before.end, FrozenMap())),
    "CompactorPhaseTwoDeleteLedger": lambda before, turn: attrs.evolve(
        turn, sent=tuple(attrs.evolve(delete, ledger=before.context) for delete in turn.sent)),
    "ReceiveLedgerLoaded": lambda before, turn: attrs.evolve(
        knowing(turn, collecting=frozenset(), loaded=True), sent=()),
}
"""By action: the cursor is not made durable; nothing is compacted; the horizon is the end of the topic; no message is
the latest; the ledger in use is deleted, not the one before; ledgers that nothing names are left."""


@pytest.mark.parametrize("action", WRONG)
def test_wrong_turn_of_the_broker_leaves_the_spec(action: str) -> None:
    """One wrong turn, and some run takes a step that the spec does not allow; without it none does."""
    model = actors()
    wrong = acting(model, action, WRONG[action], "broker")
    early_or_late = ("CompactorPhaseTwoDeleteLedger", "CollectLedger")
    assert any(run.failure for at in early_or_late for run in judged(wrong, at))
    assert not any(run.failure for at in early_or_late for run in judged(model, at))
