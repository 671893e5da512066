"""The group coordinator: commits become batches of its offsets log, markers of that log make them visible.

Members and generations decide which commits are allowed (KIP-447). What the log holds of a group besides its offsets
lets its members outlive their coordinator: generation, protocol and leader, and of each member what it said for the
protocol and what it was assigned. Which members wait for what, and until when, is not in the log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import attrs

from harness.model import FrozenMap, absent_if_none
from kafka_proto.broker.group import consumer_group
from kafka_proto.broker.group.consumer_group import ConsumerGroup
from kafka_proto.broker.group.rebalance import ClassicGroup, Group, GroupState, Member, check, heard
from kafka_proto.broker.leader.verification import OF_COORDINATORS
from kafka_proto.errors import Error
from kafka_proto.log import NO_PRODUCER_ID, Marker, RecordBatch
from kafka_proto.requests.groups import (
    OffsetCommitRequest,
    OffsetFetchRequest,
    OffsetFetchResponse,
    TxnOffsetCommitRequest,
)

AnyGroup = Group | ClassicGroup | ConsumerGroup
Key = tuple[str, str]
"""A group and a partition."""


@attrs.frozen
class OffsetRecord:
    """A record of the offsets log; an offset of None is a tombstone."""

    group_id: str
    partition: str
    offset: int | None
    leader_epoch: int | None = attrs.field(default=None, metadata=absent_if_none())
    """Of the record before the offset, as the client knows it (KIP-320)."""
    metadata: str | None = attrs.field(default=None, metadata=absent_if_none())
    """What the client keeps with the offset."""
    transaction: str | None = attrs.field(default=None, metadata=absent_if_none())
    """The ghost: the application's transaction that it is part of."""
    topic_id: bytes | None = attrs.field(default=None, metadata=absent_if_none())

    @property
    def key(self) -> Key:
        return self.group_id, self.partition


@attrs.frozen
class Committed:
    """An offset, and where in the log its record is: the later record wins, whenever it became visible."""

    offset: int
    record_offset: int
    leader_epoch: int | None = attrs.field(default=None, metadata=absent_if_none())
    metadata: str | None = attrs.field(default=None, metadata=absent_if_none())


@attrs.frozen
class Offsets:
    """What a group coordinator knows of its offsets log (`OffsetMetadataManager`)."""

    committed: FrozenMap[Key, Committed] = FrozenMap()
    staged: FrozenMap[int, FrozenMap[Key, Committed]] = FrozenMap()
    """By producer id."""

    def is_stable(self, key: Key) -> bool:
        """Say whether no open transaction has an offset of this group and partition staged."""
        return not any(key in staged for staged in self.staged.values())

    @property
    def keys(self) -> tuple[Key, ...]:
        """Return the groups and partitions that have an offset, committed or staged, sorted."""
        return tuple(sorted({*self.committed, *(key for staged in self.staged.values() for key in staged)}))

    def of_partitions(self, partitions: Iterable[str]) -> tuple[Key, ...]:
        """Return the groups and partitions that have an offset of some partitions, committed or staged, sorted."""
        wanted = frozenset(partitions)
        return tuple(key for key in self.keys if key[1] in wanted)


def replay(offsets: Offsets, batch: RecordBatch, *, by_record: bool = True) -> Offsets:
    """Return the offsets after a batch of the log: the live view is this, and so is what an election loads.

    With `by_record` a transaction's offsets do not replace those of later records (KAFKA-5247). Without it they do, as
    the live view did before: what a replay of the log gave was another one.
    """
    if batch.marker is not None:
        return _materialised(offsets, batch.producer_id, batch.marker, by_record)
    for place, record in enumerate(batch.records):
        if isinstance(record, OffsetRecord):
            offsets = _replayed(offsets, batch, record, batch.base_offset + place)
    return offsets


def _replayed(offsets: Offsets, batch: RecordBatch, record: OffsetRecord, record_offset: int) -> Offsets:
    if record.offset is None:
        staged = FrozenMap((owner, keys.without(record.key)) for owner, keys in offsets.staged.items())
        return Offsets(offsets.committed.without(record.key), staged)
    written = Committed(record.offset, record_offset, record.leader_epoch, record.metadata)
    if batch.producer_id == NO_PRODUCER_ID or not batch.is_transactional:
        return attrs.evolve(offsets, committed=offsets.committed.set(record.key, written))
    keys: FrozenMap[Key, Committed] = offsets.staged.get(batch.producer_id, FrozenMap())
    return attrs.evolve(offsets, staged=offsets.staged.set(batch.producer_id, keys.set(record.key, written)))


