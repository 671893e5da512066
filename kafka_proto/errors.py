"""Kafka's error codes in one table, and the specs' names for them.

Names, numbers and what is retriable are those of the enum `Errors` of Apache Kafka 4.0 and of the exceptions that it
names (clients, org.apache.kafka.common). What is definite is read from what brokers have done when they answer so.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Self

import attrs


@attrs.frozen
class Code:
    """A code. A client may ask again after a retriable one; after a definite one it knows that nothing was done."""

    name: str
    number: int | None
    retriable: bool = False
    definite: bool = True
    spec: tuple[str, ...] = ()
    """What the TLA+ modules call it."""


ASK_AGAIN, UNCLEAR = True, False


class ErrorCode(StrEnum):
    """Some of the codes, by Kafka's names or the specs'."""

    @property
    def kafka(self) -> Code:
        """Return the row of the table."""
        return BY_NAME[self.value]

    @property
    def is_retriable(self) -> bool:
        """Say whether a client may ask again."""
        return self.kafka.retriable

    @property
    def is_definite(self) -> bool:
        """Say whether a client knows after it that nothing was done."""
        return self.kafka.definite


class Error(ErrorCode):
    """The codes by Kafka's names and number. `NONE` is the absence of an error.

    The last one is a field of Kafka's answer to a fetch, not a code. Not definite are a lost answer, a time-out, and
    what is said of a record that is appended: a deposed leader fails what waits for replicas by NOT_LEADER_OR_FOLLOWER,
    its coordinator by NOT_COORDINATOR, too few replicas or a time-out by COORDINATOR_NOT_AVAILABLE.
    DUPLICATE_SEQUENCE_NUMBER says that it was done before. The specs' two names for a state that cannot be are
    exceptions of Kafka's broker.
    """

    row: Code

    def __new__(cls, row: Code) -> Self:
        code = str.__new__(cls, row.name)
        code._value_, code.row = row.name, row
        return code

    UNKNOWN_SERVER_ERROR = Code("UNKNOWN_SERVER_ERROR", -1, False, UNCLEAR, ("IllegalState", "InvalidTransition"))
    NONE = Code("NONE", 0, False, UNCLEAR, ("OK",))
    OFFSET_OUT_OF_RANGE = Code("OFFSET_OUT_OF_RANGE", 1)
    CORRUPT_MESSAGE = Code("CORRUPT_MESSAGE", 2, ASK_AGAIN)
    UNKNOWN_TOPIC_OR_PARTITION = Code("UNKNOWN_TOPIC_OR_PARTITION", 3, ASK_AGAIN)
    LEADER_NOT_AVAILABLE = Code("LEADER_NOT_AVAILABLE", 5, ASK_AGAIN)
    NOT_LEADER_OR_FOLLOWER = Code("NOT_LEADER_OR_FOLLOWER", 6, ASK_AGAIN, UNCLEAR)
    REQUEST_TIMED_OUT = Code("REQUEST_TIMED_OUT", 7, ASK_AGAIN, UNCLEAR)
    MESSAGE_TOO_LARGE = Code("MESSAGE_TOO_LARGE", 10)
    OFFSET_METADATA_TOO_LARGE = Code("OFFSET_METADATA_TOO_LARGE", 12)
    NETWORK_EXCEPTION = Code("NETWORK_EXCEPTION", 13, ASK_AGAIN, UNCLEAR)
    COORDINATOR_LOAD_IN_PROGRESS = Code(
        "COORDINATOR_LOAD_IN_PROGRESS", 14, ASK_AGAIN, spec=("CoordinatorLoadInProgress",)
    )
    COORDINATOR_NOT_AVAILABLE = Code("COORDINATOR_NOT_AVAILABLE", 15, ASK_AGAIN, UNCLEAR)
    NOT_COORDINATOR = Code(
        "NOT_COORDINATOR", 16, ASK_AGAIN, UNCLEAR, ("NotCoordinator", "NotCoordinatorForTransactionalId")
    )
    INVALID_TOPIC_EXCEPTION = Code("INVALID_TOPIC_EXCEPTION", 17)
    NOT_ENOUGH_REPLICAS = Code("NOT_ENOUGH_REPLICAS", 19, ASK_AGAIN)
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = Code("NOT_ENOUGH_REPLICAS_AFTER_APPEND", 20, ASK_AGAIN, UNCLEAR)
    INVALID_REQUIRED_ACKS = Code("INVALID_REQUIRED_ACKS", 21)
    ILLEGAL_GENERATION = Code("ILLEGAL_GENERATION", 22)
    INCONSISTENT_GROUP_PROTOCOL = Code("INCONSISTENT_GROUP_PROTOCOL", 23)
    INVALID_GROUP_ID = Code("INVALID_GROUP_ID", 24)
    UNKNOWN_MEMBER_ID = Code("UNKNOWN_MEMBER_ID", 25)
    INVALID_SESSION_TIMEOUT = Code("INVALID_SESSION_TIMEOUT", 26)
    REBALANCE_IN_PROGRESS = Code("REBALANCE_IN_PROGRESS", 27)
    TOPIC_AUTHORIZATION_FAILED = Code("TOPIC_AUTHORIZATION_FAILED", 29)
    INVALID_TIMESTAMP = Code("INVALID_TIMESTAMP", 32)
    UNSUPPORTED_SASL_MECHANISM = Code("UNSUPPORTED_SASL_MECHANISM", 33)
    ILLEGAL_SASL_STATE = Code("ILLEGAL_SASL_STATE", 34)
    UNSUPPORTED_VERSION = Code("UNSUPPORTED_VERSION", 35)
    TOPIC_ALREADY_EXISTS = Code("TOPIC_ALREADY_EXISTS", 36)
    INVALID_PARTITIONS = Code("INVALID_PARTITIONS", 37)
    INVALID_REPLICATION_FACTOR = Code("INVALID_REPLICATION_FACTOR", 38)
    INVALID_REPLICA_ASSIGNMENT = Code("INVALID_REPLICA_ASSIGNMENT", 39)
    INVALID_CONFIG = Code("INVALID_CONFIG", 40)
    INVALID_REQUEST = Code("INVALID_REQUEST", 42)
    OUT_OF_ORDER_SEQUENCE_NUMBER = Code("OUT_OF_ORDER_SEQUENCE_NUMBER", 45)
    DUPLICATE_SEQUENCE_NUMBER = Code("DUPLICATE_SEQUENCE_NUMBER", 46, False, UNCLEAR)
    INVALID_PRODUCER_EPOCH = Code("INVALID_PRODUCER_EPOCH", 47)
    INVALID_TXN_STATE = Code("INVALID_TXN_STATE", 48)
    INVALID_PRODUCER_ID_MAPPING = Code("INVALID_PRODUCER_ID_MAPPING", 49, spec=("InvalidProducerIdMapping",))
    INVALID_TRANSACTION_TIMEOUT = Code("INVALID_TRANSACTION_TIMEOUT", 50)
    CONCURRENT_TRANSACTIONS = Code("CONCURRENT_TRANSACTIONS", 51, ASK_AGAIN, spec=("ConcurrentTransactions",))
    TRANSACTION_COORDINATOR_FENCED = Code("TRANSACTION_COORDINATOR_FENCED", 52)
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = Code("TRANSACTIONAL_ID_AUTHORIZATION_FAILED", 53)
    SECURITY_DISABLED = Code("SECURITY_DISABLED", 54)
    OPERATION_NOT_ATTEMPTED = Code("OPERATION_NOT_ATTEMPTED", 55)
    KAFKA_STORAGE_ERROR = Code("KAFKA_STORAGE_ERROR", 56, ASK_AGAIN, UNCLEAR)
    LOG_DIR_NOT_FOUND = Code("LOG_DIR_NOT_FOUND", 57)
    UNKNOWN_PRODUCER_ID = Code("UNKNOWN_PRODUCER_ID", 59)
    NON_EMPTY_GROUP = Code("NON_EMPTY_GROUP", 68)
    GROUP_ID_NOT_FOUND = Code("GROUP_ID_NOT_FOUND", 69)
    FETCH_SESSION_ID_NOT_FOUND = Code("FETCH_SESSION_ID_NOT_FOUND", 70, ASK_AGAIN)
    INVALID_FETCH_SESSION_EPOCH = Code("INVALID_FETCH_SESSION_EPOCH", 71, ASK_AGAIN)
    FENCED_LEADER_EPOCH = Code("FENCED_LEADER_EPOCH", 74, ASK_AGAIN)
    """The request is of an older leader epoch (KIP-320), or of a deposed leader."""
    UNKNOWN_LEADER_EPOCH = Code("UNKNOWN_LEADER_EPOCH", 75, ASK_AGAIN)
    """The request is of a leader epoch that the broker does not know yet (KIP-320)."""
    UNSUPPORTED_COMPRESSION_TYPE = Code("UNSUPPORTED_COMPRESSION_TYPE", 76)
    OFFSET_NOT_AVAILABLE = Code("OFFSET_NOT_AVAILABLE", 78, ASK_AGAIN)
    """The high watermark of a new leader is not known to be the newest yet (KIP-207)."""
    MEMBER_ID_REQUIRED = Code("MEMBER_ID_REQUIRED", 79)
    PREFERRED_LEADER_NOT_AVAILABLE = Code("PREFERRED_LEADER_NOT_AVAILABLE", 80, ASK_AGAIN)
    FENCED_INSTANCE_ID = Code("FENCED_INSTANCE_ID", 82)
    ELIGIBLE_LEADERS_NOT_AVAILABLE = Code("ELIGIBLE_LEADERS_NOT_AVAILABLE", 83, ASK_AGAIN)
    ELECTION_NOT_NEEDED = Code("ELECTION_NOT_NEEDED", 84, ASK_AGAIN)
    NO_REASSIGNMENT_IN_PROGRESS = Code("NO_REASSIGNMENT_IN_PROGRESS", 85)
    GROUP_SUBSCRIBED_TO_TOPIC = Code("GROUP_SUBSCRIBED_TO_TOPIC", 86)
    INVALID_RECORD = Code("INVALID_RECORD", 87)
    UNSTABLE_OFFSET_COMMIT = Code("UNSTABLE_OFFSET_COMMIT", 88, ASK_AGAIN)
    PRODUCER_FENCED = Code("PRODUCER_FENCED", 90, spec=("ProducerFenced",))
    RESOURCE_NOT_FOUND = Code("RESOURCE_NOT_FOUND", 91)
    INVALID_UPDATE_VERSION = Code("INVALID_UPDATE_VERSION", 95)
    UNKNOWN_TOPIC_ID = Code("UNKNOWN_TOPIC_ID", 100, ASK_AGAIN)
    TRANSACTIONAL_ID_NOT_FOUND = Code("TRANSACTIONAL_ID_NOT_FOUND", 105)
    FETCH_SESSION_TOPIC_ID_ERROR = Code("FETCH_SESSION_TOPIC_ID_ERROR", 106, ASK_AGAIN)
    INELIGIBLE_REPLICA = Code("INELIGIBLE_REPLICA", 107)
    FENCED_MEMBER_EPOCH = Code("FENCED_MEMBER_EPOCH", 110)
    UNRELEASED_INSTANCE_ID = Code("UNRELEASED_INSTANCE_ID", 111)
    UNSUPPORTED_ASSIGNOR = Code("UNSUPPORTED_ASSIGNOR", 112)
    STALE_MEMBER_EPOCH = Code("STALE_MEMBER_EPOCH", 113)
    TRANSACTION_ABORTABLE = Code("TRANSACTION_ABORTABLE", 120)
    INVALID_REGULAR_EXPRESSION = Code("INVALID_REGULAR_EXPRESSION", 128)
    DIVERGING_EPOCH = Code("DIVERGING_EPOCH", None, ASK_AGAIN)
    """The fetch cannot be served, as the follower's log is not the beginning of the leader's."""


CODES = tuple(code.row for code in Error)
BY_NAME = {name: code for code in CODES for name in (code.name, *code.spec)}
NAMES = {code.number: code.name for code in CODES}
"""Kafka's names by number."""
