"""The transaction protocol's actors held against diary 02: every action is refined, wrong mappings and actors fail."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any

import attrs
import pytest
from support.mutants.actor_mutants import Sparing, is_aborting, knowing, mutated
from support.runs.refinement_runs import freezing, remade

from harness.explore.packed.search import Search
from harness.model import Model, Refinement, Turn, find_model, find_scenario, model_of, parts
from harness.simulate.runs.plan import Plan, plan_of, safety_only
from harness.verify.refinement import Refined, Refiner
from harness.verify.simulated_runs import Totals, refine_runs
from kafka_proto.transactions import actors, refinement
from kafka_proto.transactions.coordinator_role import COORDINATOR
from kafka_proto.transactions.extensions import EXTENSIONS
from kafka_proto.transactions.log import AppendEntry
from kafka_proto.transactions.messages import Error
from kafka_proto.transactions.properties import ACTOR_INVARIANTS, INVARIANTS
from kafka_proto.transactions.specs.diary_02 import FAIRNESS

REPAIRED, SPEC = "transactions/repaired/actors", "transactions/repaired"
ACTIONS = {*FAIRNESS, "ElectLeader"}
CAMPAIGN = {
    "coordinator-moves": 20, "three-brokers": 5, "duplicate-and-reorder": 10, "lost-responses": 10, "deaf-client": 10,
    "partitioned-coordinator": 10, "coordinator-crash": 15, "fencing-battle": 15, "skewed-clocks": 10,
    "fenced-by-own-duplicate": 5,
}
"""Scenarios and runs of each, under random scheduling."""
RARE = {"DropUncommitted", "FailCommitted", "FollowLate", "TakeOverLate", "CommitUnanswered"}
"""Extension actions that so few runs need not reach: NEEDED has a run for each."""
THREE = "three elections"
"""No scenario: the repaired actors with three elections."""


def scenario(name: str) -> tuple[Model, Plan]:
    """The model and the plan of a scenario, claiming its invariants."""
    if name == THREE:
        return find_model(REPAIRED).make({"elections": 3}), Plan(ACTOR_INVARIANTS, steps=150)
    found = find_scenario(name)
    assert found is not None
    model = model_of(found)
    return model, safety_only(plan_of(found), model)


@cache
def campaign(name: str) -> Totals:
    """The runs of a scenario, each held against the spec."""
    model, plan = scenario(name)
    return refine_runs(model, plan, range(CAMPAIGN[name]))


def aborting(runs: int) -> Iterator[Refined]:
    """Runs in which a coordinator moves while it aborts a transaction."""
    refiner = Refiner(find_model(REPAIRED).make())
    for seed in range(runs):
        yield refiner.simulate(Plan(ACTOR_INVARIANTS, steps=80), Sparing(seed, is_aborting))[1]


@pytest.mark.parametrize("name", CAMPAIGN)
def test_runs_of_a_scenario_follow_the_spec(name: str) -> None:
    """No step is nothing in the spec, and no invariant fails."""
    totals = campaign(name)
    assert (totals.runs, totals.failed, dict(totals.violated)) == (CAMPAIGN[name], 0, {})
    assert 0 < totals.stutters < totals.steps


def test_every_action_and_every_extension_that_is_not_rare_is_refined() -> None:
    """Together the runs take every action of the spec, CompletePartialTxn in those that are cut in the right moment."""
    taken: set[str] = set()
    for name in CAMPAIGN:
        taken |= set(campaign(name).actions) | {n for n, times in campaign(name).extensions.items() if times}
    for refined in aborting(15):
        assert refined.failure is None
        taken |= set(refined.actions)
    assert taken >= ACTIONS | set(EXTENSIONS) - RARE


def under(name: str, change: Callable[[Refinement], Refinement]) -> Totals:
    """Runs of a scenario under a changed refinement, up to the first failure."""
    model, plan = scenario(name)
    return refine_runs(remade(model, change), plan, range(60), stop=True)


VARIABLES = {
    "client": "fencing", "correlation": "fencing", "inbox": "fencing", "pid_source": "fencing", "tc_log": "fencing",
    "tc_log_hwm": "fencing", "tc_tid_metadata": "fencing", "tc_tid_transition": "fencing",
    "aux_coord_ctr": "coordinator-moves", "tc_log_metadata": "coordinator-moves", "serving": "coordinator-moves",
    "loading": "coordinator-moves",
    "txn_log_leader": "coordinator-moves", "txn_log_epoch": "coordinator-moves", "aux_crashes": "coordinator-crash",
}
"""The variables that change, and a scenario in which each does."""


@pytest.mark.parametrize("variable", VARIABLES)
def test_mapping_that_freezes_a_variable_fails(variable: str) -> None:
    """Whatever variable of the spec the mapping does not follow, some run leaves the spec."""
    assert under(VARIABLES[variable], freezing(variable)).failed == 1


def test_every_variable_that_changes_can_be_frozen() -> None:
    """The variables of the spec that are in no row are constants."""
    model, _ = scenario("coordinator-crash")
    assert model.refinement is not None
    variables = {parts(name)[0] for name in model.refinement().spec.initial_states()[0]}
    assert variables - set(VARIABLES) == {"t_to_p_mapping", "topic_partitions"}


NEEDED = {
    "RequestTimeout": ("lost-responses", 0), "IgnoreResponse": ("fenced-by-own-duplicate", 0),
    "StaleLookUp": ("coordinator-moves", 0), "RefuseRequest": ("coordinator-moves", 0),
    "ResignEarly": ("coordinator-moves", 0), "Crash": ("coordinator-crash", 0), "LoadTxnLog": ("coordinator-crash", 3),
    "FinishLoading": ("coordinator-moves", 0), "ElectFromLog": ("coordinator-moves", 0),
    "LoseMessage": ("lost-responses", 0), "CopyMessage": ("fenced-by-own-duplicate", 0),
    "CommitUnanswered": ("coordinator-moves", 8), "DropUncommitted": ("coordinator-moves", 21),
    "TakeOverLate": ("coordinator-moves", 46), "FailCommitted": ("partitioned-coordinator", 74),
    "FollowLate": (THREE, 35),
}
"""Extension actions, and a run (scenario and seed) that leaves the spec without each."""


@pytest.mark.parametrize("name", EXTENSIONS)
def test_run_leaves_the_spec_without_an_extension_that_it_needs(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The extension action is the only one that explains some step; with it, the same run follows the spec."""
    build = refinement.refinement
    where, seed = NEEDED[name]
    model, plan = scenario(where)
    totals = refine_runs(model, plan, [seed])
    assert totals.failed == 0 and totals.extensions[name] > 0
    others = tuple(other for other in EXTENSIONS if other != name)
    monkeypatch.setattr(actors, "refinement", lambda *given: build(*given, on=others))
    assert refine_runs(model, plan, [seed]).failed == 1


