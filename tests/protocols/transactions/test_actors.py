"""The actors of the transaction protocol: silent under faults when repaired, flawed as their spec is when not."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import TypeVar

import attrs
import pytest
from support.runs.actor_states import last_state
from support.runs.refinement_runs import runs_of

from harness.model import (
    NO_FAULTS,
    Faults,
    Part,
    Rule,
    Scenario,
    State,
    View,
    find_model,
    find_scenario,
    model_of,
    scenarios,
)
from harness.simulate.runs.plan import Plan, plan_of
from harness.simulate.runs.run import Run
from harness.simulate.runs.session import run_plain
from harness.simulate.states.tables import Tables
from harness.simulate.strategies.by_name import NAMES
from harness.simulate.strategies.strategy import RandomStrategy
from harness.simulate.trails.replay import replay_plain
from harness.simulate.trails.shrink import shrink
from kafka_proto.broker.state import METADATA
from kafka_proto.cluster.scenarios import SCENARIOS as EXACTLY_ONCE
from kafka_proto.requests.transaction_state import TxnState
from kafka_proto.stack.atomic_log import COPY
from kafka_proto.transactions.coordinator_role import COORDINATOR, Coordinator
from kafka_proto.transactions.messages import Error, InitProducerIdResponse
from kafka_proto.transactions.properties import INVARIANTS, LIVENESS, WITNESSES
from kafka_proto.transactions.records import ClientState

T = TypeVar("T")
GET_PID, ADD_ALL = LIVENESS
REPAIRED, FLAWED = "transactions/repaired/actors", "transactions/diary-02/actors"
EVERYBODY = ("b1", "b2", "c1", "c2")
REGISTERED = ("RegisterBroker(b1)", "ReceiveBrokerRegistrationRequest(b1)")
BUDGETS: dict[str, tuple[str, str, Faults]] = {
    "no fault": ("bag", "free", NO_FAULTS),
    "drop": ("bag", "free", Faults(drop=3)),
    "duplicate": ("bag", "free", Faults(duplicate=3)),
    "delay": ("bag", "free", Faults(delay=3)),
    "reorder": ("fifo", "free", Faults(reorder=3)),
    "partition": ("bag", "free", Faults(partition=2, targets=EVERYBODY)),
    "one-way": ("bag", "free", Faults(one_way=2, targets=EVERYBODY)),
    "pause": ("bag", "free", Faults(pause=2, targets=EVERYBODY)),
    "crash": ("bag", "free", Faults(crash=3, targets=("b1", "b2"))),
    "skew": ("bag", "timed", Faults(skew=2, pause=1, targets=EVERYBODY)),
    "rules": ("bag", "timed", Faults(rules=(Rule("drop", source="b1", nth=2), Rule("delay", dest="b1", nth=3)))),
    "everything": ("fifo", "free", Faults(1, 1, 1, 1, 1, 1, 1, 1, 1, targets=EVERYBODY)),
}
RUNS = 40


@pytest.mark.parametrize("runs", (RUNS // 2, pytest.param(RUNS, marks=pytest.mark.large)))
@pytest.mark.parametrize("budget", BUDGETS)
def test_repaired_actors_are_silent_under_faults(budget: str, runs: int) -> None:
    """Whatever a budget allows, no strategy finds a violated invariant, nor a client that never gets its id."""
    network, mode, faults = BUDGETS[budget]
    sizes = {"elections": 2, "transactional-ids": 2 if budget == "crash" else 1}
    tables = Tables(find_model(REPAIRED).make(sizes, network=network, faults=faults))
    plan = Plan((*INVARIANTS, GET_PID), steps=60, mode=mode)
    witnessed: set[str] = set()
    for strategy in NAMES:  # a guided run costs as much as several others
        few = strategy == "guided" and runs < RUNS
        for run in islice(runs_of(tables, plan, strategy), RUNS // 4 if few else runs):
            assert run.verdict.ok, (strategy, run.trail.seed, run.verdict)
            witnessed |= run.witnessed
    assert witnessed >= {"ProducerFenced", "NotCoordinatorRetrySucceeds"}


def test_repaired_actors_are_silent_on_three_brokers() -> None:
    """So they are with a third broker, two log partitions and two ids."""
    sizes = {"brokers": 3, "txn-log-partitions": 2, "transactional-ids": 2, "elections": 2}
    faults = Faults(crash=1, pause=1, targets=("b1", "b3"))
    tables, plan = Tables(find_model(REPAIRED).make(sizes, faults=faults)), Plan((*INVARIANTS, GET_PID), steps=60)
    for strategy in ("random", "pct"):
        for run in islice(runs_of(tables, plan, strategy), RUNS // 4):
            assert run.verdict.ok, (strategy, run.trail.seed, run.verdict)


@attrs.frozen
class Flaw:
    """A flaw of the spec in the actors that follow it: where it shows, and as what."""

    sizes: Mapping[str, int]
    violates: str
    strategy: str
    reason: str


FLAWS = {
    "S1": Flaw(
        {"clients": 4, "brokers": 1, "transactional-ids": 3, "elections": 0}, "ClientsHaveDifferentProducerEpochs",
        "random", "both hold producer id",
    ),
    "S2": Flaw(
        {"clients": 1, "brokers": 3, "elections": 1}, GET_PID,
        "random", "c1 still without a producer id",
    ),
    "S3": Flaw(
        {"txn-log-partitions": 2, "transactional-ids": 2, "elections": 2}, "CommittedTidKnown",
        "pct", "but has no metadata of tid",
    ),
    "S3 later": Flaw(
        {"txn-log-partitions": 2, "transactional-ids": 2, "elections": 1}, "OnePidPerTid",
        "pct", "has the producer ids",
    ),
}
WITHIN = 300


def failing(flaw: str, repair: str, within: int) -> Run | None:
    """Return the first run of a flaw's strategy that violates its property, with a repair or ("") as written."""
    row = FLAWS[flaw]
    tables = Tables(find_model(FLAWED).make(row.sizes, {"repair": repair}))
    runs = islice(runs_of(tables, Plan((row.violates,)), row.strategy), within)
    return next((run for run in runs if not run.verdict.ok), None)


