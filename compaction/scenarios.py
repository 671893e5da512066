"""The scenarios of topic compaction as one table. A flawed row and its twin differ in the variant only.

No row encodes an interleaving: a row says what may happen, the scheduler decides what does.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from compaction.actor_properties import LIVENESS, SAFETY
from harness.model import NO_FAULTS, Checked, Faults, Scenario

SPEC_MODEL = "compaction/pulsar/actors"
TRIMMING_MODEL = "compaction/pulsar-trimming/actors"
WORKLOAD = "a producer sends messages of any key and value, readers read the compacted topic from the earliest position"
CRASH = Faults(crash=1, targets=("broker",))
STEPS = 120


def exhibit(
    name: str, title: str, model: str, sizes: Mapping[str, int], flaw: Mapping[str, str], repaired: Mapping[str, str],
    expected: str, faults: Faults = CRASH, claims: tuple[str, ...] = (*SAFETY, *LIVENESS), timeouts: int = 3,
    checked: Checked | None = None,
) -> tuple[Scenario, Scenario]:
    """Return the row of a published bug and its repaired twin; the name starts with the exhibit's id."""
    id_ = "-".join(name.split("-")[:2]).upper()
    twin = f"{name}-repaired"
    bad = Scenario(
        name, f"{id_}: {title}", model, sizes, flaw, faults=faults, claims=claims, expected=expected, repaired=twin,
        timeouts=timeouts, checked=checked,
    )
    good = attrs.evolve(
        bad, name=twin, title=f"{id_} repaired", settings=repaired, expected=None, repaired=None, checked=None
    )
    return bad, good


def trimming(
    flaw: str, name: str, title: str, expected: str, faults: Faults = NO_FAULTS, **sizes: int
) -> tuple[Scenario, Scenario]:
    """Return the row of a bug on a topic that is trimmed, and its twin, which has the right rules."""
    small = {"messages": 3, "keys": 1, "batch": 1, "readers": 1, "disconnects": 0, "reconnects": 0}
    return exhibit(
        name, title, TRIMMING_MODEL, {**small, **sizes}, {"flaw": flaw}, {"flaw": "none"}, expected, faults, timeouts=0
    )


ROWS: tuple[Scenario, ...] = (
    *exhibit(
        "pc-01-leaked-ledger", "a crash leaves a compacted ledger that nothing names", SPEC_MODEL,
        {"messages": 2, "keys": 1}, {"repair": "S12"}, {"repair": "S11,S12"}, "NoLeak",
        checked=Checked(
            "compaction/pulsar", "CompactedLedgerLeak",
            {"messages": 2, "compactions": 3, "keys": 1, "values": 1, "crashes": 2}, {"producer": "true"},
        ),
    ),
    *exhibit(
        "pc-02-read-twice", "the new ledger is read before the horizon moves", SPEC_MODEL,
        {"messages": 2, "keys": 1, "readers": 2, "disconnects": 0}, {"repair": "S11"}, {"repair": "S11,S12"},
        "ReaderView", NO_FAULTS, timeouts=0,
        checked=Checked(
            "compaction/pulsar", "DuplicateNullKeyMessage",
            {"messages": 2, "compactions": 2, "keys": 1, "values": 1}, {"producer": "true"},
        ),
    ),
    *trimming("PC-03", "pc-03-trimmed-too-early", "the topic is trimmed before the horizon moves", "ReaderView"),
    *trimming(
        "PC-03-inverse", "pc-03-durable-too-late", "the cursor is durable when all else is done", "ReaderView", CRASH,
        messages=2,
    ),
    *trimming(
        "PC-04", "pc-04-lost-property", "the cursor's position is durable before its property", "CompactionEquivalence",
        CRASH, messages=2,
    ),
    *trimming(
        "PC-05", "pc-05-read-too-far", "phase two reads past the end of phase one", "CompactionEquivalence", messages=2
    ),
    *trimming(
        "PC-06", "pc-06-replayed-twice", "the raw reader reconnects and replays", "ReaderView", messages=2, reconnects=1
    ),
    *trimming("PC-07", "pc-07-first-read-only", "later reads do not use the compacted ledger", "ReaderView"),
)

SCENARIOS: tuple[Scenario, ...] = tuple(attrs.evolve(row, workload=WORKLOAD, steps=STEPS) for row in ROWS)
