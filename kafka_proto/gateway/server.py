"""TCP on loopback: a listener per broker, a task per connection, all of them around a `Front` that knows no I/O.

Sizes and counts are bounded: connections, bytes of a request, requests under way, bytes that a client has not read.
"""

from __future__ import annotations

import os
import re
import signal
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import Any

import attrs
import trio

from harness.model import FrozenMap, Refusal
from kafka_proto.gateway.front import Front
from kafka_proto.gateway.host import Host
from kafka_proto.gateway.inputs import (
    Arrived,
    Close,
    Ended,
    FaultKind,
    Fronted,
    Gone,
    Injected,
    Input,
    Opened,
    Output,
    Passed,
    Settings,
    Started,
    TimedFault,
    Write,
)
from kafka_proto.gateway.plans import read_plan, written
from kafka_proto.gateway.story import ToldFront, ToldHost

MOST_CONNECTIONS = 1_000
IDLE_SECONDS = 600.0
"""Kafka's `connections.max.idle.ms`."""
RECEIVED_AT_ONCE = 64 * 1024
MOST_UNREAD = 64 * 1024 * 1024
"""Bytes that wait for a client that does not read; then its connection is closed."""
END = re.compile(r"end +([0-9]{1,9})")

Seen = Callable[[Input, list[Output]], None]


def wall_clock_ms() -> int:
    """Return milliseconds since the epoch."""
    return time.time_ns() // 1_000_000


@attrs.define
class Outbox:
    """What waits to be written to a client."""

    stream: trio.SocketStream | None = None
    ready: trio.Event = attrs.field(factory=trio.Event)
    data: bytearray = attrs.field(factory=bytearray)
    ends: bool = False

    def put(self, data: bytes) -> None:
        self.data += data
        self.ends = self.ends or len(self.data) > MOST_UNREAD
        self.ready.set()

    def end(self) -> None:
        self.ends = True
        self.ready.set()


