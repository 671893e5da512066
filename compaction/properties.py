"""The properties of the spec under their own names, and witnesses against vacuity.

Every reason is a sentence that names who and what.
"""

from __future__ import annotations

from functools import partial

from compaction import compactor, reader
from compaction.records import NULL_KEY
from compaction.spec import Constants, keys_of, ledger_of, unfinished
from compaction.type_safe import type_safe
from harness.model import Property, Reason, Step, View, always, eventually, parts, sometimes

CHECKED = ("TypeSafe", "CompactionHorizonCorrectness", "ContextLedgerExists")
"""The invariants that hold as written: the first two are those of the module's cfg, the third one is ours."""
FLAWED = ("CompactedLedgerLeak", "DuplicateNullKeyMessage")
"""The invariants by which the module shows its flaws S11 and S12."""
LIVENESS = ("Termination",)
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
        sometimes("CursorRecovered", cursor_recovered, on="step"),
    )


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
    """`CompactedLedgerLeak`: the ledger in use, and at most one that is being written or deleted."""
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
    for n in reader.read_twice(ledger_of(view, context), horizon, len(keys)):
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


def cursor_recovered(view: View, step: Step) -> bool:
    """Say whether a step is a crash after which a cursor is loaded."""
    return step.action == "BrokerCrash" and view["cursor"] is not None
