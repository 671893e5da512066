"""A campaign: which blocks of runs are missing, and how they get made on Spark, whatever happens meanwhile.

Starting a campaign again makes what is missing. Whoever is killed, driver or worker, takes with it only the blocks that
were not committed; those are made again, with the same rows.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from harness.campaign.cells import Cell, code_version
from harness.campaign.pulse import Pulse, under_way
from harness.campaign.spark_job import Job, last_words
from harness.campaign.store import PARTS, Block, Manifest, Store
from harness.campaign.worker import Task, Worker
from harness.model import Refusal
from harness.record.counted import some_of
from harness.record.files import reason_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BLOCK = 500
"""Seeds of a block, if nothing else is said: seconds of work."""
COVERAGE = 0.02
"""The part of the blocks whose coverage is measured, if nothing else is said: it takes several times as long."""
COVERED_COST = 6
"""How many times as long a block takes whose coverage is measured."""
PER_CORE, PER_TASK = 4, 16
"""Tasks for each core, at least; and the blocks of a task, at most."""
LOOK = 0.25
"""Seconds between two looks at what is committed."""
STOPPED = "the campaign cannot go on: "
"""How a worker's last words begin."""

Progress = Callable[[int, int, str], None]


@attrs.define
class Outcome:
    """What a campaign came to, so far."""

    planned: int
    """Runs that were asked for."""
    found: int
    """Those of them that were there before."""
    runs: int = 0
    """Those that are there now."""
    failing: int = 0
    errors: int = 0
    steps: int = 0
    interrupted: bool = False

    @property
    def complete(self) -> bool:
        return not self.interrupted


