"""The stack held against diary 02: every action is refined, wrong mappings and brokers fail, and the spec is sound."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any

import attrs
import pytest
from support.runs.refinement_runs import freezing, refinement_of, remade

from harness.explore.packed.search import Search
from harness.model import (
    NO_FAULTS,
    Faults,
    Local,
    Model,
    Refusal,
    Turn,
    find_model,
    find_scenario,
    model_of,
    parts,
    slot,
)
from harness.simulate.runs.plan import Plan, plan_of, safety_only
from harness.simulate.states.nodes import Option
from harness.simulate.strategies.strategy import RandomStrategy
from harness.verify.refinement import Refiner
from harness.verify.simulated_runs import Totals, refine_runs
from kafka_proto.broker import composition
from kafka_proto.broker.logs.replicated import ReplicatedLog
from kafka_proto.replication import partition
from kafka_proto.replication.messages import FetchRequest, LeaderAndIsrRequest
from kafka_proto.replication.partition import Replica, ReplicaState
from kafka_proto.stack import model as cluster
from kafka_proto.stack import refinement
from kafka_proto.transactions import extensions, producer
from kafka_proto.transactions.coordinator_role import CoordinatorRole
from kafka_proto.transactions.decisions.outcome import Outcome as Decided
from kafka_proto.transactions.extensions import replicated_log
from kafka_proto.transactions.extensions.replicated_log import EXTENSIONS
from kafka_proto.transactions.messages import InitProducerIdRequest, Request, Response
from kafka_proto.transactions.producer import Producer, TransactionalProducer
from kafka_proto.transactions.properties import INVARIANTS
from kafka_proto.transactions.specs.diary_02 import FAIRNESS

FREE, TIMED = "every fault, free", "every fault, timed"
"""No scenarios: the stack under every kind of fault, as `benchmarks/every_fault.py` has it."""
UNHEARD = "one client, one election"
"""No scenario either: for the strategy of this name."""
CAMPAIGN = {
    "stack-coordinator-moves": 15, "stack-isolated-leader": 10, "stack-rolling-restart": 5, "stack-two-failures": 5,
    FREE: 10, TIMED: 10,
}
"""Scenarios and runs of each, under random scheduling."""
COMPLETES = 17
"""The seed of a timed run in which a broker is elected while an abort is prepared."""


def scenario(name: str) -> tuple[Model, Plan]:
    """The model and the plan of a scenario, claiming its invariants."""
    found = find_scenario(name)
    if found is not None:
        model = model_of(found)
        return model, safety_only(plan_of(found), model)
    if name == UNHEARD:
        return find_model("cluster").make({"clients": 1}), Plan((), steps=90, timeouts=20)
    faults = Faults(1, 1, 1, 1, 1, 1, 1, crash=2, skew=1, targets=("b1", "b2", "b3", "c1"))
    model = find_model("cluster").make(faults=faults)
    return model, Plan((), steps=150, timeouts=6, mode="timed" if name == TIMED else "free")


@cache
def campaign(name: str) -> Totals:
    """The runs of a scenario, each held against the spec."""
    model, plan = scenario(name)
    return refine_runs(model, plan, range(CAMPAIGN[name]))


@pytest.mark.parametrize("name", CAMPAIGN)
def test_runs_of_the_stack_follow_the_spec(name: str) -> None:
    """No step is nothing in the spec, and no invariant fails."""
    totals = campaign(name)
    assert (totals.runs, totals.failed, dict(totals.violated)) == (CAMPAIGN[name], 0, {})
    assert 0 < totals.stutters < totals.steps


def test_every_action_of_the_spec_but_the_election_is_refined() -> None:
    """AnnounceLeader and TakeOver are its halves; that somebody completes what is prepared is seen in one more run."""
    model, plan = scenario(TIMED)
    taken = {action for name in CAMPAIGN for action in campaign(name).actions}
    assert taken | set(refine_runs(model, plan, [COMPLETES]).actions) == FAIRNESS.keys()


class Unheard(RandomStrategy):
    """b1 hears neither of b2's election nor how far the others are, until b2 has gone on without it."""

    name = "unheard"

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.went_on = False

    def pick(self, options: Sequence[Option]) -> int:
        kept = [n for n, option in enumerate(options) if self.may(option, options)]
        chosen = kept[super().pick([options[n] for n in kept])] if kept else super().pick(options)
        taken = options[chosen]
        self.went_on = self.went_on or taken.name == "ReceiveAlterPartitionResponse(b2,controller)"
        return chosen

    def may(self, option: Option, options: Sequence[Option]) -> bool:
        late = [m for o in options if isinstance(m := o.message, FetchRequest) and m.dest == "b1" and m.fetch_offset]
        if isinstance(option.message, LeaderAndIsrRequest) and option.message.dest == "b1":
            return False
        if option.message in late:
            return self.went_on
        if option.action == "ElectLeader":
            return option.name == "ElectLeader(b2,p1)" and {m.source for m in late} == {"b2", "b3"}
        if option.action == "ProposeShrinkIsr":
            return option.name == "ProposeShrinkIsr(b2,p1,b1)"
        return not option.is_timer or option.action == "BrokerRequestTimeout"


