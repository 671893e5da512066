"""Situations that are drawn, played on real brokers of Apache Kafka and on ours, and what differs.

Each is a session of some clients: two transactional ids, producers without one, a group, two partitions, and requests
that mostly make sense where they come, and sometimes not (an epoch or a producer id of before or of nobody, a sequence
again or too far, a partition that is not added or is not there, another family of clients). Real brokers come from
Maven Central (see real_broker.py). Situations that differ, and those that a broker answers otherwise when it is asked
again, are kept in out/.

    python benchmarks/drawn_situations.py                                 # 100 for each broker
    python benchmarks/drawn_situations.py --release 4.4.0 --level 1 --situations 500 --seed 7
    python benchmarks/drawn_situations.py --situations 40 --out tests/data/conformance/drawn.json.gz

The exit code is 1 where a broker of ours answered otherwise than a real one that said the same twice.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import attrs

from harness.record.files import compact, write_atomically
from harness.simulate.chance import Seeded
from kafka_proto.broker import Node, handle, new_node, next_deadline, pass_time
from kafka_proto.conformance.files import FORMAT
from kafka_proto.conformance.observing import partition, transaction
from kafka_proto.conformance.playing import PARTITIONS
from kafka_proto.conformance.requests import name, request_of, response_fields
from kafka_proto.conformance.symbols import Symbols
from kafka_proto.conformance.verdict import judge
from kafka_proto.coordinator.transaction import PREPARED
from kafka_proto.gateway.conforming import record_at
from kafka_proto.producer.families import FAMILIES, Family
from kafka_proto.versions import version_of

BROKERS: tuple[tuple[str, int, tuple[str, ...]], ...] = (
    ("3.5.2", 0, ("java35", "rdkafka", "aiokafka")),
    ("3.9.2", 0, ("java39", "java35", "rdkafka", "aiokafka")),
    ("3.9.2", 1, ("java39", "java35", "rdkafka", "aiokafka")),
    ("4.0.0", 2, ("tv2", "java39")),
    ("4.2.0", 2, ("tv2", "java39")),
    ("4.4.0", 1, ("tv2", "java39", "java35", "rdkafka", "aiokafka")),
    ("4.4.0", 2, ("tv2", "java39", "java35", "rdkafka", "aiokafka")),
)
"""Release, level of `transaction.version`, and the families of clients that speak to it."""
STEPS = 25
APART = 1_000_000
"""Between the seeds of one broker and those of the next."""
TIDS = ("tid-A", "tid-B")
SHORT, TIMEOUT, LONGEST_TIMEOUT = 1_000, 60_000, 900_000
GROUP = "G"
NOWHERE = 7
"""A partition that the topic does not have."""
LEVELS = ("read_uncommitted", "read_committed")
MARKERS_FROM = {"4.4.0": 2, "4.2.0": 2}
"""Version of WriteTxnMarkers where it is not 1."""
Fields = dict[str, Any]


@attrs.frozen
class Owner:
    """Whose request it is: as the coordinator knows it, mostly."""

    transactional_id: str
    producer_id: str | int
    producer_epoch: int


class Drawing:
    """One situation, request after request; ours answers each, so that the next one may go on from there."""

    def __init__(self, release: str, level: int, families: tuple[str, ...], seed: int) -> None:
        self.chance = Seeded(seed)
        self.release, self.level, self.families = release, level, families
        self.family = self.pick(families)
        self.symbols = Symbols()
        self.node: Node = new_node(version_of(release, level), map(name, PARTITIONS))
        self.given: list[tuple[str, int]] = []
        """Producer ids and epochs that were answered, in order."""
        self.without: list[tuple[str, int]] = []
        """Those of producers without transactional id."""
        self.member: tuple[str, int] | None = None
        """The one member of the group, and its generation."""
        self.steps: list[Fields] = []
        self.values = 0

    def pick(self, options: Any) -> Any:
        return options[self.chance.index(len(options), "which")]

    def once_in(self, n: int) -> bool:
        return self.chance.index(n, "whether") == 0

    def script(self) -> Fields:
        """Return the situation without answers; it ends before a transaction is stuck, for whoever looks would wait."""
        self.ask(*self.init(FAMILIES[self.family], self.owner("tid-A")))
        while len(self.steps) < STEPS and not any(self.known(tid)["state"] in PREPARED for tid in TIDS):
            family = FAMILIES[self.pick(self.families) if self.once_in(8) else self.family]
            if self.once_in(120):
                self.time_out(family)
            draw = self.pick(WEIGHTED)
            self.ask(*draw(self, family, self.owner(self.pick(TIDS) if self.once_in(4) else "tid-A")))
        if any(self.known(tid)["state"] in PREPARED for tid in TIDS):
            self.steps.pop()
        after = {"coordinator": list(TIDS), "partitions": [str(index) for index in PARTITIONS]}
        return {"family": self.family, "steps": [{**step, "after": after} for step in self.steps]}

    def ask(self, api: str, version: int, fields: Fields) -> Fields:
        self.steps.append({"request": {"api": api, "version": version, "fields": fields}})
        request = request_of(api, version, fields, self.symbols)
        self.node, response = handle(self.node, request)
        shown: Fields = response_fields(api, request, response, self.symbols)
        if isinstance(shown.get("producer_id"), str):
            owns = self.given if fields["transactional_id"] is not None else self.without
            owns.append((shown["producer_id"], shown["producer_epoch"]))
        if shown.get("member_id"):
            self.member = shown["member_id"], shown["generation"]
        elif api == "LeaveGroup" and shown["error"] == "NONE":
            self.member = None
        return shown

    def time_out(self, family: Family) -> None:
        """Let a transaction of tid-A time out; before and after nothing does, however long the requests take."""
        begin = {"transactional_id": "tid-A", "transaction_timeout": SHORT}
        begin |= {"producer_id": -1, "producer_epoch": -1} if family.bumps_epoch else {}
        begun = self.ask("InitProducerId", family.init_producer_id, begin)
        if begun["error"] == "NONE":
            owner = Owner("tid-A", begun["producer_id"], begun["producer_epoch"])
            self.ask(*self.add(family, owner))
            self.ask(*self.produce(family, owner))
            if self.known("tid-A")["state"] == "Ongoing":
                self.steps.append({"note": "waited until the coordinator's state is one of ['CompleteAbort']"})
                while self.known("tid-A")["state"] == "Ongoing":
                    self.node = pass_time(self.node, next_deadline(self.node) or 0)
        self.ask("InitProducerId", family.init_producer_id, {**begin, "transaction_timeout": TIMEOUT})

    def owner(self, tid: str) -> Owner:
        """Return what the coordinator knows of a transactional id; sometimes what it knew, or never did."""
        known = transaction(self.node, tid, self.symbols)
        if not isinstance(known, dict):
            return Owner(tid, *self.pick(self.given)) if self.given and self.once_in(2) else Owner(tid, "pid1", 0)
        owner = Owner(tid, known["producer_id"], known["producer_epoch"])
        if self.given and self.once_in(10):
            return Owner(tid, *self.pick(self.given))
        if self.once_in(15):
            return attrs.evolve(owner, producer_epoch=max(0, owner.producer_epoch + self.pick((-1, 1))))
        return owner

    def known(self, tid: str) -> Mapping[str, Any]:
        found = transaction(self.node, tid, self.symbols)
        return found if isinstance(found, dict) else {"state": "none", "partitions": []}

    def init(self, family: Family, owner: Owner) -> tuple[str, int, Fields]:
        fields: Fields = {"transactional_id": owner.transactional_id, "transaction_timeout": TIMEOUT}
        if self.once_in(12):
            fields["transactional_id"] = None
        elif self.once_in(25):
            fields |= self.pick(({"transactional_id": ""}, {"transaction_timeout": 0},
                                 {"transaction_timeout": LONGEST_TIMEOUT + 1}))
        if family.bumps_epoch:
            goes_on = fields["transactional_id"] is not None and self.given and self.once_in(2)
            fields["producer_id"], fields["producer_epoch"] = (
                (owner.producer_id, owner.producer_epoch) if goes_on else (-1, -1))
        return "InitProducerId", family.init_producer_id, fields

    def add(self, family: Family, owner: Owner) -> tuple[str, int, Fields]:
        indexes = self.pick(([0], [0], [1], [0, 1])) if not self.once_in(15) else [0, NOWHERE]
        fields = {**attrs.asdict(owner), "partitions": indexes}
        if self.release != "3.5.2" and self.once_in(6):
            return "AddPartitionsToTxn", self.pick((4, 5)), {**fields, "verify_only": self.once_in(2)}
        return "AddPartitionsToTxn", family.add_partitions, fields

    def produce(self, family: Family, owner: Owner) -> tuple[str, int, Fields]:
        index = self.pick((0, 0, 1)) if not self.once_in(25) else NOWHERE
        fields = {**attrs.asdict(owner), "partition": index, "acks": -1, "transactional": True}
        if (self.without and self.once_in(4)) or self.once_in(20):
            producer = self.pick(self.without) if self.without else ("pid1", 0)
            fields |= {"transactional_id": None, "producer_id": producer[0], "producer_epoch": producer[1],
                       "transactional": self.once_in(15)}
        elif self.once_in(25):
            fields["transactional"] = False
        count = self.pick((1, 1, 1, 2, 3))
        fields |= {"base_sequence": self.sequence(fields), "records": [self.value() for _ in range(count)]}
        return "Produce", family.produce, fields

    def sequence(self, fields: Fields) -> int:
        """Return the next sequence of a producer in a partition; sometimes one again, or too far, or the first."""
        following = 0
        if fields["partition"] in PARTITIONS:
            seen = partition(self.node.leaders[name(fields["partition"])].log, self.symbols)
            for producer, epoch, last, _ in seen["producers"]:
                if producer == fields["producer_id"] and epoch == fields["producer_epoch"]:
                    following = int(last) + 1
        if self.once_in(6):
            following = max(0, (following - 2, following - 1, following + 1, 0)[self.chance.index(4, "sequence")])
        return following

    def value(self) -> str:
        self.values += 1
        return f"v{self.values}"

    def end(self, family: Family, owner: Owner) -> tuple[str, int, Fields]:
        return "EndTxn", family.end_txn, {**attrs.asdict(owner), "committed": self.once_in(2)}

    def add_offsets(self, family: Family, owner: Owner) -> tuple[str, int, Fields]:
        return "AddOffsetsToTxn", family.add_offsets, {**attrs.asdict(owner), "group_id": GROUP}

    def commit_offset(self, family: Family, owner: Owner) -> tuple[str, int, Fields]:
        fields = {**attrs.asdict(owner), "group_id": GROUP, "partition": self.pick(PARTITIONS),
                  "offset": self.chance.index(20, "offset")}
        if family.txn_offset_commit >= 3:
            member, generation = self.membership()
            fields |= {"generation_id": generation, "member_id": member, "group_instance_id": None}
        return "TxnOffsetCommit", family.txn_offset_commit, fields

    def commit_plain(self, family: Family, owner: Owner) -> tuple[str, int, Fields]:
        member, generation = self.membership()
        return "OffsetCommit", 8, {"group_id": GROUP, "partition": self.pick(PARTITIONS), "generation": generation,
                                   "member_id": member, "offset": self.chance.index(20, "offset")}

    def membership(self) -> tuple[str, int]:
        """Return a member and a generation to commit offsets by: mostly right, or none."""
        if self.member is None or self.once_in(3):
            return ("nobody", 1) if self.once_in(20) else ("", -1)
        member, generation = self.member
        return member, generation + (self.pick((-1, 1)) if self.once_in(6) else 0)

    def group(self, family: Family, owner: Owner) -> tuple[str, int, Fields]:
        """Join the group where it is empty, leave it where it is not: a rebalance of two takes its time."""
        if self.member is not None:
            return "LeaveGroup", 2, {"group_id": GROUP, "member_id": self.member[0]}
        return "JoinGroup+SyncGroup", 5, {"group_id": GROUP, "member_id": "", "group_instance_id": None}

    def offsets(self, family: Family, owner: Owner) -> tuple[str, int, Fields]:
        return "OffsetFetch", 7, {"group_id": GROUP, "partition": self.pick(PARTITIONS),
                                  "require_stable": self.once_in(2)}

    def fetch(self, family: Family, owner: Owner) -> tuple[str, int, Fields]:
        return "Fetch", 12, {"partition": self.pick(PARTITIONS), "fetch_offset": self.chance.index(8, "offset"),
                             "isolation_level": self.pick(LEVELS)}

    def list_offsets(self, family: Family, owner: Owner) -> tuple[str, int, Fields]:
        return "ListOffsets", 5, {"partition": self.pick(PARTITIONS), "timestamp": self.pick((-1, -2)),
                                  "isolation_level": self.pick(LEVELS)}

    def delete(self, family: Family, owner: Owner) -> tuple[str, int, Fields]:
        return "DeleteRecords", 2, {"partition": self.pick(PARTITIONS), "offset": self.pick((-1, 1, 2, 4))}

    def mark(self, family: Family, owner: Owner) -> tuple[str, int, Fields]:
        version = MARKERS_FROM.get(self.release, 1)
        fields: Fields = {"producer_id": owner.producer_id, "producer_epoch": owner.producer_epoch,
                          "coordinator_epoch": 0, "committed": self.once_in(2), "partitions": [self.pick(PARTITIONS)]}
        return "WriteTxnMarkers", version, fields | ({"transaction_version": self.pick((0, 2))} if version > 1 else {})

    def describe(self, family: Family, owner: Owner) -> tuple[str, int, Fields]:
        return "DescribeTransactions", 0, {"transactional_ids": [self.pick((*TIDS, "tid-Z"))]}

    def listed(self, family: Family, owner: Owner) -> tuple[str, int, Fields]:
        states = self.pick(([], ["Ongoing"], ["Empty", "CompleteAbort"], ["CompleteCommit"]))
        producers = [owner.producer_id] if self.once_in(3) else []
        return "ListTransactions", 0, {"state_filters": states, "producer_id_filters": producers}


Draw = Callable[[Drawing, Family, Owner], tuple[str, int, Fields]]
WEIGHTS: tuple[tuple[Draw, int], ...] = (
    (Drawing.init, 8), (Drawing.add, 12), (Drawing.produce, 24), (Drawing.end, 14), (Drawing.add_offsets, 5),
    (Drawing.commit_offset, 6), (Drawing.commit_plain, 1), (Drawing.group, 2), (Drawing.offsets, 4), (Drawing.fetch, 5),
    (Drawing.list_offsets, 3), (Drawing.delete, 1), (Drawing.mark, 1), (Drawing.describe, 1), (Drawing.listed, 1),
)
WEIGHTED = tuple(draw for draw, weight in WEIGHTS for _ in range(weight))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--release", help="only brokers of this release")
    parser.add_argument("--level", type=int, help="only those of this level of transaction.version")
    parser.add_argument("--situations", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="write everything that was the same twice to this file, too")
    given = parser.parse_args()
    wrong, kept = 0, list[Fields]()
    print("| broker | level | situations | requests | the same twice | equal | differ | s |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for number, (release, level, families) in enumerate(BROKERS):
        if given.release in (None, release) and given.level in (None, level):
            first = number * APART + given.seed
            stable, differ = compare(release, level, families, range(first, first + given.situations))
            kept, wrong = kept + stable, wrong + differ
    if given.out is not None:
        write(given.out, kept)
    return min(wrong, 1)


def write(path: Path, records: list[Fields]) -> None:
    """Write records to a file."""
    path.parent.mkdir(exist_ok=True)
    write_atomically(path, (compact({"meta": {"format": FORMAT}, "records": records}),), path.suffix == ".gz")


def compare(release: str, level: int, families: tuple[str, ...], seeds: range) -> tuple[list[Fields], int]:
    """Play drawn situations on a real broker and on ours, and print a row.

    Return the records that were the same twice, and how many of them differ from ours.
    """
    scripts = [{"situation": f"drawn-{seed}", **Drawing(release, level, families, seed).script()} for seed in seeds]
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
    feature = ["--transaction-version", str(level)] if level or release >= "3.8" else []
    with subprocess.Popen([*command, *feature], stdout=subprocess.PIPE, text=True) as broker:
        assert broker.stdout is not None
        try:
            host, _, port = broker.stdout.readline().strip().removeprefix("bootstrap.servers=").partition(":")
            if not port:
                raise SystemExit(f"the broker of {release} did not start; what it said is above")
            records, said = record_at(scripts, host, int(port), release)
        finally:
            broker.terminate()
    for line in said:
        print(line, file=sys.stderr)
    return records


if __name__ == "__main__":
    sys.exit(main())
