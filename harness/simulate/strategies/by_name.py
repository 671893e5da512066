"""The strategies by name, and the runs of one: a registry above the strategies themselves.

`strategy` has those that decide a run from its seed alone; `guided` builds upon what earlier runs reached.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from harness.model import Refusal, unknown
from harness.simulate.states.tables import Tables
from harness.simulate.strategies.chance import Enumerating
from harness.simulate.strategies.coverage import Coverage, Covered, KnownStates
from harness.simulate.strategies.guided import GuidedSearch, GuidedStrategy
from harness.simulate.strategies.portfolio import PortfolioStrategy
from harness.simulate.strategies.strategy import PctStrategy, RandomStrategy, Strategy, SystematicStrategy

NAMES = ("random", "pct", "systematic", "guided", "portfolio")
DEFAULT = "portfolio"
"""The strategy of a hunt."""
IN_ORDER = ("systematic", "guided")
"""Strategies whose runs come one after the other, each after what the ones before it did; the seed is the number."""

ALONE: Mapping[str, Callable[[int], Strategy]] = {
    "random": RandomStrategy, "pct": PctStrategy, "portfolio": PortfolioStrategy,
}
"""Strategies whose runs need no other one."""


class Strategies:
    """The runs of one strategy: `run(seed)` gives the strategy of one run, or None when a bounded one is exhausted."""

    def __init__(self, name: str, depth: int = 8) -> None:
        if name not in NAMES:
            raise Refusal(unknown(f"there is no strategy {name!r}", name, NAMES, "the strategies are"))
        self.name = name
        self._enumerating = Enumerating(depth) if name == "systematic" else None
        self.coverage: Coverage | None = None
        self.campaign = GuidedSearch() if name == "guided" else None
        """What guided runs have learned so far."""

    def cover(self, tables: Tables, known: KnownStates | None = None) -> Coverage:
        """Collect from now on what the runs on some tables reach."""
        self.coverage = Coverage(tables, known)
        if self.campaign is not None:
            self.campaign.coverage = self.coverage
        return self.coverage

    def run(self, seed: int) -> Strategy | None:
        """Return the strategy of run `seed`; systematic and guided runs come in order, whatever the seed."""
        made = self._made(seed)
        if made is None or self.coverage is None or self.campaign is not None:
            return made
        return Covered(made, self.coverage)

    def _made(self, seed: int) -> Strategy | None:
        if self._enumerating is not None:
            return SystematicStrategy(self._enumerating, seed) if self._enumerating.begin() else None
        if self.campaign is not None:
            return GuidedStrategy(self.campaign, seed)
        return ALONE[self.name](seed)
