"""Produce, Fetch, ListOffsets, DeleteRecords: batches stay the bytes that producers sent, with offset and epoch set."""

from __future__ import annotations

from typing import Any

import attrs

from kafka_proto.gateway.apis.asking import NO_ERROR, answered, ask, each, number, wrong_place
from kafka_proto.gateway.broker import Answer, Broker, Token, Turn, WaitingFetch, asked_at, code
from kafka_proto.gateway.codec import Fields
from kafka_proto.gateway.connection import Request
from kafka_proto.gateway.records import HEADER, BadBatch, at_offset, check_produced, is_transactional, write_marker
from kafka_proto.log import Marker, RecordBatch
from kafka_proto.requests import (
    ConsumerFetchRequest,
    ConsumerFetchResponse,
    DeleteRecordsRequest,
    IsolationLevel,
    ListOffsetsRequest,
    ProduceRequest,
    partition_name,
)

LEADER_EPOCH = 0
"""Of what is stored: clients do not compare it, as OffsetForLeaderEpoch is not offered."""


def produce(broker: Broker, request: Request, token: Token) -> Turn:
    """Append a batch to each partition; nothing is answered where acks is 0."""
    message = request.message
    all_data = [partition["records"] for topic in message["topic_data"] for partition in topic["partition_data"]]
    refused = message["transactional_id"] is None and any(map(is_transactional, all_data))

    def one(broker: Broker, topic: str, partition: Any) -> tuple[Broker, Fields]:
        index, data = partition["index"], partition["records"]
        if refused:
            return broker, {"index": index, "base_offset": -1,
                            "error_code": code("TRANSACTIONAL_ID_AUTHORIZATION_FAILED")}
        if wrong := wrong_place(broker, topic, index):
            return broker, {"index": index, "error_code": wrong, "base_offset": -1}
        try:
            header = check_produced(data, request.version, broker.settings.max_message_bytes)
        except BadBatch as bad:
            return broker, {"index": index, "error_code": code(bad.error), "base_offset": -1,
                            "error_message": str(bad)}
        batch = RecordBatch(
            (data,), header.producer_id, header.producer_epoch, header.base_sequence, header.is_transactional,
            timestamp=header.max_timestamp, last_offset_delta=header.last_offset_delta,
        )
        asked = ProduceRequest(request.version, message["transactional_id"], message["acks"],
                               partition_name(topic, index), batch)
        broker, response = ask(broker, asked)
        return broker, {"index": index, "error_code": number(response.error), "base_offset": response.base_offset,
                        "log_append_time": -1, "log_start_offset": 0 if response.error == "NONE" else -1}

    broker, found = each(broker, message["topic_data"], "partition_data", one)
    fields = {"responses": tuple({"name": topic, "partition_responses": results} for topic, results in found)}
    return answered(broker, token, None if message["acks"] == 0 else fields)


def fetch(broker: Broker, request: Request, token: Token) -> Turn:
    """Read each partition; with less than the bytes asked for the answer waits, for as long as the client says."""
    fields, size, is_final = read(broker, request)
    wait = request.message["max_wait"]
    if is_final or size >= request.message["min_bytes"] or wait <= 0:
        return answered(broker, token, fields)
    waiting = WaitingFetch(request, broker.now + wait, broker.asked)
    return attrs.evolve(broker, fetches=broker.fetches.set(token, waiting)), ()


def served_fetches(broker: Broker) -> Turn:
    """Answer the fetches that wait and have enough now, or have waited long enough."""
    answers: tuple[Answer, ...] = ()
    for token, waiting in broker.fetches.items():
        fields, size, is_final = read(asked_at(broker, waiting.broker), waiting.request)
        if is_final or size >= waiting.request.message["min_bytes"] or waiting.until <= broker.now:
            answers += (Answer(token, fields),)
            broker = attrs.evolve(broker, fetches=broker.fetches.without(token))
    return broker, answers


