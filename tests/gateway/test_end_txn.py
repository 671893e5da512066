"""EndTxn from version 5 on over the wire: what each state answers, as the table of Kafka's `TransactionCoordinator`."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, count

import pytest

pytest.importorskip("kio", reason="needs the extra `gateway`")

from support.gateway.scripted_client import Scripted

from kafka_proto.errors import NAMES
from kafka_proto.gateway import offer
from kafka_proto.gateway.cluster import KafkaCluster

BUMPED = "NONE, and the next epoch"
FENCED, INVALID, CONCURRENT = "PRODUCER_FENCED", "INVALID_TXN_STATE", "CONCURRENT_TRANSACTIONS"
ANSWERS = {
    ("Empty", "abort"): (FENCED, BUMPED), ("Empty", "commit"): (FENCED, INVALID),
    ("Ongoing", "abort"): (FENCED, BUMPED), ("Ongoing", "commit"): (FENCED, BUMPED),
    ("PrepareAbort", "abort"): (CONCURRENT, CONCURRENT), ("PrepareAbort", "commit"): (CONCURRENT, CONCURRENT),
    ("PrepareCommit", "abort"): (CONCURRENT, CONCURRENT), ("PrepareCommit", "commit"): (CONCURRENT, CONCURRENT),
    ("CompleteAbort", "abort"): ("NONE", BUMPED), ("CompleteAbort", "commit"): (INVALID, INVALID),
    ("CompleteCommit", "abort"): (INVALID, BUMPED), ("CompleteCommit", "commit"): ("NONE", INVALID),
}
"""By state and what is asked for: the answer to the epoch before the coordinator's, as in a retry, and to its own.

In Prepare* the transition to Complete* is pending, which is looked at before anything else.
"""
TIDS = (f"app{n}" for n in count())


@pytest.fixture(scope="module")
def cluster() -> Iterator[KafkaCluster]:
    with KafkaCluster({"t": 3}, brokers=3) as running:
        yield running


def error(producer: Scripted, committed: bool, epoch: int) -> str:
    """Ask for an end with an epoch, and return the name of the error; BUMPED for success with the epoch above."""
    got = producer.ask(producer.coordinator, offer.END_TXN, 5, {
        "transactional_id": producer.tid, "committed": committed, "producer_id": producer.owner["producer_id"],
        "producer_epoch": epoch})
    name = NAMES[got["error_code"]]
    return BUMPED if name == "NONE" and got["producer_epoch"] == producer.owner["producer_epoch"] + 1 else name


@pytest.mark.parametrize(("state", "asked"), ANSWERS)
@pytest.mark.parametrize("is_retry", [True, False], ids=["retry", "current"])
def test_each_state_answers_as_kafkas_table_says(cluster: KafkaCluster, state: str, asked: str, is_retry: bool) -> None:
    """Prepared ones are seen while no broker hears another: then their markers wait."""
    with Scripted(cluster.bootstrap_servers, next(TIDS)) as producer:
        assert [producer.init(), producer.init()] == [0, 0], "epoch 1, so that there is one before"
        if state != "Empty":
            assert [producer.produce(partition, b"a", 12) for partition in range(3)] == [0, 0, 0]
        cuts = [cluster.partition(*pair) for pair in combinations(("b1", "b2", "b3"), 2)] if "Prep" in state else []
        if state not in ("Empty", "Ongoing"):
            assert producer.end(state.endswith("Commit"), 5) == 0
        assert producer.state() == state
        found = error(producer, asked == "commit", producer.owner["producer_epoch"] - is_retry)
        for cut in cuts:
            cut.end()
        assert found == ANSWERS[state, asked][0 if is_retry else 1]


@pytest.mark.parametrize(("release", "commit", "abort"), [("4.4.0", INVALID, BUMPED), ("4.0.0", FENCED, FENCED)])
def test_after_a_time_out_a_commit_passes_for_a_retry_on_4_4(release: str, commit: str, abort: str) -> None:
    """KAFKA-20785, as recorded on both: 4.4.0 has bumped the epoch once, 4.0.0 twice."""
    with KafkaCluster({"t": 1}, release=release) as cluster, Scripted(cluster.bootstrap_servers) as producer:
        assert (producer.init(200), producer.produce(0, b"a", 12)) == (0, 0)
        producer.until("CompleteAbort")
        epoch = producer.owner["producer_epoch"]
        assert [error(producer, True, epoch), error(producer, False, epoch)] == [commit, abort]
