"""What a node of one broker keeps, and the same without the decisions: a value that an actor may have as its state."""

from __future__ import annotations

import attrs

from harness.model import FrozenMap
from kafka_proto.broker.coordinator.coordinator import Coordinator, Markers
from kafka_proto.broker.coordinator.producer_ids import Allocator
from kafka_proto.broker.coordinator.transaction import TransactionMetadata
from kafka_proto.broker.group.coordinator import GroupCoordinator
from kafka_proto.broker.leader.state import Leader
from kafka_proto.broker.versions import BrokerVersion


@attrs.frozen
class NodeState:
    """All that a node keeps; which version decides is known to whoever runs it."""

    leaders: FrozenMap[str, Leader]
    """By partition."""
    coordinator: Coordinator = Coordinator()
    groups: GroupCoordinator = GroupCoordinator()
    transaction_log: FrozenMap[str, TransactionMetadata] = FrozenMap()
    """The last entry of each transactional id."""
    allocator: Allocator = Allocator()
    now: int = 0
    """Logical milliseconds."""
    holds_markers: bool = False
    held: tuple[Markers, ...] = ()
    """Markers on their way."""


@attrs.frozen
class Node(NodeState):
    """A node's state with the decisions of its version."""

    version: BrokerVersion = attrs.field(kw_only=True)
    reaches_coordinator: bool = attrs.field(default=True, kw_only=True)
    """Whether the leader that is asked reaches the coordinator of the transaction."""


FIELDS = tuple(field.name for field in attrs.fields(NodeState))


def running(version: BrokerVersion, state: NodeState) -> Node:
    """Return a state as a node that decides as a version does."""
    return Node(version=version, **{name: getattr(state, name) for name in FIELDS})


def state_of(node: Node) -> NodeState:
    """Return what a node keeps."""
    return NodeState(**{name: getattr(node, name) for name in FIELDS})
