"""What topics do not keep is deleted over the wire: by time, by size, on request; followers and observers go along."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("kio", reason="needs the extra `gateway`")

from support.gateway.set_clock import SetClock
from support.gateway.wire import Producer, Talk, fetched, initializing, inject, owner_in, produced, talk

from harness.record import read_trail
from harness.simulate.runs.run import Recorder
from harness.simulate.trails.replay import replay_plain
from kafka_proto.errors import NAMES
from kafka_proto.gateway import offer
from kafka_proto.gateway.host import Host
from kafka_proto.gateway.inputs import Ended, Settings, Started
from kafka_proto.gateway.recording import Recording
from kafka_proto.gateway.records import WireRecord, read_header, split, write_batch
from kafka_proto.gateway.story import ToldHost

SECOND = 1_000
EARLIEST, LATEST = -2, -1


def clients_of(brokers: int = 1, topics: int = 1, **configs: str) -> Talk:
    """Return clients of brokers that look for old records each second, with a topic `t` that has settings."""
    clients = talk({}, ports=(0,) * brokers, log_retention_check_interval_ms=SECOND)
    made(clients, topics, **configs)
    return clients


def made(clients: Talk, partitions: int, **configs: str) -> None:
    rows = tuple({"name": name.replace("_", "."), "value": value} for name, value in configs.items())
    given = tuple({"partition_index": n, "broker_ids": clients.host.settings.brokers} for n in range(partitions))
    found = clients.one(clients.connect(), offer.CREATE_TOPICS, 7, {"timeout": 1, "topics": ({
        "name": "t", "num_partitions": -1, "replication_factor": -1, "configs": rows, "assignments": given},)})
    assert found["topics"][0]["error_code"] == 0, found


def write(clients: Talk, me: int, *values: bytes, at: int | None = None, **owner: int) -> dict[str, Any]:
    """Write a batch with the time of now."""
    data = write_batch([WireRecord(b"k", value) for value in values], base_timestamp=at or clients.now, **owner)
    (topic,) = clients.one(me, offer.PRODUCE, 9, produced((0, data)))["responses"]
    (row,) = topic["partition_responses"]
    return {**row, "size": len(data)}


def offset(clients: Talk, me: int, time: int) -> int:
    """Look an offset up."""
    found = clients.one(me, offer.LIST_OFFSETS, 5, {"replica_id": -1, "isolation_level": 0, "topics": ({
        "name": "t", "partitions": ({"partition_index": 0, "current_leader_epoch": -1, "timestamp": time},)},)})
    (row,) = found["topics"][0]["partitions"]
    assert row["error_code"] == 0
    return int(row["offset"])


def read(clients: Talk, me: int, at: int) -> tuple[str, int, list[int]]:
    """Return the error, the start of the log, and the offsets of the batches that a reader is sent."""
    found = clients.one(me, offer.FETCH, 12, fetched(at))
    (row,) = found["responses"][0]["partitions"]
    batches = [read_header(batch).base_offset for batch in split(row["records"] or b"")]
    return NAMES[row["error_code"]], row["log_start_offset"], batches


@pytest.mark.parametrize("brokers", [1, 3])
def test_old_segments_are_deleted_but_no_part_of_one(brokers: int) -> None:
    """A segment goes when its newest record is too old, the active one as the others."""
    clients = clients_of(brokers, retention_ms="10000", segment_ms="4000")
    me = clients.connect()
    for n in range(4):
        write(clients, me, b"%d" % n)
        clients.wait(3 * SECOND)  # two batches make a segment
    assert offset(clients, me, EARLIEST) == 0
    clients.wait(2 * SECOND)
    assert (offset(clients, me, EARLIEST), offset(clients, me, LATEST)) == (2, 4)
    assert read(clients, me, 1) == ("OFFSET_OUT_OF_RANGE", -1, [])
    assert read(clients, me, 2) == ("NONE", 2, [2, 3])
    clients.wait(60 * SECOND)
    assert (offset(clients, me, EARLIEST), offset(clients, me, LATEST)) == (4, 4)
    later = write(clients, me, b"later")
    assert (later["base_offset"], later["log_start_offset"]) == (4, 4)
    assert clients.host.problems() == {}


@pytest.mark.parametrize("brokers", [1, 3])
def test_a_large_log_loses_its_oldest_segments(brokers: int) -> None:
    """What is left is at least what is to be kept, and less than a segment more."""
    clients = clients_of(brokers, retention_bytes="350", segment_bytes="200")
    me = clients.connect()
    size = write(clients, me, b"0")["size"]
    assert 2 * size <= 200 < 3 * size
    for n in range(1, 11):
        write(clients, me, b"%d" % (n % 10))
    clients.wait(SECOND)
    kept = offset(clients, me, LATEST) - (start := offset(clients, me, EARLIEST))
    assert 350 <= kept * size < 350 + 2 * size and start % 2 == 0
    for broker in clients.host.cluster.brokers:
        assert clients.host.cluster.log_on("t-0", broker).log_start_offset == start
    asked = {"topics": ({"topic": "t", "partitions": (0,)},)}
    (row,) = clients.one(me, offer.DESCRIBE_LOG_DIRS, 1, asked)["results"]
    assert row["topics"][0]["partitions"][0]["partition_size"] == kept * size
    assert clients.host.problems() == {}


def test_nothing_is_deleted_that_followers_lack() -> None:
    """Nothing goes that is not below the high watermark."""
    clients = clients_of(3, retention_ms="1000", segment_ms="1")
    me, leader = clients.connect(), clients.host.cluster.leader("t-0")
    assert leader == "b1"
    inject(clients, 1, "pause", broker=2, for_ms=400)
    inject(clients, 2, "pause", broker=3, for_ms=400)
    data = write_batch([WireRecord(None, b"x")], base_timestamp=1)
    clients.ask(me, offer.PRODUCE, 9, produced((0, data), acks=1))
    clients.wait(300)
    log = clients.host.cluster.log("t-0")
    assert (log.high_watermark, log.log_start_offset) == (0, 0)
    clients.wait(2 * SECOND)
    log = clients.host.cluster.log("t-0")
    assert (log.high_watermark, log.log_start_offset) == (1, 1)


def test_a_failover_keeps_the_start_and_what_is_known_of_producers() -> None:
    """A broker that was down while records went begins where the others do; sequences go on, and restarts keep it all.
    """
    clients = clients_of(3, retention_ms="20000", segment_ms="1")
    me = clients.connect()
    owner = owner_in(clients.one(me, offer.INIT_PRODUCER_ID, 4, {**initializing("x"), "transactional_id": None}))
    inject(clients, 3, "crash", broker=3, for_ms=60 * SECOND)
    for n in range(200):
        assert write(clients, me, b"%d" % n, base_sequence=n, **owner)["error_code"] == 0
    clients.wait(30 * SECOND)
    write(clients, me, b"200", base_sequence=200, **owner)
    assert read(clients, me, 200) == ("NONE", 200, [200])
    clients.wait(SECOND)
    clients.wait(60 * SECOND)
    write(clients, me, b"201", base_sequence=201, **owner)
    cluster = clients.host.cluster
    for number, broker in ((7, "b1"), (8, "b2")):
        assert set(cluster.in_sync("t-0")) == {"b1", "b2", "b3"}
        inject(clients, number, "crash", broker=int(broker[1]), for_ms=2 * SECOND)
        leader = cluster.leader("t-0")
        assert leader != broker
        here = clients.connect(int(leader[1]))
        assert offset(clients, here, EARLIEST) == 201
        assert read(clients, here, 0)[0] == "OFFSET_OUT_OF_RANGE"
        twice = write(clients, here, b"201", base_sequence=201, **owner)
        assert (twice["error_code"], twice["base_offset"]) == (0, 201)
        assert NAMES[write(clients, here, b"x", base_sequence=300, **owner)["error_code"]] == (
            "OUT_OF_ORDER_SEQUENCE_NUMBER")
        clients.wait(3 * SECOND)
    assert all(cluster.log_on("t-0", broker).log_start_offset == 201 for broker in cluster.brokers)
    assert clients.host.problems() == {}


def test_deleted_records_are_gone_after_a_restart_of_the_one_broker() -> None:
    """The start of a log lies within a batch, where somebody deletes up to there, and stays there."""
    clients = clients_of()
    me = clients.connect()
    write(clients, me, b"0", b"1")
    write(clients, me, b"2", b"3")
    asked = {"timeout": 1, "topics": ({"name": "t", "partitions": ({"partition_index": 0, "offset": 3},)},)}
    (topic,) = clients.one(me, offer.DELETE_RECORDS, 2, asked)["topics"]
    assert topic["partitions"][0]["low_watermark"] == 3
    assert read(clients, me, 3) == ("NONE", 3, [2])
    inject(clients, 5, "crash", broker=1, for_ms=SECOND)
    clients.wait(2 * SECOND)
    me = clients.connect()
    assert (offset(clients, me, EARLIEST), offset(clients, me, LATEST)) == (3, 4)
    assert read(clients, me, 3) == ("NONE", 3, [2]) and read(clients, me, 2)[0] == "OFFSET_OUT_OF_RANGE"
    assert clients.host.problems() == {}


def test_an_open_transaction_is_known_when_its_records_are_gone() -> None:
    """Its marker is written where the log begins, and what was judged of deleted records stays so."""
    clients = talk({}, log_retention_check_interval_ms=SECOND)
    made(clients, 2, retention_ms="1000", segment_ms="1")
    producer = Producer(clients)
    assert producer.write(0, b"a") == 0 and producer.write(1, b"b") == 0
    clients.wait(30 * SECOND)
    log = clients.host.cluster.log("t-0")
    assert (log.log_start_offset, log.log_end_offset, len(log.batches)) == (1, 1, 0) and log.open
    end = {"transactional_id": "app", "committed": True, **producer.owner}
    assert clients.one(producer.me, offer.END_TXN, 1, end)["error_code"] == 0
    log = clients.host.cluster.log("t-0")
    assert (log.log_end_offset, log.last_stable_offset, log.open) == (2, 2, ())
    assert clients.host.problems() == {}
    clients.wait(30 * SECOND)
    assert len(clients.host.cluster.log("t-1").batches) == 0 and clients.host.problems() == {}
    seen = clients.host.observed
    assert not len(seen.heard) and not len(seen.acknowledged)
    assert not any(len(ledger.ended) for ledger in seen.ledgers.values())


def test_a_violation_stays_when_the_records_are_gone() -> None:
    """A disk has lost what was acknowledged; retention does not make that good."""
    clients = clients_of(retention_ms="1000", segment_ms="1")
    me = clients.connect()
    write(clients, me, b"0")
    inject(clients, 6, "slow_disk", broker=1)
    write(clients, me, b"1")
    inject(clients, 7, "crash", broker=1, for_ms=100)
    clients.wait(200)
    lost = {"AcknowledgedOnce": "offset 1 was acknowledged, but is not in t-0"}
    assert clients.host.problems() == lost
    clients.wait(60 * SECOND)
    me = clients.connect()
    for n in range(3):
        write(clients, me, b"%d" % n)
    assert (offset(clients, me, EARLIEST), offset(clients, me, LATEST)) == (1, 4)
    assert clients.host.problems() == lost


def test_a_batch_is_not_written_again_after_it_was_deleted() -> None:
    """P6 and P11 know by the last sequence and epoch what was in a log before its start."""
    from harness.model import FrozenMap
    from kafka_proto.gateway.observed import Ledger, Observed
    from kafka_proto.gateway.properties import Brokers, problems
    from kafka_proto.log import EMPTY_LOG, RecordBatch, append, beginning

    gone = beginning(None, [RecordBatch(("a",), 7, 1, 0, base_offset=0), RecordBatch(("b",), 7, 1, 1, base_offset=1)],
                     2)
    seen = Observed(ledgers=FrozenMap({"t-0": Ledger(end=2, gone=gone)}))

    def found(epoch: int, sequence: int) -> dict[str, str]:
        log = append(gone, RecordBatch(("c",), 7, epoch, sequence, base_offset=2))
        return problems(seen, Brokers(FrozenMap({"t-0": log})))

    assert found(1, 2) == found(2, 0) == {} and problems(seen, Brokers(FrozenMap({"t-0": EMPTY_LOG}))) == {}
    assert list(found(1, 1)) == ["AcknowledgedOnce"] and "before the log began" in found(1, 1)["AcknowledgedOnce"]
    assert list(found(0, 5)) == ["ProducerStateGrows"]


def test_a_session_with_retention_is_replayed(tmp_path: Path) -> None:
    """Its inputs alone say what was deleted, on which broker, and when."""
    settings = Settings(ports=(0, 0, 0), log_retention_check_interval_ms=SECOND)
    started = Started(settings, Host(settings, {}).cluster.topics, 1_000_000)
    host = ToldHost(settings, started.topics, started.now)
    host.begun(started)
    recording, clients = Recording(host, started), Talk(host)
    take = host.take

    def taken(given: Any) -> list[Any]:
        outputs = take(given)
        recording.see(given, outputs)
        return outputs

    host.take = taken  # type: ignore[method-assign]
    made(clients, 1, retention_ms="2000", segment_bytes="200")
    me = clients.connect()
    for n in range(30):
        write(clients, me, b"%d" % n)
        clients.wait(200)
    inject(clients, 8, "crash", broker=2, for_ms=SECOND)
    clients.wait(3 * SECOND)
    assert offset(clients, me, EARLIEST) > 10
    path = tmp_path / "session.trail.jsonl"
    recording.write(path)
    first, again = (replay_plain(read_trail(path), Recorder(keep=False)) for _ in range(2))
    assert first.digest == again.digest and first.verdict.ok


def test_a_broker_catches_up_with_many_records_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was down while more was written than brokers tell each other record by record."""
    from kafka_proto.cluster import running_actors

    clients = clients_of(3)
    me = clients.connect()
    inject(clients, 1, "crash", broker=3, for_ms=SECOND)
    for n in range(300):
        write(clients, me, b"%d" % n)
    monkeypatch.setattr(running_actors, "MOST_MESSAGES", 100)
    clients.wait(2 * SECOND)
    cluster = clients.host.cluster
    assert cluster.log_on("t-0", "b3") == cluster.log("t-0") and set(cluster.in_sync("t-0")) == {"b1", "b2", "b3"}
    assert clients.host.problems() == {}


