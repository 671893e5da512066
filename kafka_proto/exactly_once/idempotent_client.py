"""The actor of an idempotent producer: it writes records without transactions, and keeps connections.

What it decides is `kafka_proto.producer.idempotent`. Any broker gives it a producer id: it asks one after another.
"""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from harness.model import Actor, FrozenMap, Kind, Message, Turn, Value, ordered
from kafka_proto.exactly_once.client import DELIVERY_TIMEOUT, REQUEST_TIMEOUT, RETRY_BACKOFF
from kafka_proto.exactly_once.ghosts import record
from kafka_proto.exactly_once.look_ups import UNKNOWN, Leaders, look_up
from kafka_proto.exactly_once.messages import LeaderResponse, LookUp, Request, Response
from kafka_proto.exactly_once.placement import Placement
from kafka_proto.producer import Family, Verdict, idempotent
from kafka_proto.producer.idempotent import IdempotentProducer
from kafka_proto.requests import InitProducerIdRequest, ProduceResponse

NO_NUMBER = 0
"""Of a request that carries no batch."""


@attrs.frozen
class Carried:
    """A request that is not answered, to whom it went, and the number of the batch that it carries."""

    dest: str
    request: Value
    number: int = NO_NUMBER


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
    opened: FrozenMap[str, int] = attrs.field(default=FrozenMap(), metadata=ordered("connection", "self", "key"))
    """By broker: the number of the connection in use."""
    leaders: Leaders = Leaders()
    correlation: int = attrs.field(default=0, metadata=ordered("correlation", "self"))
    asked: FrozenMap[int, Carried] = attrs.field(default=FrozenMap(), metadata=ordered("correlation", "self"))
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
        found = [RETRY_BACKOFF] if idempotent.backs_off(local.producer) or local.leaders.resting else []
        if "request" in self.timeouts:
            found += [f"{REQUEST_TIMEOUT} {b}" for b in sorted({asked.dest for asked in local.asked.values()})]
        if "delivery" in self.timeouts and any(batch.was_sent for batch in local.producer.batches):
            found.append(DELIVERY_TIMEOUT)
        return tuple(found)

    def timer_fired(self, local: IdempotentState, timer: str) -> Iterable[Turn[IdempotentState]]:
        kind, _, broker = timer.partition(" ")
        if kind == REQUEST_TIMEOUT:
            yield self.turn(self.reconnected(local, broker), kind, (self.name, broker))
        elif kind == DELIVERY_TIMEOUT:
            expired = idempotent.delivery_timed_out(self.family, local.producer)
            yield self.turn(attrs.evolve(local, producer=expired), kind, (self.name,))
        else:
            rested = attrs.evolve(
                local, producer=idempotent.rested(local.producer), leaders=local.leaders.rested()
            )
            yield self.turn(rested, kind, (self.name,))

    def reconnected(self, local: IdempotentState, broker: str) -> IdempotentState:
        """Give the connection to a broker up: what was in it may still arrive."""
        lost = [asked for asked in local.asked.values() if asked.dest == broker]
        leaders = local.leaders
        for asked in lost:
            if self.looks_up and asked.number != NO_NUMBER:
                leaders = leaders.lost(asked.request.partition)
        producer = idempotent.connection_lost(
            local.producer, (asked.number for asked in lost),
            was_asked=any(isinstance(asked.request, InitProducerIdRequest) for asked in lost),
        )
        return attrs.evolve(
            local, producer=producer, leaders=leaders,
            asked=FrozenMap((n, asked) for n, asked in local.asked.items() if asked.dest != broker),
            opened=local.opened.set(broker, local.opened.get(broker, 0) + 1),
        )

    def on_message(self, local: IdempotentState, message: Message) -> Iterable[Turn[IdempotentState]]:
        assert isinstance(message, Response)
        who, response = (self.name, message.source), message.response
        asked = local.asked.get(message.correlation)
        if asked is None or message.connection != local.opened.get(message.source, 0):
            yield Turn("IgnoreResponse", who, local)
            return
        local = attrs.evolve(local, asked=local.asked.without(message.correlation))
        if isinstance(response, LeaderResponse):
            local = attrs.evolve(local, leaders=local.leaders.learned(response))
        elif isinstance(response, ProduceResponse):
            local = self.produced(local, asked, response)
        else:
            found = idempotent.initialized(local.producer, response)
            local = attrs.evolve(local, producer=found.producer)
        yield self.turn(local, f"Receive{message.type}", who)

    def produced(self, local: IdempotentState, asked: Carried, response: ProduceResponse) -> IdempotentState:
        """Take the answer to a batch."""
        partition = asked.request.partition
        found = idempotent.answered(self.family, local.producer, asked.number, response.error)
        placed = tuple(
            Placed(partition, text, response.base_offset + n if response.base_offset >= 0 else -1)
            for n, text in enumerate(found.acknowledged)
        )
        leaders = local.leaders
        if self.looks_up and found.verdict is Verdict.LOOK_UP:
            leaders = leaders.lost(partition)
        return attrs.evolve(
            local, producer=found.producer, leaders=leaders, acknowledged=(*local.acknowledged, *placed),
            verdicts=local.verdicts | {f"{response.error.value}: {found.verdict.value}"},
        )

    def turn(self, local: IdempotentState, action: str, who: tuple[str, ...]) -> Turn[IdempotentState]:
        after, sent = self.advanced(local)
        return Turn(action, who, after, sent)

    def advanced(self, local: IdempotentState) -> tuple[IdempotentState, tuple[Message, ...]]:
        """Send what may be sent: InitProducerId, batches, and look-ups of leaders that are unknown."""
        out = list[Message]()
        brokers = self.placement.brokers
        init = idempotent.next_init(self.family, local.producer) if local.producer.batches else None
        if init is not None:
            asking = attrs.evolve(local, producer=idempotent.asked_for_id(local.producer), inits=local.inits + 1)
            local = self.asking(asking, out, brokers[local.inits % len(brokers)], init)
        for number, produce in idempotent.next_produces(self.family, local.producer, self.in_flight):
            leader = local.leaders.of(produce.partition, self.placement)
            if leader != UNKNOWN:
                flying = attrs.evolve(local, producer=idempotent.sent(local.producer, number, produce))
                local = self.asking(flying, out, leader, produce, number)
        under_way = [asked.request for asked in local.asked.values() if isinstance(asked.request, LookUp)]
        for about in local.leaders.unknown:
            request = look_up(about, self.placement)
            if request not in under_way:
                leaders = attrs.evolve(local.leaders, asked=local.leaders.asked + 1)
                dest = brokers[local.leaders.asked % len(brokers)]
                local = self.asking(attrs.evolve(local, leaders=leaders), out, dest, request)
        return local, tuple(out)

    def asking(
        self, local: IdempotentState, out: list[Message], dest: str, request: Value, number: int = NO_NUMBER
    ) -> IdempotentState:
        """Return the state with a request under way, which is added to `out`."""
        correlation = local.correlation + 1
        connection = local.opened.get(dest, 0)
        out.append(Request(request, correlation, connection, self.name, source=self.name, dest=dest))
        return attrs.evolve(
            local, correlation=correlation, asked=local.asked.set(correlation, Carried(dest, request, number))
        )
