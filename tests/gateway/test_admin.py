"""What administrators ask over the wire: groups, partitions, settings and elections; brokers that shut down."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("kio", reason="needs the extra `gateway`")

from support.gateway.wire import Talk, initializing, inject, produced, talk

from kafka_proto.errors import NAMES
from kafka_proto.gateway import offer
from kafka_proto.gateway.configs import OF_TOPICS, wrong
from kafka_proto.gateway.records import WireRecord, write_batch

TOPIC = 2
SUBSCRIPTION = b"\x00\x00\x00\x00\x00\x01\x00\x01t\x00\x00\x00\x00"
"""Of a consumer that has subscribed to `t`."""


def error(row: dict[str, Any]) -> str:
    return NAMES[row["error_code"]]


def committed(clients: Talk, me: int, group: str, topic: str = "t") -> None:
    """Commit an offset of a group without members."""
    found = clients.one(me, offer.OFFSET_COMMIT, 8, {
        "group_id": group, "member_id": "", "generation_id_or_member_epoch": -1,
        "topics": ({"name": topic, "partitions": ({"partition_index": 0, "committed_offset": 5},)},)})
    assert error(found["topics"][0]["partitions"][0]) == "NONE"


def member(clients: Talk, me: int, kind: str = "consumer") -> str:
    """Join the group `g` as its only member, and sync."""
    join = {"group_id": "g", "session_timeout": 10_000, "rebalance_timeout": 10_000, "member_id": "",
            "protocol_type": kind, "protocols": ({"name": "range", "metadata": SUBSCRIPTION},)}
    name = clients.one(me, offer.JOIN_GROUP, 4, join)["member_id"]
    clients.one(me, offer.JOIN_GROUP, 4, {**join, "member_id": name})
    clients.one(me, offer.SYNC_GROUP, 4, {"group_id": "g", "member_id": name, "generation_id": 1, "assignments": (
        {"member_id": name, "assignment": b"t-0"},)})
    return str(name)


def listed(clients: Talk, me: int, **filters: Any) -> list[tuple[str, str, str]]:
    found = clients.one(me, offer.LIST_GROUPS, 5, filters)
    return [(row["group_id"], row["group_state"], row["protocol_type"]) for row in found["groups"]]


def deleted(clients: Talk, me: int, *names: str) -> list[str]:
    return [error(row) for row in clients.one(me, offer.DELETE_GROUPS, 2, {"groups_names": names})["results"]]


def offset_deleted(clients: Talk, me: int, group: str, topic: str) -> str:
    found = clients.one(me, offer.OFFSET_DELETE, 0, {
        "group_id": group, "topics": ({"name": topic, "partitions": ({"partition_index": 0},)},)})
    return error(found if found["error_code"] else found["topics"][0]["partitions"][0])


def test_groups_are_listed_described_and_deleted() -> None:
    """By state, with their members; one that has members stays, and what is deleted is gone after an election, too."""
    clients = talk({"t": 1, "u": 1}, ports=(0, 0, 0))
    me = clients.connect()
    committed(clients, me, "offsets")
    name = member(clients, me)
    assert listed(clients, me) == [("g", "Stable", "consumer"), ("offsets", "Empty", "")]
    assert listed(clients, me, states_filter=("stable",)) == [("g", "Stable", "consumer")]
    assert listed(clients, me, types_filter=("consumer",)) == []
    found = clients.one(me, offer.DESCRIBE_GROUPS, 5, {"groups": ("g", "offsets", "none")})["groups"]
    assert [(row["group_state"], error(row)) for row in found] == [("Stable", "NONE"), ("Empty", "NONE"),
                                                                  ("Dead", "NONE")]
    (row,) = found[0]["members"]
    assert (row["member_id"], row["member_assignment"], row["member_metadata"]) == (name, b"t-0", SUBSCRIPTION)
    found = clients.one(me, offer.DESCRIBE_GROUPS, 6, {"groups": ("none",)})["groups"]
    assert [(row["group_state"], error(row)) for row in found] == [("Dead", "GROUP_ID_NOT_FOUND")]
    assert deleted(clients, me, "g", "offsets", "none") == ["NON_EMPTY_GROUP", "NONE", "GROUP_ID_NOT_FOUND"]
    assert listed(clients, me) == [("g", "Stable", "consumer")]
    inject(clients, 1, "elect", partition="__consumer_offsets-0")
    assert listed(clients, me) == [] and deleted(clients, me, "g") == ["NOT_COORDINATOR"]
    there = clients.connect(2)
    assert listed(clients, there) == [("g", "Stable", "consumer")]


def test_offsets_are_deleted_where_nobody_is_subscribed() -> None:
    """KIP-496; of a group whose protocol is another one nothing is, while it has members."""
    clients = talk({"t": 1, "u": 1})
    me = clients.connect()
    committed(clients, me, "g", "u")
    member(clients, me)
    assert offset_deleted(clients, me, "none", "t") == "GROUP_ID_NOT_FOUND"
    assert offset_deleted(clients, me, "g", "t") == "GROUP_SUBSCRIBED_TO_TOPIC"
    assert offset_deleted(clients, me, "g", "v") == "UNKNOWN_TOPIC_OR_PARTITION"
    for _ in range(2):
        assert offset_deleted(clients, me, "g", "u") == "NONE"
    found = clients.one(me, offer.OFFSET_FETCH, 7, {"group_id": "g", "topics": None})
    assert found["topics"] == ()
    others = talk({"t": 1})
    me = others.connect()
    member(others, me, "connect")
    assert offset_deleted(others, me, "g", "t") == "NON_EMPTY_GROUP"


def test_topics_get_more_partitions() -> None:
    """With brokers of their own, or as they come; not fewer, and not twice in one request."""
    clients = talk({"t": 1}, ports=(0, 0, 0))
    me = clients.connect()

    def ask(*topics: tuple[str, int, Any], validate: bool = False) -> list[str]:
        found = clients.one(me, offer.CREATE_PARTITIONS, 3, {
            "timeout": 1_000, "validate_only": validate, "topics": tuple(
                {"name": name, "count": count, "assignments": given} for name, count, given in topics)})
        return [error(row) for row in found["results"]]

    assert ask(("t", 2, None), validate=True) == ["NONE"] and ask(("t", 1, None)) == ["INVALID_PARTITIONS"]
    assert ask(("u", 2, None)) == ["UNKNOWN_TOPIC_OR_PARTITION"]
    assert ask(("t", 2, None), ("t", 3, None)) == ["INVALID_REQUEST"]
    assert ask(("t", 3, ({"broker_ids": (2,)},))) == ["INVALID_REPLICA_ASSIGNMENT"]
    assert ask(("t", 2, ({"broker_ids": (7,)},))) == ["INVALID_REPLICA_ASSIGNMENT"]
    assert ask(("t", 2, ({"broker_ids": (3, 1, 2)},))) == ["NONE"] and ask(("t", 20_000, None)) == [
        "INVALID_PARTITIONS"]
    found = clients.one(me, offer.METADATA, 9, {"topics": ({"name": "t"},)})["topics"][0]["partitions"]
    assert [(row["partition_index"], row["leader_id"], row["replica_nodes"]) for row in found] == [
        (0, found[0]["leader_id"], found[0]["replica_nodes"]), (1, 3, (3, 1, 2))]
    batch = write_batch([WireRecord(None, b"one")])
    there = clients.connect(3)
    (row,) = clients.one(there, offer.PRODUCE, 9, produced((1, batch)))["responses"][0]["partition_responses"]
    assert error(row) == "NONE"


def configs(clients: Talk, me: int) -> dict[str, tuple[str, int]]:
    found = clients.one(me, offer.DESCRIBE_CONFIGS, 4, {"resources": (
        {"resource_type": TOPIC, "resource_name": "u", "configuration_keys": None},)})["results"][0]["configs"]
    return {row["name"]: (row["value"], row["config_source"]) for row in found}


def test_topics_have_settings() -> None:
    """When they are made, one by one, and all anew; what Kafka does not know is refused, and nothing is changed."""
    clients = talk(min_insync_replicas=1)
    me = clients.connect()

    def make(name: str, value: str | None) -> str:
        found = clients.one(me, offer.CREATE_TOPICS, 5, {"timeout": 1, "topics": ({
            "name": "u", "num_partitions": 1, "replication_factor": 1, "assignments": (),
            "configs": ({"name": name, "value": value},)},)})
        return error(found["topics"][0])

    for name, value in (("min.insync", "1"), ("min.insync.replicas", "0"), ("retention.ms", None), ("preallocate", "1"),
                        ("cleanup.policy", "shrink"), ("min.cleanable.dirty.ratio", "2")):
        assert make(name, value) == "INVALID_CONFIG", name
    assert make("cleanup.policy", "compact") == "NONE"
    known = configs(clients, me)
    assert known["cleanup.policy"] == ("compact", 1) and known["retention.ms"] == ("604800000", 5)
    assert set(known) == set(OF_TOPICS) and not [name for name, (value, _) in OF_TOPICS.items() if wrong(name, value)]

    def alter(api: int, kind: int, *changes: tuple[str, str | None, int]) -> str:
        rows = tuple({"name": name, "value": value, "config_operation": how} for name, value, how in changes)
        found = clients.one(me, api, 1, {"validate_only": False, "resources": (
            {"resource_type": kind, "resource_name": "u", "configs": rows},)})
        return error(found["responses"][0])

    one_by_one = offer.INCREMENTAL_ALTER_CONFIGS
    assert alter(one_by_one, TOPIC, ("cleanup.policy", "delete", 2), ("max.message.bytes", "100", 0)) == "NONE"
    assert configs(clients, me)["cleanup.policy"] == ("compact,delete", 1)
    assert alter(one_by_one, TOPIC, ("cleanup.policy", "compact", 3), ("max.message.bytes", None, 1)) == "NONE"
    assert configs(clients, me)["cleanup.policy"] == ("delete", 1)
    assert configs(clients, me)["max.message.bytes"] == ("1048588", 5)
    assert alter(one_by_one, TOPIC, ("retention.ms", "1", 0), ("none", "1", 0)) == "INVALID_CONFIG"
    assert alter(one_by_one, 4, ("retention.ms", "1", 0)) == "INVALID_REQUEST"
    assert alter(offer.ALTER_CONFIGS, TOPIC, ("max.message.bytes", "70", 0)) == "NONE"
    assert configs(clients, me)["cleanup.policy"] == ("delete", 5)
    batch = write_batch([WireRecord(None, b"longer than a few bytes")])
    (row,) = clients.one(me, offer.PRODUCE, 9, produced((0, batch), topic="u"))["responses"][0]["partition_responses"]
    assert error(row) == "MESSAGE_TOO_LARGE"


def elected(clients: Talk, me: int, kind: int, *partitions: int) -> list[str]:
    found = clients.one(me, offer.ELECT_LEADERS, 2, {
        "election_type": kind, "timeout": 1, "topic_partitions": ({"topic": "t", "partitions": partitions},)})
    return [error(row) for topic in found["replica_election_results"] for row in topic["partition_result"]]


def test_leaders_are_elected_when_asked() -> None:
    """The preferred one where it is in sync; any replica where nobody leads, if that is asked for (KIP-460)."""
    clients = talk({"t": 1}, ports=(0, 0, 0), replication_factor=2, auto_leader_rebalance_enable=False)
    first, second = clients.host.cluster.replicas("t-0")
    third = next(b for b in clients.host.cluster.brokers if b not in (first, second))
    me = clients.connect(int(third[1:]))
    assert elected(clients, me, 0, 0, 7) == ["ELECTION_NOT_NEEDED", "UNKNOWN_TOPIC_OR_PARTITION"]
    inject(clients, 2, "elect", partition="t-0")
    assert elected(clients, me, 0, 0) == ["NONE"] and clients.host.cluster.leader("t-0") == first
    inject(clients, 3, "crash", broker=int(first[1:]), for_ms=9_000)
    assert elected(clients, me, 0, 0) == ["PREFERRED_LEADER_NOT_AVAILABLE"]
    assert elected(clients, me, 1, 0) == ["ELECTION_NOT_NEEDED"]
    clients.wait(1)
    inject(clients, 4, "crash", broker=int(second[1:]), for_ms=20_000)
    assert elected(clients, me, 1, 0) == ["ELIGIBLE_LEADERS_NOT_AVAILABLE"]
    (row,) = clients.one(me, offer.METADATA, 9, {"topics": ({"name": "t"},)})["topics"][0]["partitions"]
    assert (error(row), row["leader_id"], len(row["offline_replicas"])) == ("LEADER_NOT_AVAILABLE", -1, 2)
    clients.wait(9_000)
    assert elected(clients, me, 1, 0) == ["NONE"] and clients.host.cluster.leader("t-0") == first


def test_a_broker_that_shuts_down_leaves_its_offices_first() -> None:
    """Others lead at once, whatever the time after which a broker is missed; back again it leads what it led."""
    clients = talk({"t": 1}, ports=(0, 0, 0), session_timeout_ms=60_000)
    leader = clients.host.cluster.leader("t-0")
    inject(clients, 5, "crash", broker=int(leader[1:]), for_ms=10)
    assert clients.host.cluster.leader("t-0") == leader
    clients.wait(10)
    clients.wait(1_000)
    before = clients.host.cluster.leader("t-0")
    inject(clients, 6, "shut_down", broker=int(before[1:]), for_ms=10)
    assert clients.host.cluster.leader("t-0") != before and before in clients.host.cluster.fenced
    clients.wait(10)
    assert before not in clients.host.cluster.fenced


def test_there_is_no_security_and_no_quota() -> None:
    """Answers of a broker without authorizer, users and quotas; logs have sizes."""
    clients = talk()
    me = clients.connect()
    clients.one(me, offer.PRODUCE, 9, produced((0, write_batch([WireRecord(None, b"one")]))))
    acls = {"resource_type_filter": 1, "resource_name_filter": None, "pattern_type_filter": 1,
            "principal_filter": None, "host_filter": None, "operation": 1, "permission_type": 1}
    assert error(clients.one(me, offer.DESCRIBE_ACLS, 3, acls)) == "SECURITY_DISABLED"
    quotas = clients.one(me, offer.DESCRIBE_CLIENT_QUOTAS, 1, {"components": (), "strict": False})
    assert error(quotas) == "NONE" and not quotas["entries"]
    scram = clients.one(me, offer.DESCRIBE_USER_SCRAM_CREDENTIALS, 0, {"users": ({"name": "me"},)})
    assert error(scram["results"][0]) == "RESOURCE_NOT_FOUND"
    moved = clients.one(me, offer.LIST_PARTITION_REASSIGNMENTS, 0, {"timeout": 1, "topics": None})
    assert error(moved) == "NONE" and moved["topics"] == ()
    (dirs,) = clients.one(me, offer.DESCRIBE_LOG_DIRS, 4, {"topics": None})["results"]
    sizes = {row["partition_index"]: row["partition_size"] for row in dirs["topics"][0]["partitions"]}
    assert sizes[0] > 0 == sizes[1]


def test_the_brokers_own_topics_are_listed_once_they_are_written_to() -> None:
    clients = talk()
    me = clients.connect()

    def listed() -> dict[str, bool]:
        found = clients.one(me, offer.METADATA, 12, {"topics": None})["topics"]
        return {row["name"]: row["is_internal"] for row in found}

    assert listed() == {"t": False}
    committed(clients, me, "g")
    assert listed() == {"t": False, "__consumer_offsets": True}
    clients.one(me, offer.INIT_PRODUCER_ID, 4, initializing("app"))
    assert listed() == {"t": False, "__consumer_offsets": True, "__transaction_state": True}
    found = clients.one(me, offer.DESCRIBE_TOPIC_PARTITIONS, 0, {
        "topics": ({"name": "__consumer_offsets"},), "response_partition_limit": 9, "cursor": None})
    (row,) = found["topics"]
    assert row["is_internal"] and [each["last_known_elr"] for each in row["partitions"]] == [()]


def test_one_controller_votes_about_metadata() -> None:
    clients = talk(ports=(5001, 5002))
    me = clients.connect()
    asked = [{"topic_name": name, "partitions": ({"partition_index": 0},)} for name in ("__cluster_metadata", "t")]
    found = clients.one(me, offer.DESCRIBE_QUORUM, 2, {"topics": tuple(asked)})
    known, other = (topic["partitions"][0] for topic in found["topics"])
    assert [row["replica_id"] for row in known["current_voters"]] == [known["leader_id"]] == [1]
    assert [row["replica_id"] for row in known["observers"]] == [2]
    assert error(other) == "UNKNOWN_TOPIC_OR_PARTITION"
