"""AddPartitionsToTxn, AddOffsetsToTxn: partitions become part of a transaction; and whether they are (verify only)."""

from __future__ import annotations

from harness.model import FrozenMap
from kafka_proto.broker.coordinator.transaction import (
    AT_REST,
    PREPARED,
    Answer,
    CachedTransaction,
    Outcome,
    TxnState,
    log_change,
    prepare,
    refuse,
)
from kafka_proto.requests import AddOffsetsToTxnRequest, AddPartitionsToTxnRequest, Error

AddRequest = AddPartitionsToTxnRequest | AddOffsetsToTxnRequest


def wanted(request: AddRequest) -> tuple[str, ...]:
    """Return the partitions that a request names."""
    return (request.partition,) if isinstance(request, AddOffsetsToTxnRequest) else request.partitions


def add_partitions(request: AddRequest, cached: CachedTransaction | None, *, now: int) -> Outcome:
    """Add partitions (`handleAddPartitionsToTransaction`, KIP-98)."""
    if request.transactional_id == "":
        return refuse(Error.INVALID_REQUEST)
    if cached is None:
        return refuse(Error.INVALID_PRODUCER_ID_MAPPING)
    if request.producer_id != cached.metadata.producer_id:
        return refuse(Error.INVALID_PRODUCER_ID_MAPPING)
    if request.producer_epoch != cached.metadata.producer_epoch:
        return refuse(Error.PRODUCER_FENCED)
    if cached.pending_state is not None:
        return refuse(Error.CONCURRENT_TRANSACTIONS)
    return _add(request, cached, now)


def add_partitions_pending_first(request: AddRequest, cached: CachedTransaction | None, *, now: int) -> Outcome:
    """Add partitions, after waiting for what is pending: that may be a new producer id (KAFKA-18660)."""
    if request.transactional_id == "":
        return refuse(Error.INVALID_REQUEST)
    if cached is None:
        return refuse(Error.INVALID_PRODUCER_ID_MAPPING)
    if cached.pending_state is not None:
        return refuse(Error.CONCURRENT_TRANSACTIONS)
    if request.producer_id != cached.metadata.producer_id:
        return refuse(Error.INVALID_PRODUCER_ID_MAPPING)
    if request.producer_epoch != cached.metadata.producer_epoch:
        return refuse(Error.PRODUCER_FENCED)
    return _add(request, cached, now)


def _add(request: AddRequest, cached: CachedTransaction, now: int) -> Outcome:
    """Add partitions, if the producer may, to a transaction for which nothing is pending."""
    known = cached.metadata
    if known.state in PREPARED:
        return refuse(Error.CONCURRENT_TRANSACTIONS)
    if known.state is TxnState.ONGOING and set(wanted(request)) <= set(known.partitions):
        return Outcome(Answer())
    begun = now if known.state in AT_REST else known.start_timestamp
    entry = prepare(cached, state=TxnState.ONGOING, partitions=tuple(sorted({*known.partitions, *wanted(request)})),
                    start_timestamp=begun, last_update_timestamp=now)
    return log_change(cached, entry, Answer())


def verify_partitions(
    request: AddPartitionsToTxnRequest, cached: CachedTransaction | None, *, absent: Error
) -> FrozenMap[str, Error]:
    """Say which partitions are part of a transaction (`handleVerifyPartitionsInTransaction`, KIP-890 part 1).

    What is pending is not looked at, since the leader has a guard of its own. `absent` is the code of the others.
    """
    if request.transactional_id == "":
        return _all(request, Error.INVALID_REQUEST)
    if cached is None:
        return _all(request, Error.INVALID_PRODUCER_ID_MAPPING)
    known = cached.metadata
    if request.producer_id != known.producer_id:
        return _all(request, Error.INVALID_PRODUCER_ID_MAPPING)
    if request.producer_epoch != known.producer_epoch:
        return _all(request, Error.PRODUCER_FENCED)
    if known.state in PREPARED:
        return _all(request, Error.CONCURRENT_TRANSACTIONS)
    return FrozenMap((name, Error.NONE if name in known.partitions else absent) for name in request.partitions)


def _all(request: AddPartitionsToTxnRequest, error: Error) -> FrozenMap[str, Error]:
    return FrozenMap((name, error) for name in request.partitions)
