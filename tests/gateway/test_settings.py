"""Settings as DescribeConfigs tells them, with types and synonyms; what has settings; what security is refused."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("kio", reason="needs the extra `gateway`")

from support.gateway.wire import Talk, fetched, initializing, produced, talk

from kafka_proto.errors import NAMES
from kafka_proto.gateway import offer
from kafka_proto.gateway.configs import OF_TOPICS
from kafka_proto.gateway.records import LOG_APPEND_TIME, WireRecord, read_header, with_checksum, write_batch

TOPIC, BROKER, CLIENT_METRICS = 2, 4, 16
BOOLEAN, STRING, INT, LONG, DOUBLE, LIST = 1, 2, 3, 5, 6, 7
OF_TOPIC, OF_ALL_BROKERS, OF_BROKER, DEFAULT = 1, 3, 4, 5
ATTRIBUTES_AT = 21
"""Where the two bytes of a batch's attributes are."""


def error(row: dict[str, Any]) -> str:
    return NAMES[row["error_code"]]


def described(clients: Talk, me: int, kind: int, name: str, *keys: str) -> dict[str, dict[str, Any]]:
    found = clients.one(me, offer.DESCRIBE_CONFIGS, 4, {
        "include_synonyms": True, "include_documentation": False, "resources": (
            {"resource_type": kind, "resource_name": name, "configuration_keys": keys or None},)})
    (result,) = found["results"]
    assert error(result) == "NONE"
    return {row["name"]: row for row in result["configs"]}


def synonyms(row: dict[str, Any]) -> list[tuple[str, str, int]]:
    return [(each["name"], each["value"], each["source"]) for each in row["synonyms"]]


def test_settings_of_topics_have_types_and_synonyms() -> None:
    """A topic's own is said before that of the brokers; where eligible leaders are kept, the controller sets one."""
    clients = talk()
    me = clients.connect()
    clients.one(me, offer.INCREMENTAL_ALTER_CONFIGS, 1, {"validate_only": False, "resources": (
        {"resource_type": TOPIC, "resource_name": "t", "configs": (
            {"name": "retention.ms", "value": "9", "config_operation": 0},)},)})
    rows = described(clients, me, TOPIC, "t")
    types = [rows[name]["config_type"] for name in ("cleanup.policy", "compression.type", "preallocate", "retention.ms",
                                                    "segment.bytes", "min.cleanable.dirty.ratio")]
    assert types == [LIST, STRING, BOOLEAN, LONG, INT, DOUBLE] and set(rows) == set(OF_TOPICS)
    assert synonyms(rows["retention.ms"]) == [
        ("retention.ms", "9", OF_TOPIC), ("log.retention.ms", "604800000", DEFAULT)]
    assert synonyms(rows["max.message.bytes"]) == [("message.max.bytes", "1048588", DEFAULT)]
    assert rows["min.insync.replicas"]["config_source"] == OF_ALL_BROKERS
    older = talk(release="3.9.2", transaction_version=0)
    row = described(older, older.connect(), TOPIC, "t")["min.insync.replicas"]
    assert row["config_source"] == DEFAULT


def test_settings_of_brokers_are_those_of_the_start() -> None:
    """Where they listen and what they were given is set; the rest is Kafka's default. All may be listed."""
    clients = talk(ports=(5001, 5002), group_min_session_timeout_ms=1000)
    me = clients.connect()
    rows = described(clients, me, BROKER, "2")
    told = {name: (row["value"], row["config_source"]) for name, row in rows.items()}
    assert told["advertised.listeners"] == ("PLAINTEXT://127.0.0.1:5002", OF_BROKER)
    assert told["group.min.session.timeout.ms"] == ("1000", OF_BROKER)
    assert told["group.max.session.timeout.ms"] == ("1800000", DEFAULT)
    assert all(row["read_only"] for row in rows.values())
    assert described(clients, me, BROKER, "") == {}
    assert list(described(clients, me, BROKER, "1", "node.id")) == ["node.id"]
    for version, kinds, expected in ((1, (), {TOPIC: ["t"], BROKER: ["1", "2"]}), (1, (BROKER,), {BROKER: ["1", "2"]}),
                                     (0, (), {})):
        found: dict[int, list[str]] = {}
        for row in clients.one(me, offer.LIST_CONFIG_RESOURCES, version, {"resource_types": kinds})["config_resources"]:
            found.setdefault(row.get("resource_type", CLIENT_METRICS), []).append(row["resource_name"])
        assert found == expected


