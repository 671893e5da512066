"""The checks of a batch, or a marker, before it is appended.

`UnifiedLog.analyzeAndValidateProducerState`, `ProducerAppendInfo`; of a marker `appendEndTxnMarker`.
"""

from __future__ import annotations

from kafka_proto.broker.leader.verification import NO_GUARD, Verification
from kafka_proto.log import (
    MAX_EPOCH,
    MAX_SEQUENCE,
    NO_PRODUCER_EPOCH,
    NO_SEQUENCE,
    Marker,
    ProducerState,
    RecordBatch,
    marker_batch,
)
from kafka_proto.requests import Error, WriteTxnMarkersRequest


def take_unverified(known: ProducerState, batch: RecordBatch, verification: Verification | None, guard: int) -> Error:
    """Take every transactional batch (before KIP-890): a late one opens a transaction that is never ended."""
    return Error.NONE


def check_open_or_guard(
    known: ProducerState, batch: RecordBatch, verification: Verification | None, guard: int
) -> Error:
    """Take a transactional batch of an open transaction, or with the guard of the verification that is in force."""
    if known.open_from is not None:
        return Error.NONE
    return check_guard(verification, guard)


def check_open_or_guard_of_clients(
    known: ProducerState, batch: RecordBatch, verification: Verification | None, guard: int
) -> Error:
    """As `check_open_or_guard`; offset commits, which have no sequence, are taken unverified (3.6)."""
    return Error.NONE if batch.base_sequence == NO_SEQUENCE else check_open_or_guard(known, batch, verification, guard)


def check_open_in_epoch_or_guard(
    known: ProducerState, batch: RecordBatch, verification: Verification | None, guard: int
) -> Error:
    """Take a transactional batch of an open transaction of its epoch, or with the guard in force (KAFKA-18575)."""
    if known.open_from is not None and known.producer_epoch == batch.producer_epoch:
        return Error.NONE
    return check_guard(verification, guard)


def check_epoch_before_guard(
    known: ProducerState, batch: RecordBatch, verification: Verification | None, guard: int
) -> Error:
    """As `check_open_in_epoch_or_guard`; of a stale epoch a client is told that, which is not fatal (KAFKA-19690)."""
    if batch.producer_epoch < known.producer_epoch:
        return Error.INVALID_PRODUCER_EPOCH
    return check_open_in_epoch_or_guard(known, batch, verification, guard)


def check_guard(verification: Verification | None, guard: int) -> Error:
    """Take the guard in force: any append or marker of the producer since it was made has dropped it (KAFKA-14884)."""
    if guard != NO_GUARD and verification is not None and verification.guard == guard:
        return Error.NONE
    return Error.INVALID_TXN_STATE


def check_sequence(known: ProducerState, batch: RecordBatch, verification: Verification | None) -> Error:
    """Say whether a batch follows the last one: 0 in a new epoch, anything if nothing is known of its producer."""
    if batch.producer_epoch != known.producer_epoch:
        if batch.base_sequence != 0 and known.producer_epoch != NO_PRODUCER_EPOCH:
            return Error.OUT_OF_ORDER_SEQUENCE_NUMBER
        return Error.NONE
    if not follows(known.last_sequence, batch.base_sequence):
        return Error.OUT_OF_ORDER_SEQUENCE_NUMBER
    return Error.NONE


def check_sequence_known(known: ProducerState, batch: RecordBatch, verification: Verification | None) -> Error:
    """Say UNKNOWN_PRODUCER_ID if no batch is remembered that a sequence could follow (up to Kafka 2.4)."""
    if batch.base_sequence != 0:
        if known.producer_epoch == NO_PRODUCER_EPOCH:
            return Error.UNKNOWN_PRODUCER_ID
        if batch.producer_epoch == known.producer_epoch and not known.batches:
            return Error.UNKNOWN_PRODUCER_ID
    return check_sequence(known, batch, verification)


def check_sequence_verified(known: ProducerState, batch: RecordBatch, verification: Verification | None) -> Error:
    """Let no batch pass that is above the lowest one seen while its transaction is verified (KAFKA-14920)."""
    if verification is not None and batch.base_sequence > verification.lowest_sequence:
        return Error.OUT_OF_ORDER_SEQUENCE_NUMBER
    return check_sequence(known, batch, verification)


def check_sequence_from_zero(known: ProducerState, batch: RecordBatch, verification: Verification | None) -> Error:
    """Let an unknown producer begin at 0 only, where the leader adds the partition itself."""
    if verification is not None and verification.adds_partition and batch.base_sequence != 0 and not known.batches:
        return Error.OUT_OF_ORDER_SEQUENCE_NUMBER
    return check_sequence_verified(known, batch, verification)


def follows(last: int, sequence: int) -> bool:
    """Say whether a sequence is the one after another; they wrap after 2^31 - 1."""
    if last == MAX_SEQUENCE:
        return sequence == 0
    return sequence == last + 1


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
