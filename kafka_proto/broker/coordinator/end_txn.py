"""EndTxn, and aborts by the coordinator itself.

First as they were before epochs were bumped at each end (KIP-98, KIP-360): `endTransactionWithTV1` of Kafka 4, and all
that brokers before it know. Then as each end bumps the epoch (KIP-890 part 2, EndTxn from version 5):
`TransactionCoordinator.endTransaction` of Kafka 4. A request of the epoch before the current one is a retry there.
"""

from __future__ import annotations

import attrs

from kafka_proto.broker.coordinator.init_producer_id import Fenced
from kafka_proto.broker.coordinator.transaction import (
    LAST_EPOCH,
    PREPARED,
    Answer,
    CachedTransaction,
    Outcome,
    TransactionMetadata,
    TxnState,
    prepare,
    refuse,
)
from kafka_proto.log import MAX_EPOCH, NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from kafka_proto.requests import EndTxnRequest, Error


def end_txn(
    request: EndTxnRequest, cached: CachedTransaction | None, *, producer_id: int | None = None, now: int
) -> Outcome:
    """Commit or abort at the epoch that the client has; the epoch stays as it is."""
    if request.transactional_id == "":
        return refuse(Error.INVALID_REQUEST)
    if cached is None:
        return refuse(Error.INVALID_PRODUCER_ID_MAPPING)
    known = cached.metadata
    if request.producer_id != known.producer_id:
        return refuse(Error.INVALID_PRODUCER_ID_MAPPING)
    if request.producer_epoch != known.producer_epoch:
        return refuse(Error.PRODUCER_FENCED)
    if cached.pending_state is not None:
        return refuse(Error.CONCURRENT_TRANSACTIONS)
    if known.state is TxnState.ONGOING:
        return prepared(cached, _ended(cached, request.committed, now), Answer())
    if known.state is complete(request.committed):
        return Outcome(Answer())
    if known.state is prepare_state(request.committed):
        return refuse(Error.CONCURRENT_TRANSACTIONS)
    return refuse(Error.INVALID_TXN_STATE)


def abort_fenced(fenced: Fenced, *, answer: Answer, producer_id: int | None = None, now: int) -> Outcome:
    """Abort an open transaction for the coordinator's own reasons: a time-out, or a new producer.

    The new epoch is in force at once, even if the append should fail; the last one is forgotten.
    """
    metadata = attrs.evolve(fenced.cached.metadata, producer_epoch=fenced.producer_epoch,
                            last_producer_epoch=NO_PRODUCER_EPOCH)
    cached = attrs.evolve(fenced.cached, metadata=metadata, pending_state=None)
    return attrs.evolve(prepared(cached, _ended(cached, False, now), answer), fences=True)


def prepare_state(committed: bool) -> TxnState:
    """Return the state that a transaction is in while its markers are written."""
    return TxnState.PREPARE_COMMIT if committed else TxnState.PREPARE_ABORT


def complete(committed: bool) -> TxnState:
    """Return the state that a transaction is in when its markers are written."""
    return TxnState.COMPLETE_COMMIT if committed else TxnState.COMPLETE_ABORT


def prepared(cached: CachedTransaction, entry: TransactionMetadata, answer: Answer, *, takes: bool = False) -> Outcome:
    """Append a Prepare*, and send the markers when it is done."""
    return Outcome(answer, entry, attrs.evolve(cached, pending_state=entry.state), ends=True, takes_producer_id=takes)


def _ended(cached: CachedTransaction, committed: bool, now: int) -> TransactionMetadata:
    return prepare(cached, state=prepare_state(committed), last_update_timestamp=now, transaction_version=0)


def end_txn_bumping(
    request: EndTxnRequest, cached: CachedTransaction | None, *, producer_id: int | None, now: int,
    keeps_last: bool = False, other_end: Error = Error.INVALID_TXN_STATE,
) -> Outcome:
    """Commit or abort, and tell the client the epoch of its next transaction; an empty one may be aborted, too.

    Past the last epoch there is none: IllegalTransition. Since 4.3 an abort keeps it (`keeps_last`). `other_end` is
    told to who asks for the other end than the one that came.
    """
    if request.transactional_id == "":
        return refuse(Error.INVALID_REQUEST)
    if cached is None:
        return refuse(Error.INVALID_PRODUCER_ID_MAPPING)
    known = cached.metadata
    if cached.pending_state is not None:
        return refuse(Error.CONCURRENT_TRANSACTIONS)
    if request.producer_id != known.producer_id and not is_retry_over_overflow(request, known):
        return refuse(Error.INVALID_PRODUCER_ID_MAPPING)
    if not is_valid_epoch(request, known):
        return refuse(Error.PRODUCER_FENCED)
    if known.state is TxnState.ONGOING:
        return end(cached, request.committed, producer_id, now, keeps_last)
    if known.state in PREPARED:
        matches = known.state is prepare_state(request.committed)
        return refuse(Error.CONCURRENT_TRANSACTIONS if matches else other_end)
    if is_retry(request, known):
        if known.state is complete(request.committed):
            return Outcome(Answer(Error.NONE, known.producer_id, known.producer_epoch))
        return refuse(other_end)
    if request.committed:
        return refuse(Error.INVALID_TXN_STATE)
    return end(cached, False, producer_id, now, keeps_last)


