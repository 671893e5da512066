"""The controller of the actor composition: elects coordinators, tells the brokers, hands out blocks of producer ids.

It is one atomic service (the specs abstract KRaft away): never crashed, reached over reliable links.
"""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from harness.model import Actor, FrozenMap, Kind, Message, Turn
from kafka_proto.transactions.decisions import producer_ids
from kafka_proto.transactions.messages import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
    LeaderAndIsr,
    RegisterBroker,
)
from kafka_proto.transactions.records import LogMetadata

CONTROLLER = "controller"


@attrs.frozen
class Quorum:
    """The controller's state: the leader and epoch of each partition, elections held, the next free block."""

    leaders: FrozenMap[str, LogMetadata]
    next_block: int
    elections: int = 0


class Controller(Actor[Quorum]):
    """The actor that decides who coordinates which partition of the transaction log."""

    name = CONTROLLER

    def __init__(self, leaders: dict[str, str], brokers: tuple[str, ...], elections: int, election: str) -> None:
        self.brokers = brokers
        self.elections = elections
        self.election = election
        self.initial = Quorum(FrozenMap({p: LogMetadata(1, b) for p, b in leaders.items()}), len(brokers))

    def step(self, local: Quorum) -> Iterable[Turn[Quorum]]:
        """ACTION ElectLeader(b, p): a broker that does not lead the partition is elected and announced to all."""
        if local.elections >= self.elections:
            return
        for p, known in local.leaders.items():
            for b in self.brokers:
                if b != known.leader:
                    now = LogMetadata(known.cepoch + 1, b)
                    after = attrs.evolve(
                        local, leaders=local.leaders.set(p, now), elections=local.elections + 1
                    )
                    sent = tuple(self.tell(p, now, broker) for broker in self.brokers)
                    yield Turn(self.election, (b, p), after, sent, kind=Kind.PERTURBATION)

    def on_message(self, local: Quorum, message: Message) -> Iterable[Turn[Quorum]]:
        match message:
            case RegisterBroker():
                sent = tuple(self.tell(p, known, message.source) for p, known in local.leaders.items())
                yield Turn("ReceiveRegisterBroker", (message.source,), local, sent)
            case AllocateProducerIdsRequest():
                start = producer_ids.block(local.next_block)[0] + 1
                block = AllocateProducerIdsResponse(start, producer_ids.BLOCK, source=self.name, dest=message.source)
                after = attrs.evolve(local, next_block=local.next_block + 1)
                yield Turn("ReceiveAllocateProducerIdsRequest", (message.source,), after, (block,))

    def tell(self, partition: str, known: LogMetadata, broker: str) -> LeaderAndIsr:
        """Return the message that tells a broker who leads a partition."""
        return LeaderAndIsr(partition, known.leader, known.cepoch, source=self.name, dest=broker)
