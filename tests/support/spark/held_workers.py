"""Workers of a campaign that wait for its driver, in place of `make_blocks`: so no test depends on which is faster.

They do not wait for ever: a driver that fails is a test that fails. Each function returns one that is made inside of
it, which Spark hands to its workers as a whole: they know the project, but not its tests. `workers_of` finds those of
a driver.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

MakeBlocks = Callable[..., Iterator[int]]
PATIENCE_S = 120


def one_block_until(over: Path) -> MakeBlocks:
    """Return what makes the first block of each part of a job, and no other; it ends when there is a file."""

    def make(tasks: Iterable[list[Any]], *rest: Any) -> Iterator[int]:
        import time

        from harness.campaign.spark_campaign import make_blocks

        for some in tasks:
            yield from make_blocks([some[:1]], *rest)
        end = time.monotonic() + PATIENCE_S
        while not over.exists():
            assert time.monotonic() < end, "the driver has not heard of an interrupt"
            time.sleep(0.02)

    return make


def second_block_after(parts: Path) -> MakeBlocks:
    """Return what makes the first block of each part of a job, and another one as soon as a folder is gone."""

    def make(tasks: Iterable[list[Any]], *rest: Any) -> Iterator[int]:
        import time

        from harness.campaign.spark_campaign import make_blocks

        for some in tasks:
            yield from make_blocks([some[:1]], *rest)
            end = time.monotonic() + PATIENCE_S
            while parts.exists():
                assert time.monotonic() < end, "the driver has not cleared away what is half-written"
            yield from make_blocks([some[1:2]], *rest)

    return make


def in_step_with(shown: Path, times: int) -> MakeBlocks:
    """Return what makes blocks, and after each of the first reports waits until its number is a line of a file."""

    def make(tasks: Iterable[list[Any]], *rest: Any) -> Iterator[int]:
        import time

        from harness.campaign.block_progress import BlockProgress
        from harness.campaign.spark_campaign import make_blocks

        report = BlockProgress.report
        told: list[int] = []

        def reported(self: BlockProgress, runs: int, failing: int) -> None:
            report(self, runs, failing)
            told.append(runs)
            end = time.monotonic() + PATIENCE_S
            while len(told) <= times and str(runs) not in shown.read_text(encoding="utf-8").split():
                assert time.monotonic() < end, f"the driver has not shown {runs} runs"
                time.sleep(0.02)

        BlockProgress.report = reported  # type: ignore[method-assign]
        try:
            yield from make_blocks(tasks, *rest)
        finally:
            BlockProgress.report = report  # type: ignore[method-assign]

    return make


def workers_of(driver: int) -> list[int]:
    """Return the Python workers of a driver: children of the daemon that its Java process has."""
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            parents[int(stat.parent.name)] = int(stat.read_text(encoding="utf-8").rpartition(")")[2].split()[1])
    of = parents.get
    return [number for number in sorted(parents) if of(of(of(number, 0), 0), 0) == driver]