def test_the_fixture_takes_how_often_logs_are_looked_at(clock: SetClock) -> None:
    """A session over sockets: a segment is deleted at the next look."""
    from kafka_proto.gateway.client import Client
    from kafka_proto.gateway.cluster import KafkaCluster

    config = {"log.retention.check.interval.ms": "200", "log.cleaner.backoff.ms": "200"}
    with KafkaCluster({"t": 1}, config=config) as cluster:
        host, _, port = cluster.bootstrap_servers.partition(":")
        with Client(host, int(port)) as client:
            client.ask(offer.INCREMENTAL_ALTER_CONFIGS, 1, {"validate_only": False, "resources": (
                {"resource_type": 2, "resource_name": "t", "configs": (
                    {"name": "retention.ms", "value": "1000", "config_operation": 0},)},)})
            now = clock()
            client.ask(offer.PRODUCE, 9, produced((0, write_batch([WireRecord(None, b"x")], base_timestamp=now))))
            asked = {"replica_id": -1, "isolation_level": 0, "topics": ({
                "name": "t", "partitions": ({"partition_index": 0, "timestamp": EARLIEST},)},)}
            found = []
            for _ in range(2):
                clock.pass_ms(900)
                (row,) = client.ask(offer.LIST_OFFSETS, 5, asked)["topics"][0]["partitions"]
                found.append(row["offset"])
            assert found == [0, 1]
    assert cluster.verdict() is None


