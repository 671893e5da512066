"""A test of a transaction through a broker that crashes: what is committed is read, whole and once."""

import pytest
from confluent_kafka import Consumer, Producer


@pytest.mark.kafka_cluster({"orders": 2}, brokers=3)
def test_a_transaction_survives_a_crash(kafka_cluster):
    servers = {"bootstrap.servers": kafka_cluster.bootstrap_servers}
    producer = Producer({**servers, "transactional.id": "shop"})
    producer.init_transactions(20)
    producer.begin_transaction()
    producer.produce("orders", b"one", partition=0)
    producer.flush(20)
    kafka_cluster.crash("b2", for_ms=1000)
    producer.produce("orders", b"two", partition=1)
    producer.commit_transaction(20)

    consumer = Consumer({**servers, "group.id": "billing", "auto.offset.reset": "earliest",
                         "isolation.level": "read_committed"})
    consumer.subscribe(["orders"])
    read = consumer.consume(2, timeout=20)
    consumer.close()
    assert sorted(message.value() for message in read) == [b"one", b"two"]
