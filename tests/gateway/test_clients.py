"""Real clients against a served broker, over sockets: produce, consume, transactions. Missing clients are skipped."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

pytest.importorskip("kio", reason="needs the extra `gateway`")

SERVE = """
import sys, trio
from kafka_proto.gateway.broker import Settings
from kafka_proto.gateway.host import Host
from kafka_proto.gateway.server import Server, listen, port_of, wall_clock_ms

async def main():
    listener = await listen("127.0.0.1", 0)
    port = port_of(listener)
    print(f"127.0.0.1:{port}", flush=True)
    settings = Settings(sys.argv[1], int(sys.argv[2]), port=port)
    await Server(Host(settings, {}, wall_clock_ms())).serve(listener)

trio.run(main)
"""
CLUSTERS = [("3.5.2", 0), ("3.9.2", 1), ("4.4.0", 2)]


@pytest.fixture(scope="module", params=CLUSTERS, ids=lambda cluster: f"{cluster[0]} level {cluster[1]}")
def served(request: pytest.FixtureRequest) -> Iterator[str]:
    """The address of a broker of a release, in a process of its own."""
    words = [sys.executable, "-c", SERVE, *map(str, request.param)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.terminate()


def test_confluent_kafka_commits_aborts_and_sends_offsets(served: str) -> None:
    """librdkafka reads what was committed and not what was aborted; offsets sent in a transaction are the group's."""
    kafka: Any = pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed")
    producer = kafka.Producer({"bootstrap.servers": served, "transactional.id": "confluent"})
    producer.init_transactions(10)
    producer.begin_transaction()
    for value in (b"a", b"b"):
        producer.produce("confluent", value)
    producer.commit_transaction(10)
    producer.begin_transaction()
    producer.produce("confluent", b"x")
    producer.flush(10)
    producer.abort_transaction(10)
    consumer = kafka.Consumer({
        "bootstrap.servers": served, "group.id": "confluent", "auto.offset.reset": "earliest",
        "isolation.level": "read_committed", "enable.auto.commit": False})
    consumer.subscribe(["confluent"])
    messages = consumer.consume(2, timeout=10) + consumer.consume(1, timeout=0.5)
    assert [message.value() for message in messages if message.error() is None] == [b"a", b"b"]
    producer.begin_transaction()
    producer.send_offsets_to_transaction(
        consumer.position(consumer.assignment()), consumer.consumer_group_metadata(), 10)
    producer.commit_transaction(10)
    assert [each.offset >= 2 for each in consumer.committed(consumer.assignment(), 10)] == [True]
    consumer.close()
    fenced = kafka.Producer({"bootstrap.servers": served, "transactional.id": "confluent"})
    fenced.init_transactions(10)
    producer.begin_transaction()
    producer.produce("confluent", b"late")
    with pytest.raises(kafka.KafkaException) as error:
        producer.commit_transaction(10)
    assert error.value.args[0].fatal()


def test_kafka_python_commits_and_aborts(served: str) -> None:
    """kafka-python reads what was committed and not what was aborted, as a member of a group."""
    kafka: Any = pytest.importorskip("kafka", reason="kafka-python is not installed")
    with closing(kafka.KafkaProducer(bootstrap_servers=served, transactional_id="python")) as producer:
        producer.init_transactions()
        for value, end in ((b"a", producer.commit_transaction), (b"x", producer.abort_transaction)):
            producer.begin_transaction()
            producer.send("python", value).get(10)
            end()
    with closing(kafka.KafkaConsumer("python", bootstrap_servers=served, group_id="python", consumer_timeout_ms=1500,
                                     auto_offset_reset="earliest", isolation_level="read_committed")) as consumer:
        assert [record.value for record in consumer] == [b"a"]


def test_aiokafka_commits_and_aborts(served: str) -> None:
    """aiokafka reads what was committed and not what was aborted, as a member of a group."""
    aiokafka: Any = pytest.importorskip("aiokafka", reason="aiokafka is not installed")

    async def run() -> list[bytes]:
        producer = aiokafka.AIOKafkaProducer(bootstrap_servers=served, transactional_id="aio")
        await producer.start()
        async with producer.transaction():
            await producer.send_and_wait("aio", b"a")
        await producer.begin_transaction()
        await producer.send_and_wait("aio", b"x")
        await producer.abort_transaction()
        await producer.stop()
        consumer = aiokafka.AIOKafkaConsumer("aio", bootstrap_servers=served, group_id="aio",
                                             auto_offset_reset="earliest", isolation_level="read_committed")
        await consumer.start()
        first = await asyncio.wait_for(consumer.getone(), 10)
        more = await consumer.getmany(timeout_ms=500)
        await consumer.stop()
        return [first.value, *(record.value for records in more.values() for record in records)]

    assert asyncio.run(run()) == [b"a"]
