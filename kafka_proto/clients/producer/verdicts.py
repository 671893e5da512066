"""What a client makes of an error code, by the request that it answers: one table (`TransactionManager`, `Sender`)."""

from __future__ import annotations

from enum import StrEnum

from kafka_proto.requests import Error


class AnswerVerdict(StrEnum):
    DONE = "done"
    RETRY = "retry"
    """The same request again after a pause, to the same broker."""
    LOOK_UP = "look up again"
    """The same request again, after finding out who is asked now."""
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


def verdict(request: str, error: Error) -> AnswerVerdict:
    """Return what an error in the answer to a request means."""
    other = AnswerVerdict.ABORTABLE if request == "ProduceRequest" else AnswerVerdict.FATAL
    return TABLE[request].get(error, other)
