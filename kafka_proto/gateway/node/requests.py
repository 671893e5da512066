"""Which role of a node answers a request, and what it asks of the others on the way."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import attrs

from kafka_proto.broker.coordinator.answers import describe, list_transactions, refused_partitions
from kafka_proto.broker.group import coordinator as group
from kafka_proto.broker.group.membership import CommitRequest
from kafka_proto.broker.leader import fetching
from kafka_proto.broker.leader.admission import admit, lacks_transactional_id, refusal
from kafka_proto.broker.leader.state import NO_GUARD, Leader, Operation, Origin
from kafka_proto.broker.leader.verification import verification_request
from kafka_proto.gateway.node.state import Node
from kafka_proto.gateway.node.topics import create_topic, delete_topic
from kafka_proto.gateway.node.work import append_to, ask_coordinator, write_markers
from kafka_proto.log import PartitionLog, RecordBatch
from kafka_proto.log.records import NO_SEQUENCE
from kafka_proto.requests import (
    OFFSETS_PARTITION,
    TRANSACTION_PARTITION,
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    ConsumerFetchRequest,
    ConsumerFetchResponse,
    CreateTopicsRequest,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteTopicsRequest,
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

Answered = tuple[Node, object]
"""A node with what a request changed in it, and the response."""


def answer_of(node: Node, request: object) -> Answered:
    """Answer a request. Raises TypeError for one that no role knows."""
    answer = ANSWERS.get(type(request))
    if answer is None:
        raise TypeError(f"a broker does not answer {type(request).__name__}")
    return answer(node, request)


def _add_partitions(node: Node, request: AddPartitionsToTxnRequest) -> tuple[Node, AddPartitionsToTxnResponse]:
    there = frozenset(p for p in request.partitions if p in node.leaders or p == TRANSACTION_PARTITION)
    refused = refused_partitions(request, there)
    if refused is not None:
        return node, refused
    if not request.verify_only:
        node, response = ask_coordinator(node, request)
        assert isinstance(response, AddPartitionsToTxnResponse)
        return node, response
    cached = node.coordinator.transactions.get(request.transactional_id)
    return node, AddPartitionsToTxnResponse(node.version.coordinator.verify_partitions(request, cached))


def _ask_about(node: Node, request: ProduceRequest | TxnOffsetCommitRequest, name: str, asks: Operation,
               producer: tuple[int, int]) -> tuple[Node, Error]:
    """Ask the coordinator whether a partition is part of a transaction, or to make it so."""
    assert request.transactional_id is not None
    if not node.reaches_coordinator:
        return node, node.version.leader.unverified(Error.NETWORK_EXCEPTION, asks)
    node, response = _add_partitions(node, verification_request(asks, request.transactional_id, *producer, name))
    return node, node.version.leader.unverified(response.errors[name], asks)


def _produce(node: Node, request: ProduceRequest) -> Answered:
    name, batch, decisions = request.partition, request.batch, node.version.leader
    if lacks_transactional_id(request):
        return node, ProduceResponse(Error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    leader = Leader() if name == TRANSACTION_PARTITION else node.leaders.get(name)
    if leader is None:
        return node, ProduceResponse(Error.UNKNOWN_TOPIC_OR_PARTITION)
    admitted = admit(decisions, leader, request, now=node.now)
    if admitted.error is not Error.NONE:
        return node, ProduceResponse(admitted.error)
    if name in node.leaders:
        node = attrs.evolve(node, leaders=node.leaders.set(name, admitted.leader))
    if admitted.asks is not None:
        producer = batch.producer_id, batch.producer_epoch
        node, error = _ask_about(node, request, name, admitted.asks, producer)
        if error is not Error.NONE:
            return node, ProduceResponse(decisions.unverified_produce(error, admitted.asks))
    refused = refusal(request)
    if refused is not Error.NONE:
        return node, ProduceResponse(refused)
    stamped = batch if batch.timestamp >= 0 else attrs.evolve(batch, timestamp=node.now)
    node, error, offset = append_to(node, name, stamped, Origin.CLIENT, admitted.guard)
    return node, ProduceResponse(error, offset, node.leaders[name].log.log_start_offset)


def _write_markers(node: Node, request: WriteTxnMarkersRequest) -> Answered:
    node, errors = write_markers(node, request)
    return node, WriteTxnMarkersResponse(errors)


def _txn_offset_commit(node: Node, request: TxnOffsetCommitRequest) -> Answered:
    """Verify, ask the group, append: in this order (`scheduleTransactionalWriteOperation`)."""
    decisions, guard = node.version.leader, NO_GUARD
    if request.partition not in node.leaders:
        return node, TxnOffsetCommitResponse(Error.UNKNOWN_TOPIC_OR_PARTITION)
    if not request.group_id:
        return node, TxnOffsetCommitResponse(Error.INVALID_GROUP_ID)
    node = attrs.evolve(node, groups=node.version.group.before_check(node.groups, request.group_id))
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
            return node, TxnOffsetCommitResponse(node.version.group.refused_commit(error))
    node, error = _commit(node, request, guard)
    return node, TxnOffsetCommitResponse(error)


def _offset_commit(node: Node, request: OffsetCommitRequest) -> Answered:
    if request.partition not in node.leaders:
        return node, OffsetCommitResponse(Error.UNKNOWN_TOPIC_OR_PARTITION)
    node, error = _commit(node, request, NO_GUARD)
    return node, OffsetCommitResponse(error)


def _commit(node: Node, request: CommitRequest, guard: int) -> tuple[Node, Error]:
    """Append a commit to the offsets log if its group takes it, and return what its client is told."""
    error = group.check_commit(node.version.group, node.groups, request)
    if error is not Error.NONE:
        return node, error
    node = attrs.evolve(node, groups=group.with_group(node.groups, request.group_id))
    error = group.metadata_error(request)
    if error is not Error.NONE:
        return node, error
    batch = group.commit_batch(request, node.now)
    node, error, _ = append_to(node, OFFSETS_PARTITION, batch, Origin.COORDINATOR, guard)
    return node, node.version.group.refused_commit(error)


def _join(node: Node, request: JoinGroupRequest) -> Answered:
    groups, response = group.join_group(node.groups, request)
    return attrs.evolve(node, groups=groups), response


def _leave(node: Node, request: LeaveGroupRequest) -> Answered:
    groups, response = group.leave_group(node.groups, request)
    return attrs.evolve(node, groups=groups), response


def _log_of(node: Node, name: str) -> PartitionLog | None:
    return node.leaders[name].log if name in node.leaders else None


def _fetch(node: Node, request: ConsumerFetchRequest) -> Answered:
    log = _log_of(node, request.partition)
    unknown = ConsumerFetchResponse(Error.UNKNOWN_TOPIC_OR_PARTITION)
    return node, unknown if log is None else fetching.fetch(log, request)


def list_offsets(
    node: Node, request: ListOffsetsRequest, times: Callable[[RecordBatch], Iterable[int]] = fetching.written_together
) -> ListOffsetsResponse:
    """Look an offset up, as the node's version does; `times` are the time stamps of a batch's records."""
    log = _log_of(node, request.partition)
    if log is None:
        return ListOffsetsResponse(Error.UNKNOWN_TOPIC_OR_PARTITION)
    return fetching.list_offsets(log, request, node.version.leader.check_time, times)


def _delete_records(node: Node, request: DeleteRecordsRequest) -> Answered:
    log = _log_of(node, request.partition)
    if log is None:
        return node, DeleteRecordsResponse(Error.UNKNOWN_TOPIC_OR_PARTITION)
    shorter, response = fetching.delete(log, request, node.version.leader.after_deletion)
    leader = attrs.evolve(node.leaders[request.partition], log=shorter)
    return attrs.evolve(node, leaders=node.leaders.set(request.partition, leader)), response


ANSWERS: dict[type, Callable[[Node, Any], Answered]] = {
    InitProducerIdRequest: ask_coordinator,
    AddPartitionsToTxnRequest: _add_partitions,
    AddOffsetsToTxnRequest: ask_coordinator,
    EndTxnRequest: ask_coordinator,
    DescribeTransactionsRequest: lambda node, request: (node, describe(node.coordinator, request)),
    ListTransactionsRequest: lambda node, request: (
        node, list_transactions([node.coordinator], request, now=node.now)),
    ProduceRequest: _produce,
    WriteTxnMarkersRequest: _write_markers,
    ConsumerFetchRequest: _fetch,
    ListOffsetsRequest: lambda node, request: (node, list_offsets(node, request)),
    DeleteRecordsRequest: _delete_records,
    TxnOffsetCommitRequest: _txn_offset_commit,
    OffsetCommitRequest: _offset_commit,
    OffsetFetchRequest: lambda node, request: (node, group.fetch_offset(node.groups, request)),
    JoinGroupRequest: _join,
    LeaveGroupRequest: _leave,
    CreateTopicsRequest: create_topic,
    DeleteTopicsRequest: delete_topic,
}