def _materialised(offsets: Offsets, producer_id: int, marker: Marker, by_record: bool) -> Offsets:
    """End a producer's transaction: its offsets become visible, or are dropped."""
    if producer_id not in offsets.staged:
        return offsets
    staged = offsets.staged[producer_id]
    kept = offsets.staged.without(producer_id)
    if marker is Marker.ABORT:
        return attrs.evolve(offsets, staged=kept)
    committed = offsets.committed
    for key, written in staged.items():
        known = committed.get(key)
        if known is None or not by_record or written.record_offset > known.record_offset:
            committed = committed.set(key, written)
    return Offsets(committed, kept)


def load(batches: Iterable[RecordBatch]) -> Offsets:
    """Return the offsets that a log holds, as a newly elected coordinator reads it."""
    offsets = Offsets()
    for batch in batches:
        offsets = replay(offsets, batch)
    return offsets


CommitRequest = OffsetCommitRequest | TxnOffsetCommitRequest


def check_group(group: AnyGroup | None, request: CommitRequest) -> Error:
    """Say whether a commit may be made: by a member of this generation (3.x: `GroupCoordinator.validateOffsetCommit`).

    Transactions are let in to a group that is not there, and those of requests without member to any group.
    """
    transactional = isinstance(request, TxnOffsetCommitRequest)
    if group is None and not transactional and request.generation_id >= 0:
        return Error.ILLEGAL_GENERATION
    return check_member(group or Group(), request, transactional)


def check_known_group(group: AnyGroup | None, request: CommitRequest) -> Error:
    """As `check_group`, but a generation of a group that is not there is refused in transactions, too (4.0)."""
    transactional = isinstance(request, TxnOffsetCommitRequest)
    if group is None and request.generation_id >= 0:
        newer = not transactional and request.version >= 9
        return Error.GROUP_ID_NOT_FOUND if newer else Error.ILLEGAL_GENERATION
    return check_member(group or Group(), request, transactional)


def check_member(group: AnyGroup, request: CommitRequest, transactional: bool) -> Error:
    """Say whether a member, generation and instance are those of a group (`ClassicGroup.validateOffsetCommit`)."""
    if isinstance(group, ConsumerGroup):
        return consumer_group.check_commit(group, request, transactional)
    if request.generation_id < 0 and not group.members:
        return Error.NONE
    if request.generation_id >= 0 or request.member_id or request.group_instance_id is not None:
        error = check(group, request.member_id, request.group_instance_id, request.generation_id)
        if error is not Error.NONE:
            return error
    elif not transactional:
        return Error.UNKNOWN_MEMBER_ID
    return Error.REBALANCE_IN_PROGRESS if group.awaits_leader and not transactional else Error.NONE


@attrs.frozen
class GroupMetadata:
    """A record of the offsets log (`GroupMetadataManager`); a group of None is a tombstone."""

    group_id: str
    group: ClassicGroup | ConsumerGroup | None
    was_of_consumers: bool | None = attrs.field(default=None, metadata=absent_if_none())
    """Of a tombstone: whether a consumer group is gone, whose records have other keys."""

    def __str__(self) -> str:
        if isinstance(self.group, ConsumerGroup):
            return f"{self.group_id} epoch {self.group.epoch}"
        told = "gone" if self.group is None else f"generation {self.group.generation}"
        return f"{self.group_id} {told}"


def stored(group: ClassicGroup) -> ClassicGroup:
    """Return what is stored of a group that is stable or empty."""
    state = GroupState.STABLE if group.members else GroupState.EMPTY
    members = FrozenMap((known, _stored(member, group.protocol_name)) for known, member in group.members.items())
    return ClassicGroup(state, group.generation, group.protocol_name, group.leader, members, group.order,
                        protocol_type=group.protocol_type)


def _stored(member: Member, protocol: str | None) -> Member:
    chosen = tuple(each for each in member.join.protocols if each[0] == protocol)
    return Member(attrs.evolve(member.join, protocols=chosen), 0, member.assignment)


def changed(before: ClassicGroup, after: ClassicGroup) -> bool:
    """Say whether a group has come to rest as another one than is stored."""
    at_rest = after.state in (GroupState.EMPTY, GroupState.STABLE)
    return at_rest and stored(after) != stored(before)


def loaded_groups(records: Iterable[RecordBatch], now: int) -> dict[str, ClassicGroup | ConsumerGroup | None]:
    """Return the groups that a log holds, None for a group that is gone; all sessions begin anew."""
    found: dict[str, ClassicGroup | ConsumerGroup | None] = {}
    for batch in records:
        for record in batch.records:
            if isinstance(record, GroupMetadata):
                found[record.group_id] = None if record.group is None else _loaded(record.group, now)
    return found


