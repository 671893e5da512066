"""What follows from the answer to a request, and from a connection that is given up (the handlers of `Sender`)."""

from __future__ import annotations

from collections.abc import Callable, Collection
from enum import StrEnum
from typing import Any

import attrs

from kafka_proto.clients.producer import (
    Batch,
    Family,
    PreparedTxnState,
    Producer,
    ProducerStatus,
    TransactionalCall,
    idempotent,
)
from kafka_proto.requests import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    EndTxnRequest,
    EndTxnResponse,
    Error,
    InitProducerIdRequest,
    InitProducerIdResponse,
    TxnOffsetCommitRequest,
)

ADDING = (AddPartitionsToTxnRequest, AddOffsetsToTxnRequest)


class AnswerVerdict(StrEnum):
    DONE = "done"
    RETRY = "retry"
    """The same request again after a pause, to the same broker."""
    LOOK_UP = "look up again"
    """The same request again, after finding out which broker to ask now."""
    ABORTABLE = "abortable"
    """The transaction can only be aborted; the producer may go on with the next one."""
    FATAL = "fatal"
    """The producer can only be closed."""


_COORDINATOR = {
    Error.NONE: AnswerVerdict.DONE,
    Error.CONCURRENT_TRANSACTIONS: AnswerVerdict.RETRY,
    Error.COORDINATOR_LOAD_IN_PROGRESS: AnswerVerdict.RETRY,
    Error.UNKNOWN_TOPIC_OR_PARTITION: AnswerVerdict.RETRY,
    Error.NOT_COORDINATOR: AnswerVerdict.LOOK_UP,
    Error.COORDINATOR_NOT_AVAILABLE: AnswerVerdict.LOOK_UP,
    Error.REQUEST_TIMED_OUT: AnswerVerdict.LOOK_UP,
    Error.NETWORK_EXCEPTION: AnswerVerdict.LOOK_UP,
    Error.TRANSACTION_ABORTABLE: AnswerVerdict.ABORTABLE,
    Error.UNKNOWN_PRODUCER_ID: AnswerVerdict.ABORTABLE,
    Error.INVALID_PRODUCER_ID_MAPPING: AnswerVerdict.ABORTABLE,
    Error.PRODUCER_FENCED: AnswerVerdict.FATAL,
    Error.INVALID_PRODUCER_EPOCH: AnswerVerdict.FATAL,
    Error.INVALID_TXN_STATE: AnswerVerdict.FATAL,
    Error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: AnswerVerdict.FATAL,
}
TABLE = {
    "InitProducerIdRequest": {
        **_COORDINATOR, Error.UNKNOWN_PRODUCER_ID: AnswerVerdict.FATAL,
        Error.INVALID_PRODUCER_ID_MAPPING: AnswerVerdict.FATAL,
    },
    "AddPartitionsToTxnRequest": {**_COORDINATOR, Error.OPERATION_NOT_ATTEMPTED: AnswerVerdict.ABORTABLE},
    "AddOffsetsToTxnRequest": _COORDINATOR,
    "EndTxnRequest": _COORDINATOR,
    "TxnOffsetCommitRequest": {
        **_COORDINATOR,
        Error.UNKNOWN_MEMBER_ID: AnswerVerdict.ABORTABLE,
        Error.ILLEGAL_GENERATION: AnswerVerdict.ABORTABLE,
        Error.FENCED_INSTANCE_ID: AnswerVerdict.ABORTABLE,
    },
    "ProduceRequest": {
        Error.NONE: AnswerVerdict.DONE,
        Error.DUPLICATE_SEQUENCE_NUMBER: AnswerVerdict.DONE,
        Error.NOT_ENOUGH_REPLICAS: AnswerVerdict.RETRY,
        Error.NOT_ENOUGH_REPLICAS_AFTER_APPEND: AnswerVerdict.RETRY,
        Error.REQUEST_TIMED_OUT: AnswerVerdict.RETRY,
        Error.KAFKA_STORAGE_ERROR: AnswerVerdict.RETRY,
        Error.CONCURRENT_TRANSACTIONS: AnswerVerdict.RETRY,
        Error.NOT_LEADER_OR_FOLLOWER: AnswerVerdict.LOOK_UP,
        Error.UNKNOWN_TOPIC_OR_PARTITION: AnswerVerdict.LOOK_UP,
        Error.NETWORK_EXCEPTION: AnswerVerdict.LOOK_UP,
        Error.OUT_OF_ORDER_SEQUENCE_NUMBER: AnswerVerdict.ABORTABLE,
        Error.UNKNOWN_PRODUCER_ID: AnswerVerdict.ABORTABLE,
        Error.INVALID_PRODUCER_EPOCH: AnswerVerdict.ABORTABLE,
        Error.INVALID_TXN_STATE: AnswerVerdict.ABORTABLE,
        Error.TRANSACTION_ABORTABLE: AnswerVerdict.ABORTABLE,
        Error.PRODUCER_FENCED: AnswerVerdict.FATAL,
        Error.INVALID_PRODUCER_ID_MAPPING: AnswerVerdict.FATAL,
        Error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: AnswerVerdict.FATAL,
    },
}
"""By the name of the request. A code that is not listed is abortable for a batch, and fatal for the rest."""


