"""Runs whose histories are edited, and what an edit is caught by."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from support.runs import history_edits
from support.runs.history_edits import Edit, Lines

RUNS: Mapping[str, tuple[str, int, int]] = {
    "kafka/4.4": ("fencing-battle", 0, 60),
    "replication/kip-320/actors": ("rp-06-first-try-repaired", 0, 60),
    "compaction/pulsar/actors": ("pc-01-leaked-ledger-repaired", 0, 60),
    "compaction/pulsar-trimming/actors": ("pc-03-trimmed-too-early-repaired", 0, 60),
}
"""Model to scenario, seed, and the steps before the fair ending."""
EACH_RUN = tuple(RUNS)
"""The models, as parameters."""
ORDER: Mapping[str, Callable[[Lines], list[Edit]]] = {
    "swapped": history_edits.swapped, "dropped": history_edits.dropped, "doubled": history_edits.doubled,
}
CONTENT: Mapping[str, Callable[[Lines], list[Edit]]] = {
    "numbers-of-states": history_edits.numbers_of_states, "numbers-of-messages": history_edits.numbers_of_messages,
    "numbers-everywhere": history_edits.numbers_everywhere, "codes-everywhere": history_edits.codes_everywhere,
    "outcomes": history_edits.outcomes,
}
RIGHT = ("numbers-everywhere", "codes-everywhere")
"""Families that are only judged after a careful hand has put right what follows; those of `ORDER` with and without."""
