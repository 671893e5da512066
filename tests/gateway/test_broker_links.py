"""Brokers that do not hear each other, though clients reach both: what waits, what is refused, how it ends."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("kio", reason="needs the extra `gateway`")

from support.gateway.scripted_client import Scripted
from support.gateway.set_clock import SetClock

from harness.record import Recorder, read_trail
from harness.simulate.trails.replay import replay_plain
from kafka_proto.errors import BY_NAME, NAMES
from kafka_proto.gateway import offer
from kafka_proto.gateway.cluster import KafkaCluster

NOT_ENOUGH_REPLICAS, COORDINATOR_LOAD_IN_PROGRESS, CONCURRENT_TRANSACTIONS = (
    BY_NAME[name].number for name in ("NOT_ENOUGH_REPLICAS", "COORDINATOR_LOAD_IN_PROGRESS", "CONCURRENT_TRANSACTIONS"))


@contextmanager
def started(tid: str = "app", **settings: Any) -> Iterator[tuple[KafkaCluster, Scripted, int, int]]:
    """Yield brokers, a producer, and partitions that its coordinator leads and does not lead."""
    with KafkaCluster({"t": 3}, brokers=3, **settings) as cluster, Scripted(cluster.bootstrap_servers, tid) as producer:
        assert producer.init() == 0
        here = producer.leaders.index(producer.coordinator)
        yield cluster, producer, here, (here + 1) % 3


def link(producer: Scripted, partition: int) -> tuple[str, str]:
    """Return the coordinator and the leader of a partition, as verbs call them."""
    return f"b{producer.coordinator}", f"b{producer.leaders[partition]}"


def test_markers_wait_while_the_coordinator_does_not_reach_the_leader(tmp_path: Path) -> None:
    """The transaction is committed, one partition shows it, the other once the link is back; and so it replays."""
    with started() as (cluster, producer, here, there):
        assert [producer.write(here, b"a"), producer.write(there, b"b")] == [0, 0]
        cut = cluster.partition(*link(producer, there))
        assert producer.end(True) == 0
        assert (producer.state(), producer.read(here), producer.read(there)) == ("PrepareCommit", [b"a"], [])
        assert producer.add(here) == CONCURRENT_TRANSACTIONS
        assert cluster.problems() == {}, "what waits is no violation"
        cut.end()
        assert (producer.state(), producer.read(there)) == ("CompleteCommit", [b"b"])
        assert (producer.write(there, b"c"), producer.end(False), producer.read(there)) == (0, 0, [b"b"])
    assert cluster.verdict() is None
    path = tmp_path / "cut.trail.jsonl"
    cluster.write_trail(path)
    trail = read_trail(path)
    assert [chosen.label.partition(" ")[2] for chosen in trail.choices if "partition" in chosen.label] == [
        " ".join(("partition", *link(producer, there)))]
    first, again = (replay_plain(trail, Recorder(keep=False)) for _ in range(2))
    assert first.verdict.ok and first.digest == again.digest


@pytest.mark.parametrize("version", [9, 12])
def test_a_leader_that_cannot_ask_the_coordinator_refuses_for_now(version: int) -> None:
    """Both kinds of asking, to verify and to add, say NOT_ENOUGH_REPLICAS, which clients retry; then it is taken."""
    with started() as (cluster, producer, here, there):
        if version < 12:
            assert [producer.add(here), producer.add(there)] == [0, 0]
        cut = cluster.partition(*link(producer, there), for_ms=60_000)
        assert producer.produce(there, b"b", version) == NOT_ENOUGH_REPLICAS
        assert producer.produce(here, b"a", version) == 0
        cut.end()
        assert producer.produce(there, b"b", version) == 0
        assert producer.end(True, 1 if version < 12 else 5) == 0
        assert (producer.read(here), producer.read(there)) == ([b"a"], [b"b"])
    assert cluster.verdict() is None


def test_a_release_that_does_not_ask_takes_the_batch() -> None:
    """3.5.2 has no verification, so a cut link is no matter to it until the markers."""
    with started(release="3.5.2") as (cluster, producer, _, there):
        assert producer.add(there) == 0
        cluster.partition(*link(producer, there))
        assert producer.produce(there, b"b") == 0
        assert (producer.end(True), producer.state(), producer.read(there)) == (0, "PrepareCommit", [])
    assert cluster.verdict() is None


def test_offsets_of_a_group_wait_for_their_marker_and_are_verified() -> None:
    """TxnOffsetCommit is refused while the group's coordinator does not reach that of the transaction."""
    with started("app-2") as (cluster, producer, *_):
        names = [f"g{n}" for n in range(9)]
        group, at = next((name, broker) for name in names if (broker := producer.ask(
            1, offer.FIND_COORDINATOR, 3, {"key": name, "key_type": 0})["node_id"]) != producer.coordinator)

        def commit() -> int:
            got = producer.ask(at, offer.TXN_OFFSET_COMMIT, 3, {
                "transactional_id": producer.tid, "group_id": group, **producer.owner,
                "generation_id_or_member_epoch": -1, "generation_id": -1, "member_id": "", "topics": (
                    {"name": "t", "partitions": ({"partition_index": 0, "committed_offset": 7},)},)})
            return int(got["topics"][0]["partitions"][0]["error_code"])

        def committed() -> int:
            got = producer.ask(at, offer.OFFSET_FETCH, 5, {"group_id": group, "topics": (
                {"name": "t", "partition_indexes": (0,)},)})
            return int(got["topics"][0]["partitions"][0]["committed_offset"])

        added = producer.ask(producer.coordinator, offer.ADD_OFFSETS_TO_TXN, 3, {
            "transactional_id": producer.tid, **producer.owner, "group_id": group})
        assert added["error_code"] == 0
        cut = cluster.partition(f"b{at}", f"b{producer.coordinator}")
        assert commit() == COORDINATOR_LOAD_IN_PROGRESS
        cut.end()
        assert commit() == 0
        again = cluster.partition(f"b{producer.coordinator}", f"b{at}")
        assert (producer.end(True), producer.state(), committed()) == (0, "PrepareCommit", -1)
        again.end()
        assert (producer.state(), committed()) == ("CompleteCommit", 7)
    assert cluster.verdict() is None


