"""Fetch, ListOffsets and DeleteRecords: what a leader reads from its log, and where each kind of reader has to stop."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial

from kafka_proto import requests
from kafka_proto.broker.leader.epochs import EpochCache
from kafka_proto.errors import Error
from kafka_proto.log import PartitionLog, RecordBatch, aborted_between, batches_between, delete_records

LATEST, EARLIEST, LARGEST_TIME, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD = range(-1, -7, -1)
SINCE = {LATEST: 1, EARLIEST: 1, LARGEST_TIME: 7, EARLIEST_LOCAL: 8, LATEST_TIERED: 9, EARLIEST_PENDING_UPLOAD: 11}
"""The first version in which each negative time means something."""
TIERED = (LATEST_TIERED, EARLIEST_PENDING_UPLOAD)
CONSUMER, NO_TIME = -1, -1
COMMITTED = requests.IsolationLevel.READ_COMMITTED


def fetch(log: PartitionLog, request: requests.ConsumerFetchRequest) -> requests.ConsumerFetchResponse:
    """Read up to the end for a follower, the last stable offset for committed records, else the high watermark.

    One reading of the log gives offsets, batches and aborted transactions: they fit together (KAFKA-9807, KAFKA-5376).
    What is listed as aborted began before the end of the log, though perhaps after what is read: a segment is indexed
    every 4 kB, and ours are shorter (`LogSegment.fetchUpperBoundOffset`). If nothing can be read, nothing is listed
    (`LocalLog.emptyFetchDataInfo`).
    """
    if not log.log_start_offset <= request.fetch_offset <= log.log_end_offset:
        return requests.ConsumerFetchResponse(Error.OFFSET_OUT_OF_RANGE)
    stop = log.high_watermark
    if request.replica_id >= 0:
        stop = log.log_end_offset
    elif request.isolation_level is COMMITTED:
        stop = log.last_stable_offset
    batches = batches_between(log, request.fetch_offset, stop, request.max_batches)
    aborted = None
    if request.isolation_level is COMMITTED and request.replica_id < 0:
        aborted = aborted_between(log, request.fetch_offset, log.log_end_offset) if batches else ()
    return requests.ConsumerFetchResponse(
        Error.NONE, log.high_watermark, log.last_stable_offset, log.log_start_offset, aborted, batches
    )


def any_time(timestamp: int, version: int) -> Error:
    """Look every time up."""
    return Error.NONE


def known_time(timestamp: int, version: int) -> Error:
    """Refuse a negative one that means nothing in a version (`KafkaApis.handleListOffsetRequest` of 3.9)."""
    known = timestamp >= 0 or SINCE.get(timestamp, version + 1) <= version
    return Error.NONE if known else Error.UNSUPPORTED_VERSION


def written_together(batch: RecordBatch) -> Iterable[int]:
    """Return the time stamps of a batch's records, where all have the batch's."""
    return (batch.timestamp,) * (batch.last_offset_delta + 1)


def list_offsets(
    log: PartitionLog, request: requests.ListOffsetsRequest, check_time: Callable[[int, int], Error] = known_time,
    times: Callable[[RecordBatch], Iterable[int]] = written_together, epochs: EpochCache | None = None,
) -> requests.ListOffsetsResponse:
    """Return the earliest offset, the latest that the reader may see, or the first record of a time or after it.

    A new leader whose high watermark has not reached its epoch does not know the latest (KIP-207). A request with a
    replica id is not held back by open transactions (`Partition.fetchOffsetForTimestamp`).
    """
    response = partial(_with_epoch, epochs)
    latest = log.last_stable_offset if request.isolation_level is COMMITTED else log.high_watermark
    if request.replica_id != CONSUMER:
        latest = log.log_end_offset
    is_behind = epochs is not None and request.replica_id == CONSUMER and epochs.starts[-1][1] > log.high_watermark
    beyond = Error.OFFSET_NOT_AVAILABLE if is_behind else Error.NONE
    if request.timestamp == LATEST:
        return requests.ListOffsetsResponse(beyond) if is_behind else response(latest, is_latest=True)
    error = check_time(request.timestamp, request.version)
    if error is not Error.NONE:
        return requests.ListOffsetsResponse(error)
    if request.timestamp in (EARLIEST, EARLIEST_LOCAL):
        return response(log.log_start_offset)
    if request.timestamp in TIERED and SINCE[request.timestamp] <= request.version:  # nothing is tiered
        return requests.ListOffsetsResponse(Error.NONE)
    found = _of_largest_time(log, times) if request.timestamp == LARGEST_TIME else (
        (offset, time) for batch in log.batches if batch.timestamp >= request.timestamp
        for offset, time in enumerate(times(batch), batch.base_offset)
        if time >= request.timestamp and offset >= log.log_start_offset)
    offset, time = next(found, (latest, NO_TIME))
    return response(offset, time) if offset < latest else requests.ListOffsetsResponse(beyond)


def _of_largest_time(log: PartitionLog, times: Callable[[RecordBatch], Iterable[int]]) -> Iterator[tuple[int, int]]:
    """Yield the first record of the largest time stamp, with that, if there is a record (KIP-734)."""
    if log.batches:
        batch = max(log.batches, key=lambda each: each.timestamp)
        yield max(enumerate(times(batch), batch.base_offset), key=lambda each: each[1])


def _with_epoch(
    epochs: EpochCache | None, offset: int, time: int = NO_TIME, is_latest: bool = False
) -> requests.ListOffsetsResponse:
    """Return an offset with the leader epoch of its record; the latest has that of the leader."""
    epoch = None if epochs is None else epochs.latest if is_latest else epochs.at(offset)
    return requests.ListOffsetsResponse(Error.NONE, offset, time, epoch)


def diverging(log: PartitionLog, end: requests.EpochEndOffset) -> requests.ConsumerFetchResponse:
    """Say where a log leaves the reader's (KIP-595); no epoch so old is in it if the epoch is -1."""
    if end.leader_epoch < 0:
        return requests.ConsumerFetchResponse(Error.OFFSET_OUT_OF_RANGE)
    return requests.ConsumerFetchResponse(
        Error.NONE, log.high_watermark, log.last_stable_offset, log.log_start_offset, None, diverging_epoch=end
    )


def forget_nothing(log: PartitionLog) -> PartitionLog:
    """Keep producers whose records were deleted, until they expire (since Kafka 2.4, KAFKA-7190)."""
    return log


def delete(
    log: PartitionLog, request: requests.DeleteRecordsRequest, after_deletion: Callable[[PartitionLog], PartitionLog]
) -> tuple[PartitionLog, requests.DeleteRecordsResponse]:
    """Delete what is before an offset that is at most the high watermark (KIP-107)."""
    offset = log.high_watermark if request.offset == -1 else request.offset
    if not 0 <= offset <= log.high_watermark:
        return log, requests.DeleteRecordsResponse(Error.OFFSET_OUT_OF_RANGE)
    shorter = after_deletion(delete_records(log, offset))
    return shorter, requests.DeleteRecordsResponse(Error.NONE, shorter.log_start_offset)
