"""How an answer of the coordinator looks in a response of a request's version; and the requests that only look.

Before PRODUCER_FENCED (KIP-360's 2.7) clients were told INVALID_PRODUCER_EPOCH (`KafkaApis`).
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.model import FrozenMap
from kafka_proto import requests
from kafka_proto.broker.coordinator.add_partitions import wanted
from kafka_proto.broker.coordinator.coordinator import Coordinator
from kafka_proto.broker.coordinator.transaction import Answer, TxnState
from kafka_proto.errors import Error

KNOWS_PRODUCER_FENCED = {
    requests.InitProducerIdRequest: 4, requests.AddPartitionsToTxnRequest: 2, requests.AddOffsetsToTxnRequest: 2,
    requests.EndTxnRequest: 2,
}
"""The first version of each request whose client knows PRODUCER_FENCED."""
FIRST_OF_BROKERS = 4
"""The first version of AddPartitionsToTxn that brokers alone send (KIP-890)."""


def response(request: requests.CoordinatorRequest, answer: Answer) -> requests.CoordinatorResponse:
    """Return an answer as the response to a request of its version."""
    error = answer.error
    if error is Error.PRODUCER_FENCED and request.version < KNOWS_PRODUCER_FENCED[type(request)]:
        error = Error.INVALID_PRODUCER_EPOCH
    if isinstance(request, requests.InitProducerIdRequest):
        return requests.InitProducerIdResponse(
            error, answer.producer_id, answer.producer_epoch, *(answer.kept or (None, None))
        )
    if isinstance(request, requests.AddPartitionsToTxnRequest):
        return requests.AddPartitionsToTxnResponse(FrozenMap((name, error) for name in wanted(request)))
    if isinstance(request, requests.AddOffsetsToTxnRequest):
        return requests.AddOffsetsToTxnResponse(error)
    if request.version >= 5:
        return requests.EndTxnResponse(error, answer.producer_id, answer.producer_epoch)
    return requests.EndTxnResponse(error)


def refused_partitions(
    request: requests.AddPartitionsToTxnRequest, exist: frozenset[str]
) -> requests.AddPartitionsToTxnResponse | None:
    """Return the refusal of a request with partitions that may not be added: all or nothing; None if all may.

    They do not exist, or are internal and a client asks, which does so in versions below 4.
    """
    errors = {name: Error.TOPIC_AUTHORIZATION_FAILED for name in request.partitions
              if request.version < FIRST_OF_BROKERS and requests.is_internal(name)}
    errors |= {name: Error.UNKNOWN_TOPIC_OR_PARTITION for name in request.partitions
               if name not in exist and name not in errors}
    if not errors:
        return None
    return requests.AddPartitionsToTxnResponse(FrozenMap(
        (name, errors.get(name, Error.OPERATION_NOT_ATTEMPTED)) for name in request.partitions))


def describe(
    state: Coordinator, request: requests.DescribeTransactionsRequest
) -> requests.DescribeTransactionsResponse:
    """Describe a transactional id as the cache has it (`handleDescribeTransactions`)."""
    if request.transactional_id == "":
        return requests.DescribeTransactionsResponse(Error.INVALID_REQUEST)
    if state.loading:
        return requests.DescribeTransactionsResponse(Error.COORDINATOR_LOAD_IN_PROGRESS)
    cached = state.transactions.get(request.transactional_id)
    if cached is None or cached.metadata.state is TxnState.DEAD:
        return requests.DescribeTransactionsResponse(Error.TRANSACTIONAL_ID_NOT_FOUND)
    known = cached.metadata
    return requests.DescribeTransactionsResponse(
        Error.NONE, known.state.value, known.producer_id, known.producer_epoch, known.timeout_ms,
        known.start_timestamp, known.partitions,
    )


def list_transactions(
    states: Sequence[Coordinator], request: requests.ListTransactionsRequest, *, now: int
) -> requests.ListTransactionsResponse:
    """List transactional ids of some partitions, in some states and of some producers; no filter lists all.

    `TransactionStateManager.listTransactionStates`.
    One without transaction is listed whatever the duration is: it began at -1, in 1969.
    """
    names = {known.value for known in TxnState}
    unknown = tuple(sorted(set(request.state_filters) - names))
    if any(state.loading for state in states):
        return requests.ListTransactionsResponse(Error.COORDINATOR_LOAD_IN_PROGRESS, unknown)
    found = []
    for tid, cached in (item for state in states for item in state.transactions.items()):
        known = cached.metadata
        if known.state is TxnState.DEAD:
            continue
        if request.state_filters and known.state.value not in request.state_filters:
            continue
        if request.producer_id_filters and known.producer_id not in request.producer_id_filters:
            continue
        if known.start_timestamp >= 0 and 0 <= request.duration_filter >= now - known.start_timestamp:
            continue
        found.append((tid, known.producer_id, known.state.value))
    return requests.ListTransactionsResponse(Error.NONE, unknown, tuple(sorted(found)))
