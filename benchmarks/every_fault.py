"""Every repaired model of actors under every kind of fault: what is violated, what leaves the spec (nothing should).

Of each model half of the runs are in free mode, where the scheduler chooses the moments of the faults, and half in
timed mode, where clocks run skewed and latencies vary. All that a model claims is claimed; where
it has a refinement, each step is held against its spec.

    python benchmarks/every_fault.py                       # 10,000 runs of each
    python benchmarks/every_fault.py kip-890 --runs 200    # of those whose names contain this
    python benchmarks/every_fault.py kip-890 --runs 200 --first 100    # as many more: 100 of each mode were made
"""

from __future__ import annotations

import argparse
import gc
import multiprocessing
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor

import attrs

from harness.memo.interning import long_lived
from harness.model import Faults, Refusal, find_model
from harness.model.faults import FAULT_KINDS
from harness.simulate.hunting.workers import end_with_parent
from harness.simulate.runs.plan import everything
from harness.simulate.runs.session import run_plain
from harness.simulate.states.tables import Tables
from harness.simulate.strategies.by_name import Strategies
from harness.verify.simulated_runs import refine_runs

BLOCK = 250
"""Runs that share tables."""


@attrs.frozen
class Row:
    """A model at a size, the actors that faults may strike, and how long its runs are."""

    model: str
    sizes: dict[str, int]
    targets: tuple[str, ...]
    steps: int = 120
    crashes: int = 2
    settings: dict[str, str] = attrs.field(factory=dict)
    network: str = "fifo"

    @property
    def faults(self) -> Faults:
        return Faults(**{**dict.fromkeys(FAULT_KINDS, 1), "crash": self.crashes}, targets=self.targets)


THREE = ("r1", "r2", "r3")
BUSY = {"replicas": 3, "producers": 2, "consumers": 2, "records": 2, "polls": 3, "min-insync-replicas": 2}
LED_BY_ONE = {"replicas": 3, "producers": 1, "records": 3, "elections": 0, "fencings": 1}
MOVING = {"brokers": 2, "producers": 2, "transactional-ids": 2, "consumers": 1, "elections": 3}
REPLICATED = {"log": "replicated", "timeouts": "request,delivery,transaction"}


def whole(release: str) -> Row:
    """Return the row of whole transactions on replicated logs; what it says is violated is what the release breaks."""
    return Row(
        f"kafka/{release}", MOVING, ("b1", "b2", "c1"), steps=300, settings=REPLICATED, network="connections"
    )


ROWS = (
    Row("replication/kip-320/actors", {**BUSY, "elections": 2, "fencings": 1}, THREE),
    Row("replication/async-isr/actors", {**BUSY, "elections": 1, "fencings": 1}, THREE),
    Row("replication/async-isr/actors", LED_BY_ONE, ("r2", "r3")),  # its module ends where another leader is elected
    Row("compaction/pulsar/actors", {}, ("broker", "producer", "r1")),
    Row("compaction/pulsar-trimming/actors", {}, ("broker", "producer", "r1")),
    *(whole(release) for release in ("2.3", "3.5", "3.9", "4.0")),
)


