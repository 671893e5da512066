"""A record's requests as values, and fields of responses as a record writes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kafka_proto import requests as kafka
from kafka_proto.conformance.player import SHOWN, Symbols
from kafka_proto.log import RecordBatch
from kafka_proto.requests import OFFSETS_PARTITION, Error, partition_index, partition_name

TOPIC = "T"
NAMED = {
    "transaction_timeout": "transaction_timeout_ms", "transactional": "is_transactional", "generation": "generation_id",
}
"""Fields of a record that are called otherwise here."""
JOINING = {
    "session_timeout_ms": 30_000, "rebalance_timeout_ms": 30_000, "protocol_type": "consumer",
    "protocols": (("range", b""),),
}
"""What a record's member says besides."""
OF_BATCH = ("records", "base_sequence", "is_transactional", "producer_id", "producer_epoch")
"""Fields of a record's Produce that are about its batch."""
NONE_OPEN = -1


def name(index: int) -> str:
    """Return the name of a partition of the topic."""
    return partition_name(TOPIC, index)


def request_of(api: str, version: int, fields: Mapping[str, Any], symbols: Symbols) -> object:
    """Return the request that a record describes.

    Raises KeyError for an API that is not there, TypeError for a field that is, or is not, there.
    """
    make, topic = _REQUESTS[api], fields.get("topic", TOPIC)
    given = {NAMED.get(field, field): _value(field, value, symbols, topic) for field, value in fields.items()
             if field != "topic"}
    match api:
        case "Produce":
            given["batch"] = RecordBatch(**{field: given.pop(field) for field in OF_BATCH if field in given})
            given.setdefault("acks", -1)
        case "CreateTopics" | "DeleteTopics":
            given["topic"] = TOPIC
        case "AddOffsetsToTxn":
            del given["group_id"]
            given["partition"] = OFFSETS_PARTITION
        case "JoinGroup":
            given |= JOINING
        case "LeaveGroup":
            given["members"] = (kafka.MemberIdentity(given.pop("member_id")),)
        case "DescribeTransactions":
            (given["transactional_id"],) = given.pop("transactional_ids")
        case "Fetch":
            given["min_bytes"] = 0
    return make(version=version, **given)


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
        case "partitions" if isinstance(value, list):
            return tuple(sorted(partition_name(topic, index) for index in value))
        case "isolation_level":
            return kafka.IsolationLevel(value)
        case "records" | "state_filters":
            return tuple(value)
    return value


_REQUESTS: dict[str, Callable[..., object]] = {
    "Fetch": kafka.ConsumerFetchRequest, **{api: getattr(kafka, f"{api}Request") for api in SHOWN if api != "Fetch"}}


def field_of(response: Any, symbols: Symbols, field: str) -> Any:
    """Return a field of a response as a record has it. The transactional ids of a record are named `tid-X`."""
    match field:
        case "error" if isinstance(response, kafka.AddPartitionsToTxnResponse):  # of the whole request
            return (Error.UNSUPPORTED_VERSION if _is_thrown(response) else Error.NONE).value
        case "error" | "partition_error":
            return getattr(response, field).value
        case "errors":
            found = {} if _is_thrown(response) else response.errors
            return {str(partition_index(partition)): error.value for partition, error in found.items()}
        case "producer_id":
            return symbols.producer_name(response.producer_id)
        case "member_id":
            return symbols.member_name(response.member_id)
        case "aborted_transactions" if response.aborted_transactions is not None:
            return [{"producer_id": symbols.producer_name(txn.producer_id), "first_offset": txn.first_offset}
                    for txn in response.aborted_transactions]
        case "batches":
            return [_row(batch, symbols) for batch in response.batches]
        case "unknown_state_filters" | "partitions":
            return list(getattr(response, field))
        case "mine":
            return [[tid.removeprefix("tid-"), state] for tid, _, state in response.transactions]
        case "producers":
            return [[symbols.producer_name(producer), state.producer_epoch, state.last_sequence,
                     NONE_OPEN if state.open_from is None else state.open_from]
                    for producer, state in sorted(response.producers.items())]
    return getattr(response, NAMED.get(field, field))


def _is_thrown(response: Any) -> bool:
    return Error.UNSUPPORTED_VERSION in response.errors.values()


def _row(batch: RecordBatch, symbols: Symbols) -> list[Any]:
    """Return a batch as a record writes it: `[base offset, producer id, epoch, base sequence, kind, values]`."""
    kind = ("txn" if batch.is_transactional else "plain") + ("+ctl" if batch.marker is not None else "")
    return [batch.base_offset, symbols.producer_name(batch.producer_id), batch.producer_epoch, batch.base_sequence,
            kind, [str(record) for record in batch.records]]
