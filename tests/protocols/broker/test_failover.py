"""The controller that is told of failures: who is in sync, who leads, and who hears of it, step by step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
import pytest

from harness.model import FrozenMap, Local, Message, Turn
from kafka_proto.broker.controller import PARTITION, ClusterController
from kafka_proto.broker.failover import FailoverController, PartitionRules
from kafka_proto.errors import Error
from kafka_proto.replication import messages
from kafka_proto.replication.controller import CONTROLLER

BROKERS = ("b1", "b2", "b3")
P = "t-0"
ALL = "leader>b1 leader>b2 leader>b3"


@attrs.define
class Told:
    """A controller of one partition on three brokers, and what it was told so far."""

    controller: ClusterController
    local: Local

    def by(self, words: str) -> str:
        """Do what the words say; return the partition after it, and who was sent what."""
        turn = self.turn(*words.split())
        self.local = turn.local
        sent = " ".join(sorted(map(shown, turn.sent))).replace(ALL, "all")
        return f"{self.partition()} | {sent}".rstrip(" |")

    def turn(self, verb: str, b: str = "", *more: str) -> Turn[Local]:
        """Return the turn of a failure, an operator's wish, or a message."""
        if verb in ("start", "repeat", "propose"):
            (turn,) = self.controller.on_message(self.local, self.message(verb, b, *more))
            return turn
        controller = self.controller
        assert isinstance(controller, FailoverController)
        match verb:
            case "unfence":
                return controller.unfenced(self.local, b)
            case "elect":
                return controller.elected(self.local, P, b)
            case "force":
                return controller.elected_uncleanly(self.local, P, b)
            case "keep":
                controller.hosts = {P: (b, *more)}
                return controller.reassigned(self.local, P)
            case "least":
                controller.rules = {P: PartitionRules(min_insync_replicas=int(b))}
                return Turn("AlterConfigs", (), self.local)
        return controller.fenced(self.local, b, is_clean=verb == "shut")

    def message(self, verb: str, b: str, *more: str) -> Message:
        """Return what a broker says that was started again, or that leads."""
        q = self.local[PARTITION[P]].quorum
        if verb != "propose":
            return messages.BrokerRegistrationRequest(
                q.broker_epochs[b] + (verb == "start"), source=b, dest=CONTROLLER)
        epochs = FrozenMap({name: q.broker_epochs[name] for name in more})
        return messages.AlterPartitionRequest(
            q.leader_epoch, frozenset(more), q.partition_epoch, epochs, source=b, dest=CONTROLLER, partition=P)

    def partition(self) -> str:
        """Return leader, epoch of leader and partition, ISR, eligible leaders and the last known one."""
        kept = self.local[PARTITION[P]]
        q = kept.quorum
        said = f"{q.leader or 'nobody'} {q.leader_epoch}.{q.partition_epoch} {names(q.isr)}"
        said += f" eligible {names(kept.eligible)}" if kept.eligible else ""
        return said + (f" last {kept.last_known}" if kept.last_known else "")


def names(brokers: frozenset[str]) -> str:
    return ",".join(sorted(brokers)) or "-"


def shown(message: Message) -> str:
    error = getattr(message, "error", None)
    kind = {"LeaderAndIsrRequest": "leader", "AlterPartitionResponse": "isr"}[message.type]
    return f"{kind}>{message.dest}" + (f":{error}" if error not in (None, Error.NONE) else "")


def told(election: str, **rules: Any) -> Told:
    """Return a cluster whose controller is that of simulations, or is told of failures and knows the topic's rules."""
    kind, _, election = election.rpartition(" ")
    controller: ClusterController
    if kind == "simulated":
        controller = ClusterController({P: BROKERS}, BROKERS, 2, election, **rules)
    else:
        controller = FailoverController({P: BROKERS}, BROKERS, election, {P: PartitionRules(**rules)})
    return Told(controller, controller.initial)


