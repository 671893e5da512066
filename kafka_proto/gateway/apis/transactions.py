"""The requests of transactions, and those that only look at them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from kafka_proto.gateway.apis.asking import (
    NO_ERROR,
    answered,
    ask,
    each,
    named,
    not_coordinator,
    number,
    wrong_place,
)
from kafka_proto.gateway.broker import Broker, Token, Turn
from kafka_proto.gateway.codec import Fields
from kafka_proto.gateway.connection import Request
from kafka_proto.requests import (
    OFFSETS_PARTITION,
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    DescribeTransactionsRequest,
    EndTxnRequest,
    Error,
    InitProducerIdRequest,
    ListTransactionsRequest,
    WriteTxnMarkersRequest,
    partition_index,
    partition_name,
    topic_of,
)

THROWN = number(Error.UNSUPPORTED_VERSION)
"""What a coordinator throws is the answer to the whole of a request, where that has a code."""


def init_producer_id(broker: Broker, request: Request, token: Token) -> Turn:
    """Give out a producer id, or a new epoch of one."""
    message = request.message
    if wrong := not_coordinator(broker, message["transactional_id"]):
        return answered(broker, token, {"error_code": wrong, "producer_id": -1, "producer_epoch": -1})
    broker, response = ask(broker, InitProducerIdRequest(
        request.version, message["transactional_id"], message["transaction_timeout"], message.get("producer_id", -1),
        message.get("producer_epoch", -1)))
    return answered(broker, token, {"error_code": number(response.error), "producer_id": response.producer_id,
                                    "producer_epoch": response.producer_epoch})


def add_partitions_to_txn(broker: Broker, request: Request, token: Token) -> Turn:
    """Add partitions to a transaction; from version 4 on, which brokers send, to several, or only look."""
    message = request.message
    if request.version < 4:
        before = {name.removeprefix("v3_and_below_"): value for name, value in message.items()}
        broker, results = _add(broker, request.version, before)
        return answered(broker, token, {"results_by_topic_v3_and_below": results})
    found = []
    for transaction in message["transactions"]:
        broker, results = _add(broker, request.version, transaction)
        if any(row["partition_error_code"] == THROWN for topic in results for row in topic["results_by_partition"]):
            return answered(broker, token, {"error_code": THROWN, "results_by_transaction": ()})
        found.append({"transactional_id": transaction["transactional_id"], "topic_results": results})
    return answered(broker, token, {"error_code": NO_ERROR, "results_by_transaction": tuple(found)})


def _add(broker: Broker, version: int, transaction: Fields) -> tuple[Broker, tuple[Fields, ...]]:
    names = {named(topic["name"], index) for topic in transaction["topics"] for index in topic["partitions"]}
    if wrong := not_coordinator(broker, transaction["transactional_id"]):
        return broker, _added(transaction, dict.fromkeys(names, wrong))
    broker, response = ask(broker, AddPartitionsToTxnRequest(
        version, transaction["transactional_id"], transaction["producer_id"], transaction["producer_epoch"],
        tuple(sorted(names)), transaction.get("verify_only", False)))
    return broker, _added(transaction, {name: number(response.errors[name]) for name in names})


def _added(transaction: Fields, errors: Mapping[str, int]) -> tuple[Fields, ...]:
    return tuple(
        {"name": topic["name"], "results_by_partition": tuple(
            {"partition_index": index, "partition_error_code": errors[named(topic["name"], index)]}
            for index in topic["partitions"])}
        for topic in transaction["topics"])


def add_offsets_to_txn(broker: Broker, request: Request, token: Token) -> Turn:
    """Add a group's partition of the offsets topic to a transaction: here there is one."""
    message = request.message
    if wrong := not_coordinator(broker, message["transactional_id"]):
        return answered(broker, token, {"error_code": wrong, "producer_id": -1, "producer_epoch": -1})
    broker, response = ask(broker, AddOffsetsToTxnRequest(
        request.version, message["transactional_id"], message["producer_id"], message["producer_epoch"],
        OFFSETS_PARTITION))
    return answered(broker, token, {"error_code": number(response.error)})


