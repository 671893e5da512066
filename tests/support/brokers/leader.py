"""A leader by itself, to which tests append one batch or marker after another, and the logs that they make."""

from __future__ import annotations

from functools import reduce

from kafka_proto.broker.leader.admission import CheckedBatch, LeaderDecisions, appended, check
from kafka_proto.broker.leader.verification import LeaderState, Origin
from kafka_proto.log import EMPTY_LOG, PartitionLog, RecordBatch, append, with_high_watermark
from kafka_proto.requests import Error


def append_batch(
    decisions: LeaderDecisions, leader: LeaderState, batch: RecordBatch, origin: Origin, guard: int
) -> tuple[LeaderState, CheckedBatch]:
    """Append a batch if it may be."""
    checked = check(decisions, leader, batch, origin, guard)
    return (appended(leader, batch) if checked == CheckedBatch() else leader), checked


def append_marker(
    decisions: LeaderDecisions, leader: LeaderState, marker: RecordBatch, transaction_version: int
) -> tuple[LeaderState, Error]:
    """Append a marker if it may be."""
    error = decisions.check_marker(leader.log.producer(marker.producer_id), marker, transaction_version)
    return (appended(leader, marker) if error is Error.NONE else leader), error


def log_of(*batches: RecordBatch) -> PartitionLog:
    """Return the log that some batches make, none of it replicated."""
    return reduce(append, batches, EMPTY_LOG)


def replicated(*batches: RecordBatch) -> PartitionLog:
    """Return the log that some batches make, all of it replicated."""
    log = log_of(*batches)
    return with_high_watermark(log, log.log_end_offset)
