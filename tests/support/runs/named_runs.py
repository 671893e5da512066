"""Scenarios and strategies by name, scenarios by kind, runs of them, and systems known during the tests of a file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.model import Model, Scenario, System, find_scenario, register, unregister
from harness.record import Recorder, header_of, write_history
from harness.simulate.runs.plan import resolve
from harness.simulate.runs.run import Run
from harness.simulate.runs.session import run_plain
from harness.simulate.states.tables import Tables
from harness.simulate.strategies.by_name import Strategies
from harness.simulate.strategies.strategy import Strategy


def scenario_of(name: str) -> Scenario:
    """Return a scenario that there is."""
    scenario = find_scenario(name)
    assert scenario is not None
    return scenario


def each_kind(scenarios: Iterable[Scenario]) -> list[Any]:
    """Return a parameter for each scenario, by its name; the first of a kind is in the suite, the others are large.

    A kind is a model, a mode, the kind of log that it is on, and whether a violation is expected.
    """
    found, kinds = [], set[object]()
    for scenario in scenarios:
        kind = (scenario.model, scenario.mode, scenario.settings.get("log"), scenario.expected is None)
        marks = [pytest.mark.large] if kind in kinds else []
        kinds.add(kind)
        found.append(pytest.param(scenario, id=scenario.name, marks=marks))
    return found


def strategy_of(source: str | Strategies, number: int) -> Strategy:
    """Return the strategy of a run that there is, by its number."""
    chosen = (Strategies(source) if isinstance(source, str) else source).run(number)
    assert chosen is not None
    return chosen


def run_of(what: str, seed: int = 0, strategy: str = "random", tables: Tables | None = None) -> Run:
    """Make a recorded run of a scenario or a model on the plain runtime."""
    model, plan = resolve(what)
    return run_plain(tables or Tables(model), plan, strategy_of(strategy, seed), Recorder())


def write_history_of(run: Run, path: Path, model: Model | None = None, runtime: str = "plain") -> Path:
    """Write the history that a recorded run has in memory."""
    assert run.recorder is not None
    write_history(path, header_of(run.trail, model or run.trail.build(), runtime), run.recorder, run.verdict.to_json())
    return path


def registering(*systems: System, autouse: bool = True) -> Any:
    """Return a fixture for a file of tests: while one of them runs, these systems are found."""

    @pytest.fixture(autouse=autouse)
    def registered() -> Iterator[None]:
        for system in systems:
            register(system)
        yield
        for system in systems:
            unregister(system.name)

    return registered
