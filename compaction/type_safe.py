"""`TypeSafe`: what every variable may hold, in parts that read little each.

A ledger whose ids are those of messages that are sent has well-typed messages exactly if these have.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from compaction.compactor import CompactorState
from compaction.spec import Constants, keys_of, ledger_of, message_slots
from harness.model import Reason, View


def type_safe(k: Constants) -> tuple[Callable[[View], Reason], ...]:
    """`TypeSafe` in parts: each message, each ledger, the result of phase one, and all else."""
    return (
        *(partial(typed_message, k=k, n=n) for n in k.ids),
        *(partial(typed_ledger, k=k, n=n) for n in k.ledgers),
        partial(typed_phase_one_result, k=k),
        partial(typed_rest, k=k),
    )


def typed_message(view: View, k: Constants, n: int) -> Reason:
    """Say what is wrong with a message that is sent: its key and value, or that the one before it is not sent."""
    key, value = (view[name] for name in message_slots(n))
    if (key, value) == (None, None):
        return None
    if key in k.key_set and value in k.value_set:
        if n == 1 or view[message_slots(n - 1)[0]] is not None:
            return None
        return f"message {n} is sent, but message {n - 1} is not"
    return f"message {n} has key {key} and value {value}, which are not of the producer's keys and values"


def typed_ledger(view: View, k: Constants, n: int) -> Reason:
    """Say which message of a compacted ledger was never sent."""
    sent = len(keys_of(view, k))
    wrong = [id_ for id_ in ledger_of(view, n) or () if not 1 <= id_ <= sent]
    return f"compacted ledger {n} holds message {wrong[0]}, but {sent} messages are sent" if wrong else None


def typed_phase_one_result(view: View, k: Constants) -> Reason:
    """Say which message that phase one tells of was never sent."""
    result = view["phaseOneResult"]
    if result is None:
        return None
    sent = len(keys_of(view, k))
    for key, latest in sorted(result.latest_for_key.items()):
        if not 1 <= latest <= sent:
            return f"phase one found key {key} last in message {latest}, but {sent} messages are sent"
    if not 1 <= result.read_position <= sent:
        return f"phase one read up to message {result.read_position}, but {sent} messages are sent"
    return None


def typed_rest(view: View, k: Constants) -> Reason:
    """Say which state or number is out of its range."""
    if view["compactorState"] not in list(CompactorState):
        return f"the compactor is in state {view['compactorState']}, which is none of its six"
    cursor = view["cursor"]
    return (
        within("compactionHorizon", view["compactionHorizon"], 0, k.messages)
        or within("compactedTopicContext", view["compactedTopicContext"], 0, k.compactions)
        or within("crashTimes", view["crashTimes"], 0, k.crashes)
        or (cursor and within("the cursor's compactionHorizon", cursor.compaction_horizon, 1, k.messages))
        or (cursor and within("the cursor's compactedTopicContext", cursor.compacted_topic_context, 1, k.compactions))
    )


def within(name: str, value: int, least: int, most: int) -> Reason:
    return None if least <= value <= most else f"{name} is {value}, not between {least} and {most}"
