"""A bug of an application: it writes with acks=1, so that a failover may lose what was acknowledged."""

import pytest
from confluent_kafka import Consumer, Producer


@pytest.mark.kafka_cluster({"orders": 1}, brokers=3, min_insync_replicas=2)
@pytest.mark.parametrize("acks", ["all", "1"])
def test_an_acknowledged_order_survives_a_failover(kafka_cluster, acks):
    servers = {"bootstrap.servers": kafka_cluster.bootstrap_servers}
    leader = kafka_cluster.leader("orders-0")
    producer = Producer({**servers, "client.id": "shop", "acks": acks, "linger.ms": 0})
    producer.produce("orders", b"one")
    assert producer.flush(20) == 0

    for follower in sorted({"b1", "b2", "b3"} - {leader}):
        kafka_cluster.partition(leader, follower, for_ms=2000)
    producer.produce("orders", b"two")
    producer.flush(0.2)  # acks=1: the leader alone has acknowledged it
    kafka_cluster.crash(leader, for_ms=2000)
    assert producer.flush(20) == 0

    consumer = Consumer({**servers, "client.id": "reader", "group.id": "billing", "auto.offset.reset": "earliest"})
    consumer.subscribe(["orders"])
    read = [message.value() for message in consumer.consume(2, timeout=8)]
    consumer.close()
    assert read == [b"one", b"two"]