@attrs.define
class Sum:
    """What runs came to."""

    runs: int = 0
    steps: int = 0
    failed: int = 0
    stutters: int = 0
    extended: int = 0
    violated: Counter[str] = attrs.field(factory=Counter)
    seeds: list[int] = attrs.field(factory=list)
    """The first seed of each block with a run that should not be."""
    cpu: float = 0.0

    def add(self, other: Sum) -> None:
        for name in ("runs", "steps", "failed", "stutters", "extended", "cpu"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.violated.update(other.violated)
        self.seeds += other.seeds


def main() -> int:
    """Make the runs, a line per model and mode; exit 1 where anything is violated or leaves its spec."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="parts of model names (default: all)")
    parser.add_argument("--runs", type=int, default=10_000, help="runs of each model (default: 10,000)")
    parser.add_argument("--first", type=int, default=0, help="seed of the first run of each mode (default: 0)")
    parser.add_argument("--processes", type=int, default=2)
    given = parser.parse_args()
    rows = [row for row in ROWS if not given.names or any(name in row.model for name in given.names)]
    if not rows or given.runs < 2 or given.first < 0:
        known = ", ".join(row.model for row in ROWS)
        print(f"name parts of {known}, 2 runs or more, and a first seed from 0 on, not {given.names}, {given.runs} and "
              f"{given.first}", file=sys.stderr)
        return 2
    bad = 0
    print("| model | mode | runs | steps | violated | leave the spec | stutters | extensions | CPU s |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    with ProcessPoolExecutor(given.processes, multiprocessing.get_context("spawn"), end_with_parent) as pool:
        for row in rows:
            for mode, runs in (("free", given.runs // 2), ("timed", given.runs - given.runs // 2)):
                total = Sum()
                end = given.first + runs
                tasks = [(row, mode, seed, min(BLOCK, end - seed)) for seed in range(given.first, end, BLOCK)]
                for done in reported(pool.map(block, tasks), f"{row.model} {mode}", runs):
                    total.add(done)
                refined = find_model(row.model).make().refinement is not None
                spec = [f"{total.failed:,}", share(total.stutters, total), share(total.extended, total)]
                violated = ", ".join(f"{name} {n:,}" for name, n in sorted(total.violated.items())) or "0"
                cells = [row.model, mode, f"{total.runs:,}", f"{total.steps:,}", violated,
                         *(spec if refined else ["no spec", "", ""]), f"{total.cpu:.0f}"]
                print(f"| {' | '.join(cells)} |", flush=True)
                if total.seeds:
                    print(f"{row.model} {mode}: look at seeds {total.seeds[:5]}", file=sys.stderr)
                bad += total.failed + sum(total.violated.values())
    return 1 if bad else 0


def share(part: int, total: Sum) -> str:
    return f"{100 * part / max(1, total.steps):.1f} %"


def reported(sums: Iterator[Sum], what: str, runs: int) -> Iterator[Sum]:
    """Pass sums on, and tell on a terminal how far it is."""
    done, began = 0, time.perf_counter()
    for one in sums:
        done += one.runs
        if sys.stderr.isatty():
            rate = done / (time.perf_counter() - began)
            print(f"\r{what}: {done:,} of {runs:,} runs, {rate:,.0f}/s, {(runs - done) / rate:,.0f} s left\033[K",
                  end="\n" if done == runs else "", file=sys.stderr, flush=True)
        yield one


def block(task: tuple[Row, str, int, int]) -> Sum:
    """Make some runs, one seed after the other."""
    row, mode, first, count = task
    began = time.process_time()
    model = find_model(row.model).make(row.sizes, row.settings, network=row.network, faults=row.faults)
    plan = everything(model)
    plan = attrs.evolve(plan, steps=row.steps, mode=mode)
    seeds = range(first, first + count)
    total = Sum(runs=count)
    if model.refinement is not None:
        totals = refine_runs(model, plan, seeds)
        total.steps, total.failed, total.stutters = totals.steps, totals.failed, totals.stutters
        total.extended = sum(totals.extensions.values())
        total.violated = totals.violated
        if totals.seed is not None:
            total.seeds.append(totals.seed)
    else:
        tables, strategies = Tables(model), Strategies("random")
        with long_lived():
            for seed in seeds:
                strategy = strategies.run(seed)
                assert strategy is not None, "random runs never end"
                run = run_plain(tables, plan, strategy)
                total.steps += len(run.trail.choices)
                total.violated.update(verdict.violated for verdict in run.violations if verdict.violated)
                if run.violations and not run.verdict.ok and not total.seeds:
                    total.seeds.append(seed)
    gc.collect()  # tables are circles; the next block has its own
    total.cpu = time.process_time() - began
    return total


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Refusal as error:
        print(error, file=sys.stderr)
        sys.exit(2)
