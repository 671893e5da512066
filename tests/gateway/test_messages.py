"""Situations of groups, topics, offsets and fetches, recorded as messages of the wire, against our broker's answers."""

from __future__ import annotations

import copy
import json
from collections import Counter
from typing import Any

import pytest

pytest.importorskip("kio", reason="needs the extra `gateway`")

from support.gateway.wire import fetched, talk
from support.paths import RECORDED

from kafka_proto.broker.ghosts import SentRecords
from kafka_proto.conformance import judge, load
from kafka_proto.conformance.at_broker import record_at
from kafka_proto.gateway import offer
from kafka_proto.gateway.cluster import KafkaCluster
from kafka_proto.gateway.records import WireRecord, write_batch
from kafka_proto.log import RecordBatch
from kafka_proto.requests import ProduceRequest

FILE = RECORDED / "messages.json.gz"


@pytest.fixture(scope="module")
def records() -> list[dict[str, Any]]:
    return load(FILE)


def test_messages_of_the_wire_are_equal(records: list[dict[str, Any]]) -> None:
    """56 situations on five real brokers, of which three are left out for 3.5.2: see docs/reference/conformance.md."""
    assert Counter(one["broker_version"] for one in records) == {
        "3.5.2": 53, "3.9.2": 56, "4.0.0": 56, "4.2.0": 56, "4.4.0": 56}
    assert all(record["stable"] for record in records)
    assert [one for one in map(judge, records) if not one.equal] == []


def test_another_answer_is_told(records: list[dict[str, Any]]) -> None:
    """A wrong field of a message is named with its step, and so is the broker of another release."""
    record = next(one for one in records if one["situation"] == "find_coordinator")
    wrong = copy.deepcopy(record)
    wrong["steps"][0]["response"]["node_id"] = 7
    assert judge(wrong).differences == ("step 1.response.node_id: expected 7, found 1",)
    before = next(one for one in records if one["situation"] == "deleted_topic_empty_group"
                  and one["broker_version"] == "3.9.2")
    (found,) = judge({**before, "broker_version": "4.0.0", "transaction_version": 2}).differences
    assert found == "step 10.response.generation_id: expected 1, found 5"
    for api, version, message, said in (
        ("JoinGroup", 99, {}, "not played: ValueError: there is no version 99 of JoinGroup"),
        ("Teleport", 1, {}, "not played: KeyError: 'TELEPORT'"),
        ("FindCoordinator", 6, {}, "not played: ConnectionError: the broker closed the connection: version 6 of "
                                   "API 10, which is not offered"),
    ):
        steps = [{"request": {"api": api, "version": version, "message": message}}]
        assert judge({**record, "steps": steps}).differences == (said,)


def test_messages_are_recorded_and_played_over_sockets(records: list[dict[str, Any]]) -> None:
    """What our broker answers through sockets is what was recorded of a real one, and has the same form."""
    chosen = [one for one in records if one["broker_version"] == "4.4.0" and one["situation"] in (
        "static_leader_again_9", "offsets_by_time", "topics_twice", "committed_metadata_in_transaction")]
    with KafkaCluster() as cluster:
        host, _, port = cluster.bootstrap_servers.partition(":")
        made, said = record_at(chosen, host, int(port), "4.4.0")
    assert said == () and len(made) == 4
    for one, other in zip(sorted(chosen, key=lambda one: str(one["situation"])), made, strict=True):
        assert one["steps"] == json.loads(json.dumps(other["steps"]))


def test_a_follower_of_a_leader_may_fetch_and_nobody_else() -> None:
    """Another broker of the cluster reads what a consumer of committed records may not; the leader itself does not."""
    clients = talk(release="3.5.2", transaction_version=0, ports=(0, 0))
    me = clients.connect()
    (topic,) = clients.one(me, offer.METADATA, 8, {"topics": None})["topics"]
    led = next(row["partition_index"] for row in topic["partitions"] if row["leader_id"] == 1)
    owner = {"producer_id": 7, "producer_epoch": 0}
    data = write_batch([WireRecord(None, b"open")], base_timestamp=5, is_transactional=True, base_sequence=0, **owner)
    written = RecordBatch((SentRecords(data, ""),), 7, 0, 0, is_transactional=True)
    clients.host.cluster.send(ProduceRequest(9, "tid", -1, f"t-{led}", written), "b1", "c9")

    def read(replica: int) -> tuple[int, int]:
        asked = {**fetched(0, level=1, partition=led), "replica_id": replica}
        (row,) = clients.one(me, offer.FETCH, 11, asked)["responses"][0]["partitions"]
        return row["error_code"], len(row["records"])

    assert [read(replica) for replica in (-1, 1, 2, 3)] == [(0, 0), (6, 0), (0, len(data)), (6, 0)]
