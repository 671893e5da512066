"""Produce, Fetch, ListOffsets, DeleteRecords: batches stay the bytes that producers sent, with offset and epoch set."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import attrs

from kafka_proto.gateway import node as nodes
from kafka_proto.gateway.apis.asking import NO_ERROR, answered, ask, each, named, number, wrong_place
from kafka_proto.gateway.broker import Answer, Broker, Token, Turn, WaitingFetch, asked_at, code
from kafka_proto.gateway.codec import Fields
from kafka_proto.gateway.connection import Request
from kafka_proto.gateway.observed import produced
from kafka_proto.gateway.records import (
    HEADER,
    UNREAD,
    BadBatch,
    BatchHeader,
    ShortBatch,
    at_offset,
    check_batch,
    check_request,
    is_transactional,
    read_header,
    read_records,
    write_marker,
)
from kafka_proto.log import Marker, RecordBatch
from kafka_proto.log.records import NO_PRODUCER_ID
from kafka_proto.requests import (
    OFFSETS_PARTITION,
    TRANSACTION_PARTITION,
    ConsumerFetchRequest,
    ConsumerFetchResponse,
    DeleteRecordsRequest,
    Error,
    IsolationLevel,
    ListOffsetsRequest,
    ProduceRequest,
    partition_name,
)

INTERNAL_PARTITIONS = (OFFSETS_PARTITION, TRANSACTION_PARTITION)
LEADER_EPOCH = 0
"""Of what is stored: clients do not compare it, as OffsetForLeaderEpoch is not offered."""


def produce(broker: Broker, request: Request, token: Token) -> Turn:
    """Append a batch to each partition; where acks is 0 nothing is answered, but an error closes the connection.

    A partition that is named twice has the batch that came last (`KafkaApis.handleProduceRequest` keeps a map).
    """
    message = request.message
    taken: dict[tuple[str, int], tuple[bytes, BatchHeader]] = {}
    found: dict[tuple[str, int], Fields] = {}
    is_short = False
    for topic, index, data in produced(message):
        found.setdefault((topic, index), {})
        wrong = _wrong_place(broker, topic, index)
        try:
            if wrong == NO_ERROR:
                taken[topic, index] = check_request(data, request.version)
            else:
                found[topic, index] = _not_appended(index, wrong)
        except BadBatch as bad:
            is_short = is_short or isinstance(bad, ShortBatch)
            found[topic, index] = _not_appended(index, code(bad.error), str(bad))
    looks = broker.node.version.leader.operation("Produce", request.version) is not None
    if (refused := _refused(message, taken.values(), looks, is_short)) is not None:
        taken, found = {}, {key: _not_appended(key[1], refused) for key in found}
    for (topic, index), (data, header) in taken.items():
        broker, fields = _appended(broker, request, topic, index, data, header)
        found[topic, index] = found[topic, index] or fields
    if message["acks"] == 0:
        errors = [fields["error_code"] for fields in found.values() if fields["error_code"] != NO_ERROR]
        closes = f"acks is 0, and the error {errors[0]} cannot be told" if errors else None
        return broker, (Answer(token, None, closes),)
    topics: dict[str, list[Fields]] = {}
    for (topic, _), fields in found.items():
        topics.setdefault(topic, []).append(fields)
    return answered(broker, token, {"responses": tuple(
        {"name": topic, "partition_responses": tuple(results)} for topic, results in topics.items())})


def _not_appended(index: int, error: int, reason: str | None = None) -> Fields:
    return {"index": index, "error_code": error, "base_offset": -1, "error_message": reason}


def _wrong_place(broker: Broker, topic: str, index: int) -> int:
    """Return the error code for a partition that is not to be written to here; 0 for one of an internal topic."""
    return NO_ERROR if named(topic, index) in INTERNAL_PARTITIONS else wrong_place(broker, topic, index)


def _refused(
    message: Fields, taken: Iterable[tuple[bytes, BatchHeader]], looks: bool, is_short: bool
) -> int | None:
    """Return the error of a request that is refused as a whole, or None: a broker throws before it appends anything.

    One that verifies looks at the producers of all batches, which must be one, and cannot be read in one that is short.
    """
    try:
        if any(is_transactional(data) for _, _, data in produced(message)) and message["transactional_id"] is None:
            return code("TRANSACTIONAL_ID_AUTHORIZATION_FAILED")
    except BadBatch as bad:
        return code(bad.error)
    if not looks:
        return None
    if is_short:
        return code("UNKNOWN_SERVER_ERROR")
    producers = {(header.producer_id, header.producer_epoch) for _, header in taken
                 if header.is_transactional and header.producer_id >= 0}
    return code("INVALID_PRODUCER_ID_MAPPING") if len(producers) > 1 else None


def _appended(
    broker: Broker, request: Request, topic: str, index: int, data: bytes, header: BatchHeader
) -> tuple[Broker, Fields]:
    """Let the node take the batch of a partition, or refuse its bytes when they would be appended."""
    error, reason, decisions = Error.NONE, None, broker.node.version.leader
    ahead = decisions.timestamp_after_max_ms
    try:
        check_batch(data, header, broker.settings.max_message_bytes, None if ahead is None else broker.now + ahead,
                    decisions.takes_append_time)
    except BadBatch as bad:
        error, reason = Error(bad.error), str(bad)
    batch = RecordBatch(
        (data,), max(header.producer_id, NO_PRODUCER_ID), header.producer_epoch, header.base_sequence,
        header.is_transactional, timestamp=header.max_timestamp, last_offset_delta=header.last_offset_delta,
    )
    message = request.message
    broker, response = ask(broker, ProduceRequest(
        request.version, message["transactional_id"], message["acks"], partition_name(topic, index), batch, error))
    return broker, {"index": index, "error_code": number(response.error), "base_offset": response.base_offset,
                    "error_message": reason if response.error is error else None,
                    "log_append_time": -1,
                    "log_start_offset": -1 if response.log_start_offset is None else response.log_start_offset}


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
            fields, found = _read_partition(broker, request, topic["topic"], wanted, level, bound, size == 0)
            size += found
            left = max(0, left - found)
            is_final = is_final or fields["error_code"] != NO_ERROR
            results.append(fields)
        topics.append({"topic": topic["topic"], "partitions": tuple(results)})
    return {"responses": tuple(topics), "session_id": 0}, size, is_final


def _read_partition(
    broker: Broker, request: Request, topic: str, wanted: Fields, level: IsolationLevel, bound: int, is_first: bool
) -> tuple[Fields, int]:
    index, replica = wanted["partition"], request.message["replica_id"]
    wrong = wrong_place(broker, topic, index)
    if wrong == NO_ERROR and replica >= 0 and (replica == broker.asked or replica not in broker.settings.brokers):
        wrong = code("NOT_LEADER_OR_FOLLOWER")  # it is no follower of this leader
    if wrong:
        aborted: tuple[Fields, ...] | None = () if wrong == code("UNKNOWN_TOPIC_OR_PARTITION") else None
        return {"partition_index": index, "error_code": wrong, "high_watermark": -1, "records": b"",
                "aborted_transactions": aborted}, 0
    # No batch is shorter than its header, so no more of them than this fit.
    asked = ConsumerFetchRequest(request.version, partition_name(topic, index), wanted["fetch_offset"], level,
                                 replica, max_batches=bound // HEADER.size + 1)
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
    listed = response.aborted_transactions
    return {
        "partition_index": index, "error_code": number(response.error), "high_watermark": response.high_watermark,
        "last_stable_offset": response.last_stable_offset, "log_start_offset": response.log_start_offset,
        "aborted_transactions": None if listed is None else tuple(
            {"producer_id": txn.producer_id, "first_offset": txn.first_offset} for txn in listed),
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


def record_times(batch: RecordBatch) -> Iterator[int]:
    """Yield the time stamp of each record of a batch; records that stay packed have the latest one of their batch."""
    if batch.marker is not None:
        yield batch.timestamp
        return
    (data,) = batch.records
    assert isinstance(data, bytes)
    header = read_header(data)
    if header.codec in UNREAD:
        yield from (header.max_timestamp for _ in range(header.count))
        return
    yield from (header.base_timestamp + record.timestamp_delta for record in read_records(data, header))


def list_offsets(broker: Broker, request: Request, token: Token) -> Turn:
    """Look up the earliest, the latest, or the first offset with a time stamp in each partition."""
    committed = request.message.get("isolation_level", 0) == 1
    level = IsolationLevel.READ_COMMITTED if committed else IsolationLevel.READ_UNCOMMITTED

    def one(broker: Broker, topic: str, partition: Any) -> tuple[Broker, Fields]:
        index = partition["partition_index"]
        if wrong := wrong_place(broker, topic, index):
            return broker, {"partition_index": index, "error_code": wrong}
        asked = ListOffsetsRequest(request.version, partition_name(topic, index), partition["timestamp"], level,
                                   request.message["replica_id"])
        response = nodes.list_offsets(broker.node, asked, record_times)
        return broker, {"partition_index": index, "error_code": number(response.error), "offset": response.offset,
                        "timestamp": response.timestamp,
                        "leader_epoch": broker.leader_epoch if response.offset >= 0 else -1}

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
