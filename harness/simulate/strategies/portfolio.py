"""The portfolio strategy: each run draws from its seed how it chooses among steps, and when it spends its faults.

A bug that one way of choosing meets once in thousands of runs is often met by another one in tens (swarm testing:
Groce et al., ISSTA 2012). A run needs no other run, so seeds may be made in any order, in any process.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.simulate.states.nodes import Node, Option
from harness.simulate.states.tables import Tables
from harness.simulate.strategies.chance import Chance, Seeded, weighed
from harness.simulate.strategies.strategy import UNFAIR, PctStrategy, Watcher

WAYS = ("action", "chain", "pct")
"""How a run chooses: each action has a weight, or each chain (a connection or process), or as the strategy PCT does."""
WEIGHTS = (1, 16)
"""A weight is one of these, at random."""
AIMED = (2, 4, 8, 16)
"""A run that aims spends a fault or perturbation, if it can, after one in so many persisted writes and answers."""
SPARED = (4, 12, 36)
"""After any other step, it does so once in so many; both numbers are the run's own."""
FAR = 1 << 40
"""Added to a seed for what a run draws before it begins."""


class PortfolioStrategy(Watcher):
    """One run: at random, but for the weights or priorities that it has drawn; half the runs aim their faults."""

    name = "portfolio"

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.chance: Chance = Seeded(seed)
        chance = Seeded(seed + FAR)  # in timed mode, where time decides, a run is as the strategy random makes it
        self.way = WAYS[chance.index(len(WAYS), "way")]
        self.aims = bool(chance.index(2, "aim"))
        self._aimed = AIMED[chance.index(len(AIMED), "aimed")]
        self._spared = SPARED[chance.index(len(SPARED), "spared")]
        self._pct = PctStrategy(chance.index(1 << 30, "seed")) if self.way == "pct" else None
        self._weights: dict[str, int] = {}
        self._disks: frozenset[str] = frozenset()
        self._node: Node
        self._near: str | None = None
        """The process that has just written to its disk, or whose operation has just been answered."""

    def begin(self, tables: Tables, start: Node) -> None:
        model = tables.model
        self._disks = frozenset(disk for name in model.actors for disk in model.disks_of(name).values())
        self._node = start

    def renewed(self, node: Node) -> None:
        self._node = node

    def took(self, option: Option, after: Node) -> None:
        before, self._node = self._node, after
        self._near = None
        if self.aims and option.kind not in UNFAIR:
            op = option.choice.step.op
            answered = op is not None and op.outcome == "ok"
            if answered or any(slot in self._disks for slot, _ in option.edge(before.state).effects.writes):
                self._near = option.process

    def pick(self, options: Sequence[Option]) -> int:
        among = self._allowed(options) if self.aims else None
        if among is None:
            return self._chosen(options)
        return among[self._chosen([options[n] for n in among])]

    def _allowed(self, options: Sequence[Option]) -> list[int] | None:
        """Return the options that aiming leaves: the faults and perturbations, rather those nearby, or all others."""
        unfair = [n for n, option in enumerate(options) if option.kind in UNFAIR]
        if not unfair or len(unfair) == len(options):
            return None
        if self.chance.index(self._spared if self._near is None else self._aimed, "spare"):
            return [n for n, option in enumerate(options) if option.kind not in UNFAIR]
        near = self._near
        return [n for n in unfair if near is not None and _touches(options[n], near)] or unfair

    def _chosen(self, options: Sequence[Option]) -> int:
        if self._pct is not None:
            return self._pct.pick(options)
        names = [option.action if self.way == "action" else option.key for option in options]
        return weighed(self.chance, [self._weight(name) for name in names])

    def _weight(self, name: str) -> int:
        weight = self._weights.get(name)
        if weight is None:
            weight = self._weights[name] = WEIGHTS[self.chance.index(len(WEIGHTS), "weight")]
        return weight


def _touches(option: Option, process: str) -> bool:
    """Say whether a fault is of a process: it names it, or takes a message that it sent or is to get."""
    message = option.choice.step.subject
    return process in option.choice.step.args or (message is not None and process in (message.source, message.dest))
