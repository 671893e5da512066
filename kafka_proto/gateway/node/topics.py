"""The topics of a node: partitions come and go, and what transactions had in them with them."""

from __future__ import annotations

import attrs

from harness.model import FrozenMap
from kafka_proto.broker.group.coordinator import deletion_batch
from kafka_proto.broker.leader.state import NO_GUARD, Leader, Origin
from kafka_proto.gateway.node.state import Node
from kafka_proto.gateway.node.work import append_to
from kafka_proto.requests import (
    OFFSETS_PARTITION,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    Error,
    partition_name,
    topic_of,
)


def with_topic(node: Node, topic: str, partitions: int) -> Node:
    """Return a node that has one more topic, empty."""
    new = {partition_name(topic, index): Leader() for index in range(partitions)}
    return attrs.evolve(node, leaders=node.leaders.update(new))


def without_topic(node: Node, topic: str) -> Node:
    """Return a node without a topic and what is in it; a transaction that has a partition of it is not told.

    What groups have committed of it goes, and what open transactions have staged.
    """
    gone = frozenset(name for name in node.leaders if topic_of(name) == topic)
    before = node.groups
    node = attrs.evolve(node, leaders=FrozenMap(item for item in node.leaders.items() if item[0] not in gone))
    if keys := before.offsets.of_partitions(gone):
        node, _, _ = append_to(node, OFFSETS_PARTITION, deletion_batch(keys, node.now), Origin.COORDINATOR, NO_GUARD)
    return attrs.evolve(node, groups=node.version.group.after_deletion(before, node.groups))


def create_topic(node: Node, request: CreateTopicsRequest) -> tuple[Node, CreateTopicsResponse]:
    """Make a topic, unless there is one of its name."""
    if _exists(node, request.topic):
        return node, CreateTopicsResponse(Error.TOPIC_ALREADY_EXISTS)
    return with_topic(node, request.topic, request.partitions), CreateTopicsResponse(Error.NONE)


def delete_topic(node: Node, request: DeleteTopicsRequest) -> tuple[Node, DeleteTopicsResponse]:
    """Delete a topic, if there is one."""
    if not _exists(node, request.topic):
        return node, DeleteTopicsResponse(Error.UNKNOWN_TOPIC_OR_PARTITION)
    return without_topic(node, request.topic), DeleteTopicsResponse(Error.NONE)


def _exists(node: Node, topic: str) -> bool:
    return any(topic_of(name) == topic for name in node.leaders)
