"""A bug of an application: it commits the offsets of what it processed, but outside the transaction."""

import pytest
from confluent_kafka import Consumer, KafkaException, Producer

ORDERS = [b"one", b"two", b"three"]
READING = {"auto.offset.reset": "earliest", "isolation.level": "read_committed", "enable.partition.eof": True}


def read(consumer):
    """Return the next message, or None at the end of the partition."""
    message = consumer.poll(20)
    return message if message is not None and message.error() is None else None


def start(servers):
    """Start the application: it reads orders and writes a payment for each."""
    consumer = Consumer({**servers, **READING, "group.id": "payments", "enable.auto.commit": False})
    consumer.subscribe(["orders"])
    producer = Producer({**servers, "transactional.id": "payments", "transaction.timeout.ms": 1000,
                         "socket.timeout.ms": 1000})
    producer.init_transactions(20)
    return consumer, producer


def pay(servers, in_transaction):
    """Process orders until there are no more; start again where the producer fails for good."""
    consumer, producer = start(servers)
    while (order := read(consumer)) is not None:
        try:
            producer.begin_transaction()
            producer.produce("payments", order.value())
            if in_transaction:
                position = consumer.position(consumer.assignment())
                producer.send_offsets_to_transaction(position, consumer.consumer_group_metadata(), 20)
            else:
                consumer.commit(order, asynchronous=False)
            producer.commit_transaction(20)
        except KafkaException:
            consumer.close()
            consumer, producer = start(servers)
    consumer.close()


@pytest.mark.kafka_cluster({"orders": 1, "payments": 1}, exactly_once="orders to payments group=payments by=value")
@pytest.mark.parametrize("in_transaction", [True, False])
def test_each_order_is_paid_once(kafka_cluster, in_transaction):
    servers = {"bootstrap.servers": kafka_cluster.bootstrap_servers}
    shop = Producer(servers)
    for order in ORDERS:
        shop.produce("orders", order)
    shop.flush(20)
    # The first commit takes longer than the transaction's time-out: the coordinator aborts it.
    kafka_cluster.delay("EndTxn", nth=1, for_ms=2500)
    pay(servers, in_transaction)
