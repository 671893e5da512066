"""Offsets of groups as a role: commits go into the offsets log, of a transaction after they are verified.

What a group says of a commit is asked before it is appended. The log makes the offsets.
"""

from __future__ import annotations

from typing import Any

import attrs

from harness.model import Local, Value
from kafka_proto.broker.group import coordinator as group
from kafka_proto.broker.group.coordinator import GroupCoordinator
from kafka_proto.broker.leader.role import Handler, MarkerAnswers, PartitionLeader
from kafka_proto.broker.leader.verification import NO_GUARD, Origin, SupportedOperation
from kafka_proto.broker.messages import Request
from kafka_proto.broker.other_brokers import OtherBrokers
from kafka_proto.broker.parts import GROUPS, LEADER, exists, now
from kafka_proto.broker.roles import Effect
from kafka_proto.broker.versions import BrokerVersion
from kafka_proto.log import NO_SEQUENCE, RecordBatch
from kafka_proto.requests import (
    OFFSETS_PARTITION,
    Error,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)

COMMITS = (TxnOffsetCommitRequest, OffsetCommitRequest)


class OffsetsRole(PartitionLeader):
    """The leader of the offsets log of one broker: it takes commits, and tells offsets."""

    def __init__(
        self, name: str, version: BrokerVersion, topic_partitions: tuple[str, ...], others: OtherBrokers,
        marker_answers: MarkerAnswers,
    ) -> None:
        super().__init__(name, version, (OFFSETS_PARTITION,), others, marker_answers)
        self.topic_partitions = frozenset(topic_partitions)
        self.parts = (*self.parts, GROUPS)
        self.of_groups: dict[type, Handler] = {
            TxnOffsetCommitRequest: self.txn_offset_commit, OffsetCommitRequest: self.offset_commit,
            OffsetFetchRequest: self.offset_fetch,
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

    def committed(self, local: Local, p: str, record: RecordBatch) -> Local:
        groups = group.replayed(local[GROUPS].groups, record, self.version.group.replay)
        return with_groups(super().committed(local, p, record), groups)

    def response(self, request: Any, error: Error, offset: int, start: int | None = None) -> Value:
        if isinstance(request, COMMITS):
            return commit_response(request, self.version.group.refused_commit(error))
        return super().response(request, error, offset, start)

    def unverified(self, request: Any, error: Error, operation: SupportedOperation) -> Value:
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
        local = with_groups(local, groups)
        operation = decisions.operation("TxnOffsetCommit", request.version)
        if operation is None:
            return self.verified_append(local, message, NO_GUARD)
        producer = request.producer_id, request.producer_epoch
        started = decisions.start_verification(
            local[where], *producer, NO_SEQUENCE, operation, decisions.has_open, now=now(local)
        )
        if started.error is not Error.NONE:
            return self.failed(local, OFFSETS_PARTITION, message, started.error)
        local = local.put(where, started.leader)
        return self.verify(local, message, OFFSETS_PARTITION, producer, "TxnOffsetCommit", started.guard)

    def offset_commit(self, local: Local, message: Request, request: OffsetCommitRequest) -> Effect:
        return self.verified_append(local, message, NO_GUARD)

    def verified_append(self, local: Local, message: Request, guard: int) -> Effect:
        """Append a commit to the offsets log if the group takes it."""
        request, groups = message.request, local[GROUPS].groups
        if not isinstance(request, COMMITS):
            return super().verified_append(local, message, guard)
        if not local[LEADER[OFFSETS_PARTITION]].serves:
            return self.failed(local, OFFSETS_PARTITION, message, Error.NOT_COORDINATOR)
        error = self.version.group.check_group(groups.groups.get(request.group_id), request)
        if error is not Error.NONE:
            return self.reply(local, message, commit_response(request, error))
        local = with_groups(local, group.after_commit(groups, request, now(local)))
        error = group.metadata_error(request)
        if error is not Error.NONE:
            return self.reply(local, message, commit_response(request, error))
        batch = group.commit_batch(request, now(local), message.transaction or None)
        return self.append(local, message, OFFSETS_PARTITION, batch, Origin.COORDINATOR, guard)

    def offset_fetch(self, local: Local, message: Request, request: OffsetFetchRequest) -> Effect:
        if not local[LEADER[OFFSETS_PARTITION]].serves:
            return self.reply(local, message, OffsetFetchResponse(Error.NOT_COORDINATOR))
        return self.reply(local, message, group.fetch_offset(local[GROUPS].groups, request))


def with_groups(local: Local, groups: GroupCoordinator) -> Local:
    """Return the state with other groups and offsets."""
    return local.put(GROUPS, attrs.evolve(local[GROUPS], groups=groups))


def commit_response(
    request: TxnOffsetCommitRequest | OffsetCommitRequest, error: Error
) -> TxnOffsetCommitResponse | OffsetCommitResponse:
    """Return the answer to a commit, of a transaction or not."""
    is_of_transaction = isinstance(request, TxnOffsetCommitRequest)
    return TxnOffsetCommitResponse(error) if is_of_transaction else OffsetCommitResponse(error)
