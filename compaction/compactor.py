"""What the compactor decides: pure functions of explicit arguments, and its six states.

    PhaseOne -> Write -> UpdateContext -> UpdateHorizon -> PersistCursor -> DeleteLedger -> PhaseOne ...
    A crash of the broker leads from everywhere back to PhaseOne.

Nothing here knows where the arguments come from or when the effects land.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum

from compaction.records import NULL_KEY, Cursor, Ledger, PhaseOneResult
from harness.model import FrozenMap


class CompactorState(StrEnum):
    """States of the compactor, in the spelling of the spec."""

    PHASE_ONE = "Compactor_In_PhaseOne"
    WRITE = "Compactor_In_PhaseTwoWrite"
    UPDATE_CONTEXT = "Compactor_In_PhaseTwoUpdateContext"
    UPDATE_HORIZON = "Compactor_In_PhaseTwoUpdateHorizon"
    PERSIST_CURSOR = "Compactor_In_PhaseTwoPersistCusror"
    DELETE_LEDGER = "Compactor_In_PhaseTwoDeleteLedger"


ACTIONS = (
    "CompactorPhaseOne", "CompactorPhaseTwoWrite", "CompactorPhaseTwoUpdateContext", "CompactorPhaseTwoUpdateHorizon",
    "CompactorPhaseTwoPersistCusror", "CompactorPhaseTwoDeleteLedger",
)
"""The action of each state, which leads to the next one."""
TRANSITIONS: Mapping[CompactorState, Mapping[str, CompactorState]] = {
    state: {action: after, "BrokerCrash": CompactorState.PHASE_ONE}
    for state, action, after in zip(
        CompactorState, ACTIONS, (*list(CompactorState)[1:], CompactorState.PHASE_ONE), strict=True
    )
}
"""For each state, the actions that may be taken in it and the state after each."""


def latest_for_key(messages: Iterable[tuple[int, int]]) -> FrozenMap[int, int]:
    """Return the last id of each key but the null key; messages are given by id and key, ids ascending."""
    return FrozenMap({key: id_ for id_, key in messages if key != NULL_KEY})


def phase_one(keys: Sequence[int]) -> PhaseOneResult:
    """Read all messages, given by their keys, and note the last id of each key (`CompactorPhaseOne`)."""
    return PhaseOneResult(len(keys), latest_for_key(enumerate(keys, 1)))


def is_kept(id_: int, key: int, result: PhaseOneResult, retain_null_key: bool) -> bool:
    """Say whether phase two writes a message: the last one of its key.

    Messages with the null key are no versions of each other: all stay, or none.
    """
    if key == NULL_KEY:
        return retain_null_key
    return result.latest_for_key.get(key) == id_


def compacted(keys: Sequence[int], result: PhaseOneResult, retain_null_key: bool) -> Ledger:
    """Return what phase two writes: up to where phase one read, the last message of each key (`CompactMessages`)."""
    read = enumerate(keys[: result.read_position], 1)
    return tuple(id_ for id_, key in read if is_kept(id_, key, result, retain_null_key))


def next_ledger(newest: int, limit: int) -> int | None:
    """Return the id of the ledger to write, or None when the compactions are used up (`CompactorPhaseTwoWrite`)."""
    return newest + 1 if newest < limit else None


def obsolete_ledger(newest: int) -> int | None:
    """Return the ledger that a compaction replaced: the last but one (`CompactorPhaseTwoDeleteLedger`)."""
    return newest - 1 if newest > 1 else None


def recovered(cursor: Cursor | None) -> tuple[int, int]:
    """Return horizon and context as a broker loads them after a crash (`BrokerCrash`)."""
    return (0, 0) if cursor is None else (cursor.compaction_horizon, cursor.compacted_topic_context)


def unreferenced(existing: Iterable[int], context: int) -> tuple[int, ...]:
    """Return the ledgers that the cursor just loaded does not name: what the repair of S11 deletes."""
    return tuple(ledger for ledger in existing if ledger != context)


def first_lost(keys: Sequence[int], horizon: int, ledger: Ledger, retain_null_key: bool) -> int | None:
    """Return the first message up to the horizon that a ledger neither holds nor replaces by a later one of its key.

    Null-key messages count only where they are retained (`CompactionHorizonCorrectness`).
    """
    last = {keys[id_ - 1]: id_ for id_ in sorted(ledger) if 1 <= id_ <= len(keys)}
    for id_, key in enumerate(keys[:horizon], 1):
        if (key != NULL_KEY or retain_null_key) and last.get(key, 0) < id_:
            return id_
    return None
