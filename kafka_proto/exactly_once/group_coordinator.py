"""The coordinator of groups as a role of a broker: the leader of the offsets partition, which takes commits itself.

Decisions are those of `kafka_proto.group`. All that it knows is in the offsets log: it is loaded when it is committed,
and a commit counts when it is.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from harness.model import Local, Value
from kafka_proto.exactly_once.broker_state import GROUPS, LEADER, GroupState, LeaderState
from kafka_proto.exactly_once.messages import Request
from kafka_proto.exactly_once.other_brokers import OtherBrokers
from kafka_proto.exactly_once.partition_leader import PartitionLeader
from kafka_proto.exactly_once.transaction_coordinator import NOW
from kafka_proto.group import role as group
from kafka_proto.leader.state import NO_GUARD, Operation, Origin
from kafka_proto.log import RecordBatch
from kafka_proto.log.records import NO_SEQUENCE
from kafka_proto.requests import (
    OFFSETS_PARTITION,
    Error,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    WriteTxnMarkersRequest,
)
from kafka_proto.stack.roles import Effect
from kafka_proto.versions import BrokerVersion

COMMITS = (TxnOffsetCommitRequest, OffsetCommitRequest)


class GroupCoordinator(PartitionLeader):
    """The coordinator of one broker, of the groups whose partition it leads."""

    loads_at_once = False
    role = "group"

    def __init__(self, name: str, version: BrokerVersion, others: OtherBrokers) -> None:
        super().__init__(name, version, (OFFSETS_PARTITION,), others)
        self.parts = (*self.parts, GROUPS)
        self.handlers = {
            WriteTxnMarkersRequest: self.write_markers, TxnOffsetCommitRequest: self.txn_offset_commit,
            OffsetCommitRequest: self.offset_commit, OffsetFetchRequest: self.offset_fetch,
        }

    def partition_of(self, request: Any) -> str:
        return super().partition_of(request) if isinstance(request, WriteTxnMarkersRequest) else OFFSETS_PARTITION

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
            found = self.version.group.refused_commit(error)
            is_of_transaction = isinstance(request, TxnOffsetCommitRequest)
            return TxnOffsetCommitResponse(found) if is_of_transaction else OffsetCommitResponse(found)
        return super().response(request, error, offset)

    def unverified(self, request: Any, error: Error, operation: Operation) -> Value:
        return self.response(request, error, -1)

    def txn_offset_commit(self, local: Local, message: Request, request: TxnOffsetCommitRequest) -> Effect:
        """Verify, ask the group, append: in this order."""
        decisions, where = self.version.leader, LEADER[OFFSETS_PARTITION]
        if not local[where].serves:
            return self.failed(local, OFFSETS_PARTITION, message, Error.NOT_COORDINATOR)
        groups = self.version.group.before_check(local[GROUPS].groups, request.group_id)
        local = local.put(GROUPS, GroupState(groups))
        operation = decisions.operation("TxnOffsetCommit", request.version)
        if operation is None:
            return self.verified_append(local, message, NO_GUARD)
        producer = request.producer_id, request.producer_epoch
        started = decisions.start_verification(
            local[where].leader, *producer, NO_SEQUENCE, operation, decisions.has_open, now=NOW
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
        if not local[LEADER[OFFSETS_PARTITION]].serves:
            return self.failed(local, OFFSETS_PARTITION, message, Error.NOT_COORDINATOR)
        error = group.check_commit(self.version.group, groups, request)
        if error is not Error.NONE:
            answer = TxnOffsetCommitResponse if isinstance(request, TxnOffsetCommitRequest) else OffsetCommitResponse
            return self.reply(local, message, answer(error))
        local = local.put(GROUPS, GroupState(group.with_group(groups, request.group_id)))
        batch = group.commit_batch(request, NOW)
        return self.append(local, message, OFFSETS_PARTITION, batch, Origin.COORDINATOR, guard)

    def offset_fetch(self, local: Local, message: Request, request: OffsetFetchRequest) -> Effect:
        if not local[LEADER[OFFSETS_PARTITION]].serves:
            return self.reply(local, message, OffsetFetchResponse(Error.NOT_COORDINATOR))
        return self.reply(local, message, group.fetch_offset(local[GROUPS].groups, request))

