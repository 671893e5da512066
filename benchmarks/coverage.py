"""What strategies reach: distinct spec states over the steps of simulation, for random, PCT and guided runs.

Where a model names a refinement, states of the actors count as the states of the spec that they stand for, else as
themselves; turns are an action of a process with the actions that are possible after it. A model is taken at its
default sizes with every kind of fault on; a scenario has its own. Nothing is asserted: the curves are from this run.

    python benchmarks/coverage.py [--steps N] MODEL|SCENARIO...
"""

from __future__ import annotations

import argparse

from harness.memo.interning import long_lived
from harness.model import Faults, Model, Refusal, find_model, find_scenario, model_of
from harness.simulate.runs.plan import Plan, everything, plan_of
from harness.simulate.runs.session import run_plain
from harness.simulate.states.guards import Guards
from harness.simulate.states.tables import Tables
from harness.simulate.strategies.by_name import Strategies
from harness.simulate.strategies.coverage import Coverage

STRATEGIES = ("random", "pct", "guided")
POINTS = 10
WIDTH = 60
"""Columns of the longest bar."""


def chosen(what: str) -> tuple[Model, Plan]:
    """Return a scenario, or a model at its default sizes with every kind of fault on, where it takes faults."""
    scenario = find_scenario(what)
    if scenario is not None:
        return model_of(scenario), plan_of(scenario)
    spec = find_model(what)
    model = spec.make()
    if not spec.may_fault:
        return model, everything(model)
    crashing = tuple(name for name, actor in sorted(model.actors.items()) if actor.may_crash)
    faults = Faults(drop=2, duplicate=2, delay=2, crash=1, partition=1, pause=1, targets=crashing)
    return spec.make(faults=faults), everything(model)


def curve(model: Model, plan: Plan, strategy: str, steps: int) -> tuple[list[int], Coverage]:
    """Return how many states were reached at each of `POINTS` equal parts of the steps, and all that was reached."""
    tables, source, found, seed = Tables(model, Guards()), Strategies(strategy), list[int](), 0
    coverage = source.cover(tables)
    while coverage.steps < steps:
        run = source.run(seed)
        assert run is not None
        run_plain(tables, plan, run)
        while len(found) < POINTS and coverage.steps >= steps * (len(found) + 1) // POINTS:
            found.append(coverage.states)
        seed += 1
    return found, coverage


def show(what: str, steps: int) -> None:
    """Print the curves of one model or scenario, as a table and as bars."""
    model, plan = chosen(what)
    results = {strategy: curve(model, plan, strategy, steps) for strategy in STRATEGIES}
    refinement = results["random"][1].refinement
    counted = "its own states" if refinement is None else f"states of {refinement.spec.name}"
    print(f"{what}: distinct {counted} after so many steps")
    print(f"{'steps':>10}" + "".join(f"{name:>10}" for name in STRATEGIES))
    for n in range(POINTS):
        row = "".join(f"{results[name][0][n]:10,}" for name in STRATEGIES)
        print(f"{steps * (n + 1) // POINTS:10,}{row}")
    most = max(found[-1] for found, _ in results.values())
    for n in range(1, POINTS, 2):
        for name in STRATEGIES:
            states = results[name][0][n]
            at = f"{steps * (n + 1) // POINTS:,}" if name == STRATEGIES[0] else ""
            print(f"{at:>10} {name:>8} {'#' * round(WIDTH * states / most)} {states:,}")
    for name in STRATEGIES:
        coverage = results[name][1]
        assert coverage.tables.guards is not None
        print(f"{name:>8}: {coverage.runs:,} runs, {len(coverage.turns):,} turns, {len(coverage.tables.guards.seen)} "
              f"guard outcomes, {len(coverage.taken)} actions")
    base, guided = results["random"][0][-1], results["guided"][0][-1]
    print(f"guided / random: {guided / base:.2f}\n")


def main() -> None:
    parser = argparse.ArgumentParser(description="Distinct spec states over steps, by strategy.")
    parser.add_argument("what", nargs="+", metavar="MODEL|SCENARIO")
    parser.add_argument("--steps", type=int, default=40_000, help="steps of simulation per strategy")
    given = parser.parse_args()
    try:
        with long_lived():
            for what in given.what:
                show(what, given.steps)
    except Refusal as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