def test_internal_topics_have_settings_of_their_own() -> None:
    """As a real 4.4.0 makes them; they may be changed, and are listed once there are such topics."""
    clients = talk(group_min_session_timeout_ms=1000)
    me = clients.connect()
    asked = ({"resource_type": TOPIC, "resource_name": "__consumer_offsets", "configuration_keys": None},)
    (result,) = clients.one(me, offer.DESCRIBE_CONFIGS, 4, {
        "include_synonyms": True, "include_documentation": False, "resources": asked})["results"]
    assert error(result) == "UNKNOWN_TOPIC_OR_PARTITION"
    clients.one(me, offer.JOIN_GROUP, 3, {
        "group_id": "g", "session_timeout": 3000, "rebalance_timeout": 3000, "member_id": "",
        "protocol_type": "consumer", "protocols": ({"name": "range", "metadata": b""},)})
    clients.one(me, offer.INIT_PRODUCER_ID, 4, initializing("a"))

    def own(topic: str) -> dict[str, str]:
        rows = described(clients, me, TOPIC, topic)
        assert synonyms(rows["cleanup.policy"])[-1] == ("log.cleanup.policy", "delete", DEFAULT)
        return {name: row["value"] for name, row in rows.items() if row["config_source"] == OF_TOPIC}

    both = {"cleanup.policy": "compact", "segment.bytes": "104857600"}
    assert own("__consumer_offsets") == {**both, "compression.type": "producer"}
    assert own("__transaction_state") == {**both, "compression.type": "uncompressed", "min.insync.replicas": "1",
                                          "unclean.leader.election.enable": "false"}
    clients.one(me, offer.INCREMENTAL_ALTER_CONFIGS, 1, {"validate_only": False, "resources": (
        {"resource_type": TOPIC, "resource_name": "__consumer_offsets", "configs": (
            {"name": "segment.bytes", "value": "2000000", "config_operation": 0},)},)})
    assert own("__consumer_offsets")["segment.bytes"] == "2000000"
    found = clients.one(me, offer.LIST_CONFIG_RESOURCES, 1, {"resource_types": (TOPIC,)})["config_resources"]
    assert [row["resource_name"] for row in found] == ["t", "__consumer_offsets", "__transaction_state"]


@pytest.mark.parametrize(("shortest", "expected"), [(None, "INVALID_SESSION_TIMEOUT"), (1000, "MEMBER_ID_REQUIRED")])
def test_sessions_are_as_short_as_brokers_allow(shortest: int | None, expected: str) -> None:
    clients = talk(group_min_session_timeout_ms=shortest)
    found = clients.one(clients.connect(), offer.JOIN_GROUP, 4, {
        "group_id": "g", "session_timeout": 3000, "rebalance_timeout": 3000, "member_id": "",
        "protocol_type": "consumer", "protocols": ({"name": "range", "metadata": b""},)})
    assert error(found) == expected


def test_what_security_would_need_is_refused_with_a_sentence() -> None:
    """Access control, quotas, passwords and SASL; and a replica has one directory to be in."""
    clients = talk({"t": 1})
    me = clients.connect()
    acl = {"resource_type": 2, "resource_name": "t", "resource_pattern_type": 3, "principal": "User:me", "host": "*",
           "operation": 3, "permission_type": 3}
    (made,) = clients.one(me, offer.CREATE_ACLS, 3, {"creations": (acl,)})["results"]
    any_acl = {"resource_type_filter": 1, "resource_name_filter": None, "pattern_type_filter": 1,
               "principal_filter": None, "host_filter": None, "operation": 1, "permission_type": 1}
    (gone,) = clients.one(me, offer.DELETE_ACLS, 3, {"filters": (any_acl,)})["filter_results"]
    entry = {"entity": ({"entity_type": "user", "entity_name": "me"},),
             "ops": ({"key": "producer_byte_rate", "value": 1.0, "remove": False},)}
    (quota,) = clients.one(me, offer.ALTER_CLIENT_QUOTAS, 1, {"entries": (entry,), "validate_only": False})["entries"]
    user = {"name": "me", "mechanism": 1, "iterations": 4096, "salt": b"s", "salted_password": b"p"}
    passwords = clients.one(me, offer.ALTER_USER_SCRAM_CREDENTIALS, 0, {
        "deletions": ({"name": "you", "mechanism": 1},), "upsertions": (user,)})["results"]
    refused = [made, gone, quota, *passwords]
    assert [error(row) for row in refused] == [
        "SECURITY_DISABLED", "SECURITY_DISABLED", "INVALID_REQUEST", "RESOURCE_NOT_FOUND", "UNSUPPORTED_SASL_MECHANISM"]
    assert all(row["error_message"] for row in refused)
    assert error(clients.one(me, offer.SASL_HANDSHAKE, 1, {"mechanism": "PLAIN"})) == "ILLEGAL_SASL_STATE"
    assert error(clients.one(me, offer.SASL_AUTHENTICATE, 2, {"auth_bytes": b"x"})) == "ILLEGAL_SASL_STATE"
    (folder,) = clients.one(me, offer.DESCRIBE_LOG_DIRS, 4, {"topics": None})["results"]
    for path, expected in ((folder["log_dir"], ["NONE", "UNKNOWN_TOPIC_OR_PARTITION"]),
                           ("/elsewhere", ["LOG_DIR_NOT_FOUND", "UNKNOWN_TOPIC_OR_PARTITION"])):
        found = clients.one(me, offer.ALTER_REPLICA_LOG_DIRS, 2, {"dirs": (
            {"path": path, "topics": ({"name": "t", "partitions": (0, 5)},)},)})["results"][0]["partitions"]
        assert [error(row) for row in found] == expected


