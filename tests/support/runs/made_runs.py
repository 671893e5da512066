"""Runs of a strategy, a run on trio, and the states that a run goes through."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing
from itertools import chain, count, islice

from harness.model import Model, Scenario, State, model_of
from harness.record import Recorder
from harness.simulate.runs.plan import Plan, plan_of
from harness.simulate.runs.run import Run
from harness.simulate.runs.session import Session, run_plain
from harness.simulate.runtimes.trio_runtime import drive_on_trio
from harness.simulate.states.tables import Tables
from harness.simulate.strategies.by_name import Strategies
from harness.simulate.strategies.strategy import Strategy


def runs_of(tables: Tables, plan: Plan, strategy: str, first: int = 0) -> Iterator[Run]:
    """Yield the runs of a strategy from a seed on, for ever or until it is exhausted."""
    source = Strategies(strategy)
    for seed in count(first):
        if (chosen := source.run(seed)) is None:
            return
        yield run_plain(tables, plan, chosen)


def run_on_trio(tables: Tables, plan: Plan, strategy: Strategy, recorder: Recorder | None = None) -> Run:
    """Make one run on trio, as `run_plain` makes it on the plain runtime."""
    return drive_on_trio(Session(tables, plan, strategy, recorder))


def alternating(model: Model, plan: Plan, most: int) -> Iterator[Run]:
    """Yield so many runs of a model, by two strategies in turn."""
    with closing(Tables(model)) as tables:
        sources = [runs_of(tables, plan, strategy) for strategy in ("random", "pct")]
        yield from islice(chain.from_iterable(zip(*sources, strict=True)), most)


def model_runs(model: Model, plan: Plan, strategy: str, runs: int, first: int = 0) -> Iterator[Run]:
    """Yield so many runs of a model, from a seed on; then, or where nobody asks for more, its tables are closed."""
    with closing(Tables(model)) as tables:
        yield from islice(runs_of(tables, plan, strategy, first), runs)


def scenario_runs(scenario: Scenario, strategy: str, runs: int, first: int = 0) -> Iterator[Run]:
    """Yield so many runs of a scenario, from a seed on."""
    return model_runs(model_of(scenario), plan_of(scenario), strategy, runs, first)


def first_bad(runs: Iterable[Run]) -> Run | None:
    """Return the first run that violates something."""
    return next((run for run in runs if not run.verdict.ok), None)


def states_of(model: Model, run: Run) -> Iterator[State]:
    """Yield the states of a run, the initial one first."""
    return states_along(model, run.trail.initial, (chosen.label for chosen in run.trail.choices))


def states_along(model: Model, initial: int, labels: Iterable[str]) -> Iterator[State]:
    """Yield an initial state and those that steps lead to one by one, by the reference semantics."""
    state = model.initial_states()[initial]
    yield state
    for label in labels:
        (choice,) = (choice for choice in model.choices(state) if choice.label == label)
        state = model.apply(state, choice)
        yield state
