"""Sessions judged by what their clients saw: anomalies with their proofs, and nothing where nothing is wrong."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import attrs
import pytest

pytest.importorskip("kio", reason="needs the extra `gateway`")

from support.commands.command_line import call, wait_until
from support.gateway.drawn_sessions import DrawnSession
from support.gateway.recorded import Recorded, late_after_abort
from support.gateway.tidy_sessions import TidySession
from support.gateway.wire import Producer, fetched, initializing, inject, owner_in, produced
from support.paths import ROOT

from harness.model import FrozenMap
from harness.record import Event, Recorder, Trail, header_of, read_trail, write_history
from harness.simulate.trails.replay import replay_plain, replayed_history
from harness.verify.isolation.anomalies import Breach
from harness.verify.isolation.clients import judged
from kafka_proto.gateway import offer
from kafka_proto.gateway import properties as session_properties
from kafka_proto.gateway.client import Client
from kafka_proto.gateway.cluster import KafkaCluster
from kafka_proto.gateway.inputs import Arrived, Ended, Injected
from kafka_proto.gateway.records import WireRecord, write_batch
from kafka_proto.log import PartitionLog
from kafka_proto.log.chunks import chunks

LATE = ROOT / "docs" / "examples" / "gateway" / "late-end.trail.jsonl"
LOSSY = ("delay", "drop", "lose", "duplicate", "crash", "crash", "pause", "partition", "elect", "slow_disk",
         "slow_disk")
FAULTS = ("delay", "drop", "lose", "duplicate", "crash", "pause", "partition", "elect", "shut_down")


def found(trail: Trail) -> tuple[Breach, ...]:
    """Return what the clients of a session saw."""
    model, history = replayed_history(trail)
    return judged(model, history.events)


def names(trail: Trail) -> set[str]:
    return {one.anomaly for one in found(trail)}


class Writer:
    """An idempotent producer, which writes to `t-0`."""

    def __init__(self, clients: Recorded) -> None:
        self.clients = clients
        self.owner = owner_in(clients.one(clients.connect(), offer.INIT_PRODUCER_ID, 4, initializing(None)))
        self.sequence = 0

    def write(self, acks: int = -1) -> None:
        data = write_batch([WireRecord(None, b"v")], base_timestamp=5, base_sequence=self.sequence, **self.owner)
        self.sequence += 1
        leader = int(self.clients.host.cluster.leader("t-0")[1:])
        answer = self.clients.one(self.clients.connect(leader), offer.PRODUCE, 9, produced((0, data), acks=acks))
        assert answer["responses"][0]["partition_responses"][0]["error_code"] == 0


def crashed(clients: Recorded, number: int) -> None:
    """Let the only broker crash, and start again."""
    inject(clients, number, "crash", broker=1)
    clients.give(Ended(number, clients.now))


def test_an_aborted_record_is_read_after_a_late_end(tmp_path: Path) -> None:
    """KAFKA-17754: the command says what its clients saw, with the steps of the session, as text and as JSON."""
    said = call("verify", LATE)
    assert said.code == 1
    assert [line.strip() for line in said.out.splitlines() if "operation" in line or "G1a" in line] == [
        "G1a (NoAbortedRead)",
        "operation 21 (txn by app#3) sends 0.0#1 to log t-0 and fails",
        "operation 24 (poll by final reader of committed records) reads 0.0#1 at offset 2 of log t-0"]
    trail, history, recorder = read_trail(LATE), tmp_path / "late.history.jsonl", Recorder()
    run = replay_plain(trail, recorder)
    write_history(history, header_of(trail, trail.build(), "plain"), recorder, run.verdict.to_json())
    for path in (LATE, history):
        (one,) = json.loads(call("verify", path, "--json").out)["files"]
        assert [(row["anomaly"], [step["operation"] for step in row["proof"]]) for row in one["isolation"]] == [
            ("G1a", [21, 24])]
        assert set(one["findings"]) == {"property", "isolation"}


@pytest.mark.parametrize(("release", "level", "expected"), [("3.5.2", 0, {"G1a"}), ("3.9.2", 1, set())])
def test_a_late_batch_of_an_aborted_transaction_is_committed_by_the_next(
    release: str, level: int, expected: set[str]
) -> None:
    """TX-02: 3.5.2 takes it into the next transaction; 3.9.2 refuses it."""
    clients, producer = late_after_abort(release, level)
    clients.one(producer.me, offer.ADD_PARTITIONS_TO_TXN, 0, {
        f"v3_and_below_{name}": value for name, value in {
            "transactional_id": "app", **producer.owner, "topics": ({"name": "t", "partitions": (0,)},)}.items()})
    producer.end(True)
    trail = clients.recording.trail()
    assert names(trail) == expected
    assert bool(clients.host.problems()) == bool(expected)


@pytest.mark.parametrize(("acks", "slow", "expected"), [(-1, True, {"unseen"}), (-1, False, set()), (1, True, set())])
def test_an_acknowledged_record_is_lost_with_the_disk(acks: int, slow: bool, expected: set[str]) -> None:
    """Of one broker whose disk writes nothing. With acks of 1 nobody has promised more."""
    clients = Recorded()
    writer = Writer(clients)
    writer.write()
    if slow:
        inject(clients, 1, "slow_disk", broker=1)
    writer.write(acks)
    crashed(clients, 2)
    trail = clients.recording.trail()
    assert names(trail) == expected
    for one in found(trail):
        assert one.property == "AckDurability" and "was acknowledged at offset 1 of log t-0" in one.reason


def test_another_record_where_an_acknowledged_one_was_is_seen() -> None:
    """The log is as long as before, and has a batch with another number there: clients and P6 see it alike."""
    clients = Recorded()
    writer, other = Writer(clients), Writer(clients)
    writer.write()
    inject(clients, 1, "slow_disk", broker=1)
    writer.write()
    crashed(clients, 2)
    other.write()
    assert list(clients.host.problems()) == ["AcknowledgedOnce"]
    assert names(clients.recording.trail()) == {"inconsistent-offsets", "lost-write"}


def doubled(log: PartitionLog) -> PartitionLog:
    """Return a log with its first batch once more at its end."""
    again = attrs.evolve(log.batches[0], base_offset=log.log_end_offset)
    end = again.last_offset + 1
    return attrs.evolve(log, batches=chunks((*log.batches, again)), log_end_offset=end, high_watermark=end)


def without_first(log: PartitionLog) -> PartitionLog:
    """Return a log whose first batch is one of nobody."""
    first = attrs.evolve(log.batches[0], producer_id=-1)
    return attrs.evolve(log, batches=chunks((first, *log.batches.between(1, len(log.batches)))))


@pytest.mark.parametrize(("edit", "expected"), [
    (lambda log: log, set()), (doubled, {"duplicate"}), (without_first, {"lost-write"}),
], ids=("as it was", "a batch twice", "a batch gone"))
def test_what_the_last_state_has_is_read(edit: Any, expected: set[str]) -> None:
    """A history whose last state says so of `t-0`."""
    clients = Recorded()
    writer = Writer(clients)
    for _ in range(3):
        writer.write()
    model, history = replayed_history(clients.recording.trail())
    events: list[Event] = [*history.events]
    at = max(n for n, event in enumerate(events) if "brokers" in event.writes)
    brokers: Any = events[at].writes["brokers"]
    changed = attrs.evolve(brokers, logs=FrozenMap({**brokers.logs, "t-0": edit(brokers.logs["t-0"])}))
    events[at] = attrs.evolve(events[at], writes={**events[at].writes, "brokers": changed})
    assert {one.anomaly for one in judged(model, events)} == expected


def test_a_history_without_an_input_has_records_that_nobody_sent() -> None:
    """Where the host cannot take an input, nothing is said of what follows."""
    clients = Recorded()
    Writer(clients).write()
    model, history = replayed_history(clients.recording.trail())
    events = [*history.events]
    wrote = next(n for n, event in enumerate(events) if event.detail.startswith("Produce"))
    assert judged(model, events) == ()
    none = attrs.evolve(events[wrote], input=Arrived(99, b"", clients.now))
    assert {one.anomaly for one in judged(model, [*events[:wrote], none])} == {"garbage-read"}
    broken = attrs.evolve(events[wrote], input=Injected(1, "crash", clients.now, broker=9))
    assert {one.anomaly for one in judged(model, [*events[:wrote], broken])} == set()


def test_records_that_are_deleted_by_right_are_missed_by_nobody(tmp_path: Path) -> None:
    """DeleteRecords, and a topic that is deleted and made again; the verdict names what is left out for that."""

    def left_out() -> dict[str, str]:
        path = tmp_path / "session.trail.jsonl"
        clients.recording.write(path)
        judged, = call("verify", path, "--json").json["files"]
        for partition, why in judged["left_out"].items():
            assert f"{partition} is not judged by what clients saw: {why}" in call("verify", path).out
        return dict(judged["left_out"])

    clients = Recorded()
    writer = Writer(clients)
    writer.write()
    writer.write()
    me = clients.connect()
    clients.one(me, offer.DELETE_RECORDS, 2, {"timeout": 1, "topics": (
        {"name": "t", "partitions": ({"partition_index": 0, "offset": 1},)},)})
    assert names(clients.recording.trail()) == set()
    assert left_out() == {"t-0": "records were deleted or compacted"}
    clients.one(me, offer.DELETE_TOPICS, 1, {"topic_names": ("t",), "timeout": 1})
    clients.one(me, offer.CREATE_TOPICS, 2, {"timeout": 1, "topics": (
        {"name": "t", "num_partitions": 2, "replication_factor": 1, "configs": (), "assignments": ()},)})
    Writer(clients).write()
    assert names(clients.recording.trail()) == set()
    assert left_out() == dict.fromkeys(("t-0", "t-1"), "its topic was deleted")


def test_what_an_operator_ends_is_no_torn_transaction() -> None:
    """A marker that no transaction caused."""
    clients = Recorded(release="3.5.2", transaction_version=0)
    producer = Producer(clients)
    producer.write(0, b"a")
    producer.write(1, b"b")
    clients.one(clients.connect(), offer.WRITE_TXN_MARKERS, 1, {"markers": ({
        **producer.owner, "transaction_result": False, "coordinator_epoch": 0,
        "topics": ({"name": "t", "partition_indexes": (0,)},)},)})
    producer.end(True)
    assert names(clients.recording.trail()) == set()


def test_a_reader_within_a_batch_gets_the_rest_of_it() -> None:
    """It asks for offset 1 of a batch of three, in a session that names what changed; nothing is read before that."""
    clients = Recorded()
    data = write_batch([WireRecord(None, b"v")] * 3, base_timestamp=5, base_sequence=0, producer_id=7, producer_epoch=0)
    me = clients.connect()
    clients.one(me, offer.PRODUCE, 9, produced((0, data)))
    begun = clients.one(me, offer.FETCH, 12, {**fetched(1), "session_epoch": 0})
    assert begun["session_id"] > 0
    clients.one(me, offer.PRODUCE, 9, produced((0, write_batch(
        [WireRecord(None, b"v")], base_timestamp=5, base_sequence=3, producer_id=7, producer_epoch=0))))
    later = clients.one(me, offer.FETCH, 12, {
        **fetched(3), "session_id": begun["session_id"], "session_epoch": 1})
    assert len(later["responses"]) == 1
    assert names(clients.recording.trail()) == set()


def test_a_paused_broker_is_no_leader_where_nobody_leads() -> None:
    """The last replica in sync is down, and one that was paused before still takes itself for the leader."""
    clients = Recorded(ports=(1, 2, 3))
    writer = Writer(clients)
    first = int(clients.host.cluster.leader("t-0")[1:])
    writer.write()
    inject(clients, 1, "pause", broker=first)
    clients.wait(60_000)
    writer.write()
    for number, broker in enumerate(sorted({1, 2, 3} - {first}), 2):
        inject(clients, number, "shut_down", broker=broker)
    assert clients.host.led["t-0"].leader == ""
    assert clients.host.problems() == {}
    assert names(clients.recording.trail()) == set()


def is_up(host: str, port: int) -> bool:
    """Say whether a broker answers."""
    try:
        with Client(host, port) as client:
            return bool(client.ask(offer.METADATA, 9, {"topics": None}))
    except OSError:
        return False


@pytest.mark.parametrize(("slow", "alone"), [(True, False), (True, True), (False, False)])
def test_a_cluster_is_judged_by_its_clients_too(
    slow: bool, alone: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A record takes the place of one that was acknowledged: the verdict, what the test prints, and the trail.

    P6 sees it in the log; without P6, clients see it alone.
    """
    if alone:
        silent = {"AcknowledgedOnce": ("P6", lambda seen, brokers: None)}
        monkeypatch.setattr(session_properties, "CHECKS", {**session_properties.CHECKS, **silent})
    path = tmp_path / "s.trail.jsonl"
    with KafkaCluster({"t": 1}) as cluster:
        host, port = cluster.bootstrap_servers.split(":")

        def ask(api: int, version: int, message: dict[str, Any]) -> dict[str, Any]:
            with Client(host, int(port)) as client:
                return client.ask(api, version, message)

        def write(owner: dict[str, int], sequence: int) -> None:
            data = write_batch([WireRecord(None, b"v")], base_timestamp=5, base_sequence=sequence, **owner)
            (topic,) = ask(offer.PRODUCE, 9, produced((0, data)))["responses"]
            assert topic["partition_responses"][0]["error_code"] == 0

        one, other = (owner_in(ask(offer.INIT_PRODUCER_ID, 4, initializing(None))) for _ in range(2))
        write(one, 0)
        disk = cluster.slow_disk("b1") if slow else None
        write(one, 1)
        cluster.crash("b1").end()
        wait_until(lambda: is_up(host, int(port)))
        if disk is not None:
            disk.end()
        write(other, 0)
        found = cluster.problems()
        verdict = cluster.verdict()
        if slow:
            lost = "the batch with sequence 1 of producer id 0, epoch 0, was acknowledged at offset 1, but is not in"
            assert found == ({} if alone else {"AcknowledgedOnce": f"{lost} t-0"})
            assert verdict is not None
            assert ("StableReads is violated: offset 1 of log t-0" if alone else lost) in verdict
            command = f"verify {path}" if alone else f"demo {path.with_name('s.short.trail.jsonl')}"
            assert cluster.report(path).endswith(f"kafka-proto {command}")
            if not alone:
                judged = call("verify", path)
                assert judged.code == 1 and "offset 1 of log t-0" in judged.out
        else:
            assert found == {} and verdict is None
            cluster.write_trail(path)
            assert call("verify", path).code == 0


