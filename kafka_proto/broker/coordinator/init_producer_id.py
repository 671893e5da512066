"""InitProducerId: a producer begins, or goes on after an error (`handleInitProducerId`, KIP-98, KIP-360)."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from kafka_proto.broker.coordinator.transaction import (
    LAST_EPOCH,
    PREPARED,
    Answer,
    CachedTransaction,
    IllegalTransition,
    Outcome,
    TransactionMetadata,
    TxnState,
    log_change,
    prepare,
    refuse,
)
from kafka_proto.log import MAX_EPOCH, NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from kafka_proto.requests import Error, InitProducerIdRequest


@attrs.frozen
class Fenced:
    """The transaction is open: it is to be aborted at this epoch, and the client asks again."""

    cached: CachedTransaction
    producer_epoch: int


def init_producer_id(
    request: InitProducerIdRequest, cached: CachedTransaction | None, *, producer_id: int | None, now: int,
    max_timeout_ms: int, fences: Callable[[CachedTransaction], Fenced],
) -> Outcome | Fenced:
    """Give a producer its id and epoch; `producer_id` is the next free one, None if the block of ids is used up.

    Raises IllegalTransition if the owner of an open transaction cannot be fenced.
    """
    given = request.producer_id, request.producer_epoch
    if (request.producer_id == NO_PRODUCER_ID) is not (request.producer_epoch == NO_PRODUCER_EPOCH):
        return refuse(Error.INVALID_REQUEST)
    if request.transactional_id is None:
        if producer_id is None:
            return refuse(Error.COORDINATOR_LOAD_IN_PROGRESS)
        return Outcome(Answer(Error.NONE, producer_id, 0))
    if request.transactional_id == "":
        return refuse(Error.INVALID_REQUEST)
    if not 0 < request.transaction_timeout_ms <= max_timeout_ms:
        return refuse(Error.INVALID_TRANSACTION_TIMEOUT)
    took = cached is None
    if cached is None:
        if producer_id is None:
            return refuse(Error.COORDINATOR_LOAD_IN_PROGRESS)
        created = TransactionMetadata(producer_id, timeout_ms=request.transaction_timeout_ms, last_update_timestamp=now)
        cached = CachedTransaction(created)
    known = cached.metadata
    if cached.pending_state is not None:
        return refuse(Error.CONCURRENT_TRANSACTIONS)
    if request.producer_id != NO_PRODUCER_ID and not is_valid_producer_id(*given, known):
        return refuse(Error.PRODUCER_FENCED)
    if known.state in PREPARED:
        return refuse(Error.CONCURRENT_TRANSACTIONS)
    if known.state is TxnState.ONGOING:
        return fences(cached)
    expected = None if request.producer_id == NO_PRODUCER_ID else request.producer_epoch
    if known.is_epoch_exhausted and expected in (None, known.producer_epoch):
        if producer_id is None:
            return refuse(Error.COORDINATOR_LOAD_IN_PROGRESS)
        return _rotate(request, cached, producer_id, expected, now)
    return _bump(request, cached, expected, now, took)


def is_valid_producer_id(producer_id: int, producer_epoch: int, known: TransactionMetadata) -> bool:
    """Say whether the id that a client gives is not fenced: it is the current one, or there was none before.

    The previous one at its last epoch may be a retry after a bump whose answer was lost.
    """
    if known.producer_epoch == NO_PRODUCER_EPOCH:
        return True
    if producer_id == known.producer_id:
        return True
    return producer_id == known.previous_producer_id and producer_epoch >= LAST_EPOCH


def fence(cached: CachedTransaction) -> Fenced:
    """Return the epoch that the owner of an open transaction is fenced with (`prepareFenceProducerEpoch`).

    Raises IllegalTransition if there is no such epoch.
    """
    if cached.metadata.producer_epoch == MAX_EPOCH:
        raise IllegalTransition(f"a fence past epoch {MAX_EPOCH}")
    epoch = cached.metadata.producer_epoch + (0 if cached.has_failed_epoch_fence else 1)
    return Fenced(attrs.evolve(cached, pending_state=TxnState.PREPARE_EPOCH_FENCE), epoch)


def fence_at_last(cached: CachedTransaction) -> Fenced:
    """As `fence`, but the very last epoch is kept: no client was given it (KAFKA-20090, 4.3)."""
    if cached.metadata.producer_epoch < MAX_EPOCH:
        return fence(cached)
    return Fenced(attrs.evolve(cached, pending_state=TxnState.PREPARE_EPOCH_FENCE), MAX_EPOCH)


def keep_epoch(cached: CachedTransaction) -> Fenced:
    """Return the epoch that an open transaction is aborted with where its owner is not fenced (0.11, KAFKA-6119)."""
    return Fenced(cached, cached.metadata.producer_epoch)


def _begin(request: InitProducerIdRequest, now: int) -> dict[str, object]:
    return {"state": TxnState.EMPTY, "timeout_ms": request.transaction_timeout_ms, "partitions": (),
            "start_timestamp": -1, "last_update_timestamp": now}


def _rotate(
    request: InitProducerIdRequest, cached: CachedTransaction, producer_id: int, expected: int | None, now: int
) -> Outcome:
    """Begin again with another producer id: the epochs of this one are used up (`prepareProducerIdRotation`)."""
    last = NO_PRODUCER_EPOCH if expected is None else cached.metadata.producer_epoch
    entry = prepare(cached, producer_id=producer_id, producer_epoch=0, last_producer_epoch=last, **_begin(request, now))
    return log_change(cached, entry, Answer(Error.NONE, entry.producer_id, entry.producer_epoch), takes=True)


def _bump(
    request: InitProducerIdRequest, cached: CachedTransaction, expected: int | None, now: int, took: bool
) -> Outcome:
    """Give the next epoch, or the same one again to a client that asks again (`prepareIncrementProducerEpoch`)."""
    known = cached.metadata
    if known.is_epoch_exhausted:
        return refuse(Error.UNKNOWN_SERVER_ERROR)
    if expected is None:
        epoch, last = known.producer_epoch + 1, NO_PRODUCER_EPOCH
    elif known.producer_epoch in (NO_PRODUCER_EPOCH, expected):
        epoch, last = known.producer_epoch + 1, known.producer_epoch
    elif expected == known.last_producer_epoch:
        epoch, last = known.producer_epoch, known.last_producer_epoch
    else:
        return refuse(Error.PRODUCER_FENCED)
    entry = prepare(cached, producer_epoch=epoch, last_producer_epoch=last, **_begin(request, now))
    return log_change(cached, entry, Answer(Error.NONE, entry.producer_id, entry.producer_epoch), takes=took)
