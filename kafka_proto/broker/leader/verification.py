"""Verification: before the first batch of a transaction the leader asks the coordinator about it (KIP-890).

`UnifiedLog.maybeStartTransactionVerification`, `ProducerStateManager.maybeCreateVerificationStateEntry` and
`AddPartitionsToTxnManager`. A guard is valid until the producer's next transactional append or marker (KAFKA-14884);
of a verification that adds the partition, a marker leaves it.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

import attrs

from harness.model import FrozenMap, fresh, volatile
from kafka_proto.log import EMPTY_LOG, PartitionLog, ProducerState
from kafka_proto.requests import AddPartitionsToTxnRequest, Error

NO_GUARD = 0


class Origin(StrEnum):
    """Where a batch comes from, which says how much of it is checked (`AppendOrigin`)."""

    CLIENT = "client"
    COORDINATOR = "coordinator"


class SupportedOperation(StrEnum):
    """What a leader asks of the coordinator on behalf of a request (`TransactionSupportedOperation`)."""

    DEFAULT_ERROR = "default error"
    """Verify; the client knows no TRANSACTION_ABORTABLE."""
    GENERIC_ERROR = "generic error"
    """Verify."""
    ADD_PARTITION = "add partition"
    """Add the partition to the transaction (KIP-890 part 2)."""


@attrs.frozen
class Verification:
    """A verification of a transaction's first batch, volatile. The guard is an object of one round: a fresh number."""

    guard: int = attrs.field(metadata=fresh("guard", "self", "part"))
    lowest_sequence: int
    producer_epoch: int
    adds_partition: bool
    started: int


@attrs.frozen
class LeaderState:
    """A partition's leader: what it derives from its log, and the verifications under way."""

    log: PartitionLog = volatile(default=EMPTY_LOG)
    verifications: FrozenMap[int, Verification] = volatile(default=FrozenMap())
    guards: int = volatile(default=0, metadata=fresh("guard", "self", "part"))
    """How many were made; `NO_GUARD` is none."""
    serves: bool = volatile(default=False)


def has_open_transaction(state: ProducerState, producer_epoch: int) -> bool:
    """Say whether a producer has an open transaction, of whatever epoch (up to 3.9)."""
    return state.open_from is not None


def has_open_transaction_of_epoch(state: ProducerState, producer_epoch: int) -> bool:
    """Say whether a producer has an open transaction of this epoch: an older one's may still be open (KAFKA-18575)."""
    return state.open_from is not None and state.producer_epoch == producer_epoch


VERIFY_VERSION = 5
"""Of the AddPartitionsToTxn that brokers send each other."""
OF_COORDINATORS = (
    Error.CONCURRENT_TRANSACTIONS, Error.COORDINATOR_LOAD_IN_PROGRESS, Error.COORDINATOR_NOT_AVAILABLE,
    Error.NOT_COORDINATOR,
)
"""What the coordinator may say that has nothing to do with the transaction."""
RETRIED_AS_FEW_REPLICAS = (*OF_COORDINATORS, Error.NETWORK_EXCEPTION)
"""What old clients would not retry after a Produce: they are told NOT_ENOUGH_REPLICAS instead."""


@attrs.frozen
class VerificationStarted:
    """Whether a batch has to wait for the coordinator: it does with a guard. An error ends it at once."""

    leader: LeaderState
    guard: int = NO_GUARD
    error: Error = Error.NONE


def no_operation(api: str, version: int) -> SupportedOperation | None:
    """Verify nothing (before KIP-890, or `transaction.partition.verification.enable=false`)."""
    return None


def verify_operation(api: str, version: int) -> SupportedOperation | None:
    """Verify; Produce from 11 and TxnOffsetCommit from 4 know TRANSACTION_ABORTABLE (KIP-1050, KIP-890 part 1)."""
    first = 11 if api == "Produce" else 4
    return SupportedOperation.GENERIC_ERROR if version >= first else SupportedOperation.DEFAULT_ERROR


def verify_produce_operation(api: str, version: int) -> SupportedOperation | None:
    """Verify what producers send; offsets are not verified (3.6)."""
    return verify_operation(api, version) if api == "Produce" else None


