"""AddPartitionsToTxn: partitions become part of a producer's transaction."""

from __future__ import annotations

from kafka_proto.requests import TxnState
from kafka_proto.transactions.decisions.outcome import DiaryOutcome, refuse, transition
from kafka_proto.transactions.messages import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse, SpecError, answer
from kafka_proto.transactions.records import PREPARED, Callback, Entry, TxnMetadata


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
