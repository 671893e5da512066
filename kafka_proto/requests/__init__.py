"""Kafka's requests and responses as plain frozen values, each request with its API `version`.

A broker decides per request version, not per cluster, so the version is part of the value. Names are those of Kafka's
message definitions in snake_case. The conformance files, the actors' messages and a codec of the wire map onto these
classes; nothing here decides, and nothing here knows bytes. What a group coordinator is asked is in `groups`.

A request is about one partition, topic or transaction: one of the wire that names several is several of these. The name
of a partition is that of its folder in Kafka's log, `T-0` or `__consumer_offsets-12`, as names sort, hash and compare
as text; partitions of a request are sorted. Times are milliseconds. A producer id or epoch of -1 is none.
"""

from __future__ import annotations

from enum import StrEnum

import attrs

from harness.model import FrozenMap, absent_if_none
from kafka_proto.errors import Error as Error
from kafka_proto.log import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, AbortedTransaction, ProducerState, RecordBatch
from kafka_proto.requests.groups import ConsumerGroupHeartbeatRequest as ConsumerGroupHeartbeatRequest
from kafka_proto.requests.groups import ConsumerGroupHeartbeatResponse as ConsumerGroupHeartbeatResponse
from kafka_proto.requests.groups import DeleteGroupRequest as DeleteGroupRequest
from kafka_proto.requests.groups import DeleteGroupResponse as DeleteGroupResponse
from kafka_proto.requests.groups import HeartbeatRequest as HeartbeatRequest
from kafka_proto.requests.groups import HeartbeatResponse as HeartbeatResponse
from kafka_proto.requests.groups import JoinGroupRequest as JoinGroupRequest
from kafka_proto.requests.groups import JoinGroupResponse as JoinGroupResponse
from kafka_proto.requests.groups import LeaveGroupRequest as LeaveGroupRequest
from kafka_proto.requests.groups import LeaveGroupResponse as LeaveGroupResponse
from kafka_proto.requests.groups import MemberIdentity as MemberIdentity
from kafka_proto.requests.groups import MemberResponse as MemberResponse
from kafka_proto.requests.groups import OffsetCommitRequest as OffsetCommitRequest
from kafka_proto.requests.groups import OffsetCommitResponse as OffsetCommitResponse
from kafka_proto.requests.groups import OffsetDeleteRequest as OffsetDeleteRequest
from kafka_proto.requests.groups import OffsetDeleteResponse as OffsetDeleteResponse
from kafka_proto.requests.groups import OffsetFetchRequest as OffsetFetchRequest
from kafka_proto.requests.groups import OffsetFetchResponse as OffsetFetchResponse
from kafka_proto.requests.groups import SyncGroupRequest as SyncGroupRequest
from kafka_proto.requests.groups import SyncGroupResponse as SyncGroupResponse
from kafka_proto.requests.groups import TxnOffsetCommitRequest as TxnOffsetCommitRequest
from kafka_proto.requests.groups import TxnOffsetCommitResponse as TxnOffsetCommitResponse

GROUP_TOPIC = "__consumer_offsets"
TRANSACTION_TOPIC = "__transaction_state"
INTERNAL_TOPICS = (GROUP_TOPIC, TRANSACTION_TOPIC)


def partition_name(topic: str, partition: int) -> str:
    """Return a partition's name, as Kafka's `TopicPartition.toString` does."""
    return f"{topic}-{partition}"


OFFSETS_PARTITION = partition_name(GROUP_TOPIC, 0)
"""The partition of the offsets topic that groups have if there is but one (Kafka has 50)."""
TRANSACTION_PARTITION = partition_name(TRANSACTION_TOPIC, 0)
"""The partition of the transaction log if there is but one (Kafka has 50)."""


def is_internal(name: str) -> bool:
    """Say whether a partition is of a topic that clients may not write to (`Topic.isInternal`)."""
    return topic_of(name) in INTERNAL_TOPICS


def topic_of(name: str) -> str:
    """Return the topic of a partition's name."""
    return name.rpartition("-")[0]


def partition_index(name: str) -> int:
    """Return the number of a partition's name. Raises ValueError if it has none."""
    return int(name.rpartition("-")[2])


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
    timeout_ms: int | None = attrs.field(default=None, metadata=absent_if_none())
    """How long an answer to `acks=all` may take, at a broker that has a clock."""

    @property
    def waits_for_isr(self) -> bool:
        """Say whether it is answered when all in-sync replicas have the batch, not when the leader has it."""
        return self.acks == -1


@attrs.frozen
class ProduceResponse:
    """`log_start_offset` is there where the batch came as far as the log, which took or refused it."""

    error: Error
    base_offset: int = -1
    log_start_offset: int | None = attrs.field(default=None, metadata=absent_if_none())


@attrs.frozen
class DescribeProducersRequest:
    """The producers that a partition knows (KIP-664)."""

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
    current_leader_epoch: int | None = attrs.field(default=None, metadata=absent_if_none())
    """From version 9 (KIP-320): the leader epoch as the client knows it."""
    last_fetched_epoch: int | None = attrs.field(default=None, metadata=absent_if_none())
    """From version 12 (KIP-595): the leader epoch of the last record before the offset."""


@attrs.frozen
class EpochEndOffset:
    """Where a log leaves a leader epoch: the largest epoch up to the one in question, and its end offset."""

    leader_epoch: int = -1
    end_offset: int = -1


@attrs.frozen
class ConsumerFetchResponse:
    error: Error
    high_watermark: int = -1
    last_stable_offset: int = -1
    log_start_offset: int = -1
    aborted_transactions: tuple[AbortedTransaction, ...] | None = None
    """None if the request did not ask for committed records."""
    batches: tuple[RecordBatch, ...] = ()
    diverging_epoch: EpochEndOffset | None = attrs.field(default=None, metadata=absent_if_none())
    """Where the log leaves the reader's: there is nothing to read until the reader has truncated."""


