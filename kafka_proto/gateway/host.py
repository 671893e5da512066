"""A broker and the connections of its clients, without I/O, clock or chance: what comes in has its time with it.

The same inputs give the same outputs, so a run with real clients is its inputs. As in Kafka, a connection's next
request is looked at when the one before is answered.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping

import attrs

from kafka_proto.gateway.apis import TABLE
from kafka_proto.gateway.apis.records import served_fetches
from kafka_proto.gateway.broker import Answer, Broker, Settings, at, deadline, due, new_broker
from kafka_proto.gateway.connection import Closed, Connection, Request
from kafka_proto.gateway.offer import Offer, offer_of


@attrs.frozen
class Opened:
    """A client connected; connections are numbered from 0."""

    connection: int
    now: int


@attrs.frozen
class Arrived:
    """Bytes of a client; none where it will send no more."""

    connection: int
    data: bytes
    now: int


@attrs.frozen
class Gone:
    """A connection is no more."""

    connection: int
    now: int


@attrs.frozen
class Passed:
    """Time passed, in milliseconds since the epoch."""

    now: int


Input = Opened | Arrived | Gone | Passed


@attrs.frozen
class Write:
    """Bytes for a client."""

    connection: int
    data: bytes


@attrs.frozen
class Close:
    """A connection is to be closed, after what was to be written."""

    connection: int
    reason: str


Output = Write | Close


@attrs.define
class _Client:
    connection: Connection
    waiting: deque[Request] = attrs.field(factory=deque)
    asked: Request | None = None
    """The request that is looked at, until it is answered."""
    ends: str | None = None
    """Why it will be closed once its requests are answered."""


class Host:
    """A broker with its clients. `take` is the only way in."""

    def __init__(self, settings: Settings, topics: Mapping[str, int], now: int = 0) -> None:
        self.broker: Broker = new_broker(settings, topics, now)
        self.offer: Offer = offer_of(settings.release, settings.transaction_version, TABLE)
        self._clients: dict[int, _Client] = {}
        self._resumed: deque[int] = deque()

    @property
    def connections(self) -> int:
        """Return how many clients are connected."""
        return len(self._clients)

    @property
    def deadline(self) -> int | None:
        """Return when `Passed` is due, at the latest."""
        return deadline(self.broker)

    def take(self, given: Input) -> list[Output]:
        """Take what came from outside, and return what is to be done, in this order."""
        self.broker = at(self.broker, given.now)
        if isinstance(given, Opened):
            self._clients[given.connection] = _Client(Connection(self.offer))
            return []
        if isinstance(given, Gone):
            self._forget(given.connection)
            return []
        outputs: list[Output] = []
        if isinstance(given, Arrived):
            self._receive(given.connection, given.data, outputs)
        self.broker, answers = due(self.broker, given.now)
        self._answer(answers, outputs)
        self._serve_fetches(outputs)
        return outputs

    def _receive(self, number: int, data: bytes, outputs: list[Output]) -> None:
        client = self._clients[number]
        received = client.connection.receive_data(data)
        if received.to_send:
            outputs.append(Write(number, received.to_send))
        for event in received.events:
            if isinstance(event, Closed):
                client.ends = event.reason
            else:
                client.waiting.append(event)
        self._go_on(number, outputs)

    def _go_on(self, number: int, outputs: list[Output]) -> None:
        """Look at the next requests of a connection, one after the other, until one has to wait."""
        client = self._clients.get(number)
        while client is not None and client.asked is None and client.waiting:
            client.asked = client.waiting.popleft()
            self.broker, answers = TABLE[client.asked.api_key](self.broker, client.asked, (number, client.asked.number))
            self._answer(answers, outputs)
        if client is not None and client.ends is not None and client.asked is None:
            outputs.append(Close(number, client.ends))
            self._forget(number)

    def _answer(self, answers: Iterable[Answer], outputs: list[Output]) -> None:
        for answer in answers:
            number, request = answer.token
            client = self._clients.get(number)
            if client is None or client.asked is None or client.asked.number != request:
                continue
            data = client.connection.send(request, answer.response)
            if data:
                outputs.append(Write(number, data))
            client.asked = None
            self._resumed.append(number)

    def _serve_fetches(self, outputs: list[Output]) -> None:
        """Answer waiting fetches and go on behind them, until nothing changes."""
        while True:
            while self._resumed:
                self._go_on(self._resumed.popleft(), outputs)
            self.broker, answers = served_fetches(self.broker)
            self._answer(answers, outputs)
            if not answers:
                return

    def _forget(self, number: int) -> None:
        self._clients.pop(number, None)
        fetches = self.broker.fetches
        for token in [token for token in fetches if token[0] == number]:
            fetches = fetches.without(token)
        self.broker = attrs.evolve(self.broker, fetches=fetches)
