"""What one replica of one partition keeps, and what a function of it returns. No actor, no decision lives here.

A broker with many partitions keeps one `ReplicaState` per partition; an actor that is one replica has it as its local
state. The functions over it are in `partition`, `leading` and `following`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import attrs

from harness.model import FrozenMap, Message, Value, durable, fresh, ordered, persisted, volatile
from kafka_proto.errors import Error
from kafka_proto.log.chunks import UNTOLD, Chunks, LogStart, gone
from kafka_proto.replication import high_watermark as hw
from kafka_proto.replication import messages
from kafka_proto.replication.quorum import Eligible, TakeOut, take_out
from kafka_proto.replication.records import NIL, AnyLog, EntryLog, Isr
from kafka_proto.replication.truncation import EpochEnd

Request = messages.FetchRequest | messages.OffsetsForLeaderEpochRequest
Response = messages.FetchResponse | messages.OffsetsForLeaderEpochResponse
T = TypeVar("T", bound=messages.PartitionMessage)


@attrs.frozen(kw_only=True)
class ReplicaVersion:
    """A version of the protocol for replicas: the decisions that it is made of. The spec has a module for each."""

    name: str
    title: str
    follow: Callable[[Replica, ReplicaState, messages.LeaderAndIsrRequest], ReplicaOutcome]
    """A replica is to follow a leader: where it truncates its log first, or how it finds out."""
    learn_end_offset: Callable[
        [Replica, ReplicaState, messages.OffsetsForLeaderEpochResponse, messages.LeaderAndIsrRequest], ReplicaOutcome
    ]
    """A look-up is answered."""
    look_up: Callable[[AnyLog, int], EpochEnd | None]
    """Where the leader's log leaves an epoch, None if that cannot be told."""
    answer_fetch: Callable[[Replica, ReplicaState, messages.FetchRequest], Fetched]
    fences: bool = False
    """Whether fetches are answered in the epoch of the leader only."""
    fences_look_ups: bool = False
    """Whether look-ups are."""
    truncate_as_told: Callable[[ReplicaState, messages.FetchResponse, int], ReplicaState]
    """A fetch is answered with where to truncate: the follower's state after that."""
    may_expand: Callable[[int, int, AnyLog, int], bool]
    """Whether a follower may be let into the ISR, by its end offset, and what its leader holds."""
    counted: Callable[[Isr, Isr], Isr]
    """The members that the high watermark is about, from the ISR and the proposed one."""
    are_eligible: Eligible
    """Whether the controller may take the members of a proposed ISR."""
    take_out: TakeOut = take_out
    """How the controller takes out a replica that has not failed."""


@attrs.frozen
class Replica:
    """The constants of a replica: its name, its partition, and its rules."""

    name: str
    version: ReplicaVersion
    min_insync_replicas: int = 1
    flushes_each: bool = True
    """Whether every record is safe from a crash before anything leaves; if not, a crash loses the newest ones."""
    partition: str | None = None
    controller: str = "controller"

    def to(self, dest: str, message: type[T], **fields: Value) -> T:
        """Return a message of this replica about its partition."""
        return message(**fields, source=self.name, dest=dest, partition=self.partition)


@attrs.frozen
class Follower:
    """What a leader has heard of a follower in its epoch: up to where it holds the log, and by which request."""

    end_offset: int
    broker_epoch: int = attrs.field(metadata=ordered("broker_epoch", "key"))
    correlation: int = attrs.field(metadata=ordered("fetch", "key", "part", "broker_epoch"))


Fetched = tuple[Follower | None, messages.FetchResponse | None]
"""What a leader hears of a follower by its fetch, None if that does not count; and the answer, None for now."""


