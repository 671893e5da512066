"""Exhaustive breadth-first search with exact counts: every reachable state once, level by level.

Counts are the TLA+ model checker's: `generated` is initial states plus one successor per way of every step, `depth` the
number of levels. A violation found first is a shortest one. The path to it is rebuilt by expanding the levels again.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping

import attrs

from harness.explore.layout import Field, Overflow
from harness.explore.symmetry import Symmetry
from harness.explore.units import Edge, Space, Unit
from harness.model import Model, Refusal

Progress = Callable[[int, int, int, int], None]
"""Called with distinct, generated, depth and the size of the next level."""


@attrs.frozen
class Violation:
    """A violated property, why, and the shortest way there: the labels of its steps after an initial state."""

    name: str
    reason: str
    kind: str
    initial: int
    labels: tuple[str, ...]

    @property
    def length(self) -> int:
        """The length in states, the initial one included."""
        return len(self.labels) + 1


@attrs.frozen
class Result:
    """What a search found."""

    initial: int
    distinct: int
    generated: int
    depth: int
    complete: bool
    violations: tuple[Violation, ...]
    actions: Mapping[str, int]
    deadlocks: int
    bits: int


class Search:
    """One search; `run` starts over with wider fields when one overflows."""

    def __init__(
        self, model: Model, invariants: tuple[str, ...], *, stop: bool = True, deadlock: bool = False,
        symmetry: bool = False, progress: Progress = lambda distinct, generated, depth, queue: None,
    ) -> None:
        if model.faulty or model.actors:
            raise Refusal(f"{model.name} cannot be searched exhaustively yet: only spec compositions can")
        self.model = model
        self.space = Space(model, tuple(model.property(name) for name in invariants))
        self.symmetry = Symmetry(self.space.layout, model.symmetric) if symmetry else None
        self.stop = stop
        self.deadlock = deadlock
        self.progress = progress
        self.seen: set[int] = set()
        self.levels: list[list[int]] = []
        self.starts: list[int] = []
        self.found: dict[str, tuple[str, str, int, int]] = {}
        self.deadlocks = 0
        self.generated = 0
        self.initial = 0
        self.interrupted = False

    def run(self) -> Result:
        """Search until done, violated or interrupted."""
        was_on = gc.isenabled()
        gc.disable()
        try:
            while True:
                try:
                    self._restart()
                    self._levels()
                    break
                except Overflow:
                    self.space.layout.fit(slack=2)
                except KeyboardInterrupt:
                    self.interrupted = True
                    break
            return self._result()
        finally:
            if was_on:
                gc.enable()

    def _restart(self) -> None:
        self.space.restart()
        if self.symmetry is not None:
            self.symmetry.restart()
        self.found.clear()
        self.deadlocks = 0
        pack = self.space.layout.pack
        starts = [pack(state) for state in self.model.initial_states()]
        self.generated = len(starts)
        self.starts = starts
        if self.symmetry is not None:
            starts = [self.symmetry.least(state) for state in starts]
        first = list(dict.fromkeys(starts))
        self.initial = len(first)
        self.seen = set(first)
        self.levels = [first]
        for state in first:
            for check in self.space.checks:
                if why := check.fill(state):
                    self._violated(check.name, why, state)

    def _violated(self, name: str, why: str, state: int) -> None:
        if name not in self.found:
            self.found[name] = (why, "invariant", state, len(self.levels))

    def _levels(self) -> None:
        while self.levels[-1] and not (self.found and self.stop):
            level: list[int] = []
            self.levels.append(level)
            self._expand(self.levels[-2], level)
            self.progress(len(self.seen), self.generated, len(self.levels) - 1, len(level))
        if not self.levels[-1]:
            self.levels.pop()

    def _expand(self, frontier: list[int], level: list[int]) -> None:
        """Take every step of every state of a level; new states go to the next one."""
        space, seen, add, append = self.space, self.seen, self.seen.add, level.append
        channels: list[tuple[int, int, dict[int, tuple[Unit, ...]], Field, str]] = [
            (field.shift, field.low, {}, field, address) for address, field in space.layout.channels.items()
        ]
        generated = 0
        watch_deadlock = self.deadlock
        least = self.symmetry.least if self.symmetry is not None else None
        bounds = space.bounds
        space.regroup(len(seen))
        masks = [(group.mask, group.table, group) for group in space.groups]
        for state in frontier:
            before = generated
            results = []
            for mask, table, group in masks:
                found = table.get(state & mask)
                if found is None:
                    found = group.fill(state)
                    if group.mask != mask:
                        masks = [(group.mask, group.table, group) for group in space.groups]
                for edges, hits in found:
                    hits[0] += 1
                    results.append(edges)
            for shift, low, arrivals, field, address in channels:
                at = (state >> shift) & low
                units = arrivals.get(at)
                if units is None:
                    units = arrivals[at] = space.arrivals(field, address, at)
                for unit in units:
                    result = unit.table.get(state & unit.mask)
                    if result is None:
                        result = unit.fill(state)
                    edges, hits = result
                    if edges:
                        hits[0] += 1
                        results.append(edges)
            for edges in results:
                for edge in edges:
                    after = state + edge.delta
                    for shift, low, changes, channel in edge.ops:
                        difference = changes.get((state >> shift) & low)
                        after += difference if difference is not None else channel.fill(state)
                    generated += edge.ways
                    if least is not None:
                        after = least(after)
                    if after not in seen:
                        if bounds is not None:
                            outside = bounds.table.get(after & bounds.mask)
                            if outside is None:
                                outside = bounds.fill(after)
                            if not outside:
                                add(after)
                                append(after)
                        else:
                            add(after)
                            append(after)
                        for check in edge.checks:
                            why = check.table.get(after & check.mask)
                            if why is None:
                                why = check.fill(after)
                                if space.grown:
                                    space.relist()
                            if why:
                                self._violated(check.name, why, after)
            if generated == before:
                self.deadlocks += 1
                if watch_deadlock and "Deadlock" not in self.found:
                    self.found["Deadlock"] = ("no step is possible", "deadlock", state, len(self.levels) - 1)
        self.generated += generated

    def _result(self) -> Result:
        violations = tuple(
            self._violation(name, why, kind, state, depth) for name, (why, kind, state, depth) in self.found.items()
        )
        actions: dict[str, int] = {}
        for unit in self._units():
            for edges, hits in unit.table.values():
                for edge in edges:
                    actions[edge.action] = actions.get(edge.action, 0) + hits[0] * edge.ways
        complete = not self.interrupted and not (self.found and self.stop)
        return Result(
            self.initial, len(self.seen), self.generated, len(self.levels), complete, violations,
            dict(sorted(actions.items())), self.deadlocks, self.space.layout.bits,
        )

    def _units(self) -> list[Unit]:
        return [*self.space.own, *self.space.deliveries.values()]

    def edges(self, state: int) -> list[tuple[Edge, int]]:
        """Return every edge of a state with the state it leads to."""
        found = []
        space = self.space
        units = list(space.own)
        for address, field in space.layout.channels.items():
            units += space.arrivals(field, address, (state >> field.shift) & field.low)
        for unit in units:
            edges, _ = unit.table.get(state & unit.mask) or unit.fill(state)
            for edge in edges:
                after = state + edge.delta
                for shift, low, table, channel in edge.ops:
                    difference = table.get((state >> shift) & low)
                    after += difference if difference is not None else channel.fill(state)
                found.append((edge, after))
        return found

    def _violation(self, name: str, why: str, kind: str, state: int, depth: int) -> Violation:
        """Rebuild a shortest path to a state that was found on a level (1 is the initial one)."""
        least = self.symmetry.least if self.symmetry is not None else lambda state: state
        way = [state]
        for level in reversed(self.levels[: depth - 1]):
            way.append(next(b for b in level if any(least(after) == way[-1] for _, after in self.edges(b))))
        initial = next(n for n, start in enumerate(self.starts) if least(start) == way[-1])
        labels: list[str] = []
        at = self.starts[initial]
        for target in reversed(way[:-1]):
            label, at = next((edge.label, after) for edge, after in self.edges(at) if least(after) == target)
            labels.append(label)
        return Violation(name, why, kind, initial, tuple(labels))
