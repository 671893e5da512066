"""The requests of transactions, and those that only look at them."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any

import attrs

from kafka_proto.gateway.codec import Fields
from kafka_proto.gateway.connection import WireRequest
from kafka_proto.gateway.context import (
    NO_ERROR,
    AskedBroker,
    Handling,
    Reply,
    ask,
    each,
    named,
    not_coordinator,
    number,
    wrong_place,
)
from kafka_proto.requests import (
    OFFSETS_PARTITION,
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    DescribeProducersRequest,
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


def init_producer_id(here: AskedBroker, request: WireRequest) -> Handling:
    """Give out a producer id, or a new epoch of one."""
    message = request.message
    if wrong := not_coordinator(here, message["transactional_id"]):
        return Reply({"error_code": wrong, "producer_id": -1, "producer_epoch": -1})
    response = yield from ask(InitProducerIdRequest(
        request.version, message["transactional_id"], message["transaction_timeout"], message.get("producer_id", -1),
        message.get("producer_epoch", -1)))
    return Reply({"error_code": number(response.error), "producer_id": response.producer_id,
                                    "producer_epoch": response.producer_epoch})


def add_partitions_to_txn(here: AskedBroker, request: WireRequest) -> Handling:
    """Add partitions to a transaction; from version 4 on, which brokers send, to several, or only look."""
    message = request.message
    if request.version < 4:
        before = {name.removeprefix("v3_and_below_"): value for name, value in message.items()}
        results = yield from _add(here, request.version, before)
        return Reply({"results_by_topic_v3_and_below": results})
    found = []
    for transaction in message["transactions"]:
        results = yield from _add(here, request.version, transaction)
        if any(row["partition_error_code"] == THROWN for topic in results for row in topic["results_by_partition"]):
            return Reply({"error_code": THROWN, "results_by_transaction": ()})
        found.append({"transactional_id": transaction["transactional_id"], "topic_results": results})
    return Reply({"error_code": NO_ERROR, "results_by_transaction": tuple(found)})


def _add(
    here: AskedBroker, version: int, transaction: Fields
) -> Generator[tuple[object, ...], tuple[Any, ...], tuple[Fields, ...]]:
    names = {named(topic["name"], index) for topic in transaction["topics"] for index in topic["partitions"]}
    if wrong := not_coordinator(here, transaction["transactional_id"]):
        return _added(transaction, dict.fromkeys(names, wrong))
    response = yield from ask(AddPartitionsToTxnRequest(
        version, transaction["transactional_id"], transaction["producer_id"], transaction["producer_epoch"],
        tuple(sorted(names)), transaction.get("verify_only", False)))
    return _added(transaction, {name: number(response.errors[name]) for name in names})


def _added(transaction: Fields, errors: Mapping[str, int]) -> tuple[Fields, ...]:
    return tuple(
        {"name": topic["name"], "results_by_partition": tuple(
            {"partition_index": index, "partition_error_code": errors[named(topic["name"], index)]}
            for index in topic["partitions"])}
        for topic in transaction["topics"])


def add_offsets_to_txn(here: AskedBroker, request: WireRequest) -> Handling:
    """Add a group's partition of the offsets topic to a transaction: here there is one."""
    message = request.message
    if wrong := not_coordinator(here, message["transactional_id"]):
        return Reply({"error_code": wrong, "producer_id": -1, "producer_epoch": -1})
    response = yield from ask(AddOffsetsToTxnRequest(
        request.version, message["transactional_id"], message["producer_id"], message["producer_epoch"],
        OFFSETS_PARTITION))
    return Reply({"error_code": number(response.error)})


def end_txn(here: AskedBroker, request: WireRequest) -> Handling:
    """Commit or abort a transaction."""
    message = request.message
    if wrong := not_coordinator(here, message["transactional_id"]):
        return Reply({"error_code": wrong, "producer_id": -1, "producer_epoch": -1})
    response = yield from ask(EndTxnRequest(request.version, message["transactional_id"], message["producer_id"],
                                                 message["producer_epoch"], message["committed"]))
    return Reply({"error_code": number(response.error), "producer_id": response.producer_id,
                                    "producer_epoch": response.producer_epoch})


def write_txn_markers(here: AskedBroker, request: WireRequest) -> Handling:
    """Write markers to partitions, as an operator who ends a hanging transaction does."""
    found = []
    for marker in request.message["markers"]:
        names = {named(topic["name"], index) for topic in marker["topics"]
                 for index in topic["partition_indexes"]}
        response = yield from ask(WriteTxnMarkersRequest(
            request.version, marker["producer_id"], marker["producer_epoch"], marker["coordinator_epoch"],
            marker["transaction_result"], tuple(sorted(names)), marker.get("transaction_version", 0)))
        errors = dict(response.errors)
        topics = tuple({"name": topic["name"], "partitions": tuple(
            {"partition_index": index, "error_code": number(errors[named(topic["name"], index)])}
            for index in topic["partition_indexes"])} for topic in marker["topics"])
        found.append({"producer_id": marker["producer_id"], "topics": topics})
    return Reply({"markers": tuple(found)})


def describe_producers(here: AskedBroker, request: WireRequest) -> Handling:
    """Say what partitions know of producers: epoch, last sequence, where an open transaction begins."""

    def one(topic: str, index: Any) -> object:
        if wrong := wrong_place(here, topic, index):
            return {"partition_index": index, "error_code": wrong}
        return DescribeProducersRequest(request.version, partition_name(topic, index))

    def fields(topic: str, index: Any, response: Any) -> Fields:
        return {"partition_index": index, "error_code": number(response.error), "active_producers": tuple(
            {"producer_id": producer, "producer_epoch": known.producer_epoch, "last_sequence": known.last_sequence,
             "last_timestamp": known.last_timestamp, "coordinator_epoch": known.coordinator_epoch,
             "current_txn_start_offset": -1 if known.open_from is None else known.open_from}
            for producer, known in response.producers.items())}

    found = yield from each(request.message["topics"], "partition_indexes", one, fields)
    return Reply({"topics": tuple({"name": t, "partitions": results} for t, results in found)})


def describe_transactions(here: AskedBroker, request: WireRequest) -> Handling:
    """Say in which state transactional ids are."""
    found = []
    for tid in request.message["transactional_ids"]:
        if wrong := not_coordinator(here, tid):
            found.append({"error_code": wrong, "transactional_id": tid})
            continue
        known = yield from ask(DescribeTransactionsRequest(request.version, tid))
        fields = attrs.asdict(known)
        found.append({
            "error_code": number(known.error), "transactional_id": tid, "transaction_state": known.state,
            "transaction_timeout": known.transaction_timeout_ms, "transaction_start_time": fields[
                "transaction_start_time_ms"], "producer_id": known.producer_id, "producer_epoch": known.producer_epoch,
            "topics": tuple({"topic": topic, "partitions": tuple(
                partition_index(name) for name in known.partitions if topic_of(name) == topic)}
                for topic in sorted({topic_of(name) for name in known.partitions})),
        })
    return Reply({"transaction_states": tuple(found)})


def list_transactions(here: AskedBroker, request: WireRequest) -> Handling:
    """List transactional ids with their states."""
    message = request.message
    known = yield from ask(ListTransactionsRequest(
        request.version, tuple(message["state_filters"]), tuple(message["producer_id_filters"]),
        message.get("duration_filter", -1)))
    return Reply({
        "error_code": number(known.error), "unknown_state_filters": known.unknown_state_filters,
        "transaction_states": tuple({"transactional_id": tid, "producer_id": producer, "transaction_state": state}
                                    for tid, producer, state in known.transactions),
    })
