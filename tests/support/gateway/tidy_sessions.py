"""Sessions of clients that keep to the protocol, drawn from a seed: transactions, idempotent batches, readers of both
kinds, while requests are late, lost or come twice, and brokers crash, pause and are cut off. Time is virtual.

A client that gets no answer gives its connection up and asks again on another one, as clients do.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from harness.model import FrozenMap
from kafka_proto.gateway import offer
from kafka_proto.gateway.host import Host
from kafka_proto.gateway.inputs import Close, Ended, Gone, Injected, Settings, Started, Write
from kafka_proto.gateway.recording import Recording
from kafka_proto.gateway.records import WireRecord, read_header, split, write_batch
from support.gateway.wire import Talk, adding, initializing, owner_in, responses

RETRIABLE = (3, 5, 6, 7, 14, 15, 16, 19, 20, 41, 51)
"""What these clients ask again after: no leader, no coordinator, too few replicas, a transaction that is being ended.
"""
DUPLICATE = 46
UNANSWERED = -100
HIT = ("Produce", "EndTxn", "AddPartitionsToTxn", "InitProducerId", "Fetch")
PARTITIONS = 3
START_MS = 1_000_000
Fields = Mapping[str, Any]


class TidyClient:
    """A client with a connection to each broker that it asked."""

    def __init__(self, session: TidySession, name: str) -> None:
        self.session, self.name = session, name
        self.connections: dict[int, int] = {}

    def ask(self, broker: int, api: int, version: int, message: Fields) -> Fields | None:
        """Return the answer of a broker; None if none came in time, then the connection is given up."""
        talk = self.session
        if self.connections.get(broker) not in talk.host.clients:
            self.connections[broker] = talk.connect(broker)
            talk.ids[self.connections[broker]] = self.name
        here = self.connections[broker]
        if here not in talk.host.clients:
            return None
        found = talk.ask(here, api, version, dict(message)).get(here, [])
        for waited in (0, 5, 100, 400):
            if found or here not in talk.host.clients:
                break
            found = talk.wait(waited).get(here, [])
        if not found and here in talk.host.clients:
            talk.give(Gone(here, talk.now))
        return found[0] if found else None


class TidyProducer(TidyClient):
    """A producer: of transactions, or only idempotent where it has no transactional id."""

    def __init__(self, session: TidySession, name: str, tid: str | None, acks: int = -1) -> None:
        super().__init__(session, name)
        self.tid, self.acks = tid, acks
        self.owner: dict[str, int] = {}
        self.sequences = [0] * PARTITIONS
        self.is_new = session.host.settings.transaction_version == 2

    def coordinator(self) -> int:
        cluster = self.session.host.cluster
        return self.session.number(cluster.placement.transaction_partition(self.tid)) if self.tid else 1

    def again(self, tries: int, code: Any, *to: Any) -> int:
        """Ask until there is an answer after which nobody asks again; return its code."""
        error = UNANSWERED
        for _ in range(tries):
            error = code(*to)
            if error not in (*RETRIABLE, UNANSWERED):
                break
            self.session.wait(self.session.chance.choice((1, 50, 700)))
        return error

    def init(self) -> int:
        got = self.ask(self.coordinator(), offer.INIT_PRODUCER_ID, 4, initializing(self.tid, 30_000))
        if got is None:
            return UNANSWERED
        if got["error_code"] == 0:
            self.owner, self.sequences = owner_in(got), [0] * PARTITIONS
        return int(got["error_code"])

    def add(self, partition: int) -> int:
        got = self.ask(self.coordinator(), offer.ADD_PARTITIONS_TO_TXN, 0, adding(str(self.tid), self.owner, partition))
        return UNANSWERED if got is None else int(
            got["results_by_topic_v3_and_below"][0]["results_by_partition"][0]["partition_error_code"])

    def produce(self, partition: int, count: int) -> int:
        data = write_batch([WireRecord(None, b"v")] * count, base_timestamp=5, is_transactional=self.tid is not None,
                           base_sequence=self.sequences[partition], **self.owner)
        got = self.ask(self.session.number(f"t-{partition}"), offer.PRODUCE, 12 if self.is_new else 9, {
            "acks": self.acks, "transactional_id": self.tid, "timeout": 1_000, "topic_data": (
                {"name": "t", "partition_data": ({"index": partition, "records": data},)},)})
        return UNANSWERED if got is None else int(got["responses"][0]["partition_responses"][0]["error_code"])

    def end(self, committed: bool) -> int:
        got = self.ask(self.coordinator(), offer.END_TXN, 5 if self.is_new else 1, {
            "transactional_id": self.tid, "committed": committed, **self.owner})
        if got is None:
            return UNANSWERED
        if got["error_code"] == 0 and self.is_new:
            self.owner, self.sequences = owner_in(got), [0] * PARTITIONS
        return int(got["error_code"])

    def turn(self) -> None:
        """Write some batches, in a transaction if it has an id; after what cannot be mended it begins anew."""
        chance = self.session.chance
        if not self.owner and self.again(4, self.init) != 0:
            return
        is_fine = True
        for partition in chance.sample(range(PARTITIONS), chance.choice((1, 2, 2))):
            if self.tid is not None and not self.is_new and self.again(4, self.add, partition) != 0:
                is_fine = False
                break
            for _ in range(chance.choice((1, 1, 2))):
                count = chance.choice((1, 3))
                if self.again(4, self.produce, partition, count) not in (0, DUPLICATE):
                    is_fine = False
                    break
                self.sequences[partition] += count
            if not is_fine:
                break
        commits = is_fine and chance.random() < 0.7
        if not is_fine or (self.tid is not None and self.again(6, self.end, commits) != 0):
            self.owner = {}


class TidyReader(TidyClient):
    """A consumer of all partitions, in fetch sessions."""

    def __init__(self, session: TidySession, name: str, level: int, begin: int) -> None:
        super().__init__(session, name)
        self.level = level
        self.at = [begin] * PARTITIONS
        self.sessions: dict[int, tuple[int, int, int, dict[int, int]]] = {}
        """By broker: the connection, the session's number, its next epoch, and the offsets that the broker knows."""

    def turn(self) -> None:
        for broker in self.session.host.settings.brokers:
            mine = [p for p in range(PARTITIONS) if self.session.number(f"t-{p}") == broker]
            self.fetch(broker, mine)

    def fetch(self, broker: int, mine: list[int]) -> None:
        connection, number, epoch, known = self.sessions.pop(broker, (-1, 0, 0, {}))
        if connection != self.connections.get(broker) or connection not in self.session.host.clients:
            number, epoch, known = 0, 0, {}
        if not mine and epoch == 0:
            return
        wanted = [p for p in mine if known.get(p) != self.at[p]]
        forgotten = [p for p in known if p not in mine]
        got = self.ask(broker, offer.FETCH, 11, {
            "max_wait": 0, "min_bytes": 0, "max_bytes": 2_000, "isolation_level": self.level, "session_id": number,
            "session_epoch": epoch, "topics": ({"topic": "t", "partitions": tuple(
                {"partition": p, "fetch_offset": self.at[p], "partition_max_bytes": 300} for p in wanted)},),
            "forgotten_topics_data": ({"topic": "t", "partitions": tuple(forgotten)},) if forgotten else ()})
        if got is None or got.get("error_code"):
            return
        known = {p: self.at[p] for p in mine}
        for topic in got["responses"]:
            for row in topic["partitions"]:
                headers = [read_header(data) for data in split(row["records"] or b"")]
                if headers:
                    self.at[row["partition_index"]] = headers[-1].base_offset + headers[-1].last_offset_delta + 1
        if got["session_id"]:
            self.sessions[broker] = self.connections[broker], got["session_id"], epoch + 1, known


