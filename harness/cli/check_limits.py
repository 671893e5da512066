"""Where a search of `check` ends early: after so many states, or because the model does not become finite."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.explore.any_model import NUMBERS, PlainSearch
from harness.explore.growth import STEPS, Growth, growth
from harness.explore.packed.search import Search
from harness.record.wording import counted

if TYPE_CHECKING:
    from harness.campaign.search.spark_search import SparkSearch

Report = Callable[[int, int, int, int], None]
FREE_STATES = 500_000
"""States after which --engine plain, and any engine with actors or faults, ends by default: some 20 s and some 300 MB
with --engine plain, less with the others."""
MANY_STATES, MANY_LEVELS = 1_000_000, 2_000
"""States and levels after which the other engines, if no limit is given, look whether something keeps growing."""
GROWTH, MEMORY = "growth", "memory"
FRONTIER = 7
"""States that a search had not expanded yet, from which walks look for growth, too."""


class Watch:
    """Passes progress on, and ends a search that has no limit once it is long and something keeps growing."""

    def __init__(self, search: Search | PlainSearch | SparkSearch, report: Report, looks: bool) -> None:
        self._search = search
        self._report = report
        self._looks = looks and not isinstance(search, PlainSearch)
        self.growth: Growth | None = None

    def progress(self, distinct: int, generated: int, depth: int, queue: int) -> None:
        """Report progress; look once, in a long search, whether the model becomes finite."""
        self._report(distinct, generated, depth, queue)
        search = self._search
        if self._looks and isinstance(search, Search) and (distinct >= MANY_STATES or depth >= MANY_LEVELS):
            self._looks = False
            self._look()
            if self.growth is not None and self.growth.parts and not search.wants_stop:
                search.limit, search.wants_stop = GROWTH, True

    def look_back(self) -> None:
        """After a search that ended early, look what keeps growing, unless that would take memory it may not have."""
        search = self._search
        limit = search.limit if isinstance(search, Search | PlainSearch) else None
        early = search.interrupted or limit not in (None, MEMORY)
        if early and self.growth is None:
            self._look()

    def _look(self) -> None:
        search = self._search
        frontier = search.frontier(FRONTIER) if isinstance(search, Search | PlainSearch) else []
        self.growth = growth(search.model, frontier, lambda: search.wants_stop)

    def summary(self, limits: Mapping[str, Any]) -> dict[str, Any]:
        """Return what `--json` says about limits, given their values, and about growth."""
        limit = self._search.limit if isinstance(self._search, Search | PlainSearch) else None
        summary: dict[str, Any] = {"limit": None, "growing": None, "growing_timers": None}
        if limit is not None:
            summary["limit"] = {"name": limit, "value": limits.get(limit)}
        if self.growth is not None:
            summary["growing"] = [
                {"slot": part.slot, "path": part.path, "what": part.what, "reached": part.reached, "by": list(part.by),
                 "sort": part.sort or None}
                for part in self.growth.parts
            ]
            summary["growing_timers"] = list(self.growth.timers)
        if limit is not None:
            summary["verdict"] = "limited"
        return summary


def ended_by(summary: Mapping[str, Any], checkpoint: Path | None) -> str:
    """Say in a sentence which limit ended a search, and what to do."""
    name, value = summary["limit"]["name"], summary["limit"]["value"]
    kept = f"; the checkpoint is in {checkpoint}" if checkpoint is not None else ""
    if name == GROWTH:
        return (
            f"the search stopped after {counted(summary['distinct'], 'state')}, as "
            f"{summary['growing'][0]['path']} keeps growing{kept}; bound it with --size, or "
            f"limit the search with --states"
        )
    fewer = "fewer faults or timers" if goes_beyond_specs(summary) or summary["engine"] == "plain" else "--symmetry"
    if name == MEMORY:
        return (
            f"the search needs more than {value:g} GB of memory after "
            f"{counted(summary['distinct'], 'state')}{kept}; give more with --memory, or use smaller sizes or {fewer}"
        )
    return (
        f"the search stopped at its {_limit(name, value)}, incomplete{kept}; give more with --{name}, "
        f"or use smaller sizes or {fewer}"
    )


def _limit(name: str, value: float) -> str:
    return f"limit of {value:,} states" if name == "states" else f"limit of {value:g} GB of memory"


def goes_beyond_specs(summary: Mapping[str, Any]) -> bool:
    """Say whether a search was of actors, of faults, or within a bound on timers."""
    return bool(summary["actors"] or summary["faults"] or summary["timers"])


def limit_words(summary: Mapping[str, Any], most: int = 3) -> list[str]:
    """Say line by line which limit ended a search, and what keeps growing, if that was looked for."""
    limit = summary["limit"]
    if limit is not None and limit["name"] != GROWTH:
        return [f"stopped at the {_limit(limit['name'], limit['value'])} (--{limit['name']})", *_growth(summary, most)]
    return _growth(summary, most)


def _growth(summary: Mapping[str, Any], most: int) -> list[str]:
    growing, timers = summary["growing"], summary["growing_timers"]
    if growing is None:
        return []
    if not growing:
        return [f"nothing keeps growing in walks of {STEPS:,} steps: the state space may be finite, but larger"]
    lines = [f"the state space does not become finite: a walk of {STEPS:,} steps shows that these keep growing:"]
    for part in growing[:most]:
        reached = f"{part['reached']:,} values" if part["what"] == "values" else f"{part['reached']:,}"
        size = "length " if part["what"] == "size" else ""
        by = f", by {', '.join(part['by'][:2])}" if part["by"] else ""
        sort = f" ({part['sort']}, only compared)" if part["sort"] else ""
        lines.append(f"  {part['path']}: {size}{reached}{sort}{by}")
    if rest := len(growing) - most:
        lines += [f"  and {rest} more, see --json"] if rest > 0 else []
    if any(part["sort"] for part in growing) and NUMBERS not in summary["reductions"]:
        lines.append(f"  --reduce {NUMBERS} counts states that differ only in such numbers as one")
    if timers:
        lines.append(f"  timers that keep firing: {', '.join(timers)}; --timers limits them")
    return lines
