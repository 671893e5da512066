"""The requests of transactions, and those that only look at them."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from typing import Any

from kafka_proto import requests
from kafka_proto.gateway.codec import Fields
from kafka_proto.gateway.connection import WireRequest
from kafka_proto.gateway.context import (
    NO_ERROR,
    AskedBroker,
    Handling,
    answering,
    ask,
    asking,
    at_leader,
    by_topic,
    each,
    named,
    number,
    told,
)
from kafka_proto.requests import Error

THROWN = number(Error.UNSUPPORTED_VERSION)
"""The exception of a coordinator is the answer to the whole request, if that has a code."""

init_producer_id = answering(requests.InitProducerIdRequest)
add_offsets_to_txn = answering(requests.AddOffsetsToTxnRequest, partition=requests.OFFSETS_PARTITION)
"""A group's partition of the offsets topic: here there is one."""
end_txn = answering(requests.EndTxnRequest)


def add_partitions_to_txn(here: AskedBroker, request: WireRequest) -> Handling:
    """Add partitions to a transaction; from version 4 on, which brokers send, to several, or only look."""
    if request.version < 4:
        before = {name.removeprefix("v3_and_below_"): value for name, value in request.message.items()}
        return {"results_by_topic_v3_and_below": (yield from _added(request, before))}
    found = []
    for transaction in request.message["transactions"]:
        results = yield from _added(request, transaction)
        if any(row["partition_error_code"] == THROWN for topic in results for row in topic["results_by_partition"]):
            return {"error_code": THROWN, "results_by_transaction": ()}
        found.append({"transactional_id": transaction["transactional_id"], "topic_results": results})
    return {"error_code": NO_ERROR, "results_by_transaction": tuple(found)}


def _added(
    request: WireRequest, transaction: Fields
) -> Generator[tuple[object, ...], tuple[Any, ...], tuple[Fields, ...]]:
    topics = transaction["topics"]
    response = yield from ask(asking(
        requests.AddPartitionsToTxnRequest, request, transaction, partitions=_names(topics, "partitions")))
    return _by_partition(topics, "partitions", response.errors, "results_by_partition", "partition_error_code")


def _names(topics: Iterable[Fields], inner: str) -> tuple[str, ...]:
    return tuple(sorted({named(topic["name"], index) for topic in topics for index in topic[inner]}))


def _by_partition(
    topics: Iterable[Fields], inner: str, errors: Mapping[str, Error], key: str, error: str
) -> tuple[Fields, ...]:
    return tuple({"name": topic["name"], key: tuple(
        {"partition_index": index, error: number(errors[named(topic["name"], index)])} for index in topic[inner])}
        for topic in topics)


def write_txn_markers(here: AskedBroker, request: WireRequest) -> Handling:
    """Write markers to partitions, as an operator does to end a hanging transaction."""
    found, inner = [], "partition_indexes"
    for marker in request.message["markers"]:
        response = yield from ask(asking(
            requests.WriteTxnMarkersRequest, request, marker, committed=marker["transaction_result"],
            partitions=_names(marker["topics"], inner)))
        topics = _by_partition(marker["topics"], inner, response.errors, "partitions", "error_code")
        found.append({"producer_id": marker["producer_id"], "topics": topics})
    return {"markers": tuple(found)}


def describe_producers(here: AskedBroker, request: WireRequest) -> Handling:
    """Say what partitions know of producers: epoch, last sequence, where an open transaction begins."""

    def fields(topic: str, index: int, response: Any) -> Fields:
        return told(response, active_producers=tuple(
            {"producer_id": producer, "producer_epoch": known.producer_epoch, "last_sequence": known.last_sequence,
             "last_timestamp": known.last_timestamp, "coordinator_epoch": known.coordinator_epoch,
             "current_txn_start_offset": -1 if known.open_from is None else known.open_from}
            for producer, known in response.producers.items()))

    one = at_leader(here, requests.DescribeProducersResponse,
                    lambda name, partition: requests.DescribeProducersRequest(request.version, name))
    return {"topics": (yield from each(request.message["topics"], "partition_indexes", one, fields))}


def describe_transactions(here: AskedBroker, request: WireRequest) -> Handling:
    """Say in which state transactional ids are."""
    found = []
    for tid in request.message["transactional_ids"]:
        known = yield from ask(requests.DescribeTransactionsRequest(request.version, tid))
        topics = tuple({"topic": topic, "partitions": indexes} for topic, indexes in by_topic(known.partitions))
        found.append(told(known, transactional_id=tid, transaction_state=known.state, topics=topics))
    return {"transaction_states": tuple(found)}


def list_transactions(here: AskedBroker, request: WireRequest) -> Handling:
    """List transactional ids with their states."""
    known = yield from ask(asking(requests.ListTransactionsRequest, request))
    return told(known, transaction_states=tuple(
        {"transactional_id": tid, "producer_id": producer, "transaction_state": state}
        for tid, producer, state in known.transactions))
