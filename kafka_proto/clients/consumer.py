"""The consumer: its positions, and what it makes of a fetch (`FetchCollector`, `CompletedFetch.nextFetchedRecord`).

Its actor reads each partition from its start, one fetch at a time, which waits for news.
"""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from harness.model import Actor, FrozenMap, Message, Turn, Value, ordered
from kafka_proto.broker.look_ups import UNKNOWN, look_up
from kafka_proto.broker.messages import LeaderResponse, LookUp, Request, Response
from kafka_proto.broker.placement import Placement
from kafka_proto.clients.client_connections import ClientConnections
from kafka_proto.log import visible_at
from kafka_proto.requests import ConsumerFetchRequest, ConsumerFetchResponse, Error, IsolationLevel

FETCH_VERSION = 12


@attrs.frozen
class Consumer:
    """A consumer of some partitions; its position in each is the offset that it reads next."""

    isolation_level: IsolationLevel
    positions: FrozenMap[str, int] = FrozenMap()


@attrs.frozen
class Polled:
    """A consumer after an answer, and what its application gets."""

    consumer: Consumer
    records: tuple[Value, ...] = ()


def next_fetch(consumer: Consumer, partition: str) -> ConsumerFetchRequest:
    """Ask for what follows the position."""
    return ConsumerFetchRequest(
        FETCH_VERSION, partition, consumer.positions.get(partition, 0), consumer.isolation_level)


def fetched(consumer: Consumer, request: ConsumerFetchRequest, response: ConsumerFetchResponse) -> Polled:
    """Take an answer: the position moves past all batches, markers and aborted records included.

    An answer for another position than the present one is stale. Out of range, the position goes to the log's start.
    Records before the position are left out, as where a network brings an answer twice.
    """
    position = consumer.positions.get(request.partition, 0)
    if request.fetch_offset != position:
        return Polled(consumer)
    if response.error is Error.OFFSET_OUT_OF_RANGE:
        return Polled(attrs.evolve(consumer, positions=consumer.positions.set(request.partition, 0)))
    if response.error is not Error.NONE or not response.batches:
        return Polled(consumer)
    after = max(position, response.batches[-1].last_offset + 1)
    moved = attrs.evolve(consumer, positions=consumer.positions.set(request.partition, after))
    shown = visible_at(response.batches, response.aborted_transactions or ())
    return Polled(moved, tuple(record for offset, record in shown if offset >= position))


NO_CORRELATION = 0


@attrs.frozen
class Fetching:
    """A fetch that is not answered, or a look-up of the broker to ask."""

    request: ConsumerFetchRequest | LookUp
    dest: str
    connection: int = attrs.field(metadata=ordered("connection", "self", "dest"))


@attrs.frozen
class ReaderState:
    consumer: Consumer
    fetches: FrozenMap[str, Fetching] = FrozenMap()
    """By partition; each has a connection of its own, and so needs no correlation id."""
    connections: ClientConnections = ClientConnections()
    seen: FrozenMap[str, tuple[str, ...]] = FrozenMap()
    """By partition: what the application got."""


class Reader(Actor[ReaderState]):
    """The actor of one consumer."""

    def __init__(self, name: str, placement: Placement, isolation_level: IsolationLevel) -> None:
        self.name = name
        self.placement = placement
        self.initial = ReaderState(Consumer(isolation_level))

    def step(self, local: ReaderState) -> Iterable[Turn[ReaderState]]:
        for partition in self.placement.partitions:
            if partition not in local.fetches and partition not in local.connections.leaders.resting:
                after, sent = self.fetching(local, partition)
                yield Turn("Poll", (self.name, partition), after, (sent,))

    def fetching(self, local: ReaderState, partition: str) -> tuple[ReaderState, Message]:
        """Fetch what follows the position, on a new connection if none is open; or look up the leader first."""
        known, connections = local.fetches.get(partition), local.connections
        dest = connections.leaders.of(partition, self.placement)
        request: ConsumerFetchRequest | LookUp = next_fetch(local.consumer, partition)
        if dest == UNKNOWN:
            request = look_up(partition, self.placement)
            connections, dest = connections.next_broker(self.placement)
        if known is None or known.dest != dest:
            connections = connections.open(dest)
            number = connections.opened[dest]
        else:
            number = known.connection
        fetches = local.fetches.set(partition, Fetching(request, dest, number))
        after = attrs.evolve(local, connections=connections, fetches=fetches)
        return after, Request(request, NO_CORRELATION, number, source=self.name, dest=dest)

    def timers(self, local: ReaderState) -> tuple[str, ...]:
        return local.connections.timers()

    def timer_fired(self, local: ReaderState, timer: str) -> Iterable[Turn[ReaderState]]:
        yield Turn(timer, (self.name,), attrs.evolve(local, connections=local.connections.rested()))

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
            is_known, leaders = isinstance(response, LeaderResponse), local.connections.leaders
            leaders = leaders.learned(response) if is_known else leaders.lost(partition, rests=True)
            connections = attrs.evolve(local.connections, leaders=leaders)
            moved = attrs.evolve(local, connections=connections, fetches=local.fetches.without(partition))
            yield Turn(f"Receive{message.type}", who, moved)
            return
        assert isinstance(asked.request, ConsumerFetchRequest)
        polled = fetched(local.consumer, asked.request, response)
        seen = local.seen.get(partition, ()) + polled.records
        after, sent = self.fetching(
            attrs.evolve(local, consumer=polled.consumer, seen=local.seen.set(partition, seen)), partition
        )
        yield Turn("ReceiveConsumerFetchResponse", who, after, (sent,))
