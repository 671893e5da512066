"""TCP on loopback: a listener per broker, a task per connection, all of them around one `Host` that knows no I/O.

Sizes and counts are bounded: connections, bytes of a request, requests under way, bytes that a client has not read.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Protocol

import attrs
import trio

from harness.model import FrozenMap
from kafka_proto.gateway.host import Arrived, Close, Ended, Gone, Host, Injected, Opened, Passed, Write
from kafka_proto.gateway.inputs import FaultKind, Input, Output, Settings, Started, TimedFault

MOST_CONNECTIONS = 1_000
IDLE_SECONDS = 600.0
"""Kafka's `connections.max.idle.ms`."""
RECEIVED_AT_ONCE = 64 * 1024
MOST_UNREAD = 64 * 1024 * 1024
"""Bytes that wait for a client that does not read; then its connection is closed."""

Seen = Callable[[Input, list[Output]], None]


def wall_clock_ms() -> int:
    """Return milliseconds since the epoch."""
    return time.time_ns() // 1_000_000


@attrs.define
class _Outbox:
    """What waits to be written to a client."""

    stream: trio.SocketStream
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
    """Serves brokers until it is cancelled. `seen` is handed every input with what came of it."""

    def __init__(self, host: Host, seen: Seen = lambda given, outputs: None, clock: Callable[[], int] = wall_clock_ms,
                 idle_seconds: float = IDLE_SECONDS, most_connections: int = MOST_CONNECTIONS) -> None:
        self._host = host
        self._seen = seen
        self._clock = clock
        self._idle_seconds = idle_seconds
        self._most_connections = most_connections
        self._outboxes: dict[int, _Outbox] = {}
        self._opened = 0
        self._faults = 0
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
                while self._host.faults.is_down(broker):
                    await self._started.wait()
                port_kept.listen()
            except BaseException:
                port_kept.close()
                raise
            listener = trio.SocketListener(port_kept)

    def inject(self, kind: FaultKind, *, request: str = "", nth: int = 1, broker: int = 0, partition: str = "",
               for_ms: int | None = None, other: int = 0) -> int:
        """Begin a fault, and return the number by which it ends."""
        self._faults += 1
        self._take(Injected(self._faults, kind, self._clock(), request, nth, broker, partition, for_ms, other))
        return self._faults

    def end(self, number: int) -> None:
        """End a fault."""
        self._take(Ended(number, self._clock()))

    @property
    def begun(self) -> int:
        """Return how many faults have begun; they are numbered from 1."""
        return self._faults

    async def inject_later(
        self, faults: Iterable[TimedFault], say: Callable[[int, TimedFault], None] | None = None
    ) -> None:
        """Begin faults at their times, in milliseconds from now; `say` is handed each with its number."""
        begun = trio.current_time()
        for timed in sorted(faults, key=lambda timed: timed.at_ms):
            await trio.sleep_until(begun + timed.at_ms / 1000)
            number = self.inject(timed.kind, request=timed.request, nth=timed.nth, broker=timed.broker,
                                 partition=timed.partition, for_ms=timed.for_ms, other=timed.other)
            if say is not None:
                say(number, timed)

    def _take(self, given: Input) -> None:
        before = self._host.faults.brokers
        try:
            outputs = self._host.take(given)
        except Exception:
            self._seen(given, [])
            raise
        self._seen(given, outputs)
        for output in outputs:
            outbox = self._outboxes.get(output.connection)
            if outbox is not None and isinstance(output, Write):
                outbox.put(output.data)
            elif outbox is not None and isinstance(output, Close):
                outbox.end()
        if self._host.faults.brokers is not before:
            self._start_or_stop()
        self._changed.set()

    def _start_or_stop(self) -> None:
        """Let brokers listen that are up, and those not that are down."""
        for broker, scope in self._accepting.items():
            if self._host.faults.is_down(broker):
                scope.cancel()
        started, self._started = self._started, trio.Event()
        started.set()

    async def _tick(self) -> None:
        """Let time pass for the broker when something is due."""
        while True:
            deadline = self._host.deadline
            left = 3600.0 if deadline is None else max(0.0, (deadline - self._clock()) / 1000)
            with trio.move_on_after(left) as scope:
                await self._changed.wait()
            self._changed = trio.Event()
            if scope.cancelled_caught:
                self._take(Passed(self._clock()))

    async def _client(self, broker: int, stream: trio.SocketStream) -> None:
        """Serve one connection until either side ends it, or it is idle for too long."""
        if len(self._outboxes) >= self._most_connections:
            return
        number, self._opened = self._opened, self._opened + 1
        outbox = self._outboxes[number] = _Outbox(stream)
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
            self._take(Arrived(number, bytes(data), self._clock()))

    async def _write(self, outbox: _Outbox, client: trio.CancelScope) -> None:
        """Write what there is, then close the connection if it is to end."""
        while True:
            await outbox.ready.wait()
            outbox.ready = trio.Event()
            while outbox.data and len(outbox.data) <= MOST_UNREAD:
                data, outbox.data = bytes(outbox.data), bytearray()
                try:
                    await outbox.stream.send_all(data)
                except (trio.BrokenResourceError, trio.ClosedResourceError):
                    client.cancel()
                    return
            if outbox.ends:
                client.cancel()
                return


