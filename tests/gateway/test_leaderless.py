"""KAFKA-20734 with a real client: a commit is acknowledged while a partition of its transaction has no leader."""

from __future__ import annotations

import pytest

pytest.importorskip("kio", reason="needs the extra `gateway`")
pytest.importorskip("confluent_kafka", reason="needs the extra `clients`")

from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from kafka_proto.gateway.cluster import KafkaCluster


@pytest.mark.parametrize(("release", "violated"), [("4.2.0", ()), ("4.4.0", ("NoHangingTransaction",))])
def test_a_commit_while_a_partition_has_no_leader(release: str, violated: tuple[str, ...]) -> None:
    """4.3 and later skip the marker, and the record is open for ever; others deliver it when the broker is back."""
    with KafkaCluster(release=release, brokers=3) as cluster:
        servers = {"bootstrap.servers": cluster.bootstrap_servers}
        admin = AdminClient(servers)
        (made,) = admin.create_topics([NewTopic("t", 1, 1)]).values()
        made.result(10)
        leader = cluster.leader("t-0")
        tid = next(name for name in map("app-{}".format, range(100)) if cluster.coordinator(name) != leader)
        producer = Producer({**servers, "transactional.id": tid})
        producer.init_transactions(10)
        producer.begin_transaction()
        producer.produce("t", b"one")
        assert producer.flush(10) == 0
        gone = cluster.crash(leader)
        producer.commit_transaction(20)
        assert not cluster.problems()
        gone.end()
        cluster.expect(*violated)
        reader = Consumer({**servers, "group.id": "g", "auto.offset.reset": "earliest"})
        reader.subscribe(["t"])
        message = reader.poll(20 if not violated else 3)
        reader.close()
        assert (message is None) == bool(violated)
        assert cluster.verdict() is None
