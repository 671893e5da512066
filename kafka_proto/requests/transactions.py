"""What clients and brokers ask of a transaction coordinator, and what it answers.

Partitions are names (`T-0`), sorted. Times are milliseconds. A producer id or epoch of -1 is none.
"""

from __future__ import annotations

from enum import StrEnum

import attrs

from harness.model import FrozenMap
from kafka_proto.errors import Error
from kafka_proto.log.records import NO_PRODUCER_EPOCH, NO_PRODUCER_ID


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


@attrs.frozen
class InitProducerIdResponse:
    error: Error
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_PRODUCER_EPOCH


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