def is_retry_over_overflow(request: EndTxnRequest, known: TransactionMetadata) -> bool:
    """Say whether a request is one that used up the epochs: its producer id has been replaced since."""
    return (request.producer_id == known.previous_producer_id and request.producer_epoch == LAST_EPOCH
            and known.producer_epoch == 0)


def is_retry(request: EndTxnRequest, known: TransactionMetadata) -> bool:
    """Say whether a request is of the epoch before the one that its own first copy has brought."""
    return known.producer_epoch == request.producer_epoch + 1 or is_retry_over_overflow(request, known)


def is_valid_epoch(request: EndTxnRequest, known: TransactionMetadata) -> bool:
    """Say whether a request's epoch fits the state; the same epoch in Complete* is the next transaction's."""
    if known.state in (TxnState.ONGOING, TxnState.EMPTY):
        return request.producer_epoch == known.producer_epoch
    if known.state in PREPARED:
        return known.producer_epoch == request.producer_epoch + 1
    return is_retry(request, known) or request.producer_epoch == known.producer_epoch


def end(
    cached: CachedTransaction, committed: bool, producer_id: int | None, now: int, keeps_last: bool
) -> Outcome:
    """Append a Prepare* with the next epoch, or if there is none, with the producer id that Complete* switches to."""
    exhausted = cached.metadata.is_epoch_exhausted
    if exhausted and producer_id is None:
        return refuse(Error.COORDINATOR_LOAD_IN_PROGRESS)
    following = producer_id if exhausted and producer_id is not None else NO_PRODUCER_ID
    entry = bumped(cached, committed, following, now, keeps_last)
    answer = Answer(Error.NONE, entry.producer_id, entry.producer_epoch)
    if following != NO_PRODUCER_ID:
        answer = Answer(Error.NONE, following, 0)
    return prepared(cached, entry, answer, takes=exhausted)


def bumped(
    cached: CachedTransaction, committed: bool, following: int, now: int, keeps_last: bool = False
) -> TransactionMetadata:
    """Return a transaction as its end is logged (`prepareAbortOrCommit`)."""
    known = cached.metadata
    stays = keeps_last and known.producer_epoch == MAX_EPOCH and not committed
    begun = known.start_timestamp if known.state is TxnState.ONGOING else now
    return prepare(
        cached, state=prepare_state(committed), producer_epoch=known.producer_epoch + (0 if stays else 1),
        last_producer_epoch=known.producer_epoch, next_producer_id=following, start_timestamp=begun,
        last_update_timestamp=now, transaction_version=2,
    )


def abort_fenced_twice(fenced: Fenced, *, answer: Answer, producer_id: int | None, now: int) -> Outcome:
    """Abort for the coordinator's own reasons as 4.0 does: the fence bumps the epoch, the end again (KAFKA-19367)."""
    metadata = attrs.evolve(fenced.cached.metadata, producer_epoch=fenced.producer_epoch,
                            last_producer_epoch=NO_PRODUCER_EPOCH)
    cached = attrs.evolve(fenced.cached, metadata=metadata, pending_state=None)
    if metadata.producer_epoch == MAX_EPOCH:
        # prepareAbortOrCommit overflows to a negative epoch and throws; what was changed in the cache stays
        return Outcome(Answer(Error.UNKNOWN_SERVER_ERROR), cached=cached)
    return attrs.evolve(prepared(cached, bumped(cached, False, NO_PRODUCER_ID, now), answer), fences=True)


def abort_fenced_once(fenced: Fenced, *, answer: Answer, producer_id: int | None, now: int) -> Outcome:
    """Abort for the coordinator's own reasons with one bump; its owner may still get that epoch (KAFKA-19367).

    Nothing is bumped before the append, so that a failed append leaves nothing to remember.
    """
    cached = attrs.evolve(fenced.cached, pending_state=None)
    return prepared(cached, bumped(cached, False, NO_PRODUCER_ID, now), answer)


def abort_fenced_rotating(fenced: Fenced, *, answer: Answer, producer_id: int | None, now: int) -> Outcome:
    """Abort with one bump; where that uses up the epochs, Complete* switches to another producer id (KAFKA-20090)."""
    cached = attrs.evolve(fenced.cached, pending_state=None)
    outcome = end(cached, False, producer_id, now, keeps_last=True)
    if outcome.entry is None:
        return attrs.evolve(outcome, cached=cached)
    return attrs.evolve(outcome, answer=answer)
