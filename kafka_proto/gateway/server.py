"""TCP on loopback: a listener per broker, a task per connection, all of them around one `Host` that knows no I/O.

Sizes and counts are bounded: connections, bytes of a request, requests under way, bytes that a client has not read.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Mapping
from functools import partial

import attrs
import trio

from kafka_proto.gateway.broker import Settings
from kafka_proto.gateway.host import Arrived, Close, Gone, Host, Input, Opened, Output, Passed, Write

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
    """Serves one broker until it is cancelled. `seen` is handed every input with what came of it."""

    def __init__(self, host: Host, seen: Seen = lambda given, outputs: None, clock: Callable[[], int] = wall_clock_ms,
                 idle_seconds: float = IDLE_SECONDS, most_connections: int = MOST_CONNECTIONS) -> None:
        self._host = host
        self._seen = seen
        self._clock = clock
        self._idle_seconds = idle_seconds
        self._most_connections = most_connections
        self._outboxes: dict[int, _Outbox] = {}
        self._opened = 0
        self._changed = trio.Event()

    async def serve(self, listener: trio.SocketListener) -> None:
        """Serve connections of a listener for ever. A cancellation ends all of them and closes the listener."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._tick)
            await trio.serve_listeners(partial(self._client), [listener], handler_nursery=nursery)

    def _take(self, given: Input) -> None:
        outputs = self._host.take(given)
        self._seen(given, outputs)
        for output in outputs:
            outbox = self._outboxes.get(output.connection)
            if outbox is not None and isinstance(output, Write):
                outbox.put(output.data)
            elif outbox is not None and isinstance(output, Close):
                outbox.end()
        self._changed.set()

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

    async def _client(self, stream: trio.SocketStream) -> None:
        """Serve one connection until either side ends it, or it is idle for too long."""
        if len(self._outboxes) >= self._most_connections:
            return
        number, self._opened = self._opened, self._opened + 1
        outbox = self._outboxes[number] = _Outbox(stream)
        self._take(Opened(number, self._clock()))
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


@attrs.define
class Served:
    """What a server has served: connections, and bytes that came."""

    connections: int = 0
    received: int = 0

    def see(self, given: Input, outputs: list[Output]) -> None:
        """Count an input."""
        self.connections += isinstance(given, Opened)
        self.received += len(given.data) if isinstance(given, Arrived) else 0


def serve_until_signal(settings: Settings, topics: Mapping[str, int], announce: Callable[[str], None]) -> Served:
    """Serve a broker until SIGTERM or SIGINT; `announce` is told its address once clients can connect.

    Raises OSError where the port is taken, ValueError for a release and level that no version stands for.
    """
    served = Served()

    async def run() -> None:
        listener = await listen(settings.host, settings.port)
        here = attrs.evolve(settings, port=port_of(listener))
        try:
            host = Host(here, topics, wall_clock_ms())
        except ValueError:
            await listener.aclose()
            raise
        with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(Server(host, served.see).serve, listener)
                announce(f"{here.host}:{here.port}")
                await anext(signals)
                nursery.cancel_scope.cancel()

    trio.run(run)
    return served


async def listen(host: str, port: int) -> trio.SocketListener:
    """Return a listener on an address of this machine; port 0 takes a free one."""
    (listener,) = await trio.open_tcp_listeners(port, host=host)
    return listener


def port_of(listener: trio.SocketListener) -> int:
    """Return the port that a listener has."""
    port: int = listener.socket.getsockname()[1]
    return port
