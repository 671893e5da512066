"""A topic is deleted while a transaction has partitions of it: the transaction completes, and P8 goes on looking."""

from __future__ import annotations

import attrs
import pytest

pytest.importorskip("kio", reason="needs the extra `gateway`")

from support.gateway.scripted_client import Scripted
from support.gateway.wire import Producer, Talk, inject, talk

from kafka_proto.broker.coordinator.transaction import TxnState
from kafka_proto.gateway import offer
from kafka_proto.gateway.cluster import KafkaCluster
from kafka_proto.gateway.properties import Brokers, problems
from kafka_proto.log import NO_PRODUCER_ID

DELETED = {"topic_names": ("t",), "timeout": 1_000}


def begun() -> tuple[Talk, Producer]:
    """Return a producer with an open transaction in both partitions of a topic."""
    clients = talk()
    producer = Producer(clients)
    assert [producer.write(0, b"a"), producer.write(1, b"b")] == [0, 0]
    return clients, producer


def ended_and_held() -> tuple[Talk, Brokers]:
    """Return clients of brokers whose transaction was ended while markers are held, and those, which are in order."""
    clients, producer = begun()
    clients.host.cluster.holds_markers = True
    producer.end(True)
    brokers = clients.host.brokers
    assert problems(clients.host.observed, brokers) == {}
    return clients, brokers


def test_a_transaction_completes_after_its_topic_was_deleted() -> None:
    """By the next coordinator, too: nobody is left to write a marker to, and the transactional id is free again."""
    clients, producer = begun()
    assert clients.one(producer.me, offer.DELETE_TOPICS, 4, DELETED)["responses"][0]["error_code"] == 0
    inject(clients, 1, "elect")
    assert producer.end(False)[producer.me][0]["error_code"] == 0
    asked = {"transactional_ids": ("app",)}
    (found,) = clients.one(producer.me, offer.DESCRIBE_TRANSACTIONS, 0, asked)["transaction_states"]
    assert found["transaction_state"] == "CompleteAbort"
    assert Producer(clients).owner["producer_epoch"] == 1
    assert clients.host.problems() == {}


def test_markers_that_wait_for_a_link_go_on_without_a_deleted_topic() -> None:
    """The partition that is not reached is deleted meanwhile: the transaction completes before the link is back."""
    with KafkaCluster({"t": 3}, brokers=3) as cluster, Scripted(cluster.bootstrap_servers) as producer:
        assert producer.init() == 0
        there = (producer.leaders.index(producer.coordinator) + 1) % 3
        assert producer.write(there, b"a") == 0
        cluster.partition(f"b{producer.coordinator}", f"b{producer.leaders[there]}")
        assert (producer.end(True), producer.state()) == (0, "PrepareCommit")
        producer.ask(1, offer.DELETE_TOPICS, 4, DELETED)
        assert producer.state() == "CompleteCommit"
        assert producer.init() == 0
    assert cluster.verdict() is None


@pytest.mark.parametrize("lost", [False, True])
def test_p8_accuses_one_transaction_while_markers_of_another_are_held(lost: bool) -> None:
    """A transaction is prepared and its markers are nowhere; in the twin they are held, as those of the other one."""
    clients, brokers = ended_and_held()
    assert brokers.waiting == {"app"}
    other = attrs.evolve(brokers.entries["app"], producer_id=NO_PRODUCER_ID, state=TxnState.PREPARE_ABORT)
    brokers = attrs.evolve(brokers, entries=brokers.entries.set("other", other))
    if not lost:
        brokers = attrs.evolve(brokers, waiting=brokers.waiting | {"other"})
    found = problems(clients.host.observed, brokers)
    said = "other stays in PrepareAbort with producer id -1, epoch 0: no marker is acknowledged of t-0, t-1"
    assert found == ({"PreparedIsCompleted": said} if lost else {})


def test_p8_accuses_what_is_on_its_way_to_nobody() -> None:
    """Nothing holds the markers, and yet they did not arrive; before they were held, that was no violation."""
    clients, held = ended_and_held()
    stuck = attrs.evolve(held, waiting=frozenset())
    assert problems(clients.host.observed, stuck) == {
        "PreparedIsCompleted": "app stays in PrepareCommit with producer id 0, epoch 0: no marker is acknowledged of "
                               "t-0, t-1"}