class Server:
    """Serves brokers until it is cancelled. `seen` is handed every input with its result."""

    def __init__(self, host: Front, seen: Seen = lambda given, outputs: None, clock: Callable[[], int] = wall_clock_ms,
                 idle_seconds: float = IDLE_SECONDS, most_connections: int = MOST_CONNECTIONS) -> None:
        self.host = host
        self._seen = seen
        self._clock = clock
        self._idle_seconds = idle_seconds
        self._most_connections = most_connections
        self._outboxes: dict[int, Outbox] = {}
        self.opened = self.received = 0
        """Connections, and bytes that came."""
        self.begun = 0
        """How many faults have begun; they are numbered from 1."""
        self._changed = trio.Event()
        self._accepting: dict[int, trio.CancelScope] = {}
        self._started = trio.Event()
        """Set, and made anew, when a broker that was down starts."""

    async def serve(self, *listeners: trio.SocketListener) -> None:
        """Serve connections of each broker's listener for ever. A cancellation ends them and closes the listeners."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._tick)
            for broker, listener in enumerate(listeners, 1):
                nursery.start_soon(self._accept, broker, listener, nursery)

    async def _accept(self, broker: int, listener: trio.SocketListener, clients: trio.Nursery) -> None:
        """Take a broker's clients while it is up; while it is down its port is bound, and refuses them."""
        host, port = listener.socket.getsockname()[:2]
        while True:
            with trio.CancelScope() as self._accepting[broker]:
                await trio.serve_listeners(partial(self._client, broker), [listener], handler_nursery=clients)
            port_kept = trio.socket.socket()
            try:
                port_kept.setsockopt(trio.socket.SOL_SOCKET, trio.socket.SO_REUSEADDR, 1)
                await port_kept.bind((host, port))
                while self.host.faults.is_down(broker):
                    await self._started.wait()
                port_kept.listen()
            except BaseException:
                port_kept.close()
                raise
            listener = trio.SocketListener(port_kept)

    def inject(self, kind: FaultKind, **what: Any) -> int:
        """Begin a fault, described further by the fields of `Injected`; return the number by which it ends."""
        self.begun += 1
        self._take(Injected(self.begun, kind, self._clock(), **what))
        return self.begun

    def end(self, number: int) -> None:
        """End a fault."""
        self._take(Ended(number, self._clock()))

    def look(self) -> None:
        """Let time pass up to now: what is due happens, and replicas are looked at."""
        self._take(Passed(self._clock()))

    def problems(self) -> dict[str, str]:
        """Return the properties that fail, with reasons, after a look."""
        self.look()
        return self.host.problems()

    async def inject_later(
        self, faults: Iterable[TimedFault], say: Callable[[int, TimedFault], None] | None = None
    ) -> None:
        """Begin faults at their times, in milliseconds from now; `say` is handed each with its number."""
        begun = trio.current_time()
        for timed in sorted(faults, key=lambda timed: timed.at_ms):
            await trio.sleep_until(begun + timed.at_ms / 1000)
            number = self.inject(**attrs.asdict(timed, filter=attrs.filters.exclude("at_ms")))
            if say is not None:
                say(number, timed)

    def _take(self, given: Input) -> None:
        before = self.host.faults.lasting
        try:
            outputs = self.host.take(given)
        except Exception:
            self._seen(given, [])
            raise
        self._seen(given, outputs)
        for output in outputs:
            self._carry_out(output)
        if self.host.faults.lasting is not before:
            self._start_or_stop()
        self._changed.set()

    def _carry_out(self, output: Output) -> None:
        outbox = self._outboxes.get(output.connection)
        if outbox is not None and isinstance(output, Write):
            outbox.put(output.data)
        elif outbox is not None and isinstance(output, Close):
            outbox.end()

    def _start_or_stop(self) -> None:
        """Let brokers listen that are up, and those not that are down."""
        for broker, scope in self._accepting.items():
            if self.host.faults.is_down(broker):
                scope.cancel()
        started, self._started = self._started, trio.Event()
        started.set()

    async def _tick(self) -> None:
        """Let time pass for the broker when something is due."""
        while True:
            deadline = self.host.deadline
            left = 3600.0 if deadline is None else max(0.0, (deadline - self._clock()) / 1000)
            with trio.move_on_after(left) as scope:
                await self._changed.wait()
            self._changed = trio.Event()
            if scope.cancelled_caught:
                self.look()

    async def _client(self, broker: int, stream: trio.SocketStream) -> None:
        """Serve one connection until either side ends it, or it is idle for too long."""
        if len(self._outboxes) >= self._most_connections:
            return
        number, self.opened = self.opened, self.opened + 1
        outbox = self._outboxes[number] = Outbox(stream)
        self._take(Opened(number, self._clock(), broker))
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._write, outbox, nursery.cancel_scope)
                await self._read(number, stream)
        finally:
            del self._outboxes[number]
            self._take(Gone(number, self._clock()))

    async def _read(self, number: int, stream: trio.SocketStream) -> None:
        while True:
            data = b""
            with trio.move_on_after(self._idle_seconds):
                try:
                    data = await stream.receive_some(RECEIVED_AT_ONCE)
                except (trio.BrokenResourceError, trio.ClosedResourceError):
                    data = b""
            if not data:
                self._outboxes[number].end()
            if self._outboxes[number].ends:
                return
            self.received += len(data)
            self._take(Arrived(number, bytes(data), self._clock()))

    async def _write(self, outbox: Outbox, client: trio.CancelScope) -> None:
        """Write what there is, then close the connection if it is to end."""
        while True:
            await outbox.ready.wait()
            outbox.ready = trio.Event()
            while outbox.data and len(outbox.data) <= MOST_UNREAD:
                data, outbox.data = bytes(outbox.data), bytearray()
                try:
                    assert outbox.stream is not None
                    await outbox.stream.send_all(data)
                except (trio.BrokenResourceError, trio.ClosedResourceError):
                    client.cancel()
                    return
            if outbox.ends:
                client.cancel()
                return


async def listening(settings: Settings, address: str | None = None) -> tuple[Settings, list[trio.SocketListener]]:
    """Return a listener for each port, 0 for a free one, and the settings with the ports they have. Raises OSError.

    Without an address they listen where clients find them.
    """
    listeners: list[trio.SocketListener] = []
    try:
        for port in settings.ports:
            listeners += await trio.open_tcp_listeners(port, host=address or settings.host)
    except OSError:
        for listener in listeners:
            await listener.aclose()
        raise
    return attrs.evolve(settings, ports=tuple(each.socket.getsockname()[1] for each in listeners)), listeners


