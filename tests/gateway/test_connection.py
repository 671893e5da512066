"""A connection without I/O: pieces of any size, answers in order, what is refused as a broker refuses it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("kio", reason="needs the extra `gateway`")

from support.gateway.wire import request_bytes, responses

from kafka_proto.gateway.connection import Closed, Connection, WireRequest
from kafka_proto.gateway.offer import API_VERSIONS, LEVELS, RELEASES, Offer, offer_of

METADATA, HEARTBEAT, PRODUCE = 3, 12, 0
SERVED = (PRODUCE, METADATA, HEARTBEAT)
SOFTWARE = {"client_software_name": "apache-kafka-java", "client_software_version": "4.4.0"}


def offer(release: str = "4.4.0", level: int = 2) -> Offer:
    return offer_of(release, level, SERVED)


def heartbeat(number: int) -> bytes:
    return request_bytes(HEARTBEAT, 4, {"group_id": "g", "generation_id": number}, number)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(1, 60), max_size=20))
def test_requests_come_out_whole_however_the_bytes_are_cut(cuts: list[int]) -> None:
    """Five pipelined requests are five events in their order, whatever pieces a network makes of them."""
    stream = b"".join(heartbeat(number) for number in range(5))
    connection, found = Connection(offer()), []
    for size in [*cuts, len(stream)]:
        piece, stream = stream[:size], stream[size:]
        found += connection.receive_data(piece).events if piece else ()
    assert [(e.number, e.correlation_id, e.message["generation_id"]) for e in found if isinstance(e, WireRequest)] == [
        (number, number, number) for number in range(5)]
    assert (connection.waiting_bytes, connection.unanswered) == (0, 5)


@settings(max_examples=40, deadline=None)
@given(st.permutations(range(5)), st.sets(st.integers(0, 4)))
def test_answers_leave_in_the_order_of_requests(order: list[int], silent: set[int]) -> None:
    """An answer waits for those before it; a request that gets none (acks=0) holds nobody up."""
    connection, written = Connection(offer()), b""
    connection.receive_data(b"".join(heartbeat(number) for number in range(5)))
    for number in order:
        written += connection.send(number, None if number in silent else {"error_code": number})
    spoken = [number for number in range(5) if number not in silent]
    found = responses(written, *[(HEARTBEAT, 4)] * len(spoken))
    assert [(number, message["error_code"]) for number, message in found] == [(n, n) for n in spoken]
    with pytest.raises(ValueError, match="waits for no answer"):
        connection.send(order[0], None)


def test_api_versions_is_answered_in_its_turn() -> None:
    """ApiVersions behind another request waits for that one's answer; its own header is always version 0."""
    connection = Connection(offer())
    both = heartbeat(1) + request_bytes(API_VERSIONS, 3, SOFTWARE, 2)
    assert connection.receive_data(both).to_send == b""
    written = connection.send(0, {"error_code": 0})
    (_, first), (number, second) = responses(written, (HEARTBEAT, 4), (API_VERSIONS, 3))
    assert (first["error_code"], number, second["error_code"]) == (0, 2, 0)


@pytest.mark.parametrize("release", RELEASES)
def test_api_versions_offers_what_is_served_of_a_release(release: str) -> None:
    """Each release has its ranges, cut to what is served; from 4.0 on Produce is announced from 0, for librdkafka."""
    level = LEVELS[release][-1]
    data = Connection(offer(release, level)).receive_data(request_bytes(API_VERSIONS, 3, SOFTWARE)).to_send
    ((_, message),) = responses(data, (API_VERSIONS, 3))
    ranges = {key["api_key"]: (key["min_version"], key["max_version"]) for key in message["api_keys"]}
    last = {"3.5.2": 9, "3.6.2": 9, "3.7.2": 10, "3.8.1": 11, "3.9.2": 11}
    produce = (3, last[release]) if release in last else (0, 12 if release == "4.0.0" else 13)
    metadata = (0, 12 if release in last else 13)
    api_versions = (0, 3) if release in ("3.5.2", "3.6.2", "3.7.2", "3.8.1") else (0, 4)
    assert ranges == {PRODUCE: produce, METADATA: metadata, HEARTBEAT: (0, 4), API_VERSIONS: api_versions}
    features = {feature["name"]: feature["max_version_level"] for feature in message["finalized_features"]}
    assert features == ({"transaction.version": level} if level else {})


@pytest.mark.parametrize("version", [5, 6, 99, -1])
def test_api_versions_of_an_unknown_version_gets_the_range_in_layout_0(version: int) -> None:
    """A newer client learns by error 35 what to step down to, and the connection stays open (KIP-511)."""
    connection = Connection(offer())
    frame = bytearray(request_bytes(API_VERSIONS, 4, SOFTWARE, 9))
    frame[6:8] = version.to_bytes(2, "big", signed=True)
    received = connection.receive_data(bytes(frame))
    ((number, message),) = responses(received.to_send, (API_VERSIONS, 0))
    assert (number, message["error_code"], received.events) == (9, 35, ())
    assert message["api_keys"] == ({"api_key": API_VERSIONS, "min_version": 0, "max_version": 4},)
    assert connection.receive_data(heartbeat(1)).events


