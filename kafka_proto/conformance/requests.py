"""A record's requests as values, and responses as a record writes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kafka_proto import requests as kafka
from kafka_proto.conformance.observing import batch_row
from kafka_proto.conformance.symbols import Symbols
from kafka_proto.log import RecordBatch
from kafka_proto.requests import OFFSETS_PARTITION, Error, partition_index, partition_name

TOPIC = "T"
TOPIC_APIS = ("CreateTopics", "DeleteTopics")
NAMED = {
    "transaction_timeout": "transaction_timeout_ms", "transactional": "is_transactional", "generation": "generation_id",
}
"""Fields of a record's requests that are called otherwise here."""
JOIN_AND_SYNC = "JoinGroup+SyncGroup"
"""A join, with the id that is given where one is asked for, and the sync that follows, as the leader's."""
JOINING = {
    "session_timeout_ms": 30_000, "rebalance_timeout_ms": 30_000, "protocol_type": "consumer",
    "protocols": (("range", b""),),
}
"""What a record's member says besides."""
OF_BATCH = ("records", "base_sequence", "is_transactional", "producer_id", "producer_epoch")
"""Fields of a record's Produce that are about its batch."""


def name(index: int) -> str:
    """Return the name of a partition of the topic."""
    return partition_name(TOPIC, index)


def request_of(api: str, version: int, fields: Mapping[str, Any], symbols: Symbols) -> object:
    """Return the request that a record describes.

    Raises KeyError for an API that is not there, TypeError for a field that is, or is not, there.
    """
    topic = fields.get("topic", TOPIC)
    given = {NAMED.get(field, field): _value(field, value, symbols, topic) for field, value in fields.items()
             if field != "topic"}
    if api == "Produce":
        batch = RecordBatch(**{field: given.pop(field) for field in OF_BATCH if field in given})
        return kafka.ProduceRequest(version, batch=batch, **{"acks": -1, **given})
    if api in TOPIC_APIS:
        given["topic"] = TOPIC
    if api == "AddOffsetsToTxn":
        del given["group_id"]
        given["partition"] = OFFSETS_PARTITION
    if api == JOIN_AND_SYNC:
        given |= JOINING
    if api == "LeaveGroup":
        given["members"] = (kafka.MemberIdentity(given.pop("member_id")),)
    if api == "DescribeTransactions":
        (given["transactional_id"],) = given.pop("transactional_ids")
    return _REQUESTS[api](version=version, **given)


def _value(field: str, value: Any, symbols: Symbols, topic: str) -> Any:
    """Return a field of a record's request as ours has it."""
    match field:
        case "producer_id":
            return symbols.producer_id(value)
        case "producer_id_filters":
            return tuple(symbols.producer_id(producer) for producer in value)
        case "member_id":
            return symbols.member_id(value)
        case "partition":
            return partition_name(topic, value)
        case "partitions":
            return tuple(sorted(partition_name(topic, index) for index in value)) if isinstance(value, list) else value
        case "isolation_level":
            return kafka.IsolationLevel(value)
        case "records" | "state_filters":
            return tuple(value)
    return value


_REQUESTS: dict[str, Callable[..., object]] = {
    "InitProducerId": kafka.InitProducerIdRequest, "AddPartitionsToTxn": kafka.AddPartitionsToTxnRequest,
    "AddOffsetsToTxn": kafka.AddOffsetsToTxnRequest, "EndTxn": kafka.EndTxnRequest,
    "WriteTxnMarkers": kafka.WriteTxnMarkersRequest, "Fetch": kafka.ConsumerFetchRequest,
    "ListOffsets": kafka.ListOffsetsRequest, "DeleteRecords": kafka.DeleteRecordsRequest,
    "TxnOffsetCommit": kafka.TxnOffsetCommitRequest, "OffsetCommit": kafka.OffsetCommitRequest,
    "OffsetFetch": kafka.OffsetFetchRequest, JOIN_AND_SYNC: kafka.JoinGroupRequest,
    "LeaveGroup": kafka.LeaveGroupRequest, "DescribeTransactions": kafka.DescribeTransactionsRequest,
    "ListTransactions": kafka.ListTransactionsRequest, "CreateTopics": kafka.CreateTopicsRequest,
    "DeleteTopics": kafka.DeleteTopicsRequest,
}


def response_fields(api: str, request: Any, response: Any, symbols: Symbols) -> dict[str, Any]:
    """Return a response as a record writes it.

    From version 4 on AddPartitionsToTxn has a code for the whole request, too: what its coordinator throws.
    """
    if api == "Produce" and request.acks == 0:
        return {"connection": "open" if response.error is kafka.Error.NONE else "closed"}
    fields = ("error",) if api == "EndTxn" and request.version < 5 else _RESPONSES[api]
    shown = {field: _shown(field, response, symbols) for field in fields}
    if api != "AddPartitionsToTxn" or request.version < 4:
        return shown
    if Error.UNSUPPORTED_VERSION in response.errors.values():
        return {"error": Error.UNSUPPORTED_VERSION.value, "errors": {}}
    return {"error": "NONE", **shown}


def _shown(field: str, response: Any, symbols: Symbols) -> Any:
    """Return a field of a response as a record has it. The transactional ids of a record are named `tid-X`."""
    match field:
        case "error" | "partition_error":
            return getattr(response, field).value
        case "errors":
            return {str(partition_index(partition)): error.value for partition, error in response.errors.items()}
        case "producer_id":
            return symbols.producer_name(response.producer_id)
        case "member_id":
            return symbols.member_name(response.member_id)
        case "aborted_transactions" if response.aborted_transactions is not None:
            return [{"producer_id": symbols.producer_name(txn.producer_id), "first_offset": txn.first_offset}
                    for txn in response.aborted_transactions]
        case "batches":
            return [batch_row(batch, symbols) for batch in response.batches]
        case "unknown_state_filters":
            return list(response.unknown_state_filters)
        case "mine":
            return [[tid.removeprefix("tid-"), state] for tid, _, state in response.transactions]
    return getattr(response, field)


_RESPONSES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("InitProducerId", "EndTxn"), ("error", "producer_id", "producer_epoch")),
    **dict.fromkeys(("AddPartitionsToTxn", "WriteTxnMarkers"), ("errors",)),
    **dict.fromkeys(("AddOffsetsToTxn", "TxnOffsetCommit", "OffsetCommit", "LeaveGroup", *TOPIC_APIS), ("error",)),
    "Produce": ("error", "base_offset"),
    "Fetch": ("error", "high_watermark", "last_stable_offset", "aborted_transactions", "batches"),
    "ListOffsets": ("error", "offset"),
    "DeleteRecords": ("error", "low_watermark"),
    "OffsetFetch": ("error", "partition_error", "committed_offset"),
    "DescribeTransactions": ("error", "state"),
    "ListTransactions": ("error", "unknown_state_filters", "mine"),
}
"""What a record has of each response."""
