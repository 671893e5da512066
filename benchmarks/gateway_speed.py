"""How fast the gateway is with librdkafka, beside kfake and a real broker, each a process of its own.

    python benchmarks/gateway_speed.py [--records 100000] [--server NAME] [--soak MINUTES]

Of each server with one broker and with three: records a second, acknowledged by all replicas and read back; how long a
single record takes until it is acknowledged (p50, p99). Then of ours alone: start-up in a process, 1,000 connections, a
client that pipelines 20,000 requests and reads no answer. With --soak: memory, minute by minute, under a steady load.
Our properties are on, as in a test. It needs the extra `gateway` and confluent-kafka.
"""

from __future__ import annotations

import argparse
import contextlib
import resource
import socket
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import confluent_kafka as kafka
from confluent_kafka.admin import AdminClient, NewTopic
from peers import SERVERS, Missing, ours, running

from kafka_proto.gateway.client import request_bytes
from kafka_proto.gateway.cluster import KafkaCluster
from kafka_proto.gateway.offer import METADATA

SIZES = (100, 1000)
SINGLE = 2_000
"""Records that are written one after the other."""
CONNECTIONS, PIPELINED = 1_000, 20_000
SOAK_RATE = 2_000
"""Records a second."""
PATIENCE = 120.0


def producer_of(servers: str, **settings: Any) -> Any:
    return kafka.Producer({"bootstrap.servers": servers, "log_level": 0, "linger.ms": 5, "enable.idempotence": True,
                           **settings})


def topic_of(servers: str, name: str, brokers: int, configs: Mapping[str, str] = MappingProxyType({})) -> None:
    """Make a topic that all brokers have, where the server can."""
    admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
    for made in admin.create_topics([NewTopic(name, 1, min(3, brokers), config=dict(configs))]).values():
        made.result(30)


def written(servers: str, topic: str, count: int, size: int) -> float:
    """Return the seconds until records are acknowledged."""
    producer, value = producer_of(servers), b"v" * size
    producer.list_topics(topic, 10)
    begun = time.perf_counter()
    for _ in range(count):
        while True:
            try:
                producer.produce(topic, value)
                break
            except BufferError:
                producer.poll(0.01)
    assert producer.flush(PATIENCE) == 0
    return time.perf_counter() - begun


def read(servers: str, topic: str, count: int) -> float:
    """Return the seconds that a consumer takes to read so many records from the beginning."""
    consumer = kafka.Consumer({"bootstrap.servers": servers, "group.id": topic, "log_level": 0,
                               "auto.offset.reset": "earliest", "isolation.level": "read_committed"})
    consumer.subscribe([topic])
    got = len(consumer.consume(1, timeout=PATIENCE))
    begun = time.perf_counter()
    while got < count:
        got += len(consumer.consume(min(10_000, count - got), timeout=5))
    taken = time.perf_counter() - begun
    consumer.close()
    return taken


def latencies(servers: str, topic: str, count: int = SINGLE) -> str:
    """Return p50 and p99 of single records, in milliseconds."""
    producer, taken = producer_of(servers, **{"linger.ms": 0}), []
    for _ in range(count):
        begun = time.perf_counter()
        producer.produce(topic, b"one")
        assert producer.flush(PATIENCE) == 0
        taken.append(time.perf_counter() - begun)
    taken.sort()
    return f"{taken[count // 2] * 1000:.2f} / {taken[count * 99 // 100] * 1000:.2f}"


