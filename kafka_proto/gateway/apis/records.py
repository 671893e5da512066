"""Produce, Fetch, ListOffsets and DeleteRecords: batches are kept as the bytes that came."""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterable, Iterator
from itertools import chain
from typing import Any

import attrs

from harness.model import FrozenMap
from kafka_proto import requests
from kafka_proto.broker.ghosts import SentRecords
from kafka_proto.broker.parts import METADATA
from kafka_proto.gateway import internal_records, records
from kafka_proto.gateway.apis.fetch_sessions import Key, NoSuchSession, context_of, partitions_in, refused
from kafka_proto.gateway.codec import Fields
from kafka_proto.gateway.configs import (
    CLEANUP,
    LOG_APPEND_TIME,
    MAX_MESSAGE,
    TIMESTAMP_AFTER,
    TIMESTAMP_BEFORE,
    TIMESTAMP_TYPE,
)
from kafka_proto.gateway.connection import WireRequest
from kafka_proto.gateway.context import (
    NO_ERROR,
    AskedBroker,
    Closing,
    Handling,
    Refused,
    Waits,
    at_leader,
    code,
    each,
    leaders_in,
    named,
    number,
    told,
    with_leader,
    wrong_place,
)
from kafka_proto.gateway.observed import produced
from kafka_proto.log import NO_PRODUCER_ID, Marker, RecordBatch, batches_between
from kafka_proto.log.cleaning import BatchFormat, KeyedRecord
from kafka_proto.requests import Error

INTERNAL_PARTITIONS = (requests.OFFSETS_PARTITION, requests.TRANSACTION_PARTITION)


def produce(here: AskedBroker, request: WireRequest) -> Handling:
    """Append a batch to each partition; with acks of 0 nothing is answered, but an error closes the connection.

    A partition that is named twice has the batch that came last (`KafkaApis.handleProduceRequest` keeps a map).
    """
    message = request.message
    taken: dict[tuple[str, int], tuple[bytes, records.BatchHeader]] = {}
    found: dict[tuple[str, int], Fields] = {}
    is_short = False
    for topic, index, data in produced(message):
        found.setdefault((topic, index), {})
        is_internal = named(topic, index) in INTERNAL_PARTITIONS  # which is refused when it would be appended
        try:
            if not is_internal and (wrong := wrong_place(here, topic, index)) is not None:
                found[topic, index] = _not_appended(index, number(wrong))
            else:
                taken[topic, index] = records.check_request(data, request.version)
        except records.BadBatch as bad:
            is_short = is_short or isinstance(bad, records.ShortBatch)
            found[topic, index] = _not_appended(index, code(bad.error), str(bad))
    looks = here.cluster.version.leader.operation("Produce", request.version) is not None
    if (refused := _refused(message, taken.values(), looks, is_short)) is not None:
        taken, found = {}, {key: _not_appended(key[1], refused) for key in found}
    batches = {key: _batch(here, request, *key, *given) for key, given in taken.items()}
    answers = (yield tuple(asked for asked, _ in batches.values())) if batches else ()
    for (key, (asked, refusal)), response in zip(batches.items(), answers, strict=True):
        found[key] = found[key] or _appended(here, key, asked, refusal, response)
    if message["acks"] == 0:
        errors = [fields["error_code"] for fields in found.values() if fields["error_code"] != NO_ERROR]
        if errors:
            raise Closing(f"acks is 0, and the error {errors[0]} cannot be told")
        return None
    topics: dict[str, list[Fields]] = {}
    for (topic, index), fields in found.items():
        topics.setdefault(topic, []).append(with_leader(here, topic, index, fields))
    return {"node_endpoints": leaders_in(here, chain.from_iterable(topics.values())), "responses": tuple(
        {"name": topic, "partition_responses": tuple(results)} for topic, results in topics.items())}


def _not_appended(index: int, error: int, reason: str | None = None) -> Fields:
    return {"index": index, "error_code": error, "base_offset": -1, "error_message": reason}


