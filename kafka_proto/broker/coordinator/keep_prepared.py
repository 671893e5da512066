"""Participation in two-phase commits: a new producer keeps the transaction of its predecessor (KIP-939).

As proposed for the coordinator in apache/kafka#21735 (KAFKA-15370). A transaction that is kept has two pairs of
producer id and epoch: its own, with which its markers are written, and that of the client that may end it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs

from kafka_proto.broker.coordinator import add_partitions as adding
from kafka_proto.broker.coordinator import end_txn as ending
from kafka_proto.broker.coordinator import init_producer_id as beginning
from kafka_proto.broker.coordinator.init_producer_id import Fenced
from kafka_proto.broker.coordinator.transaction import (
    LAST_EPOCH,
    Answer,
    CachedTransaction,
    Outcome,
    TransactionMetadata,
    TxnState,
    log_change,
    prepare,
    refuse,
)
from kafka_proto.log import NO_PRODUCER_ID
from kafka_proto.requests import EndTxnRequest, Error, InitProducerIdRequest

NO_TIMEOUT_MS = 2**31 - 1
"""The time-out of a transaction that takes part in a two-phase commit (`isDistributedTwoPhaseCommitTxn`)."""


def times_out(known: TransactionMetadata) -> bool:
    """Give no time-out to a transaction that takes part in a two-phase commit (KAFKA-18953)."""
    return known.timeout_ms != NO_TIMEOUT_MS


def init_producer_id(
    request: InitProducerIdRequest, cached: CachedTransaction | None, *, producer_id: int | None, now: int,
    max_timeout_ms: int, fences: Callable[[CachedTransaction], Fenced],
) -> Outcome | Fenced:
    """Give a producer its id and epoch, and with `keep_prepared_txn` leave an open transaction open."""
    given = request.producer_id, request.producer_epoch
    if request.keep_prepared_txn and request.producer_id != NO_PRODUCER_ID:
        return refuse(Error.INVALID_REQUEST)
    if request.enable_2pc:
        request, max_timeout_ms = attrs.evolve(request, transaction_timeout_ms=NO_TIMEOUT_MS), NO_TIMEOUT_MS
    if cached is not None and is_open(cached):
        if request.keep_prepared_txn:
            return keep(cached, producer_id, now)
        if is_kept(cached):
            is_owner = request.producer_id == NO_PRODUCER_ID or given == cached.metadata.owner
            return fences(cached) if is_owner else refuse(Error.PRODUCER_FENCED)
    return beginning.init_producer_id(
        request, cached, producer_id=producer_id, now=now, max_timeout_ms=max_timeout_ms, fences=fences
    )


def is_open(cached: CachedTransaction) -> bool:
    return cached.pending_state is None and cached.metadata.state is TxnState.ONGOING


def is_kept(cached: CachedTransaction) -> bool:
    """Say whether an open transaction is of a predecessor of the client that may end it (`hasNextProducerEpoch`)."""
    return is_open(cached) and cached.metadata.next_producer_epoch is not None


def keep(cached: CachedTransaction, producer_id: int | None, now: int) -> Outcome:
    """Give the next epoch to a new producer, and tell it the pair of the transaction."""
    known = cached.metadata
    following = after(known, producer_id)
    if following is None:
        return refuse(Error.COORDINATOR_LOAD_IN_PROGRESS)
    entry = prepare(cached, next_producer_id=following[0], next_producer_epoch=following[1], last_update_timestamp=now)
    answer = Answer(Error.NONE, *following, (known.producer_id, known.producer_epoch))
    return log_change(cached, entry, answer, takes=following[0] == producer_id)


def after(known: TransactionMetadata, producer_id: int | None) -> tuple[int, int] | None:
    """Return the pair after the owner's: of another producer id if its epochs are used up; None if there is none."""
    owner, epoch = known.owner
    if epoch < LAST_EPOCH:
        return owner, epoch + 1
    return None if producer_id is None else (producer_id, 0)


def add_partitions(
    request: adding.AddRequest, cached: CachedTransaction | None, *, now: int, refusal: Error = Error.INVALID_TXN_STATE
) -> Outcome:
    """Add partitions, but none to a transaction that was kept: it can only be ended."""
    if cached is not None and is_kept(cached):
        return refuse(refusal)
    return adding.add_partitions_pending_first(request, cached, now=now)


def end_txn_bumping(
    request: EndTxnRequest, cached: CachedTransaction | None, *, producer_id: int | None, now: int
) -> Outcome:
    """Commit or abort; what was kept only the new producer may end."""
    if cached is None or not is_kept(cached):
        return ending.end_txn_bumping(request, cached, producer_id=producer_id, now=now, keeps_last=True)
    owner, epoch = cached.metadata.owner
    if request.producer_id != owner:
        return refuse(Error.INVALID_PRODUCER_ID_MAPPING)
    if request.producer_epoch != epoch:
        return refuse(Error.PRODUCER_FENCED)
    return end(cached, request.committed, producer_id, now)


def end(cached: CachedTransaction, committed: bool, producer_id: int | None, now: int) -> Outcome:
    """Append a Prepare* with the transaction's own id, and the pair with which its owner goes on."""
    known = cached.metadata
    owner, epoch = known.owner
    following = after(known, producer_id)
    if following is None:
        return refuse(Error.COORDINATOR_LOAD_IN_PROGRESS)
    entry = attrs.evolve(
        ending.bumped(cached, committed, following[0], now), previous_producer_id=owner, last_producer_epoch=epoch,
        next_producer_epoch=following[1],
    )
    return ending.prepared(cached, entry, Answer(Error.NONE, *following), takes=following[0] == producer_id)


def abort_fenced(fenced: Fenced, *, answer: Answer, producer_id: int | None, now: int) -> Outcome:
    """Abort for the coordinator's own reasons; the owner of what was kept is fenced, too."""
    cached = attrs.evolve(fenced.cached, pending_state=None)
    if not is_kept(cached):
        return ending.abort_fenced_rotating(fenced, answer=answer, producer_id=producer_id, now=now)
    outcome = end(cached, False, producer_id, now)
    return attrs.evolve(outcome, cached=cached) if outcome.entry is None else attrs.evolve(outcome, answer=answer)


def init_producer_id_aborting(
    request: InitProducerIdRequest, cached: CachedTransaction | None, **rest: Any
) -> Outcome | Fenced:
    """Do not keep an open transaction."""
    return init_producer_id(attrs.evolve(request, keep_prepared_txn=None), cached, **rest)


def init_producer_id_same_epoch(
    request: InitProducerIdRequest, cached: CachedTransaction | None, **rest: Any
) -> Outcome | Fenced:
    """Keep an open transaction with the one pair that it has, and append nothing (apache/kafka#22704)."""
    if cached is None or not (request.keep_prepared_txn and is_open(cached)):
        return init_producer_id(request, cached, **rest)
    pair = cached.metadata.producer_id, cached.metadata.producer_epoch
    return Outcome(Answer(Error.NONE, *pair, pair))
