"""Runs whose histories are edited, and what an edit is caught by."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from support import edits
from support.edits import Edit, Lines

RUNS: Mapping[str, tuple[str, int, int]] = {
    "transactions/repaired/actors": ("fencing-battle", 0, 60),
    "replication/kip-320/actors": ("rp-06-first-try-repaired", 0, 60),
    "compaction/pulsar/actors": ("pc-01-leaked-ledger-repaired", 0, 60),
    "compaction/pulsar-trimming/actors": ("pc-03-trimmed-too-early-repaired", 0, 60),
    "cluster": ("stack-happy-path", 1, 25),
}
"""Model to scenario, seed, and the steps before the fair ending."""
EACH_RUN = tuple(pytest.param(name, marks=[pytest.mark.large] if name == "cluster" else []) for name in RUNS)
"""The models, as parameters: the stack takes longest, and is large."""
ORDER: Mapping[str, Callable[[Lines], list[Edit]]] = {
    "swapped": edits.swapped, "dropped": edits.dropped, "doubled": edits.doubled,
}
CONTENT: Mapping[str, Callable[[Lines], list[Edit]]] = {
    "numbers-of-states": edits.numbers_of_states, "numbers-of-messages": edits.numbers_of_messages,
    "numbers-everywhere": edits.numbers_everywhere, "codes-everywhere": edits.codes_everywhere,
    "outcomes": edits.outcomes,
}
RIGHT = ("numbers-everywhere", "codes-everywhere")
"""Families that are only judged after a careful hand has put right what follows; those of `ORDER` with and without."""