def judged_session(session: Any) -> tuple[set[str], dict[str, str]]:
    return names(session.recording.trail()), session.host.problems()


@pytest.mark.parametrize(("release", "level"), [("4.4.0", 2), ("4.0.0", 2), ("3.9.2", 0), ("3.5.2", 0)])
@pytest.mark.parametrize("seeds", [range(2), pytest.param(range(100, 200), marks=pytest.mark.large)],
                         ids=("some", "a hundred"))
def test_tidy_clients_under_faults_see_nothing(release: str, level: int, seeds: range) -> None:
    """Late, lost and doubled requests, crashes, cuts and elections: no anomaly but where a property is violated, too.
    """
    for seed in seeds:
        anomalies, problems = judged_session(TidySession(seed, 60, release, level, FAULTS))
        assert not anomalies or problems, f"seed {seed}: {anomalies}"
        assert level < 2 or not anomalies, f"seed {seed}: {anomalies}"


def test_tidy_clients_see_what_slow_disks_lose() -> None:
    """One replica in sync is enough, and a disk writes nothing: in a quarter of sessions somebody misses something."""
    seen: Counter[str] = Counter()
    for seed in (1, 2, 19):
        anomalies, _ = judged_session(TidySession(seed, 100, "4.2.0", 2, LOSSY))
        seen.update(anomalies)
    assert seen["inconsistent-offsets"] == 3


@pytest.mark.parametrize(("seeds", "inputs"), [
    (range(3), 200), pytest.param(range(50, 90), 400, marks=pytest.mark.large)], ids=("some", "forty that are longer"))
def test_drawn_sessions_show_no_anomaly_where_no_property_is_violated(seeds: range, inputs: int) -> None:
    """Clients that use sequences twice are left out; the others see what was promised."""
    for seed in seeds:
        anomalies, problems = judged_session(DrawnSession(seed, inputs))
        assert not anomalies or problems, f"seed {seed}: {anomalies}"