class UncleanTopic:
    """Three brokers, and a topic `t` whose leaders b3 lags behind when it is elected: batches of two records each."""

    def __init__(self) -> None:
        self.clients = clients_of(3, unclean_leader_election_enable="true", retention_ms="20000", segment_ms="1")
        self.cluster = self.clients.host.cluster
        self.write(3)
        inject(self.clients, 3, "crash", broker=3)
        self.write(7)

    @property
    def leader(self) -> int:
        return self.clients.connect(int(self.cluster.leader("t-0")[1:]))

    def write(self, batches: int) -> list[int]:
        """Write batches, and return their offsets."""
        found = []
        for _ in range(batches):
            row = write(self.clients, self.leader, b"one", b"two")
            assert NAMES[row["error_code"]] == "NONE"
            found.append(int(row["base_offset"]))
            self.clients.wait(10)
        return found

    def lose_all_but_one(self) -> None:
        """Let b1 and b2 crash, and b3 lead, which lacks what was written meanwhile."""
        for broker in (1, 2):
            inject(self.clients, broker, "crash", broker=broker)
        self.end(3)
        assert self.cluster.leader("t-0") == "b3"

    def end(self, *faults: int) -> None:
        for number in faults:
            self.clients.give(Ended(number, self.clients.now))
        self.clients.wait(SECOND)

    def logs(self) -> list[tuple[int, int, int, list[int]]]:
        """Return start, high watermark, end and batches of each replica's log."""
        found = (self.cluster.log_on("t-0", broker) for broker in self.cluster.brokers)
        return [(log.log_start_offset, log.high_watermark, log.log_end_offset,
                 [batch.base_offset for batch in log.batches]) for log in found]


