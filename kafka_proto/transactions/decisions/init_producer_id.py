"""InitProducerId, the specs' InitPid: a client gets its producer id, with a new epoch that fences who had it before."""

from __future__ import annotations

import attrs

from kafka_proto.requests.transaction_state import TxnState
from kafka_proto.transactions.decisions.outcome import Outcome, refuse, transition
from kafka_proto.transactions.messages import Error, InitProducerIdRequest, InitProducerIdResponse, answer
from kafka_proto.transactions.records import FINISHED, PREPARED, Callback, Entry, TransactionMetadata, fresh_metadata


def init_producer_id(
    request: InitProducerIdRequest,
    *,
    leads: bool,
    metadata: TransactionMetadata | None,
    pending: TransactionMetadata | None,
    new_pid: int | None,
    loading: bool = False,
) -> Outcome:
    """Give a client its producer id, or say why not (`ReceiveInitPidRequest`).

    `new_pid` is for an id that nobody has seen; None says that the producer ids are used up.
    """
    if not leads:
        return refuse(request, Error.NOT_COORDINATOR)
    if loading:
        return refuse(request, Error.COORDINATOR_LOAD_IN_PROGRESS)
    if metadata is None:
        if new_pid is None:
            return attrs.evolve(refuse(request, Error.COORDINATOR_LOAD_IN_PROGRESS), needs_producer_ids=True)
        metadata = fresh_metadata(new_pid)
    result = epoch_bumped(metadata, pending)
    if isinstance(result, Error):
        return attrs.evolve(refuse(request, result), metadata=metadata)
    if result.state is TxnState.PREPARE_EPOCH_FENCE:
        return attrs.evolve(abort_fenced(request, metadata, result, pending), metadata=metadata)
    done = InitProducerIdResponse(
        Error.OK, result.producer_id, result.producer_epoch,
        source=request.dest, dest=request.source, correlation=request.correlation,
    )
    callback = Callback(request.type, done, answer(request, Error.NOT_COORDINATOR))
    return Outcome(entry=Entry(request.transactional_id, result, callback), metadata=metadata)


def epoch_bumped(current: TransactionMetadata, pending: TransactionMetadata | None) -> TransactionMetadata | Error:
    """Return the transition that the request asks for (`GenInitPidTransition`)."""
    if current.state in FINISHED:
        return transition(
            pending, current, TxnState.EMPTY, partitions=frozenset(),
            producer_epoch=current.producer_epoch + 1, last_producer_epoch=current.producer_epoch,
        )
    if current.state is TxnState.ONGOING:
        return transition(
            pending, current, TxnState.PREPARE_EPOCH_FENCE,
            producer_epoch=current.producer_epoch + 1, last_producer_epoch=-1,
        )
    if current.state in PREPARED:
        return Error.CONCURRENT_TRANSACTIONS
    return Error.ILLEGAL_STATE


def abort_fenced(
    request: InitProducerIdRequest, current: TransactionMetadata, fenced: TransactionMetadata,
    pending: TransactionMetadata | None,
) -> Outcome:
    """Abort the ongoing transaction of the producer that was just fenced (`EndTransaction` with Abort)."""
    if fenced.producer_epoch < current.producer_epoch:
        return refuse(request, Error.PRODUCER_FENCED)
    if current.state is not TxnState.ONGOING:
        return refuse(request, Error.ILLEGAL_STATE)
    prepared = transition(
        pending, current, TxnState.PREPARE_ABORT,
        producer_epoch=fenced.producer_epoch, last_producer_epoch=fenced.last_producer_epoch,
    )
    if isinstance(prepared, Error):
        return refuse(request, prepared)
    callback = Callback(
        TxnState.PREPARE_ABORT.value,
        answer(request, Error.CONCURRENT_TRANSACTIONS),
        answer(request, Error.NOT_COORDINATOR),
    )
    return Outcome(entry=Entry(request.transactional_id, prepared, callback))
