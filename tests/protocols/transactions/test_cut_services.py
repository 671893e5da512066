"""Brokers of the transaction actors cut off from the controller and the log: they hear late, and follow the spec."""

from __future__ import annotations

import attrs
import pytest

from harness.model import Faults, State, View, find_model
from harness.simulate.runs.plan import everything
from harness.verify.simulated_runs import refine_runs
from kafka_proto.broker.state import METADATA
from kafka_proto.transactions.coordinator_role import COORDINATOR
from kafka_proto.transactions.properties import INVARIANTS, LIVENESS

REPAIRED = "transactions/repaired/actors"
SERVICES = ("controller", "log-p1")
CUTS = tuple((broker, service) for broker in ("b1", "b2") for service in SERVICES)


class Cluster:
    """A state of the repaired actors, and steps by the beginnings of their labels."""

    def __init__(self, faults: Faults) -> None:
        self.model = find_model(REPAIRED).make({"elections": 2}, faults=faults)
        self.state: State = self.model.initial_states()[0]

    def take(self, *labels: str) -> None:
        for label in labels:
            (choice,) = (choice for choice in self.model.choices(self.state) if choice.label.startswith(label))
            self.state = self.model.apply(self.state, choice)

    def offers(self, label: str) -> bool:
        return any(choice.label.startswith(label) for choice in self.model.choices(self.state))


def test_a_broker_that_is_cut_off_from_the_controller_hears_of_elections_in_order_later() -> None:
    """What the controller says meanwhile waits; after the link heals it arrives, the first election first."""
    here = Cluster(Faults(partition=1, targets=("b2",)))
    here.take("Partition(b2,controller)", "ElectLeader(b2,p1)", "ElectLeader(b1,p1)")
    assert here.offers("TakeOver(b1,p1)") is False and here.offers("ReceiveLeaderAndIsrRequest(b1,p1)") is False
    assert here.offers("BecomeFollower(b1,p1)") and not here.offers("TakeOver(b2,p1)")
    here.take("BecomeFollower(b1,p1)", "TakeOver(b1,p1)")
    assert METADATA.of(View(here.state), "b2").known["p1"].leader_epoch == 1
    here.take("Heal(b2,controller)", "TakeOver(b2,p1)")
    assert not here.offers("TakeOver(b2,p1)")
    here.take("BecomeFollower(b2,p1)")
    assert METADATA.of(View(here.state), "b2").known["p1"].leader_epoch == 3


def test_a_leader_that_is_cut_off_from_its_log_commits_after_the_link_heals() -> None:
    """Its entry waits on the link, and so does the client for its answer; nothing is sent again."""
    here = Cluster(Faults(one_way=1, targets=("b1",)))
    here.take("Cut(b1,log-p1)", "Init(c1,tid1)", "SendFindCoordinatorRequest(c1,b1)", "ReceiveFindCoordinatorRequest")
    here.take("ReceiveFindCoordinatorResponse", "SendInitProducerIdRequest(c1)", "ReceiveInitProducerIdRequest(b1,c1)")
    assert not here.offers("AppendTxnLogEntry") and COORDINATOR.of(View(here.state), "b1").transitions
    here.take("Heal(b1,log-p1)", "AppendTxnLogEntry(b1,p1)", "CommitTxnLogAppend(b1,p1)", "ReceiveCommitted(b1,p1)")
    assert here.offers("ReceiveInitProducerIdResponse(c1,b1) InitProducerIdResponse b1->c1 error=OK")


def cut_runs(mode: str, runs: int) -> None:
    """Assert that runs in which any link of a broker may be cut violate nothing and stay in the spec."""
    faults = Faults(partition=2, one_way=2, crash=1, targets=("b1", "b2", "c1"))
    services = attrs.evolve(faults, links=CUTS)
    for budget in (faults, services):
        model = find_model(REPAIRED).make({"elections": 2}, network="fifo", faults=budget)
        plan = attrs.evolve(everything(model), claims=(*INVARIANTS, LIVENESS[0]), steps=100, mode=mode)
        totals = refine_runs(model, plan, range(runs // 2))
        assert totals.failed == 0 and not totals.violated, (totals.seed, totals.explanation)


@pytest.mark.parametrize("mode", ["free", "timed"])
def test_runs_with_cut_services_follow_the_spec(mode: str) -> None:
    """No step outside, with every link of the brokers cut now and then."""
    cut_runs(mode, 20)


@pytest.mark.large
@pytest.mark.parametrize("mode", ["free", "timed"])
def test_a_thousand_runs_with_cut_services_follow_the_spec(mode: str) -> None:
    """The same for a thousand runs, half of them in each mode."""
    cut_runs(mode, 500)
