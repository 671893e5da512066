"""Topics by id: requests that name them so are answered as those by name, and an id that no topic has is refused."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

pytest.importorskip("kio", reason="needs the extra `gateway`")

from support.gateway.wire import Talk, fetched, inject, produced, talk

from kafka_proto.errors import NAMES
from kafka_proto.gateway import offer
from kafka_proto.gateway.codec import NO_ID
from kafka_proto.gateway.records import WireRecord, write_batch

UNKNOWN = UUID(int=7)
DATA = write_batch((WireRecord(None, b"v"),), base_timestamp=5)


def error(row: dict[str, Any]) -> str:
    return NAMES[row["error_code"]]


def topics(clients: Talk, me: int, version: int = 13, **row: Any) -> list[dict[str, Any]]:
    """Return what Metadata says of the topics; with a row, of that one."""
    asked = ({"name": None, "topic_id": NO_ID, **row},) if row else None
    found = clients.one(me, offer.METADATA, version, {"topics": asked, "allow_auto_topic_creation": False})["topics"]
    return list(found)


def by_id(message: dict[str, Any], rows: str, topic_id: UUID) -> dict[str, Any]:
    return {**message, rows: tuple({**row, "topic_id": topic_id} for row in message[rows])}


def test_records_and_offsets_go_by_the_ids_that_metadata_tells() -> None:
    """What is written by id is read by id and by name; offsets, too; without topics all offsets have their ids."""
    clients = talk({"t": 1, "u": 1})
    me = clients.connect()
    ids = {row["name"]: row["topic_id"] for row in topics(clients, me)}
    assert len({*ids.values()}) == 2 and NO_ID not in ids.values()
    answer = clients.one(me, offer.PRODUCE, 13, by_id(produced((0, DATA)), "topic_data", ids["t"]))
    (row,) = answer["responses"]
    assert (row["topic_id"], error(row["partition_responses"][0])) == (ids["t"], "NONE")
    new = clients.one(me, offer.FETCH, 18, by_id(fetched(0), "topics", ids["t"]))["responses"]
    old = clients.one(me, offer.FETCH, 12, fetched(0))["responses"]
    assert new[0]["topic_id"] == ids["t"] and new[0]["partitions"] == old[0]["partitions"]
    commit = {"group_id": "g", "member_id": "", "generation_id_or_member_epoch": -1, "topics": (
        {"topic_id": ids["u"], "partitions": ({"partition_index": 0, "committed_offset": 5},)},)}
    assert error(clients.one(me, offer.OFFSET_COMMIT, 10, commit)["topics"][0]["partitions"][0]) == "NONE"
    for asked in (None, ({"topic_id": ids["u"], "partition_indexes": (0,)},)):
        groups = ({"group_id": "g", "member_id": None, "member_epoch": -1, "topics": asked},)
        (found,) = clients.one(me, offer.OFFSET_FETCH, 10, {"groups": groups})["groups"][0]["topics"]
        assert (found["topic_id"], found["partitions"][0]["committed_offset"]) == (ids["u"], 5)


def test_an_id_that_no_topic_has_is_refused() -> None:
    """By each API; a deleted topic's id is not that of another one of its name."""
    clients = talk({"t": 1})
    me = clients.connect()
    (before,) = topics(clients, me)
    gone = before["topic_id"]
    assert topics(clients, me, topic_id=gone)[0]["name"] == "t"
    delete = {"topics": ({"name": None, "topic_id": gone},), "timeout": 1000}
    (row,) = clients.one(me, offer.DELETE_TOPICS, 6, delete)["responses"]
    assert (row["name"], row["topic_id"], error(row)) == ("t", gone, "NONE")
    made = clients.one(me, offer.CREATE_TOPICS, 7, {"topics": (
        {"name": "t", "num_partitions": 1, "replication_factor": 1, "assignments": (), "configs": ()},)})["topics"][0]
    assert made["topic_id"] not in (gone, NO_ID)
    for topic_id in (gone, UNKNOWN):
        (row,) = clients.one(me, offer.DELETE_TOPICS, 6, {"topics": ({"name": None, "topic_id": topic_id},)})[
            "responses"]
        assert (row["name"], error(row)) == (None, "UNKNOWN_TOPIC_ID")
        (row,) = topics(clients, me, topic_id=topic_id)
        assert (row["name"], error(row)) == (None, "UNKNOWN_TOPIC_ID")
        (row,) = clients.one(me, offer.PRODUCE, 13, by_id(produced((0, DATA)), "topic_data", topic_id))["responses"]
        assert (row["topic_id"], error(row["partition_responses"][0])) == (topic_id, "UNKNOWN_TOPIC_ID")
        (row,) = clients.one(me, offer.FETCH, 13, by_id(fetched(0), "topics", topic_id))["responses"]
        assert (row["topic_id"], error(row["partitions"][0])) == (topic_id, "UNKNOWN_TOPIC_ID")
    (row,) = clients.one(me, offer.FETCH, 13, by_id(fetched(0, partition=3), "topics", made["topic_id"]))["responses"]
    assert error(row["partitions"][0]) == "UNKNOWN_TOPIC_OR_PARTITION"
    both = {"topics": ({"name": "t", "topic_id": made["topic_id"]}, {"name": None, "topic_id": NO_ID})}
    assert {error(row) for row in clients.one(me, offer.DELETE_TOPICS, 6, both)["responses"]} == {"INVALID_REQUEST"}


