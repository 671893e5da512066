"""Random and mutated requests to a broker behind the wire: no exception, no growth.

    python benchmarks/gateway_fuzz.py [REQUESTS] [SEED] [--sessions FOLDER]

Requests have three sources, in turn: a corpus with a request of every API in every version that is offered, with fields
that mean something; sessions that Hypothesis draws by the schemas of the messages, with faults; recorded sessions, that
of librdkafka in the tests' data and those of a folder, as `client_sessions.py --keep` leaves them. Requests are sent as
they are, mutated in a few bytes, or as noise; recorded ones are also left out and sent twice. A connection that was
closed is opened anew; a broker that has many topics, groups or records is begun anew, so what is kept stays bounded.
The first exception ends the run, with the seed and what was sent.
"""

from __future__ import annotations

import argparse
import gzip
import random
import resource
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import attrs

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from hypothesis import HealthCheck, Phase, given, seed, settings
from support.gateway.drawn_requests import BROKERS, session
from support.gateway.wire import request_bytes

from harness.record import read_trail, trail_of_text
from kafka_proto.gateway.host import Host
from kafka_proto.gateway.inputs import Arrived, Close, Gone, Input, Opened, Passed, Settings, Started, Write
from kafka_proto.gateway.records import WireRecord, write_batch

BATCH = write_batch([WireRecord(b"k", b"v")], producer_id=0, producer_epoch=0, base_sequence=0, is_transactional=True)
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
RECORDED = Path(__file__).resolve().parent.parent / "tests" / "data" / "gateway" / "librdkafka.trail.jsonl.gz"
MOST_KEPT = 300
EACH = 5_000
"""Requests before a broker is looked at, and begun anew where it has much."""


EXAMPLES = 500
"""Sessions that Hypothesis draws at once: it keeps what it drew, so as not to draw it again."""


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
    cluster = host.cluster
    groups = (cluster.groups(broker).groups for broker in cluster.brokers)
    return max(map(len, (cluster.topics, cluster.partitions, *groups))) > MOST_KEPT


@attrs.define
class Fuzz:
    """A broker that is sent things, and counts of what became of them."""

    host: Host = attrs.field(factory=lambda: new_host(0))
    requests: int = 0
    counts: Counter[str] = attrs.field(factory=Counter)

    def take(self, given: Input) -> bool:
        """Hand an input to the broker, and open a connection that it closes anew; say whether it closed one."""
        closed = False
        if isinstance(given, Arrived):
            self.requests += 1
        for output in self.host.take(given):
            self.counts["answers"] += isinstance(output, Write)
            if isinstance(output, Close):
                self.counts["connections closed"] += 1
                closed = True
                self.host.take(Opened(output.connection, given.now))
        return closed


def new_host(now: int, brokers: int = 1) -> Host:
    return Host(Settings(ports=(0,) * brokers), {"t": 1}, now)


def of_corpus(fuzz: Fuzz, count: int, chance: random.Random) -> None:
    """Send requests of the corpus."""
    now, frames = 0, corpus(fuzz.host)
    fuzz.host.take(Opened(0, now))
    for number in range(count):
        now += chance.choice((0, 0, 0, 1, 50))
        closed = fuzz.take(Arrived(0, mutated(chance, chance.choice(frames)), now))
        if now % 7 == 0:
            fuzz.take(Passed(now))
        if not closed and chance.random() < 0.05:
            fuzz.take(Gone(0, now))
            fuzz.host.take(Opened(0, now))
        if number % EACH == 0 and has_much(fuzz.host):
            fuzz.counts["brokers"] += 1
            fuzz.host = new_host(now)
            fuzz.host.take(Opened(0, now))


