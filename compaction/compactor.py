"""What the compactor decides: pure functions of explicit arguments, and its six states.

    PhaseOne -> Write -> UpdateContext -> UpdateHorizon -> PersistCursor -> DeleteLedger -> PhaseOne ...
    A crash of the broker leads from everywhere back to PhaseOne.

Nothing here knows where the arguments come from or when the effects land.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum

import attrs

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


@attrs.frozen
class Position:
    """Where a reader is: the id of the last message it got, and whether that came from the compacted ledger."""

    last: int = 0
    in_ledger: bool = False


def next_message(position: Position, ledger: Ledger | None, horizon: int, end: int) -> Position | None:
    """Return the position after the next message, or None when there is none yet.

    `ledger` is that of the context, if any, and `end` the id of the last message of the topic. Every read below the
    horizon, and the first one of all, uses the ledger. A reader that comes to its end goes on behind the horizon,
    wherever the ledger ended: that is how a message is read twice while the horizon lags behind (S12). A ledger is read
    by ids, in whatever order it holds them.
    """
    last = position.last
    if ledger is not None and (position.in_ledger or last == 0 or last < horizon):
        after = min((id_ for id_ in ledger if id_ > last), default=None)
        if after is not None:
            return Position(after, in_ledger=True)
        last = horizon if position.in_ledger else max(last, horizon)
    return Position(last + 1) if last < end else None


def view_from_earliest(ledger: Ledger | None, horizon: int, end: int) -> tuple[int, ...]:
    """Return the ids of all messages that a reader from the earliest position gets, in its order."""
    read = []
    position = next_message(Position(), ledger, horizon, end)
    while position is not None:
        read.append(position.last)
        position = next_message(position, ledger, horizon, end)
    return tuple(read)


def read_twice(ledger: Ledger | None, horizon: int, end: int) -> tuple[int, ...]:
    """Return the ids of the messages that a reader from the earliest position gets more than once."""
    times = Counter(view_from_earliest(ledger, horizon, end))
    return tuple(id_ for id_ in sorted(times) if times[id_] > 1)