def _refused(
    message: Fields, taken: Iterable[tuple[bytes, records.BatchHeader]], looks: bool, is_short: bool
) -> int | None:
    """Return the error of a request that is refused as a whole, or None: a broker throws before it appends anything.

    If it verifies, it looks at the producers of all batches, which must be one; they cannot be read in a short batch.
    """
    try:
        has_transaction = any(records.is_transactional(data) for _, _, data in produced(message))
        if has_transaction and message["transactional_id"] is None:
            return code("TRANSACTIONAL_ID_AUTHORIZATION_FAILED")
    except records.BadBatch as bad:
        return code(bad.error)
    if not looks:
        return None
    if is_short:
        return code("UNKNOWN_SERVER_ERROR")
    producers = {(header.producer_id, header.producer_epoch) for _, header in taken
                 if header.is_transactional and header.producer_id >= 0}
    return code("INVALID_PRODUCER_ID_MAPPING") if len(producers) > 1 else None


def _batch(
    here: AskedBroker, request: WireRequest, topic: str, index: int, data: bytes, header: records.BatchHeader
) -> tuple[requests.ProduceRequest, records.BadBatch | None]:
    """Return what is asked about the batch of a partition; its bytes are refused when they would be appended."""
    refusal, decisions, own = None, here.cluster.version.leader, here.cluster.configs.get(topic, FrozenMap())
    of_log, now, latest, earliest = own.get(TIMESTAMP_TYPE) == LOG_APPEND_TIME, here.cluster.now, None, None
    newest, ahead = header.max_timestamp, own.get(TIMESTAMP_AFTER, decisions.timestamp_after_max_ms)
    if not of_log:
        latest = None if ahead is None else now + int(ahead)
        earliest = now - int(own[TIMESTAMP_BEFORE]) if TIMESTAMP_BEFORE in own else None
    try:
        newest = records.check_batch(
            data, header, int(own.get(MAX_MESSAGE, here.settings.max_message_bytes)), latest,
            decisions.takes_append_time and not of_log, "compact" in own.get(CLEANUP, ""), earliest)
        newest = now if of_log else newest
        data = records.with_times(data, header, newest, now if of_log else None)
    except records.BadBatch as bad:
        refusal = bad
    batch = RecordBatch(
        (SentRecords(data, here.transaction),), max(header.producer_id, NO_PRODUCER_ID), header.producer_epoch,
        header.base_sequence, header.is_transactional, timestamp=newest,
        last_offset_delta=header.last_offset_delta,
    )
    message = request.message
    return requests.ProduceRequest(
        request.version, message["transactional_id"], message["acks"], requests.partition_name(topic, index), batch,
        Error.NONE if refusal is None else Error[refusal.error], message["timeout"],
    ), refusal


def _appended(
    here: AskedBroker, key: tuple[str, int], asked: requests.ProduceRequest, refusal: records.BadBatch | None,
    response: Any,
) -> Fields:
    start = response.log_start_offset
    found = {"index": key[1], "error_code": number(response.error), "base_offset": response.base_offset,
             "error_message": None, "log_append_time": _append_time(here, key, response),
             "log_start_offset": -1 if start is None else start}
    if refusal is None or response.error is not asked.refused:
        return found
    return {**found, "error_message": str(refusal), "record_errors": tuple(
        {"batch_index": at, "batch_index_error_message": reason} for at, reason in sorted(refusal.records.items()))}


def _append_time(here: AskedBroker, key: tuple[str, int], response: Any) -> int:
    """Return the time that the log gave a batch, -1 if it keeps the producer's."""
    if here.cluster.configs.get(key[0], FrozenMap()).get(TIMESTAMP_TYPE) != LOG_APPEND_TIME:
        return records.NO_TIMESTAMP
    log, at = here.cluster.log_on(requests.partition_name(*key), here.name), response.base_offset
    found = batches_between(log, at, log.log_end_offset, 1) if response.error is Error.NONE else ()
    return found[0].timestamp if found else records.NO_TIMESTAMP


def fetch(here: AskedBroker, request: WireRequest) -> Handling:
    """Read each partition; with less than the bytes asked for the answer waits, for as long as the client says.

    An error ends its waiting.
    """
    message = request.message
    levels = requests.IsolationLevel
    level = levels.READ_COMMITTED if message["isolation_level"] == 1 else levels.READ_UNCOMMITTED
    until = here.cluster.now + message["max_wait"]
    try:
        about = context_of(here, request)
    except NoSuchSession as error:
        return refused(error)
    watched = frozenset(named(topic, wanted["partition"]) for _, topic, wanted in about.rows()) | {METADATA.index[-1]}
    while True:
        left, size, is_final, found = message.get("max_bytes", 2**31 - 1), 0, False, dict[Key, Fields]()
        for key, topic, wanted in about.rows():
            bound = min(left, wanted["partition_max_bytes"])
            fields, read = yield from _partition(here, request, topic, wanted, level, bound, size == 0)
            size += read
            left = max(0, left - read)
            is_final = is_final or fields["error_code"] != NO_ERROR
            found[key] = with_leader(here, topic, fields["partition_index"], fields)
        if is_final or size >= message["min_bytes"] or until <= here.cluster.now:
            response = about.response(found)
            return {**response, "node_endpoints": leaders_in(here, partitions_in(response["responses"]))}
        yield Waits(until, watched)