def test_a_transaction_that_times_out_is_ended_as_far_as_its_coordinator_reaches(clock: SetClock) -> None:
    """An abort by the clock waits at the cut link; an election of the leader to a broker that is reached ends it."""
    with started() as (cluster, producer, here, there):
        assert producer.init(300) == 0
        assert [producer.write(here, b"a"), producer.write(there, b"b")] == [0, 0]
        cluster.partition(*link(producer, there))
        assert producer.state() == "Ongoing"
        clock.pass_ms(301)
        producer.until("PrepareAbort", clock)
        described = {"topics": ({"name": "t", "partition_indexes": (there,)},)}
        open_from = [broker["active_producers"][0]["current_txn_start_offset"] for broker in producer.ask(
            producer.leaders[there], offer.DESCRIBE_PRODUCERS, 0, described)["topics"][0]["partitions"]]
        assert (producer.read(here), open_from) == ([], [0])
        cluster.elect(f"t-{there}")
        producer.until("CompleteAbort", clock)
    assert cluster.verdict() is None


def test_two_links_are_two_faults_and_brokers_are_named(clock: SetClock) -> None:
    """A link that two faults cut is back when both are over; a broker is not cut off from itself."""
    with started(replication_factor=1) as (cluster, producer, _, there):
        assert producer.write(there, b"b") == 0
        first = cluster.partition(*link(producer, there))
        second = cluster.partition(*reversed(link(producer, there)), for_ms=400)
        assert (producer.end(True), producer.state()) == (0, "PrepareCommit")
        first.end()
        assert producer.state() == "PrepareCommit"
        clock.pass_ms(400)
        producer.until("CompleteCommit")
        second.end()
        assert producer.read(there) == [b"b"]
        with pytest.raises(ValueError, match="b1 cannot be cut off from itself"):
            cluster.partition("b1", "b1")
        with pytest.raises(ValueError, match="there is no broker 'b9'; there are b1, b2, b3"):
            cluster.partition("b1", "b9")


@pytest.mark.parametrize(("state", "committed", "is_retry", "error"), [
    ("Empty", True, True, "PRODUCER_FENCED"), ("CompleteCommit", False, True, "INVALID_TXN_STATE"),
    ("PrepareCommit", False, False, "CONCURRENT_TRANSACTIONS"),
])
def test_ends_that_are_not_recorded_are_answered_as_kafkas_table_says(
    state: str, committed: bool, is_retry: bool, error: str
) -> None:
    """EndTxn 5 with the coordinator's epoch or the one before; the other 21 cases are among the recorded situations."""
    with started() as (cluster, producer, _, there):
        assert producer.init() == 0, "epoch 1, so that there is one before"
        if state != "Empty":
            assert producer.produce(there, b"a", 12) == 0
            if state == "PrepareCommit":
                cluster.partition(*link(producer, there))
            assert producer.end(True, 5) == 0
        assert producer.state() == state
        producer.owner["producer_epoch"] -= is_retry
        assert NAMES[producer.end(committed, 5)] == error