def covered(manifest: Manifest, first: int) -> bool:
    """Say whether the coverage of the block that begins with a seed is measured: every nth one, from the first on."""
    if manifest.coverage <= 0:
        return False
    return (first // manifest.block) % max(1, round(1 / manifest.coverage)) == 0


def missing(manifest: Manifest, runs: int, committed: Iterable[Block]) -> list[Task]:
    """Return the blocks that are to be made so that each cell has the runs with the seeds 0 to `runs` - 1."""
    made: dict[str, list[Block]] = {cell.key: [] for cell in manifest.cells}
    for block in committed:
        made.setdefault(block.cell, []).append(block)
    return [
        Task(cell, first, last, manifest.keep, covered(manifest, first))
        for cell in manifest.cells
        for first, last in _gaps(cell, manifest.block, runs, made[cell.key])
    ]


def _gaps(cell: Cell, size: int, runs: int, made: Sequence[Block]) -> Iterator[tuple[int, int]]:
    """Yield the seeds that a cell lacks, from the first up to the last, which is not one of them, in blocks."""
    if any(block.runs < block.last - block.first for block in made):
        return  # a systematic search came to its end
    at = 0
    for block in [*sorted(made, key=lambda block: block.first), None]:
        until = runs if block is None else min(block.first, runs)
        while at < until:
            last = until if cell.strategy == "systematic" else min((at // size + 1) * size, until)
            yield at, last
            at = last
        at = max(at, 0 if block is None else block.last)


def spread(tasks: Sequence[Task], cores: int) -> list[list[Task]]:
    """Return blocks in lists to be worked on, those that take long first, neighbours together."""
    long = [[task] for task in tasks if task.covered]
    short = [task for task in tasks if not task.covered]
    size = max(1, min(PER_TASK, -(-len(short) // (cores * PER_CORE))))
    return [*long, *(short[n : n + size] for n in range(0, len(short), size))]


_WORKER: list[Worker] = []
"""In a worker: what it has learned, which lasts as long as it does."""


def make_blocks(
    tasks: Iterable[list[Task]], folder: str, day: str, code: dict[str, str], token: str = ""
) -> Iterator[int]:
    """Make blocks, each of them committed as soon as it is made; those that somebody else committed are left out.

    Nothing is committed any more when the folder has another driver than the one with the token.
    """
    if not _WORKER:
        gc.disable()
        gc.freeze()
        _WORKER.append(Worker())
    for package, version in sorted(code.items()):
        if code_version(package) != version:
            raise RuntimeError(f"{STOPPED}a worker has another version of {package} than the driver; install the "
                               "same one everywhere.")
    store = Store(Path(folder), token)
    for task in (task for some in tasks for task in some):
        if store.is_committed(task.name):
            continue
        pulse = Pulse(store.folder / PARTS, task.name)
        try:
            rows = _WORKER[0].make(task, pulse.beat)
            store.commit(task.cell, task.first, task.last, day, rows.tables(), rows.counts)
        except OSError as error:
            why = os.strerror(error.errno) if error.errno else reason_of(error)  # Arrow has a text of its own
            raise RuntimeError(f"{STOPPED}{folder} cannot be written to, {why}; make room there and start it again."
                               ) from None
        except Refusal as error:
            raise RuntimeError(f"{STOPPED}{error}.") from None
        finally:
            pulse.over()
        yield rows.counts["runs"]


class Campaign:
    """A campaign in progress; `progress(done runs, planned runs, message)` hears of it several times a second."""

    def __init__(
        self, folder: Path, manifest: Manifest, runs: int, progress: Progress = lambda *_: None,
        heard: Callable[[], None] = lambda: None,
    ) -> None:
        self.heard = heard
        """Is told that an interrupt has come to where it is dealt with."""
        self.store = Store(folder)
        self.manifest = manifest
        self.runs = runs
        self.progress = progress

    def alone(self) -> AbstractContextManager[None]:
        """Make the folder ready, and have it as the only driver until the block ends. Raises Refusal."""
        return self.store.alone(self.manifest)

    def open(self) -> list[Task]:
        """Return what is missing in the folder, which nobody else works on. Raises Refusal."""
        committed = self.store.committed()
        self.store.verify(committed.values())
        return missing(self.manifest, self.runs, committed.values())

    def nothing_missing(self) -> Outcome:
        """Return what a campaign came to that is complete."""
        outcome = self._count({})
        outcome.found = outcome.runs
        return outcome

    def begin(self, message: str) -> None:
        """Show what is there, and what goes on before the first run is made."""
        now = self._count({})
        self.progress(now.runs, now.planned, message)

    def run(self, spark: SparkSession, day: str) -> Outcome:
        """Make what is missing. An interrupt ends it in order, and everything committed is kept. Raises Refusal."""
        with self.alone():
            return self._run(spark, day)

    def _run(self, spark: SparkSession, day: str) -> Outcome:
        tasks, outcome = self.open(), self.nothing_missing()
        if not tasks:
            return outcome
        (self.store.folder / PARTS).mkdir(exist_ok=True)
        job = self._job(spark, tasks, day)
        known: dict[str, Block] = {}
        try:
            while not job.over.wait(LOOK):
                known = self.store.committed(known)
                now, (runs, failing) = self._count(known), under_way(self.store.folder / PARTS, known)
                self.progress(min(now.runs + runs, now.planned), now.planned, f"{now.failing + failing:,} failing")
        except KeyboardInterrupt:
            self.heard()
            outcome.interrupted = True
            job.cancel()
        self.store.clear_parts()
        done = self._count({})
        done.found, done.interrupted = outcome.found, outcome.interrupted
        if job.failure is not None and not outcome.interrupted:
            kept = f"{some_of(done.runs, done.planned, 'run', 'are')} kept"
            raise Refusal(f"{last_words(job.failure, STOPPED)} ({kept})")
        self.progress(done.runs, done.planned, f"{done.failing:,} failing")
        return done

    def _job(self, spark: SparkSession, tasks: Sequence[Task], day: str) -> Job:
        """Start the Spark job that makes blocks."""
        context = spark.sparkContext
        parts = spread(tasks, context.defaultParallelism)
        where = os.path.abspath(self.store.folder)
        code = {task.cell.package: task.cell.code for task in tasks}
        token = self.store.token

        def work(some: Iterable[list[Task]]) -> Iterable[int]:
            return make_blocks(some, where, day, code, token)

        return Job(context, context.parallelize(parts, len(parts)).mapPartitions(work))

    def _count(self, known: dict[str, Block]) -> Outcome:
        blocks = known or self.store.committed()
        outcome = Outcome(self.runs * len(self.manifest.cells), 0)
        for block in blocks.values():
            outcome.runs += block.runs
            outcome.failing += block.failing
            outcome.errors += block.errors
            outcome.steps += block.steps
        return outcome