@attrs.frozen
class ListOffsetsRequest:
    """The offset for a time stamp; -1 is the latest one that the isolation level may read, -2 the earliest."""

    version: int
    partition: str
    timestamp: int
    isolation_level: IsolationLevel = IsolationLevel.READ_UNCOMMITTED
    replica_id: int = -1
    current_leader_epoch: int | None = attrs.field(default=None, metadata=absent_if_none())
    """From version 4 (KIP-320)."""


@attrs.frozen
class ListOffsetsResponse:
    """An offset; looked up by time, with the time stamp of its record."""

    error: Error
    offset: int = -1
    timestamp: int = -1
    leader_epoch: int | None = attrs.field(default=None, metadata=absent_if_none())


@attrs.frozen
class OffsetForLeaderEpochRequest:
    """Where a partition's log leaves a leader epoch (KIP-320)."""

    version: int
    partition: str
    leader_epoch: int
    current_leader_epoch: int | None = attrs.field(default=None, metadata=absent_if_none())


@attrs.frozen
class OffsetForLeaderEpochResponse:
    error: Error
    leader_epoch: int = -1
    end_offset: int = -1


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


class TxnState(StrEnum):
    """States of a transaction at its coordinator, by the names of Kafka's listings.

    `PrepareEpochFence` is only ever pending, `Dead` never written.
    """

    EMPTY = "Empty"
    ONGOING = "Ongoing"
    PREPARE_COMMIT = "PrepareCommit"
    PREPARE_ABORT = "PrepareAbort"
    COMPLETE_COMMIT = "CompleteCommit"
    COMPLETE_ABORT = "CompleteAbort"
    DEAD = "Dead"
    PREPARE_EPOCH_FENCE = "PrepareEpochFence"


@attrs.frozen
class InitProducerIdRequest:
    version: int
    transactional_id: str | None
    transaction_timeout_ms: int
    producer_id: int = NO_PRODUCER_ID
    """From version 3 (KIP-360)."""
    producer_epoch: int = NO_PRODUCER_EPOCH
    enable_2pc: bool | None = attrs.field(default=None, metadata=absent_if_none())
    """From version 6 (KIP-939): its transactions have no time-out."""
    keep_prepared_txn: bool | None = attrs.field(default=None, metadata=absent_if_none())
    """From version 6 (KIP-939): an open transaction is not aborted."""


@attrs.frozen
class InitProducerIdResponse:
    error: Error
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_PRODUCER_EPOCH
    ongoing_txn_producer_id: int | None = attrs.field(default=None, metadata=absent_if_none())
    """From version 6 (KIP-939): of the transaction that was kept."""
    ongoing_txn_producer_epoch: int | None = attrs.field(default=None, metadata=absent_if_none())


@attrs.frozen
class AddPartitionsToTxnRequest:
    """One transaction: versions 4 and 5, which only brokers send, may hold several; each of them is one of these."""

    version: int
    transactional_id: str
    producer_id: int
    producer_epoch: int
    partitions: tuple[str, ...]
    verify_only: bool = False


@attrs.frozen
class AddPartitionsToTxnResponse:
    errors: FrozenMap[str, Error]
    """By partition. All have one code, unless some are unknown or were verified one by one."""


@attrs.frozen
class AddOffsetsToTxnRequest:
    version: int
    transactional_id: str
    producer_id: int
    producer_epoch: int
    partition: str
    """The partition of the offsets topic that a group has (Kafka's broker finds it by the group's name)."""


@attrs.frozen
class AddOffsetsToTxnResponse:
    error: Error


@attrs.frozen
class EndTxnRequest:
    version: int
    transactional_id: str
    producer_id: int
    producer_epoch: int
    committed: bool


@attrs.frozen
class EndTxnResponse:
    error: Error
    producer_id: int = NO_PRODUCER_ID
    """From version 5 (KIP-890): what the next transaction is to use."""
    producer_epoch: int = NO_PRODUCER_EPOCH


@attrs.frozen
class DescribeTransactionsRequest:
    """One transactional id (Kafka's request may name several)."""

    version: int
    transactional_id: str


@attrs.frozen
class DescribeTransactionsResponse:
    error: Error
    state: str = ""
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_PRODUCER_EPOCH
    transaction_timeout_ms: int = 0
    transaction_start_time_ms: int = -1
    partitions: tuple[str, ...] = ()


@attrs.frozen
class ListTransactionsRequest:
    version: int
    state_filters: tuple[str, ...] = ()
    producer_id_filters: tuple[int, ...] = ()
    duration_filter: int = -1
    """From version 1 (KIP-994): only those that are open for longer, in milliseconds; below 0 it filters nothing."""


@attrs.frozen
class ListTransactionsResponse:
    error: Error
    unknown_state_filters: tuple[str, ...] = ()
    transactions: tuple[tuple[str, int, str], ...] = ()
    """Transactional id, producer id and state, sorted."""


CoordinatorRequest = InitProducerIdRequest | AddPartitionsToTxnRequest | AddOffsetsToTxnRequest | EndTxnRequest
CoordinatorResponse = InitProducerIdResponse | AddPartitionsToTxnResponse | AddOffsetsToTxnResponse | EndTxnResponse


@attrs.frozen
class CreateTopicsRequest:
    version: int
    topic: str
    partitions: int


@attrs.frozen
class CreateTopicsResponse:
    error: Error


@attrs.frozen
class DeleteTopicsRequest:
    version: int
    topic: str


@attrs.frozen
class DeleteTopicsResponse:
    error: Error