def _loaded(group: ClassicGroup | ConsumerGroup, now: int) -> ClassicGroup | ConsumerGroup:
    if isinstance(group, ConsumerGroup):
        return consumer_group.loaded(group, now)
    members = FrozenMap((known, attrs.evolve(member, silent_until=now + member.join.session_timeout_ms))
                        for known, member in group.members.items())
    return attrs.evolve(group, members=members)


LONGEST_METADATA = 4096
"""Kafka's `offset.metadata.max.bytes`, which are characters."""


def with_unused(before: GroupCoordinator, after: GroupCoordinator) -> GroupCoordinator:
    """Keep groups until they expire (4.0)."""
    return after


@attrs.frozen
class GroupDecisions:
    """What a group coordinator decides. A version of a broker lists them."""

    check_group: Callable[[AnyGroup | None, CommitRequest], Error]
    refused_commit: Callable[[Error], Error]
    """What a client is told of offsets that could not be verified or appended."""
    before_check: Callable[[GroupCoordinator, str], GroupCoordinator]
    """What becomes of a group by offsets of a transaction, whether or not they are taken then."""
    after_deletion: Callable[[GroupCoordinator, GroupCoordinator], GroupCoordinator] = with_unused
    """What becomes of groups when offsets of deleted partitions go, by what is known before and after that."""
    stores_new: bool = False
    """Whether a group is stored that a member is about to join, and still has no generation (4.0)."""
    replay: Callable[[Offsets, RecordBatch], Offsets] = replay
    """What becomes of the live offsets by a batch of their log."""
    joins_by_policy: bool = False
    """Whether no classic member joins a consumer group where migration is disabled (4.3)."""


@attrs.frozen
class GroupCoordinator:
    """The leader of a partition of the offsets log: its groups, and the offsets that the log makes."""

    groups: FrozenMap[str, AnyGroup] = FrozenMap()
    offsets: Offsets = Offsets()
    members: int = 0
    """How many member ids were made."""

    def classic(self, group_id: str) -> ClassicGroup:
        """Return the members of a group, and what goes on among them; empty if no member has joined."""
        group = self.groups.get(group_id)
        return group if isinstance(group, ClassicGroup) else ClassicGroup()

    def consumer(self, group_id: str) -> ConsumerGroup | None:
        """Return a consumer group; None if the group is of another kind, or not there."""
        group = self.groups.get(group_id)
        return group if isinstance(group, ConsumerGroup) else None

    def with_members(self, group_id: str, group: ClassicGroup | ConsumerGroup) -> GroupCoordinator:
        """Return a coordinator whose group is another one."""
        return attrs.evolve(self, groups=self.groups.set(group_id, group))


def commit_batch(request: CommitRequest, now: int, transaction: str | None = None) -> RecordBatch:
    """Return the batch of the offsets log that a commit is; a transaction's has its producer's id, and no sequence."""
    record = OffsetRecord(request.group_id, request.partition, request.offset, request.leader_epoch, request.metadata,
                          topic_id=request.topic_id)
    if not isinstance(request, TxnOffsetCommitRequest):
        return RecordBatch((record,), timestamp=now)
    record = attrs.evolve(record, transaction=transaction)
    return RecordBatch((record,), request.producer_id, request.producer_epoch, is_transactional=True, timestamp=now)


def metadata_error(request: CommitRequest) -> Error:
    """Say whether the metadata of an offset is too long, in characters as Java counts them (`isMetadataInvalid`)."""
    length = len((request.metadata or "").encode("utf-16-le")) // 2
    return Error.OFFSET_METADATA_TOO_LARGE if length > LONGEST_METADATA else Error.NONE


def deletion_batch(keys: Iterable[Key], now: int, gone: Iterable[GroupMetadata] = ()) -> RecordBatch:
    """Return the batch of the offsets log that deletes offsets, and groups by their tombstones.

    `onPartitionsDeleted`, `cleanupGroupMetadata`.
    """
    return RecordBatch((*(OffsetRecord(*key, None) for key in keys), *gone), timestamp=now)


def tombstone(state: GroupCoordinator, group_id: str) -> GroupMetadata:
    """Return the record by which a group is gone."""
    return GroupMetadata(group_id, None, state.consumer(group_id) is not None or None)


