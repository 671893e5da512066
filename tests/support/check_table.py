"""A table: every model of `list`, searched completely at a small size, without reductions and with each of them.

    python tests/support/check_table.py [MODEL ...]

Ends with code 1 where a search finds what the model is not expected to show, or does not end.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping

import attrs

from harness.cli.check_options import reductions_of
from harness.explore.any_model import NUMBERS, SYMMETRY, PlainSearch
from harness.explore.bounded import ALL, bounded
from harness.explore.packed.result import Result
from harness.explore.packed.search import Search
from harness.model import NO_FAULTS, Faults, Model, find_model, model_specs

MOST = 400_000


@attrs.frozen
class Row:
    """A model, its size where it is not the default, and how many timers may fire and faults happen."""

    model: str
    sizes: Mapping[str, int] = attrs.field(factory=dict)
    timers: int = 0
    faults: Faults = NO_FAULTS
    settings: Mapping[str, str] = attrs.field(factory=dict)
    violates: tuple[str, ...] = ()
    """Invariants that the model is known to violate at this size."""

    def make(self) -> Model:
        model = find_model(self.model).make(self.sizes, self.settings, None, self.faults)
        return bounded(model, {ALL: self.timers}) if model.actors else model


STACK = {"clients": 1, "brokers": 2, "replication-factor": 2, "elections": 1}
ONE_READER = {"messages": 1, "keys": 1, "readers": 1}
TWO_READERS = {"messages": 1, "keys": 1, "readers": 2}
FLAWED = ("truncate-to-high-watermark", "kip-101")
ROWS: tuple[Row, ...] = (
    Row("cluster", STACK),
    Row("cluster", STACK, 0, Faults(crash=1, targets=("b1", "b2"))),
    Row("cluster", {**STACK, "clients": 2, "elections": 0}),
    Row("compaction/pulsar", {"messages": 2, "keys": 1, "values": 1}),
    Row("compaction/pulsar/actors", ONE_READER, 1),
    Row("compaction/pulsar/actors", TWO_READERS, 0, Faults(crash=1, targets=("broker",))),
    Row("compaction/pulsar-trimming/actors", ONE_READER, 0, Faults(crash=1, targets=("broker",))),
    *(Row(f"replication/{name}", violates=("StrongIsr", "WeakIsr")) for name in FLAWED),
    *(Row(f"replication/{name}") for name in ("kip-279", "kip-320-first-try", "kip-320", "async-isr")),
    *(Row(f"replication/{name}/actors") for name in
      (*FLAWED, "kip-279", "kip-320-first-try", "kip-320", "async-isr")),
    Row("replication/kip-320/actors", {"elections": 0}, 0, Faults(crash=1, targets=("r1", "r2"))),
    Row("transactions/gist", violates=("FollowersHoldNoUncommitted", "LogsAgreeUpToHwm")),
    *(Row(f"transactions/{name}") for name in ("diary-01", "diary-02", "repaired")),
    Row("transactions/diary-02/actors", {"brokers": 1, "elections": 0}),
    Row("transactions/repaired/actors", {"brokers": 1, "elections": 0}),
    Row("transactions/repaired/actors", {"brokers": 1, "elections": 0}, 1),
    Row("transactions/repaired/actors", {"clients": 1}, 0, Faults(crash=1, targets=("b1", "b2"))),
)


def searched(model: Model, reduce: tuple[str, ...]) -> tuple[Result, float]:
    """Search a model to its end, or to the most states; return the result and the seconds of CPU."""
    claimed = model.claimed
    names = tuple(p.name for p in model.properties if p.is_safety and (claimed is None or p.name in claimed))
    begin = time.process_time()
    search: Search | PlainSearch
    if model.actors:
        search = PlainSearch(model, names, stop=False, states=MOST, reduce=reduce)
    else:
        search = Search(model, names, stop=False, states=MOST, symmetry=SYMMETRY in reduce)
    result = search.run()
    return result, time.process_time() - begin


def line(row: Row) -> tuple[str, bool]:
    """Return the line of a row, and whether all is as it should be."""
    model = row.make()
    every = reductions_of(model, ("all",), False)
    if not model.actors:
        every = tuple(name for name in every if name == SYMMETRY)
    columns, seconds, verdicts = [], [], set()
    for chosen in ((), (NUMBERS,), (SYMMETRY,), (NUMBERS, SYMMETRY)):
        if not set(chosen) <= set(every) or (len(chosen) > 1 and len(every) < 2):
            columns.append("-")
            continue
        result, took = searched(model, chosen)
        columns.append(f"{result.distinct:,}" if result.complete else f">{MOST:,}")
        seconds.append(took)
        if result.complete:
            verdicts.add(tuple(sorted(each.name for each in result.violations)))
    is_good = verdicts == {row.violates}
    names = ", ".join(sorted({name for each in verdicts for name in each})) or "ok"
    verdict = names if verdicts else "not finished"
    within = [*(f"{name}={n}" for name, n in sorted(row.sizes.items())), *(f"{k}={v}" for k, v in row.settings.items())]
    within += [f"{kind}={n}" for kind, n in row.faults.budget.items() if n]
    said = f"{row.model} {' '.join(within)}" + (f" timers={row.timers}" if model.actors else "")
    numbers = "".join(f"{column:>10}" for column in columns)
    return f"{said:<79}{numbers}{seconds[0]:>8.1f}{seconds[-1]:>8.1f}  {verdict}", is_good


HEAD = f"{'':<79}{'':>10}{'':>10}{'':>10}{'':>10}  CPU seconds\n" \
       f"{'model':<79}{'none':>10}{'numbers':>10}{'symmetry':>10}{'both':>10}{'none':>8}{'last':>8}  verdict"


def main(chosen: list[str]) -> int:
    """Print the table, or the rows of some models."""
    missing = {spec.name for spec in model_specs()} - {row.model for row in ROWS}
    if missing:
        print(f"no row for {', '.join(sorted(missing))}", file=sys.stderr)
    print(HEAD)
    good = not missing
    for row in ROWS:
        if not chosen or row.model in chosen:
            text, is_good = line(row)
            good = good and is_good
            print(text if is_good else f"{text}  [not expected]", flush=True)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