def replica_of(request: WireRequest) -> int:
    """Return the broker that fetches, -1 for a consumer; from version 15 on it stands beside its epoch (KIP-903)."""
    message = request.message
    return int(message["replica_id"] if request.version < 15 else message["replica_state"]["replica_id"])


def _partition(
    here: AskedBroker, request: WireRequest, topic: str, wanted: Fields, level: requests.IsolationLevel, bound: int,
    is_first: bool,
) -> Generator[tuple[object, ...], tuple[Any, ...], tuple[Fields, int]]:
    index, replica = wanted["partition"], replica_of(request)
    wrong = wrong_place(here, topic, index)
    if wrong is Error.NOT_LEADER_OR_FOLLOWER and here.cluster.follows(here.name, named(topic, index)):
        wrong = None  # a consumer may read there, as far as its version can
    if wrong is None and replica >= 0 and (replica == here.asked or replica not in here.settings.brokers):
        wrong = Error.NOT_LEADER_OR_FOLLOWER  # it is no follower of this leader
    if wrong is not None:
        aborted: tuple[Fields, ...] | None = () if wrong is Error.UNKNOWN_TOPIC_OR_PARTITION else None
        return {"partition_index": index, "error_code": number(wrong), "high_watermark": -1, "records": b"",
                "aborted_transactions": aborted}, 0
    # No batch is shorter than its header, so at most so many of them fit.
    asked = requests.ConsumerFetchRequest(
        request.version, requests.partition_name(topic, index), wanted["fetch_offset"], level, replica,
        max_batches=bound // records.HEADER.size + 1, min_bytes=0,
        current_leader_epoch=wanted.get("current_leader_epoch"), last_fetched_epoch=wanted.get("last_fetched_epoch"),
    )
    response: requests.ConsumerFetchResponse
    (response,) = yield (asked,)
    out, kept = bytearray(), 0
    epochs = here.cluster.epochs(asked.partition, here.name)
    for batch in response.batches:
        data = as_bytes(batch, epochs.at(batch.base_offset), here.settings.transaction_version)
        if len(out) + len(data) > bound and (out or not is_first):
            break
        out += data
        kept += 1
    if 0 < kept < len(response.batches):
        (response,) = yield (attrs.evolve(asked, max_batches=kept),)
    listed, end = response.aborted_transactions, response.diverging_epoch
    diverging = {} if end is None else {
        "diverging_epoch": {"epoch": end.leader_epoch, "end_offset": end.end_offset}}
    return {
        **diverging,
        "partition_index": index, "error_code": number(response.error), "high_watermark": response.high_watermark,
        "last_stable_offset": response.last_stable_offset, "log_start_offset": response.log_start_offset,
        "aborted_transactions": None if listed is None else tuple(
            {"producer_id": txn.producer_id, "first_offset": txn.first_offset} for txn in listed),
        "records": bytes(out),
    }, len(out)


def as_bytes(batch: RecordBatch, leader_epoch: int, level: int = 0) -> bytes:
    """Return a batch of a log as a client reads it, at a level of `transaction.version`."""
    if batch.marker is not None:
        marker = records.write_marker(batch.marker is Marker.COMMIT, batch.producer_id, batch.producer_epoch,
                                      batch.coordinator_epoch, batch.base_offset, batch.timestamp, leader_epoch)
        if batch.records and batch.delete_horizon is None:
            return marker
        return records.rewritten(marker, {0} if batch.records else (), batch.delete_horizon)
    if not isinstance(batch.records[0], SentRecords):
        return internal_records.write(batch, leader_epoch, level)
    return records.at_offset(data_of(batch), batch.base_offset, leader_epoch)


def data_of(batch: RecordBatch) -> bytes:
    """Return the bytes of a batch as a client wrote them."""
    (written,) = batch.records
    assert isinstance(written, SentRecords)
    return written.data


