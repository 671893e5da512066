"""KAFKA-17754 (TX-01) as a test: librdkafka on the newest release, and one EndTxn that is late."""

import pytest
from confluent_kafka import Consumer, Producer


@pytest.mark.kafka_cluster({"orders": 2})
def test_an_aborted_transaction_stays_aborted(kafka_cluster):
    servers = {"bootstrap.servers": kafka_cluster.bootstrap_servers}
    late = kafka_cluster.delay("EndTxn")
    producer = Producer({**servers, "transactional.id": "shop", "socket.timeout.ms": 1000})
    producer.init_transactions(20)

    producer.begin_transaction()
    producer.produce("orders", b"a", partition=0)
    producer.commit_transaction(20)  # its EndTxn is held back; the client asks again on a new connection
    producer.begin_transaction()
    producer.produce("orders", b"b", partition=1)
    producer.flush(20)
    producer.abort_transaction(20)

    producer.begin_transaction()
    producer.produce("orders", b"x", partition=0)
    producer.flush(20)
    late.end()
    producer.produce("orders", b"y", partition=1)
    producer.flush(20)
    producer.abort_transaction(20)

    consumer = Consumer({**servers, "group.id": "billing", "auto.offset.reset": "earliest",
                         "isolation.level": "read_committed"})
    consumer.subscribe(["orders"])
    consumer.consume(2, timeout=20)
    consumer.close()