def test_metadata_takes_ids_from_version_12_on() -> None:
    """Before that a topic without a name, or with an id, is refused (`KafkaApis.handleTopicMetadataRequest`)."""
    clients = talk({"t": 1})
    me = clients.connect()
    (row,) = topics(clients, me, version=11, topic_id=topics(clients, me)[0]["topic_id"])
    assert (row["name"], error(row)) == ("", "INVALID_REQUEST")
    (row,) = topics(clients, me, version=10, name="t")
    assert (row["name"], error(row), len(row["partitions"])) == ("t", "NONE", 1)


def test_a_broker_that_does_not_lead_says_who_does() -> None:
    """In Produce from 10, in Fetch from 16 (KIP-951): leader, epoch, and where it listens."""
    clients = talk({"t": 1}, ports=(7001, 7002, 7003))
    me = clients.connect()
    inject(clients, 1, "elect", partition="t-0")
    (now,) = topics(clients, me)
    leader = now["partitions"][0]["leader_id"]
    other = clients.connect(next(broker for broker in (1, 2, 3) if broker != leader))
    answer = clients.one(other, offer.PRODUCE, 12, produced((0, DATA)))
    row = answer["responses"][0]["partition_responses"][0]
    assert (error(row), row["current_leader"]) == (
        "NOT_LEADER_OR_FOLLOWER", {"leader_id": leader, "leader_epoch": now["partitions"][0]["leader_epoch"]})
    assert [(node["node_id"], node["port"]) for node in answer["node_endpoints"]] == [(leader, 7000 + leader)]


def described(clients: Talk, me: int, *names: str, limit: int = 100, cursor: Any = None) -> tuple[list[Any], Any]:
    """Return the partitions by topic that DescribeTopicPartitions shows, and its cursor."""
    answer = clients.one(me, offer.DESCRIBE_TOPIC_PARTITIONS, 0, {
        "topics": tuple({"name": name} for name in names), "response_partition_limit": limit, "cursor": cursor})
    return [(row["name"], error(row), [each["partition_index"] for each in row["partitions"]])
            for row in answer["topics"]], answer["next_cursor"]


def test_partitions_are_described_page_by_page() -> None:
    """With at most so many partitions an answer, its cursor leads on; a cursor of no topic is refused."""
    clients = talk({"t": 2, "u": 3})
    me = clients.connect()
    everything = [("t", "NONE", [0, 1]), ("u", "NONE", [0, 1, 2])]
    assert described(clients, me) == (everything, None)
    assert described(clients, me, "u", "none") == (
        [("none", "UNKNOWN_TOPIC_OR_PARTITION", []), ("u", "NONE", [0, 1, 2])], None)
    seen, cursor = described(clients, me, limit=3)
    assert (seen, cursor) == ([("t", "NONE", [0, 1]), ("u", "NONE", [0])], {"topic_name": "u", "partition_index": 1})
    assert described(clients, me, limit=3, cursor=cursor) == ([("u", "NONE", [1, 2])], None)
    seen, cursor = described(clients, me, limit=2)
    assert (seen, cursor) == ([("t", "NONE", [0, 1])], {"topic_name": "u", "partition_index": 0})
    assert described(clients, me, "t", cursor={"topic_name": "u", "partition_index": 0})[0] == [
        ("t", "INVALID_REQUEST", [])]
