"""Brokers that run: what becomes of messages that wait when what they are about is gone."""

from __future__ import annotations

from kafka_proto.broker.versions import KIP_890_4_4
from kafka_proto.cluster.failures import Replication
from kafka_proto.cluster.running import RunningCluster


def test_what_waits_about_a_deleted_topic_goes_with_it() -> None:
    """A paused broker that goes on hears nothing of a partition's old leader, be the topic gone or made anew."""
    for made_anew in (False, True):
        cluster = RunningCluster(KIP_890_4_4, ("t-0",), 3, replication=Replication(3, 1))
        cluster.create_topic("u", 1)
        before = cluster.leader("u-0")
        paused = next(b for b in cluster.brokers if b != before)
        cluster.pause([paused])
        cluster.elect("u-0")
        assert any(getattr(message, "partition", None) == "u-0" for message in cluster.held)
        cluster.delete_topic("u")
        if made_anew:
            cluster.create_topic("u", 1)
        cluster.pause([])
        assert not cluster.held
        if made_anew:
            assert sorted(cluster.in_sync("u-0")) == list(cluster.brokers)


def test_topic_that_is_made_while_a_broker_is_down_is_led_by_another() -> None:
    """It joins the ISR, and leads what it would have led at first, when it is back (KRaft places fenced brokers so)."""
    cluster = RunningCluster(KIP_890_4_4, ("t-0",), 3, replication=Replication(3, 1))
    cluster.crash("b2")
    before = cluster.leader("t-0")
    cluster.create_topic("u", 3)
    made = ("u-0", "u-1", "u-2")
    assert {cluster.leader(p) for p in made} <= {"b1", "b3"} and all(cluster.in_sync(p) for p in made)
    assert not any("b2" in cluster.in_sync(p) for p in made)
    assert cluster.leader("t-0") == before and all("b2" in cluster.replicas(p) for p in made)
    cluster.start("b2")
    assert all(sorted(cluster.in_sync(p)) == list(cluster.brokers) for p in made)
    assert "b2" in {cluster.leader(p) for p in made}
