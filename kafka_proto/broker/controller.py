"""The controller: leader, epoch and ISR of every log partition, and the incarnations of brokers.

What it decides about one partition is said in `kafka_proto.replication.quorum`. It never crashes. What it tells brokers
may be late, doubled or lost, and is sent again until they have acknowledged it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs

from harness.model import Actor, FrozenMap, Kind, Local, Message, Part, Parts, Turn, absent_if_none
from kafka_proto.replication import messages, quorum
from kafka_proto.replication.controller import CONTROLLER
from kafka_proto.replication.quorum import Quorum
from kafka_proto.replication.records import NIL, Isr


@attrs.frozen
class Elections:
    """How many unneeded elections were held."""

    held: int = 0


@attrs.frozen
class Partition:
    """What the controller keeps of a partition."""

    quorum: Quorum
    eligible: Isr = frozenset()
    """KIP-966: the brokers that left the ISR as it became too small, and still hold all that is committed."""
    last_known: str | None = attrs.field(default=None, metadata=absent_if_none())
    """KIP-966: who led last, while nobody leads and nobody is in sync."""


ELECTIONS = Part("elections", Elections())
PARTITION = Parts("partition", lambda: Partition(quorum.initial(())))


class ClusterController(Actor[Local]):
    """The actor that elects the leaders of partitions."""

    name = CONTROLLER

    def __init__(
        self, hosts: Mapping[str, tuple[str, ...]], brokers: tuple[str, ...], elections: int, election: str,
        min_insync_replicas: int, broker_epochs: Mapping[str, int] = FrozenMap(),
    ) -> None:
        local = Local.first(self.name, ELECTIONS, *(PARTITION[p] for p in hosts))
        for p, replicas in hosts.items():
            local = local.put(PARTITION[p], Partition(first_election(replicas, brokers, broker_epochs)))
        self.initial = local
        self.brokers = brokers
        self.elections = elections
        self.partitions = tuple(hosts)
        self.election = election
        self.min_insync_replicas = min_insync_replicas

    def step(self, local: Local) -> Iterable[Turn[Local]]:
        """ACTION ElectLeader(b, p): a broker that does not lead the partition is elected and announced to all."""
        held = local[ELECTIONS].held
        return self.elects(local.put(ELECTIONS, Elections(held + 1))) if held < self.elections else ()

    def elects(self, local: Local) -> Iterable[Turn[Local]]:
        """Yield the elections that there may be."""
        for p in self.partitions:
            q = local[PARTITION[p]].quorum
            for b in self.brokers:
                clean = quorum.elect(q, b)
                if clean is not None:
                    yield self.announced("ElectLeader", (b, p), local, p, clean)
                elif self.election == "unclean" and b != q.leader:
                    unclean = quorum.elect_uncleanly(q, b)
                    if unclean is not None:
                        yield self.announced("ElectUncleanLeader", (b, p), local, p, unclean)

    def on_message(self, local: Local, message: Message) -> Iterable[Turn[Local]]:
        match message:
            case messages.AlterPartitionRequest(partition=str(p)):
                q, answer = quorum.alter(local[PARTITION[p]].quorum, message)
                after = local.put(PARTITION[p], Partition(q, self.left(local, p, q)))
                yield Turn("ReceiveAlterPartitionRequest", (message.source,), after, (answer,))
            case messages.LeaderAndIsrResponse(partition=str(p)):
                q = quorum.acknowledged(local[PARTITION[p]].quorum, message)
                yield Turn("ReceiveLeaderAndIsrResponse", (message.source,), with_quorum(local, p, q))
            case messages.BrokerRegistrationRequest():
                yield self.register(local, message)

    def register(self, local: Local, message: messages.BrokerRegistrationRequest) -> Turn[Local]:
        """A broker was started again: it leaves each ISR and office; others are elected at once where it led.

        If it is the last member of an ISR, no other broker may lead, and it does so again in a new epoch.
        """
        b, sent = message.source, list[Message]()
        for p in self.partitions:
            before = local[PARTITION[p]].quorum
            q = quorum.register(before, b, message.broker_epoch)
            if q.broker_epochs != before.broker_epochs:
                now = self.after_failure(q, self.left(local, p, q) - {b}, b)
                local, q = local.put(PARTITION[p], now), now.quorum
            notified = self.brokers if q.leader_epoch != before.leader_epoch else (b,)
            sent += [self.tell(p, q, broker) for broker in notified]
        return Turn("ReceiveBrokerRegistrationRequest", (b,), local, tuple(sent))

    def after_failure(self, q: Quorum, eligible: Isr, b: str) -> Partition:
        """Elect a leader if a partition has none: a member of the ISR, or (KIP-966) the last to leave it, not `b`."""
        if q.leader is None:
            q = quorum.elect(q, min(q.isr)) or q
            if q.isr == {b} and eligible:
                q = quorum.elect_uncleanly(q, min(eligible)) or q
        return Partition(q, eligible - q.isr)

    def least(self, p: str) -> int:
        """Return how many must be in sync for a write with `acks=all`."""
        return self.min_insync_replicas

    def left(self, local: Local, p: str, q: Quorum) -> Isr:
        """Return the brokers that left the ISR of a partition since it is too small, if that matters."""
        if self.election != "elr" or len(q.isr) >= self.least(p):
            return frozenset()
        before = local[PARTITION[p]]
        return (before.eligible | before.quorum.isr) - q.isr

    def announced(self, action: str, who: tuple[str, ...], local: Local, p: str, q: Quorum) -> Turn[Local]:
        """Return the turn after which a partition has another leader, which is announced to all brokers."""
        sent = tuple(self.tell(p, q, b) for b in self.brokers)
        return Turn(action, who, with_quorum(local, p, q), sent, kind=Kind.PERTURBATION)

    def tell(self, p: str, q: Quorum, b: str, again: bool = False) -> messages.LeaderAndIsrRequest:
        return quorum.announcement(q, self.name, b, p, again)

    def timers(self, local: Local) -> tuple[str, ...]:
        deaf = (quorum.deaf(local[PARTITION[p]].quorum) for p in self.partitions)
        return ("ResendLeaderAndIsr",) if any(deaf) else ()

    def timer_fired(self, local: Local, timer: str) -> Iterable[Turn[Local]]:
        """Resend to brokers that have not acknowledged."""
        known = ((p, local[PARTITION[p]].quorum) for p in self.partitions)
        yield Turn(timer, (self.name,), local, tuple(
            self.tell(p, q, b, again=True) for p, q in known for b in quorum.deaf(q)
        ))


def first_election(
    replicas: tuple[str, ...], brokers: tuple[str, ...], broker_epochs: Mapping[str, int] = FrozenMap()
) -> Quorum:
    """Return the state of a partition after the first election; every broker has heard of it.

    `broker_epochs` are those of brokers that were started again before.
    """
    nothing = FrozenMap({b: NIL for b in brokers})
    epochs = FrozenMap({b: broker_epochs.get(b, 0) for b in brokers})
    q = attrs.evolve(quorum.initial(replicas), broker_epochs=epochs, heard=nothing)
    elected = quorum.elect(q, replicas[0])
    assert elected is not None
    return attrs.evolve(elected, heard=FrozenMap({b: elected.leader_epoch for b in brokers}))


def with_quorum(local: Local, p: str, q: Quorum) -> Local:
    """Return the controller's state with another state of a partition."""
    return local.put(PARTITION[p], attrs.evolve(local[PARTITION[p]], quorum=q))
