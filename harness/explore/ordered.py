"""Exhaustive search that leaves out orders of steps that make no difference: see `explore/reduction/order.py`.

What it finds it finds by runs that need not be the shortest. A second search, without this reduction and no deeper than
what was found, shows which are; what it cannot show is named in `Result.longer`.
"""

from __future__ import annotations

from typing import Any

import attrs

from harness.explore.any_model import NUMBERS, ORDER, SYMMETRY, PlainSearch
from harness.explore.packed.look_ups import WITNESSED
from harness.explore.packed.result import Result
from harness.explore.reduction.order import Order
from harness.explore.remembered import Way
from harness.memo.interning import Ids
from harness.model import Model

MANY, TIMES = 20_000, 10
"""States that a second search may have: so many at least, and so many times those of the first one."""


class OrderedSearch(PlainSearch):
    """One search; it takes what `PlainSearch` does."""

    def __init__(self, model: Model, invariants: tuple[str, ...], **options: Any) -> None:
        super().__init__(model, invariants, **options)
        self._options = options
        self.second: PlainSearch | None = None
        """The search for shorter runs, if there was one."""
        self.known.notes_fields = True
        reduce = options.get("reduce", ())
        self._order = Order(
            model, self.known, self._chosen.values(), numbers=NUMBERS in reduce, names=SYMMETRY in reduce
        )
        self._numbers: dict[Ids, int] = {}
        """Where each state is among those that were met."""
        self._inside: dict[int, int] = {}
        """Of each state of which steps were left out: the actors whose steps were taken, as a mask."""
        self._next: dict[int, int] = {}
        """Of each such state: another one, to which a run without any of the steps taken can be moved. No circles."""
        self._version = -1

    def run(self) -> Result:
        """Search until done, violated, interrupted, or at a limit; then look for shorter runs of what is violated."""
        result = super().run()
        if not result.violations or self._has_ended():
            return attrs.evolve(result, longer=frozenset(each.name for each in (*result.violations, *result.witnesses)))
        levels = max(each.length for each in result.violations) - 1
        if not levels:
            return attrs.evolve(result, longer=frozenset(each.name for each in result.witnesses))
        most = max(MANY, TIMES * result.distinct)
        reduce = [name for name in self._options.get("reduce", ()) if name != ORDER]
        options = self._options | {
            "reduce": reduce, "states": min(most, self._most or most), "levels": levels, "after": self,
        }
        second = self.second = PlainSearch(self.model, self.names, **options)
        second.progress = self._watch
        shorter = second.run()
        self.interrupted = second.interrupted
        return self._with_shorter(result, shorter, len(second.level_sizes) - 1 - (second.limit is not None))

    def _watch(self, distinct: int, generated: int, depth: int, queue: int) -> None:
        assert self.second is not None
        self.progress(distinct, generated, depth, queue)
        self.second.wants_stop = self.wants_stop

    def _with_shorter(self, result: Result, shorter: Result, levels: int) -> Result:
        """Return a result with shortest runs where there are such; `levels` is how deep all runs are known."""
        if self.interrupted:
            levels = 0
        found = {each.name: each for each in (*shorter.violations, *shorter.witnesses)}
        violations = tuple([found.get(each.name, each) for each in result.violations])
        if self._stop and shorter.violations:
            violations = shorter.violations
        witnesses = tuple([found.get(each.name, each) for each in result.witnesses])
        longer = frozenset(
            each.name for each in (*violations, *witnesses) if each.name not in found and each.length > levels + 1
        )
        violations = tuple(sorted(violations, key=lambda each: each.length))
        return attrs.evolve(result, violations=violations, witnesses=witnesses, longer=longer)

    def bytes(self) -> int:
        """Estimate what the states, and what is remembered about the model and its actors, take."""
        return super().bytes() + self._order.bytes()

    def _visit(self, state: Ids, parent: int) -> None:
        if state not in self._numbers:
            self._numbers[state] = len(self.visited)
            self.visited.append(state)
            self._parents.append(parent)

    def _level(self) -> None:
        self._order.update()
        super()._level()
        self._order.dismiss(self._hits)

    def _expand(self, n: int, depth: int) -> None:
        """Check a state, and take the steps from it that are enough."""
        order = self._order
        state, ways = self._looked_at(n, depth)
        order.learn(state, ways)
        for choice in order.enough(state, ways):
            ahead = self._ahead(n, choice.keys)
            if ahead is not None:
                self._inside[n] = choice.inside
                self._take(n, choice.ways)
                self._next[n] = self._numbers[ahead]
                return
        self._take(n, ways)

    def _take(self, n: int, ways: list[Way]) -> None:
        state = self.visited[n]
        for way in ways:
            step = way.step
            self._generated += step.ways
            self._actions[step.action] = self._actions.get(step.action, 0) + step.ways
            self._visit(self._stands_for(way.follow(state)), n)

    def _ahead(self, n: int, keys: list[Way]) -> Ids | None:
        """Return a state that one of some steps leads to, and from which the chosen steps do not lead back here."""
        for way in keys:
            after = self._stands_for(way.follow(self.visited[n]))
            at = self._numbers.get(after, n + 1)
            while at in self._next:
                at = self._next[at]
            if at != n:
                return after
        return None

    def _check_steps(self, state: Ids, ways: list[Way], n: int, depth: int) -> None:
        """Look for witnesses among the steps from a state, and remember what that depends on."""
        for name, prop in self._on_steps.items():
            if name not in self._hits and name not in self._fresh:
                places = (place for place, way in enumerate(ways) if self.known.shown(prop, way, state).result)
                place = next(places, None)
                if place is not None:
                    self._note(name, WITNESSED, depth, n, place)

    def _has_more(self) -> bool:
        """Say whether there are states to expand; where there are none, take the steps that were left out wrongly."""
        if not self.level_sizes[-1]:
            self.level_sizes[-1] = self._look_again()
        return super()._has_more()

    def _look_again(self) -> int:
        """Take the steps that were left out where that was wrong by what is known now; return how many states are new.
        """
        order, before = self._order, len(self.visited)
        order.update()
        if order.futures.version != self._version:
            self._version = order.futures.version
            for n, inside in list(self._inside.items()):
                state = self.visited[n]
                ways = self.known.ways(state)
                del self._next[n]
                ahead = self._ahead(n, order.holds(state, ways, inside))
                if ahead is not None:
                    self._next[n] = self._numbers[ahead]
                else:
                    del self._inside[n]
                    self._take(n, [way for way in ways if not order.takes(way, inside)])
        return len(self.visited) - before