def with_group(state: GroupCoordinator, group_id: str) -> GroupCoordinator:
    """Return a coordinator that has a group, if only an empty one: a commit makes it."""
    if group_id in state.groups:
        return state
    return attrs.evolve(state, groups=state.groups.set(group_id, Group()))


def after_commit(state: GroupCoordinator, request: CommitRequest, now: int) -> GroupCoordinator:
    """Return a coordinator that has taken a commit: there is its group, and a member's session begins anew.

    A transaction's commits say nothing of its consumer.
    """
    classic = state.classic(request.group_id)
    if isinstance(request, TxnOffsetCommitRequest) or request.member_id not in classic.members:
        return with_group(state, request.group_id)
    return state.with_members(request.group_id, heard(classic, request.member_id, now))


def as_it_is(state: GroupCoordinator, group_id: str) -> GroupCoordinator:
    """Return the coordinator: only what is taken makes a group (4.0)."""
    return state


def without_unused(before: GroupCoordinator, after: GroupCoordinator) -> GroupCoordinator:
    """Drop groups that have neither members nor offsets, unless an open transaction had some (`cleanupGroupMetadata`).
    """
    staged = {group_id for keys in before.offsets.staged.values() for group_id, _ in keys}
    used = staged | {group_id for group_id, _ in after.offsets.committed}
    groups = FrozenMap((group_id, group) for group_id, group in after.groups.items()
                       if group.members or group_id in used)
    return attrs.evolve(after, groups=groups)


def replayed(
    state: GroupCoordinator, batch: RecordBatch, of_offsets: Callable[[Offsets, RecordBatch], Offsets] = replay
) -> GroupCoordinator:
    """Return a coordinator after a batch of its offsets log; a group that has a commit exists."""
    for record in batch.records if batch.marker is None else ():
        if isinstance(record, OffsetRecord) and record.offset is not None:
            state = with_group(state, record.group_id)
    return attrs.evolve(state, offsets=of_offsets(state.offsets, batch))


def loaded(records: Iterable[RecordBatch], now: int) -> GroupCoordinator:
    """Return the coordinator that an offsets log makes: offsets, and groups with their members."""
    records, state = tuple(records), GroupCoordinator()
    for batch in records:
        state = replayed(state, batch)
    for group_id, group in loaded_groups(records, now).items():
        if group is not None:
            state = state.with_members(group_id, group)
        elif not any(name == group_id for name, _ in state.offsets.committed):
            state = attrs.evolve(state, groups=state.groups.without(group_id))
    return state


def fetch_offset(state: GroupCoordinator, request: OffsetFetchRequest) -> OffsetFetchResponse:
    """Return a group's offset, or -1; a stable one is returned after the transaction (`fetchOffsets`, KIP-447)."""
    key = request.group_id, request.partition
    if request.require_stable and not state.offsets.is_stable(key):
        return OffsetFetchResponse(Error.NONE, Error.UNSTABLE_OFFSET_COMMIT)
    known = state.offsets.committed.get(key)
    if known is None:
        return OffsetFetchResponse(Error.NONE)
    return OffsetFetchResponse(Error.NONE, Error.NONE, known.offset, known.leader_epoch, known.metadata)


COMMIT_ERRORS = {
    Error.NETWORK_EXCEPTION: Error.COORDINATOR_LOAD_IN_PROGRESS,
    Error.UNKNOWN_TOPIC_OR_PARTITION: Error.COORDINATOR_NOT_AVAILABLE,
    Error.NOT_ENOUGH_REPLICAS: Error.COORDINATOR_NOT_AVAILABLE,
    Error.NOT_ENOUGH_REPLICAS_AFTER_APPEND: Error.COORDINATOR_NOT_AVAILABLE,
    Error.REQUEST_TIMED_OUT: Error.COORDINATOR_NOT_AVAILABLE,
    Error.NOT_LEADER_OR_FOLLOWER: Error.NOT_COORDINATOR,
    Error.KAFKA_STORAGE_ERROR: Error.NOT_COORDINATOR,
}


def refused_commit(error: Error) -> Error:
    """Tell a client of a commit what it can act on: ask again, or look up again (`maybeConvertOffsetCommitError`)."""
    return COMMIT_ERRORS.get(error, error)


def refused_commit_as_few_replicas(error: Error) -> Error:
    """As `refused_commit`; what the coordinator of transactions says becomes NOT_ENOUGH_REPLICAS first (3.7).

    `ReplicaManager.maybeStartTransactionVerificationForPartitions`.
    """
    return refused_commit(Error.NOT_ENOUGH_REPLICAS if error in OF_COORDINATORS else error)