LOSES_PRODUCER = (
    Error.PRODUCER_FENCED, Error.INVALID_PRODUCER_EPOCH, Error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    Error.INVALID_TRANSACTION_TIMEOUT,
)
"""Of InitProducerId in librdkafka (`rd_kafka_idemp_check_error`); it asks again after any other error."""


def verdict(family: Family, request: str, error: Error) -> AnswerVerdict:
    """Return what an error in the answer to a request means to a client."""
    other = AnswerVerdict.ABORTABLE if request == "ProduceRequest" else AnswerVerdict.FATAL
    found = TABLE[request].get(error, other)
    is_asked_again = family.inits_again and request == "InitProducerIdRequest" and error not in LOSES_PRODUCER
    return AnswerVerdict.RETRY if found is AnswerVerdict.FATAL and is_asked_again else found


AGAIN = (AnswerVerdict.RETRY, AnswerVerdict.LOOK_UP)


@attrs.frozen
class AfterAnswer:
    """A producer after an answer: what it means, and the records that it acknowledges."""

    producer: Producer
    verdict: AnswerVerdict
    error: Error = Error.NONE
    acknowledged: tuple[Any, ...] = ()


def answered(family: Family, producer: Producer, request: Any, response: Any) -> AfterAnswer:
    """Take the answer to a request that is under way beside batches.

    If a producer without transactions is given no producer id, the next broker may be asked after a pause.
    """
    error = _error_of(response)
    known = verdict(family, type(request).__name__, error)
    if producer.transactional_id is None and known is not AnswerVerdict.DONE:
        known = AnswerVerdict.RETRY
    if producer.status is ProducerStatus.FATAL_ERROR:  # the answer to a batch came before this one
        return AfterAnswer(producer, known, error)
    assert producer.call is not None
    if known in AGAIN:
        again = TransactionalCall(request, is_sent=False, backs_off=True)
        return AfterAnswer(attrs.evolve(producer, call=again), known, error)
    producer = attrs.evolve(producer, call=None)
    if known is AnswerVerdict.DONE:
        return AfterAnswer(SUCCESSES[type(request)](family, producer, request, response), known)
    aborts = isinstance(request, EndTxnRequest) and producer.status is ProducerStatus.ABORTING_TRANSACTION
    is_over = aborts and not producer.needs_new_epoch  # nothing follows an abort that is refused
    if known is AnswerVerdict.FATAL or is_over or not _can_go_on(family, error):
        return AfterAnswer(failed(producer, error), AnswerVerdict.FATAL, error)
    if aborts:
        return AfterAnswer(attrs.evolve(producer, is_ended=True), known, error)
    return AfterAnswer(_abortable(family, producer, error), known, error)


def _error_of(response: Any) -> Error:
    """Return the error of a response; if it has one for each partition, the first."""
    if isinstance(response, AddPartitionsToTxnResponse):
        return next((error for error in response.errors.values() if error is not Error.NONE), Error.NONE)
    error: Error = response.error
    return error


def _can_go_on(family: Family, error: Error) -> bool:
    """Say whether an error that leaves no way on at the same epoch can be aborted (`abortableErrorIfPossible`)."""
    return family.bumps_epoch or error not in (Error.UNKNOWN_PRODUCER_ID, Error.INVALID_PRODUCER_ID_MAPPING)