def size_of(batch: RecordBatch) -> int:
    """Return how many bytes a batch has on disk."""
    is_sent = batch.marker is None and isinstance(batch.records[0], SentRecords)
    return len(data_of(batch) if is_sent else as_bytes(batch, 0))


def keyed(batch: RecordBatch) -> Iterator[KeyedRecord]:
    """Yield the records of a batch as compaction sees them."""
    data = as_bytes(batch, 0)
    for record in records.read_records(data, records.read_header(data)):
        yield KeyedRecord(batch.base_offset + record.offset_delta, record.key, record.value is not None)


def rewritten(batch: RecordBatch, kept: Collection[int], horizon: int | None) -> RecordBatch:
    """Return a batch with the records at some offsets only; it says until when its tombstones stay."""
    if batch.marker is not None:
        return attrs.evolve(batch, records=batch.records if kept else (), delete_horizon=horizon)
    if not isinstance(batch.records[0], SentRecords):
        return internal_records.cleaned(batch, kept, horizon)
    (written,) = batch.records
    data = records.rewritten(written.data, {offset - batch.base_offset for offset in kept}, horizon)
    return attrs.evolve(batch, records=(attrs.evolve(written, data=data),), delete_horizon=horizon,
                        timestamp=records.read_header(data).max_timestamp)


FORM = BatchFormat(size_of, keyed, rewritten)


def record_times(batch: RecordBatch) -> Iterator[int]:
    """Yield the time stamp of each record of a batch, and none at offsets of records that are gone."""
    if batch.marker is not None:
        yield batch.timestamp if batch.records else records.NO_TIMESTAMP
        return
    if not isinstance(batch.records[0], SentRecords):
        yield from (batch.timestamp,) * len(batch.records)
        return
    data = data_of(batch)
    header = records.read_header(data)
    times = {record.offset_delta: records.time_of(header, record) for record in records.read_records(data, header)}
    yield from (times.get(delta, records.NO_TIMESTAMP) for delta in range(header.last_offset_delta + 1))


def list_offsets(here: AskedBroker, request: WireRequest) -> Handling:
    """Look up the earliest, the latest, or the first offset with a time stamp in each partition."""
    committed = request.message.get("isolation_level", 0) == 1
    level = requests.IsolationLevel.READ_COMMITTED if committed else requests.IsolationLevel.READ_UNCOMMITTED

    def fields(topic: str, index: int, response: Any) -> Fields:
        return told(response, leader_epoch=-1 if response.leader_epoch is None else response.leader_epoch)

    one = at_leader(here, requests.ListOffsetsResponse, lambda name, partition: requests.ListOffsetsRequest(
        request.version, name, partition["timestamp"], level, request.message["replica_id"],
        partition.get("current_leader_epoch")), checks=True)
    return {"topics": (yield from each(request.message["topics"], "partitions", one, fields))}


def offset_for_leader_epoch(here: AskedBroker, request: WireRequest) -> Handling:
    """Say where each partition's log leaves a leader epoch."""
    asked = [{"name": topic["topic"], "partitions": [
        {**partition, "partition_index": partition["partition"]} for partition in topic["partitions"]]}
        for topic in request.message["topics"]]
    one = at_leader(
        here, requests.OffsetForLeaderEpochResponse, lambda name, partition: requests.OffsetForLeaderEpochRequest(
            request.version, name, partition["leader_epoch"], partition.get("current_leader_epoch")), checks=True)
    found = yield from each(asked, "partitions", one)
    return {"topics": tuple({"topic": topic["name"], "partitions": tuple(
        {**row, "partition": row["partition_index"]} for row in topic["partitions"])} for topic in found)}


def delete_records(here: AskedBroker, request: WireRequest) -> Handling:
    """Delete what is before an offset in each partition."""
    of_clients = at_leader(here, requests.DeleteRecordsResponse, lambda name, partition: requests.DeleteRecordsRequest(
        request.version, name, partition["offset"]))

    def one(topic: str, index: int, partition: Any) -> object:
        if topic in requests.INTERNAL_TOPICS:
            return Refused(requests.DeleteRecordsResponse(Error.INVALID_TOPIC_EXCEPTION))
        return of_clients(topic, index, partition)

    return {"topics": (yield from each(request.message["topics"], "partitions", one))}
