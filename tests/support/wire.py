"""Requests as bytes, for tests of the gateway: frames with a header, and what comes back taken apart again."""

from __future__ import annotations

from typing import Any

from kafka_proto.gateway.codec import Source, has_flexible_header, read_message, write_message, write_varint
from kafka_proto.gateway.frames import framed

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
