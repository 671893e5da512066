"""How fast the gateway is with librdkafka: start-up to the first acknowledged record, records a second, many clusters.

    python benchmarks/gateway_speed.py [RECORDS]

It needs the extra `gateway` and confluent-kafka. Properties are on and every session is recorded, as in a test. The
clients run in this process: rates are given by the wall clock, and by the seconds of CPU of both sides together.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import confluent_kafka as kafka

from kafka_proto.gateway.cluster import KafkaCluster

CLUSTERS = 50
SIZES = (100, 1000)
REPLICATED = {"brokers": 3, "replication_factor": 3, "min_insync_replicas": 2}


class Clocks:
    """When something began, by the wall and by the CPU."""

    def __init__(self) -> None:
        self._wall, self._cpu = time.perf_counter(), time.process_time()

    def rate(self, count: int) -> str:
        """Return how many came a second since then."""
        wall, cpu = time.perf_counter() - self._wall, time.process_time() - self._cpu
        return f"{count / wall:,.0f}/s ({count / cpu:,.0f} a second of CPU)"


def producer_of(cluster: KafkaCluster, **settings: Any) -> Any:
    return kafka.Producer({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0, "linger.ms": 5, **settings})


def first_record() -> float:
    """Return the seconds from nothing to a record that is acknowledged."""
    begun = time.perf_counter()
    with KafkaCluster({"t": 1}) as cluster:
        producer = producer_of(cluster, **{"linger.ms": 0})
        producer.produce("t", b"one")
        assert producer.flush(30) == 0
        return time.perf_counter() - begun


def records_a_second(count: int, size: int, **asked: int) -> str:
    """Return how fast records are acknowledged, and read back, by such a cluster."""
    value = b"v" * size
    with KafkaCluster({"t": 1}, **asked) as cluster:
        producer = producer_of(cluster, **{"enable.idempotence": True})
        begun = Clocks()
        for _ in range(count):
            while True:
                try:
                    producer.produce("t", value)
                    break
                except BufferError:
                    producer.poll(0.01)
        assert producer.flush(120) == 0
        written = begun.rate(count)
        consumer = kafka.Consumer({"bootstrap.servers": cluster.bootstrap_servers, "group.id": "g", "log_level": 0,
                                   "auto.offset.reset": "earliest", "isolation.level": "read_committed"})
        consumer.subscribe(["t"])
        begun, read = Clocks(), 0
        while read < count:
            read += len(consumer.consume(10_000, timeout=5))
        found = begun.rate(count)
        consumer.close()
        assert cluster.verdict() is None
        return f"acknowledged {written}, read {found}"


def many() -> float:
    """Return the seconds that clusters take to start and stop, one after the other."""
    begun = time.perf_counter()
    for _ in range(CLUSTERS):
        with KafkaCluster({"t": 1}, brokers=3):
            pass
    return time.perf_counter() - begun


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    first_record()
    print(f"start-up to the first acknowledged record: {first_record() * 1000:.0f} ms")
    for size in SIZES:
        print(f"records of {size} bytes: {records_a_second(count, size)}")
    for size in SIZES:
        print(f"records of {size} bytes on three replicas: {records_a_second(count, size, **REPLICATED)}")
    print(f"{CLUSTERS} clusters of 3 brokers started and stopped in {many():.1f} s")


if __name__ == "__main__":
    main()
