"""How fast a campaign is: on Spark in local mode against one plain process, and what its tables cost.

Prints every figure from one run, with its goal. Nothing is asserted: machines differ, ratios travel better than rates.
Start-up is left out on both sides: Spark runs, and its workers have made runs of the scenario, before a clock starts;
so has the plain process.

    python benchmarks/pipeline.py [--runs N] [--kept N] [--events N] [--cores N] [--scenario NAME] [--block N]
                                  [--no-search]

`--events 10000000` makes runs until there are so many stored events, and `--runs 0` leaves the throughput out.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from measure import Watch
from search import CASES

from harness.campaign.cells import cells
from harness.campaign.checks import rates, rates_by_faults, reached
from harness.campaign.clusters import clusters
from harness.campaign.judging import rejudge
from harness.campaign.missing_blocks import BLOCK, COVERAGE
from harness.campaign.search.spark_search import SparkSearch
from harness.campaign.spark_campaign import CampaignResult, SparkCampaign
from harness.campaign.spark_session import spark_session
from harness.campaign.store import CampaignStore, Manifest
from harness.campaign.tables import CampaignTables
from harness.explore.packed.search import Search
from harness.memo.interning import long_lived
from harness.model import find_model
from harness.record import Recorder
from harness.simulate.runs.plan import resolve
from harness.simulate.runs.session import run_plain
from harness.simulate.states.tables import Tables
from harness.simulate.strategies.by_name import Strategies

DAY = "2026-01-01"
WARM = 200
"""Runs for each core, or of the plain process, before a clock starts."""
GOAL_RATIO, GOAL_BYTES, GOAL_GB = 1.6, 12, 8


def plain(name: str, runs: int) -> tuple[float, list[str]]:
    """Return the seconds that one process takes for the runs with the seeds 0 to `runs` - 1, and their digests."""
    model, plan = resolve(name)
    tables, strategies = Tables(model), Strategies("random")
    digests: list[str] = []

    def make(seed: int) -> None:
        strategy = strategies.run(seed)
        assert strategy is not None
        recorder = Recorder(keep=False)
        run_plain(tables, plan, strategy, recorder)
        digests.append(recorder.digest())

    with long_lived():  # as a worker does
        for seed in range(min(WARM, runs)):
            make(seed)
        digests.clear()
        took = seconds(lambda: [make(seed) for seed in range(runs)])
    return took, digests


def seconds(work: Callable[[], object]) -> float:
    """Return how long something takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def campaign(spark: object, folder: Path, manifest: Manifest, runs: int) -> tuple[float, CampaignResult]:
    """Return the seconds that a campaign takes in a new folder, and what it came to."""
    going = SparkCampaign(folder, manifest, runs)
    start = time.perf_counter()
    outcome = going.run(spark, DAY)  # type: ignore[arg-type]
    return time.perf_counter() - start, outcome


def throughput(spark: object, folder: Path, arguments: argparse.Namespace) -> None:
    """Print runs per second of a campaign as the command line makes it, and of one plain process."""
    name, runs, cores = arguments.scenario, arguments.runs, arguments.cores
    alone, digests = plain(name, runs)
    print(f"one plain process     {runs:>10,} runs in {alone:8.1f} s {runs / alone:>10,.0f} runs/s")
    cell = cells([name])
    for label, coverage in (("campaign, no coverage", 0.0), (f"campaign, coverage {COVERAGE:g}", COVERAGE)):
        out = folder / f"covered-{coverage:g}"
        took, outcome = campaign(spark, out, Manifest(cell, "sample=0.01", coverage, arguments.block), runs)
        print(f"{label:<21} {outcome.runs:>10,} runs in {took:8.1f} s {runs / took:>10,.0f} runs/s "
              f"{alone / took:6.2f}x on {cores} cores (goal {GOAL_RATIO}x from 50,000 runs)")
        rows = CampaignTables(spark, CampaignStore(out)).frame("runs").select("seed", "digest").collect()  # type: ignore[arg-type]
        equal = [row["digest"] for row in sorted(rows)] == digests
        print(f"{'':<21} digests {'equal those of the plain process' if equal else 'DIFFER from the plain ones'}")


