"""Brokers and the connections of their clients, without I/O, clock or chance: what comes in has its time with it.

The same inputs give the same outputs, so a run with real clients is its inputs. As in Kafka, a connection's next
request is looked at when the one before is answered.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping

import attrs

from kafka_proto.gateway import offer as apis
from kafka_proto.gateway.answers import answered
from kafka_proto.gateway.apis import TABLE
from kafka_proto.gateway.apis.records import served_fetches
from kafka_proto.gateway.broker import Answer, Broker, Token, asked_at, at, deadline, due, new_broker
from kafka_proto.gateway.codec import api_name
from kafka_proto.gateway.connection import Closed, Connection, Request, read_request
from kafka_proto.gateway.faults import FOREVER, Faults, Held, Parked, Rule
from kafka_proto.gateway.inputs import (
    OF_REQUESTS,
    Arrived,
    Close,
    Ended,
    Gone,
    Injected,
    Input,
    Opened,
    Output,
    Passed,
    Settings,
    Started,
    Write,
)
from kafka_proto.gateway.links import delivered, with_cut
from kafka_proto.gateway.node import state_of
from kafka_proto.gateway.observed import NOBODY, Observed, arrived, handled
from kafka_proto.gateway.offer import Offer, offer_of
from kafka_proto.gateway.placement import again_with, moved_on, without
from kafka_proto.gateway.properties import problems

__all__ = ["Arrived", "Close", "Ended", "Gone", "Host", "Injected", "Opened", "Passed", "Started", "Write"]

NO_CONNECTION = -1
"""Whose answers nobody gets."""


@attrs.define
class Client:
    """A connection with its broker and what waits on it."""

    connection: Connection
    broker: int
    waiting: deque[Request] = attrs.field(factory=deque)
    asked: Request | None = None
    """The request that is looked at, or held back, until it is answered."""
    ends: str | None = None
    """Why it will be closed once its requests are answered."""
    loses: bool = False
    """Whether it is closed in place of the answer to what is asked."""
    unsent: bytes = b""
    """What a broker that is paused has not written."""
    transactions: dict[int, str] = attrs.field(factory=dict)
    """Of requests that were not answered, by number."""


class Host:
    """Brokers with their clients. `take` is the only way in."""

    def __init__(self, settings: Settings, topics: Mapping[str, int], now: int = 0) -> None:
        self.offer: Offer = offer_of(settings.release, settings.transaction_version, TABLE)
        self.broker: Broker = new_broker(settings, topics, now)
        self.observed = Observed()
        self.faults = Faults()
        self.said: list[str] = []
        """What the last input was about, in words."""
        self.clients: dict[int, Client] = {}
        self._resumed: deque[int] = deque()

    @property
    def connections(self) -> int:
        """Return how many clients are connected."""
        return len(self.clients)

    @property
    def deadline(self) -> int | None:
        """Return when `Passed` is due, at the latest."""
        return min((at for at in (deadline(self.broker), self.faults.deadline) if at is not None), default=None)

    def problems(self) -> dict[str, str]:
        """Return the properties that fail on what happened so far, with reasons."""
        return problems(self.observed, state_of(self.broker.node))

    def take(self, given: Input) -> list[Output]:
        """Take what came from outside, and return what is to be done, in this order."""
        self.said = []
        self.broker = at(self.broker, given.now)
        outputs: list[Output] = []
        if isinstance(given, Opened):
            if self.faults.is_down(given.broker):
                return [Close(given.connection, f"b{given.broker} is down")]
            self.clients[given.connection] = Client(Connection(self.offer), given.broker)
            return []
        if isinstance(given, Gone):
            self._abandon(given.connection)
            return []
        if isinstance(given, Arrived) and given.connection in self.clients:
            self._receive(given.connection, given.data, outputs)
        elif isinstance(given, Injected):
            self._begin(given, outputs)
        elif isinstance(given, Ended):
            self._end(given.number, outputs)
        self._let_go(given.now, outputs)
        before = self.broker.node
        self.broker, answers = due(self.broker, given.now)
        self.broker = delivered(self.broker)
        self.observed = handled(self.observed, None, NOBODY, before, self.broker.node)
        self._answer(answers, outputs)
        self._serve_fetches(outputs)
        return outputs

    def _receive(self, number: int, data: bytes, outputs: list[Output]) -> None:
        client = self.clients[number]
        received = client.connection.receive_data(data)
        if received.to_send:
            self._write(number, received.to_send, outputs)
        for event in received.events:
            if isinstance(event, Closed):
                client.ends = event.reason
            else:
                self.observed, client.transactions[event.number] = arrived(self.observed, event)
                client.waiting.append(event)
        self._go_on(number, outputs)

    def _go_on(self, number: int, outputs: list[Output]) -> None:
        """Look at the next requests of a connection, one after the other, until one has to wait."""
        client = self.clients.get(number)
        while client is not None and number in self.clients and client.asked is None and client.waiting:
            if self.faults.is_stalled(client.broker):
                return
            client.asked = client.waiting.popleft()
            self._look_at(number, client, client.asked, outputs)
        if client is not None and number in self.clients and client.ends is not None and client.asked is None:
            outputs.append(Close(number, client.ends))
            self._forget(number)

    def _look_at(self, number: int, client: Client, request: Request, outputs: list[Output]) -> None:
        """Let the broker take a request, or what a fault makes of it."""
        name = _name(request)
        self.faults, hits = self.faults.hit(name)
        kinds = {fault.kind: fault for fault in hits}
        transaction = client.transactions.get(request.number, NOBODY)
        self.said.append(" ".join(filter(None, (name, _end(request), transaction, *kinds))))
        if "drop" in kinds:
            outputs.append(Close(number, f"a fault dropped {name}"))
            self._forget(number)
        elif "delay" in kinds:
            fault = kinds["delay"]
            until = FOREVER if fault.for_ms is None else self.broker.now + fault.for_ms
            held = Held(fault.number, (number, request.number), until)
            self.faults = attrs.evolve(self.faults, held=(*self.faults.held, held))
        else:
            client.loses = "lose" in kinds
            self._ask(client.broker, request, transaction, (number, request.number), outputs)
            if "duplicate" in kinds and request.api_key != apis.FETCH:
                self._ask(client.broker, request, transaction, (NO_CONNECTION, request.number), outputs)

    def _ask(self, broker: int, request: Request, transaction: str, token: Token, outputs: list[Output]) -> None:
        before = self.broker.node
        self.broker, answers = TABLE[request.api_key](asked_at(self.broker, broker), request, token)
        self.observed = handled(self.observed, request, transaction, before, self.broker.node)
        self._answer(answers, outputs)

    def _answer(self, answers: Iterable[Answer], outputs: list[Output]) -> None:
        for answer in answers:
            number, place = answer.token
            client = self.clients.get(number)
            if client is None or client.asked is None or client.asked.number != place:
                continue
            transaction = client.transactions.get(place, NOBODY)
            if client.loses or answer.closes is not None:
                outputs.append(Close(number, answer.closes or "a fault lost the answer"))
                self._forget(number)
                continue
            if answer.response is not None:
                self.observed = answered(self.observed, client.asked, transaction, answer.response, self.broker.node)
            self._write(number, client.connection.send(place, answer.response), outputs)
            client.transactions.pop(place, None)
            client.asked = None
            self._resumed.append(number)

    def _write(self, number: int, data: bytes, outputs: list[Output]) -> None:
        client = self.clients[number]
        if self.faults.is_stalled(client.broker):
            client.unsent += data
        elif data:
            outputs.append(Write(number, data))

    def _serve_fetches(self, outputs: list[Output]) -> None:
        """Answer waiting fetches and go on behind them, until nothing changes."""
        while True:
            while self._resumed:
                self._go_on(self._resumed.popleft(), outputs)
            self.broker, answers = served_fetches(self.broker)
            self._answer(answers, outputs)
            if not answers:
                return

    def _begin(self, fault: Injected, outputs: list[Output]) -> None:
        """Begin a fault."""
        other = f" b{fault.other}" if fault.other else ""
        self.said.append(f"{fault.kind} {fault.request or fault.partition or f'b{fault.broker}'}{other}")
        if fault.kind in OF_REQUESTS:
            self.faults = attrs.evolve(self.faults, rules=(*self.faults.rules, Rule(fault)))
            return
        if fault.kind == "elect":
            self._place(moved_on(self.broker, fault.partition))
            return
        if fault.other:
            self._link((*self.faults.links, fault))
            return
        now = (*self.faults.brokers.get(fault.broker, ()), fault)
        self.faults = attrs.evolve(self.faults, brokers=self.faults.brokers.set(fault.broker, now))
        if fault.kind == "crash":
            for number in self._clients_of(fault.broker):
                outputs.append(Close(number, f"b{fault.broker} crashed"))
                self._forget(number)
            parked = tuple(each for each in self.faults.parked if each.broker != fault.broker)
            self.faults = attrs.evolve(self.faults, parked=parked)
        if fault.kind != "pause":
            self._place(without(self.broker, fault.broker))

    def _link(self, cut: tuple[Injected, ...]) -> None:
        """Let faults between brokers be these."""
        self.faults = attrs.evolve(self.faults, links=cut)
        self._place(with_cut(self.broker, self.faults.cut))

    def _place(self, broker: Broker) -> None:
        """Let leaders or links be others: markers that waited may arrive."""
        before, self.broker = self.broker.node, delivered(broker)
        self.observed = handled(self.observed, None, NOBODY, before, self.broker.node)

    def _end(self, number: int, outputs: list[Output]) -> None:
        """End a fault, whatever it is."""
        self.faults = attrs.evolve(
            self.faults, rules=tuple(rule for rule in self.faults.rules if rule.fault.number != number))
        if any(fault.number == number for fault in self.faults.links):
            self._link(tuple(fault for fault in self.faults.links if fault.number != number))
        for broker, faults in self.faults.brokers.items():
            left = tuple(fault for fault in faults if fault.number != number)
            if len(left) == len(faults):
                continue
            brokers = self.faults.brokers.set(broker, left) if left else self.faults.brokers.without(broker)
            self.faults = attrs.evolve(self.faults, brokers=brokers)
            if broker in self.broker.absent and all(fault.kind == "pause" for fault in left):
                self._place(again_with(self.broker, broker))
            if not left:
                self._resume(broker, outputs)
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

    def _let_go(self, now: int, outputs: list[Output]) -> None:
        """End what is over by now."""
        for number in self.faults.over(now):
            self._end(number, outputs)
        self._release(lambda each: FOREVER != each.until <= now, outputs)

    def _release(self, is_free: Callable[[Held | Parked], bool], outputs: list[Output]) -> None:
        """Let brokers take requests that were held back, whether their clients are still there or not."""
        held = [each for each in self.faults.held if is_free(each)]
        parked = [each for each in self.faults.parked if is_free(each)]
        if not held and not parked:
            return
        self.faults = attrs.evolve(
            self.faults, held=tuple(each for each in self.faults.held if each not in held),
            parked=tuple(each for each in self.faults.parked if each not in parked))
        for each in held:
            number, place = each.token
            client = self.clients[number]
            assert client.asked is not None
            transaction = client.transactions.get(place, NOBODY)
            self.said.append(" ".join(filter(None, ("held", _name(client.asked), _end(client.asked), transaction))))
            self._ask(client.broker, client.asked, transaction, each.token, outputs)
            self._go_on(number, outputs)
        for late in parked:
            for (_, place), frame, transaction in late.requests:
                request = read_request(self.offer, frame, place)
                self.said.append(" ".join(filter(None, ("late", _name(request), _end(request), transaction))))
                if request.api_key != apis.FETCH:
                    self._ask(late.broker, request, transaction, (NO_CONNECTION, place), outputs)

    def _abandon(self, number: int) -> None:
        """A client gave its connection up: what a fault holds back of it may still be taken."""
        client = self.clients.get(number)
        if client is None:
            return
        held = next((each for each in self.faults.held if each.token[0] == number), None)
        number_of, until = -1, FOREVER
        if held is not None:
            number_of, until = held.number, held.until
        elif self.faults.is_stalled(client.broker):
            number_of, until = self.faults.stalled_by(client.broker)
        requests = client.connection.open_frames
        if held is None and client.asked is not None:
            requests = requests[1:]
        if number_of >= 0 and requests:
            kept = tuple(((number, place), frame, client.transactions.get(place, NOBODY)) for place, frame in requests)
            parked = Parked(number_of, client.broker, until, kept)
            self.faults = attrs.evolve(self.faults, parked=(*self.faults.parked, parked))
        self._forget(number)

    def _forget(self, number: int) -> None:
        self.clients.pop(number, None)
        self.faults = attrs.evolve(
            self.faults, held=tuple(each for each in self.faults.held if each.token[0] != number))
        fetches = self.broker.fetches
        for token in [token for token in fetches if token[0] == number]:
            fetches = fetches.without(token)
        self.broker = attrs.evolve(self.broker, fetches=fetches)


def _name(request: Request) -> str:
    return api_name(request.api_key, request.version)


def _end(request: Request) -> str:
    """Return what an EndTxn asks for."""
    if request.api_key != apis.END_TXN:
        return ""
    return "commit" if request.message["committed"] else "abort"
