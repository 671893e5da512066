"""One connection of a client, without I/O: bytes go in, requests come out; responses go in, bytes come out in order.

In the manner of h11: the owner of the socket calls `receive_data`, answers each `Request` by `send`, in any order, and
writes what `send` returns. What a broker answers by closing the connection is a `Closed`, once, and the last event.
ApiVersions is answered here, since it is about the connection: what it says is the offer that the others must keep to.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any
from uuid import UUID

import attrs

from kafka_proto.gateway import codec, topic_ids
from kafka_proto.gateway.offer import API_VERSIONS, PRODUCE, Offer, answer_api_versions, unsupported_api_versions

MOST_PIPELINED = 1_000
"""Requests of a connection that wait for their answer. Clients have at most some dozens under way."""


@attrs.frozen
class WireRequest:
    """A request as it came: `number` counts the requests of its connection, and names it in `send`."""

    number: int
    api_key: int
    version: int
    correlation_id: int
    client_id: str | None
    message: dict[str, Any]
    frame: bytes = attrs.field(default=b"", repr=False)
    """All of it, as it came."""


@attrs.frozen
class Closed:
    """The connection is to be closed; nothing is read from it any more. What was sent before may be written."""

    reason: str


@attrs.frozen
class Received:
    """The result of some bytes: bytes to be written at once, then events."""

    events: tuple[WireRequest | Closed, ...] = ()
    to_send: bytes = b""


@attrs.define
class _Answer:
    request: WireRequest
    response: bytes | None = None
    """Bytes once it is answered, none of them if nothing is to be written."""


class Connection:
    """A client's connection to one broker. With topics' ids and names, which may change, requests by id go by name."""

    def __init__(self, offer: Offer, most_pipelined: int = MOST_PIPELINED,
                 ids: dict[str, UUID] | None = None, names: dict[UUID, str] | None = None) -> None:
        self._offer = offer
        self._ids, self._names = ids, names
        self._frames = codec.FrameReader()
        self._most_pipelined = most_pipelined
        self._under_way: deque[_Answer] = deque()
        self._next = 0
        self.software = ""
        """Name and version of the client, as it says from version 3 of ApiVersions on."""
        self.is_closed = False
        self.client_id: str | None = None
        """As its last request says it."""

    @property
    def open_requests(self) -> tuple[WireRequest, ...]:
        """Return the requests that were not answered, in their order."""
        return tuple(answer.request for answer in self._under_way if answer.response is None)

    @property
    def waiting_bytes(self) -> int:
        """Return how many bytes wait for the rest of their request."""
        return self._frames.waiting

    @property
    def unanswered(self) -> int:
        """Return how many requests were not answered, or wait for an answer before theirs."""
        return len(self._under_way)

    def receive_data(self, data: bytes) -> Received:
        """Take bytes as they came from the client, of any number; no bytes mean that it will send no more."""
        if self.is_closed:
            return Received()
        events: list[WireRequest | Closed] = []
        to_send = b""
        try:
            if not data:
                raise codec.Malformed("the client closed it" + (" inside a request" if self.waiting_bytes else ""))
            for frame in self._frames.receive(data):
                if self.unanswered >= self._most_pipelined:
                    raise codec.Malformed(f"more than {self._most_pipelined} requests wait for their answer")
                request = self._taken(frame)
                if request.api_key == API_VERSIONS:
                    self.software = " ".join(str(request.message.get(f"client_software_{each}", ""))
                                             for each in ("name", "version")).strip()
                    is_offered = self._offer.takes(API_VERSIONS, request.version)
                    to_send += self.send(request.number, unsupported_api_versions(self._offer) if not is_offered
                                         else answer_api_versions(self._offer, request.version, request.message))
                else:
                    events.append(request)
        except codec.Malformed as reason:
            self.is_closed = True
            events.append(Closed(str(reason)))
        return Received(tuple(events), to_send)

    def send(self, number: int, response: codec.Fields | bytes | None) -> bytes:
        """Answer a request by fields, or by a frame; None if no answer is written. Return what is to be written now.

        Responses leave in the order of requests. Raises ValueError for a request that waits for no answer.
        """
        at = number - (self._next - len(self._under_way))
        if not 0 <= at < len(self._under_way) or self._under_way[at].response is not None:
            raise ValueError(f"request {number} waits for no answer; those that do are named by the events")
        answer = self._under_way[at]
        request = answer.request
        if (self._ids is not None and isinstance(response, Mapping)
                and topic_ids.goes_by_id(request.api_key, request.version)):
            response = topic_ids.with_ids(request.message, response, self._ids)
        answer.response = encode_response(request, response) if isinstance(response, Mapping) else response or b""
        ready = bytearray()
        while self._under_way and self._under_way[0].response is not None:
            ready += self._under_way.popleft().response or b""
        return bytes(ready)

    def _taken(self, frame: bytes) -> WireRequest:
        """Return a frame as a request that waits for its answer. Raises Malformed for a frame that no broker takes."""
        request = read_request(self._offer, frame, self._next)
        if self._names is not None and topic_ids.goes_by_id(request.api_key, request.version):
            topic_ids.add_names(request.message, self._names)
        self._next += 1
        self.client_id = request.client_id
        self._under_way.append(_Answer(request))
        return request


def read_head(source: codec.Source) -> tuple[int, int, int]:
    """Return API, version and correlation id of a request. Raises Malformed."""
    head = source.take(8)
    api_key, version = (int.from_bytes(head[at : at + 2], "big", signed=True) for at in (0, 2))
    return api_key, version, int.from_bytes(head[4:], "big", signed=True)


def read_client_id(source: codec.Source) -> str | None:
    """Return what follows in each request. Raises Malformed."""
    length = int.from_bytes(source.take(2), "big", signed=True)
    try:
        return None if length < 0 else source.take(length).decode()
    except UnicodeDecodeError:
        raise codec.Malformed("the client id is not UTF-8") from None


def read_request(offer: Offer, frame: bytes, number: int) -> WireRequest:
    """Return a frame as a request (`RequestHeader.parse`, `SocketServer.processCompletedReceives`).

    Raises Malformed if a broker closes the connection for it: bytes that are no request, an API or a version that it
    does not offer. Of ApiVersions any version is a request, and its fields are not read then (KIP-511).
    """
    source = codec.Source(frame)
    api_key, version, correlation_id = read_head(source)
    if not offer.takes(api_key, version):
        if api_key == API_VERSIONS:
            return WireRequest(number, api_key, version, correlation_id, None, {})
        raise codec.Malformed(f"version {version} of API {api_key}, which is not offered")
    client_id = read_client_id(source)
    if codec.has_flexible_header("request", api_key, version):
        codec.read_tags(source, {})
    message = codec.read_message("request", api_key, version, source)
    return WireRequest(number, api_key, version, correlation_id, client_id, message, frame)


def encode_response(request: WireRequest, response: codec.Fields) -> bytes:
    """Return the frame of a response: header 1 if its version is flexible, but 0 for ApiVersions, then the body."""
    version = request.version
    out = bytearray(request.correlation_id.to_bytes(4, "big", signed=True))
    if request.api_key == API_VERSIONS:
        version = response.get("version", version)
    elif codec.has_flexible_header("response", request.api_key, version):
        codec.write_varint(out, 0)
    out += codec.write_message("response", request.api_key, version, response)
    return codec.framed(out)


def read_response(frame: bytes, api: int, version: int) -> tuple[int, dict[str, Any], int]:
    """Return correlation id, fields, and how many bytes are left of a response. Raises Malformed."""
    source = codec.Source(frame)
    correlation_id = int.from_bytes(source.take(4), "big", signed=True)
    if api != API_VERSIONS and codec.has_flexible_header("response", api, version):
        source.take(1)
    return correlation_id, codec.read_message("response", api, version, source), source.left


def is_unanswered(api: int, message: codec.Fields) -> bool:
    """Say whether a broker leaves a request without an answer."""
    return api == PRODUCE and message["acks"] == 0
