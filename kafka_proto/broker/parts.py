"""What a broker keeps, role by role: the parts of its state, and what of each survives a crash; its metadata cache.

Logs are the affair of the broker's log (`logs`); what a role knows of its log is derived, and volatile.
"""

from __future__ import annotations

from typing import Any

import attrs

from harness.model import (
    FrozenMap,
    Local,
    Message,
    Part,
    Parts,
    Value,
    absent_if_none,
    fresh,
    ordered,
    persisted,
    volatile,
)
from kafka_proto.broker.coordinator.coordinator import Coordinator, Effect
from kafka_proto.broker.ghosts import Ghosts
from kafka_proto.broker.group.coordinator import GroupCoordinator
from kafka_proto.broker.leader.verification import LeaderState, SupportedOperation
from kafka_proto.broker.messages import Asker, Request
from kafka_proto.log.chunks import Chunks
from kafka_proto.replication.replica_state import ReplicaState
from kafka_proto.requests import Error


@attrs.frozen
class LeaderAndEpoch:
    """A broker's belief about a partition: its leader, and the leader epoch, which is a coordinator's epoch, too."""

    leader_epoch: int
    leader: str


NOBODY = LeaderAndEpoch(-1, "")
"""What a broker knows of a partition until it learns its leader, and of a partition that is not there."""


@attrs.frozen
class Metadata:
    """What a broker knows of the cluster, and what the cluster knows of it."""

    known: FrozenMap[str, LeaderAndEpoch] = volatile(default=FrozenMap())
    """Leader and epoch of each partition, also of those that it does not host, as far as this broker knows."""
    broker_epoch: int = persisted(default=0, metadata=ordered("broker_epoch", "self"))
    """How often this broker was started again. Kafka's controller gives the number (broker epoch): no disk loses it."""
    registering: bool = volatile(default=False)
    """Whether it has reported its restart to the controller, and waits to learn of the leaders."""
    clock: int | None = volatile(default=None, metadata={"absent_if_none": True})
    """The time in milliseconds, as a driver says that has one; none if timers fire whenever they are armed."""


METADATA = Part("metadata", Metadata())


def known(local: Local, p: str) -> LeaderAndEpoch:
    """Return leader and epoch of a partition, as far as a broker knows; a partition that is not there has no leader."""
    return local[METADATA].known.get(p, NOBODY)


def exists(local: Local, p: str) -> bool:
    """Say whether a partition is there, as far as a broker knows."""
    return p in local[METADATA].known


def now(local: Local) -> int:
    """Return the time in milliseconds, 0 without a clock."""
    return local[METADATA].clock or 0


@attrs.frozen
class CoordinatorState:
    """The coordinator of one partition of the transaction log. It is `loading` where it does not serve."""

    cache: Coordinator = volatile(default=Coordinator(loading=True))
    unfinished: tuple[Effect, ...] = volatile(default=())
    """What is still to be done: markers of what was prepared when it was elected, entries that the log refused."""
    ghosts: Ghosts = volatile(default=Ghosts())


@attrs.frozen
class GivenBlocks:
    """How many blocks of producer ids a broker was given: the controller knows, and so no crash loses it."""

    count: int = persisted(default=0)


@attrs.frozen
class GroupCoordinatorState:
    """The coordinator of groups: its offsets and its members are in the offsets log, waiting requests are not."""

    groups: GroupCoordinator = volatile(default=GroupCoordinator())
    unsent: tuple[Message, ...] | None = volatile(default=None, metadata=absent_if_none())
    """To members that waited when the broker resigned: another broker coordinates their group."""


@attrs.frozen
class Asked:
    """A request of one of this broker's roles to another broker that is not answered, and what it is about."""

    message: Request
    role: str
    transactional_id: str = ""
    """Of markers."""
    client: Request | None = None
    """The client's request that waits for the answer to a verification, with the guard and what was asked."""
    partition: str = ""
    guard: int = attrs.field(default=0, metadata=fresh("guard", "self", "partition"))
    operation: SupportedOperation | None = None


@attrs.frozen
class Connections:
    """The connections to other brokers, and what was asked on them."""

    opened: FrozenMap[str, int] = persisted(default=FrozenMap(), metadata=ordered("connection", "self", "key"))
    """By broker: the number of the connection in use."""
    correlation: int = persisted(default=0, metadata=ordered("correlation", "self"))
    """The last one used: as with connections, no crash makes it another request's."""
    asked: FrozenMap[int, Asked] = volatile(default=FrozenMap(), metadata=ordered("correlation", "self"))
    """By correlation id, in the order in which all is asked again on a new connection."""


@attrs.frozen
class Marking:
    """A request to write markers to several partitions, and what those answered that have done so."""

    asker: Asker
    partitions: int
    errors: FrozenMap[str, Error] = FrozenMap()


@attrs.frozen
class Markings:
    """The requests that some partitions have not answered yet, in the order of arrival."""

    under_way: tuple[Marking, ...] = volatile(default=())


COORDINATOR = Parts("coordinator", CoordinatorState)
"""By partition of the transaction log."""
BLOCKS = Part("blocks", GivenBlocks())
GROUPS = Part("groups", GroupCoordinatorState())
CONNECTIONS = Part("connections", Connections())
LEADER = Parts("leader", LeaderState)
"""By partition."""
MARKINGS = Part("markings", Markings())
@attrs.frozen
class Records:
    """The log of one partition that is not replicated."""

    committed: tuple[Any, ...] | Chunks[Any] = persisted(default=())
    """A tuple in a model; on brokers that run, a sequence that may forget its beginning."""
    under_way: tuple[tuple[Value, Value], ...] = volatile(default=())
    """Records that are not committed yet, each with its callback."""
    leader_epoch: int = persisted(default=1)
    """It grows with each start of the leader."""
    epoch_starts: tuple[tuple[int, int], ...] | None = persisted(default=None, metadata=absent_if_none())
    """Each leader epoch with the place of its first record, where clients ask for them."""


RECORDS = Parts("log", Records)
"""By partition: the logs that a broker leads for good."""
REPLICA = Parts("replica", ReplicaState)
"""By partition: the replicas that a broker hosts, where logs are replicated."""
