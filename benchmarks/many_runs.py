"""Runs after runs in one process until so many steps are made: what memory it has and what its tables hold, by tenths.

For protocols whose runs end: `long_run.py` is for those that go on for ever. Every run has another seed, all share one
set of tables, and all that is claimed is checked. Memory is flat where its peak no longer grows once tables were full.

    python benchmarks/many_runs.py MODEL|SCENARIO [--steps N] [--size NAME=N ...] [--set NAME=VALUE ...] [--json]
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import sys
import time
from collections.abc import Iterator
from typing import Any

from measure import resident

from harness.cli.group import pairs
from harness.memo.interning import long_lived
from harness.model import Refusal
from harness.simulate.runs.plan import Plan, resolve
from harness.simulate.runs.session import run_plain
from harness.simulate.states.tables import Tables
from harness.simulate.strategies.strategy import RandomStrategy

TENTHS = 10
KILO = 1 if sys.platform == "darwin" else 1024
"""Bytes of the unit in which the system says how much memory a process had at most."""


def tenths(tables: Tables, plan: Plan, steps: int, first: int) -> Iterator[dict[str, Any]]:
    """Make runs from a seed on until there are so many steps; yield what it took whenever a tenth is made."""
    made, seed, due, violations = 0, first, 1, 0
    began = time.process_time()
    with long_lived():
        while due <= TENTHS:
            run = run_plain(tables, plan, RandomStrategy(seed))
            made += len(run.trail.choices)
            violations += not run.verdict.ok
            seed += 1
            if seed - first > steps:
                raise Refusal(f"runs of {tables.model.name} have no steps; give other sizes")
            if made * TENTHS >= due * steps:
                yield {
                    "steps": made, "runs": seed - first, "violations": violations,
                    "resident_bytes": resident(os.getpid()),
                    "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * KILO,
                    "estimate_bytes": tables.used, "renewals": tables.renewals,
                    "values": sum(map(len, tables.values)), "results": tables.leaves,
                    "cpu_seconds": round(time.process_time() - began, 1),
                }
                due = made * TENTHS // steps + 1


def line(row: dict[str, Any]) -> str:
    """Return what a tenth took, for a person."""
    now = row["resident_bytes"]
    return (
        f"{row['steps']:>11,} steps {row['runs']:>7,} runs {row['cpu_seconds']:>6,.0f} s  "
        f"{'?' if now is None else f'{now / 1e6:,.0f}':>5} MB, at most {row['peak_bytes'] / 1e6:,.0f} MB;  tables: "
        f"{row['estimate_bytes'] / 1e6:>3,.0f} MB, {row['values']:>6,} values, {row['results']:>7,} results, "
        f"full {row['renewals']} times"
    )


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("what", metavar="MODEL|SCENARIO")
    parser.add_argument("--steps", type=int, default=1_000_000, metavar="N")
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="of the first run")
    parser.add_argument("--size", action="append", default=[], metavar="NAME=N")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    given = parser.parse_args()
    try:
        if given.steps < TENTHS:
            raise Refusal(f"--steps must be at least {TENTHS}, not {given.steps}")
        model, plan = resolve(given.what, sizes=pairs(tuple(given.size), int), settings=pairs(tuple(given.set), str))
        rows = []
        for row in tenths(Tables(model), plan, given.steps, given.seed):
            rows.append(row)
            if not given.json:
                print(line(row), flush=True)
    except Refusal as error:
        print(error, file=sys.stderr)
        return 2
    half = next(row for row in rows if 2 * row["steps"] >= given.steps)
    grown = rows[-1]["peak_bytes"] - half["peak_bytes"]
    if given.json:
        print(json.dumps({"what": given.what, "sizes": dict(model.sizes), "settings": dict(model.settings),
                          "tenths": rows, "grown_bytes": grown}))
    else:
        print(f"at most {grown / 1e6:,.1f} MB more in the second half of the steps than in the first; "
              f"{rows[-1]['violations']:,} of {rows[-1]['runs']:,} runs violate a claim")
    return 0


if __name__ == "__main__":
    sys.exit(main())
