"""The consumer's actor: it reads each partition from its start, one fetch at a time, which waits for news."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from harness.model import Actor, FrozenMap, Message, Turn
from kafka_proto.consumer import Consumer, fetched, next_fetch
from kafka_proto.exactly_once.messages import Request, Response
from kafka_proto.exactly_once.placement import Placement
from kafka_proto.requests import FetchRequest, IsolationLevel


@attrs.frozen
class Fetching:
    """A fetch that is not answered."""

    request: FetchRequest
    connection: int


@attrs.frozen
class ReaderState:
    consumer: Consumer
    fetches: FrozenMap[str, Fetching] = FrozenMap()
    """By partition; each has a connection of its own."""
    connections: int = 0
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
            if partition not in local.fetches:
                after, sent = self.fetching(local, partition)
                yield Turn("Poll", (self.name, partition), after, (sent,))

    def fetching(self, local: ReaderState, partition: str) -> tuple[ReaderState, Message]:
        """Fetch what follows the position, on a new connection if there is none."""
        known = local.fetches.get(partition)
        number = local.connections + 1 if known is None else known.connection
        request = next_fetch(local.consumer, partition)
        after = attrs.evolve(
            local, fetches=local.fetches.set(partition, Fetching(request, number)),
            connections=max(local.connections, number),
        )
        dest = self.placement.leader(partition)
        return after, Request(request, number, number, source=self.name, dest=dest)

    def timers(self, local: ReaderState) -> tuple[str, ...]:
        return ()

    def on_message(self, local: ReaderState, message: Message) -> Iterable[Turn[ReaderState]]:
        assert isinstance(message, Response)
        who = (self.name, message.source)
        asked = next((f for f in local.fetches.values() if f.connection == message.connection), None)
        if asked is None:
            yield Turn("IgnoreResponse", who, local)
            return
        polled = fetched(local.consumer, asked.request, message.response)
        partition = asked.request.partition
        seen = local.seen.get(partition, ()) + polled.records
        after, sent = self.fetching(
            attrs.evolve(local, consumer=polled.consumer, seen=local.seen.set(partition, seen)), partition
        )
        yield Turn("ReceiveFetchResponse", who, after, (sent,))
