"""One broker at rest, in process."""

from __future__ import annotations

from collections.abc import Iterable

from kafka_proto.broker.coordinator.coordinator import KAFKAS_DEFAULTS, CoordinatorConfig
from kafka_proto.broker.versions import BrokerVersion
from kafka_proto.conformance.playing import PlayedCluster

BROKER = "b1"


def new_node(
    version: BrokerVersion, *asked: object, partitions: Iterable[str] = ("T-0",),
    config: CoordinatorConfig = KAFKAS_DEFAULTS,
) -> PlayedCluster:
    """Return a broker with empty partitions of these names, after some requests."""
    node = PlayedCluster(version, tuple(partitions), config=config)
    for request in asked:
        node.ask(request)
    return node


def elected(node: PlayedCluster) -> None:
    """Elect the broker anew: caches and guards are lost, logs are read again, epochs grow."""
    own = node.placement.transaction_partitions
    for p in (*own, *(p for p in node.placement.all_partitions if p not in own)):
        node.elect(p)
