"""The stack: silent where it should be, flawed where it must be, the same in both runtimes, and step by step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from support.paths import TRAILS

from harness.model import NO_FAULTS, Faults, Scenario, State, View, find_model, find_scenario, model_of, scenarios
from harness.record import Recorder, read_trail
from harness.record.references import References
from harness.simulate.runs.plan import Plan, plan_of
from harness.simulate.runs.run import Run
from harness.simulate.runs.session import run_plain
from harness.simulate.runtimes.trio_runtime import replay_on_trio
from harness.simulate.states.tables import Tables
from harness.simulate.strategies.strategy import PctStrategy, RandomStrategy
from harness.simulate.trails.replay import replay_plain
from kafka_proto.broker.controller import PARTITION
from kafka_proto.broker.logs.replicated import REPLICA, log_of
from kafka_proto.broker.state import METADATA
from kafka_proto.replication.partition import ReplicaState
from kafka_proto.requests.transaction_state import TxnState
from kafka_proto.stack.properties import INVARIANTS, LIVENESS
from kafka_proto.transactions.coordinator_role import COORDINATOR, Coordinator
from kafka_proto.transactions.messages import Error, InitProducerIdResponse
from kafka_proto.transactions.records import ClientState, TxnRecord

TRAIL = TRAILS / "gaps" / "refused-entry-survives.trail.jsonl"
ROWS = [scenario for scenario in scenarios() if scenario.model == "cluster"]
SILENT = [scenario for scenario in ROWS if scenario.expected is None]
FAILING = [scenario for scenario in ROWS if scenario.expected is not None]
STRATEGIES = {"random": RandomStrategy, "pct": PctStrategy}
FEW, MANY = 20, 400


def runs_of(scenario: Scenario, strategy: str, count: int) -> Iterator[Run]:
    """Yield runs of a scenario by one strategy."""
    tables, plan = Tables(model_of(scenario)), plan_of(scenario)
    for seed in range(count):
        yield run_plain(tables, plan, STRATEGIES[strategy](seed))


def assert_silent(scenario: Scenario, strategy: str, count: int) -> None:
    for run in runs_of(scenario, strategy, count):
        assert run.verdict.ok, (scenario.name, strategy, run.trail.seed, run.verdict)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("scenario", SILENT, ids=lambda scenario: scenario.name)
def test_scenario_of_the_stack_is_silent(scenario: Scenario, strategy: str) -> None:
    """Whatever a scenario lets happen, what it claims holds in every run, the fair ending included."""
    assert_silent(scenario, strategy, FEW // 2)


@pytest.mark.large
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("scenario", SILENT, ids=lambda scenario: scenario.name)
def test_scenario_of_the_stack_is_silent_for_long(scenario: Scenario, strategy: str) -> None:
    """So it is in many more runs."""
    assert_silent(scenario, strategy, MANY)


@pytest.mark.parametrize("scenario", FAILING, ids=lambda scenario: scenario.name)
def test_scenario_that_loses_records_is_found(scenario: Scenario) -> None:
    """Where the log may lose what was acknowledged, a run does, says so, and replays; its twin is among the silent."""
    run = next(run for run in runs_of(scenario, "random", FEW) if not run.verdict.ok)
    assert run.verdict.violated == scenario.expected == "AckedTransactionsSurvive"
    assert run.verdict.reason is not None and "its log lacks what c1 was told to be done" in run.verdict.reason
    assert replay_plain(run.trail).verdict == run.verdict
    assert scenario.repaired in {twin.name for twin in SILENT}


@pytest.mark.parametrize("scenario", FAILING, ids=lambda scenario: scenario.name)
def test_scenario_that_loses_records_differs_from_its_twin_in_one_thing(scenario: Scenario) -> None:
    """What loses records is one setting or one size."""
    assert scenario.repaired is not None
    twin = find_scenario(scenario.repaired)
    assert twin is not None and twin.faults == scenario.faults and twin.claims == scenario.claims
    one, other = model_of(scenario), model_of(twin)
    assert len({*one.settings.items()} - {*other.settings.items()} | {*one.sizes.items()} - {*other.sizes.items()}) == 1


def test_names_of_scenarios_are_unique() -> None:
    """No two scenarios of any protocol share a name: it is by its name that one is asked for."""
    names = [scenario.name for scenario in scenarios()]
    assert len(names) == len(set(names)) and len(ROWS) == 15


@pytest.mark.parametrize("scenario", ROWS, ids=lambda scenario: scenario.name)
def test_histories_of_the_stack_are_equal_in_both_runtimes(scenario: Scenario) -> None:
    """The plain and the trio runtime make the same history of one trail."""
    tables, plan = Tables(model_of(scenario)), plan_of(scenario)
    for name, strategy in STRATEGIES.items():
        recorder = Recorder()
        run = run_plain(tables, plan, strategy(7), recorder)
        again = replay_on_trio(run.trail, Recorder())
        assert run.digest is not None and again.digest == run.digest, (scenario.name, name)
        assert again.verdict == run.verdict


class World:
    """The stack and the state it is in: takes steps by the beginning of their labels."""

    def __init__(
        self, sizes: Mapping[str, int], settings: Mapping[str, str] | None = None, faults: Faults = NO_FAULTS
    ) -> None:
        self.model = find_model("cluster").make(sizes, settings, faults=faults)
        self.state: State = self.model.initial_states()[0]
        self.taken: list[str] = []
        self.references = References()

    def take(self, *labels: str) -> None:
        """Take steps; each label must be the beginning of exactly one that is possible."""
        for label in map(self.references.full, labels):
            (choice,) = (c for c in self.model.choices(self.state) if c.label.startswith(label))
            self.state = self.model.apply(self.state, choice)
            self.taken.append(choice.step.name)
            self.references.note(len(self.taken), choice.step.sent)

    def settle(self, *without: str) -> None:
        """Take every step of the protocol that needs no timer, but those whose labels begin so, until none is left."""
        while True:
            due = [
                c for c in self.model.choices(self.state)
                if c.step.kind == "step" and not any(c.label.startswith(label) for label in without)
            ]
            if not due:
                return
            self.state = self.model.apply(self.state, due[0])
            self.taken.append(due[0].step.name)

    def coordinator(self, b: str) -> Coordinator:
        return COORDINATOR.of(View(self.state), b)

    def replica(self, b: str) -> ReplicaState:
        return REPLICA["p1"].of(View(self.state), b)

    def log(self, b: str) -> tuple[TxnRecord, ...]:
        return log_of(self.replica(b))

    def answer(self, c: str) -> Error:
        """Return the code of the InitProducerIdResponse that is on its way to a client."""
        contents = self.model.network.contents(self.state[f"inbox[{c}]"])
        (response,) = (message for message in contents if isinstance(message, InitProducerIdResponse))
        return response.error

    def asks(self, c: str, b: str) -> None:
        """Let a client look b up at b itself, and send it an InitProducerIdRequest, which b receives."""
        self.take(f"SendFindCoordinatorRequest({c},{b})", f"ReceiveFindCoordinatorRequest({b},{c})")
        self.take(f"ReceiveFindCoordinatorResponse({c},{b})", f"SendInitProducerIdRequest({c})")
        self.take(f"ReceiveInitProducerIdRequest({b},{c})")


@pytest.fixture
def here() -> World:
    """A world of two clients with one id and three brokers, of which b1 leads."""
    return World({"clients": 2, "elections": 2})


def test_client_is_answered_when_the_high_watermark_passes_its_entry(here: World) -> None:
    """An InitProducerIdRequest is answered when all of the ISR have its entry and have said so, and not before."""
    here.take("Init(c1,tid1)")
    here.asks("c1", "b1")
    fetched = "ReceiveFetchRequest(b1,b3)"
    here.settle(fetched)
    assert [len(here.log(b)) for b in ("b1", "b2", "b3")] == [1, 1, 1]
    assert here.state["c1"].record.producer_id == -1 and "tid1" in here.coordinator("b1").transitions
    here.take(fetched)
    assert here.answer("c1") is Error.OK and not here.coordinator("b1").transitions
    assert here.replica("b1").high_watermark == 1


def test_new_coordinator_says_that_it_is_loading_until_its_log_is_committed(here: World) -> None:
    """Who was elected refuses clients until its high watermark has reached the end of its log, and it has loaded it."""
    here.take("Init(c1,tid1)")
    here.asks("c1", "b1")
    here.take("ReceiveFetchResponse(b2,b1)", "ElectLeader(b2,p1)", "ReceiveLeaderAndIsrRequest(b2,p1)")
    here.take("Init(c2,tid1)")
    here.asks("c2", "b2")
    assert here.answer("c2") is Error.COORDINATOR_LOAD_IN_PROGRESS
    here.settle("LoadTxnLog")
    assert here.replica("b2").high_watermark == 1 and not here.coordinator("b2").loaded
    here.take("LoadTxnLog(b2,p1)")
    assert here.coordinator("b2").metadata["tid1"].producer_epoch == 0


def test_deposed_coordinator_resigns_and_refuses_who_waits(here: World) -> None:
    """A coordinator that hears of its successor forgets what it knew, and tells clients to look for another."""
    here.take("Init(c1,tid1)")
    here.asks("c1", "b1")
    before = here.coordinator("b1")
    assert before.metadata and before.transitions and before.loaded == {"p1"}
    here.take("ElectLeader(b2,p1)", "ReceiveLeaderAndIsrRequest(b1,p1)")
    after = here.coordinator("b1")
    assert not (after.metadata or after.transitions or after.loaded)
    assert METADATA.of(View(here.state), "b1").known["p1"].leader == "b2"
    assert here.answer("c1") is Error.NOT_COORDINATOR


def test_next_coordinator_completes_what_was_prepared(here: World) -> None:
    """An abort that was prepared, but not known to be committed when its coordinator was deposed, is completed."""
    here.take("Init(c1,tid1)")
    here.asks("c1", "b1")
    here.settle()
    here.take("AddPartitions(c1,tp1)")
    here.settle()
    assert here.state["c1"].record.partitions == {"tp1"}
    here.take("Init(c2,tid1)")
    here.asks("c2", "b1")
    here.take("ReceiveFetchResponse(b2,b1)", "ElectLeader(b2,p1)")
    here.settle("CompletePartialTxn")
    assert here.coordinator("b2").metadata["tid1"].state is TxnState.PREPARE_ABORT
    here.take("CompletePartialTxn(b2,tid1)")
    here.settle()
    assert here.coordinator("b2").metadata["tid1"].state is TxnState.COMPLETE_ABORT
    here.take("RetryBackoff(c2)")
    here.settle()
    assert (here.state["c2"].record.state, here.state["c2"].record.producer_epoch) == (ClientState.HAS_PID, 2)


CRASHES = {"flushed": 1, "unflushed": 0, "lost": 0}


@pytest.mark.parametrize("disk", CRASHES)
def test_disk_says_what_a_crash_leaves(disk: str) -> None:
    """A record that a follower has not flushed is lost with a crash, and so is all where the disk is."""
    here = World({"clients": 1, "elections": 0}, {"disk": disk}, Faults(crash=1, targets=("b2",)))
    here.take("Init(c1,tid1)")
    here.asks("c1", "b1")
    here.take("ReceiveFetchResponse(b2,b1)")
    here.take("Crash(b2)", "Restart(b2)")
    assert len(here.log("b2")) == CRASHES[disk]
    assert METADATA.of(View(here.state), "b2").broker_epoch == here.replica("b2").broker_epoch == 1


def test_restarted_broker_leaves_the_isr_and_comes_back() -> None:
    """A broker that was started again is out of the ISR until it has caught up, and its old leader goes on without."""
    here = World({"clients": 1, "elections": 0}, {"disk": "lost"}, Faults(crash=1, targets=("b2",)))
    here.take("Init(c1,tid1)")
    here.asks("c1", "b1")
    here.settle()
    here.take("Crash(b2)", "Restart(b2)", "RegisterBroker(b2)", "ReceiveBrokerRegistrationRequest(b2)")
    assert PARTITION["p1"].of(View(here.state), "controller").quorum.isr == {"b1", "b3"}
    here.settle()
    assert PARTITION["p1"].of(View(here.state), "controller").quorum.isr == {"b1", "b2", "b3"}
    assert here.log("b2") == here.log("b1") != ()


def test_entry_survives_though_its_client_was_told_not_coordinator() -> None:
    """The gap of docs/gaps.md: the refused entry commits under the next leader, and the retry gets the next epoch."""
    trail = read_trail(TRAIL)
    run = replay_plain(trail)
    assert run.verdict.ok and run.witnessed >= {"RefusedEntrySurvives", "CoordinatorResigned"}
    here = World(trail.sizes, trail.settings)
    here.take(*(chosen.label for chosen in trail.choices[:11]))
    assert here.state["c1"].record.last_error is Error.NOT_COORDINATOR
    (refused,) = here.log("b1")
    here.take(*(chosen.label for chosen in trail.choices[11:]))
    client = here.state["c1"].record
    assert here.log("b2")[0] == refused and here.replica("b2").high_watermark == 2
    was = (refused.transition.producer_id, refused.transition.producer_epoch)
    assert was == (client.producer_id, client.producer_epoch - 1) == (1, 0)


def test_steps_of_the_stack_have_different_labels() -> None:
    """A label names one step: no two that are possible in a state share theirs, or trails would be ambiguous."""
    faults = Faults(drop=1, duplicate=1, delay=1, crash=1, targets=("b1",))
    model = find_model("cluster").make({"txn-log-partitions": 2, "transactional-ids": 2}, faults=faults)
    run = run_plain(Tables(model), Plan(INVARIANTS, steps=120, timeouts=9), RandomStrategy(3))
    state: Any = model.initial_states()[0]
    for chosen in run.trail.choices:
        choices = model.choices(state)
        assert len({choice.label for choice in choices}) == len(choices)
        state = model.apply(state, next(choice for choice in choices if choice.label == chosen.label))


def test_stack_runs_on_as_long_as_one_likes() -> None:
    """With its work done the stack repeats itself: a long run visits few states, and logs stay as long as they are."""
    tables = Tables(find_model("cluster").make({"elections": 2}))
    run = run_plain(tables, Plan((*INVARIANTS, LIVENESS[0]), steps=20_000), RandomStrategy(1))
    assert run.verdict.ok and len(run.trail.choices) >= 20_000
    assert len({chosen.label for chosen in run.trail.choices[2_000:]}) < 100
