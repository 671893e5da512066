"""Sessions of many clients drawn from a seed: what they send mostly means something, while brokers crash and are cut.

A session is driven at a host without sockets. Its digest covers, input by input, what the host wants done and all that
it keeps, so that a session whose replay goes another way anywhere has another digest.
"""

from __future__ import annotations

import hashlib
import random
import sys
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from harness.model import FrozenMap, Step, Value, canonical_text
from harness.record import Trail
from harness.simulate.states.tables import Tables
from harness.simulate.trails.replay import Replay
from kafka_proto.gateway import offer
from kafka_proto.gateway.client import request_bytes
from kafka_proto.gateway.codec import SIZE
from kafka_proto.gateway.connection import read_response
from kafka_proto.gateway.context import number_of
from kafka_proto.gateway.host import Host
from kafka_proto.gateway.inputs import (
    BY_CHANCE,
    OF_BROKERS,
    Arrived,
    Close,
    Ended,
    Gone,
    Injected,
    Input,
    Opened,
    Output,
    Passed,
    Settings,
    Started,
    Write,
)
from kafka_proto.gateway.model import SLOTS, slots_of, step_name
from kafka_proto.gateway.offer import LEVELS
from kafka_proto.gateway.recording import Recording
from kafka_proto.gateway.records import WireRecord, write_batch
from kafka_proto.log.chunks import NOTHING, Chunks
from kafka_proto.requests import OFFSETS_PARTITION, partition_name

CONNECTIONS = 30
TOPICS = {"t": 12, "u": 2}
TIDS = (*(f"app{n}" for n in range(12)), "a @1", "@2.1", "x, y", "a\nb", "\u2028", "$set", "app#1", "")
"""Some look like what labels of a trail are made of."""
GROUPS = ("g", "h", "a @1")
HIT = ("EndTxn", "Produce", "AddPartitionsToTxn", "InitProducerId", "Fetch", "JoinGroup", "SyncGroup", "Metadata")
TURNS = ("init", "add", "produce", "end", "add", "produce", "produce", "end")
"""What a producer mostly does, one after the other, and then again."""
KINDS = (*["next"] * 12, *TURNS, "offsets", *["commit"] * 2, *["fetch"] * 3, *["join"] * 2, *["sync"] * 2,
         *["look"] * 3)
START_MS = 1_000_000
PASSING_MS = (0, 0, 0, 0, 1, 40, 900, 7_000)
Fields = dict[str, Any]


