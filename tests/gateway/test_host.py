"""A broker behind the wire without sockets: what clients send as bytes, what they get, and what waits."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("kio", reason="needs the extra `gateway`")

from support.gateway.wire import Producer, Talk, fetched, produced, talk

from kafka_proto.gateway import offer
from kafka_proto.gateway.context import code
from kafka_proto.gateway.host import Host
from kafka_proto.gateway.inputs import Arrived, Close, Gone, Passed, Settings, Write
from kafka_proto.gateway.records import WireRecord, read_header, read_records, split, write_batch


def batch(*values: bytes) -> bytes:
    return write_batch([WireRecord(None, value) for value in values], base_timestamp=5)


def partition(response: dict[str, Any], key: str = "responses", inner: str = "partitions") -> dict[str, Any]:
    ((topic,),) = (response[key],)
    ((found,),) = (topic[inner],)
    return dict(found)


def values(response: dict[str, Any]) -> list[tuple[int, bytes | None]]:
    """Return the records of a fetch that are no markers, with their offsets."""
    found = []
    for batch in split(partition(response)["records"]):
        header = read_header(batch)
        if not header.is_control:
            found += [(header.base_offset + r.offset_delta, r.value) for r in read_records(batch, header)]
    return found


def test_records_come_back_at_their_offsets() -> None:
    """Two batches get offsets one after the other; a fetch inside the first one gets it whole."""
    clients = talk()
    me = clients.connect()
    offsets = [partition(clients.one(me, offer.PRODUCE, 9, produced((0, each))), inner="partition_responses")[
        "base_offset"] for each in (batch(b"a", b"b"), batch(b"c"))]
    assert offsets == [0, 2]
    assert values(clients.one(me, offer.FETCH, 12, fetched(1))) == [(0, b"a"), (1, b"b"), (2, b"c")]
    small = clients.one(me, offer.FETCH, 12, fetched(0, most=10))
    assert values(small) == [(0, b"a"), (1, b"b")], "the first batch comes whole, however little is asked for"


def test_a_fetch_waits_for_records_or_its_time() -> None:
    """With nothing to read the answer comes with the next record of another client, or when the wait is over."""
    clients = talk()
    reader, writer = clients.connect(), clients.connect()
    assert clients.ask(reader, offer.FETCH, 12, fetched(0, wait=500)) == {}
    assert clients.host.deadline == clients.now + 500
    found = clients.ask(writer, offer.PRODUCE, 9, produced((0, batch(b"a"))))
    assert sorted(found) == [reader, writer] and values(found[reader][0]) == [(0, b"a")]
    assert clients.ask(reader, offer.FETCH, 12, fetched(1, wait=500)) == {}
    assert clients.wait(499) == {}
    assert values(clients.wait(1)[reader][0]) == [] and clients.host.deadline is None


def test_a_request_behind_one_that_waits_is_looked_at_later() -> None:
    """As in a broker, the next request of a connection is served when the one before is answered."""
    clients = talk()
    me = clients.connect()
    assert clients.ask(me, offer.FETCH, 12, fetched(0, wait=500)) == {}
    assert clients.ask(me, offer.PRODUCE, 9, produced((0, batch(b"a")))) == {}
    first, second = clients.wait(500)[me]
    assert values(first) == [] and partition(second, inner="partition_responses")["error_code"] == 0


def test_a_partition_that_is_not_there_is_unknown() -> None:
    """To those APIs for which no recording says so."""
    clients = talk()
    me = clients.connect()
    lost = {"topics": ({"name": "t", "partitions": ({"partition_index": 7, "timestamp": -1, "offset": 0},)},)}
    for api, version in ((offer.LIST_OFFSETS, 6), (offer.DELETE_RECORDS, 2)):
        assert partition(clients.one(me, api, version, {"replica_id": -1, **lost}), "topics")["error_code"] == 3


@pytest.mark.parametrize("topic", ["__consumer_offsets", "__transaction_state"])
def test_internal_topics_are_not_written_to(topic: str) -> None:
    """Nor added to a transaction by a client; a partition of theirs that is not there is unknown."""
    clients = talk()
    me = clients.connect()
    answer = clients.one(me, offer.PRODUCE, 9, produced((0, batch(b"a")), (9, batch(b"a")), topic=topic))
    (found,) = answer["responses"]
    assert [row["error_code"] for row in found["partition_responses"]] == [
        code("INVALID_TOPIC_EXCEPTION"), code("UNKNOWN_TOPIC_OR_PARTITION")]
    assert clients.host.cluster.log("__consumer_offsets-0").log_end_offset == 0


def test_a_batch_of_a_transaction_without_producer_is_of_none() -> None:
    """A real broker takes it and shows it at once; no property speaks of it."""
    clients = talk()
    me = clients.connect()
    odd = write_batch([WireRecord(None, b"a")], base_timestamp=5, is_transactional=True)
    answer = clients.one(me, offer.PRODUCE, 12, produced((0, odd), tid="tid"))
    assert partition(answer, inner="partition_responses")["error_code"] == 0
    found = partition(clients.one(me, offer.FETCH, 12, fetched(0, level=1)))
    assert (found["last_stable_offset"], len(found["records"])) == (1, len(odd))
    assert clients.host.problems() == {}


def test_a_batch_that_the_log_refuses_is_in_the_transaction_nevertheless() -> None:
    """From Produce 12 on the partition is added first, so the EndTxn that follows is NONE; no property is violated."""
    clients = talk()
    producer = Producer(clients)
    bad = write_batch([WireRecord(None, b"a")], base_timestamp=5, base_sequence=0, is_transactional=True,
                      **producer.owner)[:-1] + b"y"
    refused = clients.one(producer.me, offer.PRODUCE, 12, produced((0, bad), tid="app"))
    assert partition(refused, inner="partition_responses")["error_code"] == code("CORRUPT_MESSAGE")
    ended = clients.one(producer.me, offer.END_TXN, 5, {"transactional_id": "app", "committed": True, **producer.owner})
    assert (ended["error_code"], ended["producer_epoch"]) == (0, producer.owner["producer_epoch"] + 1)
    assert clients.host.problems() == {}


def test_a_partition_below_0_is_none() -> None:
    """`t` at -1 is not `t-` at 1, nor anything else, however low the number; each is answered where it was asked."""
    clients = talk()
    clients.host.cluster.create_topic("t-", 2)
    me = clients.connect()
    indexes = (-1, -(2**31))
    topics = ({"name": "t", "partitions": indexes, "partition_indexes": indexes},)
    (added,) = clients.one(me, offer.ADD_PARTITIONS_TO_TXN, 3, {
        "v3_and_below_transactional_id": "tid", "v3_and_below_topics": topics})["results_by_topic_v3_and_below"]
    assert [(p["partition_index"], p["partition_error_code"]) for p in added["results_by_partition"]] == [
        (index, 3) for index in indexes]
    marker = {"producer_id": 1, "producer_epoch": 0, "coordinator_epoch": 0, "topics": topics}
    (written,) = clients.one(me, offer.WRITE_TXN_MARKERS, 1, {"markers": (marker,)})["markers"]
    assert [p["error_code"] for p in written["topics"][0]["partitions"]] == [3, 3]


def begun(clients: Talk) -> Producer:
    """Return a producer with a record in an open transaction at offset 0."""
    producer = Producer(clients)
    assert producer.write(0, b"a") == 0
    return producer


def test_a_transaction_that_is_too_old_is_aborted_by_the_clock() -> None:
    """The broker says when something is due; then the transaction is aborted and its producer fenced."""
    clients = talk()
    producer = begun(clients)
    me = producer.me
    clients.wait(clients.host.deadline - clients.now)
    read = partition(clients.one(me, offer.FETCH, 12, fetched(0, level=1)))
    assert (read["last_stable_offset"], len(read["aborted_transactions"])) == (2, 1)
    late = clients.one(me, offer.PRODUCE, 9, producer.batch(0, b"b"))
    assert partition(late, inner="partition_responses")["error_code"] == 47
    (known,) = clients.one(me, offer.DESCRIBE_TRANSACTIONS, 0, {"transactional_ids": ("app",)})["transaction_states"]
    assert (known["transaction_state"], known["transaction_start_time"] > 0) == ("CompleteAbort", True)


def test_a_topic_is_made_by_name() -> None:
    """Metadata makes a topic where both sides let it, with so many partitions; what is no name is refused."""
    clients = talk(num_partitions=3)
    me = clients.connect()
    asked = {"topics": ({"name": "new"}, {"name": "b/d"}), "allow_auto_topic_creation": True}
    new, bad = clients.one(me, offer.METADATA, 9, asked)["topics"]
    assert (len(new["partitions"]), new["error_code"], bad["error_code"]) == (3, 0, 17)
    left = clients.one(me, offer.METADATA, 9, {"topics": None})["topics"]
    assert [topic["name"] for topic in left] == ["new", "t"]


def test_topics_of_one_request_share_what_room_there_is() -> None:
    """The bound is on all partitions of a cluster, also of those that the same request has just made."""
    clients = talk()
    rows = tuple({"name": name, "num_partitions": 6_000, "replication_factor": 1, "assignments": (), "configs": ()}
                 for name in ("one", "two"))
    made = clients.one(clients.connect(), offer.CREATE_TOPICS, 5, {"topics": rows, "validate_only": False})["topics"]
    assert [topic["error_code"] for topic in made] == [0, 37]


CLUSTERS = [(release, levels[-1]) for release, levels in offer.LEVELS.items()] + [("4.0.0", 0), ("4.4.0", 1)]


@pytest.mark.parametrize(("release", "level"), CLUSTERS)
def test_every_api_that_is_offered_is_answered_in_every_version(release: str, level: int) -> None:
    """An empty request of each API and version that is announced gets an answer, and the connection stays open."""
    for api, (first, last) in Host(Settings(release, level), {}, 0).offer.ranges.items():
        for version in range(first, last + 1):
            clients = Talk(Host(Settings(release, level), {"t": 1}, 0))
            me = clients.connect()
            if api == offer.API_VERSIONS:
                continue
            asked = {"session_timeout": 10_000, "acks": 1, "group_id": "g"}
            assert list(clients.ask(me, api, version, asked)) == [me], (api, version)


def test_connections_end_when_their_requests_are_answered() -> None:
    """What is no request closes a connection behind the answers that it waits for; the broker forgets its fetches."""
    clients = talk()
    me, other = clients.connect(), clients.connect()
    assert clients.ask(me, offer.FETCH, 12, fetched(0, wait=500)) == {}
    assert clients.give(Arrived(me, b"\xff" * 4, clients.now)) == []
    assert clients.ask(other, offer.FETCH, 12, fetched(0, wait=900)) == {}
    clients.now += 500
    answer, closed = clients.give(Passed(clients.now))
    assert isinstance(answer, Write) and isinstance(closed, Close) and closed.connection == answer.connection == me
    assert (len(clients.host.under_way), len(clients.host.clients)) == (1, 1)
    clients.give(Gone(other, clients.now))
    assert (len(clients.host.under_way), len(clients.host.clients)) == (0, 0)
