"""A session with real clients in the demo's page, while it goes on: its steps as they happen, faults as verbs.

A driver, as `recording` is: it hands the harness what the host did.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable, Iterator

import trio

from harness.demo.session.fed_session import Deed, FedSession
from harness.demo.session.opened_model import open_trail
from harness.demo.web.server import listen, serve
from harness.model import NO_FAULTS, Refusal
from harness.record import Trail
from kafka_proto.gateway import inputs, words
from kafka_proto.gateway.faults import name_of
from kafka_proto.gateway.model import NAME
from kafka_proto.gateway.properties import NAMES
from kafka_proto.gateway.server import Seen, Server
from kafka_proto.gateway.story import ToldFront, ToldHost

MOST_ELECTED = 12
"""Partitions whose leader may be changed from the page."""
FIRST = ("EndTxn", "Produce")
"""Requests whose faults come first, before a client has sent one."""
Does = Callable[[], object]


class LivePage:
    """The page, and what it may do to the brokers. Raises Refusal if its port is taken."""

    def __init__(self, host: str, port: int) -> None:
        self._address = host
        self._listener: socket.socket = listen(host, port)
        nothing = Trail(NAME, {}, {}, "unordered-set", NO_FAULTS, NAMES, (), strategy="outside")
        self._session = FedSession(open_trail(nothing), self)
        self._names: dict[str, None] = {}
        """What clients have asked for, by API."""
        self._host: ToldHost
        self._server: Server

    def watch(self, host: ToldFront, started: inputs.Started | inputs.Fronted, see: Seen) -> Seen:
        """Return an observer that shows every input, and then passes it on."""
        assert isinstance(host, ToldHost)
        self._host = host

        def sees(given: inputs.Input, outputs: list[inputs.Output]) -> None:
            self._show(given)
            see(given, outputs)

        self._show(started)
        return sees

    def _show(self, given: inputs.Input) -> None:
        """Hand in an input."""
        for each in self._host.exchanged:
            if each.has_come and each.request.api_key not in words.MINOR:
                self._names.setdefault(name_of(each.request))
        self._session.put(NAME, given)

    async def run(self, server: Server) -> None:
        """Serve the page until cancelled."""
        self._server = server

        def ready(address: str) -> None:
            print(f"the page is at {address}", flush=True)

        await serve(self._session, self._listener, self._address, ready, trio.Event())

    # What may be done to the brokers

    def deeds(self) -> Iterator[Deed]:
        yield from (deed for deed, _ in self._possible())

    def do(self, label: str) -> None:
        does = next((does for deed, does in self._possible() if deed.label == label), None)
        if does is None:
            raise Refusal(f"{label!r} is not possible any more")
        does()

    def _possible(self) -> Iterator[tuple[Deed, Does]]:
        yield from self._of_held()
        yield from self._of_requests(FIRST)
        yield from self._of_brokers()
        yield from self._of_links()
        yield from self._of_partitions()
        yield from self._of_requests(sorted(self._names.keys() - FIRST))

    def _begin(self, kind: inputs.FaultKind, **what: object) -> Does:
        return lambda: self._server.inject(kind, **what)

    def _end(self, *numbers: int) -> Does:
        def ends() -> None:
            for number in numbers:
                self._server.end(number)

        return ends

    def _of_brokers(self) -> Iterator[tuple[Deed, Does]]:
        faults = self._host.faults
        for number in self._host.settings.brokers:
            name, here = f"b{number}", faults.of_broker(number)
            stopped = [fault.number for fault in here if fault.kind in inputs.STOPPING]
            paused = [fault.number for fault in here if fault.kind == "pause"]
            if stopped:
                yield Deed(f"Start {name}", "restart", "Start", (name,)), self._end(*stopped)
                continue
            yield Deed(f"Crash {name}", "crash", "Crash", (name,)), self._begin("crash", broker=number)
            yield Deed(f"Shut down {name}", "crash", "Shut down", (name,)), self._begin("shut_down", broker=number)
            if paused:
                yield Deed(f"Resume {name}", "resume", "Resume", (name,)), self._end(*paused)
            else:
                yield Deed(f"Pause {name}", "pause", "Pause", (name,)), self._begin("pause", broker=number)

    def _of_links(self) -> Iterator[tuple[Deed, Does]]:
        brokers = self._host.settings.brokers
        lasting = self._host.faults.lasting
        cut = {frozenset((fault.broker, fault.other)): fault.number for fault in lasting if fault.other}
        for one in brokers:
            for other in brokers[one:]:
                both, fault = (f"b{one}", f"b{other}"), cut.get(frozenset((one, other)))
                if fault is not None:
                    yield Deed(f"Heal {' '.join(both)}", "heal", "Heal", both), self._end(fault)
                else:
                    yield (Deed(f"Partition {' '.join(both)}", "partition", "Partition", both),
                           self._begin("partition", broker=one, other=other))

    def _of_partitions(self) -> Iterator[tuple[Deed, Does]]:
        led = self._host.cluster.led
        for p in self._host.cluster.partitions[:MOST_ELECTED]:
            leader = led[p].leader
            yield (Deed(f"Elect {p}", "elect", "Elect", (leader,) if leader else ()),
                   self._begin("elect", partition=p))

    def _of_held(self) -> Iterator[tuple[Deed, Does]]:
        for held in self._host.faults.held:
            for request, _ in held.requests:
                yield (Deed(f"Release {name_of(request)} c{held.client}.{request.number}", "release", "Release",
                            message=f"c{held.client}.{request.number}"), self._end(held.number))

    def _of_requests(self, names: Iterable[str]) -> Iterator[tuple[Deed, Does]]:
        armed = {(rule.fault.kind, rule.fault.request): rule.fault.number for rule in self._host.faults.rules
                 if rule.fault.nth > rule.seen}
        for name in names:
            kinds: tuple[tuple[inputs.FaultKind, str], ...] = (
                ("delay", "hold"), ("drop", "drop"), ("lose", "lose the answer to"))
            for kind, word in kinds:
                if (kind, name) in armed:
                    yield (Deed(f"Do not {word} the next {name}", "heal_request", f"Do not {word}"),
                           self._end(armed[kind, name]))
                else:
                    yield (Deed(f"{word.capitalize()} the next {name}", f"{kind}_request", word.capitalize()),
                           self._begin(kind, request=name))
