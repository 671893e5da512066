"""The server on loopback: closed as a broker closes, bounded in connections and idleness, ended in order."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

pytest.importorskip("kio", reason="needs the extra `gateway`")

import trio
from support.commands.command_line import PATIENCE_S
from support.gateway.wire import produced, request_bytes, responses

from kafka_proto.gateway import offer
from kafka_proto.gateway.client import Client
from kafka_proto.gateway.cluster import KafkaCluster
from kafka_proto.gateway.host import Host
from kafka_proto.gateway.inputs import Arrived, Gone, Opened, Settings
from kafka_proto.gateway.records import WireRecord, write_batch
from kafka_proto.gateway.server import Server, listening

HEARTBEAT = request_bytes(offer.HEARTBEAT, 4, {"group_id": "g"})
SIZE = 16
"""Of the answer to it."""
Connect = Callable[[], Awaitable[trio.SocketStream]]
Talk = Callable[[Connect, Host], Awaitable[None]]


def serve(talk: Talk, **bounds: Any) -> list[Any]:
    """Serve a broker for as long as somebody talks, and return the inputs that it saw."""
    seen: list[Any] = []
    host = Host(Settings(), {}, 0)

    streams: list[trio.SocketStream] = []

    async def connect() -> trio.SocketStream:
        streams.append(await trio.open_tcp_stream(*listener.socket.getsockname()))
        return streams[-1]

    async def run() -> None:
        nonlocal listener
        _, (listener,) = await listening(Settings())
        server = Server(host, lambda given, outputs: seen.append(given), **bounds)
        try:
            with trio.fail_after(PATIENCE_S):
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(server.serve, listener)
                    await talk(connect, host)
                    nursery.cancel_scope.cancel()
        finally:
            for stream in streams:
                await stream.aclose()

    listener: Any = None
    trio.run(run)
    assert (host.clients, listener.socket.fileno()) == ({}, -1)
    return seen


async def read(stream: trio.SocketStream, size: int) -> bytes:
    """Return some bytes, fewer where the connection ends before."""
    data = b""
    while len(data) < size and (more := await stream.receive_some(size - len(data))):
        data += more
    return data


def test_requests_are_answered_and_bad_bytes_close() -> None:
    """A request that comes byte by byte is answered; an API that is not offered closes the connection behind it."""

    async def talk(connect: Connect, host: Host) -> None:
        stream = await connect()
        for byte in HEARTBEAT:
            await stream.send_all(bytes([byte]))
        ((_, answer),) = responses(await read(stream, SIZE), (offer.HEARTBEAT, 4))
        assert answer["error_code"] == 25
        await stream.send_all(HEARTBEAT + b"\0\0\0\x08\x03\xe7" + bytes(6))
        assert len(await read(stream, 99)) == SIZE, "the answer before it is still written, then nothing"

    seen = serve(talk)
    assert isinstance(seen[0], Opened) and isinstance(seen[-1], Gone)
    assert b"".join(given.data for given in seen if isinstance(given, Arrived)).startswith(HEARTBEAT * 2)


def test_idle_and_half_open_connections_end() -> None:
    """A client that says nothing, or ends inside a request, is let go."""

    async def say_nothing(connect: Connect, host: Host) -> None:
        assert await read(await connect(), 1) == b""
        while host.clients:
            await trio.sleep(0.01)

    async def end_inside(connect: Connect, host: Host) -> None:
        half = await connect()
        await half.send_all(HEARTBEAT[:9])
        await half.send_eof()
        assert await read(half, 1) == b""
        while host.clients:
            await trio.sleep(0.01)

    for talk, bounds in ((say_nothing, {"idle_seconds": 0.2}), (end_inside, {})):
        assert sum(isinstance(given, Gone) for given in serve(talk, **bounds)) == 1


def test_connections_are_bounded() -> None:
    """One too many is closed at once, and the others are served on."""

    async def talk(connect: Connect, host: Host) -> None:
        clients = [await connect() for _ in range(3)]
        assert await read(clients[2], 1) == b""
        await clients[0].send_all(HEARTBEAT)
        assert len(await read(clients[0], SIZE)) == SIZE

    assert sum(isinstance(given, Opened) for given in serve(talk, most_connections=2)) == 2


def test_time_passes_without_requests() -> None:
    """A fetch that waits is answered when its time is over, by the server's clock."""
    fetch = request_bytes(offer.FETCH, 11, {"max_wait": 50, "min_bytes": 1, "topics": ()})

    async def talk(connect: Connect, host: Host) -> None:
        stream = await connect()
        await stream.send_all(fetch)
        ((_, answer),) = responses(await read(stream, 22), (offer.FETCH, 11))
        assert answer["error_code"] == 0

    serve(talk)


def test_a_client_hears_of_a_closed_connection_and_makes_another() -> None:
    """Over sockets: what comes behind the refused batch is not answered on that connection."""
    good = write_batch([WireRecord(None, b"a")], base_timestamp=5)
    with KafkaCluster({"t": 1}) as cluster:
        host, _, port = cluster.bootstrap_servers.partition(":")
        with Client(host, int(port)) as client:
            assert client.ask(offer.PRODUCE, 9, produced((0, good), acks=0)) == {}
            with pytest.raises(ConnectionError):
                client.ask(offer.PRODUCE, 9, produced((5, good), acks=0))
            answer = client.ask(offer.PRODUCE, 9, produced((0, good)))
    assert answer["responses"][0]["partition_responses"][0]["base_offset"] == 1
