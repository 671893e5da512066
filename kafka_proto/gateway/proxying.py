"""A proxy over TCP: a server whose clients' requests go on to another cluster, which is asked by itself, too."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, suppress
from typing import Any

import attrs
import trio

from harness.model import Refusal
from kafka_proto.gateway import offer as apis
from kafka_proto.gateway.client import Client
from kafka_proto.gateway.codec import Malformed
from kafka_proto.gateway.connection import read_response
from kafka_proto.gateway.inputs import Dial, Forward, Fronted, HangUp, Learned, Output, Replied, Settings, TimedFault
from kafka_proto.gateway.outside import Address
from kafka_proto.gateway.proxy import ProxyHost
from kafka_proto.gateway.questions import Pause, Question, after, before
from kafka_proto.gateway.server import (
    RECEIVED_AT_ONCE,
    Outbox,
    Server,
    Serving,
    Watch,
    addresses,
    listening,
    running,
    wall_clock_ms,
)
from kafka_proto.gateway.story import ToldProxy

SPARE = 3
"""Ports for brokers that join while a session runs."""
PATIENCE_SECONDS, PAUSE_SECONDS = 10.0, 0.1
METADATA_ASKED = 9
NO_ANSWER = (OSError, Malformed)


class ProxyServer(Server):
    """Serves clients of another cluster's brokers until it is cancelled."""

    def __init__(self, proxy: ProxyHost, *given: Any) -> None:
        super().__init__(proxy, *given)
        self.proxy = proxy
        self._upstreams: dict[int, Outbox] = {}
        self._tasks: trio.Nursery

    async def serve(self, *listeners: trio.SocketListener) -> None:
        """Serve connections of each broker's listener for ever, each with one to the broker itself."""
        async with trio.open_nursery() as self._tasks:
            await super().serve(*listeners)

    async def ask(self, questions: Iterator[Question | Pause], is_needed: bool) -> None:
        """Ask the other cluster for the proxy itself. Raises OSError and Malformed where an answer is needed."""
        with ExitStack() as stack:
            clients: dict[Address, Client] = {}
            for question in questions:
                if isinstance(question, Pause):
                    await trio.sleep(PAUSE_SECONDS)
                    continue
                with suppress(*(() if is_needed else NO_ANSWER)):
                    where = self.proxy.address_of(question.node)
                    if where not in clients:
                        clients[where] = stack.enter_context(Client(*where, PATIENCE_SECONDS))
                    frame = await trio.to_thread.run_sync(
                        clients[where].frame, question.api_key, question.version, question.message)
                    read_response(frame, question.api_key, question.version)  # what cannot be read is no input
                    self._take(Learned(question.api_key, question.version, frame, self._clock()))

    def _carry_out(self, output: Output) -> None:
        if isinstance(output, Dial):
            self._upstreams[output.connection] = box = Outbox()
            self._tasks.start_soon(self._upstream, output, box)
        elif isinstance(output, Forward):
            self._upstreams[output.connection].put(output.data)
        elif isinstance(output, HangUp):
            if output.connection in self._upstreams:  # unless the broker has ended it
                self._upstreams.pop(output.connection).end()
        else:
            super()._carry_out(output)

    async def _upstream(self, dial: Dial, box: Outbox) -> None:
        """Keep a connection to a broker until either side ends it."""
        with suppress(OSError):
            box.stream = await trio.open_tcp_stream(dial.host, dial.port)
            async with box.stream, trio.open_nursery() as nursery:
                nursery.start_soon(self._write, box, nursery.cancel_scope)
                while data := await _received(box.stream):
                    if not box.ends:
                        self._take(Replied(dial.connection, data, self._clock()))
                nursery.cancel_scope.cancel()
        if self._upstreams.get(dial.connection) is box:
            del self._upstreams[dial.connection]
            self._take(Replied(dial.connection, b"", self._clock()))


async def _received(stream: trio.SocketStream) -> bytes:
    """Return what comes next, nothing where the broker has ended the connection."""
    try:
        return bytes(await stream.receive_some(RECEIVED_AT_ONCE))
    except (trio.BrokenResourceError, trio.ClosedResourceError):
        return b""


def _brokers(upstream: Address) -> int:
    """Return how many brokers a cluster has. Raises OSError and Malformed."""
    with Client(*upstream, PATIENCE_SECONDS) as client:
        ranges = {row["api_key"]: row["max_version"] for row in client.ask(apis.API_VERSIONS, 0, {})["api_keys"]}
        version = min(METADATA_ASKED, ranges.get(apis.METADATA, METADATA_ASKED))
        return len(client.ask(apis.METADATA, version, {"topics": ()})["brokers"])


@asynccontextmanager
async def proxying(
    upstream: Address, settings: Settings, watch: Watch, plan: Callable[[ProxyHost], list[TimedFault]],
    listen: str | None = None,
) -> AsyncIterator[Serving]:
    """Serve a proxy before the cluster at an address while the block lasts; then read what came of it.

    The settings have the host, and the first broker's port, 0 for free ones. Raises OSError if a port is taken, Refusal
    if no broker answers.
    """
    try:
        count = await trio.to_thread.run_sync(_brokers, upstream)
    except NO_ANSWER as error:
        raise no_broker(upstream, error) from None
    first = settings.ports[0]
    ports = tuple(first + place if first else 0 for place in range(count + SPARE))
    here, listeners = await listening(attrs.evolve(settings, ports=ports), listen)
    given = Fronted(attrs.evolve(here, ports=here.ports[:count]), *upstream, here.ports[count:], wall_clock_ms())
    proxy = ToldProxy(given)
    proxy.begun(given)
    server = ProxyServer(proxy, watch(proxy, given), wall_clock_ms)
    try:
        await server.ask(before(proxy), is_needed=True)
        faults = plan(proxy)
    except BaseException as error:
        for listener in listeners:
            await listener.aclose()
        if isinstance(error, NO_ANSWER):
            raise no_broker(upstream, error) from None
        raise
    async with running(server, listeners, faults) as nursery:
        yield server, nursery, addresses(given.settings)
    await server.ask(after(proxy), is_needed=False)


def no_broker(upstream: Address, error: Exception) -> Refusal:
    """Return the sentence for a cluster that does not answer."""
    host, port = upstream
    return Refusal(f"{host}:{port} does not answer as a broker without TLS and password ({error}); start one, or give "
                   "--upstream the address of another")
