"""The driver of a campaign: has the missing blocks of runs made on Spark, whatever happens meanwhile.

Starting a campaign again makes what is missing. A driver or worker that is killed takes with it only the blocks that
were not committed; those are made again, with the same rows.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from harness.campaign.block_progress import BlockProgress, under_way
from harness.campaign.cells import code_version
from harness.campaign.missing_blocks import missing, spread
from harness.campaign.spark_job import SparkJob, last_words, unwritable
from harness.campaign.store import PARTS, CampaignStore, CommittedBlock, Manifest
from harness.campaign.worker import BlockTask, Worker
from harness.model import Refusal
from harness.model.live import tell
from harness.record.wording import some_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOOK = 0.25
"""Seconds between two looks at what is committed."""
STOPPED = "the campaign cannot go on: "
"""How the message of a failed worker begins."""

Progress = Callable[[int, int, str], None]


@attrs.define
class CampaignResult:
    """The counts of a campaign, so far."""

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


_WORKER: list[Worker] = []
"""In a worker: what it has learned, which lasts as long as it does."""


def make_blocks(
    tasks: Iterable[list[BlockTask]], folder: str, day: str, code: dict[str, str], token: str = ""
) -> Iterator[int]:
    """Make blocks, each of them committed as soon as it is made; blocks that another process committed are left out.

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
    store = CampaignStore(Path(folder), token)
    for task in (task for some in tasks for task in some):
        if store.is_committed(task.name):
            continue
        progress = BlockProgress(store.folder / PARTS, task.name)
        try:
            rows = _WORKER[0].make(task, progress.report)
            store.commit(task.cell, task.first, task.last, day, rows.tables(), rows.counts)
        except OSError as error:
            raise unwritable(STOPPED, folder, error) from None
        except Refusal as error:
            raise RuntimeError(f"{STOPPED}{error}.") from None
        finally:
            progress.clear()
        yield rows.counts["runs"]


@attrs.define(eq=False)
class SparkCampaign:
    """A campaign in progress; `progress(done runs, planned runs, message)` is called several times a second."""

    store: CampaignStore = attrs.field(converter=CampaignStore)
    manifest: Manifest
    runs: int
    progress: Progress = lambda *_: None
    heard: Callable[[], None] = lambda: None
    """Called when an interrupt has arrived where it is handled."""

    def alone(self) -> AbstractContextManager[None]:
        """Make the folder ready, and have it as the only driver until the block ends. Raises Refusal."""
        return self.store.alone(self.manifest)

    def open(self) -> list[BlockTask]:
        """Return what is missing in the folder, which no other process works on. Raises Refusal."""
        committed = self.store.committed()
        self.store.verify(committed.values())
        return missing(self.manifest, self.runs, committed.values())

    def nothing_missing(self) -> CampaignResult:
        """Return the counts of a campaign that is complete."""
        outcome = self._count(self.store.committed())
        outcome.found = outcome.runs
        return outcome

    def begin(self, message: str) -> None:
        """Show what is there, and what goes on before the first run is made."""
        now = self._count(self.store.committed())
        self.progress(now.runs, now.planned, message)

    def run(self, spark: SparkSession, day: str) -> CampaignResult:
        """Make what is missing. An interrupt ends it in order, and everything committed is kept. Raises Refusal."""
        with self.alone():
            return self._run(spark, day)

    def _run(self, spark: SparkSession, day: str) -> CampaignResult:
        tasks, outcome = self.open(), self.nothing_missing()
        if not tasks:
            return outcome
        (self.store.folder / PARTS).mkdir(exist_ok=True)
        job = self._job(spark, tasks, day)
        known = self.store.committed()
        try:
            while not job.over.wait(LOOK):
                known = self._look(known)
                now, (runs, failing) = self._count(known), under_way(self.store.folder / PARTS, known)
                self.progress(min(now.runs + runs, now.planned), now.planned, f"{now.failing + failing:,} failing")
        except KeyboardInterrupt:
            self.heard()
            outcome.interrupted = True
            job.cancel()
        self.store.end_commits()
        self.store.clear_parts()
        done = self._count(self._look(known))
        done.found, done.interrupted = outcome.found, outcome.interrupted
        if job.failure is not None and not outcome.interrupted:
            kept = f"{some_of(done.runs, done.planned, 'run', 'are')} kept"
            raise Refusal(f"{last_words(job.failure, STOPPED)} ({kept})")
        self.progress(done.runs, done.planned, f"{done.failing:,} failing")
        return done

    def _job(self, spark: SparkSession, tasks: Sequence[BlockTask], day: str) -> SparkJob:
        """Start the Spark job that makes blocks."""
        context = spark.sparkContext
        parts = spread(tasks, context.defaultParallelism)
        where = os.path.abspath(self.store.folder)
        code = {task.cell.package: task.cell.code for task in tasks}
        token = self.store.token

        def work(some: Iterable[list[BlockTask]]) -> Iterable[int]:
            return make_blocks(some, where, day, code, token)

        return SparkJob(context, context.parallelize(parts, len(parts)).mapPartitions(work))

    def _look(self, known: Mapping[str, CommittedBlock]) -> dict[str, CommittedBlock]:
        """Return the blocks that are committed now, and tell of those that were not `known`."""
        now = self.store.committed(known)
        for name in sorted(now.keys() - known.keys()):
            tell("block committed", block=name, runs=now[name].runs, failing=now[name].failing)
        return now

    def _count(self, blocks: Mapping[str, CommittedBlock]) -> CampaignResult:
        outcome = CampaignResult(self.runs * len(self.manifest.cells), 0)
        for block in blocks.values():
            outcome.runs += block.runs
            outcome.failing += block.failing
            outcome.errors += block.errors
            outcome.steps += block.steps
        return outcome