def add_or_verify_operation(api: str, version: int) -> SupportedOperation | None:
    """Add the partition for Produce from 12 and TxnOffsetCommit from 5, verify it for older ones (KIP-890 part 2)."""
    first = 12 if api == "Produce" else 5
    return SupportedOperation.ADD_PARTITION if version >= first else verify_operation(api, version)


def start(
    leader: LeaderState, producer_id: int, producer_epoch: int, sequence: int, operation: SupportedOperation,
    has_open: Callable[[ProducerState, int], bool], *, now: int,
) -> VerificationStarted:
    """Begin a verification, or join the one under way; a producer with an open transaction needs none."""
    if has_open(leader.log.producer(producer_id), producer_epoch):
        return VerificationStarted(leader)
    known = leader.verifications.get(producer_id)
    if known is None:
        made = leader.guards + 1
        adds = operation is SupportedOperation.ADD_PARTITION
        known = Verification(made, sequence, producer_epoch, adds, now)
        leader = attrs.evolve(leader, guards=made)
    if producer_epoch == known.producer_epoch and sequence < known.lowest_sequence:
        known = attrs.evolve(known, lowest_sequence=sequence)
    if producer_epoch > known.producer_epoch:
        known = attrs.evolve(known, producer_epoch=producer_epoch, lowest_sequence=sequence)
    leader = attrs.evolve(leader, verifications=leader.verifications.set(producer_id, known))
    return VerificationStarted(leader, known.guard)


def start_unless_stale(
    leader: LeaderState, producer_id: int, producer_epoch: int, sequence: int, operation: SupportedOperation,
    has_open: Callable[[ProducerState, int], bool], *, now: int,
) -> VerificationStarted:
    """Begin a verification, unless the epoch is below the one that the log has: then the coordinator is not asked."""
    if producer_epoch < leader.log.producer(producer_id).producer_epoch:
        return VerificationStarted(leader, error=Error.INVALID_PRODUCER_EPOCH)
    return start(leader, producer_id, producer_epoch, sequence, operation, has_open, now=now)


def verification_request(
    operation: SupportedOperation, transactional_id: str, producer_id: int, producer_epoch: int, partition: str
) -> AddPartitionsToTxnRequest:
    """Return what a leader asks the coordinator: whether a partition is part of a transaction, or to make it so."""
    verifies = operation is not SupportedOperation.ADD_PARTITION
    return AddPartitionsToTxnRequest(
        VERIFY_VERSION, transactional_id, producer_id, producer_epoch, (partition,), verifies
    )


def unverified(error: Error, operation: SupportedOperation) -> Error:
    """Return what the coordinator's answer means to the leader's client (`AddPartitionsToTxnHandler.onComplete`)."""
    if error is Error.PRODUCER_FENCED:
        return Error.INVALID_PRODUCER_EPOCH
    if error is Error.TRANSACTION_ABORTABLE and operation is SupportedOperation.DEFAULT_ERROR:
        return Error.INVALID_TXN_STATE
    return error


def unverified_produce(error: Error, operation: SupportedOperation) -> Error:
    """Return what a producer is told of a batch that could not be verified (`ReplicaManager.handleProduceAppend`)."""
    if error in RETRIED_AS_FEW_REPLICAS:
        return Error.NOT_ENOUGH_REPLICAS
    return error


def unverified_produce_but_unreached(error: Error, operation: SupportedOperation) -> Error:
    """As `unverified_produce`; that the coordinator was not reached is told as it is (3.6)."""
    return error if error is Error.NETWORK_EXCEPTION else unverified_produce(error, operation)


def unverified_produce_retriable(error: Error, operation: SupportedOperation) -> Error:
    """As `unverified_produce`; clients whose partitions the leader adds retry CONCURRENT_TRANSACTIONS (KAFKA-18662)."""
    if error is Error.CONCURRENT_TRANSACTIONS and operation is SupportedOperation.ADD_PARTITION:
        return error
    return unverified_produce(error, operation)
