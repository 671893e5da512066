"""The coordinator of groups as a role of a broker: the leader of the offsets partition, which takes commits itself.

All that it knows is in the offsets log: it is loaded when it is committed, and a commit counts when it is.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import attrs

from harness.model import FrozenMap, Local, Value
from kafka_proto.broker.group import coordinator as group
from kafka_proto.broker.leader.marker_answers import MarkerAnswers
from kafka_proto.broker.leader.role import Handler, PartitionLeader
from kafka_proto.broker.leader.state import NO_GUARD, Operation, Origin
from kafka_proto.broker.messages import PartitionsDeleted, Request
from kafka_proto.broker.other_brokers import OtherBrokers
from kafka_proto.broker.parts import GROUPS, LEADER, GroupState, LeaderState
from kafka_proto.broker.roles import Effect
from kafka_proto.broker.state import exists, now
from kafka_proto.broker.versions import BrokerVersion
from kafka_proto.errors import ErrorCode
from kafka_proto.log import RecordBatch
from kafka_proto.log.records import NO_SEQUENCE
from kafka_proto.requests import (
    OFFSETS_PARTITION,
    Error,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)

COMMITS = (TxnOffsetCommitRequest, OffsetCommitRequest)


class GroupCoordinator(PartitionLeader):
    """The coordinator of one broker, of the groups whose partition it leads."""

    loads_at_once = False
    role = "group"

    def __init__(
        self, name: str, version: BrokerVersion, topic_partitions: tuple[str, ...], others: OtherBrokers,
        marker_answers: MarkerAnswers,
    ) -> None:
        super().__init__(name, version, (OFFSETS_PARTITION,), others, marker_answers)
        self.topic_partitions = frozenset(topic_partitions)
        self.parts = (*self.parts, GROUPS)
        self.of_groups: dict[type, Handler] = {
            TxnOffsetCommitRequest: self.txn_offset_commit, OffsetCommitRequest: self.offset_commit,
            OffsetFetchRequest: self.offset_fetch, JoinGroupRequest: self.join_group,
            LeaveGroupRequest: self.leave_group, PartitionsDeleted: self.partitions_deleted,
        }

    def answered(self, local: Local, message: Request, request: Any) -> Effect | None:
        handler = self.of_groups.get(type(request))
        if handler is None:
            return super().answered(local, message, request)
        if isinstance(request, COMMITS) and not (
            request.partition in self.topic_partitions and exists(local, request.partition)
        ):
            return self.reply(local, message, commit_response(request, Error.UNKNOWN_TOPIC_OR_PARTITION))
        return handler(local, message, request)

    def loaded(self, local: Local, p: str, records: Iterable[RecordBatch]) -> Local:
        """Return the state with the offsets that the log makes, all of it committed."""
        records = tuple(records)
        local = super().loaded(local, p, records).put(GROUPS, GroupState())
        for record in records:
            local = self.committed(local, p, record)
        return local

    def resigned(self, local: Local, p: str) -> Local:
        return super().resigned(local, p).put(GROUPS, GroupState())

    def committed(self, local: Local, p: str, record: RecordBatch) -> Local:
        groups = group.replayed(local[GROUPS].groups, record)
        return super().committed(local, p, record).put(GROUPS, GroupState(groups))

    def response(self, request: Any, error: Error, offset: int) -> Value:
        if isinstance(request, COMMITS):
            return commit_response(request, self.version.group.refused_commit(error))
        return super().response(request, error, offset)

    def unverified(self, request: Any, error: Error, operation: Operation) -> Value:
        is_commit = isinstance(request, COMMITS)
        return self.response(request, error, -1) if is_commit else super().unverified(request, error, operation)

    def txn_offset_commit(self, local: Local, message: Request, request: TxnOffsetCommitRequest) -> Effect:
        """Verify, ask the group, append: in this order."""
        decisions, where = self.version.leader, LEADER[OFFSETS_PARTITION]
        if not request.group_id:
            return self.reply(local, message, TxnOffsetCommitResponse(Error.INVALID_GROUP_ID))
        if not local[where].serves:
            return self.failed(local, OFFSETS_PARTITION, message, Error.NOT_COORDINATOR)
        groups = self.version.group.before_check(local[GROUPS].groups, request.group_id)
        local = local.put(GROUPS, GroupState(groups))
        operation = decisions.operation("TxnOffsetCommit", request.version)
        if operation is None:
            return self.verified_append(local, message, NO_GUARD)
        producer = request.producer_id, request.producer_epoch
        started = decisions.start_verification(
            local[where].leader, *producer, NO_SEQUENCE, operation, decisions.has_open, now=now(local)
        )
        if started.error is not Error.NONE:
            return self.failed(local, OFFSETS_PARTITION, message, started.error)
        local = local.put(where, LeaderState.of(started.leader))
        if started.guard == NO_GUARD:
            return self.verified_append(local, message, NO_GUARD)
        return self.verify(local, message, OFFSETS_PARTITION, producer, operation, started.guard)

    def offset_commit(self, local: Local, message: Request, request: OffsetCommitRequest) -> Effect:
        return self.verified_append(local, message, NO_GUARD)

    def verified_append(self, local: Local, message: Request, guard: int) -> Effect:
        """Append a commit to the offsets log if the group takes it."""
        request, groups = message.request, local[GROUPS].groups
        if not isinstance(request, COMMITS):
            return super().verified_append(local, message, guard)
        if not local[LEADER[OFFSETS_PARTITION]].serves:
            return self.failed(local, OFFSETS_PARTITION, message, Error.NOT_COORDINATOR)
        error = group.check_commit(self.version.group, groups, request)
        if error is not Error.NONE:
            return self.reply(local, message, commit_response(request, error))
        local = local.put(GROUPS, GroupState(group.with_group(groups, request.group_id)))
        error = group.metadata_error(request)
        if error is not Error.NONE:
            return self.reply(local, message, commit_response(request, error))
        batch = group.commit_batch(request, now(local))
        return self.append(local, message, OFFSETS_PARTITION, batch, Origin.COORDINATOR, guard)

    def offset_fetch(self, local: Local, message: Request, request: OffsetFetchRequest) -> Effect:
        if not local[LEADER[OFFSETS_PARTITION]].serves:
            return self.reply(local, message, OffsetFetchResponse(Error.NOT_COORDINATOR))
        return self.reply(local, message, group.fetch_offset(local[GROUPS].groups, request))

    def join_group(self, local: Local, message: Request, request: JoinGroupRequest) -> Effect:
        if not local[LEADER[OFFSETS_PARTITION]].serves:
            return self.reply(local, message, JoinGroupResponse(Error.NOT_COORDINATOR))
        groups, answer = group.join_group(local[GROUPS].groups, request)
        return self.reply(local.put(GROUPS, GroupState(groups)), message, answer)

    def leave_group(self, local: Local, message: Request, request: LeaveGroupRequest) -> Effect:
        if not local[LEADER[OFFSETS_PARTITION]].serves:
            return self.reply(local, message, LeaveGroupResponse(Error.NOT_COORDINATOR))
        groups, answer = group.leave_group(local[GROUPS].groups, request)
        return self.reply(local.put(GROUPS, GroupState(groups)), message, answer)

    def partitions_deleted(self, local: Local, message: Request, request: PartitionsDeleted) -> Effect:
        """Append a tombstone for each offset of partitions that are gone (`onPartitionsDeleted`)."""
        before = local[GROUPS].groups
        if not local[LEADER[OFFSETS_PARTITION]].serves:
            return Effect(local)
        keys = before.offsets.of_partitions(request.partitions)
        batch = group.deletion_batch(keys, now(local))
        after = group.replayed(before, batch)
        kept = self.version.group.after_deletion(before, after).groups
        unused = tuple(group_id for group_id in after.groups if group_id not in kept)
        if not keys:
            return Effect(without_groups(local, unused))
        told = attrs.evolve(message, request=attrs.evolve(request, unused=unused))
        return self.append(local, told, OFFSETS_PARTITION, batch, Origin.COORDINATOR, NO_GUARD)

    def completed(self, local: Local, p: str, record: RecordBatch, callback: Request) -> Effect:
        if isinstance(callback.request, PartitionsDeleted):
            return Effect(without_groups(local, callback.request.unused))
        return super().completed(local, p, record, callback)

    def failed(self, local: Local, p: str, callback: Request, error: ErrorCode) -> Effect:
        if isinstance(callback.request, PartitionsDeleted):
            return Effect(local)
        return super().failed(local, p, callback, error)


def commit_response(
    request: TxnOffsetCommitRequest | OffsetCommitRequest, error: Error
) -> TxnOffsetCommitResponse | OffsetCommitResponse:
    """Return the answer to a commit, of a transaction or not."""
    is_of_transaction = isinstance(request, TxnOffsetCommitRequest)
    return TxnOffsetCommitResponse(error) if is_of_transaction else OffsetCommitResponse(error)


def without_groups(local: Local, names: Iterable[str]) -> Local:
    """Return the state without groups that nobody is in."""
    groups = local[GROUPS].groups
    gone = frozenset(names)
    left = FrozenMap(item for item in groups.groups.items() if item[0] not in gone or item[1].members)
    return local.put(GROUPS, GroupState(attrs.evolve(groups, groups=left)))
