"""The brokers' own topics, read by a consumer: bytes as a real 4.4.0 has them, recorded with the same client."""

from __future__ import annotations

import re
import time

import pytest

pytest.importorskip("kio", reason="needs the extra `gateway`")
pytest.importorskip("confluent_kafka", reason="needs the extra `clients`")

import confluent_kafka
from confluent_kafka.admin import AdminClient, NewPartitions
from support.gateway.scripted_client import Scripted

from kafka_proto.gateway.cluster import KafkaCluster
from kafka_proto.gateway.host import Host
from kafka_proto.gateway.server import Server

PATIENCE = 20.0
STORED = {
    "__transaction_state": [
        "0001000000000000000000000000ea6000 00 TIME ffffffffffffffff 0100080000000000000000",
        "0001000000000000000000000000ea6001 02076f72646572730300000000000000 0100 TIME TIME 0100080000000000000000",
        "0001000000000000000000000000ea6002 02076f72646572730300000000000000 0100 TIME TIME 0100080000000000000000",
        "0001000000000000000000000000ea6004 01 TIME TIME 0100080000000000000000"],
    "__consumer_offsets": [
        "0004 0000000000000001 ffffffff 0768656c6c6f00 TIME 010010ID",
        "0003 0000 00000000 ffff ffff TIME 00000000",
        "0003 0008636f6e73756d6572 00000001 000572616e6765 MEMBER TIME 00000001 MEMBER ffff 000762696c6c696e67"
        " 000a2f3132372e302e302e31 000493e0 00001770 0000001c 00030000000100066f72646572730000000000000000ffffffff0000"
        " 0000001e 00000000000100066f726465727300000002000000000000000100000000",
        "0003 0008636f6e73756d6572 00000002 ffff ffff TIME 00000000",
        "None", "None"],
}
"""Values, without times and ids; the first two that are deleted are an offset and its group."""


def record_all(servers: str) -> None:
    """Commit a transaction, an offset without a member, and let a member come and go."""
    own = {"bootstrap.servers": servers, "log_level": 0}
    producer = confluent_kafka.Producer({**own, "transactional.id": "shop"})
    producer.init_transactions(PATIENCE)
    producer.begin_transaction()
    for partition in range(2):
        producer.produce("orders", b"one", partition=partition)
    producer.commit_transaction(PATIENCE)
    simple = confluent_kafka.Consumer({**own, "group.id": "simple"})
    simple.commit(offsets=[confluent_kafka.TopicPartition("orders", 0, 1, "hello")], asynchronous=False)
    simple.close()
    member = confluent_kafka.Consumer({
        **own, "group.id": "billing", "client.id": "billing", "session.timeout.ms": 6000,
        "enable.auto.commit": False, "auto.offset.reset": "earliest"})
    member.subscribe(["orders"])
    assert len(member.consume(2, PATIENCE)) == 2
    member.close()
    admin = AdminClient(own)
    admin.delete_consumer_groups(["simple"])["simple"].result(PATIENCE)


def read(servers: str, topic: str) -> list[tuple[int, str, str]]:
    """Return offsets, keys and values of a topic; times and ids are blotted out."""
    reader = confluent_kafka.Consumer({
        "bootstrap.servers": servers, "log_level": 0, "group.id": "reader", "enable.auto.commit": False,
        "enable.partition.eof": True})
    partitions = reader.list_topics(topic, PATIENCE).topics[topic].partitions
    reader.assign([confluent_kafka.TopicPartition(topic, index, 0) for index in partitions])
    found, ends, times, until = [], 0, set(), time.monotonic() + PATIENCE
    while ends < len(partitions):
        assert time.monotonic() < until
        message = reader.poll(1)
        if message is None:
            continue
        if message.error():
            ends += message.error().code() == confluent_kafka.KafkaError._PARTITION_EOF
            continue
        value = "None" if message.value() is None else message.value().hex()
        times.add(f"{message.timestamp()[1]:016x}")
        for each in times:
            value = value.replace(each, "TIME")
        value = value.replace(f"{1000:016x}", f"{0:016x}")  # the first producer id that another broker gives
        value = re.sub("010010[0-9a-f]{32}$", "010010ID", value)
        value = re.sub("0012" + b"billing-0-00000001".hex(), "MEMBER", value)
        found.append((message.offset(), message.key().hex(), value))
    reader.close()
    return found


@pytest.mark.parametrize("brokers", [1, 3])
def test_internal_topics_have_kafkas_bytes(brokers: int) -> None:
    """Offsets are those of the log, where a transaction's entry has a place and a marker would, too."""
    with KafkaCluster({"orders": 2}, brokers=brokers) as cluster:
        record_all(cluster.bootstrap_servers)
        for topic, stored in STORED.items():
            found = read(cluster.bootstrap_servers, topic)
            assert [offset for offset, _, _ in found] == list(range(len(stored)))
            assert [value for _, _, value in found] == [each.replace(" ", "") for each in stored]
        keys = [key for _, key, _ in found]
        assert keys[0] == "0001" "000673696d706c65" "00066f7264657273" "00000000" and keys[4] == keys[0]
        assert keys[1] == keys[2] == keys[3] == "0002" "000762696c6c696e67" and keys[5] == "0002" "000673696d706c65"
        assert cluster.verdict() is None


