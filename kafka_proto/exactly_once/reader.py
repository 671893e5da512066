"""The consumer's actor: it reads each partition from its start, one fetch at a time, which waits for news."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from harness.model import Actor, FrozenMap, Message, Turn, ordered
from kafka_proto.consumer import Consumer, fetched, next_fetch
from kafka_proto.exactly_once.look_ups import UNKNOWN, Leaders, look_up
from kafka_proto.exactly_once.messages import LeaderResponse, LookUp, Request, Response
from kafka_proto.exactly_once.placement import Placement
from kafka_proto.requests import ConsumerFetchRequest, Error, IsolationLevel

RETRY_BACKOFF = "RetryBackoff"
NO_CORRELATION = 0


@attrs.frozen
class Fetching:
    """A fetch that is not answered, or a look-up of whom to ask."""

    request: ConsumerFetchRequest | LookUp
    dest: str
    connection: int = attrs.field(metadata=ordered("connection", "self", "dest"))


@attrs.frozen
class ReaderState:
    consumer: Consumer
    fetches: FrozenMap[str, Fetching] = FrozenMap()
    """By partition; each has a connection of its own, and so needs no correlation id."""
    opened: FrozenMap[str, int] = attrs.field(default=FrozenMap(), metadata=ordered("connection", "self", "key"))
    """By broker: how many connections."""
    seen: FrozenMap[str, tuple[str, ...]] = FrozenMap()
    """By partition: what the application got."""
    leaders: Leaders = Leaders()


class Reader(Actor[ReaderState]):
    """The actor of one consumer."""

    def __init__(self, name: str, placement: Placement, isolation_level: IsolationLevel) -> None:
        self.name = name
        self.placement = placement
        self.initial = ReaderState(Consumer(isolation_level))

    def step(self, local: ReaderState) -> Iterable[Turn[ReaderState]]:
        for partition in self.placement.partitions:
            if partition not in local.fetches and partition not in local.leaders.resting:
                after, sent = self.fetching(local, partition)
                yield Turn("Poll", (self.name, partition), after, (sent,))

    def fetching(self, local: ReaderState, partition: str) -> tuple[ReaderState, Message]:
        """Fetch what follows the position, on a new connection if there is none; or look up who leads first."""
        known, dest = local.fetches.get(partition), local.leaders.of(partition, self.placement)
        request: ConsumerFetchRequest | LookUp = next_fetch(local.consumer, partition)
        if dest == UNKNOWN:
            brokers = self.placement.brokers
            request, dest = look_up(partition, self.placement), brokers[local.leaders.asked % len(brokers)]
            local = attrs.evolve(local, leaders=attrs.evolve(local.leaders, asked=local.leaders.asked + 1))
        if known is None or known.dest != dest:
            number = local.opened.get(dest, 0) + 1
            local = attrs.evolve(local, opened=local.opened.set(dest, number))
        else:
            number = known.connection
        after = attrs.evolve(local, fetches=local.fetches.set(partition, Fetching(request, dest, number)))
        return after, Request(request, NO_CORRELATION, number, source=self.name, dest=dest)

    def timers(self, local: ReaderState) -> tuple[str, ...]:
        return (RETRY_BACKOFF,) if local.leaders.resting else ()

    def timer_fired(self, local: ReaderState, timer: str) -> Iterable[Turn[ReaderState]]:
        yield Turn(timer, (self.name,), attrs.evolve(local, leaders=local.leaders.rested()))

    def on_message(self, local: ReaderState, message: Message) -> Iterable[Turn[ReaderState]]:
        assert isinstance(message, Response)
        who = (self.name, message.source)
        came_on = message.source, message.connection
        found = ((p, f) for p, f in local.fetches.items() if (f.dest, f.connection) == came_on)
        partition, asked = next(found, ("", None))
        if asked is None:
            yield Turn("IgnoreResponse", who, local)
            return
        response = message.response
        if isinstance(response, LeaderResponse) or response.error is Error.NOT_LEADER_OR_FOLLOWER:
            is_known = isinstance(response, LeaderResponse)
            leaders = local.leaders.learned(response) if is_known else local.leaders.lost(partition, rests=True)
            moved = attrs.evolve(local, leaders=leaders, fetches=local.fetches.without(partition))
            yield Turn(f"Receive{message.type}", who, moved)
            return
        assert isinstance(asked.request, ConsumerFetchRequest)
        polled = fetched(local.consumer, asked.request, response)
        seen = local.seen.get(partition, ()) + polled.records
        after, sent = self.fetching(
            attrs.evolve(local, consumer=polled.consumer, seen=local.seen.set(partition, seen)), partition
        )
        yield Turn("ReceiveConsumerFetchResponse", who, after, (sent,))
