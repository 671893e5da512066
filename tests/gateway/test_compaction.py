"""A topic that is compacted keeps the last record of each key, over the wire: offsets stay, tombstones and markers go.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

pytest.importorskip("kio", reason="needs the extra `gateway`")

from support.gateway import compacted_internals
from support.gateway.compacted_internals import CompactedInternals
from support.gateway.compacted_log import CompactedLog, played
from support.gateway.wire import Talk, adding, fetched, initializing, inject, owner_in, produced, talk
from support.paths import DATA

from kafka_proto.errors import NAMES
from kafka_proto.gateway import offer
from kafka_proto.gateway.records import (
    DELETE_HORIZON,
    BatchHeader,
    WireRecord,
    read_header,
    read_records,
    split,
    write_batch,
)

SECOND = 1_000
RECORDED, INTERNALS = DATA / "gateway" / "compacted.json", DATA / "gateway" / "compacted_internals.json"
Pair = tuple[bytes, bytes | None]


class Topic:
    """Clients of brokers with a compacted topic `t` of one partition whose leader is b1; each batch makes a segment."""

    def __init__(self, brokers: int = 1, **configs: str) -> None:
        self.clients: Talk = talk({}, ports=(0,) * brokers, log_cleaner_backoff_ms=SECOND,
                                  log_retention_check_interval_ms=SECOND)
        self.me = self.clients.connect()
        given = {"cleanup.policy": "compact", "segment.ms": "1", "min.cleanable.dirty.ratio": "0.01",
                 "delete.retention.ms": "10000", **{name.replace("_", "."): value for name, value in configs.items()}}
        rows = tuple({"name": name, "value": value} for name, value in given.items())
        self.one(offer.CREATE_TOPICS, 7, {"timeout": 1, "topics": ({
            "name": "t", "num_partitions": -1, "replication_factor": -1, "configs": rows, "assignments": (
                {"partition_index": 0, "broker_ids": self.clients.host.settings.brokers},)},)})

    def one(self, api: int, version: int, message: dict[str, Any]) -> dict[str, Any]:
        return self.clients.one(self.me, api, version, message)

    def write(self, *pairs: Pair, codec: str = "none", tid: str | None = None, **fields: Any) -> int:
        """Write a batch with the time of now, and let a little time pass; return its offset."""
        records = [WireRecord(*pair) for pair in pairs]
        data = write_batch(records, base_timestamp=self.clients.now, codec=codec, **fields)
        (topic,) = self.one(offer.PRODUCE, 9, produced((0, data), tid=tid))["responses"]
        (row,) = topic["partition_responses"]
        assert row["error_code"] == 0, row
        self.clients.wait(5)
        return int(row["base_offset"])

    def wait(self, seconds: int = 1) -> None:
        self.clients.wait(seconds * SECOND)

    def batches(self, at: int = 0, level: int = 0) -> list[tuple[BatchHeader, list[tuple[int, Pair]]]]:
        """Return the batches that a reader is sent, each with its records by offset."""
        found = self.one(offer.FETCH, 12, fetched(at, level=level))
        (row,) = found["responses"][0]["partitions"]
        assert row["error_code"] == 0
        self.aborted = row["aborted_transactions"]
        return [(header, [(header.base_offset + record.offset_delta, (record.key or b"", record.value))
                          for record in read_records(data, header)])
                for data in split(row["records"]) for header in (read_header(data),)]

    def there(self, at: int = 0) -> dict[int, Pair]:
        """Return the records of clients by offset."""
        return {offset: pair for header, records in self.batches(at) for offset, pair in records
                if not header.is_control}


@pytest.mark.parametrize("codec", ["none", "gzip", "lz4"])
@pytest.mark.parametrize("brokers", [1, 3])
def test_the_last_record_of_each_key_stays_where_it_is(codec: str, brokers: int) -> None:
    """Batches keep their offsets, times and sequences; a reader that begins at a gap goes on behind it."""
    topic = Topic(brokers)
    topic.write((b"a", b"1"), (b"b", b"1"), (b"c", b"1"), codec=codec)
    topic.write((b"a", b"2"), codec=codec)
    topic.write((b"c", b"2"), (b"a", b"3"), codec=codec)
    before = [header for header, _ in topic.batches()]
    topic.write((b"a", b"4"), codec=codec)
    topic.wait()
    kept = {1: (b"b", b"1"), 4: (b"c", b"2"), 5: (b"a", b"3"), 6: (b"a", b"4")}
    assert topic.there() == kept, "the active segment is not compacted"
    assert topic.there(3) == {4: kept[4], 5: kept[5], 6: kept[6]}
    (first, _), *_ = topic.batches()
    assert (first.base_offset, first.last_offset_delta, first.count) == (0, 2, 1)
    assert (first.max_timestamp, first.codec) == (before[0].max_timestamp, codec)
    topic.write((b"d", b"1"))
    topic.wait()
    assert topic.there() == {1: (b"b", b"1"), 4: (b"c", b"2"), 6: (b"a", b"4"), 7: (b"d", b"1")}
    cluster = topic.clients.host.cluster
    assert len({tuple(cluster.log_on("t-0", broker).batches) for broker in cluster.brokers}) == 1
    assert topic.clients.host.problems() == {}


def test_a_tombstone_goes_after_its_time() -> None:
    """A reader is told of it for `delete.retention.ms` from the compaction on that found it; then it goes."""
    topic = Topic()
    topic.write((b"a", b"1"))
    topic.write((b"a", None), (b"b", b"1"))
    topic.write((b"c", b"1"))
    topic.wait()
    (header, records), _ = topic.batches()
    assert records == [(1, (b"a", None)), (2, (b"b", b"1"))] and header.attributes & DELETE_HORIZON
    assert header.base_timestamp == topic.clients.now // SECOND * SECOND + 10 * SECOND
    found = topic.one(offer.LIST_OFFSETS, 5, {"replica_id": -1, "isolation_level": 0, "topics": ({
        "name": "t", "partitions": ({"partition_index": 0, "timestamp": 1},)},)})["topics"][0]["partitions"][0]
    assert (found["offset"], found["timestamp"]) == (1, header.max_timestamp)
    topic.write((b"d", b"1"))
    topic.wait(5)
    assert topic.there()[1] == (b"a", None)
    topic.write((b"e", b"1"))
    topic.wait(10)
    assert topic.there() == {2: (b"b", b"1"), 3: (b"c", b"1"), 4: (b"d", b"1"), 5: (b"e", b"1")}


class Writer:
    """A transactional producer of the topic."""

    def __init__(self, topic: Topic) -> None:
        self.topic = topic
        self.owner = owner_in(topic.one(offer.INIT_PRODUCER_ID, 4, initializing("app")))
        self.sequence = 0

    def write(self, *pairs: Pair) -> None:
        self.topic.one(offer.ADD_PARTITIONS_TO_TXN, 0, adding("app", self.owner, 0))
        self.topic.write(*pairs, tid="app", is_transactional=True, base_sequence=self.sequence, **self.owner)
        self.sequence += len(pairs)

    def end(self, committed: bool) -> None:
        self.topic.one(offer.END_TXN, 1, {"transactional_id": "app", "committed": committed, **self.owner})
        self.topic.clients.wait(5)


def test_aborted_records_go_at_once_and_markers_later() -> None:
    """The index of aborted transactions goes with their records; a later commit of the same producer is read."""
    topic = Topic()
    writer = Writer(topic)
    writer.write((b"a", b"void"))
    writer.end(False)
    writer.write((b"a", b"1"))
    writer.end(True)
    topic.write((b"b", b"1"))
    topic.wait()
    assert [header.base_offset for header, _ in topic.batches()] == [1, 2, 3, 4]
    topic.write((b"c", b"1"))
    topic.wait()
    assert topic.there() == {2: (b"a", b"1"), 4: (b"b", b"1"), 5: (b"c", b"1")}
    (abort, _), *_ = topic.batches(level=1)
    assert abort.is_control and abort.attributes & DELETE_HORIZON and topic.aborted == ()
    topic.write((b"d", b"1"))
    topic.wait(12)
    topic.write((b"a", b"2"))
    topic.wait(1)
    assert next(header.base_offset for header, _ in topic.batches(level=1)) == 2
    assert topic.clients.host.problems() == {}


def test_an_open_transaction_is_not_compacted() -> None:
    """What is not below the last stable offset stays, and so do keys that only it has again."""
    topic = Topic()
    topic.write((b"a", b"0"))
    topic.write((b"a", b"1"))
    writer = Writer(topic)
    writer.write((b"a", b"open"))
    topic.write((b"b", b"1"))
    topic.wait()
    assert topic.there() == {1: (b"a", b"1"), 2: (b"a", b"open"), 3: (b"b", b"1")}
    writer.end(True)
    topic.write((b"c", b"1"))
    topic.wait()
    assert topic.there() == {2: (b"a", b"open"), 3: (b"b", b"1"), 5: (b"c", b"1")}


def test_the_last_batch_of_a_producer_stays_without_records() -> None:
    """Its sequence is known after a failover, to a broker that has only what compaction has left."""
    topic = Topic(3)
    owner = owner_in(topic.one(offer.INIT_PRODUCER_ID, 4, {**initializing("x"), "transactional_id": None}))
    topic.write((b"a", b"1"), base_sequence=0, **owner)
    topic.write((b"a", b"2"), base_sequence=1, **owner)
    topic.write((b"a", b"3"))
    topic.write((b"b", b"3"))
    topic.wait()
    assert topic.there() == {2: (b"a", b"3"), 3: (b"b", b"3")}
    (empty, records), *_ = topic.batches()
    assert (empty.base_offset, empty.count, empty.base_sequence, records) == (1, 0, 1, [])
    inject(topic.clients, 1, "crash", broker=1, for_ms=SECOND)
    leader = topic.clients.host.cluster.leader("t-0")
    assert leader != "b1"
    topic.me = topic.clients.connect(int(leader[1]))
    again = write_batch([WireRecord(b"a", b"2")], base_timestamp=topic.clients.now, base_sequence=1, **owner)
    (row,) = topic.one(offer.PRODUCE, 9, produced((0, again)))["responses"][0]["partition_responses"]
    assert (NAMES[row["error_code"]], row["base_offset"]) == ("NONE", 1)
    topic.wait(3)
    assert topic.clients.host.problems() == {}


def test_a_log_is_compacted_once_it_is_dirty_enough_or_old_enough() -> None:
    """The ratio of bytes decides, or the age of the oldest record that was not compacted; young ones have to wait."""
    topic = Topic(min_cleanable_dirty_ratio="0.6", max_compaction_lag_ms="20000", min_compaction_lag_ms="2000")
    for n in range(4):
        topic.write((b"a", b"%d" % n))
    topic.wait()
    assert len(topic.there()) == 4, "all are young"
    topic.wait(2)
    assert list(topic.there()) == [2, 3], "all of it was dirty"
    topic.write((b"a", b"4"))
    topic.wait(5)
    assert list(topic.there()) == [2, 3, 4], "half of it is"
    topic.wait(20)
    assert list(topic.there()) == [3, 4]


def test_compacted_and_deleted_logs_begin_later_too() -> None:
    """Both policies at once: the last record of a key goes with its segment; observers and a restart go along."""
    topic = Topic(cleanup_policy="compact,delete", retention_ms="5000")
    writer = Writer(topic)
    for n in range(300):
        topic.write((b"a", b"%d" % n))
    writer.write((b"b", b"1"))
    writer.end(True)
    topic.write((b"c", b"1"))
    topic.wait()
    assert list(topic.there()) == [299, 300, 302]
    inject(topic.clients, 1, "crash", broker=1, for_ms=100)
    topic.clients.wait(200)
    topic.me = topic.clients.connect()
    assert list(topic.there(290)) == [299, 300, 302]
    topic.wait(10)
    log = topic.clients.host.cluster.log("t-0")
    assert (log.log_start_offset, log.log_end_offset) == (303, 303)
    assert topic.write((b"c", b"2")) == 303
    assert topic.clients.host.problems() == {}


@pytest.mark.parametrize("brokers", [1, 3])
def test_epochs_begin_where_they_began_before_their_first_batches_were_compacted(brokers: int) -> None:
    """A reader that asks where an older epoch ends is told the same as before."""
    topic, fault = Topic(brokers), 0
    for epoch in range(3):
        for n in range(3):
            topic.write((b"a", b"%d" % n), (b"b", b"%d" % epoch))
        for _ in range(brokers):
            fault += 1
            inject(topic.clients, fault, "crash" if brokers == 1 else "elect", **(
                {"broker": 1, "for_ms": 100} if brokers == 1 else {"partition": "t-0"}))
        topic.clients.wait(200)
        topic.me = topic.clients.connect()
    topic.write((b"a", b"9"), (b"b", b"9"))
    cluster = topic.clients.host.cluster
    before = cluster.epochs("t-0", "b1").starts
    topic.wait(30)
    assert len(topic.there()) < 6 and len(before) > 3
    assert cluster.epochs("t-0", "b1").starts == before


def test_a_new_replica_has_what_compaction_and_retention_have_left() -> None:
    """It leads with it, and writes behind it; what is open in the log when it comes stays open."""
    topic = Topic(4, cleanup_policy="compact,delete", retention_ms="5000")
    for n in range(200):
        topic.write((b"a", b"%d" % n))
    topic.wait(4)
    for n in range(4):
        topic.write((b"b", b"%d" % n))
    topic.wait(2)
    assert list(topic.there(200)) == [202, 203] and topic.clients.host.cluster.log("t-0").log_start_offset == 200
    moved = topic.one(offer.ALTER_PARTITION_REASSIGNMENTS, 0, {"timeout": 1000, "topics": (
        {"name": "t", "partitions": ({"partition_index": 0, "replicas": (4,)},)},)})
    assert moved["error_code"] == 0 and topic.clients.host.cluster.leader("t-0") == "b4"
    topic.me = topic.clients.connect(4)
    assert list(topic.there(200)) == [202, 203]
    assert topic.write((b"b", b"4")) == 204
    topic.write((b"c", b"4"))
    topic.wait()
    assert list(topic.there(200)) == [204, 205]
    assert topic.clients.host.problems() == {}


def test_a_log_is_compacted_as_by_a_real_broker() -> None:
    """Batch by batch, after each of five rounds: recorded on Kafka 4.4.0."""
    clients = talk({}, log_cleaner_backoff_ms=500)
    me = clients.connect()
    log = CompactedLog(lambda api, version, message: clients.one(me, api, version, message),
                       lambda seconds: clients.wait(int(seconds * SECOND)), lambda: clients.now)
    assert played(log) == json.loads(RECORDED.read_text())
    assert clients.host.problems() == {}


def test_internal_topics_are_compacted_as_by_a_real_broker() -> None:
    """Offsets, groups and transactional ids, batch by batch, after each of two rounds: recorded on Kafka 4.4.0."""
    clients = talk({}, log_cleaner_backoff_ms=500)
    me = clients.connect()
    log = CompactedInternals(lambda api, version, message: clients.one(me, api, version, message),
                             lambda seconds: clients.wait(int(seconds * SECOND)))
    assert compacted_internals.played(log) == json.loads(INTERNALS.read_text())
    assert clients.host.problems() == {}


@pytest.mark.parametrize("brokers", [1, 3])
def test_coordinators_go_on_from_compacted_logs(brokers: int) -> None:
    """After each has led elsewhere, offsets, epochs and groups that are gone are as they were; replicas are alike."""
    clients = talk({}, ports=(0,) * brokers, log_cleaner_backoff_ms=SECOND)
    cluster, asked = clients.host.cluster, dict[str, str]()

    def ask(api: int, version: int, message: dict[str, Any]) -> dict[str, Any]:
        tid = message.get("transactional_id")
        p = "__consumer_offsets-0" if tid is None else cluster.placement.transaction_partition(tid)
        asked[tid or ""] = p
        return clients.one(clients.connect(int(cluster.leader(p)[1:])), api, version, message)

    log = CompactedInternals(ask, lambda seconds: clients.wait(int(seconds * SECOND)))
    for offset in range(150):
        log.commit("g", offset)
        log.commit(f"h{offset}", 1)
        log.delete(f"h{offset}")
    epochs = {tid: [log.init(tid) for _ in range(150)][-1] for tid in "abcd"}
    log.wait(2)
    before = {p: cluster.log_on(p, cluster.leader(p)) for p in asked.values()}
    assert all(len(each.batches) < 160 and each.log_end_offset > 149 for each in before.values())
    for p in before:
        assert len({tuple(cluster.log_on(p, broker).batches) for broker in cluster.brokers}) == 1
    for number, broker in enumerate(cluster.brokers):
        inject(clients, number + 1, "crash", broker=int(broker[1:]), for_ms=100)
        log.wait(1)
    assert log.committed("g") == 149 and log.committed("h3") == -1
    for tid, epoch in epochs.items():
        assert log.init(tid) == epoch + 1
    for n in range(2):
        log.commit("g", 150 + n)
        log.wait(6)
    assert log.committed("g") == 151
    assert len(cluster.log("__consumer_offsets-0").batches) < 5, "tombstones go after their time"
    assert clients.host.problems() == {}