def of_hypothesis(fuzz: Fuzz, count: int, chance: random.Random) -> None:
    """Play sessions that Hypothesis draws, each against new brokers."""
    until = fuzz.requests + count
    offer = new_host(0).offer

    @settings(max_examples=EXAMPLES, deadline=None, database=None, phases=[Phase.generate],
              suppress_health_check=list(HealthCheck))
    @given(session(offer, 30))
    def play(drawn: list[Input]) -> None:
        if fuzz.requests >= until:
            return
        now, fuzz.host = 0, new_host(0, BROKERS)
        fuzz.counts["drawn sessions"] += 1
        for connection in range(3):
            fuzz.host.take(Opened(connection, 0, 1 + connection % BROKERS))
        for given_ in drawn:
            now += given_.now
            fuzz.take(attrs.evolve(given_, now=now))
        fuzz.host.problems()

    while fuzz.requests < until:
        seed(chance.randrange(2**32))(play)()


def of_sessions(fuzz: Fuzz, count: int, chance: random.Random, known: list[list[Input]]) -> None:
    """Play recorded sessions, with requests that are mutated, left out, and sent twice."""
    until = fuzz.requests + count
    while fuzz.requests < until:
        started, *inputs = chance.choice(known)
        assert isinstance(started, Started)
        fuzz.counts["recorded sessions"] += 1
        fuzz.host = Host(started.settings, started.topics, started.now)
        for given_ in inputs:
            if isinstance(given_, Arrived):
                what = chance.random()
                data = given_.data if what < 0.7 else mutated(chance, given_.data)
                for _ in range(0 if what < 0.03 else 2 if what < 0.06 else 1):
                    fuzz.take(attrs.evolve(given_, data=data))
            elif not isinstance(given_, Gone) or chance.random() < 0.8:
                fuzz.take(given_)
        fuzz.host.problems()


def recorded(folder: Path | None) -> list[list[Input]]:
    """Return the inputs of the sessions that were recorded."""
    texts = [("librdkafka", gzip.decompress(RECORDED.read_bytes()).decode())]
    trails = [trail_of_text(*each) for each in texts]
    trails += [read_trail(path) for path in sorted(folder.glob("*.trail.jsonl"))] if folder is not None else []
    types = {cls.__name__: cls for cls in trails[0].build().types}
    return [[chosen.input.decoded(types) for chosen in trail.choices if chosen.input is not None] for trail in trails]


def memory() -> float:
    """Return the most memory that this process has used, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def fuzz_all(requests: int, number: int, known: list[list[Input]]) -> tuple[Fuzz, float]:
    """Send requests of all sources; return what became of them, and the MiB used before Hypothesis took its own."""
    fuzz, chance = Fuzz(), random.Random(number)
    try:
        of_corpus(fuzz, requests * 2 // 5, chance)
        of_sessions(fuzz, requests * 2 // 5, chance, known)
        used = memory()
        of_hypothesis(fuzz, requests // 5, chance)
    except Exception:
        print(f"request {fuzz.requests} of seed {number} raised", file=sys.stderr)
        raise
    return fuzz, used


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("requests", nargs="?", type=int, default=1_000_000)
    parser.add_argument("seed", nargs="?", type=int, default=1)
    parser.add_argument("--sessions", type=Path, metavar="FOLDER")
    given_ = parser.parse_args()
    known = recorded(given_.sessions)
    chance = random.Random(given_.seed)
    of_corpus(Fuzz(), 10_000, chance)
    of_sessions(Fuzz(), 10_000, chance, known)
    before, begun = memory(), time.process_time()
    fuzz, used = fuzz_all(given_.requests, given_.seed, known)
    spent = time.process_time() - begun
    counts = ", ".join(f"{count:,} {what}" for what, count in fuzz.counts.items())
    print(f"{fuzz.requests:,} requests in {spent:.0f} s of CPU, of {len(known)} recorded sessions: {counts}, no "
          f"exception; memory grew by {used - before:.0f} MiB after the first 20,000, and by {memory() - used:.0f} MiB "
          "where Hypothesis drew sessions, which remembers what it drew")


if __name__ == "__main__":
    main()
