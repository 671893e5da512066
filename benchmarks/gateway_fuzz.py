"""Random and mutated requests to a broker behind the wire: no exception, no growth.

    python benchmarks/gateway_fuzz.py [REQUESTS] [SEED]

The corpus is a request of every API in every version that is offered, with fields that mean something, and each request
is sent as it is, mutated in a few bytes, or as noise. A connection that was closed is opened anew; a broker that has
many topics, groups or records is begun anew, so what is kept stays bounded. The first exception ends the run, with the
seed and the number of the request.
"""

from __future__ import annotations

import random
import resource
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from support.wire import request_bytes

from kafka_proto.gateway.host import Arrived, Close, Gone, Host, Opened, Passed, Write
from kafka_proto.gateway.inputs import Settings
from kafka_proto.gateway.records import Record, write_batch

BATCH = write_batch([Record(b"k", b"v")], producer_id=0, producer_epoch=0, base_sequence=0, is_transactional=True)
PARTITION = {
    "index": 0, "partition": 0, "partition_index": 0, "records": BATCH, "partition_max_bytes": 1000, "timestamp": -1,
    "committed_offset": 1,
}
TOPIC = {
    "name": "t", "topic": "t", "partitions": (PARTITION,), "partition_data": (PARTITION,), "partition_indexes": (0,),
    "num_partitions": 1, "replication_factor": 1,
}
MEMBER = {"member_id": "m", "group_id": "g", "session_timeout": 10_000, "rebalance_timeout": 10_000,
          "protocol_type": "consumer", "protocols": ({"name": "range", "metadata": b"m"},), "generation_id": 1}
OWNER = {"transactional_id": "tid", "producer_id": 0, "producer_epoch": 0, "committed": True, "acks": -1,
         "transaction_timeout": 1000, "group_id": "g"}
MESSAGE: dict[str, Any] = {
    **MEMBER, **OWNER, "topics": (TOPIC,), "topic_data": (TOPIC,), "coordinator_keys": ("g",), "min_bytes": 1,
    "max_wait": 5, "transactional_ids": ("tid",), "v3_and_below_transactional_id": "tid", "topic_names": ("u",),
    "markers": ({**OWNER, "topics": (TOPIC,)},), "resources": ({"resource_type": 2, "resource_name": "t"},),
}
PLAIN = {"topics": ({**TOPIC, "partitions": (0,)},), "v3_and_below_topics": ({**TOPIC, "partitions": (0,)},),
         "transactions": ({**OWNER, "topics": ({**TOPIC, "partitions": (0,)},)},)}
NASTY = (b"\0", b"\xff", b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\x80\x80\x80\x80\x80", b"\x80\0\0\0\0\0\0\0")
MOST_KEPT = 300
EACH = 5_000
"""Requests before a broker is looked at, and begun anew where it has much."""


def corpus(host: Host) -> list[bytes]:
    """Return a request of every API and version."""
    found = []
    for api, (first, last) in host.offer.ranges.items():
        for version in range(first, last + 1):
            for message in (MESSAGE, {**MESSAGE, **PLAIN}, {**MESSAGE, **PLAIN, "member_id": ""}, {}):
                try:
                    found.append(request_bytes(api, version, message))
                except (TypeError, KeyError, AttributeError):
                    continue  # the fields of a partition where a number is expected, or the other way round
    return found


def mutated(chance: random.Random, frame: bytes) -> bytes:
    """Return a frame as it is, with some bytes changed, or noise of its length."""
    kind = chance.random()
    if kind < 0.2:
        return frame
    if kind < 0.25:
        return chance.randbytes(len(frame))
    changed = bytearray(frame)
    for _ in range(chance.randint(1, 4)):
        at = chance.randint(min(14, len(changed)) if chance.random() < 0.9 else 0, len(changed))
        new = chance.choice(NASTY) if chance.random() < 0.5 else chance.randbytes(chance.randint(1, 4))
        end = at + chance.choice((0, len(new), len(new), chance.randint(0, 8)))
        changed[at:end] = new
    if chance.random() < 0.95:
        changed[:4] = (len(changed) - 4).to_bytes(4, "big")
    return bytes(changed)


def has_much(host: Host) -> bool:
    """Say whether a broker has come to keep more than a run of requests should grow by."""
    return max(map(len, (host.broker.topics, host.broker.groups, host.broker.node.leaders))) > MOST_KEPT


def fuzz(requests: int, seed: int) -> Counter[str]:
    """Send requests, and count what became of them."""
    chance, counts = random.Random(seed), Counter[str]()
    host, connection, now, broker_from = Host(Settings(), {"t": 1}, 0), 0, 0, 0
    frames = corpus(host)
    host.take(Opened(0, now))
    for number in range(requests):
        now += chance.choice((0, 0, 0, 1, 50))
        data = mutated(chance, chance.choice(frames))
        try:
            outputs = host.take(Arrived(connection, data, now))
            outputs += host.take(Passed(now)) if now % 7 == 0 else []
        except Exception:
            print(f"request {number} of seed {seed} raised", file=sys.stderr)
            raise
        counts["answered"] += sum(isinstance(output, Write) for output in outputs)
        ended = any(isinstance(output, Close) for output in outputs)
        counts["closed"] += ended
        if ended or chance.random() < 0.05:
            if not ended:
                host.take(Gone(connection, now))
            connection += 1
            host.take(Opened(connection, now))
        if number - broker_from >= EACH and has_much(host):
            counts["brokers"] += 1
            host, connection, broker_from = Host(Settings(), {"t": 1}, now), 0, number
            host.take(Opened(0, now))
    return counts


def main() -> None:
    requests = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    fuzz(min(requests, 20_000), seed)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begun = time.process_time()
    counts = fuzz(requests, seed)
    spent = time.process_time() - begun
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    print(f"{requests:,} requests in {spent:.0f} s of CPU: {counts['answered']:,} answers, {counts['closed']:,} "
          f"connections closed, no exception; memory grew by {grown:.0f} MiB after the first 20,000")


if __name__ == "__main__":
    main()
