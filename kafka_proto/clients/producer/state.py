"""What a producer keeps (`TransactionManager`, `RecordAccumulator`)."""

from __future__ import annotations

from enum import StrEnum

import attrs

from harness.model import FrozenMap, Value
from kafka_proto.log import MAX_SEQUENCE, NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE
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
    """A batch that is not resolved. Its number says which one it is, whatever sequence it has by now."""

    number: int
    partition: str
    records: tuple[Value, ...]
    base_sequence: int = NO_SEQUENCE
    producer_epoch: int = NO_PRODUCER_EPOCH
    in_flight: bool = False
    backs_off: bool = False
    is_renumbered: bool = False
    """It has another sequence than the one that it was last sent with (`sequenceHasBeenReset`)."""

    @property
    def was_sent(self) -> bool:
        """Whether a leader may have it."""
        return self.base_sequence != NO_SEQUENCE

    def after(self, sequence: int) -> int:
        """Return the sequence that follows the batch, if it has this one."""
        return (sequence + len(self.records)) % (MAX_SEQUENCE + 1)


@attrs.frozen
class Sequences:
    """How far the sequences of a partition are (`TxnPartitionEntry`), in an epoch of a producer id."""

    producer_id: int
    producer_epoch: int
    following: int = 0
    """That of the next new record."""
    acknowledged: int = NO_SEQUENCE
    unresolved: int = NO_SEQUENCE
    """What follows the last batch that timed out: a leader may have it or not. A transaction is aborted instead."""


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
    """A producer; without a transactional id it only writes. Partitions are names, sorted."""

    transactional_id: str | None = None
    status: ProducerStatus = ProducerStatus.UNINITIALIZED
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_PRODUCER_EPOCH
    last_error: Error = Error.NONE
    needs_new_epoch: bool = False
    """After an abortable error: once the transaction is aborted, InitProducerId with id and epoch (KIP-360)."""
    sequences: FrozenMap[str, Sequences] = FrozenMap()
    """By partition."""
    new_partitions: tuple[str, ...] = ()
    """To be added to the transaction before anything is sent to them."""
    partitions: tuple[str, ...] = ()
    """Part of the transaction; for clients whose leaders add them, those that something was sent to."""
    batches: tuple[Batch, ...] = ()
    """Oldest first."""
    numbers: int = 0
    """How many batches there were."""
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

    def ready(self, producer_id: int, producer_epoch: int) -> Producer:
        """Return the producer with an id and epoch, and nothing under way but its batches."""
        return Producer(
            self.transactional_id, ProducerStatus.READY, producer_id, producer_epoch, batches=self.batches,
            numbers=self.numbers,
        )

    def batch(self, number: int) -> Batch | None:
        """Return the batch with a number, None where it is resolved."""
        return next((batch for batch in self.batches if batch.number == number), None)

    def with_batch(self, number: int, batch: Batch | None) -> Producer:
        """Return the producer with another batch of a number, or with none."""
        found = (batch if known.number == number else known for known in self.batches)
        return attrs.evolve(self, batches=tuple(known for known in found if known is not None))

    def sequences_of(self, partition: str) -> Sequences:
        """Return how far a partition is: anew where its id, or epoch, is of before and nothing of it is left."""
        known = self.sequences.get(partition)
        if known is None or (self.is_stale(known) and not self.sent_to(partition)):
            return Sequences(self.producer_id, self.producer_epoch)
        return known

    def with_sequences(self, partition: str, known: Sequences) -> Producer:
        return attrs.evolve(self, sequences=self.sequences.set(partition, known))

    def is_stale(self, known: Sequences) -> bool:
        return (known.producer_id, known.producer_epoch) != (self.producer_id, self.producer_epoch)

    def sent_to(self, partition: str) -> tuple[Batch, ...]:
        """Return the batches of a partition that were sent and are not resolved, oldest first."""
        return tuple(batch for batch in self.batches if batch.partition == partition and batch.was_sent)
