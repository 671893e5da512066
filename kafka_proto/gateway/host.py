"""Brokers and the connections of their clients, without I/O, clock or chance: each input has its time with it.

The same inputs give the same outputs, so a run with real clients is its inputs. As in Kafka, a connection's next
request is looked at when the one before is answered.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

import attrs

from harness.model import FrozenMap
from kafka_proto.broker.versions import BrokerVersion, version_of
from kafka_proto.cluster.running import RunningCluster
from kafka_proto.gateway import offer as apis
from kafka_proto.gateway.answers import answered
from kafka_proto.gateway.apis import TABLE
from kafka_proto.gateway.apis.records import record_times
from kafka_proto.gateway.configs import replication_of
from kafka_proto.gateway.connection import Closed, Connection, WireRequest
from kafka_proto.gateway.context import AskedBroker, Closing, Waits
from kafka_proto.gateway.faults import (
    FOREVER,
    LOST,
    NO_CONNECTION,
    Exchanged,
    FaultsUnderWay,
    Held,
    RequestFault,
    ServedConnection,
    Token,
    UnderWay,
    name_of,
    until,
    words_of,
)
from kafka_proto.gateway.injected_errors import with_error
from kafka_proto.gateway.inputs import (
    OF_BROKERS,
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
    Passed,
    Settings,
    Started,
    Write,
)
from kafka_proto.gateway.observed import NOBODY, Observed, arrived, logged, without
from kafka_proto.gateway.offer import Offer, offer_of
from kafka_proto.gateway.properties import Brokers, problems
from kafka_proto.log import PartitionLog
from kafka_proto.requests import Error

__all__ = ["Arrived", "Close", "Ended", "Gone", "Host", "Injected", "Opened", "Passed", "Started", "Write"]


class Host:
    """Brokers with their clients. `take` is the only way in."""

    def __init__(
        self, settings: Settings, topics: Mapping[str, int], now: int = 0, version: BrokerVersion | None = None
    ) -> None:
        self.offer: Offer = offer_of(settings.release, settings.transaction_version, TABLE)
        self.settings = settings
        self.cluster = RunningCluster(
            version or version_of(settings.release, settings.transaction_version), (), len(settings.ports), now=now,
            replication=replication_of(settings), record_times=record_times)
        for name, partitions in topics.items():
            self.cluster.create_topic(name, partitions)
        self.observed = Observed()
        self.faults = FaultsUnderWay()
        self.said: list[str] = []
        """The subject of the last input, in words."""
        self.exchanged: list[Exchanged] = []
        """What came, and what brokers were asked and answered, in the last input."""
        self.clients: dict[int, ServedConnection] = {}
        self.under_way: list[UnderWay] = []
        """Requests that brokers have taken and not answered."""
        self._resumed: deque[int] = deque()
        self._looked = -1
        self._served: dict[str, PartitionLog] = {}
        """The logs that were looked at last."""

    @property
    def deadline(self) -> int | None:
        """Return when `Passed` is due, at the latest."""
        going = (each for each in self.under_way if not self.faults.of_broker(each.here.asked))
        waits = (each.until for each in going if each.until != FOREVER)
        return min((at for at in (self.cluster.deadline, self.faults.deadline, *waits) if at is not None), default=None)

    @property
    def brokers(self) -> Brokers:
        """Return the state of the brokers that properties are about."""
        return Brokers(FrozenMap(self.cluster.served), FrozenMap(self.cluster.entries), self.cluster.marking,
                       self.cluster.offsets, self.cluster.led)

    def problems(self) -> dict[str, str]:
        """Return the properties that fail on the session so far, with reasons."""
        return problems(self.observed, self.brokers)

    def take(self, given: Input) -> list[Output]:
        """Take an input from outside, and return the outputs to carry out, in this order."""
        self.said, self.exchanged, self.cluster.marked = [], [], []
        self.cluster.pass_time(given.now)
        outputs: list[Output] = []
        if isinstance(given, Opened):
            if self.faults.is_down(given.broker):
                return [Close(given.connection, f"b{given.broker} is down")]
            self.clients[given.connection] = ServedConnection(Connection(self.offer), given.broker)
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
        for number in self.faults.over(given.now):
            self._end(number, outputs)
        self._release(lambda each: FOREVER != each.until <= given.now, outputs)
        self.cluster.pass_time(given.now)
        self._go_on_everywhere(outputs)
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
                came = Exchanged(number, client.broker, event, client.transactions[event.number], has_come=True)
                self.exchanged.append(came)
        self._go_on(number, outputs)

    def _go_on(self, number: int, outputs: list[Output]) -> None:
        """Look at the next requests of a connection, one after the other, until one has to wait."""
        client = self.clients.get(number)
        while client is not None and number in self.clients and client.asked is None and client.waiting:
            if self.faults.of_broker(client.broker):
                return
            client.asked = client.waiting.popleft()
            self._look_at(number, client, client.asked, outputs)
        if client is not None and number in self.clients and client.ends is not None and client.asked is None:
            outputs.append(Close(number, client.ends))
            self._forget(number)

    def _look_at(self, number: int, client: ServedConnection, request: WireRequest, outputs: list[Output]) -> None:
        """Let the broker take a request, or what a fault makes of it."""
        name = name_of(request)
        self.faults, hits = self.faults.hit(name, request.client_id)
        kinds = {fault.kind: fault for fault in hits}
        transaction = client.transactions.get(request.number, NOBODY)
        self.said.append(" ".join((words_of(request, transaction), *kinds)))
        self.exchanged.append(Exchanged(number, client.broker, request, transaction, tuple(kinds)))
        if "drop" in kinds:
            outputs.append(Close(number, f"a fault dropped {name}"))
            self._forget(number)
        elif "delay" in kinds:
            fault = kinds["delay"]
            until = FOREVER if fault.for_ms is None else self.cluster.now + fault.for_ms
            held = Held(fault.number, until, client.broker, number, number, ((request, transaction),))
            self.faults = attrs.evolve(self.faults, held=(*self.faults.held, held))
        elif "answer" in kinds:
            error = Error[kinds["answer"].error or ""]
            answer = with_error(self._asked(client.broker, transaction), request, error)
            if answer is None:
                outputs.append(Close(number, f"a fault answers {error}, which acks of 0 cannot be told"))
                self._forget(number)
                return
            self.exchanged.append(Exchanged(number, client.broker, request, transaction, answer=answer))
            self._write(number, client.connection.send(request.number, answer), outputs)
            self._is_answered(number, client, request.number)
        else:
            client.loses = "lose" in kinds
            self._ask(client.broker, request, transaction, (number, request.number), outputs)
            if "duplicate" in kinds and request.api_key != apis.FETCH:
                self._ask(client.broker, request, transaction, (NO_CONNECTION, request.number), outputs)

    def _ask(self, broker: int, request: WireRequest, transaction: str, token: Token, outputs: list[Output]) -> None:
        """Let a broker take a request, and answer it if it can at once."""
        here = self._asked(broker, transaction)
        each = UnderWay(token, here, request, TABLE[request.api_key](here, request))
        self.under_way.append(each)
        self._work(each, None, outputs)

    def _asked(self, broker: int, transaction: str) -> AskedBroker:
        return AskedBroker(self.settings, self.cluster, broker, transaction)

    def _work(self, each: UnderWay, answers: tuple[object, ...] | None, outputs: list[Output]) -> None:
        """Go on with a request until it is answered, or waits."""
        each.asked, each.until = (), FOREVER
        while True:
            try:
                wanted = next(each.handling) if answers is None else each.handling.send(answers)
            except (StopIteration, Closing) as done:
                self.under_way.remove(each)
                self._answer(each, done, outputs)
                return
            if isinstance(wanted, Waits):
                each.asked, each.until, each.changes = (), wanted.until, self.cluster.changes
                return
            each.asked = tuple(
                self.cluster.send(one, each.here.name, f"c{each.token[0]}", each.here.transaction) for one in wanted)
            self._look()
            if not all(number in self.cluster.answers for number in each.asked):
                return
            answers = self._taken(each)

    def _taken(self, each: UnderWay) -> tuple[Any, ...]:
        """Take the answers; a coordinator of groups that has not read their log says that it loads."""
        answers: tuple[Any, ...] = tuple(self.cluster.answers.pop(number) for number in each.asked)
        if each.request.api_key not in apis.OF_GROUPS or not each.here.loads_groups:
            return answers
        return tuple(attrs.evolve(answer, error=Error.COORDINATOR_LOAD_IN_PROGRESS)
                     if answer.error is Error.NOT_COORDINATOR else answer for answer in answers)

    def _look(self) -> None:
        """Note new committed records, and deleted partitions."""
        if self._looked == self.cluster.changes:
            return
        self._looked = self.cluster.changes
        if self.cluster.deleted:
            gone, self.cluster.deleted = frozenset(self.cluster.deleted), []
            self.observed = without(self.observed, gone)
        before, self._served = self._served, self.cluster.served
        for name, log in self._served.items():
            if before.get(name) is not log:
                self.observed = logged(self.observed, name, log)

    def _answer(self, each: UnderWay, done: StopIteration | Closing, outputs: list[Output]) -> None:
        self._look()
        number, place = each.token
        client = self.clients.get(number)
        if client is None or client.asked is None or client.asked.number != place:
            return
        if client.loses or isinstance(done, Closing):
            self.exchanged.append(Exchanged(number, client.broker, each.request, each.here.transaction, LOST,
                                            None if isinstance(done, Closing) else done.value))
            outputs.append(Close(number, str(done) if isinstance(done, Closing) else "a fault lost the answer"))
            self._forget(number)
            return
        if done.value is not None:
            self.observed = answered(
                self.observed, client.asked, each.here.transaction, done.value, self.cluster.entries)
        self.exchanged.append(Exchanged(number, client.broker, client.asked, each.here.transaction, answer=done.value))
        self._write(number, client.connection.send(place, done.value), outputs)
        self._is_answered(number, client, place)

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

    def _go_on_everywhere(self, outputs: list[Output]) -> None:
        """Go on with what was answered meanwhile, and with connections behind it, until nothing changes."""
        self._look()
        while True:
            while self._resumed:
                self._go_on(self._resumed.popleft(), outputs)
            ready = next((each for each in self.under_way if self._may_go_on(each)), None)
            if ready is None:
                return
            self._work(ready, self._taken(ready), outputs)

    def _may_go_on(self, each: UnderWay) -> bool:
        """Say whether what a request waits for has come. One that looks again does so where something happened."""
        if each.asked:
            return all(number in self.cluster.answers for number in each.asked)
        if self.faults.of_broker(each.here.asked):
            return False
        return each.until <= self.cluster.now or each.changes != self.cluster.changes

    def _begin(self, fault: Injected, outputs: list[Output]) -> None:
        """Begin a fault."""
        about = fault.request or fault.partition or f"b{fault.broker}"
        self.said.append(f"{fault.kind} {about} b{fault.other}" if fault.other else f"{fault.kind} {about}")
        if fault.kind in OF_REQUESTS:
            self.faults = attrs.evolve(self.faults, rules=(*self.faults.rules, RequestFault(fault)))
            return
        if fault.kind == "elect":
            for p in (fault.partition,) if fault.partition else self.cluster.placement.all_partitions:
                if p in self.cluster.placement.all_partitions:
                    self.cluster.elect(p)
            return
        self.faults = attrs.evolve(self.faults, lasting=(*self.faults.lasting, fault))
        if fault.kind in STOPPING:
            for number in self._clients_of(fault.broker):
                outputs.append(Close(number, f"b{fault.broker} {'crashed' if fault.kind == 'crash' else 'shut down'}"))
                self._forget(number)
            held = tuple(each for each in self.faults.held if each.broker != fault.broker)
            self.faults = attrs.evolve(self.faults, held=held)
            self.under_way = [each for each in self.under_way if each.here.asked != fault.broker]
        self._silence(fault)

    def _silence(self, changed: Injected) -> None:
        """Let brokers be down, cut off and paused, or pairs of them cut off from each other, as faults say."""
        if changed.other:
            self.cluster.cut_link(frozenset(
                frozenset((f"b{fault.broker}", f"b{fault.other}")) for fault in self.faults.lasting if fault.other))
            return
        of = {kind: frozenset(f"b{fault.broker}" for fault in self.faults.lasting
                              if fault.kind == kind and not fault.other) for kind in OF_BROKERS}
        for broker in sorted(of["crash"] - self.cluster.down):
            self.cluster.crash(broker)
        for broker in sorted(of["shut_down"] - self.cluster.down):
            self.cluster.shut_down(broker)
        self.cluster.isolate(of["partition"])
        self.cluster.pause(of["pause"])
        for broker in sorted(self.cluster.down - of["crash"] - of["shut_down"]):
            self.cluster.start(broker)

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

    def _abandon(self, number: int) -> None:
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
        self._forget(number)

    def _forget(self, number: int) -> None:
        self.clients.pop(number, None)
        self.faults = attrs.evolve(
            self.faults, held=tuple(each for each in self.faults.held if each.connection != number))
        for each in [each for each in self.under_way if each.token[0] == number and each.until != FOREVER]:
            self.under_way.remove(each)