@pytest.mark.parametrize("how", ["on request", "by time"])
@pytest.mark.parametrize("later", [0, 2])
def test_a_log_that_is_cut_below_its_start_begins_anew_there(how: str, later: int) -> None:
    """An unclean leader ends before others begin: these are empty from its end on (`UnifiedLog.truncateTo`).

    As on three brokers of a real 4.4.0.
    """
    topic = UncleanTopic()
    topic.clients.wait(15 * SECOND)
    topic.write(5)
    if how == "by time":
        topic.clients.wait(7 * SECOND)
    else:
        topic.clients.one(topic.leader, offer.DELETE_RECORDS, 2, {"timeout": 1, "topics": (
            {"name": "t", "partitions": ({"partition_index": 0, "offset": 20},)},)})
    assert [log[0] for log in topic.logs()] == [20, 20, 0]
    topic.lose_all_but_one()
    written = topic.write(later)
    assert written == [6, 8][:later]
    topic.end(1, 2)
    end = 6 + 2 * later
    assert topic.logs() == [(6, end, end, written)] * 3
    for number in range(3):
        inject(topic.clients, 10 + number, "elect", partition="t-0")
        assert read(topic.clients, topic.leader, end)[:2] == ("NONE", 6)
        assert read(topic.clients, topic.leader, 5)[0] == "OFFSET_OUT_OF_RANGE"
        written += topic.write(1)
        topic.clients.wait(SECOND)
        end += 2
        assert written[-1] == end - 2 and topic.logs() == [(6, end, end, written)] * 3
    assert topic.clients.host.problems() == {
        "AcknowledgedOnce": "offset 20 was acknowledged, but is not in t-0"}


def test_a_log_that_is_cut_above_its_start_keeps_what_is_before() -> None:
    """The others' start lies within what the unclean leader has: they keep that, and it deletes up to there."""
    topic = UncleanTopic()
    topic.clients.one(topic.leader, offer.DELETE_RECORDS, 2, {"timeout": 1, "topics": (
        {"name": "t", "partitions": ({"partition_index": 0, "offset": 4},)},)})
    topic.lose_all_but_one()
    assert topic.write(1) == [6]
    topic.end(1, 2)
    assert topic.logs() == [(4, 8, 8, [4, 6])] * 3
