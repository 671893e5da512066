"""A session with real clients in the demo's page, while it goes on: its steps as they happen, faults as verbs.

A driver, as `recording` is: it hands the harness what the host did.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

import attrs
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
from kafka_proto.gateway.story import FAULTS, ToldFront, ToldHost

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

    def _deed(
        self, kind: inputs.FaultKind, about: tuple[str, ...], begun: Sequence[int], **what: object
    ) -> tuple[Deed, Does]:
        """Return a fault that may begin; or the end of those of this kind that have begun."""
        shown = FAULTS[kind]
        word, verb = (shown.undo, shown.mending) if begun else (shown.word, shown.sort)
        is_of_requests = kind in inputs.OF_REQUESTS
        if is_of_requests:
            verb = f"{'heal' if begun else kind}_request"

        def does() -> None:
            for number in begun:
                self._server.end(number)
            if not begun:
                self._server.inject(kind, **what)

        return Deed(" ".join((word, *about)), verb, word, () if is_of_requests else about), does

    def _of_brokers(self) -> Iterator[tuple[Deed, Does]]:
        lasting = self._host.faults.lasting
        for number in self._host.settings.brokers:
            begun: dict[str, list[int]] = {}
            for fault in lasting:
                if fault.broker == number and not fault.other:
                    begun.setdefault(fault.kind, []).append(fault.number)
            stopped = next((kind for kind in inputs.STOPPING if kind in begun), None)
            for kind in (stopped,) if stopped else inputs.LASTING:
                yield self._deed(kind, (f"b{number}",), begun.get(kind, ()), broker=number)

    def _of_links(self) -> Iterator[tuple[Deed, Does]]:
        brokers = self._host.settings.brokers
        cut = {frozenset((fault.broker, fault.other)): fault.number for fault in self._host.faults.lasting
               if fault.other}
        for one in brokers:
            for other in brokers[one:]:
                both = frozenset((one, other))
                yield self._deed("partition", (f"b{one}", f"b{other}"), [cut[both]] if both in cut else (),
                                 broker=one, other=other)

    def _of_partitions(self) -> Iterator[tuple[Deed, Does]]:
        led = self._host.cluster.led
        for p in self._host.cluster.partitions[:MOST_ELECTED]:
            deed, does = self._deed("elect", (p,), (), partition=p)
            yield attrs.evolve(deed, actors=(led[p].leader,) if led[p].leader else ()), does

    def _of_held(self) -> Iterator[tuple[Deed, Does]]:
        for held in self._host.faults.held:
            for request, _ in held.requests:
                message = f"c{held.client}.{request.number}"
                yield (Deed(f"Release {name_of(request)} {message}", "release", "Release", message=message),
                       partial(self._server.end, held.number))

    def _of_requests(self, names: Iterable[str]) -> Iterator[tuple[Deed, Does]]:
        armed = {(rule.fault.kind, rule.fault.request): rule.fault.number for rule in self._host.faults.rules
                 if not 0 < rule.fault.nth <= rule.seen}
        for name in names:
            for kind in inputs.BY_CHANCE:
                number = armed.get((kind, name))
                yield self._deed(kind, (name,), () if number is None else (number,), request=name)