NEEDED: Mapping[str, tuple[str, int]] = {
    "RequestTimeout": ("stack-isolated-leader", 1), "IgnoreResponse": ("stack-isolated-leader", 1),
    "StaleLookUp": ("stack-coordinator-moves", 7), "RefuseRequest": ("stack-coordinator-moves", 3),
    "AnnounceLeader": ("stack-coordinator-moves", 0), "TakeOver": ("stack-coordinator-moves", 0),
    "TakeOverBehind": ("stack-coordinator-moves", 23), "FollowOlder": ("stack-late-controller", 16),
    "Resign": ("stack-coordinator-moves", 0), "CommitAbandoned": ("stack-coordinator-moves", 4),
    "CommitByIsr": (TIMED, 10), "CommitRefused": (TIMED, 47), "RefuseAppend": ("stack-rolling-restart", 10),
    "HearLate": (UNHEARD, 1), "Crash": ("stack-rolling-restart", 0), "LoseMessage": ("stack-rolling-restart", 0),
    "CopyMessage": (TIMED, 1),
}
"""Extension actions, and a run (scenario and seed) that leaves the spec without each."""


@pytest.mark.parametrize("name", EXTENSIONS)
def test_run_of_the_stack_leaves_the_spec_without_an_extension(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The extension action is the only one that explains some step; with it, the same run follows the spec."""
    build = refinement.refinement
    where, seed = NEEDED[name]
    model, plan = scenario(where)
    strategy = Unheard if where == UNHEARD else RandomStrategy
    _, refined = Refiner(model).simulate(plan, strategy(seed))
    assert refined.failure is None and refined.extensions[name] > 0
    others = tuple(other for other in EXTENSIONS if other != name)
    monkeypatch.setattr(cluster, "refinement", partial(build, on=others))
    assert Refiner(model).simulate(plan, strategy(seed))[1].failure is not None


def test_every_extension_is_kept_to_actions_of_the_stack() -> None:
    """None is left out, and no name is mistyped."""
    model, _ = scenario(FREE)
    by = refinement_of(model).by
    assert set(EXTENSIONS) | set(FAIRNESS) == set(by)
    taken = {action for name in CAMPAIGN for action, _ in campaign(name).pairs}
    assert {action for actions in by.values() for action in actions} <= taken | {"CompletePartialTxn"}


FROZEN = {
    **dict.fromkeys((
        "client", "correlation", "inbox", "pid_source", "tc_log", "tc_log_hwm", "tc_tid_metadata", "tc_tid_transition",
        "aux_coord_ctr", "tc_log_metadata", "serving", "txn_log_leader", "txn_log_epoch", "announced", "written",
    ), "stack-coordinator-moves"),
    "aux_crashes": "stack-two-failures",
}
"""The variables that change, and a scenario in which each does."""


@pytest.mark.parametrize("variable", FROZEN)
def test_mapping_of_the_stack_that_freezes_a_variable_fails(variable: str) -> None:
    """Whatever variable of the spec the mapping does not follow, some run leaves the spec."""
    model, plan = scenario(FROZEN[variable])
    assert refine_runs(remade(model, freezing(variable)), plan, range(10), stop=True).failed == 1


def test_every_variable_of_the_stacks_spec_that_changes_can_be_frozen() -> None:
    """The variables of the spec that are in no row are constants."""
    model, _ = scenario("stack-coordinator-moves")
    variables = {parts(name)[0] for name in refinement_of(model).spec.initial_states()[0]}
    assert variables - set(FROZEN) == {"t_to_p_mapping", "topic_partitions", "loading"}


class TakesOlderAnswers(TransactionalProducer):
    """A client that takes the answer to a request that it gave up."""

    def is_awaited(self, local: Producer, kind: str, correlation: int | None) -> bool:
        return local.awaits == kind


class ServesBeforeItHasLoaded(CoordinatorRole):
    """A coordinator that serves requests from its election on."""

    def decided(self, decide: Callable[..., Decided], local: Local, request: Request, **also: Any) -> Decided:
        return super().decided(partial(unloaded, decide), local, request, **also)


def unloaded(decide: Callable[..., Decided], request: InitProducerIdRequest, *, loading: bool, **rest: Any) -> Decided:
    """Decide about an InitProducerIdRequest as if no log were loading."""
    return decide(request, loading=loading and not isinstance(request, InitProducerIdRequest), **rest)


class CommitsBeforeTheIsrHolds(ReplicatedLog):
    """A leader whose high watermark is the end of its own log."""

    def may_raise(self, k: Replica, state: ReplicaState) -> bool:
        return partition.leads(k, state) and state.high_watermark < len(state.log)


class DoesNotResign(CoordinatorRole):
    """A coordinator that goes on with what it knew when it is deposed."""

    def resigned(self, local: Local, p: str) -> Local:
        return local


class LoadsWhatIsNotCommitted(ReplicatedLog):
    """A leader that loads its whole log at once."""

    def may_load(self, k: Replica, state: ReplicaState) -> bool:
        return partition.leads(k, state)


class ForgetsToFailRequests(ReplicatedLog):
    """A coordinator that resigns and answers nobody."""

    def receive_leader_and_isr(self, local: Any, announced: LeaderAndIsrRequest) -> Turn[Any]:
        turn = super().receive_leader_and_isr(local, announced)
        return attrs.evolve(turn, sent=tuple(m for m in turn.sent if not isinstance(m, Response)))


@attrs.frozen
class Wrong:
    """A wrong actor, and where it leaves the spec."""

    name: str
    actor: type
    elections: int = 1
    faults: Faults = NO_FAULTS
    within: int = 40


WRONG = (
    Wrong("TransactionalProducer", TakesOlderAnswers, 0, Faults(duplicate=2, drop=2)),
    Wrong("CoordinatorRole", ServesBeforeItHasLoaded), Wrong("ReplicatedLog", CommitsBeforeTheIsrHolds),
    Wrong("CoordinatorRole", DoesNotResign), Wrong("ReplicatedLog", ForgetsToFailRequests),
    Wrong("ReplicatedLog", LoadsWhatIsNotCommitted, 2),
)


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: wrong.actor.__name__)
def test_wrong_actor_of_the_stack_leaves_the_spec(wrong: Wrong, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is claimed but the spec; the right actor follows it in the same runs."""
    plan = Plan((), steps=90, timeouts=6)

    def runs() -> Totals:
        model = find_model("cluster").make({"elections": wrong.elections}, faults=wrong.faults)
        return refine_runs(model, plan, range(wrong.within), stop=True)

    with monkeypatch.context() as patch:
        home = next(module for module in (producer, cluster, composition) if hasattr(module, wrong.name))
        patch.setattr(home, wrong.name, wrong.actor)
        found = runs()
    assert found.failed == 1 and found.explanation is not None
    wrong = attrs.evolve(wrong, within=found.runs)
    assert runs().failed == 0


CHECKED = (
    ({"clients": 1}, "", 132_277),
    pytest.param({"clients": 1, "brokers": 3}, "", 418_215, marks=pytest.mark.large),
)


@pytest.mark.parametrize(("sizes", "bound", "distinct"), CHECKED)
def test_spec_on_a_replicated_log_keeps_the_invariants(sizes: Mapping[str, int], bound: str, distinct: int) -> None:
    """A complete search with all extension actions of a replicated log on finds every invariant true."""
    model = find_model("transactions/repaired").make(sizes, {"extend": ",".join(EXTENSIONS), "bound": bound})
    found = Search(model, INVARIANTS).run()
    assert (found.complete, found.violations, found.distinct) == (True, (), distinct)


def test_spec_on_a_replicated_log_is_wrong_where_a_leader_loads_too_little(monkeypatch: pytest.MonkeyPatch) -> None:
    """The invariants would show an elected broker that serves without knowing what is committed."""
    load, known = replicated_log.loading, slot("tc_tid_metadata", "b2", "tid1")
    monkeypatch.setattr(replicated_log, "loading", lambda *given: (*load(*given), (known, None)))
    model = find_model("transactions/repaired").make({"clients": 1}, {"extend": "AnnounceLeader,TakeOver"})
    assert [found.name for found in Search(model, INVARIANTS).run().violations][:1] == ["CommittedTidKnown"]


def test_extensions_of_two_kinds_of_log_are_refused_together() -> None:
    """A log is atomic or replicated."""
    assert "DropUncommitted" in extensions.EXTENSIONS and "CommitAbandoned" in EXTENSIONS
    with pytest.raises(Refusal, match="DropUncommitted is of coordinators on an atomic log, CommitAbandoned of those"):
        find_model("transactions/repaired").make({}, {"extend": "CommitAbandoned,DropUncommitted"})


@pytest.mark.parametrize("settings", [{"disk": "lost"}, {"disk": "unflushed"}, {"election": "unclean"}])
def test_stack_that_may_lose_what_is_committed_has_no_refinement(settings: Mapping[str, str]) -> None:
    """In the spec what is committed stays."""
    assert find_model("cluster").make({}, settings).refinement is None
    assert find_model("cluster").make({}, {"election": "elr"}).refinement is not None