def failed(producer: Producer, error: Error) -> Producer:
    """Return a producer that can only be closed."""
    return attrs.evolve(
        producer, status=ProducerStatus.FATAL_ERROR, last_error=error, call=None, batches=(), new_partitions=(),
        offsets=(),
    )


def _abortable(family: Family, producer: Producer, error: Error, *, loses_sequence: bool = False) -> Producer:
    """Return a producer whose transaction can only be aborted; if it is aborting, it goes on doing so."""
    maps_no_id = error in (Error.UNKNOWN_PRODUCER_ID, Error.INVALID_PRODUCER_ID_MAPPING)
    bump = family.bumps_epoch and not family.ends_with_new_epoch and (loses_sequence or maps_no_id)
    producer = attrs.evolve(
        producer, needs_new_epoch=producer.needs_new_epoch or bump, new_partitions=(), offsets=(),
        batches=tuple(batch for batch in producer.batches if batch.was_sent),
    )
    if producer.status is ProducerStatus.ABORTING_TRANSACTION:
        return producer
    return attrs.evolve(producer, status=ProducerStatus.ABORTABLE_ERROR, last_error=error)


def _initialized(
    family: Family, producer: Producer, request: InitProducerIdRequest, response: InitProducerIdResponse
) -> Producer:
    """Begin with a new epoch, in which all sequences are 0; or with a transaction that was kept, to be ended first."""
    producer = producer.ready(response.producer_id, response.producer_epoch)
    if response.ongoing_txn_producer_id is None or response.ongoing_txn_producer_epoch is None:
        return producer
    kept = PreparedTxnState(response.ongoing_txn_producer_id, response.ongoing_txn_producer_epoch)
    return attrs.evolve(producer, status=ProducerStatus.PREPARED_TRANSACTION, prepared=kept)


def _partitions_added(
    family: Family, producer: Producer, request: AddPartitionsToTxnRequest, response: AddPartitionsToTxnResponse
) -> Producer:
    new = tuple(name for name in producer.new_partitions if name not in request.partitions)
    known = tuple(sorted({*producer.partitions, *request.partitions}))
    return attrs.evolve(producer, new_partitions=new, partitions=known)


def _offsets_added(family: Family, producer: Producer, request: AddOffsetsToTxnRequest, response: Any) -> Producer:
    if not producer.offsets:  # given up meanwhile
        return attrs.evolve(producer, partitions=tuple(sorted({*producer.partitions, request.partition})))
    return attrs.evolve(producer, groups=tuple(sorted({*producer.groups, producer.offsets[0].group_id})))


def _offsets_committed(family: Family, producer: Producer, request: TxnOffsetCommitRequest, response: Any) -> Producer:
    groups = tuple(sorted({*producer.groups, request.group_id}))
    return attrs.evolve(producer, offsets=producer.offsets[1:], groups=groups)


def _ended(family: Family, producer: Producer, request: EndTxnRequest, response: EndTxnResponse) -> Producer:
    """Be ready for the next transaction: at the epoch that the answer brings, or after asking for one, or as before."""
    if family.ends_with_new_epoch and response.producer_epoch >= 0:
        return producer.ready(response.producer_id, response.producer_epoch)
    return without_end(attrs.evolve(producer, needs_new_epoch=True) if family.bumps_each else producer)


SUCCESSES: dict[type, Callable[..., Producer]] = {
    InitProducerIdRequest: _initialized,
    AddPartitionsToTxnRequest: _partitions_added,
    AddOffsetsToTxnRequest: _offsets_added,
    TxnOffsetCommitRequest: _offsets_committed,
    EndTxnRequest: _ended,
}


def without_end(producer: Producer) -> Producer:
    """Return a producer whose transaction is over: it asks for a new epoch if it needs one, or goes on as before."""
    if producer.needs_new_epoch:
        return attrs.evolve(producer, is_ended=True)
    after = producer.ready(producer.producer_id, producer.producer_epoch)
    return attrs.evolve(after, sequences=producer.sequences, is_in_doubt=producer.is_in_doubt)


