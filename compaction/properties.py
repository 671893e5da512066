"""The properties of the spec under their own names, and witnesses against vacuity.

Every reason is a sentence that names who and what.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from compaction import compactor
from compaction.compactor import CompactorState
from compaction.records import NULL_KEY
from compaction.spec import Constants, keys_of, ledger_of, message_slots, unfinished
from harness.model import Property, Reason, Step, View, always, eventually, parts, sometimes

CHECKED = ("TypeSafe", "CompactionHorizonCorrectness", "ContextLedgerExists")
"""The invariants that hold as written: the first two are those of the module's cfg, the third one is ours."""
SOURCE = "compaction"


def properties(k: Constants) -> tuple[Property, ...]:
    """Return every property of the spec at the given constants."""
    return (
        always("TypeSafe", lambda view, part: part(view), over=type_safe(k), source=SOURCE),
        always("CompactionHorizonCorrectness", partial(compaction_horizon_correctness, k=k), source=SOURCE),
        always(
            "CompactedLedgerLeak", partial(compacted_ledger_leak, k=k), source=f"{SOURCE}, violated as written (S11)"
        ),
        always(
            "DuplicateNullKeyMessage", partial(duplicate_null_key_message, k=k),
            source=f"{SOURCE}, violated as written where null keys are retained (S12)",
        ),
        always("ContextLedgerExists", context_ledger_exists, source="ours: readers find their ledger"),
        eventually(
            "Termination", partial(unfinished, k=k), stays=False,
            source=f"{SOURCE}, violated as written where the consumer is modelled (S13)",
        ),
        sometimes("MessageDropped", message_dropped),
        sometimes("LedgerReplaced", ledger_replaced, on="step"),
        sometimes(
            "CursorRecovered", lambda view, step: step.action == "BrokerCrash" and view["cursor"] is not None, on="step"
        ),
    )


def type_safe(k: Constants) -> tuple[Callable[[View], Reason], ...]:
    """`TypeSafe`, what every variable may hold, in parts that read little: messages, ledgers, phase one, all else.

    A ledger whose ids are those of messages that are sent has well-typed messages exactly if these have.
    """
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


def compaction_horizon_correctness(view: View, k: Constants) -> Reason:
    """`CompactionHorizonCorrectness`: the ledger of the context stands for all messages up to the horizon."""
    horizon = view["compactionHorizon"]
    if horizon == 0:
        return None
    skip = f"readers skip the topic up to message {horizon}"
    context = view["compactedTopicContext"]
    if context == 0:
        return f"{skip}, but no compacted ledger is in the context"
    ledger = ledger_of(view, context)
    if ledger is None:
        return f"{skip}, but compacted ledger {context} does not exist"
    keys = keys_of(view, k)
    if horizon > len(keys):
        return f"{skip}, but {len(keys)} messages are sent"
    lost = compactor.first_lost(keys, horizon, ledger, k.retain_null_key)
    if lost is None:
        return None
    key = "the null key" if keys[lost - 1] == NULL_KEY else f"key {keys[lost - 1]}"
    return f"{skip}, but compacted ledger {context} holds neither message {lost} nor a later one with {key}"


def compacted_ledger_leak(view: View, k: Constants) -> Reason:
    """`CompactedLedgerLeak`: the ledger in use, and at most one being written or deleted."""
    existing = [n for n in k.ledgers if ledger_of(view, n) is not None]
    if len(existing) <= 2:
        return None
    return f"{len(existing)} compacted ledgers exist at once: {', '.join(map(str, existing))}"


def duplicate_null_key_message(view: View, k: Constants) -> Reason:
    """`DuplicateNullKeyMessage`: no reader gets a null-key message from the compacted ledger and from the topic."""
    if not k.retain_null_key:
        return None
    context = view["compactedTopicContext"]
    if context == 0:
        return None
    keys, horizon = keys_of(view, k), view["compactionHorizon"]
    for n in compactor.read_twice(ledger_of(view, context), horizon, len(keys)):
        if keys[n - 1] == NULL_KEY:
            return (
                f"a reader gets null-key message {n} twice: from compacted ledger {context}, and from the topic, "
                f"which it reads after message {horizon}"
            )
    return None


def context_ledger_exists(view: View) -> Reason:
    """`ContextLedgerExists`: readers are not sent to a compacted ledger that is gone."""
    context = view["compactedTopicContext"]
    if context == 0 or ledger_of(view, context) is not None:
        return None
    return f"readers use compacted ledger {context}, which does not exist"


def message_dropped(view: View) -> bool:
    """Say whether the ledger in use lacks a message that readers skip."""
    context = view["compactedTopicContext"]
    kept = ledger_of(view, context) or () if context else ()
    return any(n not in kept for n in range(1, view["compactionHorizon"] + 1))


def ledger_replaced(view: View, step: Step) -> bool:
    """Say whether a step deletes the ledger of an earlier compaction."""
    gone = [name for name, value in step.writes if parts(name)[0] == "compactedLedgers" and value is None]
    return step.action == "CompactorPhaseTwoDeleteLedger" and any(view[name] is not None for name in gone)
