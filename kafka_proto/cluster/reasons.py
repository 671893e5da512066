"""P7, answer by answer: what must have happened before a request may be answered by a code.

By what the documentation of the codes (`org.apache.kafka.common.errors`) and KIP-98, 320, 360, 890 and 1050 say. Each
happening is one that stays true, since an answer arrives later than it is sent.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

import attrs

from harness.model import Reason
from kafka_proto.errors import Error


class RefusalReason(StrEnum):
    """What may have happened, as a person is told."""

    FENCED = "a fence"
    """The coordinator has another producer id for the transactional id, or a newer epoch."""
    REPLACED = "another id"
    """The coordinator has another producer id for it."""
    ENDED = "an end"
    """The log has the prepared end of the transaction."""
    UNDER_WAY = "an entry"
    """An end was prepared in the request's epoch, or into it; where entries commit later, one was written."""
    MOVED = "a move"
    """The partition or the transactional id got another leader, or a broker crashed."""
    TOO_FEW = "another ISR"
    UNREACHED = "a lost connection"
    """A broker gave up its connection to another."""
    GAP = "a gap"
    """The batch before it is not in the log, or may have arrived after it."""
    DELETED = "a deletion"
    """Of records, in the partition."""
    LATER = "a later epoch"
    """The partition has a batch of an epoch that the request is too old for, or had it before a move.

    A producer without transactions takes its next epoch unasked (KIP-360). That of one with transactions is a fence.
    """
    SUCCEEDED = "a successor"
    """A later coordinator epoch began."""
    REBALANCED = "a rebalance"
    """The group has another generation than the member's, or not this member."""


FENCED, REPLACED, ENDED, UNDER_WAY, MOVED, TOO_FEW, UNREACHED, GAP, DELETED, LATER, SUCCEEDED, REBALANCED = (
    RefusalReason)
ADD = ("AddPartitionsToTxnRequest", "AddOffsetsToTxnRequest")
END, INIT = ("EndTxnRequest",), ("InitProducerIdRequest",)
PRODUCE, OFFSETS = ("ProduceRequest",), ("TxnOffsetCommitRequest",)
OF_COORDINATOR = (*ADD, *END, *INIT)
MARKERS, FETCH = ("WriteTxnMarkersRequest",), ("ConsumerFetchRequest",)
FIND_LEADER, FIND_COORDINATOR = ("MetadataRequest",), ("FindCoordinatorRequest",)
OF_FATAL_CODES = "EndTxnRequest"
"""A code that makes a producer unusable has the reasons that it has here, whatever is answered by it."""


@attrs.frozen
class CodeReasons:
    """A row of the table: requests, a code, and what must have happened: one of these."""

    requests: tuple[str, ...]
    error: Error
    happenings: tuple[RefusalReason, ...]


ROWS = (
    CodeReasons((*OF_COORDINATOR, *OFFSETS, *PRODUCE), Error.PRODUCER_FENCED, (FENCED,)),
    CodeReasons((*OF_COORDINATOR, *OFFSETS), Error.INVALID_PRODUCER_EPOCH, (FENCED,)),
    CodeReasons(PRODUCE, Error.INVALID_PRODUCER_EPOCH, (FENCED, LATER)),
    CodeReasons((*ADD, *END, *OFFSETS, *PRODUCE), Error.INVALID_PRODUCER_ID_MAPPING, (REPLACED,)),
    CodeReasons(PRODUCE, Error.INVALID_TXN_STATE, (ENDED, FENCED, MOVED)),
    CodeReasons((*PRODUCE, *OFFSETS), Error.TRANSACTION_ABORTABLE, (ENDED, FENCED)),
    CodeReasons(PRODUCE, Error.OUT_OF_ORDER_SEQUENCE_NUMBER, (GAP,)),
    CodeReasons(PRODUCE, Error.UNKNOWN_PRODUCER_ID, (DELETED, MOVED)),
    CodeReasons((*OF_COORDINATOR, *OFFSETS, *PRODUCE), Error.CONCURRENT_TRANSACTIONS, (UNDER_WAY,)),
    CodeReasons((*OF_COORDINATOR, *OFFSETS), Error.COORDINATOR_LOAD_IN_PROGRESS, (MOVED,)),
    CodeReasons((*OF_COORDINATOR, *OFFSETS), Error.NOT_COORDINATOR, (MOVED,)),
    CodeReasons(OF_COORDINATOR, Error.COORDINATOR_NOT_AVAILABLE, (MOVED, TOO_FEW)),
    CodeReasons(OFFSETS, Error.UNKNOWN_MEMBER_ID, (REBALANCED,)),
    CodeReasons(OFFSETS, Error.ILLEGAL_GENERATION, (REBALANCED,)),
    CodeReasons(OFFSETS, Error.COORDINATOR_NOT_AVAILABLE, (MOVED, TOO_FEW, UNREACHED, UNDER_WAY)),
    CodeReasons((*ADD, *PRODUCE, *MARKERS, *FETCH), Error.UNKNOWN_TOPIC_OR_PARTITION, (MOVED,)),
    CodeReasons((*PRODUCE, *MARKERS, *FETCH), Error.NOT_LEADER_OR_FOLLOWER, (MOVED,)),
    CodeReasons(FIND_LEADER, Error.LEADER_NOT_AVAILABLE, (MOVED,)),
    CodeReasons(FIND_COORDINATOR, Error.COORDINATOR_NOT_AVAILABLE, (MOVED,)),
    CodeReasons(FETCH, Error.OFFSET_OUT_OF_RANGE, (DELETED, MOVED)),
    CodeReasons(MARKERS, Error.INVALID_PRODUCER_EPOCH, (LATER,)),
    CodeReasons(MARKERS, Error.TRANSACTION_COORDINATOR_FENCED, (SUCCEEDED,)),
    CodeReasons(PRODUCE, Error.NETWORK_EXCEPTION, (UNREACHED, MOVED)),
    CodeReasons(PRODUCE, Error.NOT_ENOUGH_REPLICAS, (TOO_FEW, UNDER_WAY, MOVED, UNREACHED)),
    CodeReasons((*PRODUCE, *MARKERS), Error.NOT_ENOUGH_REPLICAS_AFTER_APPEND, (TOO_FEW,)),
    CodeReasons(MARKERS, Error.NOT_ENOUGH_REPLICAS, (TOO_FEW,)),
)
"""What producers, consumers and coordinators are refused by. A code of no row has no reason: nothing that happens to
one that keeps the rules. A look-up without a code is answered by one where its answer has no leader."""
REASONS: dict[tuple[str, str], tuple[RefusalReason, ...]] = {
    (request, row.error): row.happenings for row in ROWS for request in row.requests
}

JUDGED = frozenset(request for row in ROWS for request in row.requests)
"""The requests that are judged."""


def refused_for_a_reason(
    who: str, request: str, error: Error, has_happened: Callable[[RefusalReason], bool]
) -> Reason:
    """P7, of an answer: something has happened that its code is for."""
    reasons = REASONS.get((request, error), ())
    if any(map(has_happened, reasons)):
        return None
    due = ", ".join(reasons) or "nothing"
    return f"{who}'s {request} is answered by {error.value}, for which the history has no reason ({due})"
