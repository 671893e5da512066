"""The outcome of a coordinator's decision, and the state change that most of them come down to."""

from __future__ import annotations

from typing import TypeVar

import attrs

from kafka_proto.requests.transaction_state import TxnState
from kafka_proto.transactions.messages import Error, Request, Response, answer
from kafka_proto.transactions.records import VALID_PREVIOUS, Entry, TransactionMetadata

M = TypeVar("M", bound=TransactionMetadata)


@attrs.frozen
class Outcome:
    """What follows from a request or an event: answers now, an entry to append whose callback answers later."""

    answers: tuple[Response, ...] = ()
    entry: Entry | None = None
    metadata: TransactionMetadata | None = None
    """What the coordinator caches of the id from now on; None leaves it as it is."""
    needs_producer_ids: bool = False
    """Whether the request was refused because the producer ids are used up."""


def refuse(request: Request, code: Error) -> Outcome:
    """Refuse a request with an error code."""
    return Outcome((answer(request, code),))


def transition(
    pending: TransactionMetadata | None, current: M, becomes: TxnState, **changes: object
) -> M | Error:
    """Return the pending metadata of a state change, or the error that forbids it (`GenTransition`)."""
    if pending is not None:
        return Error.CONCURRENT_TRANSACTIONS
    if current.state not in VALID_PREVIOUS[becomes]:
        return Error.INVALID_TRANSITION
    return attrs.evolve(current, state=becomes, last_producer_id=None, **changes)  # type: ignore[arg-type]
