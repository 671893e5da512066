"""librdkafka's issue 5423 on a broker: what two late requests of a transaction do, one in each.

    python benchmarks/late_requests.py HOST:PORT

A proxy holds the request, librdkafka gives its connection up, and the request arrives later. `real_broker.py` starts a
broker. The group goes back if it is at offset 5; the abort is fatal if librdkafka can only be closed after it.
"""

from __future__ import annotations

import logging
import sys
import time
from typing import Any

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from kafka_proto.gateway.cluster import KafkaProxy

SILENCE = logging.Logger("librdkafka", level=logging.CRITICAL + 1)
PATIENCE = 30.0
GIVEN_UP_MS = 1_000
"""How long librdkafka waits for an answer."""
QUIET_SECONDS = 1.0
"""For a request to arrive that is no longer held."""


def settings(servers: str) -> dict[str, Any]:
    return {"bootstrap.servers": servers, "logger": SILENCE, "socket.timeout.ms": GIVEN_UP_MS}


def begun(servers: str, name: str) -> Producer:
    """Return a producer in a transaction, with a topic of its own."""
    administrator = AdminClient({**settings(servers), "socket.timeout.ms": 10_000})
    administrator.create_topics([NewTopic(name, 1, 1)])[name].result()
    producer = Producer({**settings(servers), "transactional.id": name})
    producer.init_transactions(PATIENCE)
    producer.begin_transaction()
    return producer


def late_offsets(proxy: KafkaProxy, name: str) -> int:
    """Commit offset 5 in a transaction, whose request is late, and 9 in the next; return where the group is then."""
    servers = proxy.bootstrap_servers
    producer, consumer = begun(servers, name), Consumer({**settings(servers), "group.id": name})
    late, group = proxy.delay("TxnOffsetCommit"), consumer.consumer_group_metadata()
    producer.send_offsets_to_transaction([TopicPartition(name, 0, 5)], group, PATIENCE)
    producer.commit_transaction(PATIENCE)
    producer.begin_transaction()
    producer.send_offsets_to_transaction([TopicPartition(name, 0, 9)], group, PATIENCE)
    late.end()
    time.sleep(QUIET_SECONDS)
    producer.commit_transaction(PATIENCE)
    (committed,) = consumer.committed([TopicPartition(name, 0)], PATIENCE)
    consumer.close()
    return int(committed.offset)


def late_partitions(proxy: KafkaProxy, name: str) -> str:
    """Abort a transaction whose AddPartitionsToTxn is late; return what librdkafka says, if anything, and how bad."""
    producer = begun(proxy.bootstrap_servers, name)
    late = proxy.delay("AddPartitionsToTxn")
    producer.produce(name, b"one", partition=0)
    late.wait(PATIENCE)
    try:
        producer.abort_transaction(PATIENCE)
    except KafkaException as error:
        what = error.args[0]
        return f"{what.name()}{', fatal' if what.fatal() else ''}"
    finally:
        late.end()
    return ""


def main() -> None:
    """Play both at the broker that is named."""
    (broker,) = sys.argv[1:]
    run = f"late-{time.time_ns()}"
    with KafkaProxy(broker) as proxy:
        print(f"TxnOffsetCommit is late: offsets 5, then 9 were committed, the group is at "
              f"{late_offsets(proxy, f'{run}-offsets')}")
        print(f"AddPartitionsToTxn is late: the abort heard {late_partitions(proxy, f'{run}-partitions') or 'nothing'}")


if __name__ == "__main__":
    main()
