"""The scenarios of topic compaction as one table. A flawed row and its twin differ in the variant only.

No row encodes an interleaving: a row says what may happen, the scheduler decides what does.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from compaction.actor_properties import LIVENESS, SAFETY
from harness.model import NO_FAULTS, Checked, Faults, Scenario

SPEC_MODEL = "compaction/pulsar/actors"
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
)

SCENARIOS: tuple[Scenario, ...] = tuple(attrs.evolve(row, workload=WORKLOAD, steps=STEPS) for row in ROWS)
