"""Runs of whole transactions in which a search found nothing, judged by what their clients saw: no anomaly is right.

Each run is judged twice: by its states, and by `harness.verify.isolation` from what its clients asked for and got. A
run disagrees where clients saw an anomaly and no property that clients can see is violated, or the other way round.

    python benchmarks/isolation_runs.py                    # 100,000 runs, over all scenarios that a search covered
    python benchmarks/isolation_runs.py --runs 4000 --first 100000    # as many more, from another seed on
    python benchmarks/isolation_runs.py late-batch-joins --runs 100   # of a version with a flaw: found
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
from concurrent.futures import ProcessPoolExecutor

import attrs

from harness.memo.interning import long_lived
from harness.model import Refusal, Scenario, scenarios
from harness.record import EventRecorder
from harness.record.search_results import searched
from harness.record.wording import counted
from harness.simulate.hunting.hunt import chosen_scenarios
from harness.simulate.hunting.workers import end_with_parent
from harness.simulate.runs.plan import resolve
from harness.simulate.runs.session import run_plain
from harness.simulate.states.tables import Tables
from harness.simulate.strategies.by_name import NAMES, Strategies
from harness.verify.isolation.clients import judged

SEEN_BY_CLIENTS = frozenset({
    "AcknowledgedOutcome", "Atomicity", "AcknowledgedSurvives", "AcknowledgedOnce", "NoHangingTransaction",
    "NoIntermediateRead",
})
"""Properties of states whose violation a client may see."""
BLOCK = 250
"""Runs that share tables."""


@attrs.define
class Count:
    """What the runs of a scenario came to."""

    runs: int = 0
    steps: int = 0
    anomalies: int = 0
    """Runs in which clients saw one, and those whose states violate a property."""
    violations: int = 0
    disagreements: int = 0
    first: str = ""
    """What was found in the first of these runs."""
    cpu_seconds: float = 0.0

    @property
    def is_silent(self) -> bool:
        return not (self.anomalies or self.violations or self.disagreements)


def silent() -> list[str]:
    """Return the scenarios of whole transactions that a complete search proved right, and whose clients are seen."""
    return [row.name for row in scenarios() if row.model.startswith("kafka/") and is_proved(row)
            and resolve(row.name)[0].client_view is not None]


def is_proved(row: Scenario) -> bool:
    """Say whether every schedule of a scenario was looked at, within the bounds of its search."""
    entry = searched(row.name)
    return entry is not None and entry.complete and entry.violated is None


def count(name: str, seeds: range, strategy: str) -> Count:
    """Make runs of a scenario, and judge each by its states and by its clients."""
    began, total = time.process_time(), Count()
    model, plan = resolve(name)
    invariants = {each.name for each in model.properties if each.is_safety}
    claims = tuple(sorted(invariants & {*SEEN_BY_CLIENTS, *plan.claims, "RefusedForAReason"}))
    plan, source = attrs.evolve(plan, claims=claims, stop_at_violation=False), Strategies(strategy)
    tables = Tables(model)
    with long_lived():
        for seed in seeds:
            chosen, recorder = source.run(seed), EventRecorder()
            if chosen is None:
                break
            run = run_plain(tables, plan, chosen, recorder)
            found = judged(model, recorder.history({}, run.verdict.to_json(), model).events)
            violated = {each.violated for each in run.violations}
            disagrees = bool(found) != bool(violated & SEEN_BY_CLIENTS)
            total.runs += 1
            total.steps += len(run.trail.choices)
            total.anomalies += bool(found)
            total.violations += bool(violated)
            total.disagreements += disagrees
            if (found or violated) and not total.first:
                said = [*(f"{one.anomaly}: {one.reason}" for one in found), *(f"{one}" for one in sorted(
                    filter(None, violated)))]
                total.first = f"seed {seed}: {'; '.join(said)}"
    total.cpu_seconds = time.process_time() - began
    return total


def line(name: str, made: Count) -> str:
    """Return a row of the table."""
    return (f"| {name} | {made.runs:,} | {made.steps:,} | {made.anomalies:,} | {made.violations:,} | "
            f"{made.disagreements:,} | {made.cpu_seconds:.0f} |")


def main() -> int:
    """Make the runs, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="SCENARIO", help="default: all that a search proved right")
    parser.add_argument("--runs", type=int, default=100_000, metavar="N", help="in all, as many of each scenario")
    parser.add_argument("--first", type=int, default=0, metavar="SEED")
    parser.add_argument("--strategy", choices=[name for name in NAMES if name != "guided"], default="random")
    parser.add_argument("--processes", type=int, default=1)
    given = parser.parse_args()
    try:
        names = [row.name for row in chosen_scenarios(given.names) if row.name in given.names] or silent()
        blind = [name for name in given.names if resolve(name)[0].client_view is None]
        if blind:
            raise Refusal(f"{blind[0]} has no view of its clients; give a scenario of kafka/... without deletions")
        if given.runs < len(names):
            raise Refusal(f"--runs must be at least {len(names)}, one for each scenario, not {given.runs}")
    except Refusal as error:
        print(error, file=sys.stderr)
        return 2
    each = -(-given.runs // len(names))
    blocks = [(name, range(at, min(at + BLOCK, given.first + each)))
              for name in names for at in range(given.first, given.first + each, BLOCK)]
    return table(names, blocks, given.strategy, given.processes)


def table(names: list[str], blocks: list[tuple[str, range]], strategy: str, processes: int) -> int:
    """Print a row for each scenario as soon as it is done, and what all came to; return the exit code."""
    print("| scenario | runs | steps | with anomalies | violating states | disagreeing | CPU s |")
    print("| --- |" + " --- |" * 6)
    totals, every = {name: Count() for name in names}, Count()
    left = {name: sum(name == other for other, _ in blocks) for name in names}
    with ProcessPoolExecutor(processes, multiprocessing.get_context("spawn"), end_with_parent) as pool:
        for (name, _), made in zip(blocks, pool.map(count, *zip(*((n, s, strategy) for n, s in blocks), strict=True)),
                                   strict=True):
            for total in (totals[name], every):
                for field in attrs.fields(Count):
                    if field.name != "first":
                        setattr(total, field.name, getattr(total, field.name) + getattr(made, field.name))
            totals[name].first = totals[name].first or made.first
            left[name] -= 1
            if not left[name]:
                print(line(name, totals[name]), flush=True)
    print(line("all", every))
    for name in names:
        if totals[name].first:
            print(f"\n{name}, {totals[name].first}")
    print(f"\n{counted(every.runs, 'run')}: clients saw anomalies in {every.anomalies:,}, states violate in "
          f"{every.violations:,}, both disagree in {every.disagreements:,}")
    return 0 if every.is_silent else 1


if __name__ == "__main__":
    sys.exit(main())
