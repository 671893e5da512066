"""What a producer makes of a code (`TransactionManager`'s handlers, `Sender`): go on, ask again, abort, or give up."""

from __future__ import annotations

from enum import StrEnum

from kafka_proto.requests import (
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    Error,
    InitProducerIdRequest,
    ProduceRequest,
)


class Verdict(StrEnum):
    DONE = "done"
    RETRY = "retry"
    """Ask the same broker again."""
    LOOK_UP = "look up again"
    ABORTABLE = "abortable"
    """The transaction can only be aborted."""
    FATAL = "fatal"
    """The producer can only be closed."""


RETRIED = (Error.CONCURRENT_TRANSACTIONS, Error.COORDINATOR_LOAD_IN_PROGRESS, Error.NOT_ENOUGH_REPLICAS,
           Error.NOT_ENOUGH_REPLICAS_AFTER_APPEND, Error.REQUEST_TIMED_OUT)
LOOKED_UP = (Error.NOT_COORDINATOR, Error.COORDINATOR_NOT_AVAILABLE, Error.NOT_LEADER_OR_FOLLOWER,
             Error.UNKNOWN_TOPIC_OR_PARTITION)
ABORTABLE: dict[type, tuple[Error, ...]] = {
    InitProducerIdRequest: (Error.TRANSACTION_ABORTABLE,),
    AddPartitionsToTxnRequest: (Error.TRANSACTION_ABORTABLE, Error.INVALID_PRODUCER_ID_MAPPING,
                                Error.UNKNOWN_PRODUCER_ID, Error.OPERATION_NOT_ATTEMPTED),
    ProduceRequest: (Error.TRANSACTION_ABORTABLE, Error.INVALID_PRODUCER_EPOCH, Error.UNKNOWN_PRODUCER_ID,
                     Error.OUT_OF_ORDER_SEQUENCE_NUMBER),
    EndTxnRequest: (Error.TRANSACTION_ABORTABLE, Error.INVALID_PRODUCER_ID_MAPPING, Error.UNKNOWN_PRODUCER_ID),
}
"""By request. Of Produce, a stale epoch ends the transaction; of the coordinator's requests, the producer."""


def verdict(request: object, error: Error) -> Verdict:
    """Say what a producer does about the answer to a request."""
    if error is Error.NONE:
        return Verdict.DONE
    if error in RETRIED:
        return Verdict.RETRY
    if error in LOOKED_UP:
        return Verdict.LOOK_UP
    if error in ABORTABLE[type(request)]:
        return Verdict.ABORTABLE
    return Verdict.FATAL