def read(broker: Broker, request: Request) -> tuple[Fields, int, bool]:
    """Return what a fetch finds, how many bytes of records that is, and whether an error ends its waiting."""
    message = request.message
    level = IsolationLevel.READ_COMMITTED if message["isolation_level"] == 1 else IsolationLevel.READ_UNCOMMITTED
    left, size, is_final = message.get("max_bytes", 2**31 - 1), 0, False
    topics = []
    for topic in message["topics"]:
        results = []
        for wanted in topic["partitions"]:
            bound = min(left, wanted["partition_max_bytes"])
            fields, found = _read_partition(broker, request.version, topic["topic"], wanted, level, bound, size == 0)
            size += found
            left = max(0, left - found)
            is_final = is_final or fields["error_code"] != NO_ERROR
            results.append(fields)
        topics.append({"topic": topic["topic"], "partitions": tuple(results)})
    return {"responses": tuple(topics), "session_id": 0}, size, is_final


def _read_partition(
    broker: Broker, version: int, topic: str, wanted: Fields, level: IsolationLevel, bound: int, is_first: bool
) -> tuple[Fields, int]:
    index = wanted["partition"]
    if wrong := wrong_place(broker, topic, index):
        return {"partition_index": index, "error_code": wrong, "high_watermark": -1, "records": b"",
                "aborted_transactions": None}, 0
    # No batch is shorter than its header, so no more of them than this fit.
    asked = ConsumerFetchRequest(version, partition_name(topic, index), wanted["fetch_offset"], level,
                         max_batches=bound // HEADER.size + 1)
    response: ConsumerFetchResponse = ask(broker, asked)[1]
    out, kept = bytearray(), 0
    for batch in response.batches:
        data = as_bytes(batch)
        if len(out) + len(data) > bound and (out or not is_first):
            break
        out += data
        kept += 1
    if 0 < kept < len(response.batches):
        response = ask(broker, attrs.evolve(asked, max_batches=kept))[1]
    aborted = response.aborted_transactions
    return {
        "partition_index": index, "error_code": number(response.error), "high_watermark": response.high_watermark,
        "last_stable_offset": response.last_stable_offset, "log_start_offset": response.log_start_offset,
        "aborted_transactions": None if aborted is None else tuple(
            {"producer_id": txn.producer_id, "first_offset": txn.first_offset} for txn in aborted),
        "records": bytes(out),
    }, len(out)


def as_bytes(batch: RecordBatch) -> bytes:
    """Return a batch of a log as a client reads it."""
    if batch.marker is not None:
        return write_marker(batch.marker is Marker.COMMIT, batch.producer_id, batch.producer_epoch,
                            batch.coordinator_epoch, batch.base_offset, batch.timestamp)
    (data,) = batch.records
    assert isinstance(data, bytes)
    return at_offset(data, batch.base_offset, LEADER_EPOCH)


def list_offsets(broker: Broker, request: Request, token: Token) -> Turn:
    """Look up the earliest, the latest, or the first offset with a time stamp in each partition."""
    committed = request.message.get("isolation_level", 0) == 1
    level = IsolationLevel.READ_COMMITTED if committed else IsolationLevel.READ_UNCOMMITTED

    def one(broker: Broker, topic: str, partition: Any) -> tuple[Broker, Fields]:
        index = partition["partition_index"]
        if wrong := wrong_place(broker, topic, index):
            return broker, {"partition_index": index, "error_code": wrong}
        asked = ListOffsetsRequest(request.version, partition_name(topic, index), partition["timestamp"], level)
        broker, response = ask(broker, asked)
        return broker, {"partition_index": index, "error_code": number(response.error), "offset": response.offset,
                        "leader_epoch": broker.leader_epoch}

    broker, found = each(broker, request.message["topics"], "partitions", one)
    return answered(broker, token, {"topics": tuple({"name": t, "partitions": results} for t, results in found)})


def delete_records(broker: Broker, request: Request, token: Token) -> Turn:
    """Delete what is before an offset in each partition."""

    def one(broker: Broker, topic: str, partition: Any) -> tuple[Broker, Fields]:
        index = partition["partition_index"]
        if wrong := wrong_place(broker, topic, index):
            return broker, {"partition_index": index, "error_code": wrong, "low_watermark": -1}
        asked = DeleteRecordsRequest(request.version, partition_name(topic, index), partition["offset"])
        broker, response = ask(broker, asked)
        return broker, {"partition_index": index, "error_code": number(response.error),
                        "low_watermark": response.low_watermark}

    broker, found = each(broker, request.message["topics"], "partitions", one)
    return answered(broker, token, {"topics": tuple({"name": t, "partitions": results} for t, results in found)})