class DrawnSession:
    """Clients of one host, which go on from the answers that they get."""

    def __init__(self, seed: int, inputs: int) -> None:
        self.chance = random.Random(seed)
        release = self.pick(list(LEVELS))
        ports = tuple(range(1, 1 + self.pick((1, 2, 3, 5, 12))))
        started = Started(Settings(release, self.pick(LEVELS[release]), ports=ports), FrozenMap(TOPICS), START_MS)
        self.host = Host(started.settings, started.topics, started.now)
        self.recording = Recording(self.host, started)
        self.digest = Digest()
        self.inputs: Chunks[Input] = NOTHING
        self.see(started, [])
        self.now = START_MS
        self.numbers = self.chance.sample(range(10_000), 10_000)
        """Of connections to come: not in the order of opening, on which nothing may depend."""
        self.faults = 0
        self.kinds: Counter[str] = Counter()
        """How often what began, and how many connections a crash has closed at once at most."""
        self.asked: dict[int, list[tuple[int, int, str | None]]] = {}
        self.ended: list[int] = []
        """Connections that are no more: their clients may not have heard."""
        self.cut_off: dict[int, bytes] = {}
        """What a connection has not sent yet of its last request."""
        self.owners: dict[str | None, tuple[int, int]] = {}
        self.turns: Counter[str] = Counter()
        self.sequences: dict[tuple[int, int, str, int], int] = {}
        self.members: dict[str, list[tuple[str, int]]] = {}
        for _ in range(CONNECTIONS):
            self.open()
        for _ in range(inputs):
            self.step()

    def pick(self, options: Any) -> Any:
        return self.chance.choice(options)

    def give(self, given: Input) -> None:
        outputs = self.host.take(given)
        self.recording.see(given, outputs)
        self.see(given, outputs)
        for output in outputs:
            if isinstance(output, Close):
                self.forget(output.connection)
            elif isinstance(output, Write):
                self.heard(output.connection, output.data)

    def see(self, given: Input, outputs: list[Output]) -> None:
        """Add a step and what the host keeps after it to the digest."""
        self.inputs = self.inputs.add(given)
        self.digest.see(Step(*step_name(given, outputs)).name, partial(getattr, slots_of(self.inputs, self.host)))

    def heard(self, connection: int, data: bytes) -> None:
        """Take note of what a client is answered."""
        while data and connection in self.asked:
            size = SIZE + int.from_bytes(data[:SIZE], "big")
            frame, data = data[SIZE:size], data[size:]
            api, version, about = self.asked[connection].pop(0)
            self.note(api, about, read_response(frame, api, version)[1])

    def note(self, api: int, about: str | None, answer: Fields) -> None:
        if api in (offer.INIT_PRODUCER_ID, offer.END_TXN) and answer.get("producer_id", -1) >= 0:
            self.owners[about] = answer["producer_id"], answer["producer_epoch"]
        elif api == offer.JOIN_GROUP and answer["member_id"] and about is not None:
            self.members.setdefault(about, []).append((answer["member_id"], answer["generation_id"]))

    def open(self) -> None:
        number = self.numbers.pop()
        self.asked[number] = []
        self.give(Opened(number, self.now, self.pick(self.host.settings.brokers)))

    def forget(self, number: int) -> None:
        if self.asked.pop(number, None) is not None:
            self.ended.append(number)

    def step(self) -> None:
        """Let something happen."""
        self.now += self.pick(PASSING_MS)
        if len(self.asked) < CONNECTIONS:
            self.open()
        kind = self.chance.random() if self.asked else self.pick((0.07, 0.2))  # all brokers may be down
        if kind < 0.05:
            number = self.pick((*self.asked, *self.ended))
            self.forget(number)
            self.give(Gone(number, self.now))
        elif kind < 0.11:
            self.give(Passed(self.now))
        elif kind < 0.15:
            self.fault()
        elif kind < 0.22:
            self.give(Ended(self.chance.randint(max(1, self.faults - 6), self.faults + 1), self.now))
        elif kind < 0.23:
            number = self.pick((*self.asked, *self.ended))
            self.give(Arrived(number, self.pick((b"", b"\0\0\0\1x", b"\xff" * 9)), self.now))
        else:
            self.send()

    def fault(self) -> None:
        self.faults += 1
        kind = self.pick((*BY_CHANCE, *OF_BROKERS, *OF_BROKERS, "elect"))
        brokers = self.host.settings.brokers
        what: Fields = {"for_ms": self.pick((None, 0, 300, 5_000))}
        if kind in BY_CHANCE:
            what |= {"request": self.pick(HIT), "nth": self.pick((0, 1, 2))}
        elif kind == "elect":
            what["partition"] = self.pick(("", "t-0", "u-1"))
        else:
            what["broker"] = self.pick(brokers)
            if kind == "partition" and len(brokers) > 1 and self.chance.random() < 0.7:
                what["other"] = self.pick([other for other in brokers if other != what["broker"]])
        before = len(self.asked)
        self.give(Injected(self.faults, kind, self.now, **what))
        self.kinds["cut" if "other" in what else kind] += 1
        self.kinds["closed"] = max(self.kinds["closed"], before - len(self.asked))

    def send(self) -> None:
        """Let a client send one or more requests, in pieces of any size, mostly to the broker that takes them."""
        api, about, place, message = self.request()
        number = self.pick(list(self.asked))
        if self.chance.random() < 0.9:
            cluster = self.host.cluster
            led = place if place in cluster.placement.all_partitions else cluster.placement.transaction_partition(place)
            led = OFFSETS_PARTITION if place in GROUPS else led
            right = number_of(cluster.leader(led))
            number = self.pick([each for each in self.asked if self.host.clients[each].broker == right] or [number])
        data = self.cut_off.pop(number, b"")
        for _ in range(self.pick((1, 1, 1, 2))):
            first, last = self.host.offer.ranges[api]
            version = self.chance.randint(first, 3 if api == offer.ADD_PARTITIONS_TO_TXN else last)
            data += request_bytes(api, version, message)
            if message.get("acks") != 0:
                self.asked[number].append((api, version, about))
        if self.chance.random() < 0.1:
            at = self.chance.randint(1, len(data))
            data, self.cut_off[number] = data[:at], data[at:]
        self.give(Arrived(number, data, self.now))

    def request(self) -> tuple[int, str | None, str, Fields]:
        """Return an API, who will hear of its answer, the partition or the name that it is about, and its fields."""
        tid, group = self.pick((*TIDS, *TIDS[:3] * 10)), self.pick(GROUPS)
        producer_id, epoch = self.owners.get(tid, (-1, -1))
        owner = {"transactional_id": tid, "producer_id": producer_id, "producer_epoch": epoch}
        topic, index = self.pick((("t", self.pick(range(12))), ("t", 0), ("t", 1), ("u", 1), ("w", 0)))
        kind = self.pick(KINDS)
        if kind == "next":
            kind, topic, index = TURNS[self.turns[tid] % len(TURNS)], "t", TIDS.index(tid) % 12
            self.turns[tid] += 1
        name, partition = {"name": topic}, partition_name(topic, index)
        offsets = {**name, "partitions": ({"partition_index": index, "committed_offset": self.pick(range(9))},)}
        member_id, generation = self.pick(self.members.get(group, [("", -1)])[-4:])
        member = {"group_id": group, "member_id": member_id, "generation_id": generation,
                  "generation_id_or_member_epoch": generation}
        match kind:
            case "init":
                whose = self.pick((tid, tid, None))
                return offer.INIT_PRODUCER_ID, whose, tid, {
                    "transactional_id": whose, "transaction_timeout": self.pick((1_000, 60_000)), "producer_id": -1,
                    "producer_epoch": -1}
            case "add":
                return offer.ADD_PARTITIONS_TO_TXN, None, tid, {
                    f"v3_and_below_{field}": value for field, value in {
                        **owner, "topics": ({**name, "partitions": (index, (index + 5) % 12)},)}.items()}
            case "produce":
                whose = self.pick((tid, tid, None))
                return offer.PRODUCE, None, partition, self.produced(whose, topic, index)
            case "end":
                return offer.END_TXN, tid, tid, {**owner, "committed": self.pick((True, False))}
            case "offsets":
                return offer.ADD_OFFSETS_TO_TXN, None, tid, {**owner, "group_id": group}
            case "commit":
                by = self.pick((member, {**member, "member_id": "", "generation_id": -1}))
                return self.pick((offer.OFFSET_COMMIT, offer.TXN_OFFSET_COMMIT)), None, group, {
                    **owner, **by, "topics": (offsets,)}
            case "fetch":
                wanted = {"partition": index, "fetch_offset": self.pick((0, 1, 5)), "partition_max_bytes": 999}
                return offer.FETCH, None, partition, {
                    "max_wait": self.pick((0, 500, 9_000)), "min_bytes": self.pick((0, 1, 200)), "max_bytes": 2_000,
                    "isolation_level": self.pick((0, 1)), "session_epoch": -1,
                    "topics": ({"topic": topic, "partitions": (wanted,)},)}
            case "join":
                return offer.JOIN_GROUP, group, group, {
                    **member, "session_timeout": 6_000, "rebalance_timeout": 6_000, "protocol_type": "consumer",
                    "group_instance_id": self.pick((None, None, "i1")),
                    "protocols": ({"name": "range", "metadata": b"m"},)}
            case "sync":
                api = self.pick((offer.SYNC_GROUP, offer.SYNC_GROUP, offer.HEARTBEAT, offer.LEAVE_GROUP))
                return api, None, group, {
                    **member, "protocol_type": "consumer", "protocol_name": "range", "members": (member,),
                    "assignments": tuple({"member_id": known, "assignment": b"a"}
                                         for known, _ in self.members.get(group, ())[-4:])}
        places = {**name, "partition_indexes": tuple(range(12)), "partitions": (
            {"partition_index": index, "timestamp": self.pick((-1, -2, 3)), "offset": 1},)}
        api, message = self.pick((
            (offer.METADATA, {"topics": None}), (offer.METADATA, {"topics": ({"name": "v"},)}),
            (offer.LIST_OFFSETS, {"topics": (places,)}), (offer.DELETE_RECORDS, {"topics": (places,)}),
            (offer.DESCRIBE_PRODUCERS, {"topics": (places,)}), (offer.API_VERSIONS, {}),
            (offer.DESCRIBE_TRANSACTIONS, {"transactional_ids": TIDS}), (offer.LIST_TRANSACTIONS, {}),
            (offer.FIND_COORDINATOR, {"key": tid, "key_type": 1, "coordinator_keys": (tid, group)}),
            (offer.OFFSET_FETCH, {"group_id": group, "topics": None, "groups": ({"group_id": group, "topics": None},),
                                  "require_stable": self.pick((True, False))}),
            (offer.DELETE_TOPICS, {"topic_names": ("u",)}),
            (offer.CREATE_TOPICS, {"topics": (
                {"name": "u", "num_partitions": 2, "replication_factor": -1, "configs": (), "assignments": ()},)}),
            (offer.WRITE_TXN_MARKERS, {"markers": ({**owner, "topics": (places,)},)}),
        ))
        return api, None, partition, message

    def produced(self, tid: str | None, topic: str, index: int) -> Fields:
        """Return a batch of a producer that is transactional, idempotent or neither."""
        producer_id, epoch = self.owners.get(tid, (-1, -1))
        place = producer_id, epoch, topic, index
        sequence = self.sequences.get(place, 0) if producer_id >= 0 else -1
        self.sequences[place] = sequence + 1
        data = write_batch([WireRecord(None, b"v")] * self.pick((1, 3)), base_timestamp=5, base_sequence=sequence,
                           is_transactional=tid is not None and producer_id >= 0, producer_id=producer_id,
                           producer_epoch=epoch)
        return {"acks": self.pick((-1, -1, 0)), "transactional_id": tid, "topic_data": (
            {"name": topic, "partition_data": ({"index": index, "records": data},)},)}


class Digest:
    """The steps of a session and all that is kept after each."""

    def __init__(self) -> None:
        self._sha = hashlib.sha256()

    def see(self, name: str, state: Callable[[str], Value]) -> None:
        """Add a step by its name, and the state after it."""
        texts = [name, *(canonical_text(state(slot)) for slot in SLOTS)]
        self._sha.update("\n".join(texts).encode(errors="backslashreplace"))

    def __str__(self) -> str:
        return self._sha.hexdigest()


def replayed(trail: Trail) -> str:
    """Return the digest of a session's replay. Raises Refusal where it does not fit."""
    tables, digest = Tables(trail.build()), Digest()
    session = Replay(tables, trail)
    while (n := session.decide()) >= 0:
        name = session.node.options[n].name
        session.take(n)
        digest.see(name, partial(tables.value, session.node))
    return str(digest)


def main(folder: Path, first: int, last: int, inputs: int) -> None:
    """Make sessions of some seeds, leave their trails in a folder, and print their digests."""
    for seed in range(first, last):
        session = DrawnSession(seed, inputs)
        session.recording.write(folder / f"{seed}.trail.jsonl")
        print(session.digest)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:]))
