"""What clients, followers and coordinators ask of a partition's leader, and what it answers: one partition at a time.

A request of the wire that names several partitions is several of these; a leader decides on each by itself.
"""

from __future__ import annotations

from enum import StrEnum

import attrs

from harness.model import FrozenMap, absent_if_none
from kafka_proto.errors import Error
from kafka_proto.log.partition_log import AbortedTransaction
from kafka_proto.log.producer_state import ProducerState
from kafka_proto.log.records import RecordBatch


class IsolationLevel(StrEnum):
    READ_UNCOMMITTED = "read_uncommitted"
    READ_COMMITTED = "read_committed"


@attrs.frozen
class ProduceRequest:
    version: int
    transactional_id: str | None
    acks: int
    partition: str
    batch: RecordBatch
    refused: Error = Error.NONE
    """Why a log does not take the batch, whose bytes are known to a codec only."""


@attrs.frozen
class ProduceResponse:
    """`log_start_offset` is there where the batch came as far as the log, which took or refused it."""

    error: Error
    base_offset: int = -1
    log_start_offset: int | None = attrs.field(default=None, metadata=absent_if_none())


@attrs.frozen
class DescribeProducersRequest:
    """Whom a partition knows as its producers (KIP-664)."""

    version: int
    partition: str


@attrs.frozen
class DescribeProducersResponse:
    error: Error
    producers: FrozenMap[int, ProducerState] = FrozenMap()
    """By producer id."""


@attrs.frozen
class WriteTxnMarkersRequest:
    """One producer's markers (Kafka's request may hold several)."""

    version: int
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    committed: bool
    partitions: tuple[str, ...]
    transaction_version: int = 0
    """From version 2 (KIP-1228): 2 where the coordinator bumped the epoch with this marker."""


@attrs.frozen
class WriteTxnMarkersResponse:
    errors: FrozenMap[str, Error]
    """By partition."""


@attrs.frozen
class ConsumerFetchRequest:
    """A consumer's fetch; a follower's has a `replica_id`, and reads up to the end of the log."""

    version: int
    partition: str
    fetch_offset: int
    isolation_level: IsolationLevel = IsolationLevel.READ_UNCOMMITTED
    replica_id: int = -1
    max_batches: int | None = None
    min_bytes: int = 1
    """0 is answered at once, whether there is anything new or not."""


@attrs.frozen
class ConsumerFetchResponse:
    error: Error
    high_watermark: int = -1
    last_stable_offset: int = -1
    log_start_offset: int = -1
    aborted_transactions: tuple[AbortedTransaction, ...] | None = None
    """None where the request did not ask for committed records."""
    batches: tuple[RecordBatch, ...] = ()


@attrs.frozen
class ListOffsetsRequest:
    """The offset for a time stamp; -1 is the latest one that the isolation level may read, -2 the earliest."""

    version: int
    partition: str
    timestamp: int
    isolation_level: IsolationLevel = IsolationLevel.READ_UNCOMMITTED
    replica_id: int = -1


@attrs.frozen
class ListOffsetsResponse:
    """An offset; looked up by time, with the time stamp of its record."""

    error: Error
    offset: int = -1
    timestamp: int = -1


@attrs.frozen
class DeleteRecordsRequest:
    """Delete what is before an offset; -1 means all up to the high watermark."""

    version: int
    partition: str
    offset: int


@attrs.frozen
class DeleteRecordsResponse:
    error: Error
    low_watermark: int = -1
