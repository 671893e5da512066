"""Wrong steps of the compaction spec, and the invariants that they break."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from harness.model import Step, Value, View


def writing(action: str, wrong: Callable[[View, str, Value], Value]) -> Callable[[View, Step], Step]:
    """Return a change that writes something else in the steps of one action."""

    def change(view: View, step: Step) -> Step:
        if step.action != action:
            return step
        return attrs.evolve(step, writes=tuple((name, wrong(view, name, value)) for name, value in step.writes))

    return change


MUTANTS: list[tuple[str, Callable[[View, Step], Step], int]] = [
    ("TypeSafe", writing("CompactorPhaseTwoUpdateHorizon", lambda v, name, value: 9 if "Hor" in name else value), 6),
    ("CompactionHorizonCorrectness",
     writing("CompactorPhaseTwoWrite", lambda v, name, value: value[:-1] if "Ledgers" in name else value), 6),
    ("CompactedLedgerLeak",
     writing("CompactorPhaseTwoDeleteLedger", lambda v, name, value: v[name] if "Ledgers" in name else value), 16),
    ("DuplicateNullKeyMessage",
     writing("CompactorPhaseTwoUpdateContext", lambda v, name, value: value - 1 if "Hor" in name else value), 5),
    ("ContextLedgerExists",
     writing("CompactorPhaseTwoUpdateContext", lambda v, name, value: 2 if "Context" in name else value), 5),
]
