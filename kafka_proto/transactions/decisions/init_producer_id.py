"""InitProducerId, the specs' InitPid: a client gets its producer id, with a new epoch that fences who had it before."""

from __future__ import annotations

import attrs

from kafka_proto.requests import TxnState
from kafka_proto.transactions.decisions.outcome import DiaryOutcome, refuse, transition
from kafka_proto.transactions.messages import InitPidRequest, InitPidResponse, SpecError, answer
from kafka_proto.transactions.records import FINISHED, PREPARED, Callback, Entry, TxnMetadata, fresh_metadata


def init_producer_id(
    request: InitPidRequest,
    *,
    leads: bool,
    metadata: TxnMetadata | None,
    pending: TxnMetadata | None,
    new_pid: int,
    loading: bool = False,
) -> DiaryOutcome:
    """Give a client its producer id, or say why not (`ReceiveInitPidRequest`).

    `new_pid` is for an id that nobody has seen.
    """
    if not leads:
        return refuse(request, SpecError.NOT_COORDINATOR)
    if loading:
        return refuse(request, SpecError.COORDINATOR_LOAD_IN_PROGRESS)
    if metadata is None:
        metadata = fresh_metadata(new_pid)
    result = epoch_bumped(metadata, pending)
    if isinstance(result, SpecError):
        return attrs.evolve(refuse(request, result), metadata=metadata)
    if result.state is TxnState.PREPARE_EPOCH_FENCE:
        return attrs.evolve(abort_fenced(request, metadata, result, pending), metadata=metadata)
    done = InitPidResponse(SpecError.OK, result.pid, result.pepoch, source=request.dest, dest=request.source)
    callback = Callback(request.type, done, answer(request, SpecError.NOT_COORDINATOR))
    return DiaryOutcome(entry=Entry(request.tid, result, callback), metadata=metadata)


def epoch_bumped(current: TxnMetadata, pending: TxnMetadata | None) -> TxnMetadata | SpecError:
    """Return the transition that the request asks for (`GenInitPidTransition`)."""
    if current.state in FINISHED:
        return transition(
            pending, current, TxnState.EMPTY, partitions=frozenset(), pepoch=current.pepoch + 1,
            last_pepoch=current.pepoch,
        )
    if current.state is TxnState.ONGOING:
        return transition(
            pending, current, TxnState.PREPARE_EPOCH_FENCE, pepoch=current.pepoch + 1, last_pepoch=-1,
        )
    if current.state in PREPARED:
        return SpecError.CONCURRENT_TRANSACTIONS
    return SpecError.ILLEGAL_STATE


def abort_fenced(
    request: InitPidRequest, current: TxnMetadata, fenced: TxnMetadata, pending: TxnMetadata | None
) -> DiaryOutcome:
    """Abort the ongoing transaction of the producer that was just fenced (`EndTransaction` with Abort)."""
    if fenced.pepoch < current.pepoch:
        return refuse(request, SpecError.PRODUCER_FENCED)
    if current.state is not TxnState.ONGOING:
        return refuse(request, SpecError.ILLEGAL_STATE)
    prepared = transition(
        pending, current, TxnState.PREPARE_ABORT, pepoch=fenced.pepoch, last_pepoch=fenced.last_pepoch
    )
    if isinstance(prepared, SpecError):
        return refuse(request, prepared)
    callback = Callback(
        TxnState.PREPARE_ABORT.value,
        answer(request, SpecError.CONCURRENT_TRANSACTIONS),
        answer(request, SpecError.NOT_COORDINATOR),
    )
    return DiaryOutcome(entry=Entry(request.tid, prepared, callback))
