"""What coordinators decide about InitProducerId, the specs' InitPid, and AddPartitionsToTxn; and what an outcome is.

InitPid gives a client its producer id, with a new epoch that fences its previous owner. By AddPartitionsToTxn
partitions become part of a producer's transaction. Most decisions come down to one state change, `transition`.
"""

from __future__ import annotations

from typing import TypeVar

import attrs

from kafka_proto.requests import TxnState
from kafka_proto.transactions.records import (
    FINISHED,
    PREPARED,
    VALID_PREVIOUS,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    Callback,
    Entry,
    InitPidRequest,
    InitPidResponse,
    Request,
    Response,
    SpecError,
    TxnMetadata,
    answer,
    fresh_metadata,
)

M = TypeVar("M", bound=TxnMetadata)


@attrs.frozen
class DiaryOutcome:
    """What follows from a request or an event: answers now, an entry to append whose callback answers later."""

    answers: tuple[Response, ...] = ()
    entry: Entry | None = None
    metadata: TxnMetadata | None = None
    """What the coordinator caches of the id from now on; None leaves it as it is."""


def refuse(request: Request, code: SpecError) -> DiaryOutcome:
    """Refuse a request with an error code."""
    return DiaryOutcome((answer(request, code),))


def transition(
    pending: TxnMetadata | None, current: M, becomes: TxnState, **changes: object
) -> M | SpecError:
    """Return the pending metadata of a state change, or the error that forbids it (`GenTransition`)."""
    if pending is not None:
        return SpecError.CONCURRENT_TRANSACTIONS
    if current.state not in VALID_PREVIOUS[becomes]:
        return SpecError.INVALID_TRANSITION
    return attrs.evolve(current, state=becomes, last_pid=None, **changes)  # type: ignore[arg-type]


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

    `new_pid` is for an id that is new.
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


def add_partitions(
    request: AddPartitionsToTxnRequest,
    *,
    leads: bool,
    metadata: TxnMetadata | None,
    pending: TxnMetadata | None,
    loading: bool = False,
) -> DiaryOutcome:
    """Add partitions to a producer's transaction, or say why not (`ReceiveAddPartitionsToTxnRequest`)."""
    if not leads:
        return refuse(request, SpecError.NOT_COORDINATOR)
    if loading:
        return refuse(request, SpecError.COORDINATOR_LOAD_IN_PROGRESS)
    if metadata is None:
        return refuse(request, SpecError.INVALID_PRODUCER_ID_MAPPING)
    if request.pid != metadata.pid:
        return refuse(request, SpecError.INVALID_PRODUCER_ID_MAPPING)
    if request.pepoch != metadata.pepoch:
        return refuse(request, SpecError.PRODUCER_FENCED)
    if pending is not None or metadata.state in PREPARED:
        return refuse(request, SpecError.CONCURRENT_TRANSACTIONS)
    ongoing = transition(pending, metadata, TxnState.ONGOING, partitions=metadata.partitions | request.partitions)
    if isinstance(ongoing, SpecError):
        return refuse(request, ongoing)
    added = AddPartitionsToTxnResponse(SpecError.OK, ongoing.partitions, source=request.dest, dest=request.source)
    callback = Callback(request.type, added, answer(request, SpecError.NOT_COORDINATOR))
    return DiaryOutcome(entry=Entry(request.tid, ongoing, callback))
