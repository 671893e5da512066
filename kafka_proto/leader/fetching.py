"""Fetch, ListOffsets and DeleteRecords: what a leader reads from its log, and where each kind of reader has to stop."""

from __future__ import annotations

from collections.abc import Callable

from kafka_proto.log import PartitionLog, aborted_between, batches_between, delete_records
from kafka_proto.requests.error import Error
from kafka_proto.requests.records import (
    ConsumerFetchRequest,
    ConsumerFetchResponse,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    IsolationLevel,
    ListOffsetsRequest,
    ListOffsetsResponse,
)

LATEST, EARLIEST = -1, -2
COMMITTED = IsolationLevel.READ_COMMITTED


def fetch(log: PartitionLog, request: ConsumerFetchRequest) -> ConsumerFetchResponse:
    """Read up to the end for a follower, the last stable offset for committed records, else the high watermark.

    One reading of the log gives offsets, batches and aborted transactions: they fit together (KAFKA-9807, KAFKA-5376).
    What is listed as aborted began before the end of the log, though perhaps after what is read: a segment is indexed
    every 4 kB, and ours are shorter (`LogSegment.fetchUpperBoundOffset`). Where there is nothing to read, nothing is
    listed (`LocalLog.emptyFetchDataInfo`).
    """
    if not log.log_start_offset <= request.fetch_offset <= log.log_end_offset:
        return ConsumerFetchResponse(Error.OFFSET_OUT_OF_RANGE)
    stop = log.high_watermark
    if request.replica_id >= 0:
        stop = log.log_end_offset
    elif request.isolation_level is COMMITTED:
        stop = log.last_stable_offset
    batches = batches_between(log, request.fetch_offset, stop, request.max_batches)
    aborted = None
    if request.isolation_level is COMMITTED and request.replica_id < 0:
        aborted = aborted_between(log, request.fetch_offset, log.log_end_offset) if batches else ()
    return ConsumerFetchResponse(
        Error.NONE, log.high_watermark, log.last_stable_offset, log.log_start_offset, aborted, batches
    )


def list_offsets(log: PartitionLog, request: ListOffsetsRequest) -> ListOffsetsResponse:
    """Return the earliest offset, the latest that the reader may see, or the first one with a time stamp."""
    latest = log.last_stable_offset if request.isolation_level is COMMITTED else log.high_watermark
    if request.timestamp == LATEST:
        return ListOffsetsResponse(Error.NONE, latest)
    if request.timestamp == EARLIEST:
        return ListOffsetsResponse(Error.NONE, log.log_start_offset)
    found = (batch.base_offset for batch in log.batches if batch.timestamp >= request.timestamp)
    offset = next(found, -1)
    return ListOffsetsResponse(Error.NONE, offset if offset < latest else -1)


def forget_nothing(log: PartitionLog) -> PartitionLog:
    """Keep producers whose records were deleted, until they expire (since Kafka 2.4, KAFKA-7190)."""
    return log


def delete(
    log: PartitionLog, request: DeleteRecordsRequest, after_deletion: Callable[[PartitionLog], PartitionLog]
) -> tuple[PartitionLog, DeleteRecordsResponse]:
    """Delete what is before an offset that is at most the high watermark (KIP-107)."""
    offset = log.high_watermark if request.offset == -1 else request.offset
    if not 0 <= offset <= log.high_watermark:
        return log, DeleteRecordsResponse(Error.OFFSET_OUT_OF_RANGE)
    shorter = after_deletion(delete_records(log, offset))
    return shorter, DeleteRecordsResponse(Error.NONE, shorter.log_start_offset)
