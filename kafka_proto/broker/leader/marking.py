"""A marker as a coordinator asks for it, and the checks before its append (`ProducerAppendInfo.appendEndTxnMarker`)."""

from __future__ import annotations

from kafka_proto.log import MAX_EPOCH, Marker, ProducerState, RecordBatch, marker_batch
from kafka_proto.requests import Error, WriteTxnMarkersRequest


def marker_of(request: WriteTxnMarkersRequest, now: int) -> RecordBatch:
    """Return the batch that a coordinator asks leaders to append."""
    kind = Marker.COMMIT if request.committed else Marker.ABORT
    return marker_batch(request.producer_id, request.producer_epoch, kind, request.coordinator_epoch, now)


def check_marker(known: ProducerState, marker: RecordBatch, transaction_version: int) -> Error:
    """Refuse a marker of an epoch before the producer's, or of a coordinator before the last one."""
    if marker.producer_epoch < known.producer_epoch:
        return Error.INVALID_PRODUCER_EPOCH
    if marker.coordinator_epoch < known.coordinator_epoch:
        return Error.TRANSACTION_COORDINATOR_FENCED
    return Error.NONE


def check_marker_strictly(known: ProducerState, marker: RecordBatch, transaction_version: int) -> Error:
    """As `check_marker`; a marker that bumps the epoch must be above the producer's (KIP-1228).

    At the same epoch with nothing open it is a retry, and written again (KAFKA-19999).
    """
    if transaction_version < 2:
        return check_marker(known, marker, transaction_version)
    if marker.producer_epoch < known.producer_epoch:
        return Error.INVALID_PRODUCER_EPOCH
    if marker.producer_epoch == known.producer_epoch and known.open_from is not None:
        return Error.INVALID_PRODUCER_EPOCH
    if marker.coordinator_epoch < known.coordinator_epoch:
        return Error.TRANSACTION_COORDINATOR_FENCED
    return Error.NONE


def check_marker_up_to_last(known: ProducerState, marker: RecordBatch, transaction_version: int) -> Error:
    """As `check_marker_strictly`; at the very last epoch, above which there is none, as `check_marker` (4.3)."""
    check = check_marker if marker.producer_epoch == MAX_EPOCH else check_marker_strictly
    return check(known, marker, transaction_version)
