"""librdkafka's issue 5423 on a broker: what two late requests of a transaction do, one in each; or another finding.

    python benchmarks/late_requests.py HOST:PORT
    python benchmarks/late_requests.py HOST:PORT --last-epoch
    python benchmarks/late_requests.py HOST:PORT --zombie PORT

A proxy holds the request, librdkafka gives its connection up, and the request arrives later. `real_broker.py` starts a
broker. The group goes back if it is at offset 5; the abort is fatal if librdkafka can only be closed after it.
The second takes up the epochs of a producer id by 32,765 requests; then the answer with the last epoch is lost.
The third needs a broker that announces that other port (`real_broker.py 4.0.0 PORT --advertised PORT`), so that what it
asks its coordinator is held: the verification of a fenced producer's batch.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
from typing import Any

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from kafka_proto.errors import NAMES
from kafka_proto.gateway.client import Client
from kafka_proto.gateway.cluster import KafkaProxy
from kafka_proto.gateway.offer import INIT_PRODUCER_ID, PRODUCE
from kafka_proto.gateway.records import WireRecord, write_batch
from kafka_proto.log import MAX_EPOCH

SILENCE = logging.Logger("librdkafka", level=logging.CRITICAL + 1)
PATIENCE, SHORT_PATIENCE = 30.0, 5.0
LAST = MAX_EPOCH - 1
"""The last epoch that clients are given."""
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
    said = aborted(producer)
    late.end()
    return said


def lost_epoch(proxy: KafkaProxy, broker: str, name: str) -> tuple[str, str]:
    """Abort a transaction whose batch is refused, so that the last epoch is asked for, and lose the answer with it.

    Return what the broker tells whoever asks as librdkafka does then, and what librdkafka says.
    """
    host, _, port = broker.rpartition(":")
    asked = {"transactional_id": name, "transaction_timeout": 60_000}
    with Client(host, int(port)) as client:
        answer = {"producer_epoch": -1}
        while answer["producer_epoch"] < LAST - 2:
            answer = client.ask(INIT_PRODUCER_ID, 1, asked)
        producer = begun(proxy.bootstrap_servers, name)
        proxy.answer("Produce", "UNKNOWN_PRODUCER_ID")
        producer.produce(name, b"one", partition=0)
        producer.flush(PATIENCE)
        proxy.lose("InitProducerId")
        said = aborted(producer, SHORT_PATIENCE)
        given = {"producer_id": answer["producer_id"], "producer_epoch": LAST - 1}
        return NAMES[client.ask(INIT_PRODUCER_ID, 4, {**asked, **given})["error_code"]], said


def zombies_batch(proxy: KafkaProxy, broker: str, name: str) -> list[str]:
    """Write to a partition after a fenced producer's batch, which is verified; return what each write is told."""
    begun(proxy.bootstrap_servers, name)  # makes the topic, and the coordinator known
    host, _, port = broker.rpartition(":")
    asked = {"transactional_id": name, "transaction_timeout": 60_000, "producer_id": -1, "producer_epoch": -1}

    def write(client: Client, owner: dict[str, Any], sequence: int) -> str:
        data = write_batch([WireRecord(None, b"one")], base_timestamp=time.time_ns() // 1_000_000,
                           is_transactional=True, base_sequence=sequence, **owner)
        row = {"name": name, "partition_data": ({"index": 0, "records": data},)}
        got = client.ask(PRODUCE, 12, {"transactional_id": name, "acks": -1, "timeout": 5_000, "topic_data": (row,)})
        return NAMES[got["responses"][0]["partition_responses"][0]["error_code"]]

    def owner(client: Client) -> dict[str, Any]:
        got = client.ask(INIT_PRODUCER_ID, 4, asked)
        return {name: got[name] for name in ("producer_id", "producer_epoch")}

    with Client(host, int(port)) as one, Client(host, int(port)) as two:
        zombie = owner(one)
        successor = owner(two)
        told = [write(two, successor, 0)]
        late, its = proxy.delay("AddPartitionsToTxn"), list[str]()
        thread = threading.Thread(target=lambda: its.append(write(one, zombie, 0)))
        thread.start()
        try:
            late.wait(SHORT_PATIENCE)
        except TimeoutError:  # this broker does not verify it
            thread.join()
        told.append(write(two, successor, 1))
        late.end()
        thread.join()
        return [*told, *its]


def aborted(producer: Producer, seconds: float = PATIENCE) -> str:
    """Abort a transaction; return what librdkafka says, if anything, and how bad it is."""
    try:
        producer.abort_transaction(seconds)
    except KafkaException as error:
        what = error.args[0]
        return f"{what.name()}{', fatal' if what.fatal() else ''}"
    return "nothing"


def main() -> None:
    """Play both, or the last, at the broker that is named."""
    broker, *options = sys.argv[1:]
    run = f"late-{time.time_ns()}"
    port = int(options[1]) if options[:1] == ["--zombie"] else 0
    with KafkaProxy(broker, port=port) as proxy:
        if port:
            first, second, zombies = zombies_batch(proxy, broker, f"{run}-zombie")
            print(f"a producer's batches 0 and 1 are told {first} and {second}; between them its fenced predecessor's "
                  f"batch 0 came, which is told {zombies}")
            return
        if options == ["--last-epoch"]:
            told, said = lost_epoch(proxy, broker, f"{run}-epoch")
            print(f"InitProducerId's answer with the last epoch is lost: it is told {told}, the abort heard {said}")
            return
        print(f"TxnOffsetCommit is late: offsets 5, then 9 were committed, the group is at "
              f"{late_offsets(proxy, f'{run}-offsets')}")
        print(f"AddPartitionsToTxn is late: the abort heard {late_partitions(proxy, f'{run}-partitions')}")


if __name__ == "__main__":
    main()
