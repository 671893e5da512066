"""Which role of a node answers a request, and what it asks of the others on the way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs

from harness.model import FrozenMap
from kafka_proto.broker.state import Node
from kafka_proto.broker.work import append_to, ask_coordinator, write_markers
from kafka_proto.coordinator.answers import describe, list_transactions, unknown_partitions
from kafka_proto.group import role as group
from kafka_proto.leader import fetching
from kafka_proto.leader.role import admit
from kafka_proto.leader.state import NO_GUARD, Operation, Origin
from kafka_proto.leader.verification import verification_request
from kafka_proto.log import PartitionLog
from kafka_proto.log.records import NO_SEQUENCE
from kafka_proto.requests import (
    OFFSETS_PARTITION,
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    ConsumerFetchRequest,
    ConsumerFetchResponse,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DescribeTransactionsRequest,
    EndTxnRequest,
    Error,
    InitProducerIdRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListTransactionsRequest,
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


@attrs.frozen
class Carried:
    """A node with what a request changed in it, and the response."""

    node: Node
    response: object


def answer_of(node: Node, request: object) -> Carried:
    """Answer a request. Raises TypeError for one that no role knows."""
    answer = ANSWERS.get(type(request))
    if answer is None:
        raise TypeError(f"a broker does not answer {type(request).__name__}")
    return answer(node, request)


def _coordinator(node: Node, request: Any) -> Carried:
    return Carried(*ask_coordinator(node, request))


def _add_partitions(node: Node, request: AddPartitionsToTxnRequest) -> Carried:
    refused = unknown_partitions(request, frozenset(node.leaders))
    if refused is not None:
        return Carried(node, refused)
    if not request.verify_only:
        return _coordinator(node, request)
    cached = node.coordinator.transactions.get(request.transactional_id)
    return Carried(node, AddPartitionsToTxnResponse(node.version.coordinator.verify_partitions(request, cached)))


def _ask_about(node: Node, request: ProduceRequest | TxnOffsetCommitRequest, name: str, asks: Operation,
               producer: tuple[int, int]) -> tuple[Node, Error]:
    """Ask the coordinator whether a partition is part of a transaction, or to make it so."""
    assert request.transactional_id is not None
    carried = _add_partitions(node, verification_request(asks, request.transactional_id, *producer, name))
    assert isinstance(carried.response, AddPartitionsToTxnResponse)
    return carried.node, node.version.leader.unverified(carried.response.errors[name], asks)


def _produce(node: Node, request: ProduceRequest) -> Carried:
    name, batch, decisions = request.partition, request.batch, node.version.leader
    if name not in node.leaders:
        return Carried(node, ProduceResponse(Error.UNKNOWN_TOPIC_OR_PARTITION))
    admitted = admit(decisions, node.leaders[name], request, now=node.now)
    if admitted.error is not Error.NONE:
        return Carried(node, ProduceResponse(admitted.error))
    node = attrs.evolve(node, leaders=node.leaders.set(name, admitted.leader))
    if admitted.asks is not None:
        producer = batch.producer_id, batch.producer_epoch
        node, error = _ask_about(node, request, name, admitted.asks, producer)
        if error is not Error.NONE:
            return Carried(node, ProduceResponse(decisions.unverified_produce(error, admitted.asks)))
    stamped = batch if batch.timestamp >= 0 else attrs.evolve(batch, timestamp=node.now)
    node, error, offset = append_to(node, name, stamped, Origin.CLIENT, admitted.guard)
    return Carried(node, ProduceResponse(error, offset))


def _write_markers(node: Node, request: WriteTxnMarkersRequest) -> Carried:
    node, errors = write_markers(node, request)
    return Carried(node, WriteTxnMarkersResponse(FrozenMap(errors)))


def _txn_offset_commit(node: Node, request: TxnOffsetCommitRequest) -> Carried:
    """Verify, ask the group, append: in this order (`scheduleTransactionalWriteOperation`)."""
    decisions, guard = node.version.leader, NO_GUARD
    if request.partition not in node.leaders:
        return Carried(node, TxnOffsetCommitResponse(Error.UNKNOWN_TOPIC_OR_PARTITION))
    if not request.group_id:
        return Carried(node, TxnOffsetCommitResponse(Error.INVALID_GROUP_ID))
    operation = decisions.operation("TxnOffsetCommit", request.version)
    if operation is not None:
        started = decisions.start_verification(
            node.leaders[OFFSETS_PARTITION], request.producer_id, request.producer_epoch, NO_SEQUENCE, operation,
            decisions.has_open, now=node.now,
        )
        error, guard = started.error, started.guard
        node = attrs.evolve(node, leaders=node.leaders.set(OFFSETS_PARTITION, started.leader))
        if error is Error.NONE and guard != NO_GUARD:
            producer = request.producer_id, request.producer_epoch
            node, error = _ask_about(node, request, OFFSETS_PARTITION, operation, producer)
        if error is not Error.NONE:
            return Carried(node, TxnOffsetCommitResponse(node.version.group.refused_commit(error)))
    error = group.check_commit(node.version.group, node.groups, request)
    if error is not Error.NONE:
        return Carried(node, TxnOffsetCommitResponse(error))
    node = attrs.evolve(node, groups=group.with_group(node.groups, request.group_id))
    batch = group.commit_batch(request, node.now)
    node, error, _ = append_to(node, OFFSETS_PARTITION, batch, Origin.COORDINATOR, guard)
    return Carried(node, TxnOffsetCommitResponse(node.version.group.refused_commit(error)))


def _offset_commit(node: Node, request: OffsetCommitRequest) -> Carried:
    if request.partition not in node.leaders:
        return Carried(node, OffsetCommitResponse(Error.UNKNOWN_TOPIC_OR_PARTITION))
    error = group.check_commit(node.version.group, node.groups, request)
    if error is not Error.NONE:
        return Carried(node, OffsetCommitResponse(error))
    node = attrs.evolve(node, groups=group.with_group(node.groups, request.group_id))
    batch = group.commit_batch(request, node.now)
    node, error, _ = append_to(node, OFFSETS_PARTITION, batch, Origin.COORDINATOR, NO_GUARD)
    return Carried(node, OffsetCommitResponse(node.version.group.refused_commit(error)))


def _offset_fetch(node: Node, request: OffsetFetchRequest) -> Carried:
    return Carried(node, group.fetch_offset(node.groups, request))


def _join(node: Node, request: JoinGroupRequest) -> Carried:
    groups, response = group.join_group(node.groups, request)
    return Carried(attrs.evolve(node, groups=groups), response)


def _leave(node: Node, request: LeaveGroupRequest) -> Carried:
    groups, response = group.leave_group(node.groups, request)
    return Carried(attrs.evolve(node, groups=groups), response)


def _log_of(node: Node, name: str) -> PartitionLog | None:
    return node.leaders[name].log if name in node.leaders else None


def _fetch(node: Node, request: ConsumerFetchRequest) -> Carried:
    log = _log_of(node, request.partition)
    unknown = ConsumerFetchResponse(Error.UNKNOWN_TOPIC_OR_PARTITION)
    return Carried(node, unknown if log is None else fetching.fetch(log, request))


def _list_offsets(node: Node, request: ListOffsetsRequest) -> Carried:
    log = _log_of(node, request.partition)
    unknown = ListOffsetsResponse(Error.UNKNOWN_TOPIC_OR_PARTITION)
    return Carried(node, unknown if log is None else fetching.list_offsets(log, request))


def _delete_records(node: Node, request: DeleteRecordsRequest) -> Carried:
    log = _log_of(node, request.partition)
    if log is None:
        return Carried(node, DeleteRecordsResponse(Error.UNKNOWN_TOPIC_OR_PARTITION))
    shorter, response = fetching.delete(log, request, node.version.leader.after_deletion)
    leader = attrs.evolve(node.leaders[request.partition], log=shorter)
    return Carried(attrs.evolve(node, leaders=node.leaders.set(request.partition, leader)), response)


def _describe(node: Node, request: DescribeTransactionsRequest) -> Carried:
    return Carried(node, describe(node.coordinator, request))


def _list(node: Node, request: ListTransactionsRequest) -> Carried:
    return Carried(node, list_transactions(node.coordinator, request))


ANSWERS: dict[type, Callable[[Node, Any], Carried]] = {
    InitProducerIdRequest: _coordinator,
    AddPartitionsToTxnRequest: _add_partitions,
    AddOffsetsToTxnRequest: _coordinator,
    EndTxnRequest: _coordinator,
    DescribeTransactionsRequest: _describe,
    ListTransactionsRequest: _list,
    ProduceRequest: _produce,
    WriteTxnMarkersRequest: _write_markers,
    ConsumerFetchRequest: _fetch,
    ListOffsetsRequest: _list_offsets,
    DeleteRecordsRequest: _delete_records,
    TxnOffsetCommitRequest: _txn_offset_commit,
    OffsetCommitRequest: _offset_commit,
    OffsetFetchRequest: _offset_fetch,
    JoinGroupRequest: _join,
    LeaveGroupRequest: _leave,
}
