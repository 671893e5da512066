"""Kafka's error codes in one table, and the specs' names for them.

Names, numbers and what is retriable are those of the enum `Errors` of Apache Kafka 4.0 and of the exceptions that it
names (clients, org.apache.kafka.common). What is definite is read from what brokers have done when they answer so.
"""

from __future__ import annotations

from enum import StrEnum

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

CODES = (
    Code("UNKNOWN_SERVER_ERROR", -1, False, UNCLEAR, ("IllegalState", "InvalidTransition")),
    Code("NONE", 0, False, UNCLEAR, ("OK",)),
    Code("OFFSET_OUT_OF_RANGE", 1),
    Code("CORRUPT_MESSAGE", 2, ASK_AGAIN),
    Code("UNKNOWN_TOPIC_OR_PARTITION", 3, ASK_AGAIN),
    Code("NOT_LEADER_OR_FOLLOWER", 6, ASK_AGAIN, UNCLEAR),
    Code("REQUEST_TIMED_OUT", 7, ASK_AGAIN, UNCLEAR),
    Code("MESSAGE_TOO_LARGE", 10),
    Code("OFFSET_METADATA_TOO_LARGE", 12),
    Code("NETWORK_EXCEPTION", 13, ASK_AGAIN, UNCLEAR),
    Code("COORDINATOR_LOAD_IN_PROGRESS", 14, ASK_AGAIN, spec=("CoordinatorLoadInProgress",)),
    Code("COORDINATOR_NOT_AVAILABLE", 15, ASK_AGAIN, UNCLEAR),
    Code("NOT_COORDINATOR", 16, ASK_AGAIN, UNCLEAR, ("NotCoordinator", "NotCoordinatorForTransactionalId")),
    Code("INVALID_TOPIC_EXCEPTION", 17),
    Code("NOT_ENOUGH_REPLICAS", 19, ASK_AGAIN),
    Code("NOT_ENOUGH_REPLICAS_AFTER_APPEND", 20, ASK_AGAIN, UNCLEAR),
    Code("INVALID_REQUIRED_ACKS", 21),
    Code("ILLEGAL_GENERATION", 22),
    Code("INCONSISTENT_GROUP_PROTOCOL", 23),
    Code("INVALID_GROUP_ID", 24),
    Code("UNKNOWN_MEMBER_ID", 25),
    Code("INVALID_SESSION_TIMEOUT", 26),
    Code("REBALANCE_IN_PROGRESS", 27),
    Code("TOPIC_AUTHORIZATION_FAILED", 29),
    Code("INVALID_TIMESTAMP", 32),
    Code("UNSUPPORTED_VERSION", 35),
    Code("TOPIC_ALREADY_EXISTS", 36),
    Code("INVALID_PARTITIONS", 37),
    Code("INVALID_REPLICATION_FACTOR", 38),
    Code("INVALID_REPLICA_ASSIGNMENT", 39),
    Code("INVALID_CONFIG", 40),
    Code("INVALID_REQUEST", 42),
    Code("OUT_OF_ORDER_SEQUENCE_NUMBER", 45),
    Code("DUPLICATE_SEQUENCE_NUMBER", 46, False, UNCLEAR),
    Code("INVALID_PRODUCER_EPOCH", 47),
    Code("INVALID_TXN_STATE", 48),
    Code("INVALID_PRODUCER_ID_MAPPING", 49, spec=("InvalidProducerIdMapping",)),
    Code("INVALID_TRANSACTION_TIMEOUT", 50),
    Code("CONCURRENT_TRANSACTIONS", 51, ASK_AGAIN, spec=("ConcurrentTransactions",)),
    Code("TRANSACTION_COORDINATOR_FENCED", 52),
    Code("TRANSACTIONAL_ID_AUTHORIZATION_FAILED", 53),
    Code("OPERATION_NOT_ATTEMPTED", 55),
    Code("KAFKA_STORAGE_ERROR", 56, ASK_AGAIN, UNCLEAR),
    Code("UNKNOWN_PRODUCER_ID", 59),
    Code("GROUP_ID_NOT_FOUND", 69),
    Code("FENCED_LEADER_EPOCH", 74, ASK_AGAIN),
    Code("UNSUPPORTED_COMPRESSION_TYPE", 76),
    Code("OFFSET_NOT_AVAILABLE", 78, ASK_AGAIN),
    Code("MEMBER_ID_REQUIRED", 79),
    Code("FENCED_INSTANCE_ID", 82),
    Code("INVALID_RECORD", 87),
    Code("UNSTABLE_OFFSET_COMMIT", 88, ASK_AGAIN),
    Code("PRODUCER_FENCED", 90, spec=("ProducerFenced",)),
    Code("INVALID_UPDATE_VERSION", 95),
    Code("TRANSACTIONAL_ID_NOT_FOUND", 105),
    Code("INELIGIBLE_REPLICA", 107),
    Code("TRANSACTION_ABORTABLE", 120),
    Code("DIVERGING_EPOCH", None, ASK_AGAIN),
)
"""By number; the last one is a field of Kafka's answer to a fetch, not a code.

Not definite are a lost answer, a time-out, and what is said of a record that is appended: a deposed leader fails what
waits for replicas by NOT_LEADER_OR_FOLLOWER, its coordinator by NOT_COORDINATOR, too few replicas or a time-out by
COORDINATOR_NOT_AVAILABLE. DUPLICATE_SEQUENCE_NUMBER says that it was done before. The specs' two names for a state that
cannot be are exceptions of Kafka's broker.
"""
BY_NAME = {name: code for code in CODES for name in (code.name, *code.spec)}
NAMES = {code.number: code.name for code in CODES}
"""Kafka's names by number."""


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
