"""What a client makes of an error code, by the request that it answers: one table (`TransactionManager`, `Sender`)."""

from __future__ import annotations

from enum import StrEnum

from kafka_proto.requests import Error


class Verdict(StrEnum):
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
    Error.NONE: Verdict.DONE,
    Error.CONCURRENT_TRANSACTIONS: Verdict.RETRY,
    Error.COORDINATOR_LOAD_IN_PROGRESS: Verdict.RETRY,
    Error.UNKNOWN_TOPIC_OR_PARTITION: Verdict.RETRY,
    Error.NOT_COORDINATOR: Verdict.LOOK_UP,
    Error.COORDINATOR_NOT_AVAILABLE: Verdict.LOOK_UP,
    Error.REQUEST_TIMED_OUT: Verdict.LOOK_UP,
    Error.NETWORK_EXCEPTION: Verdict.LOOK_UP,
    Error.TRANSACTION_ABORTABLE: Verdict.ABORTABLE,
    Error.UNKNOWN_PRODUCER_ID: Verdict.ABORTABLE,
    Error.INVALID_PRODUCER_ID_MAPPING: Verdict.ABORTABLE,
    Error.PRODUCER_FENCED: Verdict.FATAL,
    Error.INVALID_PRODUCER_EPOCH: Verdict.FATAL,
    Error.INVALID_TXN_STATE: Verdict.FATAL,
    Error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: Verdict.FATAL,
}
TABLE = {
    "InitProducerIdRequest": {
        **_COORDINATOR, Error.UNKNOWN_PRODUCER_ID: Verdict.FATAL, Error.INVALID_PRODUCER_ID_MAPPING: Verdict.FATAL,
    },
    "AddPartitionsToTxnRequest": {**_COORDINATOR, Error.OPERATION_NOT_ATTEMPTED: Verdict.ABORTABLE},
    "AddOffsetsToTxnRequest": _COORDINATOR,
    "EndTxnRequest": _COORDINATOR,
    "TxnOffsetCommitRequest": {
        **_COORDINATOR,
        Error.UNKNOWN_MEMBER_ID: Verdict.ABORTABLE,
        Error.ILLEGAL_GENERATION: Verdict.ABORTABLE,
        Error.FENCED_INSTANCE_ID: Verdict.ABORTABLE,
    },
    "ProduceRequest": {
        Error.NONE: Verdict.DONE,
        Error.DUPLICATE_SEQUENCE_NUMBER: Verdict.DONE,
        Error.NOT_ENOUGH_REPLICAS: Verdict.RETRY,
        Error.NOT_ENOUGH_REPLICAS_AFTER_APPEND: Verdict.RETRY,
        Error.REQUEST_TIMED_OUT: Verdict.RETRY,
        Error.KAFKA_STORAGE_ERROR: Verdict.RETRY,
        Error.CONCURRENT_TRANSACTIONS: Verdict.RETRY,
        Error.NOT_LEADER_OR_FOLLOWER: Verdict.LOOK_UP,
        Error.UNKNOWN_TOPIC_OR_PARTITION: Verdict.LOOK_UP,
        Error.NETWORK_EXCEPTION: Verdict.LOOK_UP,
        Error.OUT_OF_ORDER_SEQUENCE_NUMBER: Verdict.ABORTABLE,
        Error.UNKNOWN_PRODUCER_ID: Verdict.ABORTABLE,
        Error.INVALID_PRODUCER_EPOCH: Verdict.ABORTABLE,
        Error.INVALID_TXN_STATE: Verdict.ABORTABLE,
        Error.TRANSACTION_ABORTABLE: Verdict.ABORTABLE,
        Error.PRODUCER_FENCED: Verdict.FATAL,
        Error.INVALID_PRODUCER_ID_MAPPING: Verdict.FATAL,
        Error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: Verdict.FATAL,
    },
}
"""By the name of the request. A code that is not listed is abortable for a batch, and fatal for the rest."""


def verdict(request: str, error: Error) -> Verdict:
    """Return what an error in the answer to a request means."""
    other = Verdict.ABORTABLE if request == "ProduceRequest" else Verdict.FATAL
    return TABLE[request].get(error, other)