@attrs.frozen
class ReplicaState:
    """The state of one replica of one partition."""

    log: EntryLog = persisted(default=())
    high_watermark: int = persisted(default=0)
    """On disk as of the last flush, which is a checkpoint: it may be older than the log."""
    leader: str | None = persisted(default=None)
    leader_epoch: int = persisted(default=NIL)
    isr: Isr = persisted(default=frozenset())
    partition_epoch: int = persisted(default=0)
    """The four of the LeaderAndIsr request in effect, or as changed by the controller since."""
    broker_epoch: int = persisted(default=0, metadata=ordered("broker_epoch", "self"))
    active: bool = volatile(default=False)
    """Whether this incarnation has heard from the controller: until then it neither leads nor follows."""
    becoming: messages.LeaderAndIsrRequest | None = volatile(default=None)
    """The request that is obeyed as soon as it is known where to truncate; the one before stays in effect."""
    cut: int = volatile(default=0)
    """While becoming: the end offset that the log will have, as far as the look-ups went."""
    request: Request | None = volatile(default=None)
    """What a follower has asked its leader and is sent again until it is answered."""
    correlation: int = volatile(default=0, metadata=ordered("fetch", "self", "part", "broker_epoch"))
    followers: FrozenMap[str, Follower] = volatile(default=FrozenMap())
    parked: FrozenMap[str, Request] = volatile(default=FrozenMap())
    """Requests that have no answer yet: no record, no leader, or an epoch that this replica does not know."""
    proposal: messages.AlterPartitionRequest | None = volatile(default=None)
    callbacks: tuple[tuple[int, Value], ...] = volatile(default=(), metadata=fresh("produce", "beside"))
    """Offset and callback of the records whose commit a client waits for."""
    flushed: int = persisted(default=0)
    """Up to which offset the log is safe from a crash, for a host that flushes its log later than it says so."""
    registering: bool = volatile(default=False)
    """Whether it waits for the controller to take note of its new incarnation, for a host that is one replica."""

    @property
    def end_offset(self) -> int:
        """The offset that the next record will have."""
        return len(self.log)


@attrs.frozen
class Completed:
    """A record that a client waits for: its outcome."""

    callback: Value
    error: Error
    offset: int


@attrs.frozen
class ReplicaOutcome:
    """The outcome of a function of a replica's state."""

    state: ReplicaState
    sent: tuple[Message, ...] = ()
    completed: tuple[Completed, ...] = ()
    detail: str = ""
    flush: bool = False
    """Whether the state's persisted fields must be on disk before anything leaves."""


def then(outcome: ReplicaOutcome, following: ReplicaOutcome) -> ReplicaOutcome:
    """Return two outcomes as one: `following` was computed from the state of `outcome`."""
    return ReplicaOutcome(
        following.state, (*outcome.sent, *following.sent), (*outcome.completed, *following.completed),
        outcome.detail or following.detail, outcome.flush or following.flush,
    )


def leads(k: Replica, s: ReplicaState) -> bool:
    """Say whether a replica acts as a leader: it presumes to lead, has not crashed since, and is not asked to stop."""
    return s.active and s.becoming is None and s.leader == k.name


def restarted(s: ReplicaState, loses_tail: bool = False) -> ReplicaState:
    """Return the state in which a replica starts again: what is on disk, in a new incarnation.

    `loses_tail` says whether the log ends at what was flushed: the rest was in the operating system's hands.
    """
    again = attrs.evolve(ReplicaState(**durable(s)), broker_epoch=s.broker_epoch + 1)
    return truncated(again, min(max(s.flushed, gone(s.log)), len(s.log))) if loses_tail else again


def truncated(s: ReplicaState, end_offset: int) -> ReplicaState:
    """Return the state with the log cut, and a high watermark that is not above its end (`TruncateTo`).

    A log that is cut below its start is empty, and begins anew there (`UnifiedLog.truncateTo`).
    """
    log = s.log[:end_offset]
    if isinstance(log, Chunks) and log.start is not None and end_offset < log.start.place:
        log = attrs.evolve(log, start=LogStart(end_offset, UNTOLD, None))
    return attrs.evolve(
        s, log=log, high_watermark=hw.after_truncation(s.high_watermark, end_offset),
        flushed=min(s.flushed, end_offset),
    )


TYPES: tuple[type, ...] = (ReplicaState, Follower)