def end_txn(broker: Broker, request: Request, token: Token) -> Turn:
    """Commit or abort a transaction."""
    message = request.message
    if wrong := not_coordinator(broker, message["transactional_id"]):
        return answered(broker, token, {"error_code": wrong, "producer_id": -1, "producer_epoch": -1})
    broker, response = ask(broker, EndTxnRequest(request.version, message["transactional_id"], message["producer_id"],
                                                 message["producer_epoch"], message["committed"]))
    return answered(broker, token, {"error_code": number(response.error), "producer_id": response.producer_id,
                                    "producer_epoch": response.producer_epoch})


def write_txn_markers(broker: Broker, request: Request, token: Token) -> Turn:
    """Write markers to partitions, as an operator who ends a hanging transaction does."""
    found = []
    for marker in request.message["markers"]:
        names = {named(topic["name"], index) for topic in marker["topics"]
                 for index in topic["partition_indexes"]}
        broker, response = ask(broker, WriteTxnMarkersRequest(
            request.version, marker["producer_id"], marker["producer_epoch"], marker["coordinator_epoch"],
            marker["transaction_result"], tuple(sorted(names)), marker.get("transaction_version", 0)))
        errors = dict(response.errors)
        topics = tuple({"name": topic["name"], "partitions": tuple(
            {"partition_index": index, "error_code": number(errors[named(topic["name"], index)])}
            for index in topic["partition_indexes"])} for topic in marker["topics"])
        found.append({"producer_id": marker["producer_id"], "topics": topics})
    return answered(broker, token, {"markers": tuple(found)})


def describe_producers(broker: Broker, request: Request, token: Token) -> Turn:
    """Say what partitions know of producers: epoch, last sequence, where an open transaction begins."""

    def one(broker: Broker, topic: str, index: Any) -> tuple[Broker, Fields]:
        if wrong := wrong_place(broker, topic, index):
            return broker, {"partition_index": index, "error_code": wrong}
        producers = broker.node.leaders[partition_name(topic, index)].log.producers
        return broker, {"partition_index": index, "error_code": NO_ERROR, "active_producers": tuple(
            {"producer_id": producer, "producer_epoch": known.producer_epoch, "last_sequence": known.last_sequence,
             "last_timestamp": known.last_timestamp, "coordinator_epoch": known.coordinator_epoch,
             "current_txn_start_offset": -1 if known.open_from is None else known.open_from}
            for producer, known in producers.items())}

    broker, found = each(broker, request.message["topics"], "partition_indexes", one)
    return answered(broker, token, {"topics": tuple({"name": t, "partitions": results} for t, results in found)})


def describe_transactions(broker: Broker, request: Request, token: Token) -> Turn:
    """Say in which state transactional ids are."""
    found = []
    for tid in request.message["transactional_ids"]:
        if wrong := not_coordinator(broker, tid):
            found.append({"error_code": wrong, "transactional_id": tid})
            continue
        broker, known = ask(broker, DescribeTransactionsRequest(request.version, tid))
        fields = attrs.asdict(known)
        found.append({
            "error_code": number(known.error), "transactional_id": tid, "transaction_state": known.state,
            "transaction_timeout": known.transaction_timeout_ms, "transaction_start_time": fields[
                "transaction_start_time_ms"], "producer_id": known.producer_id, "producer_epoch": known.producer_epoch,
            "topics": tuple({"topic": topic, "partitions": tuple(
                partition_index(name) for name in known.partitions if topic_of(name) == topic)}
                for topic in sorted({topic_of(name) for name in known.partitions})),
        })
    return answered(broker, token, {"transaction_states": tuple(found)})


def list_transactions(broker: Broker, request: Request, token: Token) -> Turn:
    """List transactional ids with their states."""
    message = request.message
    broker, known = ask(broker, ListTransactionsRequest(
        request.version, tuple(message["state_filters"]), tuple(message["producer_id_filters"]),
        message.get("duration_filter", -1)))
    return answered(broker, token, {
        "error_code": number(known.error), "unknown_state_filters": known.unknown_state_filters,
        "transaction_states": tuple({"transactional_id": tid, "producer_id": producer, "transaction_state": state}
                                    for tid, producer, state in known.transactions),
    })
