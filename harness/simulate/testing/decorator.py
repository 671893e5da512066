"""Simulations as tests: `@harness.simulated(scenario, seeds=...)` runs a test once per seed.

A failure writes the (shrunk) trail and says how to replay it. Works under any test runner; the pytest plugin adds
options and a section to the report.
"""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import attrs

from harness.model import Faults
from harness.record import Recorder, Trail
from harness.simulate.runs.failures import of_the_test
from harness.simulate.runs.plan import Plan, resolve, safety_only
from harness.simulate.runs.run import Run
from harness.simulate.runs.session import run_plain
from harness.simulate.states.guards import Guards
from harness.simulate.states.tables import Tables
from harness.simulate.strategies.by_name import Strategies
from harness.simulate.trails.replay import replay_plain, try_choices
from harness.simulate.trails.shrink import shrink, shrink_while


@attrs.define
class SimulationSettings:
    """Where failing trails go and how many seeds are tried; the pytest plugin sets it from its options."""

    out: Path = Path("out")
    seeds: int | None = None


SETTINGS = SimulationSettings()
REPORTS: list[str] = []
"""What was written for failures, for the report at the end."""
SILENT: list[tuple[str, tuple[str, ...] | None]] = []
"""What was simulated without a finding: scenario or model, and the claims that took the place of its own."""


class SimulationFailed(AssertionError):
    """A simulated test failed: a claimed property was violated, or the test itself raised."""

    __module__ = "harness"


def simulated(
    what: str, seeds: int | Iterable[int] = 20, *, strategy: str = "random", claims: Iterable[str] | None = None,
    injected: Faults | None = None, steps: int | None = None,
) -> Callable[[Callable[..., Any]], Callable[[], None]]:
    """Run a test once per seed on a scenario (or a model at its default sizes).

    A plain function gets each finished `Run` and may assert on it; an `async def` gets a `Cluster` and is the
    application: it runs on trio and its commands decide what the clients do. Either fails when a claimed property is
    violated. `claims` replaces the scenario's own; for an application these are the invariants only, since clients that
    it leaves idle never get anywhere. `steps` bounds a run (the scenario's own bound).

    `injected` is the budget of the faults that the application injects itself, with `await cluster.inject(...)`. Then
    nothing else goes wrong: no fault of the scenario, no election, and what is broken stays so until the application
    mends it or is over. Without it, both the scheduler and the application spend the scenario's faults.
    """

    def decorate(test: Callable[..., Any]) -> Callable[[], None]:
        if injected is not None and not inspect.iscoroutinefunction(test):
            raise TypeError(f"{test.__name__} cannot inject faults; make it an async def, which gets a cluster")

        def run_all() -> None:
            __tracebackhide__ = True
            model, plan = resolve(what, injected)
            if claims is not None:
                plan = attrs.evolve(plan, claims=tuple(claims))
            elif inspect.iscoroutinefunction(test):
                plan = safety_only(plan, model)
            if steps is not None:
                plan = attrs.evolve(plan, steps=steps)
            tables = Tables(model, Guards() if strategy == "guided" else None)
            case = _Case(test, tables, plan, strategy, injected is not None)
            wanted = range(seeds) if isinstance(seeds, int) else tuple(seeds)
            if SETTINGS.seeds is not None:
                wanted = range(SETTINGS.seeds)
            source = Strategies(strategy)
            for seed in wanted:
                chosen = source.run(seed)
                if chosen is None:
                    break
                case.run(chosen, seed)
            if injected is None:
                SILENT.append((what, None if claims is None else plan.claims))

        run_all.__name__ = test.__name__
        run_all.__qualname__ = test.__qualname__
        run_all.__doc__ = test.__doc__
        run_all.__module__ = test.__module__
        return run_all

    return decorate


@attrs.frozen
class _Case:
    """One test function on one model."""

    test: Callable[..., Any]
    tables: Tables
    plan: Plan
    strategy: str
    by_hand: bool
    """Whether only the test's own faults happen."""

    def run(self, chosen: Any, seed: int) -> None:
        """Run the test with one seed; raise SimulationFailed with what to do next."""
        __tracebackhide__ = True
        name = self.test.__name__
        if inspect.iscoroutinefunction(self.test):
            from harness.simulate.runtimes.trio_runtime import run_application

            run, error = run_application(self.tables, self.plan, chosen, self.test, by_hand=self.by_hand)
            judge(run, name, seed, self.tables)
            if error is not None:
                self._raised(run.trail, seed, error)
            return
        run = run_plain(self.tables, self.plan, chosen, Recorder())
        judge(run, name, seed, self.tables)
        raised = self._error(run)
        if raised is not None:
            short = shrink_while(self.tables, run.trail, lambda trail: self._still(trail, type(raised)))
            self._raised(short, seed, raised)

    def _error(self, run: Run) -> Exception | None:
        try:
            self.test(run)
        except Exception as error:
            return error
        return None

    def _still(self, trail: Trail, kind: type[Exception]) -> Trail | None:
        """Return the trail that fits, if the test still raises the same kind of error on its run."""
        fitting = try_choices(self.tables, trail, trail.choices).trail
        run = replay_plain(fitting, Recorder(), self.tables)
        return fitting if isinstance(self._error(run), kind) else None

    def _raised(self, trail: Trail, seed: int, raised: Exception) -> None:
        __tracebackhide__ = True
        error = of_the_test(raised)
        first = next(iter(str(error).splitlines()), "")
        said = f"seed {seed}: the test raised {type(error).__name__}: {first}"
        if not isinstance(error, BaseExceptionGroup):
            raise SimulationFailed(_report(self.test.__name__, trail, said)) from error
        whole = "".join(traceback.format_exception(error)).rstrip()  # a runner would show the frames around it again
        raise SimulationFailed(f"{_report(self.test.__name__, trail, said)}\n{whole}") from None


def judge(run: Run, name: str, seed: int, tables: Tables | None = None) -> None:
    """Raise SimulationFailed if a run of the named test violates a claim, and leave a short trail."""
    __tracebackhide__ = True
    if not run.verdict.ok:
        short, verdict = shrink(run.trail, tables=tables), run.verdict
        said = f"{verdict.violated} is violated: {verdict.reason} (seed {seed}, {short.had} -> {short.has} steps)"
        raise SimulationFailed(_report(name, short.trail, said))


def _report(name: str, trail: Trail, said: str) -> str:
    path = SETTINGS.out / f"{name}.trail.jsonl"
    trail.write(path)
    message = f"{said}\n  replay: kafka-proto replay {path}"
    REPORTS.append(f"{name}: {message}")
    return message
