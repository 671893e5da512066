"""What every broker keeps whatever its roles are: its metadata cache, and what the cluster knows of it."""

from __future__ import annotations

import attrs

from harness.model import FrozenMap, Local, Part, ordered, persisted, volatile


@attrs.frozen
class LeaderAndEpoch:
    """A broker's belief about a partition: its leader, and the leader epoch, which is a coordinator's epoch, too."""

    leader_epoch: int
    leader: str


NOBODY = LeaderAndEpoch(-1, "")
"""What a broker knows of a partition until it learns who leads it, and of one that is not there."""


@attrs.frozen
class Metadata:
    """What a broker knows of the cluster, and what the cluster knows of it."""

    known: FrozenMap[str, LeaderAndEpoch] = volatile(default=FrozenMap())
    """Leader and epoch of each partition, also of those that it does not host, as far as this broker knows."""
    broker_epoch: int = persisted(default=0, metadata=ordered("broker_epoch", "self"))
    """How often this broker was started again. Kafka's controller gives the number (broker epoch): no disk loses it."""
    registering: bool = volatile(default=False)
    """Whether it has reported its restart to the controller, and waits to learn who leads."""
    clock: int | None = volatile(default=None, metadata={"absent_if_none": True})
    """The time in milliseconds, as a driver says that has one; none where timers fire whenever they are armed."""


METADATA = Part("metadata", Metadata())


def known(local: Local, p: str) -> LeaderAndEpoch:
    """Return leader and epoch of a partition, as far as a broker knows; nobody leads one that is not there."""
    return local[METADATA].known.get(p, NOBODY)


def exists(local: Local, p: str) -> bool:
    """Say whether a partition is there, as far as a broker knows."""
    return p in local[METADATA].known


def now(local: Local) -> int:
    """Return the time in milliseconds, 0 without a clock."""
    return local[METADATA].clock or 0
