"""Why a step of a run is no step of the spec: what changed, the nearest action, and the guard that keeps it away."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from harness.history.refine import Failure, Ids, Refiner, target
from harness.model import brief_value
from harness.simulate.tables import Option


@attrs.frozen
class Explanation:
    """The first step that the spec does not allow, and the nearest thing that it does."""

    step: int
    label: str
    changes: Mapping[str, tuple[str, str]]
    """The slots of the spec that the step changes: from what, to what."""
    nearest: str | None
    """The nearest action of the spec: its label."""
    why: tuple[str, ...]
    """Why that action is not this step, as sentences."""

    def lines(self) -> list[str]:
        """Return the explanation as lines of text, as long as they happen to be."""
        said = [f"step {self.step} is no step of the spec: {self.label}"]
        said += [f"    {name}: {was} -> {now}" for name, (was, now) in self.changes.items()]
        if self.nearest is not None:
            said.append(f"  nearest in the spec: {self.nearest}")
        return [*said, *(f"    {sentence}" for sentence in self.why)]

    def to_json(self) -> dict[str, Any]:
        """Return the explanation as a JSON object."""
        return {
            "step": self.step, "label": self.label, "nearest": self.nearest, "why": list(self.why),
            "changes": {name: {"from": was, "to": now} for name, (was, now) in self.changes.items()},
        }


def explain(refiner: Refiner, failure: Failure) -> Explanation:
    """Explain a failure that the refiner found."""
    if failure.after is None:
        return Explanation(failure.step, failure.label, {}, None, (failure.problem or "",))
    if failure.before is None:
        start = refiner.spec_tables.start(0).state
        changes = _changes(refiner, start, failure.after)
        return Explanation(failure.step, failure.label, changes, None, ("the spec does not start in this state",))
    changes = _changes(refiner, failure.before, failure.after)
    nearest = _nearest_enabled(refiner, failure.before, failure.after)
    if nearest is None:
        return Explanation(failure.step, failure.label, changes, None, ("nothing in the spec writes these slots now",))
    return Explanation(failure.step, failure.label, changes, *nearest)


def _changes(refiner: Refiner, before: Ids, after: Ids) -> dict[str, tuple[str, str]]:
    tables = refiner.spec_tables
    return {
        name: (brief_value(tables.values[slot][before[slot]]), brief_value(tables.values[slot][after[slot]]))
        for slot, name in enumerate(tables.slots)
        if before[slot] != after[slot]
    }


def _nearest_enabled(refiner: Refiner, before: Ids, after: Ids) -> tuple[str, tuple[str, ...]] | None:
    """Return the enabled option that writes most like the step does, and how it differs; None where none comes near."""
    tables = refiner.spec_tables
    changed = {slot for slot in range(len(before)) if before[slot] != after[slot]}
    best: tuple[int, int, Option] | None = None
    for n, option in enumerate(tables.node(before).options):
        reached = target(before, option)
        wrote = {slot for slot in range(len(before)) if before[slot] != reached[slot]}
        if not wrote & changed:
            continue
        wrong = sum(after[slot] != reached[slot] for slot in range(len(before)))
        if best is None or (wrong, n) < best[:2]:
            best = (wrong, n, option)
    if best is None:
        return None
    reached = target(before, best[2])
    sentences = []
    for slot, name in enumerate(tables.slots):
        if after[slot] != reached[slot]:
            here, there = (brief_value(tables.values[slot][state[slot]]) for state in (after, reached))
            sentences.append(f"it would leave {name} at {there}, this step leaves {here}")
    return best[2].label, tuple(sentences)