def without_by(sound: Refinement) -> Refinement:
    """The same refinement, in which any action of the actors may be any of the spec."""
    return attrs.evolve(sound, by={})


def test_every_extension_is_kept_to_actions_of_the_actors(monkeypatch: pytest.MonkeyPatch) -> None:
    """None is left out, and each action that is named is one of the actors or of the faults."""
    model, _ = scenario("fencing-battle")
    assert model.refinement is not None
    by = model.refinement().by
    assert set(EXTENSIONS) <= set(by)
    taken = {action for name in CAMPAIGN for action, _ in campaign(name).pairs}
    assert {action for actions in by.values() for action in actions} <= taken | {"CompletePartialTxn"}


def hasty(before: Any, turn: Turn[Any]) -> Turn[Any] | None:
    """The log commits an entry and keeps it, too: it commits twice."""
    return attrs.evolve(turn, local=attrs.evolve(turn.local, waiting=before.waiting))


def careless(before: Any, turn: Turn[Any]) -> Turn[Any] | None:
    """A deposed leader keeps the metadata of its ids."""
    return knowing(turn, COORDINATOR, metadata=before[COORDINATOR].metadata)


def generous(before: Any, turn: Turn[Any]) -> Turn[Any] | None:
    """A client counts every partition it asks for as added."""
    record = turn.local.record
    added = attrs.evolve(record, partitions=record.partitions | before.record.pending_partitions)
    return attrs.evolve(turn, local=attrs.evolve(turn.local, record=added))


def deaf(before: Any, turn: Turn[Any]) -> Turn[Any] | None:
    """A client ignores the answer that it waits for."""
    return Turn("IgnoreResponse", turn.args, before)


