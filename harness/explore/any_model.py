"""Exhaustive search of any model, actors and faults included: breadth first, state by state, over `Remembered`.

What it finds, counts and reports is what `Search` does where that one can be used (a test compares them); it takes more
time and memory for each state, and knows no views, fingerprints, checkpoints or temporal properties. Reduced, it
searches the states that stand for the others, or takes the steps that are enough (`AmpleSteps`); what it reports is a
run of the model all the same.

Where steps are left out it finds things by runs that need not be the shortest. A second search, without this reduction
and no deeper than what was found, shows which are; what it cannot show is named in `Result.longer`.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Callable, Collection

import attrs

from harness.explore.bounded import without_bounds
from harness.explore.machine import is_beyond
from harness.explore.model_memo import Remembered, Way
from harness.explore.packed.look_ups import WITNESSED
from harness.explore.packed.result import Progress, Result, Violation, ranked
from harness.explore.reduction.ample_steps import AmpleSteps
from harness.explore.reduction.order import Order
from harness.explore.reduction.quotient import Quotient
from harness.memo.interning import Ids, long_lived
from harness.model import Model, State

CHUNK = 256
"""States between two looks at limits and at requests to stop."""
NO_STEP = "no step is possible"
NUMBERS, SYMMETRY = REDUCTIONS = ("numbers", "symmetry")
ORDER = "order"
"""A reduction that keeps verdicts, and not the lengths of shortest runs: `explore/reduction/order.py`."""
MANY, TIMES = 20_000, 10
"""States that a search for shorter runs may have: so many at least, and so many times those of the first one."""


@attrs.frozen
class FirstHit:
    """A property that answered first: on which level, and why, after which steps."""

    depth: int
    violation: Violation
    way: list[int]
    """The place of the initial state, and of each step among those that were possible."""


class PlainSearch:
    """One search; `run` does it. It ends early at a limit: of `states`, or of bytes of `memory` (0: none).

    Given `levels`, it expands so many and no more, and what it finds is shown by runs of at most that many states. What
    another search of the model knows about steps and renamings is used again, given that search as `after`.
    """

    engine = "plain"
    worker_cpu = 0.0
    checkpoint = None

    def __init__(
        self, model: Model, invariants: tuple[str, ...], *, stop: bool = True, deadlock: bool = False,
        witnesses: bool = False, states: int = 0, memory: int = 0, levels: int = 0, reduce: Collection[str] = (),
        after: PlainSearch | None = None,
        progress: Progress = lambda distinct, generated, depth, queue: None,
    ) -> None:
        self.model = model
        self.names = invariants
        chosen = [model.property(name) for name in invariants]
        if witnesses:
            chosen += [prop for prop in model.properties if prop.form == "sometimes"]
        self._kinds = {prop.name: "sometimes" if prop.form == "sometimes" else "invariant" for prop in chosen}
        self._on_steps = {prop.name: prop for prop in chosen if prop.on == "step"}
        self.known: Remembered = Remembered(model) if after is None else after.known
        self.known.ask(chosen)
        self._chosen = {prop.name: prop for prop in chosen}
        self._quotients: dict[frozenset[str], Quotient] = {} if after is None else after._quotients
        renaming = frozenset(reduce) & {*REDUCTIONS}
        self._least: Callable[[Ids], Ids] | None = self.classes(*renaming).least if renaming else None
        """Gives the state that stands for a state's class, where states are taken up to a renaming."""
        self._stop = stop
        self._deadlock = deadlock
        self._witnesses = witnesses
        self._most = states
        self._memory = memory
        self._levels = levels
        self.progress = progress
        self.wants_stop = False
        """Set from outside, by a signal: the search ends after the states at hand."""
        self.interrupted = False
        self.limit: str | None = None
        """What ended the search early: `states` or `memory`, or another limit that was set from outside."""
        self._hits: dict[str, FirstHit] = {}
        self._fresh: dict[str, FirstHit] = {}
        self._actions: dict[str, int] = {}
        self.visited: list[Ids] = []
        """The states that were met, in that order."""
        self._numbers: dict[Ids, int] = {}
        """Where each of them is."""
        self._parents = array("q")
        self._generated = 0
        self.level_sizes: list[int] = []
        """How many states were new on each level; all but the last one are expanded, unless a limit ended that."""
        self._done = 0
        """States that were expanded."""
        self._renaming = renaming
        self._ample: AmpleSteps | None = None
        """Chooses the steps to take, where orders of steps are left out."""
        if ORDER in reduce:
            self.known.notes_fields = True
            self._ample = AmpleSteps(
                Order(model, self.known, chosen, numbers=NUMBERS in renaming, names=SYMMETRY in renaming),
                self._numbers, self._stands_for,
            )
        self.second: PlainSearch | None = None
        """The search for shorter runs, if there was one."""

    def classes(self, *reduce: str) -> Quotient:
        """Return the classes of states up to numbers, names, or both."""
        if frozenset(reduce) not in self._quotients:
            self._quotients[frozenset(reduce)] = Quotient(
                self.model, self.known, numbers=NUMBERS in reduce, names=SYMMETRY in reduce
            )
        return self._quotients[frozenset(reduce)]

    def run(self) -> Result:
        """Search until done, violated, interrupted, or at a limit; then look for shorter runs if there may be some.
        """
        result = self._searched()
        return result if self._ample is None else self._with_shorter(result)

    @long_lived()
    def _searched(self) -> Result:
        for start in self.known.starts:
            self._visit(self._stands_for(start), -1)
        self._generated = len(self.known.starts)
        self.level_sizes = [len(self.visited)]
        while not self._is_decided() and not self._has_ended() and self._has_more():
            self._level()
        if self.limit is not None:
            self._look_at_rest()
        return self._result()

    def _has_more(self) -> bool:
        """Say whether there are states to expand; if there are none, take the steps that were left out wrongly."""
        if not self.level_sizes[-1] and self._ample is not None:
            before = len(self.visited)
            for n, ways in self._ample.left_out(self.visited, self.known.ways):
                self._take(n, self.visited[n], ways, len(self.level_sizes))
            self.level_sizes[-1] = len(self.visited) - before
        return self.level_sizes[-1] > 0 and not (self._levels and len(self.level_sizes) > self._levels)

    def _is_decided(self) -> bool:
        return self._stop and any(hit.violation.kind != "sometimes" for hit in self._hits.values())

    def _has_ended(self) -> bool:
        return self.interrupted or self.limit is not None

    def _stands_for(self, state: Ids) -> Ids:
        return state if self._least is None else self._least(state)

    def _visit(self, state: Ids, parent: int) -> None:
        """Note a state that is met for the first time, and the process that led to it."""
        if state not in self._numbers:
            self._numbers[state] = len(self.visited)
            self.visited.append(state)
            self._parents.append(parent)

    def _level(self) -> None:
        """Expand the states of the last level."""
        if self._ample is not None:
            self._ample.update()
        depth, size = len(self.level_sizes), self.level_sizes[-1]
        first = len(self.visited) - size
        end = first + size
        for begin in range(first, end, CHUNK):
            for n in range(begin, min(begin + CHUNK, end)):
                self._expand(n, depth)
                if self._most and len(self.visited) >= self._most and n + 1 < len(self.visited):
                    self.limit = "states"
                    break
            self.progress(len(self.visited), self._generated, depth, len(self.visited) - n - 1)
            if is_beyond(self._memory, sys.getsizeof(self._numbers)):
                self.limit = self.limit or "memory"
            if self.wants_stop and self.limit is None and n + 1 < len(self.visited):
                self.interrupted = True
            if self._has_ended():
                break
        self.level_sizes.append(len(self.visited) - end)
        self._done = n + 1
        self._hits.update(self._fresh)
        self._fresh.clear()
        self.known.dismiss(self._hits)
        if self._ample is not None:
            self._ample.dismiss(self._hits)

    def _expand(self, n: int, depth: int) -> None:
        """Check a state, and take the steps from it: all, or those that are enough."""
        state, ways = self._looked_at(n, depth)
        if self._ample is None:
            self._take(n, state, ways, depth)
        else:
            self._take(n, state, self._ample.of(n, state, ways), depth)
            self._ample.took()

    def _take(self, n: int, state: Ids, ways: list[Way], depth: int) -> None:
        known, actions, numbers, least = self.known, self._actions, self._numbers, self._least
        bounded = self.model.constraint is not None
        for place, way in enumerate(ways):
            step = way.step
            self._generated += step.ways
            actions[step.action] = actions.get(step.action, 0) + step.ways
            after = way.follow(state)
            if least is not None and after not in numbers:
                after = least(after)
            if after in numbers:
                continue
            if bounded and not known.is_inside(after):
                for name, why in known.answers(after):
                    self._note(name, why, depth + 1, n, place)
                continue
            numbers[after] = len(self.visited)
            self.visited.append(after)
            self._parents.append(n)

    def _looked_at(self, n: int, depth: int) -> tuple[Ids, list[Way]]:
        """Return a state and the ways from it, both checked."""
        state = self.visited[n]
        self._check(state, n, depth)
        ways = self.known.ways(state)
        if not ways and self._deadlock and not without_bounds(self.model).choices(self.known.mapping(state)):
            self._note("Deadlock", NO_STEP, depth, n)
        if self._on_steps:
            self._check_steps(state, ways, n, depth)
        return state, ways

    def _check(self, state: Ids, n: int, depth: int) -> None:
        for name, why in self.known.answers(state):
            self._note(name, why, depth, n)

    def _check_steps(self, state: Ids, ways: list[Way], n: int, depth: int) -> None:
        """Look for witnesses among the steps from a state; what they depend on is remembered where that is noted."""
        known = self.known
        for name, prop in self._on_steps.items():
            if name not in self._hits and name not in self._fresh:
                if known.notes_fields:
                    shown = (place for place, way in enumerate(ways) if known.shown(prop, way, state).result)
                else:
                    view = known.view(state)
                    shown = (place for place, way in enumerate(ways) if prop.check(view, way.step))
                place = next(shown, None)
                if place is not None:
                    self._note(name, WITNESSED, depth, n, place)

    def _look_at_rest(self) -> None:
        """Check the states that were met and not expanded."""
        for n in range(self._done, len(self.visited)):
            self._check(self.visited[n], n, len(self.level_sizes) - (n < len(self.visited) - self.level_sizes[-1]))
        self._hits.update(self._fresh)

    def _note(self, name: str, reason: str, depth: int, n: int, place: int | None = None) -> None:
        """Note that a property answers in state n, or in the one that one of its steps leads to, or to that step."""
        known = self._hits.get(name) or self._fresh.get(name)
        if known is not None and known.depth <= depth:
            return
        self._fresh[name] = self._hit(name, reason, depth, n, place)

    def _hit(self, name: str, reason: str, depth: int, n: int, place: int | None) -> FirstHit:
        """Return the way to state n, and on by one of its steps: the first of the shortest in the order of the model.

        Where a state stands for others, the way is one of the model itself, through states of the same classes.
        """
        chain = [n]
        while (parent := self._parents[chain[-1]]) >= 0:
            chain.append(parent)
        targets = [self.visited[each] for each in reversed(chain)]
        starts = self.known.starts
        initial = next(at for at, start in enumerate(starts) if self._stands_for(start) == targets[0])
        labels, places, state = [], [initial], starts[initial]
        prop = self._on_steps.get(name)
        if place is not None and prop is None:
            targets.append(self._stands_for(self.known.ways(self.visited[n])[place].follow(self.visited[n])))
        for target in targets[1:]:
            ways = enumerate(self.known.ways(state))
            at, way = next((at, way) for at, way in ways if self._stands_for(way.follow(state)) == target)
            labels.append(way.step.label)
            places.append(at)
            state = way.follow(state)
        if prop is not None:
            view, ways = self.known.view(state), enumerate(self.known.ways(state))
            at, way = next((at, way) for at, way in ways if prop.check(view, way.step))
            labels.append(way.step.label)
            places.append(at)
        elif self._least is not None and self._kinds.get(name) == "invariant":
            reason = self.known.model.why_not(self._chosen[name], self.known.view(state)) or reason
        kind = self._kinds.get(name, "deadlock")
        return FirstHit(depth, Violation(name, reason, kind, initial, tuple(labels)), places)

    def frontier(self, most: int) -> list[State]:
        """Return some of the states that were met and not expanded, evenly from all."""
        rest = len(self.visited) - self._done
        return [self.known.mapping(self.visited[self._done + n * rest // most]) for n in range(most) if rest]

    def _result(self) -> Result:
        found = [(hit.violation, hit.way) for hit in self._hits.values()]
        violations, witnesses = ranked(found, tuple(self._kinds))
        complete = not self._has_ended() and not (violations and self._stop)
        sizes = [size for size in self.level_sizes if size]
        return Result(
            len(self.known.starts), len(self.visited), self._generated, len(sizes), complete, violations, witnesses,
            dict(sorted(self._actions.items())), 0, self.engine,
        )

    def _with_shorter(self, result: Result) -> Result:
        """Return a result with shortest runs where they exist, after a search for shorter runs of what is violated."""
        if not result.violations or self._has_ended():
            return attrs.evolve(result, longer=frozenset(each.name for each in (*result.violations, *result.witnesses)))
        levels = max(each.length for each in result.violations) - 1
        if not levels:
            return attrs.evolve(result, longer=frozenset(each.name for each in result.witnesses))
        most = max(MANY, TIMES * result.distinct)
        second = self.second = PlainSearch(
            self.model, self.names, stop=self._stop, deadlock=self._deadlock, witnesses=self._witnesses,
            states=min(most, self._most or most), memory=self._memory, levels=levels, reduce=self._renaming, after=self,
            progress=self._watch,
        )
        shorter = second.run()
        self.interrupted = second.interrupted
        known = 0 if self.interrupted else len(second.level_sizes) - 1 - (second.limit is not None)
        return self._shortest(result, shorter, known)

    def _watch(self, distinct: int, generated: int, depth: int, queue: int) -> None:
        assert self.second is not None
        self.progress(distinct, generated, depth, queue)
        self.second.wants_stop = self.wants_stop

    def _shortest(self, result: Result, shorter: Result, levels: int) -> Result:
        """Return a result with the runs of a search for shorter ones; `levels` is how deep all runs are known."""
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
