"""The actor of an idempotent producer: it writes records without transactions, and keeps connections.

What it decides is in `producer.idempotent`. Any broker gives it a producer id: it asks one after another.
"""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from harness.model import Actor, Kind, Message, Turn
from kafka_proto.broker.ghosts import record
from kafka_proto.broker.look_ups import UNKNOWN
from kafka_proto.broker.messages import LeaderResponse, Response
from kafka_proto.broker.placement import Placement
from kafka_proto.clients.client_connections import (
    DELIVERY_TIMEOUT,
    NO_NUMBER,
    REQUEST_TIMEOUT,
    ClientConnections,
    Sent,
)
from kafka_proto.clients.producer import AnswerVerdict, Family, idempotent
from kafka_proto.clients.producer.idempotent import IdempotentProducer
from kafka_proto.requests import InitProducerIdRequest, ProduceResponse


@attrs.frozen
class Placed:
    """A ghost: a record that a leader acknowledged, and where it said that it is; -1 where it did not say."""

    partition: str
    record: str
    offset: int


@attrs.frozen
class IdempotentState:
    """A producer with its connections; and, as ghosts, what its application was told."""

    producer: IdempotentProducer = IdempotentProducer()
    connections: ClientConnections = ClientConnections()
    inits: int = 0
    """How many InitProducerId were sent: each goes to the next broker."""
    acknowledged: tuple[Placed, ...] = ()
    verdicts: frozenset[str] = frozenset()


class IdempotentClient(Actor[IdempotentState]):
    """The actor of one idempotent producer."""

    def __init__(
        self, name: str, family: Family, placement: Placement, *, records: int, in_flight: int,
        timeouts: frozenset[str], looks_up: bool,
    ) -> None:
        self.name = name
        self.family = family
        self.placement = placement
        self.records = records
        self.in_flight = in_flight
        self.timeouts = timeouts
        self.looks_up = looks_up
        self.initial = IdempotentState()

    def step(self, local: IdempotentState) -> Iterable[Turn[IdempotentState]]:
        """The application's choices: what to write where."""
        number = local.producer.numbers + 1
        if number > self.records:
            return
        for partition in self.placement.partitions:
            sending = idempotent.send(local.producer, partition, record(self.name, number))
            after, sent = self.advanced(attrs.evolve(local, producer=sending))
            yield Turn("Send", (self.name, partition), after, sent, kind=Kind.COMMAND)

    def timers(self, local: IdempotentState) -> tuple[str, ...]:
        return local.connections.timers(
            self.timeouts, backs_off=idempotent.backs_off(local.producer),
            delivers=any(batch.was_sent for batch in local.producer.batches),
        )

    def timer_fired(self, local: IdempotentState, timer: str) -> Iterable[Turn[IdempotentState]]:
        kind, _, broker = timer.partition(" ")
        if kind == REQUEST_TIMEOUT:
            yield self.turn(self.reconnected(local, broker), kind, (self.name, broker))
        elif kind == DELIVERY_TIMEOUT:
            expired = idempotent.delivery_timed_out(self.family, local.producer)
            yield self.turn(attrs.evolve(local, producer=expired), kind, (self.name,))
        else:
            rested = attrs.evolve(
                local, producer=idempotent.rested(local.producer), connections=local.connections.rested()
            )
            yield self.turn(rested, kind, (self.name,))

    def reconnected(self, local: IdempotentState, broker: str) -> IdempotentState:
        """Give the connection to a broker up: what was in it may still arrive."""
        connections, lost = local.connections.give_up(broker)
        for sent in lost:
            if self.looks_up and sent.number != NO_NUMBER:
                connections = connections.lost(sent.request.partition)
        producer = idempotent.connection_lost(
            local.producer, (sent.number for sent in lost),
            was_asked=any(isinstance(sent.request, InitProducerIdRequest) for sent in lost),
        )
        return attrs.evolve(local, producer=producer, connections=connections)

    def on_message(self, local: IdempotentState, message: Message) -> Iterable[Turn[IdempotentState]]:
        assert isinstance(message, Response)
        who, response = (self.name, message.source), message.response
        asked = local.connections.about(message)
        if asked is None:
            yield Turn("IgnoreResponse", who, local)
            return
        local = attrs.evolve(local, connections=local.connections.answered(message))
        if isinstance(response, ProduceResponse):
            local = self.produced(local, asked, response)
        elif not isinstance(response, LeaderResponse):
            local = attrs.evolve(local, producer=idempotent.initialized(local.producer, response).producer)
        yield self.turn(local, f"Receive{message.type}", who)

    def produced(self, local: IdempotentState, asked: Sent, response: ProduceResponse) -> IdempotentState:
        """Take the answer to a batch."""
        partition = asked.request.partition
        found = idempotent.answered(self.family, local.producer, asked.number, response.error)
        placed = tuple(
            Placed(partition, text, response.base_offset + n if response.base_offset >= 0 else -1)
            for n, text in enumerate(found.acknowledged)
        )
        connections = local.connections
        if self.looks_up and found.verdict is AnswerVerdict.LOOK_UP:
            connections = connections.lost(partition)
        return attrs.evolve(
            local, producer=found.producer, connections=connections, acknowledged=(*local.acknowledged, *placed),
            verdicts=local.verdicts | {f"{response.error.value}: {found.verdict.value}"},
        )

    def turn(self, local: IdempotentState, action: str, who: tuple[str, ...]) -> Turn[IdempotentState]:
        after, sent = self.advanced(local)
        return Turn(action, who, after, sent)

    def advanced(self, local: IdempotentState) -> tuple[IdempotentState, tuple[Message, ...]]:
        """Send what may be sent: InitProducerId, batches, and look-ups of leaders that are unknown."""
        producer, connections, inits, out = local.producer, local.connections, local.inits, list[Message]()
        init = idempotent.next_init(self.family, producer) if producer.batches else None
        if init is not None:
            broker = self.placement.brokers[inits % len(self.placement.brokers)]
            producer, inits = idempotent.asked_for_id(producer), inits + 1
            connections, message = connections.ask(self.name, broker, init, self.name)
            out.append(message)
        for number, produce in idempotent.next_produces(self.family, producer, self.in_flight):
            leader = connections.leads(produce.partition, self.placement)
            if leader != UNKNOWN:
                producer = idempotent.sent(producer, number, produce)
                connections, message = connections.ask(self.name, leader, produce, self.name, number)
                out.append(message)
        connections, look_ups = connections.look_up(self.name, self.placement, self.name)
        after = attrs.evolve(local, producer=producer, connections=connections, inits=inits)
        return after, (*out, *look_ups)
