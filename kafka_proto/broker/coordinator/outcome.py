"""What a decision of the transaction coordinator is: an answer, or an append with the answers to its outcome."""

from __future__ import annotations

import attrs

from kafka_proto.broker.coordinator.transaction import CachedTransaction, TransactionMetadata
from kafka_proto.errors import Error
from kafka_proto.log import NO_PRODUCER_EPOCH, NO_PRODUCER_ID


@attrs.frozen
class Answer:
    """What is answered: a code, and a producer id and epoch where the request asks for them."""

    error: Error = Error.NONE
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_PRODUCER_EPOCH


@attrs.frozen
class Outcome:
    """Without `entry`, `answer` is given at once; with it, when it is appended, and `cached` holds until then."""

    answer: Answer
    entry: TransactionMetadata | None = None
    cached: CachedTransaction | None = None
    ends: bool = False
    """The entry is a Prepare*: once it is appended, the markers are sent."""
    fences: bool = False
    """A failed append is remembered as a failed fence."""
    takes_producer_id: bool = False
    """The producer id that was on offer is used up."""


def refuse(error: Error) -> Outcome:
    """Answer with a code and do nothing."""
    return Outcome(Answer(error))


def log_change(
    cached: CachedTransaction, entry: TransactionMetadata, answer: Answer, *, takes: bool = False
) -> Outcome:
    """Append a change, and answer when it is done; until then it is pending."""
    return Outcome(answer, entry, attrs.evolve(cached, pending_state=entry.state), takes_producer_id=takes)
