"""What a worker of the hunt does: the runs of a scenario under some strategies, and shrinking what they found.

Runs without a violation are checked against the spec by a function that the driver hands in: this room knows no spec.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter, process_time
from typing import Protocol

import attrs

from harness.memo.interning import Ids, long_lived
from harness.model import Model, Refusal, Scenario, find_scenario, model_of
from harness.record import Trail
from harness.record.short_search import Ahead
from harness.simulate.hunting.workers import count_run
from harness.simulate.runs.plan import Plan, plan_of
from harness.simulate.runs.protocol_errors import RAISED, sentence
from harness.simulate.runs.run import Run
from harness.simulate.runs.session import run_plain
from harness.simulate.states.guards import Guards
from harness.simulate.states.nodes import Node, Option
from harness.simulate.states.tables import Tables
from harness.simulate.strategies.by_name import Strategies
from harness.simulate.strategies.strategy import Strategy, Wrapped
from harness.simulate.trails.shrink import Shrunk, perturbing_part, shrink

REFINEMENT = "Refinement"
"""What a run violates if one of its steps is none of the spec's."""


class Holding(Protocol):
    """Checks runs on some tables against the spec of their model."""

    spec: Model

    def run(self, plan: Plan, strategy: Strategy) -> tuple[Run, str | None]:
        """Make a run; return it, and the reason if one of its steps is none of the spec's."""

    def make_room(self) -> None:
        """Between two runs, let tables that take too much memory start over."""

    def close(self) -> None:
        """Drop what was learned: it is not used any more."""

    def shrunk(self, trail: Trail) -> tuple[Trail, str]:
        """Return a short trail whose last step leaves the spec as a given one does, and why it does."""


Hold = Callable[[Tables], Holding | None]
"""Makes that for tables, or returns None if the model names no spec; a module's function, as workers get its name."""
Check = Callable[[str], int | None]
"""From a scenario's name to the fewest steps to the flaw that it names in a spec; also a module's function."""
LookAhead = Callable[[str], Ahead | None]
"""From a scenario's name to the result of a search that ends soon; also a module's function."""


@attrs.frozen
class Task:
    """Some runs of a scenario under one strategy, up to the first that violates what is expected."""

    scenario: str
    strategy: str
    runs: int
    held: int = 0
    """The first so many of them are checked against the spec."""
    visiting: bool = False
    """Whether the states that they visit are counted."""


@attrs.frozen
class Tried:
    """The outcome of the runs of one strategy."""

    strategy: str
    runs: int = 0
    steps: int = 0
    found_at: int | None = None
    """The run (from 1) that violated the expected property or, unexpectedly, any claimed one."""
    trail: Trail | None = None
    reason: str | None = None
    witnessed: frozenset[str] = frozenset()
    exhausted: bool = False
    """A systematic search that ran out of prefixes."""
    violated: str | None = None
    """What that run violates: a property, `Exception` or `Refinement`."""
    held: int = 0
    """Runs that were checked against the spec."""
    spec: str | None = None
    """The name of that spec."""
    visited: int | None = None
    """The distinct states before fair endings, of these runs and those of other strategies on the same tables."""
    seconds: float = attrs.field(default=0.0, eq=False)
    cpu_seconds: float = attrs.field(default=0.0, eq=False)


@attrs.frozen
class Finished:
    """The outcome of shrinking and searching for a scenario."""

    shrunk: Shrunk | None
    reason: str | None
    checked_steps: int | None
    ahead: Ahead | None
    cpu_seconds: float


def carry_out(tasks: Sequence[Task], hold: Hold | None = None) -> list[Tried]:
    """Carry out tasks of one scenario; runs that do not learn from each other share what they learn of the scenario."""
    shared: _Runs | None = None
    done = []
    with long_lived():
        for task in tasks:
            began, cpu = perf_counter(), process_time()
            try:
                if shared is None or task.strategy == "guided":
                    shared = _Runs(task, hold)
                tried = shared.carry_out(task)
            except Refusal:
                raise
            except Exception as error:  # not even a run could be made
                tried = Tried(task.strategy, 1, 0, 1, reason=sentence(error), violated=RAISED)
            done.append(attrs.evolve(tried, seconds=perf_counter() - began, cpu_seconds=process_time() - cpu))
        if shared is not None:
            shared.close()
    return done


