"""A strategy says which of the possible steps comes next. All chance goes through `Chance.index`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from harness.model import Kind
from harness.record import Trail
from harness.simulate.states.nodes import Node, Option
from harness.simulate.states.tables import Tables
from harness.simulate.strategies.chance import Chance, Enumerating, InteractiveChance, Seeded

UNFAIR = (Kind.PERTURBATION, Kind.FAULT, Kind.INPUT)
"""Kinds of steps that a fair ending does without."""


class Strategy(Protocol):
    """Picks one of the options of a state; `chance` is its door, also for the run's other draws (latencies)."""

    name: str
    seed: int
    chance: Chance

    def pick(self, options: Sequence[Option]) -> int: ...


class Watcher:
    """A strategy that looks at its run: the session tells it where that begins, each step, and the end."""

    def begin(self, tables: Tables, start: Node) -> None:
        """Take note of the tables that the run is made on, and of its first state."""

    def took(self, option: Option, after: Node) -> None:
        """Take note of a step, and of the state after it."""

    def renewed(self, node: Node) -> None:
        """Take note that the tables started over, and of the state that the run is in."""

    def over(self, trail: Trail) -> None:
        """Take note that the run is over."""


class Wrapped(Watcher):
    """Another strategy, whose runs are looked at, or which is not asked about every option."""

    def __init__(self, inner: Strategy) -> None:
        self.name, self.seed, self.chance = inner.name, inner.seed, inner.chance
        self.inner = inner
        self._watcher = inner if isinstance(inner, Watcher) else Watcher()

    def pick(self, options: Sequence[Option]) -> int:
        return self.inner.pick(options)

    def begin(self, tables: Tables, start: Node) -> None:
        self._watcher.begin(tables, start)

    def took(self, option: Option, after: Node) -> None:
        self._watcher.took(option, after)

    def renewed(self, node: Node) -> None:
        self._watcher.renewed(node)

    def over(self, trail: Trail) -> None:
        self._watcher.over(trail)


class RandomStrategy:
    """Any possible step, all equally likely."""

    name = "random"

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.chance: Chance = Seeded(seed)

    def pick(self, options: Sequence[Option]) -> int:
        return self.chance.index(len(options), "step")


class PctStrategy:
    """Priority schedules with d - 1 change points (Burckhardt et al., ASPLOS 2010), a chain per connection or process.

    The enabled step of the highest chain runs. Chains get a random rank when first seen; at each of the change points,
    drawn over the first `length` steps, the chain that would run drops below all others.
    """

    name = "pct"

    def __init__(self, seed: int, depth: int = 3, length: int = 40) -> None:
        self.seed = seed
        self.chance: Chance = Seeded(seed)
        self._ranked: list[str] = []
        self._rank: dict[str, int] = {}
        """The place of each chain among the ranked."""
        self._changes = sorted(self.chance.index(length, "change point") for _ in range(depth - 1))
        self._steps = 0

    def pick(self, options: Sequence[Option]) -> int:
        rank = self._rank
        for option in options:
            if option.key not in rank:
                self._ranked.insert(self.chance.index(len(self._ranked) + 1, "rank"), option.key)
                rank = self._rank = {key: n for n, key in enumerate(self._ranked)}
        top = self._ranked[min([rank[option.key] for option in options])]
        while self._changes and self._changes[0] <= self._steps:
            self._changes.pop(0)
            self._ranked.remove(top)
            self._ranked.append(top)
            rank = self._rank = {key: n for n, key in enumerate(self._ranked)}
            top = self._ranked[min([rank[option.key] for option in options])]
        self._steps += 1
        candidates = [n for n, option in enumerate(options) if option.key == top]
        return candidates[self.chance.index(len(candidates), "step of the chain")] if candidates[1:] else candidates[0]


class SystematicStrategy(RandomStrategy):
    """Every sequence of the first k decisions, in order, each run going on at random after them."""

    name = "systematic"

    def __init__(self, enumerating: Enumerating, run: int) -> None:
        self.seed = run
        self.chance = enumerating


class InteractiveStrategy:
    """The caller decides: `ask(options)` returns the index of the step to take."""

    name = "interactive"
    seed = 0

    def __init__(self, ask: Callable[[Sequence[Option]], int]) -> None:
        self._ask = ask
        self.chance: Chance = InteractiveChance(lambda n, label: 0)

    def pick(self, options: Sequence[Option]) -> int:
        return InteractiveChance(lambda n, label: self._ask(options)).index(len(options), "step")