def idle(before: Any, turn: Turn[Any]) -> Turn[Any] | None:
    """A coordinator that serves says that it is loading."""
    late = [m.entry.callback for m in turn.sent if isinstance(m, AppendEntry)]
    if not late:
        return turn
    refusal = attrs.evolve(late[0].response, error=Error.COORDINATOR_LOAD_IN_PROGRESS, partitions=frozenset())
    return Turn(turn.action, turn.args, before, (refusal,))


def mute(before: Any, turn: Turn[Any]) -> Turn[Any] | None:
    """A coordinator does not answer when an entry is committed."""
    return attrs.evolve(turn, sent=tuple(m for m in turn.sent if isinstance(m, AppendEntry)))


MUTANTS: tuple[tuple[Callable[[Any, Turn[Any]], Turn[Any] | None], str, str], ...] = (
    (hasty, "CommitTxnLogAppend", "fencing"),
    (careless, "BecomeFollower", "coordinator-moves"),
    (generous, "RequestTimeout", "lost-responses"),
    (deaf, "ReceiveInitProducerIdResponse", "lost-responses"),
    (deaf, "ReceiveAddPartitionsToTxnResponse", "lost-responses"),
    (mute, "ReceiveCommitted", "fencing"), (idle, "ReceiveAddPartitionsToTxnRequest", "fencing"),
)


@cache
def failed_when_sound(name: str) -> int:
    """How many of the same runs leave the spec without a wrong turn."""
    model, plan = scenario(name)
    return refine_runs(model, attrs.evolve(plan, claims=()), range(8)).failed


@pytest.mark.parametrize(("change", "action", "name"), MUTANTS)
def test_wrong_turn_of_an_actor_leaves_the_spec(change: Any, action: str, name: str) -> None:
    """An actor that decides otherwise takes a step that the spec has not; a sound one does not."""
    model, plan = scenario(name)
    plan = attrs.evolve(plan, claims=())
    assert refine_runs(mutated(model, action, change), plan, range(8), stop=True).failed == 1
    assert failed_when_sound(name) == 0


def test_answer_that_is_wrongly_ignored_would_pass_as_lost() -> None:
    """What keeps a client from it is that no loss of a message may be its step."""
    model, plan = scenario("lost-responses")
    wrong = mutated(model, "ReceiveInitProducerIdResponse", deaf)
    assert wrong.refinement is not None
    anything = without_by(wrong.refinement())
    totals = refine_runs(attrs.evolve(wrong, refinement=lambda: anything), attrs.evolve(plan, claims=()), range(3))
    assert totals.failed == 0 and totals.by_action()["IgnoreResponse"]["LoseMessage"] > 0


def names(*on: str) -> str:
    return ",".join(on)


CHECKED = (
    pytest.param({"elections": 0}, names(*EXTENSIONS), 113_764, marks=pytest.mark.large),
    pytest.param(
        {}, names("Crash", "LoadTxnLog", "CommitUnanswered", "DropUncommitted"), 95_957, marks=pytest.mark.large
    ),
    ({"clients": 1, "elections": 2}, names(*EXTENSIONS), 78_701),
    ({"clients": 1, "brokers": 3}, names(*EXTENSIONS), 32_870),
)


@pytest.mark.parametrize(("sizes", "on", "distinct"), CHECKED)
def test_extended_spec_keeps_the_invariants(sizes: Mapping[str, int], on: str, distinct: int) -> None:
    """A complete search with extension actions on finds every invariant true."""
    model = find_model(SPEC).make(sizes, {"extend": on})
    found = Search(model, INVARIANTS).run()
    assert (found.complete, found.violations, found.distinct) == (True, (), distinct)


def test_diary_02_is_held_against_its_spec_where_its_flaws_do_not_show() -> None:
    """At other sizes, and without the repair, its actors have no refinement."""
    spec = find_model("transactions/diary-02/actors")
    totals = refine_runs(spec.make(), Plan((), steps=80), range(20))
    assert (totals.failed, totals.runs) == (0, 20)
    for flaw, sizes in {"S1": {"transactional-ids": 2}, "S2": {"brokers": 3}, "S3": {"txn-log-partitions": 2}}.items():
        assert spec.make(sizes).refinement is None
        assert spec.make(sizes, {"repair": flaw}).refinement is not None
