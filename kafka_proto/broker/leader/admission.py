"""The leader of a partition as a role: batches and markers go in, what is to be asked and answered comes out."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from kafka_proto.broker.leader.fetching import fetch, known_time
from kafka_proto.broker.leader.verification import (
    LeaderState,
    Origin,
    SupportedOperation,
    Verification,
    VerificationStarted,
)
from kafka_proto.log import NO_PRODUCER_ID, PartitionLog, ProducerState, RecordBatch, append
from kafka_proto.requests import ConsumerFetchRequest, ConsumerFetchResponse, Error, ProduceRequest, is_internal


@attrs.frozen
class LeaderDecisions:
    """What a partition's leader decides. A version of a broker lists them."""

    operation: Callable[[str, int], SupportedOperation | None]
    """What is asked of the coordinator, by API and version of the client's request."""
    has_open: Callable[[ProducerState, int], bool]
    start_verification: Callable[..., VerificationStarted]
    check_verified: Callable[[ProducerState, RecordBatch, Verification | None, int], Error]
    check_sequence: Callable[[ProducerState, RecordBatch, Verification | None], Error]
    check_marker: Callable[[ProducerState, RecordBatch, int], Error]
    unverified_produce: Callable[[Error, SupportedOperation], Error]
    after_deletion: Callable[[PartitionLog], PartitionLog]
    """What is forgotten when records were deleted."""
    fetch: Callable[[PartitionLog, ConsumerFetchRequest], ConsumerFetchResponse] = fetch
    """What a reader gets of a log."""
    timestamp_after_max_ms: int | None = None
    """How far ahead of the clock a record's time may be (`message.timestamp.after.max.ms`)."""
    takes_append_time: bool = True
    """Whether a client may say of a batch that its times are those of the log, which is of no consequence."""
    check_time: Callable[[int, int], Error] = known_time
    """What is said of a time that offsets are looked up by."""


@attrs.frozen
class CheckedBatch:
    """Whether a batch may be appended. A duplicate is answered with the offset that it has already."""

    error: Error = Error.NONE
    duplicate_at: int | None = None


def lacks_transactional_id(request: ProduceRequest) -> bool:
    """Say whether a batch is of a transaction and the request of none: refused before its partition is looked for."""
    return request.batch.is_transactional and request.transactional_id is None


def admit(decisions: LeaderDecisions, leader: LeaderState, request: ProduceRequest, *, now: int) -> VerificationStarted:
    """Look at a Produce request before its batch is appended (`handleProduceRequest`, `handleProduceAppend`)."""
    batch = request.batch
    if lacks_transactional_id(request):
        return VerificationStarted(leader, error=Error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    operation = decisions.operation("Produce", request.version)
    if operation is None or not batch.is_transactional or batch.producer_id == NO_PRODUCER_ID:
        return VerificationStarted(leader)
    return decisions.start_verification(
        leader, batch.producer_id, batch.producer_epoch, batch.base_sequence, operation, decisions.has_open, now=now
    )


def refusal(request: ProduceRequest) -> Error:
    """Say why a batch is not appended, whatever is known of its producer (`ReplicaManager.appendRecords`).

    That comes after the coordinator was asked: the partition is part of the transaction then.
    """
    if request.acks not in (-1, 0, 1):
        return Error.INVALID_REQUIRED_ACKS
    if is_internal(request.partition):
        return Error.INVALID_TOPIC_EXCEPTION
    return request.refused


def check(
    decisions: LeaderDecisions, leader: LeaderState, batch: RecordBatch, origin: Origin, guard: int
) -> CheckedBatch:
    """Say whether a batch of data may be appended: duplicate, verification, epoch, sequence, open transaction.

    Offset commits come from the coordinator of groups and have no sequences.
    """
    if batch.producer_id == NO_PRODUCER_ID:
        return CheckedBatch()
    known = leader.log.producer(batch.producer_id)
    verification = leader.verifications.get(batch.producer_id)
    if origin is Origin.CLIENT:
        duplicate = known.duplicate_of(batch)
        if duplicate is not None:
            return CheckedBatch(duplicate_at=duplicate.first_offset)
    if batch.is_transactional:
        error = decisions.check_verified(known, batch, verification, guard)
        if error is not Error.NONE:
            return CheckedBatch(error)
    if batch.producer_epoch < known.producer_epoch:
        return CheckedBatch(Error.INVALID_PRODUCER_EPOCH)
    if origin is Origin.CLIENT:
        error = decisions.check_sequence(known, batch, verification)
        if error is not Error.NONE:
            return CheckedBatch(error)
    if known.open_from is not None and not batch.is_transactional:
        return CheckedBatch(Error.INVALID_TXN_STATE)
    return CheckedBatch()


def appended(leader: LeaderState, batch: RecordBatch) -> LeaderState:
    """Return a leader with a batch at the end of its log: it ends a verification (`clearVerificationStateEntry`).

    The marker of a transaction does not end one that adds the partition to the next, which is under way already.
    """
    verifications = leader.verifications
    known = verifications.get(batch.producer_id)
    if batch.is_transactional and known is not None and not (known.adds_partition and batch.marker is not None):
        verifications = verifications.without(batch.producer_id)
    return attrs.evolve(leader, log=append(leader.log, batch), verifications=verifications)