async def listening(settings: Settings) -> tuple[Settings, list[trio.SocketListener]]:
    """Return a listener for each port, and the settings with the ports that they have. Raises OSError."""
    listeners: list[trio.SocketListener] = []
    try:
        for port in settings.ports:
            listeners.append(await listen(settings.host, port))
    except OSError:
        for listener in listeners:
            await listener.aclose()
        raise
    return attrs.evolve(settings, ports=tuple(map(port_of, listeners))), listeners


def addresses(settings: Settings) -> str:
    """Return where clients find the brokers, as they want it said."""
    return ",".join(f"{settings.host}:{port}" for port in settings.ports)


Watch = Callable[[Host, Started], Seen]
"""Is handed the host before anything comes, and returns who sees every input."""


class Obeys(Protocol):
    """What is done about lines on stdin."""

    def take(self, server: Server, line: str) -> Iterable[TimedFault]:
        """Do what a line says, or return the faults that it begins."""

    def begun(self, number: int, timed: TimedFault) -> None:
        """A fault has begun, which is ended by its number."""


async def obey(server: Server, obeys: Obeys, later: trio.Nursery) -> None:
    """Take lines from stdin, as they come, until it ends."""
    waiting = b""
    while data := await trio.to_thread.run_sync(os.read, 0, RECEIVED_AT_ONCE, abandon_on_cancel=True):
        *lines, waiting = (waiting + data).split(b"\n")
        for line in lines:
            later.start_soon(server.inject_later, obeys.take(server, line.decode(errors="replace")), obeys.begun)
    later.start_soon(server.inject_later, obeys.take(server, waiting.decode(errors="replace")), obeys.begun)


def serve_until_signal(
    settings: Settings, topics: Mapping[str, int], announce: Callable[[str], None], watch: Watch,
    faults: Iterable[TimedFault] = (), obeys: Obeys | None = None,
) -> Host:
    """Serve brokers until SIGTERM or SIGINT; `announce` is told their addresses once clients can connect.

    Lines on stdin are taken where somebody obeys them.

    Raises OSError where a port is taken, ValueError for a release and level that no version stands for.
    """
    async def run() -> Host:
        here, listeners = await listening(settings)
        started = Started(here, FrozenMap(topics), wall_clock_ms())
        try:
            host = Host(here, started.topics, started.now)
        except ValueError:
            for listener in listeners:
                await listener.aclose()
            raise
        server = Server(host, watch(host, started))
        with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(server.serve, *listeners)
                nursery.start_soon(server.inject_later, faults)
                announce(addresses(here))
                if obeys is not None:
                    nursery.start_soon(obey, server, obeys, nursery)
                await anext(signals)
                nursery.cancel_scope.cancel()
        return host

    return trio.run(run)


async def listen(host: str, port: int) -> trio.SocketListener:
    """Return a listener on an address of this machine; port 0 takes a free one."""
    (listener,) = await trio.open_tcp_listeners(port, host=host)
    return listener


def port_of(listener: trio.SocketListener) -> int:
    """Return the port that a listener has."""
    port: int = listener.socket.getsockname()[1]
    return port
