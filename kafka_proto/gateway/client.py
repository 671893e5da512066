"""The client's side of the wire: requests as frames, responses as fields, one at a time on a blocking socket."""

from __future__ import annotations

import socket
from types import TracebackType
from typing import Any

from kafka_proto.gateway import codec
from kafka_proto.gateway.connection import is_unanswered, read_response
from kafka_proto.gateway.offer import API_VERSIONS

CLIENT_ID = "test"


def request_bytes(
    api: int, version: int, message: codec.Fields, correlation_id: int = 1, client_id: str = CLIENT_ID
) -> bytes:
    """Return the frame of a request with a client id."""
    out = bytearray(api.to_bytes(2, "big", signed=True) + version.to_bytes(2, "big", signed=True))
    out += correlation_id.to_bytes(4, "big", signed=True) + len(client_id).to_bytes(2, "big") + client_id.encode()
    if codec.has_flexible_header("request", api, version):
        codec.write_varint(out, 0)
    return codec.framed(bytes(out) + codec.write_message("request", api, version, message))


class Client:
    """A connection to a broker. Raises OSError if it cannot be made, or ends."""

    def __init__(self, host: str, port: int, timeout_seconds: float = 30.0) -> None:
        self._where = (host, port), timeout_seconds
        self._socket = socket.create_connection(*self._where)
        self._asked = 0

    def __enter__(self) -> Client:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self._socket.close()

    def ask(self, api: int, version: int, message: codec.Fields) -> dict[str, Any]:
        """Send a request, and return its response; a Produce without answer returns nothing, once it is processed.

        If the broker closes the connection instead, the next request is sent on another one.
        """
        frame = self.frame(api, version, message)
        return read_response(frame, api, version)[1] if frame else {}

    def frame(self, api: int, version: int, message: codec.Fields) -> bytes:
        """Send a request, and return its response as the frame that came."""
        self._asked += 1
        if self._socket.fileno() < 0:
            self._socket = socket.create_connection(*self._where)
        try:
            self._socket.sendall(request_bytes(api, version, message, self._asked))
            if is_unanswered(api, message):
                self.ask(API_VERSIONS, 0, {})
                return b""
            return self._take(int.from_bytes(self._take(codec.SIZE), "big"))
        except ConnectionError:
            self._socket.close()
            raise

    def _take(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            more = self._socket.recv(size - len(data))
            if not more:
                raise ConnectionError("the broker closed the connection")
            data += more
        return bytes(data)
