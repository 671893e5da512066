"""How what a search, a campaign and a session's replay cost grows with their size: whole processes, three sizes each.

    python benchmarks/growth.py [search|campaign|session]

Prints a table in Markdown for each, or for one. Nothing is asserted: machines differ, what a state, a run or an input
costs at one size beside another travels better. Campaigns need the extra `spark`, sessions the extra `gateway`.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from measure import Cost, Watch, check, fail, run, sizes

SEARCHES = (
    {"clients": 2, "brokers": 3, "txn-log-partitions": 2, "transactional-ids": 2},
    {"clients": 3, "brokers": 3, "transactional-ids": 2},
    {"clients": 3, "brokers": 3, "txn-log-partitions": 2, "transactional-ids": 2},
)
"""Sizes of diary 01, the smallest first."""
MEMORY = "6"
"""Gigabytes that a search may take."""
SCENARIO, RUNS = "rp-01-truncate-to-high-watermark-repaired", (5_000, 50_000, 200_000)
INPUTS = (1_000, 4_000, 16_000)
"""Requests and faults of drawn sessions, 30 connections to three brokers."""
Row = tuple[str, ...]


def kafka_proto(*arguments: str) -> Cost:
    """Run a command to its end and return what it cost."""
    ended = run([str(Path(sys.executable).with_name("kafka-proto")), *arguments])
    if ended.code:
        fail(f"kafka-proto {' '.join(arguments)} ended with code {ended.code}: {ended.errors.strip()[-500:]}")
    return ended.cost


def searches() -> Iterator[Row]:
    yield "distinct states", "CPU s", "us a state", "peak MB", "bytes a state"
    for size in SEARCHES:
        found, cost = check(["transactions/diary-01", *sizes(size), "--memory", MEMORY])
        states = int(found["distinct"])
        yield (f"{states:,}", f"{cost.cpu_seconds:.1f}", f"{cost.cpu_seconds / states * 1e6:.2f}",
               f"{cost.memory_bytes / 1e6:,.0f}", f"{cost.memory_bytes / states:,.0f}")


def campaigns() -> Iterator[Row]:
    yield "runs", "wall s", "ms a run", "peak MB", "files", "bytes a run"  # Spark's own processes tell no CPU time
    for runs in RUNS:
        with tempfile.TemporaryDirectory() as folder, Watch() as watch:
            out = Path(folder) / "out"
            cost = kafka_proto("campaign", SCENARIO, "--runs", str(runs), "--out", str(out))
            files = [path for path in out.rglob("*") if path.is_file()]
            held = sum(path.stat().st_size for path in files)
        yield (f"{runs:,}", f"{cost.wall_seconds:.0f}", f"{cost.wall_seconds / runs * 1e3:.2f}",
               f"{(watch.peak or 0) / 1e6:,.0f}", f"{len(files):,}", f"{held / runs:,.0f}")


def sessions() -> Iterator[Row]:
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
    from support.gateway.drawn_sessions import DrawnSession

    yield "inputs", "CPU s", "ms an input", "peak MB"
    for inputs in INPUTS:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "session.trail.jsonl"
            path.write_text(DrawnSession(1, inputs).recording.trail().text(), encoding="utf-8")
            cost = kafka_proto("replay", str(path))
        yield (f"{inputs:,}", f"{cost.cpu_seconds:.1f}", f"{cost.cpu_seconds / inputs * 1e3:.2f}",
               f"{cost.memory_bytes / 1e6:,.0f}")


PARTS: dict[str, Callable[[], Iterator[Row]]] = {"search": searches, "campaign": campaigns, "session": sessions}


def table(rows: Iterator[Sequence[str]]) -> None:
    """Print rows as they come, below a header."""
    for n, row in enumerate(rows):
        print(f"| {' | '.join(row)} |", flush=True)
        if n == 0:
            print("|" + "---|" * len(row), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", nargs="?", choices=PARTS)
    chosen = parser.parse_args().part
    for part in PARTS if chosen is None else (chosen,):
        print(f"{part}:")
        table(PARTS[part]())


if __name__ == "__main__":
    main()
