"""One broker in process as a value: a request goes in, and the broker after it comes out with the answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from kafka_proto.broker.coordinator.coordinator import KAFKAS_DEFAULTS, Coordinator, CoordinatorConfig
from kafka_proto.broker.coordinator.role import TRANSACTION_TIMEOUT
from kafka_proto.broker.coordinator.transaction import TransactionMetadata
from kafka_proto.broker.group.coordinator import GroupCoordinator
from kafka_proto.broker.leader.state import LeaderState
from kafka_proto.broker.parts import LEADER
from kafka_proto.broker.versions import BrokerVersion
from kafka_proto.conformance.cluster import PlayedCluster
from kafka_proto.requests import ConsumerFetchRequest, Error

BROKER = "b1"


class Node:
    """A broker at rest."""

    def __init__(self, cluster: PlayedCluster) -> None:
        self.cluster = cluster

    @property
    def leaders(self) -> Mapping[str, LeaderState]:
        """Return the leader of each partition, but for those of transactions."""
        own = frozenset(self.cluster.placement.transaction_partitions)
        return {p: self.cluster.part(BROKER, LEADER[p]) for p in self.cluster.placement.all_partitions if p not in own}

    @property
    def coordinator(self) -> Coordinator:
        return self.cluster.coordinator("tid")

    @property
    def transaction_log(self) -> Mapping[str, TransactionMetadata]:
        """Return the last entry of each transactional id."""
        return self.cluster.entries

    @property
    def groups(self) -> GroupCoordinator:
        return self.cluster.groups(BROKER)

    @property
    def now(self) -> int:
        return self.cluster.now


def new_node(version: BrokerVersion, partitions: Any, config: CoordinatorConfig = KAFKAS_DEFAULTS) -> Node:
    """Return a broker with empty partitions of these names."""
    return Node(PlayedCluster(version, tuple(partitions), config=config))


def handle(node: Node, request: object) -> tuple[Node, Any]:
    """Let a broker answer a request; one that reads does not wait for records."""
    after = node.cluster.fork()
    if isinstance(request, ConsumerFetchRequest):
        request = attrs.evolve(request, min_bytes=0)
    return Node(after), after.ask(request)


def elect(node: Node) -> Node:
    """Elect the broker anew: caches and guards are lost, logs are read again, epochs grow."""
    after = node.cluster.fork()
    own = after.placement.transaction_partitions
    for p in (*own, *(p for p in after.placement.all_partitions if p not in own)):
        after.elect(p)
    return Node(after)


def holding(node: Node, *, holds: bool = True) -> Node:
    """Let markers stay on their way, or send what comes from now on."""
    after = node.cluster.fork()
    after.holds_markers = holds
    return Node(after)


def deliver_held(node: Node) -> tuple[Node, tuple[tuple[str, Error], ...]]:
    """Deliver the markers that were held."""
    after = node.cluster.fork()
    return Node(after), after.deliver_held()


def next_deadline(node: Node) -> int | None:
    """Return when the first open transaction will be older than its time-out."""
    due = [at for at, _, timer in node.cluster.deadlines() if timer.startswith(TRANSACTION_TIMEOUT)]
    return min(due, default=None)


def pass_time(node: Node, until: int) -> Node:
    """Let time pass, and do what is due."""
    after = node.cluster.fork()
    after.pass_time(until)
    return Node(after)


def without_topic(node: Node, topic: str) -> Node:
    """Return a broker that has a topic no more."""
    after = node.cluster.fork()
    after.delete_topic(topic)
    return Node(after)
