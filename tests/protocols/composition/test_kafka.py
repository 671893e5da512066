"""Producers and a broker as actors: the published bugs by their schedules, and silence where they are mended."""

from __future__ import annotations

from collections.abc import Iterator

import attrs
import pytest

from harness.model import Faults, Model, State, View
from harness.simulate.plan import everything
from harness.simulate.session import run_plain
from harness.simulate.strategies import Strategies
from harness.simulate.tables import Tables
from kafka_proto.clients.producer import IllegalState, Producer, called, check_call
from kafka_proto.clients.producer import State as Phase
from kafka_proto.clients.verdicts import Verdict, verdict
from kafka_proto.composition import system
from kafka_proto.composition.producer import CALLS
from kafka_proto.requests import EndTxnRequest, Error, ProduceRequest

(KAFKA,) = system().models
ASIDE = ("Delay", "Drop", "Duplicate", "Release", "RequestTimeout", "DeliveryTimeout", "TransactionTimeout", *CALLS)


class Cluster:
    """A model driven by hand: commands, and whatever happens by itself until the producer waits for the next one."""

    def __init__(self, version: str, family: str, partitions: int = 2) -> None:
        settings = {"version": version, "family": family}
        self.model: Model = KAFKA.make({"partitions": partitions}, settings, "fifo", Faults(delay=1))
        self.state: State = self.model.initial_states()[0]
        self.steps = 0

    def take(self, beginning: str) -> None:
        """Take the first step whose label begins so."""
        choice = next(choice for choice in self.model.choices(self.state) if choice.label.startswith(beginning))
        self.state, self.steps = self.model.apply(self.state, choice), self.steps + 1

    def settle(self) -> None:
        """Let happen what does so by itself."""
        while True:
            ahead = [choice for choice in self.model.choices(self.state) if not choice.label.startswith(ASIDE)]
            if not ahead:
                return
            self.state, self.steps = self.model.apply(self.state, ahead[0]), self.steps + 1

    def call(self, *commands: str) -> None:
        """Make calls of the application one after the other, each until it is over."""
        for command in commands:
            self.take(command)
            self.settle()

    def violated(self) -> Iterator[str]:
        """Yield the invariants that do not hold now."""
        for prop in self.model.properties:
            if prop.is_safety and prop.reason(View(self.state)) is not None:
                yield prop.name

    @property
    def producer(self) -> Producer:
        """What the producer is now."""
        return self.state["c1"].producer  # type: ignore[no-any-return]


@pytest.mark.parametrize(("version", "family", "violated"), [
    ("kip-360", "rdkafka", ["AbortedIsInvisible"]), ("kip-360", "java35", ["AbortedIsInvisible"]),
    ("kip-890-part-1", "java39", ["AbortedIsInvisible"]), ("kip-890/4.4", "rdkafka", ["AbortedIsInvisible"]),
    ("kip-890/4.4/level-1", "java39", ["AbortedIsInvisible"]), ("kip-890", "tv2", []), ("kip-890/4.4", "tv2", []),
])
def test_tx_01_late_end_commits_a_part_of_a_later_transaction(version: str, family: str, violated: list[str]) -> None:
    """KAFKA-17754: on every broker with old clients, as real ones show it; KIP-890 part 2 fences the late copy."""
    cluster = Cluster(version, family)
    cluster.call("InitTransactions", "BeginTransaction", "Send(c1,T-0)")
    cluster.take("CommitTransaction")
    cluster.take("Ask(c1,EndTxn)")
    cluster.take("Delay")
    cluster.take("RequestTimeout")
    cluster.settle()
    cluster.call("BeginTransaction", "Send(c1,T-0)")
    cluster.take("Release")
    cluster.settle()
    cluster.call("Send(c1,T-1)", "AbortTransaction")
    assert cluster.producer.state is Phase.READY
    assert list(cluster.violated()) == violated


@pytest.mark.parametrize(("version", "family", "violated"), [
    ("kip-360", "rdkafka", ["NothingHangs"]), ("kip-890-part-1", "java39", []), ("kip-890/4.4", "java39", []),
    ("kip-890/4.4", "tv2", []),
])
def test_tx_02_late_batch_opens_a_transaction_that_nobody_ends(version: str, family: str, violated: list[str]) -> None:
    """KAFKA-14402: the abort overtakes a batch; from KIP-890 part 1 on the leader asks the coordinator first."""
    cluster = Cluster(version, family, partitions=1)
    cluster.call("InitTransactions", "BeginTransaction", "Send(c1,T-0)")
    cluster.take("Send(c1,T-0)")
    cluster.take("Ask(c1,Produce)")
    cluster.take("Delay")
    cluster.take("DeliveryTimeout")
    assert cluster.producer.state is Phase.ABORTABLE_ERROR
    cluster.call("AbortTransaction")
    assert cluster.producer.state is Phase.READY
    cluster.take("Release")
    cluster.settle()
    assert list(cluster.violated()) == violated


@pytest.mark.parametrize(("version", "family"), [
    ("kip-360", "java35"), ("kip-890-part-1", "java39"), ("kip-890/4.4", "tv2"), ("kip-890", "tv2"),
])
def test_nothing_goes_wrong_without_faults(version: str, family: str) -> None:
    """Two producers, elections of the coordinator, retries: commits and aborts are what they say."""
    model = KAFKA.make({"producers": 2, "elections": 2}, {"version": version, "family": family}, "fifo")
    plan, tables, strategies = everything(model), Tables(model), Strategies("random")
    runs = [run_plain(tables, plan, strategies.run(seed)) for seed in range(25)]  # type: ignore[arg-type]
    assert [run.violations for run in runs if run.violations] == [] and not any(run.error for run in runs)
    assert set().union(*(run.witnessed for run in runs)) == {"AcknowledgedCommit", "AcknowledgedAbort"}


def test_calls_that_kafkas_producer_refuses() -> None:
    """One sentence each: before init, outside a transaction, two at once, after an error."""
    fresh = Producer()
    ready = attrs.evolve(fresh, state=Phase.READY)
    open_ = called(ready, "begin_transaction")
    for producer, call, said in (
        (fresh, "begin_transaction", "before init_transactions"), (ready, "init_transactions", "was called before"),
        (ready, "send", "cannot send outside a transaction"), (open_, "begin_transaction", "cannot begin"),
        (ready, "commit_transaction", "cannot commit without"), (ready, "abort_transaction", "cannot abort without"),
        (attrs.evolve(ready, state=Phase.ABORTABLE_ERROR), "commit_transaction", "call abort_transaction first"),
        (attrs.evolve(ready, state=Phase.FATAL_ERROR), "abort_transaction", "after a fatal error"),
    ):
        with pytest.raises(IllegalState, match=said):
            check_call(producer, call)
    check_call(attrs.evolve(ready, state=Phase.ABORTABLE_ERROR), "abort_transaction")


def test_verdicts_of_clients() -> None:
    """The same code means one thing of a coordinator's request and another of Produce."""
    end, produce = (EndTxnRequest(4, "t", 1, 0, True), object.__new__(ProduceRequest))
    assert verdict(end, Error.INVALID_PRODUCER_EPOCH) is Verdict.FATAL
    assert verdict(produce, Error.INVALID_PRODUCER_EPOCH) is Verdict.ABORTABLE
    assert verdict(end, Error.CONCURRENT_TRANSACTIONS) is verdict(produce, Error.NOT_ENOUGH_REPLICAS) is Verdict.RETRY
    assert verdict(end, Error.NOT_COORDINATOR) is Verdict.LOOK_UP and verdict(end, Error.NONE) is Verdict.DONE
