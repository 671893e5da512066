"""What a broker keeps, role by role: the parts of its state, and what of each survives a crash."""

from __future__ import annotations

import attrs

from harness.model import FrozenMap, Part, Parts, persisted, volatile
from kafka_proto.coordinator.role import Coordinator, Logged
from kafka_proto.coordinator.transaction import TransactionMetadata
from kafka_proto.exactly_once.ghosts import Ghosts
from kafka_proto.exactly_once.messages import Request
from kafka_proto.group.role import GroupCoordinator
from kafka_proto.leader.state import Leader, Operation, Verification
from kafka_proto.log import EMPTY_LOG, PartitionLog


@attrs.frozen
class CoordinatorState:
    """A transaction coordinator: its cache, and its atomic log, of which the last entry of each id counts."""

    cache: Coordinator = volatile(default=Coordinator(loading=True))
    unlogged: tuple[Logged, ...] = volatile(default=())
    """Entries under way to the log."""
    log: FrozenMap[str, TransactionMetadata] = persisted(default=FrozenMap())
    coordinator_epoch: int = persisted(default=0)
    blocks: int = persisted(default=0)
    """How many blocks of producer ids it was given."""
    ghosts: Ghosts = persisted(default=Ghosts())


@attrs.frozen
class LeaderState:
    """A partition's leader: its log on disk, and the verifications under way."""

    log: PartitionLog = persisted(default=EMPTY_LOG)
    verifications: FrozenMap[int, Verification] = volatile(default=FrozenMap())
    guards: int = volatile(default=0)

    @property
    def leader(self) -> Leader:
        """Return it as the leader's role knows it."""
        return Leader(self.log, self.verifications, self.guards)

    @staticmethod
    def of(leader: Leader) -> LeaderState:
        return LeaderState(leader.log, leader.verifications, leader.guards)


@attrs.frozen
class GroupState:
    """The coordinator of groups. Its groups are on disk here, as its offsets are by their log."""

    groups: GroupCoordinator = persisted(default=GroupCoordinator())


@attrs.frozen
class Asked:
    """A request of this broker's to another that is not answered, and what it is about."""

    message: Request
    transactional_id: str = ""
    """Of markers."""
    client: Request | None = None
    """The client's request that waits for the answer to a verification, with the guard and what was asked."""
    guard: int = 0
    operation: Operation | None = None


@attrs.frozen
class Connections:
    """The connections to other brokers, and what was asked on them."""

    opened: FrozenMap[str, int] = persisted(default=FrozenMap())
    """By broker: the number of the connection in use."""
    correlation: int = volatile(default=0)
    asked: FrozenMap[int, Asked] = volatile(default=FrozenMap())
    """By correlation id."""


COORDINATOR = Part("coordinator", CoordinatorState())
GROUPS = Part("groups", GroupState())
CONNECTIONS = Part("connections", Connections())
LEADER = Parts("leader", LeaderState)
TYPES: tuple[type, ...] = (CoordinatorState, LeaderState, GroupState, Asked, Connections)