class _Runs:
    """The runs of a scenario on the same tables."""

    def __init__(self, task: Task, hold: Hold | None) -> None:
        self.scenario = scenario_named(task.scenario)
        self.plan = plan_of(self.scenario)
        guided = task.strategy == "guided"
        self.tables = Tables(model_of(self.scenario), Guards() if guided else None)
        self.holding = hold(self.tables) if hold is not None and task.held else None
        self.visited: set[Ids] = set()

    def close(self) -> None:
        """Drop the tables: they are not used any more."""
        self.tables.close()
        if self.holding is not None:
            self.holding.close()

    def carry_out(self, task: Task) -> Tried:
        """Make the runs of a task."""
        strategies, tried = Strategies(task.strategy), Tried(task.strategy)
        for number in range(task.runs):
            strategy = strategies.run(number)
            if strategy is None:
                return attrs.evolve(tried, exhausted=True)
            run, departs = self._run(Visiting(strategy, self.visited) if task.visiting else strategy,
                                     number < task.held)
            count_run()
            spec = self.holding.spec.name if self.holding is not None and task.held else None
            tried = attrs.evolve(
                tried, runs=number + 1, steps=tried.steps + len(run.trail.choices), spec=spec,
                witnessed=tried.witnessed | run.witnessed, held=0 if spec is None else min(number + 1, task.held),
                visited=len(self.visited) if task.visiting and not self.tables.renewals else None,
            )
            violated, reason = finding(run, self.scenario, departs)
            if violated is not None:
                trail = attrs.evolve(run.trail, violates=None if violated == REFINEMENT else violated)
                return attrs.evolve(tried, found_at=number + 1, trail=trail, reason=reason, violated=violated)
        return tried

    def _run(self, strategy: Strategy, is_held: bool) -> tuple[Run, str | None]:
        if self.holding is not None:
            if is_held:
                return self.holding.run(self.plan, strategy)
            self.holding.make_room()
        return run_plain(self.tables, self.plan, strategy), None


class Visiting(Wrapped):
    """Another strategy; the states that its runs visit before their fair endings are noted."""

    def __init__(self, strategy: Strategy, states: set[Ids]) -> None:
        super().__init__(strategy)
        self._states, self._path = states, list[Ids]()

    def begin(self, tables: Tables, start: Node) -> None:
        super().begin(tables, start)
        self._path.append(start.state)

    def took(self, option: Option, after: Node) -> None:
        super().took(option, after)
        self._path.append(after.state)

    def over(self, trail: Trail) -> None:
        super().over(trail)
        self._states.update(self._path if trail.fair_from is None else self._path[: trail.fair_from + 1])


def finding(run: Run, scenario: Scenario, departs: str | None) -> tuple[str | None, str | None]:
    """Return what makes a run worth stopping at, and why."""
    violated = wanted_violation(run, scenario)
    if violated is not None:
        return violated, next(v.reason for v in run.violations if v.violated == violated)
    return (REFINEMENT, departs) if departs is not None else (None, None)


def wanted_violation(run: Run, scenario: Scenario) -> str | None:
    """Return the property that makes a run worth stopping at: the expected one if there is one, else any.

    An exception always does.
    """
    violated = [verdict.violated for verdict in run.violations if verdict.violated is not None]
    if scenario.expected in violated:
        return scenario.expected
    if scenario.expected is None:
        return violated[0] if violated else None
    return RAISED if RAISED in violated else None


def finish(
    name: str, found: Tried | None, check: Check | None, hold: Hold | None, look_ahead: LookAhead | None
) -> Finished:
    """Shrink what was found in a scenario, and search its spec where it names one; where nothing was found, look ahead.
    """
    cpu = process_time()
    shrunk, reason = None, None if found is None else found.reason
    if found is not None and found.trail is not None:
        trail = found.trail
        try:
            with long_lived():
                shrunk, reason = _shrunk(trail, found, hold)
        except Exception:  # what cannot be shrunk is reported as it was found
            had = len(perturbing_part(trail))
            shrunk = Shrunk(trail, had, had, 0)
    scenario = scenario_named(name)
    steps = check(name) if check is not None and scenario.checked is not None else None
    ahead = look_ahead(name) if look_ahead is not None and found is None else None
    return Finished(shrunk, reason, steps, ahead, process_time() - cpu)


def _shrunk(trail: Trail, found: Tried, hold: Hold | None) -> tuple[Shrunk, str | None]:
    if found.violated != REFINEMENT:
        return shrink(trail), found.reason
    holding = hold(Tables(trail.build())) if hold is not None else None
    assert holding is not None
    short, reason = holding.shrunk(trail)
    holding.close()
    return Shrunk(short, len(perturbing_part(trail)), len(perturbing_part(short)), 0), reason


def scenario_named(name: str) -> Scenario:
    """Return a scenario that must exist."""
    scenario = find_scenario(name)
    assert scenario is not None
    return scenario
