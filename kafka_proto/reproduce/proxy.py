"""A proxy between clients and a broker that holds single requests back: each connection has one to the broker.

What is held keeps its connection to the broker open when its client gives up: it arrives later, as out of a socket.
Frames go through as they are, but for responses that say where brokers listen.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import attrs
import trio

from kafka_proto.gateway.codec import FrameReader, Source, api_name, framed, structures
from kafka_proto.gateway.connection import WireRequest, encode_response, read_client_id, read_head, read_response
from kafka_proto.gateway.offer import FIND_COORDINATOR, METADATA
from kafka_proto.reproduce.schedule import Late

NAMING = (METADATA, FIND_COORDINATOR)
"""APIs whose responses say where brokers are."""
Address = tuple[str, int]


def api_of(request: WireRequest) -> str:
    """Return what Kafka calls a request, as EndTxn; empty for what kio does not know."""
    try:
        return api_name(request.api_key, request.version)
    except Exception:  # kio's errors for what it does not have are of many kinds
        return ""


def asked(frame: bytes) -> WireRequest:
    """Return a request; only its head is read. Raises Malformed."""
    source = Source(frame)
    return WireRequest(0, *read_head(source), read_client_id(source), {})


def addresses(frame: bytes, request: WireRequest) -> list[Address]:
    """Return where the brokers are that a response names. Raises Malformed."""
    if request.api_key not in NAMING:
        return []
    fields = read_response(frame, request.api_key, request.version)[1]
    return [(place["host"], place["port"]) for place in _places(fields)]


def renamed(frame: bytes, request: WireRequest, mine: Callable[[Address], Address]) -> bytes:
    """Return a response as a frame with its length, in which brokers are where a proxy says. Raises Malformed."""
    if request.api_key not in NAMING:
        return framed(frame)
    fields = read_response(frame, request.api_key, request.version)[1]
    for place in _places(fields):
        place["host"], place["port"] = mine((place["host"], place["port"]))
    return encode_response(request, fields)


def _places(fields: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the structures that say where a broker is."""
    return (part for part in structures(fields) if "host" in part and part.get("port", -1) > 0)


LOOPBACK = "127.0.0.1"
PIECE = 65_536
LOST = (trio.BrokenResourceError, trio.ClosedResourceError)


@attrs.define
class HeldRequest:
    """A request that is held back, from when it comes until it may arrive and is answered."""

    late: Late
    came: trio.Event = attrs.field(factory=trio.Event)
    may_arrive: trio.Event = attrs.field(factory=trio.Event)
    answered: trio.Event = attrs.field(factory=trio.Event)


@attrs.define
class ProxiedConnection:
    """A client's connection and the one to the broker: requests that are not answered, by correlation id."""

    client: trio.SocketStream
    broker: trio.SocketStream
    waiting: dict[int, tuple[WireRequest, HeldRequest | None]] = attrs.field(factory=dict)


class Proxy:
    """Forwards between clients and a broker and its fellows; `choose` says which request is held back."""

    def __init__(self, choose: Callable[[WireRequest], HeldRequest | None]) -> None:
        self._choose = choose
        self._mine: dict[Address, Address] = {}
        self._nursery: trio.Nursery

    async def listen(self, nursery: trio.Nursery, broker: Address) -> Address:
        """Listen for clients of a broker, once, and return where. Raises OSError."""
        self._nursery = nursery
        if broker not in self._mine:
            (listener,) = await trio.open_tcp_listeners(0, host=LOOPBACK)
            self._mine[broker] = (LOOPBACK, listener.socket.getsockname()[1])
            nursery.start_soon(trio.serve_listeners, partial(self._serve, broker), [listener])
        return self._mine[broker]

    async def _serve(self, broker: Address, client: trio.SocketStream) -> None:
        try:
            stream = await trio.open_tcp_stream(*broker)
        except OSError:
            return
        connection = ProxiedConnection(client, stream)
        async with stream, trio.open_nursery() as nursery:
            nursery.start_soon(self._answers, connection)
            await self._requests(connection)
            with trio.move_on_after(5):  # what was forwarded is answered, whether or not the client is there
                while connection.waiting:
                    await trio.sleep(0.01)
            nursery.cancel_scope.cancel()

    async def _requests(self, connection: ProxiedConnection) -> None:
        """Forward requests until the client ends, or one of them is lost."""
        reader = FrameReader()
        while data := await _received(connection.client):
            for frame in reader.receive(data):
                request = asked(frame)
                held = self._choose(request)
                if held is not None:
                    held.came.set()
                    if held.late.is_lost:
                        await connection.client.aclose()
                        return
                    await held.may_arrive.wait()
                connection.waiting[request.correlation_id] = (request, held)
                if not await _sent(connection.broker, framed(frame)):
                    return

    async def _answers(self, connection: ProxiedConnection) -> None:
        """Forward responses until the broker ends; brokers are where this proxy listens for them."""
        reader = FrameReader(longest=2**30)
        while data := await _received(connection.broker):
            for frame in reader.receive(data):
                request, held = connection.waiting.pop(int.from_bytes(frame[:4], "big", signed=True))
                for address in addresses(frame, request):
                    await self.listen(self._nursery, address)
                if held is not None:
                    held.answered.set()
                await _sent(connection.client, renamed(frame, request, self._mine.__getitem__))
        await connection.client.aclose()


async def _received(stream: trio.SocketStream) -> bytes:
    """Return what comes next, nothing where the other side has ended."""
    try:
        return bytes(await stream.receive_some(PIECE))
    except LOST:
        return b""


async def _sent(stream: trio.SocketStream, data: bytes) -> bool:
    """Send, and say whether the other side was there."""
    try:
        await stream.send_all(data)
    except LOST:
        return False
    return True


def chooser(helds: list[HeldRequest], begun: Callable[[str], int]) -> Callable[[WireRequest], HeldRequest | None]:
    """Return what picks the requests that come late: `begun` says which call a producer made last, by its client id."""
    seen: Counter[tuple[str, str, int]] = Counter()
    wanted = {(held.late.producer, held.late.api, held.late.call, held.late.nth): held for held in helds}

    def choose(request: WireRequest) -> HeldRequest | None:
        client = request.client_id or ""
        place = (client, api_of(request), begun(client))
        seen[place] += 1
        return wanted.get((*place, seen[place]))

    return choose
