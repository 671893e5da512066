"""The controller of the stack: leader, epoch and ISR of every log partition, incarnations of brokers, producer ids.

What it decides about one partition is said in `kafka_proto.replication.quorum`. It never crashes. What it tells brokers
may be late, doubled or lost, and is sent again until they have acknowledged it; a broker asks again for a block of
producer ids until it has one, and the blocks that were lost on the way are used by nobody.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs

from harness.model import Actor, FrozenMap, Kind, Message, Turn
from kafka_proto.replication import quorum
from kafka_proto.replication.messages import AlterPartition, LeaderAndIsr, LeaderAndIsrResponse, RegisterBroker
from kafka_proto.replication.quorum import Quorum
from kafka_proto.replication.records import NIL, Isr
from kafka_proto.transactions.controller import CONTROLLER
from kafka_proto.transactions.decisions import producer_ids
from kafka_proto.transactions.messages import AllocateProducerIdsRequest, AllocateProducerIdsResponse


@attrs.frozen
class ClusterState:
    """What the controller keeps: each partition, elections that nobody needed, the next free block of producer ids."""

    partitions: FrozenMap[str, Quorum]
    next_block: int
    elections: int = 0
    eligible: FrozenMap[str, Isr] = FrozenMap()
    """KIP-966: who left the ISR of a partition as it became too small, and still holds all that is committed."""


class StackController(Actor[ClusterState]):
    """The actor that decides who leads which partition."""

    name = CONTROLLER

    def __init__(
        self, hosts: Mapping[str, tuple[str, ...]], brokers: tuple[str, ...], elections: int, election: str,
        min_insync_replicas: int,
    ) -> None:
        self.brokers = brokers
        self.elections = elections
        self.election = election
        self.min_insync_replicas = min_insync_replicas
        first = {p: first_election(replicas, brokers) for p, replicas in hosts.items()}
        self.initial = ClusterState(FrozenMap(first), len(brokers))

    def step(self, local: ClusterState) -> Iterable[Turn[ClusterState]]:
        """ACTION ElectLeader(b, p): a broker that does not lead the partition is elected and announced to all."""
        if local.elections >= self.elections:
            return
        held = attrs.evolve(local, elections=local.elections + 1)
        for p, q in local.partitions.items():
            for b in self.brokers:
                clean = quorum.elect(q, b)
                if clean is not None:
                    yield self.announced("ElectLeader", (b, p), held, p, clean, kind=Kind.PERTURBATION)
                elif self.election == "unclean" and b != q.leader:
                    unclean = quorum.elect_uncleanly(q, b)
                    if unclean is not None:
                        yield self.announced("ElectUncleanLeader", (b, p), held, p, unclean, kind=Kind.PERTURBATION)

    def on_message(self, local: ClusterState, message: Message) -> Iterable[Turn[ClusterState]]:
        match message:
            case AlterPartition(partition=str(p)):
                q, answer = quorum.alter(local.partitions[p], message)
                yield Turn("ReceiveAlterPartition", (message.source,), self.altered(local, p, q), (answer,))
            case LeaderAndIsrResponse(partition=str(p)):
                q = quorum.acknowledged(local.partitions[p], message)
                yield Turn("ReceiveLeaderAndIsrResponse", (message.source,), with_quorum(local, p, q))
            case RegisterBroker():
                yield self.register(local, message)
            case AllocateProducerIdsRequest():
                start = producer_ids.block(local.next_block)[0] + 1
                block = AllocateProducerIdsResponse(start, producer_ids.BLOCK, source=self.name, dest=message.source)
                after = attrs.evolve(local, next_block=local.next_block + 1)
                yield Turn("ReceiveAllocateProducerIdsRequest", (message.source,), after, (block,))

    def altered(self, local: ClusterState, p: str, q: Quorum) -> ClusterState:
        """Return the state after a leader's proposal."""
        return attrs.evolve(with_quorum(local, p, q), eligible=local.eligible.set(p, self.left(local, p, q)))

    def register(self, local: ClusterState, message: RegisterBroker) -> Turn[ClusterState]:
        """A broker was started again: it leaves each ISR and office; others are elected at once where it led.

        Where it is the last member of an ISR, nobody else may lead, and it does so again in a new epoch.
        """
        b, sent = message.source, []
        for p, before in local.partitions.items():
            q = quorum.register(before, b, message.incarnation)
            if q.incarnations != before.incarnations:
                local, q = self.after_failure(local, p, q, b)
            notified = self.brokers if q.leader_epoch != before.leader_epoch else (b,)
            sent += [self.tell(p, q, broker) for broker in notified]
        return Turn("ReceiveRegisterBroker", (b,), local, tuple(sent))

    def after_failure(self, local: ClusterState, p: str, q: Quorum, b: str) -> tuple[ClusterState, Quorum]:
        """Elect somebody where nobody leads: a member of the ISR, or (KIP-966) who left it last rather than `b`."""
        eligible = self.left(local, p, q) - {b}
        if q.leader is None:
            q = quorum.elect(q, min(q.isr)) or q
            if q.isr == {b} and eligible:
                q = quorum.elect_uncleanly(q, min(eligible)) or q
        kept = local.eligible.set(p, eligible - q.isr)
        return attrs.evolve(with_quorum(local, p, q), eligible=kept), q

    def left(self, local: ClusterState, p: str, q: Quorum) -> Isr:
        """Return who left the ISR of a partition since it is too small, if that matters."""
        if self.election != "elr" or len(q.isr) >= self.min_insync_replicas:
            return frozenset()
        return (local.eligible.get(p, frozenset()) | local.partitions[p].isr) - q.isr

    def announced(
        self, action: str, who: tuple[str, ...], local: ClusterState, p: str, q: Quorum, kind: Kind
    ) -> Turn[ClusterState]:
        """Return the turn after which a partition has another leader, which is announced to all brokers."""
        sent = tuple(self.tell(p, q, b) for b in self.brokers)
        return Turn(action, who, with_quorum(local, p, q), sent, kind=kind)

    def tell(self, p: str, q: Quorum, b: str, again: bool = False) -> LeaderAndIsr:
        return quorum.announcement(q, self.name, b, p, again)

    def timers(self, local: ClusterState) -> tuple[str, ...]:
        return ("ResendLeaderAndIsr",) if any(quorum.deaf(q) for q in local.partitions.values()) else ()

    def timer_fired(self, local: ClusterState, timer: str) -> Iterable[Turn[ClusterState]]:
        """Tell again those who have not said that they heard."""
        again = tuple(self.tell(p, q, b, again=True) for p, q in local.partitions.items() for b in quorum.deaf(q))
        yield Turn(timer, (self.name,), local, again)


def first_election(replicas: tuple[str, ...], brokers: tuple[str, ...]) -> Quorum:
    """Return the state of a partition after the first election, of which every broker has heard."""
    nothing = FrozenMap({b: NIL for b in brokers})
    q = attrs.evolve(quorum.initial(replicas), incarnations=FrozenMap({b: 0 for b in brokers}), heard=nothing)
    elected = quorum.elect(q, replicas[0])
    assert elected is not None
    return attrs.evolve(elected, heard=FrozenMap({b: elected.leader_epoch for b in brokers}))


def with_quorum(local: ClusterState, p: str, q: Quorum) -> ClusterState:
    """Return the controller's state with another state of a partition."""
    return attrs.evolve(local, partitions=local.partitions.set(p, q))
