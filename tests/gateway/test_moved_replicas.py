"""Replicas move between brokers (KIP-455); topics that are made late; where offsets are by other times than a record's.
"""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("kio", reason="needs the extra `gateway`")

from support.gateway.wire import Talk, fetched, inject, produced, talk

from kafka_proto.errors import NAMES
from kafka_proto.gateway import offer
from kafka_proto.gateway.records import WireRecord, write_batch

DATA = write_batch((WireRecord(None, b"v"),), base_timestamp=5)


def error(row: dict[str, Any]) -> str:
    return NAMES[row["error_code"]]


def move(clients: Talk, me: int, replicas: tuple[int, ...] | None, partition: int = 0) -> str:
    rows = ({"partition_index": partition, "replicas": replicas},)
    answer = clients.one(me, offer.ALTER_PARTITION_REASSIGNMENTS, 1, {
        "timeout": 1000, "allow_replication_factor_change": True, "topics": ({"name": "t", "partitions": rows},)})
    return error(answer["responses"][0]["partitions"][0])


def moving(clients: Talk, me: int) -> list[tuple[Any, ...]]:
    answer = clients.one(me, offer.LIST_PARTITION_REASSIGNMENTS, 0, {"timeout": 1000, "topics": None})
    return [(row["partition_index"], row["replicas"], row["adding_replicas"], row["removing_replicas"])
            for topic in answer["topics"] for row in topic["partitions"]]


def seen(clients: Talk, me: int, topic: str = "t", partition: int = 0) -> dict[str, Any]:
    (found,) = clients.one(me, offer.METADATA, 9, {"topics": ({"name": topic},)})["topics"]
    row: dict[str, Any] = found["partitions"][partition]
    return row


def test_replicas_move_and_take_the_records_along() -> None:
    """The new leader has what was written before; the brokers that lost theirs say that they lead nothing."""
    clients = talk({"t": 1}, ports=(0,) * 4, replication_factor=2)
    me = clients.connect()
    first = seen(clients, me)
    old = first["leader_id"]
    clients.one(clients.connect(old), offer.PRODUCE, 9, produced((0, DATA)))
    others = tuple(number for number in (1, 2, 3, 4) if number not in first["replica_nodes"])
    assert move(clients, me, others) == "NONE" and moving(clients, me) == []
    after = seen(clients, me)
    assert (after["replica_nodes"], sorted(after["isr_nodes"])) == (others, sorted(others))
    assert after["leader_id"] == others[0] and after["leader_epoch"] > first["leader_epoch"]
    (read,) = clients.one(clients.connect(others[0]), offer.FETCH, 12, fetched(0))["responses"][0]["partitions"]
    assert read["records"] and read["high_watermark"] == 1
    (refused,) = clients.one(clients.connect(old), offer.FETCH, 12, fetched(0))["responses"][0]["partitions"]
    assert error(refused) == "NOT_LEADER_OR_FOLLOWER"


def test_a_move_waits_for_a_broker_that_is_away() -> None:
    """It is listed until the new replica is in sync, or given up; one that is given up leaves things as they were."""
    clients = talk({"t": 1}, ports=(0,) * 3, replication_factor=1)
    me = clients.connect()
    (old,) = seen(clients, me)["replica_nodes"]
    new = next(number for number in (2, 3) if number != old)
    inject(clients, 1, "pause", broker=new, for_ms=500)
    assert move(clients, me, (new,)) == "NONE"
    assert moving(clients, me) == [(0, (new, old), (new,), (old,))]
    assert seen(clients, me)["leader_id"] == old
    assert move(clients, me, None) == "NONE" and moving(clients, me) == []
    assert seen(clients, me)["replica_nodes"] == (old,)
    assert move(clients, me, None) == "NO_REASSIGNMENT_IN_PROGRESS"
    assert move(clients, me, (new,)) == "NONE"
    clients.wait(500)
    assert moving(clients, me) == [] and seen(clients, me)["leader_id"] == new


def test_moves_that_cannot_be_are_refused() -> None:
    clients = talk({"t": 1}, ports=(0,) * 3)
    me = clients.connect()
    assert [move(clients, me, replicas) for replicas in ((), (7,), (1, 1))] == ["INVALID_REPLICA_ASSIGNMENT"] * 3
    assert move(clients, me, (1,), partition=4) == "UNKNOWN_TOPIC_OR_PARTITION"


def test_a_broker_that_was_started_again_hears_of_later_topics() -> None:
    """A topic that is made after its restart elects it, and deposes it, as any other."""
    clients = talk({}, ports=(0,) * 3)
    me = clients.connect()
    inject(clients, 1, "crash", broker=3, for_ms=10)
    clients.wait(10)
    clients.one(me, offer.METADATA, 9, {"topics": ({"name": "t"},), "allow_auto_topic_creation": True})
    for number, fault in enumerate(("elect",) * 3, 2):
        inject(clients, number, fault, partition="t-0")
        leader = seen(clients, me)["leader_id"]
        answer = clients.one(clients.connect(leader), offer.PRODUCE, 9, produced((0, DATA)))
        assert error(answer["responses"][0]["partition_responses"][0]) == "NONE"


@pytest.mark.parametrize(("time", "version", "expected"), [
    (-3, 7, ("NONE", 1, 9)), (-3, 6, ("UNSUPPORTED_VERSION", -1, -1)), (-4, 8, ("NONE", 0, -1)),
    (-5, 9, ("NONE", -1, -1)), (-6, 11, ("NONE", -1, -1)), (-6, 10, ("UNSUPPORTED_VERSION", -1, -1)),
    (-7, 11, ("UNSUPPORTED_VERSION", -1, -1)),
])
def test_offsets_by_negative_times(time: int, version: int, expected: tuple[str, int, int]) -> None:
    """The record of the largest time stamp, the local start, and what is tiered: each from its version on."""
    clients = talk({"t": 1})
    me = clients.connect()
    for stamp in (5, 9, 7):
        clients.one(me, offer.PRODUCE, 9, produced((0, write_batch((WireRecord(None, b"v"),), base_timestamp=stamp))))
    asked = {"replica_id": -1, "isolation_level": 0, "timeout": 1000, "topics": (
        {"name": "t", "partitions": ({"partition_index": 0, "current_leader_epoch": -1, "timestamp": time},)},)}
    (row,) = clients.one(me, offer.LIST_OFFSETS, version, asked)["topics"][0]["partitions"]
    assert (error(row), row["offset"], row["timestamp"]) == expected
