"""What a proxy reads of the requests and responses that it forwards: whose they are, and where brokers are said to be.

Pure: bytes in, bytes out. Frames go through as they are, but for responses that say where brokers listen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from kafka_proto.gateway.client import read_response
from kafka_proto.gateway.codec import Source, api_name, structures
from kafka_proto.gateway.connection import WireRequest, encode_response, read_client_id, read_head
from kafka_proto.gateway.frames import framed
from kafka_proto.gateway.offer import FIND_COORDINATOR, METADATA

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
    """Return a request of which only the head is read. Raises Malformed."""
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