STORIES: Mapping[str, tuple[str, dict[str, object], tuple[tuple[str, str], ...]]] = {
    "one after the other goes, and the last member of the ISR is waited for": (
        "clean", {"min_insync_replicas": 2}, (
            ("fence b3", "b1 0.2 b1,b2 | isr>b1"),
            ("fence b3", "b1 0.2 b1,b2"),
            ("unfence b3", "b1 0.2 b1,b2"),
            ("propose b1 b1 b2 b3", "b1 0.3 b1,b2,b3 | isr>b1"),
            ("fence b1", "b2 1.4 b2,b3 | all"),
            ("fence b2", "b3 2.5 b3 | all"),
            ("fence b3", "nobody 3.6 b3 | all"),
            ("unfence b1", "nobody 3.6 b3"),
            ("unfence b3", "b3 4.7 b3 | all"),
            ("unfence b1", "b3 4.7 b3"),
        )),
    "a fenced broker is let into no ISR (KIP-841)": (
        "clean", {}, (
            ("fence b2", "b1 0.2 b1,b3 | isr>b1"),
            ("propose b1 b1 b2 b3", "b1 0.2 b1,b3 | isr>b1:INELIGIBLE_REPLICA"),
            ("propose b1 b1", "b1 0.3 b1 | isr>b1"),
            ("unfence b2", "b1 0.3 b1"),
            ("propose b1 b1 b2 b3", "b1 0.4 b1,b2,b3 | isr>b1"),
        )),
    "a broker that was started again may have lost its tail": (
        "clean", {}, (
            ("start b2", "b1 0.2 b1,b3 | isr>b1 leader>b2"),
            ("propose b1 b1 b2 b3", "b1 0.3 b1,b2,b3 | isr>b1"),
            ("repeat b2", "b1 0.3 b1,b2,b3 | leader>b2"),
            ("start b1", "b2 1.4 b2,b3 | leader>b1 all"),
            ("start b1", "b2 1.4 b2,b3 | leader>b1"),
        )),
    "the last member leads again, whatever it lost": (
        "clean", {}, (
            ("start b2", "b1 0.2 b1,b3 | isr>b1 leader>b2"),
            ("start b3", "b1 0.3 b1 | isr>b1 leader>b3"),
            ("start b1", "b1 2.5 b1 | leader>b1 leader>b1 leader>b1 leader>b2 leader>b2 leader>b3 leader>b3"),
        )),
    "an unclean election takes the first that is there": (
        "clean", {"unclean_leader_election_enable": True}, (
            ("fence b3", "b1 0.2 b1,b2 | isr>b1"),
            ("fence b2", "b1 0.3 b1 | isr>b1"),
            ("fence b1", "nobody 1.4 b1 | all"),
            ("unfence b3", "b3 2.5 b3 | all"),
            ("unfence b1", "b3 2.5 b3"),
        )),
    "but not before an eligible leader": (
        "elr", {"min_insync_replicas": 3, "unclean_leader_election_enable": True}, (
            ("fence b3", "b1 0.2 b1,b2 eligible b3 | isr>b1"),
            ("fence b2", "b1 0.3 b1 eligible b2,b3 | isr>b1"),
            ("fence b1", "nobody 1.4 - eligible b1,b2,b3 last b1 | all"),
            ("unfence b3", "b3 2.5 b3 eligible b1,b2 | all"),
            ("fence b3", "nobody 3.6 - eligible b1,b2,b3 last b3 | all"),
            ("start b2", "b2 4.7 b2 | leader>b1 leader>b2 leader>b2 leader>b3"),
        )),
    "and what was eligible before it is not any more": (
        "elr", {"min_insync_replicas": 1, "unclean_leader_election_enable": True}, (
            ("fence b3", "b1 0.2 b1,b2 | isr>b1"),
            ("fence b2", "b1 0.3 b1 | isr>b1"),
            ("fence b1", "nobody 1.4 - eligible b1 last b1 | all"),
            ("unfence b3", "b3 2.5 b3 | all"),
        )),
    "eligible leaders hold all that is committed (KIP-966)": (
        "elr", {"min_insync_replicas": 2}, (
            ("fence b3", "b1 0.2 b1,b2 | isr>b1"),
            ("fence b2", "b1 0.3 b1 eligible b2 | isr>b1"),
            ("fence b1", "nobody 1.4 - eligible b1,b2 last b1 | all"),
            ("unfence b3", "nobody 1.4 - eligible b1,b2 last b1"),
            ("unfence b2", "b2 2.5 b2 eligible b1 | all"),
            ("unfence b1", "b2 2.5 b2 eligible b1"),
            ("propose b2 b1 b2", "b2 2.6 b1,b2 | isr>b2"),
        )),
    "they are before the last leader, which may lack something": (
        "elr", {"min_insync_replicas": 2}, (
            ("fence b3", "b1 0.2 b1,b2 | isr>b1"),
            ("fence b2", "b1 0.3 b1 eligible b2 | isr>b1"),
            ("fence b1", "nobody 1.4 - eligible b1,b2 last b1 | all"),
            ("start b1", "nobody 1.4 - eligible b2 last b1 | leader>b1"),
            ("fence b1", "nobody 1.4 - eligible b2 last b1"),
            ("start b2", "nobody 1.4 - last b1 | leader>b2"),
            ("unfence b1", "b1 2.5 b1 | all"),
        )),
    "a broker that had shut down is eligible still, for one start": (
        "elr", {"min_insync_replicas": 2}, (
            ("fence b3", "b1 0.2 b1,b2 | isr>b1"),
            ("fence b2", "b1 0.3 b1 eligible b2 | isr>b1"),
            ("shut b1", "nobody 1.4 - eligible b1,b2 last b1 | all"),
            ("start b1", "b1 2.5 b1 eligible b2 | leader>b1 all"),
            ("start b1", "nobody 3.6 - eligible b2 last b1 | leader>b1 all"),
            ("fence b1", "nobody 3.6 - eligible b2 last b1"),
            ("unfence b2", "b2 4.7 b2 | all"),
        )),
    "an operator moves leaders": (
        "elr", {"min_insync_replicas": 2}, (
            ("elect b2", "b2 1.2 b1,b2,b3 | all"),
            ("elect b2", "b2 2.3 b1,b2,b3 | all"),
            ("fence b3", "b2 2.4 b1,b2 | isr>b2"),
            ("fence b1", "b2 2.5 b2 eligible b1 | isr>b2"),
            ("force b3", "b3 3.6 b3 | all"),
        )),
    "replicas go": (
        "elr", {"min_insync_replicas": 3}, (
            ("fence b3", "b1 0.2 b1,b2 eligible b3 | isr>b1"),
            ("keep b1 b2", "b1 1.3 b1,b2 | all"),
            ("keep b2", "b2 2.4 b2 | all"),
        )),
    "in simulations, a broker that was started again leaves the ISR and office": (
        "simulated clean", {"min_insync_replicas": 2}, (
            ("start b2", "b1 1.2 b1,b3 | all"),
            ("repeat b2", "b1 1.2 b1,b3 | leader>b2"),
            ("propose b1 b1 b2 b3", "b1 1.3 b1,b2,b3 | isr>b1"),
            ("start b1", "b2 3.5 b2,b3 | all"),
            ("propose b2 b1 b2 b3", "b2 3.6 b1,b2,b3 | isr>b2"),
            ("start b3", "b2 4.7 b1,b2 | all"),
            ("start b2", "b1 6.9 b1 | all"),
            ("start b1", "b1 8.11 b1 | all"),
            ("start b1", "b1 10.13 b1 | all"),
        )),
    "there, too, who left an ISR as it became too small is eligible": (
        "simulated elr", {"min_insync_replicas": 3}, (
            ("propose b1 b1 b2", "b1 0.2 b1,b2 eligible b3 | isr>b1"),
            ("propose b1 b1", "b1 0.3 b1 eligible b2,b3 | isr>b1"),
            ("start b3", "b1 0.3 b1 eligible b2 | leader>b3"),
            ("start b1", "b2 3.6 b2 | all"),
        )),
    "a larger ISR ends that": (
        "simulated elr", {"min_insync_replicas": 2}, (
            ("propose b1 b1 b2", "b1 0.2 b1,b2 | isr>b1"),
            ("propose b1 b1", "b1 0.3 b1 eligible b2 | isr>b1"),
            ("repeat b2", "b1 0.3 b1 eligible b2 | leader>b2"),
            ("propose b1 b1 b3", "b1 0.4 b1,b3 | isr>b1"),
            ("propose b1 b1 b2 b3", "b1 0.5 b1,b2,b3 | isr>b1"),
            ("propose b1 b1", "b1 0.6 b1 eligible b2,b3 | isr>b1"),
            ("propose b1 b1 b2 b3", "b1 0.7 b1,b2,b3 | isr>b1"),
            ("start b1", "b2 2.9 b2,b3 | all"),
            ("start b2", "b3 4.11 b3 | all"),
            ("start b2", "b3 4.11 b3 | leader>b2"),
        )),
    "the first of them leads if none is in sync": (
        "simulated elr", {"min_insync_replicas": 3}, (
            ("propose b1 b1 b2", "b1 0.2 b1,b2 eligible b3 | isr>b1"),
            ("propose b1 b1", "b1 0.3 b1 eligible b2,b3 | isr>b1"),
            ("start b1", "b2 3.6 b2 eligible b3 | all"),
        )),
    "but members of the ISR are before them": (
        "simulated elr", {"min_insync_replicas": 3}, (
            ("propose b1 b1 b2", "b1 0.2 b1,b2 eligible b3 | isr>b1"),
            ("start b1", "b2 2.4 b2 eligible b3 | all"),
        )),
    "and elsewhere nobody is eligible": (
        "simulated clean", {"min_insync_replicas": 2}, (
            ("propose b1 b1", "b1 0.2 b1 | isr>b1"),
            ("start b1", "b1 2.4 b1 | all"),
        )),
    "fewer in sync may be enough from now on": (
        "elr", {"min_insync_replicas": 3}, (
            ("fence b3", "b1 0.2 b1,b2 eligible b3 | isr>b1"),
            ("fence b2", "b1 0.3 b1 eligible b2,b3 | isr>b1"),
            ("fence b1", "nobody 1.4 - eligible b1,b2,b3 last b1 | all"),
            ("least 1", "nobody 1.4 - eligible b1,b2,b3 last b1"),
            ("unfence b2", "b2 2.5 b2 | all"),
        )),
}


