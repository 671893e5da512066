"""Which entry commits next, what its commit sets off, and which coordinator completes a prepared transaction."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

import attrs

from kafka_proto.requests import TxnState
from kafka_proto.transactions.decisions.coordinator import DiaryOutcome, transition
from kafka_proto.transactions.records import PREPARED, Callback, Entry, SpecError, TxnMetadata

E = TypeVar("E", bound=Entry)


def next_to_commit(log: Sequence[E], hwm: int, can_commit: Iterable[bool]) -> E | None:
    """Return the entry that a leader commits next, or None if it may not (`CommitTxnLogAppend`).

    `can_commit` says, one by one and up to the first that says no, what else must be: it leads, and every broker is in
    its epoch.
    """
    if hwm >= len(log) or not all(can_commit):
        return None
    return log[hwm]


def entry_committed(entry: Entry) -> DiaryOutcome:
    """Run the callback of a committed entry (the Handle... formulas of `CommitTxnLogAppend`)."""
    response = entry.callback.response
    answers = () if response is None else (response,)
    if entry.callback.type not in PREPARED:
        return DiaryOutcome(answers)
    completion = complete(entry.tid, entry.transition)
    if isinstance(completion, SpecError):
        return DiaryOutcome(tuple(attrs.evolve(said, code=completion) for said in answers))
    return DiaryOutcome(answers, completion)


def complete(tid: str, prepared: TxnMetadata) -> Entry | SpecError:
    """Return the entry that completes a prepared transaction (`GenCompleteTransition`)."""
    commits = prepared.state is TxnState.PREPARE_COMMIT
    result = transition(None, prepared, TxnState.COMPLETE_COMMIT if commits else TxnState.COMPLETE_ABORT)
    return result if isinstance(result, SpecError) else Entry(tid, result, Callback(result.state.value))


def complete_partial_txn(
    tid: str, *, leads: bool, metadata: TxnMetadata | None, pending: TxnMetadata | None
) -> Entry | None:
    """Return the entry with which a new coordinator finishes what its predecessor prepared (`CompletePartialTxn`)."""
    if not leads or metadata is None or metadata.state not in PREPARED or pending is not None:
        return None
    entry = complete(tid, metadata)
    return None if isinstance(entry, SpecError) else entry
