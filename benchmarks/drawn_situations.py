"""Situations that are drawn, played on real brokers of Apache Kafka and on ours, and what differs.

Each is a session of some clients: two transactional ids, producers without one, a group, two partitions, and requests
that mostly make sense where they come, and sometimes not (an epoch or a producer id of before or of nobody, a sequence
again or too far, a partition that is not added or is not there, another family of clients). Now and then the markers of
a transaction are held on their way for some requests (see marker_proxy.py). Real brokers come from Maven Central (see
real_broker.py). Situations that differ, and those that a broker answers otherwise when it is asked again, are kept in
out/.

    python benchmarks/drawn_situations.py                                 # 100 for each broker
    python benchmarks/drawn_situations.py --release 4.4.0 --level 1 --situations 500 --seed 7
    python benchmarks/drawn_situations.py --situations 40 --out kafka_proto/conformance/recorded/drawn.json.gz
    python benchmarks/drawn_situations.py --last-epochs --situations 10   # where epochs run out: a minute each

The exit code is 1 where a broker of ours answered otherwise than a real one that said the same twice.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

from drawing import Drawing, Fields
from marker_proxy import MarkerProxy
from real_broker import free_port

from harness.record.files import compact, write_atomically
from kafka_proto.addresses import address_of
from kafka_proto.conformance.at_broker import record_at
from kafka_proto.conformance.files import FORMAT
from kafka_proto.conformance.playing import judge

BROKERS: tuple[tuple[str, int, tuple[str, ...]], ...] = (
    ("3.5.2", 0, ("java35", "rdkafka", "aiokafka")),
    ("3.9.2", 0, ("java39", "java35", "rdkafka", "aiokafka")),
    ("3.9.2", 1, ("java39", "java35", "rdkafka", "aiokafka")),
    ("4.0.0", 2, ("tv2", "java39")),
    ("4.2.0", 2, ("tv2", "java39")),
    ("4.4.0", 1, ("tv2", "java39", "java35", "rdkafka", "aiokafka")),
    ("4.4.0", 2, ("tv2", "java39", "java35", "rdkafka", "aiokafka")),
    ("3.6.2", 0, ("java35", "rdkafka", "aiokafka")),
    ("3.7.2", 0, ("java35", "rdkafka", "aiokafka")),
    ("3.8.1", 0, ("java39", "java35", "rdkafka", "aiokafka")),
    ("4.0.0", 0, ("java39", "java35", "rdkafka", "aiokafka")),
    ("4.0.0", 1, ("tv2", "java39", "java35", "rdkafka", "aiokafka")),
    ("4.1.1", 0, ("java39", "java35", "rdkafka", "aiokafka")),
    ("4.1.1", 1, ("tv2", "java39", "java35", "rdkafka", "aiokafka")),
    ("4.1.1", 2, ("tv2", "java39", "java35", "rdkafka", "aiokafka")),
    ("4.2.0", 0, ("java39", "java35", "rdkafka", "aiokafka")),
    ("4.2.0", 1, ("tv2", "java39", "java35", "rdkafka", "aiokafka")),
    ("4.3.1", 0, ("java39", "java35", "rdkafka", "aiokafka")),
    ("4.3.1", 1, ("tv2", "java39", "java35", "rdkafka", "aiokafka")),
    ("4.3.1", 2, ("tv2", "java39", "java35", "rdkafka", "aiokafka")),
    ("4.4.0", 0, ("java39", "java35", "rdkafka", "aiokafka")),
)
"""Release, level of `transaction.version`, and the families of clients that speak to it; new ones at the end, for the
seeds of those before."""
APART = 1_000_000
"""Between the seeds of one broker and those of the next."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--release", help="only brokers of this release")
    parser.add_argument("--level", type=int, help="only those of this level of transaction.version")
    parser.add_argument("--situations", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--last-epochs", action="store_true", help="begin each where the epochs of tid-A run out")
    parser.add_argument("--out", type=Path, help="write everything that was the same twice to this file, too")
    given = parser.parse_args()
    wrong, kept = 0, list[Fields]()
    print("| broker | level | situations | requests | the same twice | equal | differ | s |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for number, (release, level, families) in enumerate(BROKERS):
        if given.release in (None, release) and given.level in (None, level):
            first = number * APART + given.seed
            seeds = range(first, first + given.situations)
            stable, differ = compare(release, level, families, seeds, given.last_epochs)
            kept, wrong = kept + stable, wrong + differ
    if given.out is not None:
        write(given.out, kept)
    return min(wrong, 1)


def write(path: Path, records: list[Fields]) -> None:
    """Write records to a file."""
    path.parent.mkdir(exist_ok=True)
    write_atomically(path, (compact({"meta": {"format": FORMAT}, "records": records}),), path.suffix == ".gz")


def compare(
    release: str, level: int, families: tuple[str, ...], seeds: range, is_last: bool
) -> tuple[list[Fields], int]:
    """Play drawn situations on a real broker and on ours, and print a row.

    Return the records that were the same twice, and how many of them differ from ours.
    """
    scripts = [{"situation": f"drawn-{seed}", **Drawing(release, level, families, seed, is_last).script()}
               for seed in seeds]
    began = time.perf_counter()
    records = recorded(scripts, release, level)
    stable = [record for record in records if record["stable"]]
    verdicts = [(record, judge(record)) for record in stable]
    differ = [record for record, verdict in verdicts if not verdict.equal]
    print(f"| {release} | {level} | {len(records)} | {sum(len(one['steps']) for one in records):,} | {len(stable)} "
          f"| {len(stable) - len(differ)} | {len(differ)} | {time.perf_counter() - began:.0f} |", flush=True)
    first = Counter(verdict.differences[0] for _, verdict in verdicts if verdict.differences)
    for said, count in first.most_common(10):
        print(f"{count} times: {said}", file=sys.stderr)
    kept = [*differ, *(record for record in records if not record["stable"])]
    if kept:
        path = Path("out") / f"drawn-{release}-{level}.json"
        write(path, kept)
        print(f"those that differ, here or there, are in {path}", file=sys.stderr)
    return stable, len(differ)


def recorded(scripts: list[Fields], release: str, level: int) -> list[Fields]:
    """Return what a real broker answers, twice, started for it."""
    command = [sys.executable, str(Path(__file__).with_name("real_broker.py")), release]
    feature = ["--transaction-version", str(level)] if level or release >= "3.9" else []
    port = free_port()
    with subprocess.Popen([*command, *feature, "--advertised", str(port)], stdout=subprocess.PIPE, text=True) as broker:
        assert broker.stdout is not None
        try:
            address = broker.stdout.readline().strip().removeprefix("bootstrap.servers=")
            if not address:
                raise SystemExit(f"the broker of {release} did not start; what it said is above")
            with MarkerProxy(address, port) as proxy:
                records, said = record_at(scripts, *address_of(address), release, proxy, patient=True)
        finally:
            broker.terminate()
    for line in said:
        print(line, file=sys.stderr)
    return records


if __name__ == "__main__":
    sys.exit(main())
