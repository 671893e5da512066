"""What a producer keeps (`TransactionManager`, `RecordAccumulator`)."""

from __future__ import annotations

from enum import StrEnum

import attrs

from harness.model import FrozenMap, Value
from kafka_proto.log.records import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE
from kafka_proto.requests import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    Error,
    InitProducerIdRequest,
    TxnOffsetCommitRequest,
)

TransactionalRequest = (
    InitProducerIdRequest | AddPartitionsToTxnRequest | AddOffsetsToTxnRequest | EndTxnRequest | TxnOffsetCommitRequest
)


class ProducerStatus(StrEnum):
    """`TransactionManager.State`."""

    UNINITIALIZED = "UNINITIALIZED"
    INITIALIZING = "INITIALIZING"
    READY = "READY"
    IN_TRANSACTION = "IN_TRANSACTION"
    COMMITTING_TRANSACTION = "COMMITTING_TRANSACTION"
    ABORTING_TRANSACTION = "ABORTING_TRANSACTION"
    ABORTABLE_ERROR = "ABORTABLE_ERROR"
    FATAL_ERROR = "FATAL_ERROR"


COMPLETING = (ProducerStatus.COMMITTING_TRANSACTION, ProducerStatus.ABORTING_TRANSACTION)
TRANSACTION_TIMEOUT_MS = 60_000


@attrs.frozen
class Batch:
    """A batch that is not acknowledged. It keeps the sequence that it was first sent with."""

    partition: str
    records: tuple[Value, ...]
    base_sequence: int = NO_SEQUENCE
    in_flight: bool = False
    backs_off: bool = False

    @property
    def was_sent(self) -> bool:
        """Whether a leader may have it."""
        return self.base_sequence != NO_SEQUENCE


@attrs.frozen
class TransactionalCall:
    """The transactional request under way; there is one at most. One that is not sent is to be sent again as it is."""

    request: TransactionalRequest
    is_sent: bool = False
    backs_off: bool = False


@attrs.frozen
class OffsetsToCommit:
    """What `send_offsets_to_transaction` was given: one partition's offset, for a group as its consumer knows it."""

    group_id: str
    partition: str
    offset: int
    generation_id: int = -1
    member_id: str = ""


@attrs.frozen
class Producer:
    """A transactional producer. Partitions are names, sorted."""

    status: ProducerStatus = ProducerStatus.UNINITIALIZED
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_PRODUCER_EPOCH
    last_error: Error = Error.NONE
    needs_new_epoch: bool = False
    """After an abortable error: once the transaction is aborted, InitProducerId with id and epoch (KIP-360)."""
    next_sequence: FrozenMap[str, int] = FrozenMap()
    new_partitions: tuple[str, ...] = ()
    """To be added to the transaction before anything is sent to them."""
    partitions: tuple[str, ...] = ()
    """Part of the transaction; for clients whose leaders add them, those that something was sent to."""
    batches: tuple[Batch, ...] = ()
    """Oldest first."""
    offsets: tuple[OffsetsToCommit, ...] = ()
    groups: tuple[str, ...] = ()
    """Whose offsets partition was added to the transaction."""
    call: TransactionalCall | None = None
    is_ended: bool = False
    """The end of the transaction was acknowledged, and a new epoch is still to be asked for."""

    @property
    def is_started(self) -> bool:
        """Whether a coordinator or leader may know of the transaction."""
        return bool(self.partitions or self.groups)