def row(name: str, brokers: int, count: int) -> list[str]:
    """Return what is measured of a server."""
    cells = [name, str(brokers)]
    with running(SERVERS[name](brokers)) as (servers, _):
        for size in SIZES:
            topic_of(servers, topic := f"s{size}", brokers)
            cells.append(f"{count / written(servers, topic, count, size):,.0f}")
            cells.append(f"{count / read(servers, topic, count):,.0f}")
        topic_of(servers, "single", brokers)
        latencies(servers, "single", SINGLE // 10)
        cells.append(latencies(servers, "single"))
    return cells


def first_record() -> float:
    """Return the seconds from nothing to a record that is acknowledged, in a test's process."""
    begun = time.perf_counter()
    with KafkaCluster({"t": 1}) as cluster:
        producer = producer_of(cluster.bootstrap_servers, **{"linger.ms": 0, "enable.idempotence": False})
        producer.produce("t", b"one")
        assert producer.flush(30) == 0
        return time.perf_counter() - begun


def connected(servers: str) -> socket.socket:
    host, port = servers.split(",")[0].split(":")
    return socket.create_connection((host, int(port)), 30)


def crowded() -> None:
    """Say what single records take beside many connections, and beside a client that never reads."""
    with running(ours(1)) as (servers, pid), contextlib.ExitStack() as open_:
        latencies(servers, "t", SINGLE // 10)
        print(f"single records, p50 / p99: {latencies(servers, 't')} ms, {megabytes(pid)} MB")
        ask = request_bytes(METADATA, 9, {"topics": ()})
        many = [open_.enter_context(connected(servers)) for _ in range(CONNECTIONS - 20)]
        for each in many:
            each.sendall(ask)
        for each in many:
            assert each.recv(4096)
        print(f"beside {len(many)} connections: {latencies(servers, 't')} ms, {megabytes(pid)} MB")
    with running(ours(1)) as (servers, pid), connected(servers) as client:
        latencies(servers, "t", SINGLE // 10)
        sent = threading.Thread(target=pipelined, args=(client, ask), daemon=True)
        sent.start()
        print(f"beside {PIPELINED:,} pipelined requests: {latencies(servers, 't')} ms, {megabytes(pid)} MB")
        client.close()


def pipelined(client: socket.socket, ask: bytes) -> None:
    """Send requests as fast as they are taken; the server may close the connection."""
    with contextlib.suppress(OSError):
        for _ in range(PIPELINED):
            client.sendall(ask)


def megabytes(pid: int) -> int:
    """Return how much memory a process has resident."""
    fields = Path(f"/proc/{pid}/statm").read_text().split()
    return int(fields[1]) * resource.getpagesize() // 2**20


def soak(minutes: int) -> None:
    """Write and read at a steady rate, and say each minute what memory the server has.

    The topic keeps a megabyte, and the brokers look each second for more.
    """
    memory: list[int] = []
    with running(ours(3, "--config", "log.retention.check.interval.ms=1000")) as (servers, pid):
        topic_of(servers, "soak", 3, {"retention.bytes": "1000000", "segment.bytes": "100000"})
        producer = producer_of(servers)
        consumer = kafka.Consumer({"bootstrap.servers": servers, "group.id": "soak", "log_level": 0,
                                   "auto.offset.reset": "earliest"})
        consumer.subscribe(["soak"])
        begun, sent, got = time.monotonic(), 0, 0
        for minute in range(1, minutes + 1):
            while time.monotonic() - begun < minute * 60:
                behind = int((time.monotonic() - begun) * SOAK_RATE) - sent
                for _ in range(max(0, behind)):
                    producer.produce("soak", b"v" * 100)
                sent += max(0, behind)
                producer.poll(0)
                got += len(consumer.consume(10_000, timeout=0.05))
            memory.append(megabytes(pid))
            print(f"minute {minute}: {sent:,} records written, {got:,} read, {memory[-1]} MB", flush=True)
        assert producer.flush(PATIENCE) == 0
        consumer.close()
    if minutes > 1:
        print(f"memory of the last minute to that of the second: {memory[-1] / memory[1]:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--server", choices=SERVERS, action="append")
    parser.add_argument("--soak", type=int, default=0)
    given = parser.parse_args()
    if given.soak:
        soak(given.soak)
        return
    print("| server | brokers | 100 B acknowledged/s | read/s | 1 kB acknowledged/s | read/s | one, p50 / p99 ms |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for name in given.server or SERVERS:
        for brokers in (1, 3):
            try:
                print("|", " | ".join(row(name, brokers, given.records)), "|", flush=True)
            except Missing as missing:
                print(f"{name}, {brokers}: {missing}", file=sys.stderr)
    first_record()
    print(f"start-up to the first acknowledged record, in a test: {first_record() * 1000:.0f} ms")
    crowded()


if __name__ == "__main__":
    main()
