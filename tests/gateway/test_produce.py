"""Produce where a batch is refused: what is asked before, what it leaves behind, and what acks=0 makes of it."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("kio", reason="needs the extra `gateway`")

from support.gateway.wire import fetched, produced, request_bytes, talk

from kafka_proto.gateway import offer
from kafka_proto.gateway.client import Client
from kafka_proto.gateway.cluster import KafkaCluster
from kafka_proto.gateway.context import code
from kafka_proto.gateway.host import Arrived, Close
from kafka_proto.gateway.records import WireRecord, write_batch

GOOD = write_batch([WireRecord(None, b"a")], base_timestamp=5)
BAD = GOOD[:-1] + b"x"


def errors(response: dict[str, Any]) -> list[tuple[int, int]]:
    (topic,) = response["responses"]
    return [(row["index"], row["error_code"]) for row in topic["partition_responses"]]


@pytest.mark.parametrize("batch", [{"value": b"x" * 1_048_600}, {"wrong": True}])
def test_a_batch_that_the_log_refuses_is_in_the_transaction_nevertheless(batch: dict[str, Any]) -> None:
    """From Produce 12 on the partition is added first: the EndTxn that a client goes on to is no INVALID_TXN_STATE."""
    clients = talk()
    me = clients.connect()
    made = clients.one(me, offer.INIT_PRODUCER_ID, 5, {
        "transactional_id": "tid", "transaction_timeout": 60_000, "producer_id": -1, "producer_epoch": -1})
    owner = {"producer_id": made["producer_id"], "producer_epoch": made["producer_epoch"]}
    data = write_batch([WireRecord(None, batch.get("value", b"a"))], base_timestamp=5, base_sequence=0,
                       is_transactional=True, **owner)
    data = data[:-1] + b"y" if "wrong" in batch else data
    refused = clients.one(me, offer.PRODUCE, 12, produced((0, data), tid="tid"))
    assert errors(refused) == [(0, code("CORRUPT_MESSAGE" if "wrong" in batch else "MESSAGE_TOO_LARGE"))]
    ended = clients.one(me, offer.END_TXN, 5, {"transactional_id": "tid", "committed": True, **owner})
    assert (ended["error_code"], ended["producer_epoch"]) == (0, owner["producer_epoch"] + 1)
    assert clients.host.problems() == {}


@pytest.mark.parametrize(("rows", "closes"), [
    (((0, GOOD),), False), (((7, GOOD),), True), (((0, BAD),), True), (((0, GOOD), (1, BAD)), True),
])
def test_an_error_closes_a_connection_without_acks(rows: tuple[tuple[int, bytes], ...], closes: bool) -> None:
    """With acks=0 nothing is written; what was appended stays, and the closed connection tells the client."""
    clients = talk()
    me = clients.connect()
    outputs = clients.give(Arrived(me, request_bytes(offer.PRODUCE, 9, produced(*rows, acks=0)), clients.now))
    assert [type(output) for output in outputs] == [Close] * closes
    assert (me in clients.host.clients) is not closes
    assert clients.host.cluster.log("t-0").log_end_offset == ((0, GOOD) in rows)


def test_a_client_hears_of_a_closed_connection_and_makes_another() -> None:
    """Over sockets: what comes behind the refused batch is not answered on that connection."""
    with KafkaCluster({"t": 1}) as cluster:
        host, _, port = cluster.bootstrap_servers.partition(":")
        with Client(host, int(port)) as client:
            assert client.ask(offer.PRODUCE, 9, produced((0, GOOD), acks=0)) == {}
            with pytest.raises(ConnectionError):
                client.ask(offer.PRODUCE, 9, produced((5, GOOD), acks=0))
            answer = client.ask(offer.PRODUCE, 9, produced((0, GOOD)))
    assert answer["responses"][0]["partition_responses"][0]["base_offset"] == 1


def test_a_partition_twice_in_a_request_has_what_came_last() -> None:
    """It is answered once; where one of the two is no single batch, that is said, though the other is appended."""
    clients = talk()
    me = clients.connect()
    other = write_batch([WireRecord(None, b"b"), WireRecord(None, b"c")], base_timestamp=5)
    for first, second, error, end in ((GOOD, other, "NONE", 2), (GOOD + GOOD, GOOD, "INVALID_RECORD", 3),
                                      (GOOD, b"", "INVALID_RECORD", 4), (GOOD, BAD, "CORRUPT_MESSAGE", 4)):
        answer = clients.one(me, offer.PRODUCE, 9, produced((0, first), (0, second)))
        assert errors(answer) == [(0, code(error))]
        assert clients.host.cluster.log("t-0").log_end_offset == end


@pytest.mark.parametrize("topic", ["__consumer_offsets", "__transaction_state"])
def test_internal_topics_are_not_written_to(topic: str) -> None:
    """Nor added to a transaction by a client; a partition of theirs that is not there is unknown."""
    clients = talk()
    me = clients.connect()
    answer = clients.one(me, offer.PRODUCE, 9, produced((0, GOOD), (9, GOOD), topic=topic))
    assert errors(answer) == [(0, code("INVALID_TOPIC_EXCEPTION")), (9, code("UNKNOWN_TOPIC_OR_PARTITION"))]
    assert clients.host.cluster.log("__consumer_offsets-0").log_end_offset == 0


def test_a_batch_of_a_transaction_without_producer_is_of_none() -> None:
    """A real broker takes it and shows it at once; no property speaks of it."""
    clients = talk()
    me = clients.connect()
    odd = write_batch([WireRecord(None, b"a")], base_timestamp=5, is_transactional=True)
    assert errors(clients.one(me, offer.PRODUCE, 12, produced((0, odd), tid="tid"))) == [(0, 0)]
    found = clients.one(me, offer.FETCH, 12, fetched(0, level=1))["responses"][0]["partitions"][0]
    assert (found["last_stable_offset"], len(found["records"])) == (1, len(odd))
    assert clients.host.problems() == {}