def test_a_compacted_topic_takes_no_record_without_key() -> None:
    """Which records of a batch are refused is said, and nothing of it is appended (KIP-467)."""
    clients = talk()
    me = clients.connect()
    clients.one(me, offer.INCREMENTAL_ALTER_CONFIGS, 1, {"validate_only": False, "resources": (
        {"resource_type": TOPIC, "resource_name": "t", "configs": (
            {"name": "cleanup.policy", "value": "compact", "config_operation": 2},)},)})
    mixed = write_batch([WireRecord(b"k", b"a"), WireRecord(None, b"b"), WireRecord(None, b"c")], base_timestamp=5)
    keyed = write_batch([WireRecord(b"k", b"a")], base_timestamp=5)
    rows = [clients.one(me, offer.PRODUCE, 9, produced((0, batch)))["responses"][0]["partition_responses"][0]
            for batch in (mixed, keyed)]
    assert [error(row) for row in rows] == ["INVALID_RECORD", "NONE"]
    assert [[wrong["batch_index"] for wrong in row["record_errors"]] for row in rows] == [[1, 2], []]
    assert rows[1]["base_offset"] == 0


@pytest.mark.parametrize(("kind", "said"), [("CreateTime", "NONE"), ("LogAppendTime", "INVALID_TIMESTAMP")])
def test_a_batch_says_that_its_times_are_the_logs_only_where_the_log_gives_none(kind: str, said: str) -> None:
    """A topic of LogAppendTime writes them itself, and refuses a client that says it has."""
    clients = talk({"t": 1})
    me = clients.connect()
    clients.one(me, offer.INCREMENTAL_ALTER_CONFIGS, 1, {"validate_only": False, "resources": (
        {"resource_type": TOPIC, "resource_name": "t", "configs": (
            {"name": "message.timestamp.type", "value": kind, "config_operation": 0},)},)})
    batch = bytearray(write_batch([WireRecord(b"k", b"v")], base_timestamp=clients.now))
    batch[ATTRIBUTES_AT + 1] |= LOG_APPEND_TIME
    asked = produced((0, with_checksum(bytes(batch))))
    (row,) = clients.one(me, offer.PRODUCE, 9, asked)["responses"][0]["partition_responses"]
    assert error(row) == said


def test_times_of_a_topic_are_within_bounds_or_those_of_the_log() -> None:
    """Records out of bounds are refused; a log that gives the times writes them into batches, attributes and all."""
    clients = talk({"t": 1})
    me, now = clients.connect(), clients.now

    def write(*times: int) -> dict[str, Any]:
        batch = write_batch([WireRecord(b"k", b"v", (), time - times[0]) for time in times], base_timestamp=times[0])
        (row,) = clients.one(me, offer.PRODUCE, 9, produced((0, batch)))["responses"][0]["partition_responses"]
        return {**row, "error": error(row)}

    def change(**configs: str) -> None:
        clients.one(me, offer.INCREMENTAL_ALTER_CONFIGS, 1, {"validate_only": False, "resources": (
            {"resource_type": TOPIC, "resource_name": "t", "configs": tuple(
                {"name": f"message.timestamp.{name.replace('_', '.')}", "value": value, "config_operation": 0}
                for name, value in configs.items())},)})

    assert write(now + 3_600_001)["error"] == "INVALID_TIMESTAMP"
    change(after_max_ms="10", before_max_ms="100")
    refused = write(now, now + 11, now - 101, now - 100)
    assert refused["error"] == "INVALID_TIMESTAMP" and [row["batch_index"] for row in refused["record_errors"]] == [
        1, 2]
    assert (write(now - 100, now + 10)["base_offset"], write(now)["log_append_time"]) == (0, -1)
    change(type="LogAppendTime")
    clients.wait(50)
    written = write(5, 7)
    assert (written["error"], written["base_offset"], written["log_append_time"]) == ("NONE", 3, now + 50)
    (partition,) = clients.one(me, offer.FETCH, 12, fetched(3))["responses"][0]["partitions"]
    header = read_header(partition["records"])
    assert (header.base_timestamp, header.max_timestamp, header.attributes) == (5, now + 50, LOG_APPEND_TIME)
    assert with_checksum(partition["records"]) == partition["records"]
    found = clients.one(me, offer.LIST_OFFSETS, 5, {"replica_id": -1, "isolation_level": 0, "topics": ({
        "name": "t", "partitions": ({"partition_index": 0, "timestamp": now + 11},)},)})["topics"][0]["partitions"][0]
    assert (found["offset"], found["timestamp"]) == (3, now + 50)
