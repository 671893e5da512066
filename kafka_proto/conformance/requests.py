"""A record's requests as values, and responses as a record writes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kafka_proto import requests as kafka
from kafka_proto.conformance.observing import batch_row
from kafka_proto.conformance.symbols import Symbols
from kafka_proto.log import RecordBatch
from kafka_proto.requests import OFFSETS_PARTITION, partition_index, partition_name

TOPIC = "T"
Fields = Mapping[str, Any]


def request_of(api: str, version: int, fields: Fields, symbols: Symbols) -> object:
    """Return the request that a record describes. Raises KeyError for a field or an API that is not there."""
    return _REQUESTS[api](version, fields, symbols)


def response_fields(api: str, request: object, response: Any, symbols: Symbols) -> dict[str, Any]:
    """Return a response as a record writes it."""
    return _RESPONSES[api](request, response, symbols)


def name(index: int) -> str:
    """Return the name of a partition of the topic."""
    return partition_name(TOPIC, index)


def _producer(fields: Fields, symbols: Symbols) -> dict[str, Any]:
    return {"producer_id": symbols.producer_id(fields.get("producer_id", -1)),
            "producer_epoch": fields.get("producer_epoch", -1)}


def _init(version: int, f: Fields, symbols: Symbols) -> object:
    return kafka.InitProducerIdRequest(version, f["transactional_id"], f["transaction_timeout"],
                                       **_producer(f, symbols))


def _add(version: int, f: Fields, symbols: Symbols) -> object:
    return kafka.AddPartitionsToTxnRequest(
        version, f["transactional_id"], partitions=tuple(sorted(name(index) for index in f["partitions"])),
        verify_only=f.get("verify_only", False), **_producer(f, symbols),
    )


def _add_offsets(version: int, f: Fields, symbols: Symbols) -> object:
    return kafka.AddOffsetsToTxnRequest(version, f["transactional_id"], partition=OFFSETS_PARTITION,
                                        **_producer(f, symbols))


def _end(version: int, f: Fields, symbols: Symbols) -> object:
    return kafka.EndTxnRequest(version, f["transactional_id"], committed=f["committed"], **_producer(f, symbols))


def _produce(version: int, f: Fields, symbols: Symbols) -> object:
    batch = RecordBatch(tuple(f["records"]), base_sequence=f.get("base_sequence", -1),
                        is_transactional=f.get("transactional", False), **_producer(f, symbols))
    return kafka.ProduceRequest(version, f["transactional_id"], f.get("acks", -1), name(f["partition"]), batch)


def _write_markers(version: int, f: Fields, symbols: Symbols) -> object:
    return kafka.WriteTxnMarkersRequest(
        version, coordinator_epoch=f["coordinator_epoch"], committed=f["committed"],
        partitions=tuple(sorted(name(index) for index in f["partitions"])),
        transaction_version=f.get("transaction_version", 0), **_producer(f, symbols),
    )


def _fetch(version: int, f: Fields, symbols: Symbols) -> object:
    return kafka.ConsumerFetchRequest(version, name(f["partition"]), f["fetch_offset"],
                              kafka.IsolationLevel(f["isolation_level"]))


def _list_offsets(version: int, f: Fields, symbols: Symbols) -> object:
    return kafka.ListOffsetsRequest(version, name(f["partition"]), f["timestamp"],
                                    kafka.IsolationLevel(f["isolation_level"]))


def _delete_records(version: int, f: Fields, symbols: Symbols) -> object:
    return kafka.DeleteRecordsRequest(version, name(f["partition"]), f["offset"])


def _txn_offset_commit(version: int, f: Fields, symbols: Symbols) -> object:
    return kafka.TxnOffsetCommitRequest(
        version, f["transactional_id"], f["group_id"], partition=name(f["partition"]), offset=f["offset"],
        generation_id=f.get("generation_id", -1), member_id=symbols.member_id(f.get("member_id", "")),
        group_instance_id=f.get("group_instance_id"), **_producer(f, symbols),
    )


def _offset_commit(version: int, f: Fields, symbols: Symbols) -> object:
    return kafka.OffsetCommitRequest(
        version, f["group_id"], name(f["partition"]), f["offset"], f.get("generation", -1),
        symbols.member_id(f.get("member_id", "")), f.get("group_instance_id"),
    )


def _offset_fetch(version: int, f: Fields, symbols: Symbols) -> object:
    return kafka.OffsetFetchRequest(version, f["group_id"], name(f["partition"]), f.get("require_stable", False))


def _join(version: int, f: Fields, symbols: Symbols) -> object:
    return kafka.JoinGroupRequest(version, f["group_id"], symbols.member_id(f["member_id"]), f["group_instance_id"])


def _leave(version: int, f: Fields, symbols: Symbols) -> object:
    return kafka.LeaveGroupRequest(version, f["group_id"], symbols.member_id(f["member_id"]))


def _describe(version: int, f: Fields, symbols: Symbols) -> object:
    (transactional_id,) = f["transactional_ids"]
    return kafka.DescribeTransactionsRequest(version, transactional_id)


def _list(version: int, f: Fields, symbols: Symbols) -> object:
    producers = tuple(symbols.producer_id(producer) for producer in f["producer_id_filters"])
    return kafka.ListTransactionsRequest(version, tuple(f["state_filters"]), producers)


_REQUESTS: dict[str, Callable[[int, Fields, Symbols], object]] = {
    "InitProducerId": _init, "AddPartitionsToTxn": _add, "AddOffsetsToTxn": _add_offsets, "EndTxn": _end,
    "Produce": _produce, "WriteTxnMarkers": _write_markers, "Fetch": _fetch, "ListOffsets": _list_offsets,
    "DeleteRecords": _delete_records, "TxnOffsetCommit": _txn_offset_commit, "OffsetCommit": _offset_commit,
    "OffsetFetch": _offset_fetch, "JoinGroup+SyncGroup": _join, "LeaveGroup": _leave,
    "DescribeTransactions": _describe, "ListTransactions": _list,
}


def _error(request: Any, response: Any, symbols: Symbols) -> dict[str, Any]:
    return {"error": response.error.value}


def _with_producer(request: Any, response: Any, symbols: Symbols) -> dict[str, Any]:
    return {"error": response.error.value, "producer_id": symbols.producer_name(response.producer_id),
            "producer_epoch": response.producer_epoch}


def _ended(request: Any, response: Any, symbols: Symbols) -> dict[str, Any]:
    return (_with_producer if request.version >= 5 else _error)(request, response, symbols)


def _errors(errors: Mapping[str, Any]) -> dict[str, str]:
    return {str(partition_index(partition)): error.value for partition, error in errors.items()}


def _added(request: Any, response: Any, symbols: Symbols) -> dict[str, Any]:
    """From version 4 on a code for the whole request comes first; it is an error of a broker's, and there are none."""
    whole = {"error": "NONE"} if request.version >= 4 else {}
    return {**whole, "errors": _errors(response.errors)}


