"""The outcome of a coordinator's decision, and the state change that most of them come down to."""

from __future__ import annotations

from typing import TypeVar

import attrs

from kafka_proto.requests import TxnState
from kafka_proto.transactions.messages import Request, Response, SpecError, answer
from kafka_proto.transactions.records import VALID_PREVIOUS, Entry, TxnMetadata

M = TypeVar("M", bound=TxnMetadata)


@attrs.frozen
class DiaryOutcome:
    """What follows from a request or an event: answers now, an entry to append whose callback answers later."""

    answers: tuple[Response, ...] = ()
    entry: Entry | None = None
    metadata: TxnMetadata | None = None
    """What the coordinator caches of the id from now on; None leaves it as it is."""

def refuse(request: Request, code: SpecError) -> DiaryOutcome:
    """Refuse a request with an error code."""
    return DiaryOutcome((answer(request, code),))


def transition(
    pending: TxnMetadata | None, current: M, becomes: TxnState, **changes: object
) -> M | SpecError:
    """Return the pending metadata of a state change, or the error that forbids it (`GenTransition`)."""
    if pending is not None:
        return SpecError.CONCURRENT_TRANSACTIONS
    if current.state not in VALID_PREVIOUS[becomes]:
        return SpecError.INVALID_TRANSITION
    return attrs.evolve(current, state=becomes, last_pid=None, **changes)  # type: ignore[arg-type]
