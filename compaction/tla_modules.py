"""The TLA+ module of topic compaction: its constants at a size, and the invariants that TLC can check."""

from __future__ import annotations

from collections.abc import Mapping

from compaction.compactor import CompactorState
from compaction.records import NIL
from harness.model.module import ModuleOf, TlaModule

INVARIANTS = ("TypeSafe", "CompactionHorizonCorrectness", "CompactedLedgerLeak", "DuplicateNullKeyMessage")
OURS = {"ContextLedgerExists": "compactedTopicContext # 0 => compactedLedgers[compactedTopicContext] # Nil"}


def pulsar(sizes: Mapping[str, int], settings: Mapping[str, str]) -> TlaModule:
    """Return the module `compaction`."""
    plain = {
        "MessageSentLimit": str(sizes["messages"]), "CompactionTimesLimit": str(sizes["compactions"]),
        "ModelConsumer": settings["consumer"].upper(), "ConsumeTimesLimit": str(sizes["consumptions"]),
        "KeySpace": _numbers(sizes["keys"]), "ValueSpace": _numbers(sizes["values"]),
        "RetainNullKey": settings["retain-null-key"].upper(), "MaxCrashTimes": str(sizes["crashes"]),
        "ModelProducer": settings["producer"].upper(),
    }
    return TlaModule(
        "compaction", {}, plain, (NIL, *map(str, CompactorState)), INVARIANTS, OURS,
        source="https://github.com/thetumbled/pulsar-tlaplus, commit 6402c8d",
        as_written=not settings["repair"] and not settings["extend"],
    )


def _numbers(last: int) -> str:
    return "{" + ", ".join(str(n) for n in range(1, last + 1)) + "}"


MODULES: Mapping[str, ModuleOf] = {"compaction/pulsar": pulsar}
