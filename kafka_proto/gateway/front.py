"""Connections of clients to brokers, without I/O, clock or chance, and the faults that hit what they send.

The same inputs give the same outputs, so a run with real clients is its inputs. As in Kafka, a connection's next
request is looked at when the one before is answered. What takes requests behind it, a subclass says: `Host` has brokers
of its own, `Proxy` those of another cluster.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Sequence

import attrs

from harness.model import FrozenMap
from kafka_proto.broker.messages import Request
from kafka_proto.cluster.failures import Leadership
from kafka_proto.gateway import offer as apis
from kafka_proto.gateway.codec import Fields
from kafka_proto.gateway.connection import Closed, Connection, WireRequest
from kafka_proto.gateway.faults import (
    FOREVER,
    NO_CONNECTION,
    Exchanged,
    FaultsUnderWay,
    Held,
    RequestFault,
    ServedConnection,
    Token,
    name_of,
    until,
    words_of,
)
from kafka_proto.gateway.inputs import (
    OF_REQUESTS,
    STOPPING,
    Arrived,
    Close,
    Ended,
    Gone,
    Injected,
    Input,
    Opened,
    Output,
    Settings,
    Write,
)
from kafka_proto.gateway.observed import NOBODY, Observed, arrived
from kafka_proto.gateway.offer import Offer
from kafka_proto.gateway.properties import Brokers, problems
from kafka_proto.requests import Error


class Front(ABC):
    """Brokers as their clients see them. `take` is the only way in."""

    def __init__(self, settings: Settings, offer: Offer) -> None:
        self.settings = settings
        self.offer = offer
        self.observed = Observed()
        self.faults = FaultsUnderWay()
        self.said: list[str] = []
        """The subject of the last input, in words."""
        self.exchanged: list[Exchanged] = []
        """What came, and what brokers were asked and answered, in the last input."""
        self.clients: dict[int, ServedConnection] = {}
        self.software: set[str] = set()
        """Of clients that sent something in a transaction: names with versions."""
        self._resumed: deque[int] = deque()

    def _connection(self) -> Connection:
        return Connection(self.offer)

    @property
    @abstractmethod
    def now(self) -> int:
        """Return the time in milliseconds."""

    @property
    @abstractmethod
    def deadline(self) -> int | None:
        """Return when `Passed` is due, at the latest."""

    @property
    @abstractmethod
    def brokers(self) -> Brokers:
        """Return the state of the brokers that properties are about."""

    @property
    def led(self) -> FrozenMap[str, Leadership]:
        """Return who leads each partition, as far as that is known."""
        return FrozenMap()

    @property
    def marked(self) -> Sequence[Request]:
        """Return the markers that arrived in the last input, as far as that is known."""
        return ()

    @abstractmethod
    def _pass_time(self, now: int) -> None:
        """Let time pass, in which nothing comes."""

    @abstractmethod
    def _ask(self, broker: int, request: WireRequest, transaction: str, token: Token, outputs: list[Output]) -> None:
        """Let a broker take a request, and answer it if it can at once."""

    @abstractmethod
    def _refused(self, broker: int, request: WireRequest, transaction: str, error: Error) -> Fields | None:
        """Return the answer with an error in place of what the broker would do; None if none is written."""

    @abstractmethod
    def _go_on_everywhere(self, outputs: list[Output]) -> None:
        """Go on with what was answered meanwhile, and with connections behind it, until nothing changes."""

    @abstractmethod
    def _silence(self, changed: Injected) -> None:
        """Let brokers be as the faults under way say, of which one has begun or ended; or let others lead."""

    @abstractmethod
    def _take_else(self, given: Input, outputs: list[Output]) -> None:
        """Take what an input says besides: that a client has connected, or what is not of clients and faults."""

    def problems(self) -> dict[str, str]:
        """Return the properties that fail on the session so far, with reasons."""
        return problems(self.observed, self.brokers)

    def take(self, given: Input) -> list[Output]:
        """Take an input from outside, and return the outputs to carry out, in this order."""
        self.said, self.exchanged = [], []
        self._pass_time(given.now)
        outputs: list[Output] = []
        if isinstance(given, Opened):
            if self.faults.is_down(given.broker):
                return [Close(given.connection, f"b{given.broker} is down")]
            self.clients[given.connection] = ServedConnection(self._connection(), given.broker)
            self._take_else(given, outputs)
            return outputs
        if isinstance(given, Gone):
            self._abandon(given.connection, outputs)
            return outputs
        if isinstance(given, Arrived) and given.connection in self.clients:
            self._receive(given.connection, given.data, outputs)
        elif isinstance(given, Injected):
            self._begin(given, outputs)
        elif isinstance(given, Ended):
            self._end(given.number, outputs)
        else:
            self._take_else(given, outputs)
        for number in self.faults.over(given.now):
            self._end(number, outputs)
        self._release(lambda each: FOREVER != each.until <= given.now, outputs)
        self._pass_time(given.now)
        self._go_on_everywhere(outputs)
        return outputs

    def _close(self, number: int, reason: str, outputs: list[Output]) -> None:
        outputs.append(Close(number, reason))
        self._forget(number, outputs)

    def _receive(self, number: int, data: bytes, outputs: list[Output]) -> None:
        client = self.clients[number]
        received = client.connection.receive_data(data)
        if received.to_send:
            self._write(number, received.to_send, outputs)
        for event in received.events:
            if isinstance(event, Closed):
                client.ends = event.reason
            else:
                client.transactions[event.number] = self._arrived(event)
                if client.transactions[event.number] != NOBODY:
                    self.software.add(client.connection.software)
                client.waiting.append(event)
                came = Exchanged(number, client.broker, event, client.transactions[event.number], has_come=True)
                self.exchanged.append(came)
        self._go_on(number, outputs)

    def _arrived(self, request: WireRequest) -> str:
        """Return the transaction that a request is of."""
        self.observed, transaction = arrived(self.observed, request)
        return transaction

    def _go_on(self, number: int, outputs: list[Output]) -> None:
        """Look at the next requests of a connection, one after the other, until one has to wait."""
        client = self.clients.get(number)
        while client is not None and number in self.clients and client.asked is None and client.waiting:
            if self.faults.of_broker(client.broker):
                return
            client.asked = client.waiting.popleft()
            self._look_at(number, client, client.asked, outputs)
        if client is not None and number in self.clients and client.ends is not None and client.asked is None:
            self._close(number, client.ends, outputs)

    def _look_at(self, number: int, client: ServedConnection, request: WireRequest, outputs: list[Output]) -> None:
        """Let the broker take a request, or what a fault makes of it."""
        name = name_of(request)
        self.faults, hits = self.faults.hit(name, request.client_id)
        kinds = {fault.kind: fault for fault in hits}
        transaction = client.transactions.get(request.number, NOBODY)
        self.said.append(" ".join((words_of(request, transaction), *kinds)))
        self.exchanged.append(Exchanged(number, client.broker, request, transaction, tuple(kinds)))
        if "drop" in kinds:
            self._close(number, f"a fault dropped {name}", outputs)
        elif "delay" in kinds:
            fault = kinds["delay"]
            until = FOREVER if fault.for_ms is None else self.now + fault.for_ms
            held = Held(fault.number, until, client.broker, number, number, ((request, transaction),))
            self.faults = attrs.evolve(self.faults, held=(*self.faults.held, held))
        elif "answer" in kinds:
            error = Error[kinds["answer"].error or ""]
            answer = self._refused(client.broker, request, transaction, error)
            if answer is None:
                self._close(number, f"a fault answers {error}, which acks of 0 cannot be told", outputs)
                return
            self.exchanged.append(Exchanged(number, client.broker, request, transaction, answer=answer))
            self._write(number, client.connection.send(request.number, answer), outputs)
            self._is_answered(number, client, request.number)
        else:
            client.loses = "lose" in kinds
            self._ask(client.broker, request, transaction, (number, request.number), outputs)
            if "duplicate" in kinds and request.api_key != apis.FETCH:
                self._ask(client.broker, request, transaction, (NO_CONNECTION, request.number), outputs)

    def _is_answered(self, number: int, client: ServedConnection, place: int) -> None:
        client.transactions.pop(place, None)
        client.asked = None
        self._resumed.append(number)

    def _write(self, number: int, data: bytes, outputs: list[Output]) -> None:
        client = self.clients[number]
        if self.faults.of_broker(client.broker):
            client.unsent += data
        elif data:
            outputs.append(Write(number, data))

    def _begin(self, fault: Injected, outputs: list[Output]) -> None:
        """Begin a fault."""
        about = fault.request or fault.partition or f"b{fault.broker}"
        self.said.append(f"{fault.kind} {about} b{fault.other}" if fault.other else f"{fault.kind} {about}")
        if fault.kind in OF_REQUESTS:
            self.faults = attrs.evolve(self.faults, rules=(*self.faults.rules, RequestFault(fault)))
            return
        if fault.kind == "elect":
            self._silence(fault)
            return
        self.faults = attrs.evolve(self.faults, lasting=(*self.faults.lasting, fault))
        if fault.kind in STOPPING:
            for number in self._clients_of(fault.broker):
                self._close(number, f"b{fault.broker} {'crashed' if fault.kind == 'crash' else 'shut down'}", outputs)
            held = tuple(each for each in self.faults.held if each.broker != fault.broker)
            self.faults = attrs.evolve(self.faults, held=held)
        self._silence(fault)

    def _end(self, number: int, outputs: list[Output]) -> None:
        """End a fault, whatever it is."""
        ended = [fault for fault in self.faults.lasting if fault.number == number]
        self.faults = self.faults.without(number)
        for fault in ended:
            goes_on = not fault.other and not self.faults.of_broker(fault.broker)
            if fault.kind == "pause" and goes_on:  # it answers what waits in its sockets before it hears the others
                self._resume(fault.broker, outputs)
            self._silence(fault)
            if fault.kind != "pause" and goes_on:
                self._resume(fault.broker, outputs)
        self._release(lambda each: each.number == number, outputs)

    def _resume(self, broker: int, outputs: list[Output]) -> None:
        for number in self._clients_of(broker):
            client = self.clients.get(number)
            if client is not None:
                data, client.unsent = client.unsent, b""
                self._write(number, data, outputs)
                self._go_on(number, outputs)

    def _clients_of(self, broker: int) -> list[int]:
        """Return a broker's connections by number, in whatever order they were opened."""
        return sorted(number for number, client in self.clients.items() if client.broker == broker)

    def _release(self, is_free: Callable[[Held], bool], outputs: list[Output]) -> None:
        """Let brokers take requests that were held back, first those whose clients are still there."""
        free = [each for each in self.faults.held if is_free(each)]
        if free:
            self.faults = attrs.evolve(self.faults, held=tuple(each for each in self.faults.held if each not in free))
        for each in sorted(free, key=lambda each: each.connection == NO_CONNECTION):
            is_late = each.connection == NO_CONNECTION
            for request, transaction in each.requests:
                how = ("late",) if is_late else ("held",)
                self.said.append(f"{how[0]} {words_of(request, transaction)}")
                self.exchanged.append(Exchanged(each.client, each.broker, request, transaction, how))
                if not is_late or request.api_key != apis.FETCH:
                    self._ask(each.broker, request, transaction, (each.connection, request.number), outputs)
            self._go_on(each.connection, outputs)

    def _abandon(self, number: int, outputs: list[Output]) -> None:
        """A client gave its connection up: what a fault holds back of it may still be taken."""
        client = self.clients.get(number)
        if client is None:
            return
        held = next((each for each in self.faults.held if each.connection == number), None)
        requests = client.connection.open_requests
        if held is None and client.asked is not None:
            requests = requests[1:]
        stalled = [(fault.number, until(fault)) for fault in self.faults.of_broker(client.broker)]
        if held is not None:
            stalled = [(held.number, held.until)]
        if stalled and requests:
            kept = tuple((request, client.transactions.get(request.number, NOBODY)) for request in requests)
            late = Held(*stalled[-1], client.broker, NO_CONNECTION, number, kept)
            self.faults = attrs.evolve(self.faults, held=(*self.faults.held, late))
        self._forget(number, outputs)

    def _forget(self, number: int, outputs: list[Output]) -> None:
        self.clients.pop(number, None)
        self.faults = attrs.evolve(
            self.faults, held=tuple(each for each in self.faults.held if each.connection != number))
