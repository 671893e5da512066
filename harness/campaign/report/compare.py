"""Two campaigns side by side: which violations are new, which are gone, and which rates have changed.

Cells are paired by their names: scenario or model, strategy, swept values. What else is different about them (settings,
faults, code) is listed, and is what a comparison is for. A rate has changed where the Wilson intervals of 95 percent do
not overlap: with as many runs on both sides this is so for about one in 180 pairs of equal rates.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs

from harness.campaign.cells import Cell
from harness.campaign.checks import Share
from harness.campaign.report.summary import Summary, Tally
from harness.record.files import compact

NEW, GONE, CHANGED = "new", "gone", "changed"
ERROR = "(error of the code)"
"""Stands where a property would, for runs that ended in an error."""
METHOD = "Wilson intervals of 95 % that do not overlap"
TOLD = ("model", "sizes", "settings", "network", "faults", "claims", "mode", "steps", "timeouts", "code")
"""What may be different about two cells of one name."""


@attrs.frozen
class ViolationChange:
    """A violation that is new or gone, or has changed its rate."""

    change: str
    name: str
    """The cell; for a cluster the scenario or model."""
    violated: str
    """The property, or that there was an error."""
    before: Share
    after: Share
    actions: tuple[str, ...] = ()
    """Of a cluster: the actions of its witness; nothing for a cell."""
    faults: tuple[str, ...] = ()

    @property
    def is_apart(self) -> bool:
        """Whether the intervals do not overlap, so that chance is no likely reason."""
        return _apart(self.before, self.after)

    def to_json(self) -> dict[str, Any]:
        """Return the change as a JSON object."""
        return {"change": self.change, "name": self.name, "property": self.violated, "apart": self.is_apart,
                "before": _share_json(self.before), "after": _share_json(self.after), "actions": list(self.actions),
                "faults": list(self.faults)}


def _share_json(share: Share) -> dict[str, Any]:
    return {"failing": share.failing, "runs": share.runs, "low": share.low, "high": share.high}


@attrs.frozen
class Comparison:
    """What is different between two campaigns."""

    cells: tuple[ViolationChange, ...]
    clusters: tuple[ViolationChange, ...]
    only_before: tuple[str, ...]
    only_after: tuple[str, ...]
    """Cells of one campaign alone, which are not compared."""
    different: Mapping[str, str]
    """By cell: what is different about it but its runs."""
    actions: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]]
    """By scenario or model: actions that were taken after and not before, and the other way round."""
    compared: int
    """Cells of both."""

    @property
    def is_empty(self) -> bool:
        """Whether no run is different."""
        return not (self.cells or self.clusters or self.only_before or self.only_after or self.actions)

    def to_json(self) -> dict[str, Any]:
        """Return the comparison as a JSON object."""
        return {
            "method": METHOD, "compared": self.compared, "cells": [change.to_json() for change in self.cells],
            "clusters": [change.to_json() for change in self.clusters], "only_before": list(self.only_before),
            "only_after": list(self.only_after), "different": dict(self.different),
            "actions": {what: {"new": list(new), "gone": list(gone)} for what, (new, gone) in self.actions.items()},
        }


def compare(before: Summary, after: Summary) -> Comparison:
    """Return what is different in a campaign since another one."""
    old, new = ({tally.name: tally for tally in summary.tallies} for summary in (before, after))
    both = [name for name in new if name in old]
    cells = [change for name in both for change in _cell_changes(name, old[name], new[name])]
    taken = [{one.what: set(one.actions) for one in summary.reached} for summary in (before, after)]
    actions = {what: (tuple(sorted(taken[1][what] - taken[0][what])), tuple(sorted(taken[0][what] - taken[1][what])))
               for what in sorted(set(taken[0]) & set(taken[1]))}
    different = {name: said for name in both if (said := _different(old[name].cell, new[name].cell))}
    return Comparison(
        tuple(cells), tuple(_cluster_changes(before, after)), tuple(name for name in old if name not in new),
        tuple(name for name in new if name not in old), different,
        {what: pair for what, pair in actions.items() if any(pair)}, len(both),
    )


def _cell_changes(name: str, before: Tally, after: Tally) -> Iterator[ViolationChange]:
    counts = [{**tally.properties, **({ERROR: tally.errors} if tally.errors else {})} for tally in (before, after)]
    for violated in sorted(set(counts[0]) | set(counts[1])):
        sides = Share(counts[0].get(violated, 0), before.runs), Share(counts[1].get(violated, 0), after.runs)
        change = _change(*sides)
        if change is not None:
            yield ViolationChange(change, name, violated, *sides)


def _cluster_changes(before: Summary, after: Summary) -> Iterator[ViolationChange]:
    """Yield the changes of clusters, by signature, for scenarios and models that both campaigns have."""
    runs = [_runs(summary.tallies) for summary in (before, after)]
    counts = [{(one.what, one.property, one.actions, one.faults): one.runs for one in summary.clusters}
              for summary in (before, after)]
    for signature in sorted(set(counts[0]) | set(counts[1])):
        what, violated, actions, faults = signature
        if what in runs[0] and what in runs[1]:
            old, new = (Share(min(found.get(signature, 0), made[what]), made[what])
                        for found, made in zip(counts, runs, strict=True))
            change = _change(old, new)
            if change is not None:
                yield ViolationChange(change, what, violated, old, new, actions, faults)


def _runs(tallies: Sequence[Tally]) -> Counter[str]:
    found: Counter[str] = Counter()
    for tally in tallies:
        found[tally.cell.what] += tally.runs
    return found


def _change(before: Share, after: Share) -> str | None:
    if bool(before.failing) != bool(after.failing):
        return NEW if after.failing else GONE
    return CHANGED if _apart(before, after) else None


def _apart(before: Share, after: Share) -> bool:
    return before.high < after.low or after.high < before.low


def _different(before: Cell, after: Cell) -> str:
    """Return in words what is different about two cells of one name."""
    said = []
    for name in TOLD:
        old, new = getattr(before, name), getattr(after, name)
        if old != new:
            said.append(f"{name} {_brief(old)}, now {_brief(new)}")
    return "; ".join(said)


def _brief(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name}={one if isinstance(one, str | int) else compact(one)}"
                         for name, one in value.items()) or "none"
    return ", ".join(value) if isinstance(value, tuple) else str(value)