@pytest.fixture(scope="module")
def found() -> dict[str, Run | None]:
    """The first failing run of each flaw."""
    return {flaw: failing(flaw, "", WITHIN) for flaw in FLAWS}


@pytest.mark.parametrize("flaw", FLAWS)
def test_flaw_of_the_spec_is_found_in_its_actors(flaw: str, found: dict[str, Run | None]) -> None:
    """Actors that follow diary 02 as written violate what the spec violates, within some hundred runs."""
    run = found[flaw]
    assert run is not None and run.verdict.reason is not None
    assert run.verdict.violated == FLAWS[flaw].violates
    assert FLAWS[flaw].reason in run.verdict.reason
    assert replay_plain(run.trail).verdict == run.verdict


@pytest.mark.parametrize("flaw", FLAWS)
def test_repair_removes_its_flaw_from_the_actors(flaw: str, found: dict[str, Run | None]) -> None:
    """With the flaw's own repair alone as many runs and some more are silent."""
    run = found[flaw]
    assert run is not None
    assert failing(flaw, flaw[:2], run.trail.seed + 1 + RUNS // 2) is None


@pytest.mark.parametrize(("flaw", "repair"), [("S1", "S2,S3"), ("S2", "S1,S3"), ("S3", "S1,S2")])
def test_other_repairs_leave_the_flaw_in_the_actors(flaw: str, repair: str, found: dict[str, Run | None]) -> None:
    """With the two other repairs the same run fails for the same reason."""
    run, again = found[flaw], failing(flaw, repair, WITHIN)
    assert run is not None and again is not None
    assert (again.trail.choices, again.verdict) == (run.trail.choices, run.verdict)


def test_third_replica_never_joins_the_epoch(found: dict[str, Run | None]) -> None:
    """S2 among actors: one election is enough for a log that waits for its third replica for ever."""
    run = found["S2"]
    assert run is not None
    short = shrink(run.trail)
    assert short.has == 1 and short.trail.choices[0].label.startswith("ElectLeader(")
    reason = replay_plain(short.trail).verdict.reason
    assert reason is not None and "p1 waits for b" in reason and reason.endswith("to join epoch 2")


WITNESSED_BY = {
    "ProducerFenced": "fencing",
    "NotCoordinatorRetrySucceeds": "coordinator-moves",
    "PartialTxnCompleted": "s5-stuck-abort-repaired",
}


@pytest.mark.parametrize("witness", WITNESSES)
def test_scenarios_reach_every_witness(witness: str) -> None:
    """Over the scenarios a producer is fenced, a partial transaction completed, and a retry succeeds."""
    scenario = find_scenario(WITNESSED_BY[witness])
    assert scenario is not None
    tables, plan = Tables(model_of(scenario)), plan_of(scenario)
    assert any(witness in run.witnessed for run in islice(runs_of(tables, plan, "random"), scenario.runs))


WITNESSED = [s for s in scenarios() if s.witnesses and s not in EXACTLY_ONCE]


@pytest.mark.parametrize("scenario", WITNESSED, ids=lambda scenario: scenario.name)
def test_scenario_reaches_the_witnesses_that_it_names(scenario: Scenario) -> None:
    """What a scenario says must happen in some run does within its runs; exactly-once's have a test of their own."""
    tables, plan = Tables(model_of(scenario)), plan_of(scenario)
    missing = set(scenario.witnesses)
    for run in islice(runs_of(tables, plan, "random"), scenario.runs):
        missing -= run.witnessed
        if not missing:
            return
    raise AssertionError(f"{scenario.name} never reached {missing}")


def test_client_is_fenced_by_its_own_duplicate() -> None:
    """A finding, not a failure to hide: the second copy of a client's InitProducerIdRequest takes its epoch away."""
    scenario = find_scenario("fenced-by-own-duplicate")
    assert scenario is not None and scenario.expected == ADD_ALL and scenario.sizes["clients"] == 1
    tables, plan = Tables(model_of(scenario)), plan_of(scenario)
    failed = next(run for run in islice(runs_of(tables, plan, "random"), 50) if not run.verdict.ok)
    assert failed.verdict.violated == ADD_ALL
    assert "ProducerFenced" in failed.witnessed
    client = last_state(failed)["c1"].record
    assert (client.state, client.last_error) == (ClientState.TERMINATED, Error.PRODUCER_FENCED)
    answered = [c.label for c in failed.trail.choices if c.label.startswith("ReceiveInitProducerIdRequest(b1,c1)")]
    assert len(answered) == 2 and len(set(answered)) == 1


def test_client_is_not_fenced_without_the_duplicate() -> None:
    """The same scenario without its rule is silent, so that the duplicate is the cause."""
    scenario = find_scenario("fenced-by-own-duplicate")
    assert scenario is not None
    tables, plan = Tables(model_of(attrs.evolve(scenario, faults=NO_FAULTS))), plan_of(scenario)
    for run in islice(runs_of(tables, plan, "random"), RUNS):
        assert run.verdict.ok and "ProducerFenced" not in run.witnessed


class World:
    """An actor composition and the state it is in: takes steps by the beginning of their labels."""

    def __init__(self, sizes: Mapping[str, int], faults: Faults) -> None:
        self.model = find_model(REPAIRED).make(sizes, faults=faults)
        self.state: State = self.model.initial_states()[0]

    def take(self, *labels: str) -> None:
        """Take steps; each label must be the beginning of exactly one that is possible."""
        for label in labels:
            (choice,) = (c for c in self.model.choices(self.state) if c.label.startswith(label))
            self.state = self.model.apply(self.state, choice)

    def kept(self, b: str, part: Part[T]) -> T:
        """Return a part of a broker's state."""
        return part.of(View(self.state), b)

    def asks(self, c: str) -> None:
        """Let a client look b1 up and send it an InitProducerIdRequest, which b1 receives."""
        self.take(f"SendFindCoordinatorRequest({c},b1)", f"ReceiveFindCoordinatorRequest(b1,{c})")
        self.take(f"ReceiveFindCoordinatorResponse({c},b1)", f"SendInitProducerIdRequest({c})")
        self.take(f"ReceiveInitProducerIdRequest(b1,{c})")

    def commits(self) -> None:
        """Let the entry that b1 appended be committed, and both brokers hear of it."""
        self.take("AppendTxnLogEntry(b1,p1)", "CommitTxnLogAppend(b1,p1)", "ReceiveCommitted(b1,p1)")
        self.take("ReceiveCommitted(b2,p1)")


@pytest.fixture
def coordinator() -> World:
    """A world in which b1 coordinates: tid1 is committed with producer id 1, an entry of tid2 is not."""
    sizes = {"clients": 2, "transactional-ids": 2, "elections": 0}
    here = World(sizes, Faults(crash=1, targets=("b1",)))
    here.take("Init(c1,tid1)")
    here.asks("c1")
    here.commits()
    here.take("ReceiveInitProducerIdResponse(c1,b1)", "Init(c2,tid2)")
    here.asks("c2")
    return here


def refusal(here: World) -> Error:
    """Return how b1 refuses an InitProducerIdRequest of c2 now; the world goes on as if it had not been asked."""
    before = here.state
    here.take("RequestTimeout(c2)")
    here.asks("c2")
    sent = here.model.network.contents(here.state["inbox[c2]"])
    (response,) = (message for message in sent if isinstance(message, InitProducerIdResponse))
    here.state = before
    return response.error


def test_crashed_coordinator_keeps_its_log_only(coordinator: World) -> None:
    """Metadata, pending transitions and callbacks of a coordinator are gone with a crash; its log is not."""
    before, memory = coordinator.kept("b1", COPY["p1"]), coordinator.kept("b1", COORDINATOR)
    assert set(memory.metadata) == {"tid1", "tid2"} and set(memory.transitions) == {"tid2"} and before.callbacks
    coordinator.take("Crash(b1)")
    after = coordinator.kept("b1", COPY["p1"])
    assert (after.log, after.high_watermark) == (before.log, before.high_watermark)
    assert len(after.log) == 2 and after.high_watermark == 1
    assert not after.callbacks and coordinator.kept("b1", COORDINATOR) == Coordinator()


def test_crashed_coordinator_answers_again_after_it_has_reloaded_the_committed_prefix(coordinator: World) -> None:
    """A restarted coordinator is none, then is loading, and then knows again what was committed, and no more."""
    coordinator.take("Crash(b1)", "Restart(b1)", *REGISTERED)
    assert refusal(coordinator) is Error.NOT_COORDINATOR
    coordinator.take("TakeOver(b1,p1)")
    assert refusal(coordinator) is Error.COORDINATOR_LOAD_IN_PROGRESS
    coordinator.take("AppendTxnLogEntry(b1,p1)", "JoinEpoch(b1,p1)", "LoadTxnLog(b1,p1)")
    copy, memory = coordinator.kept("b1", COPY["p1"]), coordinator.kept("b1", COORDINATOR)
    assert {tid: known.producer_id for tid, known in memory.metadata.items()} == {"tid1": 1}
    assert len(copy.log) == copy.high_watermark == 1
    assert refusal(coordinator) is Error.COORDINATOR_LOAD_IN_PROGRESS
    coordinator.take("RequestTimeout(c2)")
    coordinator.asks("c2")
    coordinator.take("ReceiveAllocateProducerIdsRequest(b1)", "ReceiveAllocateProducerIdsResponse(b1)")
    coordinator.take("RequestTimeout(c2)")
    coordinator.asks("c2")
    assert coordinator.kept("b1", COORDINATOR).transitions["tid2"].producer_id == 201


def test_restarted_coordinator_ignores_answers_to_what_it_asked_before_the_crash() -> None:
    """A coordinator that crashes while it joins loads once: a late answer must not cut off what it appended since."""
    here = World({"clients": 1, "elections": 0}, Faults(crash=2, targets=("b1",)))
    join = ("Crash(b1)", "Restart(b1)", *REGISTERED, "TakeOver(b1,p1)")
    here.take(*join, *join, "JoinEpoch(b1,p1)", "LoadTxnLog(b1,p1)")
    assert not here.kept("b1", COORDINATOR).loaded
    here.take("JoinEpoch(b1,p1)", "LoadTxnLog(b1,p1)")
    assert here.kept("b1", COORDINATOR).loaded == {"p1"}
    assert here.kept("b1", METADATA).broker_epoch == 2


def test_pending_entry_of_a_crashed_coordinator_is_not_committed_later(coordinator: World) -> None:
    """What a coordinator had not got committed before its crash is given up, and its client may try again."""
    coordinator.take("AppendTxnLogEntry(b1,p1)", "Crash(b1)", "Restart(b1)")
    assert len(coordinator.state["log-p1"].waiting) == 1
    coordinator.take(*REGISTERED, "TakeOver(b1,p1)", "JoinEpoch(b1,p1)")
    assert coordinator.state["log-p1"].waiting == ()
    run = run_plain(Tables(coordinator.model), Plan((*INVARIANTS, GET_PID)), RandomStrategy(0))
    assert run.verdict.ok


@pytest.mark.parametrize("moves", [True, False], ids=["moves", "crashes"])
def test_next_coordinator_completes_what_was_prepared(moves: bool) -> None:
    """An abort that was prepared when its coordinator moved or crashed is completed by the one that loads its log."""
    here = World({"clients": 2, "elections": 1}, Faults(crash=1, targets=("b1",)))
    here.take("Init(c1,tid1)")
    here.asks("c1")
    here.commits()
    here.take("ReceiveInitProducerIdResponse(c1,b1)", "AddPartitions(c1,tp1)", "SendAddPartitionsToTxnRequest(c1)")
    here.take("ReceiveAddPartitionsToTxnRequest(b1,c1)")
    here.commits()
    here.take("ReceiveAddPartitionsToTxnResponse(c1,b1)", "Init(c2,tid1)")
    here.asks("c2")
    here.take("AppendTxnLogEntry(b1,p1)", "CommitTxnLogAppend(b1,p1)")
    if moves:
        here.take("ElectLeader(b2,p1)", "BecomeFollower(b1,p1)", "TakeOver(b2,p1)", "JoinEpoch(b1,p1)")
    else:
        here.take("Crash(b1)", "Restart(b1)", *REGISTERED, "TakeOver(b1,p1)")
    now = "b2" if moves else "b1"
    here.take("ReceiveCommitted(b2,p1)", f"JoinEpoch({now},p1)", f"LoadTxnLog({now},p1)")
    assert here.kept(now, COORDINATOR).metadata["tid1"].state is TxnState.PREPARE_ABORT
    here.take(f"CompletePartialTxn({now},tid1)", f"AppendTxnLogEntry({now},p1)")
    here.take(f"CommitTxnLogAppend({now},p1)", f"ReceiveCommitted({now},p1)")
    assert here.kept(now, COORDINATOR).metadata["tid1"].state is TxnState.COMPLETE_ABORT
