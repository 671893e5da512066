"""The controller of the actor composition: elects coordinators, tells the brokers, hands out blocks of producer ids.

It is one atomic service (the specs abstract KRaft away): never crashed, reached over reliable links.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from harness.model import Actor, Kind, Local, Message, Part, Parts, Turn, Value
from kafka_proto.replication.known import NOBODY, LeaderAndEpoch
from kafka_proto.transactions.decisions import producer_ids
from kafka_proto.transactions.messages import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
    BrokerRegistrationRequest,
    LeaderAndIsrRequest,
)

CONTROLLER = "controller"


@attrs.frozen
class Elections:
    """How many elections that nobody needed were held."""

    held: int = 0


@attrs.frozen
class ProducerIdBlocks:
    """The next free block of producer ids."""

    next_block: int = 0


ELECTIONS = Part("elections", Elections())
BLOCKS = Part("producer_ids", ProducerIdBlocks())
LEADER = Parts("leader", lambda: NOBODY)
"""By partition: its leader and epoch."""


class ElectingController(Actor[Local]):
    """What controllers of coordinators have in common: elections that nobody needed, and blocks of producer ids."""

    name = CONTROLLER

    def __init__(self, partitions: Mapping[Part[Any], Value], brokers: tuple[str, ...], elections: int) -> None:
        self.brokers = brokers
        self.elections = elections
        local = Local.first(self.name, ELECTIONS, BLOCKS, *partitions)
        for part, value in {BLOCKS: ProducerIdBlocks(len(brokers)), **partitions}.items():
            local = local.put(part, value)
        self.initial = local

    def step(self, local: Local) -> Iterable[Turn[Local]]:
        """ACTION ElectLeader(b, p): a broker that does not lead the partition is elected and announced to all."""
        held = local[ELECTIONS].held
        return self.elects(local.put(ELECTIONS, Elections(held + 1))) if held < self.elections else ()

    def elects(self, local: Local) -> Iterable[Turn[Local]]:
        """Yield the elections that there may be."""
        raise NotImplementedError

    def on_message(self, local: Local, message: Message) -> Iterable[Turn[Local]]:
        if isinstance(message, AllocateProducerIdsRequest):
            number = local[BLOCKS].next_block
            start, after = producer_ids.block(number)[0] + 1, local.put(BLOCKS, ProducerIdBlocks(number + 1))
            block = AllocateProducerIdsResponse(start, producer_ids.BLOCK, source=self.name, dest=message.source)
            yield Turn("ReceiveAllocateProducerIdsRequest", (message.source,), after, (block,))


class Controller(ElectingController):
    """The actor that decides who coordinates which partition of the transaction log."""

    def __init__(self, leaders: dict[str, str], brokers: tuple[str, ...], elections: int, election: str) -> None:
        super().__init__({LEADER[p]: LeaderAndEpoch(1, b) for p, b in leaders.items()}, brokers, elections)
        self.partitions = tuple(leaders)
        self.election = election

    def elects(self, local: Local) -> Iterable[Turn[Local]]:
        for p in self.partitions:
            known = local[LEADER[p]]
            for b in self.brokers:
                if b != known.leader:
                    now = LeaderAndEpoch(known.leader_epoch + 1, b)
                    sent = tuple(self.tell(p, now, broker) for broker in self.brokers)
                    yield Turn(self.election, (b, p), local.put(LEADER[p], now), sent, kind=Kind.PERTURBATION)

    def on_message(self, local: Local, message: Message) -> Iterable[Turn[Local]]:
        if isinstance(message, BrokerRegistrationRequest):
            sent = tuple(self.tell(p, local[LEADER[p]], message.source) for p in self.partitions)
            yield Turn("ReceiveBrokerRegistrationRequest", (message.source,), local, sent)
        yield from super().on_message(local, message)

    def tell(self, partition: str, known: LeaderAndEpoch, broker: str) -> LeaderAndIsrRequest:
        """Return the message that tells a broker who leads a partition."""
        return LeaderAndIsrRequest(partition, known.leader, known.leader_epoch, source=self.name, dest=broker)


TYPES: tuple[type, ...] = (Elections, ProducerIdBlocks)
