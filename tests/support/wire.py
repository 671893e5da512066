"""Requests as bytes, for tests of the gateway: frames with a header, and what comes back taken apart again."""

from __future__ import annotations

from typing import Any

from kafka_proto.gateway.codec import Source, has_flexible_header, read_message, write_message, write_varint
from kafka_proto.gateway.frames import framed
from kafka_proto.gateway.host import Arrived, Opened, Passed, Write

API_VERSIONS = 18


def request_bytes(api: int, version: int, message: dict[str, Any], correlation_id: int = 1) -> bytes:
    """Return the frame of a request with a client id."""
    out = bytearray(api.to_bytes(2, "big", signed=True) + version.to_bytes(2, "big", signed=True))
    out += correlation_id.to_bytes(4, "big", signed=True) + b"\0\4test"
    if has_flexible_header("request", api, version):
        write_varint(out, 0)
    return framed(bytes(out) + write_message("request", api, version, message))


def responses(data: bytes, *asked: tuple[int, int]) -> list[tuple[int, dict[str, Any]]]:
    """Return the responses in some bytes as (correlation id, message); `asked` has API and version of each."""
    found, at = [], 0
    for api, version in asked:
        size = int.from_bytes(data[at : at + 4], "big")
        source = Source(data[at + 4 : at + 4 + size])
        correlation_id = int.from_bytes(source.take(4), "big", signed=True)
        if api != API_VERSIONS and has_flexible_header("response", api, version):
            assert source.take(1) == b"\0"
        found.append((correlation_id, read_message("response", api, version, source)))
        assert source.left == 0
        at += 4 + size
    assert at == len(data)
    return found


class Talk:
    """Clients of a host without sockets: connections by number, a time that tests set, and all inputs kept."""

    def __init__(self, host: Any, now: int = 1_000_000) -> None:
        self.host = host
        self.now = now
        self.inputs: list[Any] = []
        self.outputs: list[Any] = []
        self._asked: dict[int, list[tuple[int, int]]] = {}
        self._opened = 0

    def give(self, given: Any) -> list[Any]:
        """Hand an input to the host, and return what it wants done."""
        self.inputs.append(given)
        found = self.host.take(given)
        self.outputs.append(found)
        return list(found)

    def connect(self) -> int:
        """Return the number of a new connection."""
        self._opened += 1
        self.give(Opened(self._opened - 1, self.now))
        self._asked[self._opened - 1] = []
        return self._opened - 1

    def ask(self, connection: int, api: int, version: int, message: dict[str, Any]) -> dict[int, list[dict[str, Any]]]:
        """Send a request, and return the responses that come of it by connection."""
        self._asked[connection].append((api, version))
        return self.written(self.give(Arrived(connection, request_bytes(api, version, message), self.now)))

    def one(self, connection: int, api: int, version: int, message: dict[str, Any]) -> dict[str, Any]:
        """Send a request that is answered at once, and return its response."""
        found = self.ask(connection, api, version, message)
        assert list(found) == [connection]
        (response,) = found[connection]
        return response

    def wait(self, milliseconds: int) -> dict[int, list[dict[str, Any]]]:
        """Let time pass at once, and return the responses that come of it."""
        self.now += milliseconds
        return self.written(self.give(Passed(self.now)))

    def written(self, outputs: list[Any]) -> dict[int, list[dict[str, Any]]]:
        """Return the responses that were written, by connection."""
        found: dict[int, list[dict[str, Any]]] = {}
        for output in outputs:
            assert isinstance(output, Write), output
            asked = self._asked[output.connection].pop(0)
            ((_, message),) = responses(output.data, asked)
            found.setdefault(output.connection, []).append(message)
        return found