def tables(spark: object, folder: Path, arguments: argparse.Namespace) -> None:
    """Print how large stored events are, how long each check of the tables takes for a million, and what memory."""
    out = folder / "kept"
    manifest = Manifest(cells([arguments.scenario]), "all", COVERAGE, arguments.block)
    runs, took, size, events = arguments.kept, 0.0, 0, 0
    while not events or events < arguments.events:
        if events:
            runs = -(-runs * arguments.events // events) + 1
        took += campaign(spark, out, manifest, runs)[0]
        files = [block.files["events"] for block in CampaignStore(out).committed().values()]
        size, events = sum(file["bytes"] for file in files), sum(file["rows"] for file in files)
    print(f"\nall events kept       {runs:>10,} runs in {took:8.1f} s {events:>10,} events")
    print(f"events in Parquet     {size:>10,} bytes, {size / events:5.1f} bytes/event (goal at most {GOAL_BYTES})")
    opened = CampaignTables(spark, CampaignStore(out))  # type: ignore[arg-type]
    checks: dict[str, Callable[[CampaignTables], object]] = {
        "sizes and digests": lambda found: found.store.verify(found.blocks), "rejudge": judged_again, "rates": rates,
        "rates by faults": rates_by_faults, "reached": reached, "clusters": clusters,
    }
    for label, check in checks.items():
        with Watch() as watch:
            took = seconds(lambda check=check: check(opened))  # type: ignore[misc]
        memory = "not measured here" if watch.peak is None else f"{watch.peak / 1e9:.2f} GB"
        print(f"{label:<21} {took:>10.2f} s {took * 1e6 / events:>10.2f} s per million events, memory of all "
              f"processes {memory} (goal at most {GOAL_GB} GB)", flush=True)


def judged_again(opened: CampaignTables) -> None:
    """Judge every stored history again, and print how many agree."""
    found = rejudge(opened)
    runs, wrong = sum(one.runs for one in found), sum(one.disagreeing for one in found)
    print(f"judged again          {runs:>10,} histories, of which {runs - wrong:,} agree with what is recorded of them")


def searches(cores: int) -> None:
    """Print how long one exhaustive search takes on Spark and in one process, and whether each counts right."""
    case = next(case for case in CASES if case.name == "diary-01")
    model = find_model(case.model).make(dict(case.sizes), {}, history_variables=True)
    print(f"\n{case.model}, {case.counts[0]:,} states")
    made: dict[str, SparkSearch | Search] = {
        f"on Spark, {cores} cores": SparkSearch(model, case.invariants, master=f"local[{cores}]"),
        "in pure Python": Search(model, case.invariants, witnesses=True, engine="python"),
        "by the best engine": Search(model, case.invariants, witnesses=True, engine="auto"),
    }
    for label, search in made.items():
        start = time.perf_counter()
        result = search.run()
        took = time.perf_counter() - start
        right = (result.distinct, result.generated, result.depth) == case.counts
        print(f"{label:<21} {took:>10.2f} s {result.distinct:>10,} states {'right' if right else 'WRONG'}")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=50_000, help="runs whose throughput is measured")
    parser.add_argument("--kept", type=int, default=10_000, help="runs whose events are all kept and checked")
    parser.add_argument("--events", type=int, default=0, help="make more runs until there are so many stored events")
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--scenario", default="fencing-battle")
    parser.add_argument("--block", type=int, default=BLOCK)
    parser.add_argument("--no-search", action="store_true", help="leave the exhaustive search out")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, spark_session(f"local[{arguments.cores}]") as spark:
        folder = Path(name)
        warm = Manifest(cells([arguments.scenario]), "failing", 0.0, WARM // 4)
        campaign(spark, folder / "warm", warm, WARM * arguments.cores)
        if arguments.runs:
            throughput(spark, folder, arguments)
        tables(spark, folder, arguments)
        if not arguments.no_search:
            searches(arguments.cores)


if __name__ == "__main__":
    main()