def _fetched(request: Any, response: Any, symbols: Symbols) -> dict[str, Any]:
    aborted = response.aborted_transactions
    return {
        "error": response.error.value, "high_watermark": response.high_watermark,
        "last_stable_offset": response.last_stable_offset,
        "aborted_transactions": None if aborted is None else [
            {"producer_id": symbols.producer_name(txn.producer_id), "first_offset": txn.first_offset}
            for txn in aborted
        ],
        "batches": [batch_row(batch, symbols) for batch in response.batches],
    }


def _joined(request: Any, response: Any, symbols: Symbols) -> dict[str, Any]:
    return {"error": response.error.value, "generation": response.generation,
            "member_id": symbols.member_name(response.member_id), "sync_error": response.sync_error.value}


def _listed(request: Any, response: Any, symbols: Symbols) -> dict[str, Any]:
    """The transactional ids of a record are named `tid-X`; its listing has the letter."""
    return {"error": response.error.value, "unknown_state_filters": list(response.unknown_state_filters),
            "mine": [[tid.removeprefix("tid-"), state] for tid, _, state in response.transactions]}


_RESPONSES: dict[str, Callable[[Any, Any, Symbols], dict[str, Any]]] = {
    "InitProducerId": _with_producer, "AddPartitionsToTxn": _added, "AddOffsetsToTxn": _error, "EndTxn": _ended,
    "Produce": lambda request, r, symbols: {"error": r.error.value, "base_offset": r.base_offset},
    "WriteTxnMarkers": lambda request, r, symbols: {"errors": _errors(dict(r.errors))},
    "Fetch": _fetched,
    "ListOffsets": lambda request, r, symbols: {"error": r.error.value, "offset": r.offset},
    "DeleteRecords": lambda request, r, symbols: {"error": r.error.value, "low_watermark": r.low_watermark},
    "TxnOffsetCommit": _error, "OffsetCommit": _error,
    "OffsetFetch": lambda request, r, symbols: {
        "error": r.error.value, "partition_error": r.partition_error.value, "committed_offset": r.committed_offset},
    "JoinGroup+SyncGroup": _joined, "LeaveGroup": _error,
    "DescribeTransactions": lambda request, r, symbols: {"error": r.error.value, "state": r.state},
    "ListTransactions": _listed,
}