Watch = Callable[[ToldFront, Started | Fronted], Seen]
"""Is handed the host before anything comes, and returns the observer of every input."""


@asynccontextmanager
async def running(
    server: Server, listeners: Iterable[trio.SocketListener], faults: Iterable[TimedFault]
) -> AsyncIterator[trio.Nursery]:
    """Let a server run while the block lasts, and faults begin: yield a nursery beside it."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(server.serve, *listeners)
        nursery.start_soon(server.inject_later, faults)
        yield nursery
        nursery.cancel_scope.cancel()


Serving = tuple[Server, trio.Nursery, str]
"""A server that runs, a nursery beside it, and where clients find the brokers."""


@asynccontextmanager
async def serving(
    settings: Settings, topics: Mapping[str, int], watch: Watch, faults: Iterable[TimedFault] = (),
    listen: str | None = None,
) -> AsyncIterator[Serving]:
    """Serve brokers while the block lasts.

    With `listen`, they listen at another address than clients are told. Raises OSError if a port is taken,
    ValueError for a release and level that no version stands for.
    """
    Host(settings, {})  # refuses a release and level before anything is listened on
    here, listeners = await listening(settings, listen)
    started = Started(here, FrozenMap(topics), wall_clock_ms())
    host = ToldHost(here, started.topics, started.now)
    host.begun(started)
    server = Server(host, watch(host, started), wall_clock_ms)
    async with running(server, listeners, faults) as nursery:
        yield server, nursery, addresses(here)
        server.look()


def addresses(settings: Settings) -> str:
    """Return where clients find the brokers, in the form that they want."""
    return ",".join(f"{settings.host}:{port}" for port in settings.ports)


async def obey(server: Server, seed: int, later: trio.Nursery) -> None:
    """Take lines from stdin as they come: `delay EndTxn` begins a fault, `end 1` ends it, each is said by its number.

    What cannot be is said on stderr, and the brokers go on.
    """
    waiting, ended = b"", False
    while not ended:
        data = await trio.to_thread.run_sync(os.read, 0, RECEIVED_AT_ONCE, abandon_on_cancel=True)
        ended = not data
        *lines, waiting = (waiting + data).split(b"\n")
        for text in (line.decode(errors="replace").strip() for line in (*lines, *((waiting,) if ended else ()))):
            seed += bool(text)
            try:
                if text:
                    later.start_soon(server.inject_later, _typed(server, text, seed), _begun)
            except Refusal as refused:
                print(f"kafka-proto: {refused}", file=sys.stderr, flush=True)


def _typed(server: Server, text: str, seed: int) -> list[TimedFault]:
    """End a fault, or return those that a line begins. Raises Refusal."""
    end = END.fullmatch(text)
    if end is None:
        return read_plan(text, seed, server.host.settings, server.host.offer)
    if not 1 <= int(end[1]) <= server.begun:
        raise Refusal(f"there is no fault {end[1]}; {server.begun} began so far")
    server.end(int(end[1]))
    return []


def _begun(number: int, timed: TimedFault) -> None:
    print(f"fault {number}: {written(timed)}", file=sys.stderr, flush=True)


def serve_until_signal(
    served: AbstractAsyncContextManager[Serving], announce: Callable[[str], None], typed: int | None = None,
    beside: Callable[[Server], Awaitable[None]] | None = None,
) -> Server:
    """Serve until SIGTERM or SIGINT; `announce` is told the addresses of the brokers once clients can connect.

    With `typed`, a seed, lines on stdin are obeyed; `beside` is done with the server meanwhile. Raises what `served`
    does.
    """
    async def run() -> Server:
        with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
            async with served as (server, tasks, address):
                announce(address)
                if typed is not None:
                    tasks.start_soon(obey, server, typed, tasks)
                if beside is not None:
                    tasks.start_soon(beside, server)
                await anext(signals)
        return server

    return trio.run(run)