def test_old_releases_have_old_versions() -> None:
    """Before flexible versions: no tags, no topic ids, and no entry of a group without generation."""
    with KafkaCluster({"orders": 2}, release="3.5.2") as cluster:
        record_all(cluster.bootstrap_servers)
        state = [value for _, _, value in read(cluster.bootstrap_servers, "__transaction_state")]
        assert state[0] == "0000000000000000000000000000ea6000ffffffffTIMEffffffffffffffff"
        offsets = [value for _, _, value in read(cluster.bootstrap_servers, "__consumer_offsets")]
        assert offsets[0] == "00030000000000000001ffffffff000668656c6c6f00TIME" and len(offsets) == 5


def test_nobody_deletes_records_of_internal_topics() -> None:
    """As in `ReplicaManager.deleteRecordsOnLocalLog`."""
    with KafkaCluster({"t": 1}) as cluster, Scripted(cluster.bootstrap_servers) as client:
        client.init()
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})
        p = confluent_kafka.TopicPartition("__transaction_state", 0, 1)
        with pytest.raises(confluent_kafka.KafkaException, match="Invalid topic"):
            next(iter(admin.delete_records([p]).values())).result(PATIENCE)


def create_partitions(servers: str, topic: str, count: int, validate_only: bool = False) -> str:
    """Return the error of CreatePartitions, empty if there is none."""
    admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
    try:
        admin.create_partitions([NewPartitions(topic, count)], validate_only=validate_only)[topic].result(PATIENCE)
    except confluent_kafka.KafkaException as refused:
        return f"{refused.args[0].name()}: {refused.args[0].str()}"
    return ""


@pytest.mark.parametrize("brokers", [1, 3])
def test_internal_topics_get_partitions_that_coordinators_do_not_use_yet(brokers: int) -> None:
    """As a real 4.4.0 until it starts again: new partitions have leaders and stay empty, nothing is lost or moves."""
    with KafkaCluster({"orders": 2, "t": 1}, brokers=brokers) as cluster:
        servers = cluster.bootstrap_servers
        assert create_partitions(servers, "__consumer_offsets", 4).startswith("UNKNOWN_TOPIC_OR_PART"), "not made yet"
        record_all(servers)
        before = {topic: sorted(read(servers, topic)) for topic in STORED}
        for topic, there in (("__consumer_offsets", 1), ("__transaction_state", brokers)):
            assert create_partitions(servers, topic, there) == (
                f"INVALID_PARTITIONS: Topic already has {there} partition(s).")
            assert create_partitions(servers, topic, 4, validate_only=True) == ""
            assert create_partitions(servers, topic, 4) == create_partitions(servers, topic, 5) == ""
            assert create_partitions(servers, topic, 2) == (
                f"INVALID_PARTITIONS: The topic {topic} currently has 5 partition(s); 2 would not be an increase.")
            made = AdminClient({"bootstrap.servers": servers}).list_topics(topic, PATIENCE).topics[topic].partitions
            assert sorted(made) == list(range(5)) and all(row.leader > 0 for row in made.values())
        assert {topic: sorted(read(servers, topic)) for topic in STORED} == before
        record_all(servers)
        for number in range(8):
            with Scripted(servers, f"app-{number}") as client:
                client.init()
        after = {topic: read(servers, topic) for topic in STORED}
        assert len(after["__transaction_state"]) == 2 * len(before["__transaction_state"]) + 8
        reader = confluent_kafka.Consumer({"bootstrap.servers": servers, "log_level": 0, "group.id": "reader"})
        for topic, used in (("__consumer_offsets", 1), ("__transaction_state", brokers)):
            for index in range(5):
                _, end = reader.get_watermark_offsets(confluent_kafka.TopicPartition(topic, index), PATIENCE)
                assert (end > 0) == (index < used), f"{topic}-{index} ends at {end}"
        reader.close()
        assert cluster.verdict() is None


def test_internal_topics_move_to_other_brokers() -> None:
    """Replicas of both leave their first broker; coordinators go on, and the records are there (KIP-455)."""
    with KafkaCluster({"orders": 2}, brokers=3) as cluster:
        record_all(cluster.bootstrap_servers)
        before = {topic: read(cluster.bootstrap_servers, topic) for topic in STORED}
        for topic in STORED:
            first = cluster.leader(f"{topic}-0")
            rest = tuple(each for each in ("b1", "b2", "b3") if each != first)

            def move(server: Server, p: str = f"{topic}-0", rest: tuple[str, ...] = rest) -> None:
                assert isinstance(server.host, Host)
                server.host.cluster.reassign(p, rest)

            cluster.on_server(move)
            assert cluster.leader(f"{topic}-0") in rest
        assert {topic: read(cluster.bootstrap_servers, topic) for topic in STORED} == before
        record_all(cluster.bootstrap_servers)
        assert cluster.verdict() is None
