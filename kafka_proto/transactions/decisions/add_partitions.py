"""AddPartitionsToTxn: partitions become part of a producer's transaction."""

from __future__ import annotations

from kafka_proto.requests.transaction_state import TxnState
from kafka_proto.transactions.decisions.outcome import Outcome, refuse, transition
from kafka_proto.transactions.messages import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse, Error, answer
from kafka_proto.transactions.records import PREPARED, Callback, Entry, TransactionMetadata


def add_partitions(
    request: AddPartitionsToTxnRequest,
    *,
    leads: bool,
    metadata: TransactionMetadata | None,
    pending: TransactionMetadata | None,
    loading: bool = False,
) -> Outcome:
    """Add partitions to a producer's transaction, or say why not (`ReceiveAddPartitionsToTxnRequest`)."""
    if not leads:
        return refuse(request, Error.NOT_COORDINATOR)
    if loading:
        return refuse(request, Error.COORDINATOR_LOAD_IN_PROGRESS)
    if metadata is None:
        return refuse(request, Error.INVALID_PRODUCER_ID_MAPPING)
    if request.producer_id != metadata.producer_id:
        return refuse(request, Error.INVALID_PRODUCER_ID_MAPPING)
    if request.producer_epoch != metadata.producer_epoch:
        return refuse(request, Error.PRODUCER_FENCED)
    if pending is not None or metadata.state in PREPARED:
        return refuse(request, Error.CONCURRENT_TRANSACTIONS)
    ongoing = transition(pending, metadata, TxnState.ONGOING, partitions=metadata.partitions | request.partitions)
    if isinstance(ongoing, Error):
        return refuse(request, ongoing)
    added = AddPartitionsToTxnResponse(
        Error.OK, ongoing.partitions, source=request.dest, dest=request.source, correlation=request.correlation
    )
    callback = Callback(request.type, added, answer(request, Error.NOT_COORDINATOR))
    return Outcome(entry=Entry(request.transactional_id, ongoing, callback))