def test_a_software_name_that_is_none_is_an_invalid_request() -> None:
    """ApiVersions with a bad name of the client's software gets INVALID_REQUEST and no APIs."""
    data = Connection(offer()).receive_data(request_bytes(API_VERSIONS, 3, {**SOFTWARE, "client_software_name": "-"}))
    ((_, message),) = responses(data.to_send, (API_VERSIONS, 3))
    assert (message["error_code"], message["api_keys"]) == (42, ())


def renumbered(data: bytes, api: int, version: int) -> bytes:
    return data[:4] + api.to_bytes(2, "big", signed=True) + version.to_bytes(2, "big", signed=True) + data[8:]


REFUSED: dict[str, tuple[bytes, str]] = {
    "an API that no broker has": (renumbered(heartbeat(1), 999, 0), "version 0 of API 999"),
    "an API that is not served": (renumbered(heartbeat(1), 15, 0), "version 0 of API 15"),
    "a version that is not offered": (renumbered(heartbeat(1), HEARTBEAT, 5), "version 5 of API 12"),
    "Produce below 3": (renumbered(heartbeat(1), PRODUCE, 2), "version 2 of API 0"),
    "a frame too long": (b"\x7f\xff\xff\xff", "a frame of 2147483647 bytes"),
    "a negative length": (b"\xff\xff\xff\xff", "a frame of -1 bytes"),
    "no header": (b"\0\0\0\2\0\x12", "8 bytes expected, 2 left"),
    "the end": (b"", "the client closed it"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_a_broker_closes_for_closes(case: str) -> None:
    """The connection ends with one event that says why; what follows is not read."""
    data, reason = REFUSED[case]
    connection = Connection(offer())
    events = connection.receive_data(data).events
    assert len(events) == 1 and isinstance(events[0], Closed) and reason in events[0].reason
    assert connection.is_closed and connection.receive_data(heartbeat(1)).events == ()


def test_pipelined_requests_are_bounded() -> None:
    """A client that asks without end and reads nothing is closed."""
    connection = Connection(offer(), most_pipelined=10)
    *asked, last = connection.receive_data(heartbeat(0) * 12).events
    assert len(asked) == 10 and isinstance(last, Closed)


def test_a_frame_that_comes_slowly_is_kept_as_far_as_it_is_there() -> None:
    """What is kept of a request is what came of it, not what its length promises."""
    connection = Connection(offer())
    assert connection.receive_data(b"\0\xff\xff\xff").events == () and connection.waiting_bytes == 4
    for _ in range(100):
        connection.receive_data(b"\0")
    assert connection.waiting_bytes == 104


FRAMES: list[bytes] = [
    heartbeat(1), request_bytes(API_VERSIONS, 3, SOFTWARE), request_bytes(METADATA, 9, {"topics": ({"name": "t"},)}),
    request_bytes(METADATA, 1, {"topics": None}),
    request_bytes(PRODUCE, 9, {"acks": 1, "topic_data": (
        {"name": "t", "partition_data": ({"index": 0, "records": b"x" * 70},)},)}),
]
NASTY = (b"\0", b"\xff", b"\x7f\xff\xff\xff", b"\x80\x80\x80\x80\x80")


def mutate(data: st.DataObject, frame: bytes) -> bytes:
    """Return a frame with bytes set, put in or cut out, its length right or as it was."""
    changed = bytearray(frame)
    for _ in range(data.draw(st.integers(0, 4))):
        at = data.draw(st.integers(0, len(changed)))
        kind = data.draw(st.sampled_from(("set", "insert", "cut")))
        new = data.draw(st.sampled_from(NASTY) | st.binary(max_size=4))
        end = {"set": at + len(new), "insert": at, "cut": at + data.draw(st.integers(1, 9))}[kind]
        changed[at:end] = b"" if kind == "cut" else new
    if data.draw(st.booleans()) and len(changed) >= 4:
        changed[:4] = (len(changed) - 4).to_bytes(4, "big")
    return bytes(changed)


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_no_bytes_get_an_exception_out_of_a_connection(data: st.DataObject) -> None:
    """Random and mutated frames, in pieces: requests, then at most one end, no more kept than came, no exception."""
    connection, came, found = Connection(offer()), 0, list[Any]()
    for _ in range(data.draw(st.integers(1, 4))):
        mutated = mutate(data, data.draw(st.sampled_from(FRAMES)))
        piece = mutated if data.draw(st.booleans()) else data.draw(st.binary(min_size=1, max_size=40))
        came += len(piece)
        found += connection.receive_data(piece).events
    assert connection.waiting_bytes <= came
    assert sum(isinstance(event, Closed) for event in found) == connection.is_closed
    for event in found:
        if isinstance(event, WireRequest):
            connection.send(event.number, {})
    assert connection.unanswered == 0