def produced(family: Family, producer: Producer, number: int, error: Error) -> AfterAnswer:
    """Take the answer to a batch (`Sender.completeBatch`); a batch that was given up is over."""
    batch, known = producer.batch(number), verdict(family, "ProduceRequest", error)
    if batch is None:
        return AfterAnswer(producer, known, error)
    if known is AnswerVerdict.DONE:
        return AfterAnswer(idempotent.acknowledged(family, producer, batch), known, acknowledged=batch.records)
    if known in AGAIN:
        return AfterAnswer(idempotent.retried(producer, batch), known, error)
    if producer.transactional_id is None:
        left = idempotent.refused(family, producer, batch, error)
        return AfterAnswer(left, known if left.batch(number) is None else AnswerVerdict.RETRY, error)
    if error is Error.OUT_OF_ORDER_SEQUENCE_NUMBER and batch is not producer.sent_to(batch.partition)[0]:
        return AfterAnswer(idempotent.retried(producer, batch), AnswerVerdict.RETRY, error)
    if known is AnswerVerdict.FATAL:
        return AfterAnswer(failed(producer, error), known, error)
    return AfterAnswer(_abortable(family, _without(producer, batch), error, loses_sequence=True), known, error)


def _without(producer: Producer, gone: Batch) -> Producer:
    """Give a batch up: those of its partition that follow, and the next one, move down (`adjustSequences...`)."""
    count, left = len(gone.records), producer.with_batch(gone.number, None)
    for batch in left.sent_to(gone.partition):
        if batch.number > gone.number and not batch.in_flight:
            moved = attrs.evolve(batch, base_sequence=batch.base_sequence - count)
            left = left.with_batch(batch.number, moved)
    known = producer.sequences[gone.partition]
    return left.with_sequences(gone.partition, attrs.evolve(known, following=max(known.following - count, 0)))


def broker_lost(family: Family, producer: Producer, numbers: Collection[int], *, was_called: bool) -> Producer:
    """Give a connection up: what was sent on it goes again as it is now, a call at once and batches after a pause."""
    batches = tuple(
        attrs.evolve(batch, in_flight=False, backs_off=True) if batch.number in numbers else batch
        for batch in producer.batches
    )
    producer = attrs.evolve(producer, batches=batches)
    if was_called and producer.call is not None:
        return _call_lost(family, producer, producer.call)
    return producer


def _call_lost(family: Family, producer: Producer, call: TransactionalCall) -> Producer:
    """Send a request again as it was, unless it adds to a transaction that aborts; what was sent may still arrive."""
    request, name = call.request, type(call.request).__name__
    producer = attrs.evolve(
        producer, call=attrs.evolve(call, is_sent=False),
        is_in_doubt=producer.is_in_doubt or name in family.replaced_after,
        needs_new_epoch=producer.needs_new_epoch or name in family.bumped_after,
    )
    aborts = producer.status is ProducerStatus.ABORTING_TRANSACTION
    if family.adds_again or not aborts or not isinstance(request, ADDING):
        return producer
    added = request.partitions if isinstance(request, AddPartitionsToTxnRequest) else (request.partition,)
    return attrs.evolve(producer, call=None, partitions=tuple(sorted({*producer.partitions, *added})))


def delivery_timed_out(family: Family, producer: Producer) -> Producer:
    """Give up the oldest batch that was sent: a leader may have it or not (`delivery.timeout.ms`)."""
    batch = next(batch for batch in producer.batches if batch.was_sent)
    if producer.transactional_id is None:
        return idempotent.timed_out(family, producer, batch)
    left = producer.with_batch(batch.number, None)
    return _abortable(family, left, Error.REQUEST_TIMED_OUT, loses_sequence=True)


def rested(producer: Producer) -> Producer:
    """Return the producer after its pause: what backed off may be sent."""
    call = producer.call
    if call is not None and call.backs_off:
        call = attrs.evolve(call, backs_off=False)
    batches = tuple(attrs.evolve(batch, backs_off=False) for batch in producer.batches)
    return attrs.evolve(producer, call=call, batches=batches)


def backs_off(producer: Producer) -> bool:
    """Say whether something waits for a pause."""
    return (producer.call is not None and producer.call.backs_off) or any(b.backs_off for b in producer.batches)
