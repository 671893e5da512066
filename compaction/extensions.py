"""What running actors do beyond the module `compaction`: named extension actions of the spec, each with its reason.

They matter where the leak of S11 is not repaired. There a broker that crashed leaves a store that carries on with what
it was asked, and ledgers that no later compaction counts with. With the repair, the ledgers that a restarted broker
collects count as gone from the crash on, as they do in the repaired spec, and none of these steps happens.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from compaction import compactor
from compaction.compactor import CompactorState
from compaction.spec import Constants, keys_of, ledger_of, newest_ledger
from harness.model import View, slot
from harness.model.spec import Change, Next, action, reasons


@action(
    "WriteAfterCrash", by="extensions",
    reason="the store seals a ledger whose compactor has crashed since it asked for that",
)
def write_after_crash(k: Constants, view: View) -> Iterable[Change]:
    """A ledger of a compaction that read up to any message appears after a crash."""
    if not crashed(view):
        return
    new = compactor.next_ledger(newest_ledger(view, k), k.compactions)
    if new is None:
        return
    keys = keys_of(view, k)
    for end in range(1, len(keys) + 1):
        result = compactor.phase_one(keys[:end])
        written = compactor.compacted(keys, result, k.retain_null_key)
        yield Change(((slot("compactedLedgers", str(new)), written),), f"up to message {end}")


@action(
    "DeleteAfterCrash", by="extensions",
    reason="the store deletes a ledger whose compactor has crashed since it asked for that",
)
def delete_after_crash(k: Constants, view: View) -> Iterable[Change]:
    """A ledger that neither cursor nor context names goes after a crash."""
    if crashed(view):
        for n in unnamed(view, k):
            yield Change(((slot("compactedLedgers", str(n)), None),), f"ledger {n}")


@action(
    "DeleteReplacedLedger", by="extensions",
    reason="a compaction deletes the ledger that it replaced, where a crash left another in between",
)
def delete_replaced_ledger(k: Constants, view: View) -> Iterable[Change]:
    """A compaction ends with deleting any ledger that nothing names, or none."""
    if view["compactorState"] != CompactorState.DELETE_LEDGER:
        return
    done = (("compactorState", CompactorState.PHASE_ONE), ("phaseOneResult", None))
    yield Change(done, "none")
    for n in unnamed(view, k):
        yield Change((*done, (slot("compactedLedgers", str(n)), None)), f"ledger {n}")


def crashed(view: View) -> bool:
    """Say whether the broker has crashed and not compacted since."""
    return bool(view["crashTimes"]) and view["compactorState"] == CompactorState.PHASE_ONE


def unnamed(view: View, k: Constants) -> list[int]:
    """Return the ledgers that exist and that neither the cursor nor the context names."""
    cursor = view["cursor"]
    named = (view["compactedTopicContext"], cursor.compacted_topic_context if cursor is not None else 0)
    return [n for n in k.ledgers if n not in named and ledger_of(view, n) is not None]


ACTIONS: Next = (write_after_crash, delete_after_crash, delete_replaced_ledger)
EXTENSIONS: Mapping[str, str] = reasons(ACTIONS)
"""The extension actions, and why the truth has each."""
