"""The published bugs, found among actors: runs to the first find, raw and shrunk length, by strategy.

For each flawed scenario whose model is one of actors: at most --runs runs under each strategy, then the first violating
run shrunk. Beside it the shortest schedule of the same flaw in the spec, where there is one, found by a search.

    python benchmarks/exhibits.py                   # all of them, as a table in Markdown
    python benchmarks/exhibits.py rp-01 pc-03       # those whose names begin so
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
from concurrent.futures import ProcessPoolExecutor
from itertools import repeat

from harness.explore.flaw import fewest_steps
from harness.model import Scenario, find_model, scenarios
from harness.record.search_results import searched
from harness.simulate.hunting.tasks import Task, carry_out
from harness.simulate.hunting.workers import end_with_parent
from harness.simulate.trails.shrink import shrink

STRATEGIES = ("random", "pct", "guided", "portfolio")


def main() -> int:
    """Find every exhibit under every strategy, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="beginnings of scenario names (default: all)")
    parser.add_argument("--runs", type=int, default=2000, help="most runs per strategy (default: 2000)")
    parser.add_argument("--processes", type=int, default=2)
    given = parser.parse_args()
    rows = [s for s in scenarios() if s.repaired and find_model(s.model).may_fault and chosen(s, given.names)]
    if not rows:
        print(f"there is no exhibit named {', '.join(given.names)}; see kafka-proto list", file=sys.stderr)
        return 2
    cells = [(row.name, strategy) for row in rows for strategy in STRATEGIES]
    print("| exhibit | property | " + " | ".join(STRATEGIES) + " | spec | fewest | twin |")
    print("| --- | --- |" + " --- |" * (len(STRATEGIES) + 3))
    missed = []
    with ProcessPoolExecutor(given.processes, multiprocessing.get_context("spawn"), end_with_parent) as pool:
        found = pool.map(cell, cells, repeat(given.runs))
        for row in rows:
            tried = [next(found) for _ in STRATEGIES]
            print(f"| {row.name} | {row.expected} | {' | '.join(tried)} | {in_spec(row)} | {before(row)} |", flush=True)
            if all(text.startswith("missed") for text in tried):
                missed.append(row.name)
    print(f"\nEach cell: the run (of at most {given.runs:,}) that found it, then its steps and those left when shrunk.")
    if missed:
        print(f"no strategy found {', '.join(missed)}", file=sys.stderr)
    return 1 if missed else 0


def chosen(scenario: Scenario, names: list[str]) -> bool:
    """Say whether a scenario is asked for."""
    return not names or any(scenario.name.startswith(name) for name in names)


def cell(what: tuple[str, str], runs: int) -> str:
    """Return what one strategy came to on one exhibit."""
    name, strategy = what
    (tried,) = carry_out((Task(name, strategy, runs),))
    if tried.trail is None:
        return f"missed in {tried.runs:,}"
    shrunk = shrink(tried.trail)
    return f"{tried.found_at:,}: {shrunk.had} → {shrunk.has}"


def in_spec(scenario: Scenario) -> str:
    """Return the length of the shortest schedule in the spec, or nothing where no spec has the flaw."""
    if scenario.checked is None:
        return ""
    steps = fewest_steps(scenario.name)
    return "none" if steps is None else f"{steps}"


def before(scenario: Scenario) -> str:
    """Return the fewest steps to the flaw among actors, and the states of its twin, as far as a search saw them."""
    flawed, twin = searched(scenario.name), searched(scenario.repaired or "")
    fewest = "" if flawed is None else f"{flawed.steps}" if flawed.violated else f"over {flawed.steps}"
    states = "" if twin is None else f"{twin.states:,}" if twin.complete else f"{twin.steps} steps"
    return f"{fewest} | {states}"


if __name__ == "__main__":
    sys.exit(main())
