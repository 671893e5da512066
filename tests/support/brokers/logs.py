"""Logs of a partition that tests write down batch by batch."""

from __future__ import annotations

from functools import reduce

from kafka_proto.log import EMPTY_LOG, PartitionLog, RecordBatch, append, with_high_watermark


def log_of(*batches: RecordBatch) -> PartitionLog:
    """Return the log that some batches make, none of it replicated."""
    return reduce(append, batches, EMPTY_LOG)


def replicated(*batches: RecordBatch) -> PartitionLog:
    """Return the log that some batches make, all of it replicated."""
    log = log_of(*batches)
    return with_high_watermark(log, log.log_end_offset)