class TidySession(Talk):
    """Clients of one host, as a run of so many turns."""

    def __init__(self, seed: int, turns: int, release: str = "4.4.0", transaction_version: int = 2,
                 kinds: tuple[str, ...] = (), **settings: Any) -> None:
        self.chance = random.Random(seed)
        made = Settings(release, transaction_version, ports=(1, 2, 3), **settings)
        started = Started(made, FrozenMap({"t": PARTITIONS}), START_MS)
        super().__init__(Host(made, started.topics, START_MS), START_MS)
        self.recording = Recording(self.host, started)
        self.inputs: list[Any] = [started]
        self.faults = 0
        readers = [TidyReader(self, f"reader-{n}", n % 2, n // 2) for n in range(4)]
        clients: list[TidyProducer | TidyReader] = [
            *(TidyProducer(self, f"producer-{n}", f"app{n % 2}") for n in range(3)), TidyProducer(self, "plain", None),
            TidyProducer(self, "fast", None, acks=1), *readers]
        for _ in range(turns):
            if kinds and self.chance.random() < 0.3:
                self.fault(self.chance.choice(kinds))
            self.chance.choice(clients).turn()
        for number in range(1, self.faults + 1):
            self.give(Ended(number, self.now))
        for _ in range(20):
            self.wait(1_000)
        for reader in readers:
            reader.turn()

    def number(self, p: str) -> int:
        """Return the broker that leads a partition."""
        return int(self.host.cluster.leader(p)[1:])

    def give(self, given: Any) -> list[Any]:
        outputs = super().give(given)
        self.inputs.append(given)
        self.recording.see(given, outputs)
        return outputs

    def written(self, outputs: list[Any]) -> dict[int, list[dict[str, Any]]]:
        """Return the responses by connection; brokers may close connections besides."""
        found: dict[int, list[dict[str, Any]]] = {}
        for output in outputs:
            if isinstance(output, Write):
                data = output.data
                while data:
                    size = 4 + int.from_bytes(data[:4], "big")
                    ((_, message),) = responses(data[:size], self._asked[output.connection].pop(0))
                    found.setdefault(output.connection, []).append(message)
                    data = data[size:]
            else:
                assert isinstance(output, Close), output
        return found

    def fault(self, kind: str) -> None:
        self.faults += 1
        what: dict[str, Any] = {"for_ms": self.chance.choice((100, 600, 4_000))}
        if kind in ("delay", "drop", "lose", "duplicate"):
            what["request"] = self.chance.choice(HIT)
        elif kind == "elect":
            what = {"partition": f"t-{self.chance.randrange(PARTITIONS)}"}
        else:
            what["broker"] = self.chance.choice((1, 2, 3))
        self.give(Injected(self.faults, kind, self.now, **what))
