"""What every client of Kafka has: connections to brokers, requests under way on them, and the leaders it knows."""

from __future__ import annotations

import attrs

from harness.model import FrozenMap, Message, Value, ordered
from kafka_proto.broker.look_ups import Leaders, look_up
from kafka_proto.broker.messages import LeaderResponse, LookUp, Request, Response
from kafka_proto.broker.placement import Placement

RETRY_BACKOFF, REQUEST_TIMEOUT, DELIVERY_TIMEOUT = "RetryBackoff", "RequestTimeout", "DeliveryTimeout"
NO_NUMBER = 0
"""The number for a request that carries no batch, or a batch without a number."""


@attrs.frozen
class Sent:
    """A request that is not answered, its receiver, and the number of the batch that it carries."""

    dest: str
    request: Value
    number: int = NO_NUMBER


@attrs.frozen
class ClientConnections:
    """A client's connections, with one in use to each broker, and what it asked on them."""

    opened: FrozenMap[str, int] = attrs.field(default=FrozenMap(), metadata=ordered("connection", "self", "key"))
    """By broker: the number of the connection in use."""
    leaders: Leaders = Leaders()
    correlation: int = attrs.field(default=0, metadata=ordered("correlation", "self"))
    asked: FrozenMap[int, Sent] = attrs.field(default=FrozenMap(), metadata=ordered("correlation", "self"))

    def ask(
        self, source: str, dest: str, request: Value, transaction: str, number: int = NO_NUMBER
    ) -> tuple[ClientConnections, Request]:
        """Return the connections with a request under way, and its message; `transaction` is its ghost."""
        correlation = self.correlation + 1
        asked = self.asked.set(correlation, Sent(dest, request, number))
        message = Request(request, correlation, self.opened.get(dest, 0), transaction, source=source, dest=dest)
        return attrs.evolve(self, correlation=correlation, asked=asked), message

    def about(self, response: Message) -> Sent | None:
        """Return what a response answers, None if it is no longer awaited."""
        assert isinstance(response, Response)
        is_late = response.connection != self.opened.get(response.source, 0)
        return None if is_late else self.asked.get(response.correlation)

    def answered(self, response: Response) -> ClientConnections:
        """Return the connections once a request is answered; a look-up's answer is learned."""
        found, leaders = response.response, self.leaders
        leaders = leaders.learned(found) if isinstance(found, LeaderResponse) else leaders
        return attrs.evolve(self, asked=self.asked.without(response.correlation), leaders=leaders)

    def open(self, broker: str) -> ClientConnections:
        """Open another connection to a broker, with the next number, in place of the one in use."""
        return attrs.evolve(self, opened=self.opened.set(broker, self.opened.get(broker, 0) + 1))

    def give_up(self, broker: str) -> tuple[ClientConnections, tuple[Sent, ...]]:
        """Open another connection to a broker; return also what was under way: it may still arrive."""
        lost = tuple(sent for sent in self.asked.values() if sent.dest == broker)
        left = FrozenMap((n, sent) for n, sent in self.asked.items() if sent.dest != broker)
        return attrs.evolve(self.open(broker), asked=left), lost

    def look_up(
        self, source: str, placement: Placement, transaction: str
    ) -> tuple[ClientConnections, tuple[Message, ...]]:
        """Look up the leaders that are unknown, and not asked for yet."""
        after, messages = self, list[Message]()
        under_way = [sent.request for sent in self.asked.values() if isinstance(sent.request, LookUp)]
        for about in self.leaders.unknown:
            request = look_up(about, placement)
            if request not in under_way:
                after, dest = after.next_broker(placement)
                after, message = after.ask(source, dest, request, transaction)
                messages.append(message)
        return after, tuple(messages)

    def next_broker(self, placement: Placement) -> tuple[ClientConnections, str]:
        """Return the broker that the next look-up goes to: one after another."""
        dest = placement.brokers[self.leaders.asked % len(placement.brokers)]
        return attrs.evolve(self, leaders=attrs.evolve(self.leaders, asked=self.leaders.asked + 1)), dest

    def rested(self) -> ClientConnections:
        """Return the connections after the pause before a look-up."""
        return attrs.evolve(self, leaders=self.leaders.rested())

    def timers(
        self, timeouts: frozenset[str] = frozenset(), *, backs_off: bool = False, delivers: bool = False
    ) -> tuple[str, ...]:
        """Return the timers of a client that may back off and have sent batches, by which of them are on."""
        found = [RETRY_BACKOFF] if backs_off or self.leaders.resting else []
        if "request" in timeouts:
            found += [f"{REQUEST_TIMEOUT} {b}" for b in sorted({sent.dest for sent in self.asked.values()})]
        if "delivery" in timeouts and delivers:
            found.append(DELIVERY_TIMEOUT)
        return tuple(found)