@pytest.mark.parametrize("story", STORIES)
def test_controller_is_told_of_failures(story: str) -> None:
    """After each: leader, epoch, ISR, and who is told; a new leader is announced to all, an ISR to the leader."""
    election, rules, steps = STORIES[story]
    cluster = told(election, **rules)
    assert cluster.partition() == "b1 0.1 b1,b2,b3"
    for done, then in steps:
        assert (done, cluster.by(done)) == (done, then)


def test_controller_tells_brokers_again_until_they_have_heard() -> None:
    """Of a leader by each broker, in its present incarnation; an older answer counts for nothing."""
    cluster = told("clean")
    assert cluster.controller.timers(cluster.local) == ()
    cluster.by("elect b2")
    for b, leader_epoch, broker_epoch, left in (
        ("b1", 1, 0, "b2,b3"), ("b1", 0, 0, "b2,b3"), ("b2", 1, 1, "b2,b3"), ("b2", 1, 0, "b3"), ("b3", 1, 0, ""),
    ):
        assert cluster.controller.timers(cluster.local) == ("ResendLeaderAndIsr",)
        message = messages.LeaderAndIsrResponse(leader_epoch, broker_epoch, source=b, dest=CONTROLLER, partition=P)
        (turn,) = cluster.controller.on_message(cluster.local, message)
        cluster.local = turn.local
        (again,) = cluster.controller.timer_fired(cluster.local, "ResendLeaderAndIsr")
        assert ",".join(message.dest for message in again.sent) == left
    assert cluster.controller.timers(cluster.local) == ()


def test_last_member_of_an_isr_is_in_it_as_what_it_is_now() -> None:
    """The controller notes the broker epoch in which each member was let in; of others it changes nothing."""
    cluster = told("clean")
    for done in ("start b2", "start b3", "start b1", "start b1"):
        cluster.by(done)
    q = cluster.local[PARTITION[P]].quorum
    assert q.isr == {"b1"} and dict(q.entered) == {"b1": 2}


@pytest.mark.parametrize(("election", "may"), [
    ("clean", "ElectLeader b2"), ("elr", "ElectLeader b2"), ("unclean", "ElectLeader b2, ElectUncleanLeader b3"),
])
def test_elections_that_there_may_be(election: str, may: str) -> None:
    """Of any other member of the ISR; where they may be unclean, of any other broker. A model has a few of them."""
    cluster = told(f"simulated {election}", min_insync_replicas=1)
    cluster.by("propose b1 b1 b2")
    for held in range(3):
        turns = list(cluster.controller.step(cluster.local))
        if held == 0:
            assert ", ".join(f"{turn.action} {turn.args[0]}" for turn in turns) == may
        assert bool(turns) == (held < 2)
        cluster.local = turns[0].local if turns else cluster.local
