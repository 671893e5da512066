"""What a node of one broker keeps."""

from __future__ import annotations

import attrs

from harness.model import FrozenMap
from kafka_proto.coordinator.producer_ids import Allocator
from kafka_proto.coordinator.role import Coordinator, Markers
from kafka_proto.coordinator.transaction import TransactionMetadata
from kafka_proto.group.role import GroupCoordinator
from kafka_proto.leader.state import Leader
from kafka_proto.versions import BrokerVersion


@attrs.frozen
class Node:
    version: BrokerVersion
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
    """Markers on their way: held, or to a partition that does not exist (yet)."""
