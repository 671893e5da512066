"""EndTxn, and aborts by the coordinator itself, as they were before epochs were bumped at each end (KIP-98, KIP-360).

`endTransactionWithTV1` of Kafka 4; brokers before it know nothing else.
"""

from __future__ import annotations

import attrs

from kafka_proto.broker.coordinator.init_producer_id import Fenced
from kafka_proto.broker.coordinator.outcome import Answer, Outcome, refuse
from kafka_proto.broker.coordinator.transaction import CachedTransaction, TransactionMetadata, TxnState, prepare
from kafka_proto.log import NO_PRODUCER_EPOCH
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
