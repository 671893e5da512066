"""A broker's leaders of partitions and its coordinator of groups: appends, verification, markers, fetches, offsets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs

from harness.model import FrozenMap, Local, Value
from kafka_proto.exactly_once.broker_state import COORDINATOR, GROUPS, LEADER, Asked, GroupState, LeaderState
from kafka_proto.exactly_once.coordinating import NOW, Done, ask
from kafka_proto.exactly_once.ghosts import Cause
from kafka_proto.exactly_once.messages import Request, Response
from kafka_proto.exactly_once.placement import Placement
from kafka_proto.group import role as group
from kafka_proto.leader import fetching
from kafka_proto.leader.marking import marker_of
from kafka_proto.leader.role import admit, append_batch, append_marker, replicated
from kafka_proto.leader.state import NO_GUARD, Leader, Operation, Origin
from kafka_proto.leader.verification import verification_request
from kafka_proto.log import Marker, RecordBatch
from kafka_proto.log.records import NO_SEQUENCE
from kafka_proto.requests import (
    OFFSETS_PARTITION,
    AddPartitionsToTxnResponse,
    Error,
    FetchRequest,
    FetchResponse,
    IsolationLevel,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchRequest,
    ProduceRequest,
    ProduceResponse,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from kafka_proto.versions import BrokerVersion


@attrs.frozen
class Serving:
    """The leaders and the group coordinator of one broker."""

    name: str
    version: BrokerVersion
    placement: Placement

    def received(self, local: Local, message: Request) -> Done:
        """Answer a request. Raises KeyError for one that no role knows."""
        handlers: dict[type, Callable[[Local, Request, Any], Done]] = {
            ProduceRequest: self.produce,
            WriteTxnMarkersRequest: self.write_markers,
            FetchRequest: self.fetch,
            TxnOffsetCommitRequest: self.txn_offset_commit,
            OffsetCommitRequest: self.offset_commit,
            OffsetFetchRequest: self.offset_fetch,
        }
        return handlers[type(message.request)](local, message, message.request)

    def reply(self, local: Local, message: Request, response: Value) -> Done:
        return local, (
            Response(response, message.correlation, message.connection, source=self.name, dest=message.source),
        )

    def produce(self, local: Local, message: Request, request: ProduceRequest) -> Done:
        """Append a batch, after the coordinator is asked where the version wants that."""
        where, decisions = LEADER[request.partition], self.version.leader
        if where not in local:
            return self.reply(local, message, ProduceResponse(Error.NOT_LEADER_OR_FOLLOWER))
        admitted = admit(decisions, local[where].leader, request, now=NOW)
        if admitted.error is not Error.NONE:
            return self.reply(local, message, ProduceResponse(admitted.error))
        local = local.put(where, LeaderState.of(admitted.leader))
        if admitted.asks is not None:
            producer = request.batch.producer_id, request.batch.producer_epoch
            return self.verify(local, message, request.partition, producer, admitted.asks, admitted.guard)
        return self.append_produced(local, message, request, NO_GUARD)

    def append_produced(self, local: Local, message: Request, request: ProduceRequest, guard: int) -> Done:
        local, error, offset = self.append(local, request.partition, request.batch, Origin.CLIENT, guard)
        return self.reply(local, message, ProduceResponse(error, offset))

    def verify(
        self, local: Local, message: Request, partition: str, producer: tuple[int, int], operation: Operation,
        guard: int,
    ) -> Done:
        """Ask the coordinator whether a partition is part of a transaction, or to make it so."""
        tid = message.request.transactional_id
        request = verification_request(operation, tid, *producer, partition)
        local, asked = ask(
            self.name, local, self.placement.coordinator(tid), request, message.transaction,
            client=message, guard=guard, operation=operation,
        )
        return local, (asked,)

    def verified(self, local: Local, message: Request) -> Done:
        """Answer a leader's question about a transaction, as its coordinator."""
        mine, request = local[COORDINATOR], message.request
        if mine.cache.loading:
            errors = dict.fromkeys(request.partitions, Error.COORDINATOR_LOAD_IN_PROGRESS)
            return self.reply(local, message, AddPartitionsToTxnResponse(FrozenMap(errors)))
        cached = mine.cache.transactions.get(request.transactional_id)
        answer = self.version.coordinator.verify_partitions(request, cached)
        return self.reply(local, message, AddPartitionsToTxnResponse(answer))

    def verification_answered(self, local: Local, asked: Asked, response: AddPartitionsToTxnResponse) -> Done:
        """Go on with the client's request that waited."""
        message, decisions, operation = asked.client, self.version.leader, asked.operation
        assert message is not None and operation is not None
        (found,) = response.errors.values()
        error = decisions.unverified(found, operation)
        request = message.request
        if isinstance(request, TxnOffsetCommitRequest):
            if error is not Error.NONE:
                refused = self.version.group.refused_commit(error)
                return self.reply(local, message, TxnOffsetCommitResponse(refused))
            return self.append_offsets(local, message, request, asked.guard)
        if error is not Error.NONE:
            return self.reply(local, message, ProduceResponse(decisions.unverified_produce(error, operation)))
        return self.append_produced(local, message, request, asked.guard)

    def write_markers(self, local: Local, message: Request, request: WriteTxnMarkersRequest) -> Done:
        """Append the markers of one transaction to each of the partitions."""
        errors = {}
        for name in request.partitions:
            where = LEADER[name]
            marker = marked_by(request, message.transaction)
            leader, errors[name] = append_marker(
                self.version.leader, local[where].leader, marker, request.transaction_version
            )
            if errors[name] is Error.NONE:
                local = self.committed(local, name, leader)
        return self.reply(local, message, WriteTxnMarkersResponse(tuple(sorted(errors.items()))))

    def has_news(self, local: Local, request: FetchRequest) -> bool:
        """Say whether there is something to answer a fetch with; until then it waits (`DelayedFetch`)."""
        where = LEADER[request.partition]
        if where not in local:
            return True
        log = local[where].log
        committed = request.isolation_level is IsolationLevel.READ_COMMITTED
        return request.fetch_offset != (log.last_stable_offset if committed else log.high_watermark)

    def fetch(self, local: Local, message: Request, request: FetchRequest) -> Done:
        where = LEADER[request.partition]
        if where not in local:
            return self.reply(local, message, FetchResponse(Error.NOT_LEADER_OR_FOLLOWER))
        return self.reply(local, message, fetching.fetch(local[where].log, request))

    def txn_offset_commit(self, local: Local, message: Request, request: TxnOffsetCommitRequest) -> Done:
        """Verify, ask the group, append: in this order."""
        decisions, where = self.version.leader, LEADER[OFFSETS_PARTITION]
        if where not in local:
            return self.reply(local, message, TxnOffsetCommitResponse(Error.NOT_COORDINATOR))
        operation = decisions.operation("TxnOffsetCommit", request.version)
        if operation is None:
            return self.append_offsets(local, message, request, NO_GUARD)
        producer = request.producer_id, request.producer_epoch
        started = decisions.start_verification(
            local[where].leader, *producer, NO_SEQUENCE, operation, decisions.has_open, now=NOW
        )
        if started.error is not Error.NONE:
            refused = self.version.group.refused_commit(started.error)
            return self.reply(local, message, TxnOffsetCommitResponse(refused))
        local = local.put(where, LeaderState.of(started.leader))
        if started.guard == NO_GUARD:
            return self.append_offsets(local, message, request, NO_GUARD)
        return self.verify(local, message, OFFSETS_PARTITION, producer, operation, started.guard)

    def append_offsets(self, local: Local, message: Request, request: TxnOffsetCommitRequest, guard: int) -> Done:
        local, error = self.commit_offsets(local, request, guard)
        return self.reply(local, message, TxnOffsetCommitResponse(error))

    def offset_commit(self, local: Local, message: Request, request: OffsetCommitRequest) -> Done:
        local, error = self.commit_offsets(local, request, NO_GUARD)
        return self.reply(local, message, OffsetCommitResponse(error))

    def commit_offsets(
        self, local: Local, request: TxnOffsetCommitRequest | OffsetCommitRequest, guard: int
    ) -> tuple[Local, Error]:
        """Append a commit to the offsets log if the group takes it."""
        decisions, groups = self.version.group, local[GROUPS].groups
        error = group.check_commit(decisions, groups, request)
        if error is not Error.NONE:
            return local, error
        local = local.put(GROUPS, GroupState(group.with_group(groups, request.group_id)))
        batch = group.commit_batch(request, NOW)
        local, error, _ = self.append(local, OFFSETS_PARTITION, batch, Origin.COORDINATOR, guard)
        return local, decisions.refused_commit(error)

    def offset_fetch(self, local: Local, message: Request, request: OffsetFetchRequest) -> Done:
        return self.reply(local, message, group.fetch_offset(local[GROUPS].groups, request))

    def append(
        self, local: Local, name: str, batch: RecordBatch, origin: Origin, guard: int
    ) -> tuple[Local, Error, int]:
        """Append a batch to a partition: its error, or the offset that it has."""
        before = local[LEADER[name]]
        leader, checked = append_batch(self.version.leader, before.leader, batch, origin, guard)
        local = self.committed(local, name, leader) if checked.appends else local
        return local, *checked.answer(before.log)

    def committed(self, local: Local, name: str, leader: Leader) -> Local:
        """Commit what was appended: the log is atomic. The group coordinator replays what is in the offsets log."""
        local = local.put(LEADER[name], LeaderState.of(replicated(leader)))
        if name != OFFSETS_PARTITION:
            return local
        return local.put(GROUPS, GroupState(group.with_last_batch(local[GROUPS].groups, leader.log)))


def marked_by(request: WriteTxnMarkersRequest, transaction: str) -> RecordBatch:
    """Return the marker to append; its record tells the ghost of who caused it."""
    kind = Marker.COMMIT if request.committed else Marker.ABORT
    return attrs.evolve(marker_of(request, NOW), records=(Cause(kind, transaction),))
