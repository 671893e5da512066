"""Exhaustive search on Spark: level by level, every level in files, so that a search that was killed can go on.

A job expands the files of a level, sends each successor to the part that its key names, and keeps there what is in no
earlier level's file of that part. Visited states are never shuffled, nor kept in memory beyond the keys of a part.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from harness.campaign.durable_files import stamp, to_disk
from harness.campaign.locks import alone, is_abandoned
from harness.campaign.search.expander import (
    STOPPED,
    Expander,
    Expansion,
    LevelTask,
    SearchRequest,
    grow,
    lead,
    settle,
    version_of,
)
from harness.campaign.search.levels import CODE, HITS, LOG, Level, Levels
from harness.campaign.search.state_columns import KEYS, Keys, to_bytes
from harness.campaign.spark_job import SparkJob, last_words
from harness.campaign.spark_session import checked_master, spark_session
from harness.explore.checkpoint import asked_of
from harness.explore.packed.result import Progress, Result, Violation, first_path, ranked
from harness.model import Model, Refusal, find_model
from harness.record.files import reason_of
from harness.record.wording import counted

if TYPE_CHECKING:
    from pyspark import SparkContext

LEAST_PARTS, PER_CORE = 8, 4
"""Parts that states are spread over: at least, and for each core."""
PER_TASK = 2_000
"""States that are worth a task of their own."""
SCRATCH = "kafka-proto-search-"
"""How the names of temporary folders begin."""
LOOK = 0.02
"""Seconds between two looks at a job."""


class SparkSearch:
    """One search; `run` does it, or goes on with what its folder has. `worker_cpu` are seconds of all workers."""

    def __init__(
        self, model: Model, invariants: tuple[str, ...], *, folder: Path | None = None, master: str = "local[*]",
        parts: int = 0, stop: bool = True, deadlock: bool = False,
        progress: Progress = lambda distinct, generated, depth, queue: None,
    ) -> None:
        if model.faulty or model.actors:
            raise Refusal(f"{model.name} has actors or faults, which --engine spark cannot search yet; use another")
        url = checked_master(master)
        if folder is None and not url.startswith("local"):
            raise Refusal("on a cluster the search is kept in a folder that all machines share; name it with "
                          "--checkpoint")
        chosen = [model.property(name) for name in invariants]
        chosen += [prop for prop in model.properties if prop.form == "sometimes"]
        self.model = model
        self.kinds = {prop.name: "sometimes" if prop.form == "sometimes" else "invariant" for prop in chosen}
        self.stop = stop
        package = find_model(model.name).build.__module__.partition(".")[0]
        self.request = SearchRequest(
            model.name, dict(model.sizes), dict(model.settings), model.history_variables, tuple(self.kinds), deadlock,
            package, version_of(package),
        )
        self.expander = Expander(self.request)
        self.master = master
        self.parts = parts
        self.checkpoint = folder
        self.progress = progress
        self.wants_stop = False
        """Set from outside, by a signal: the search ends, and keeps the levels that are done."""
        self.interrupted = False
        self.worker_cpu = 0.0
        self.levels: list[Level] = []
        self._stack = ExitStack()
        self._context: SparkContext | None = None
        self._store = Levels(folder or Path())

    def run(self) -> Result:
        """Search until done, violated or interrupted. Raises Refusal."""
        with self._stack:
            if self.checkpoint is None:
                for left in Path(tempfile.gettempdir()).glob(f"{SCRATCH}*"):
                    if is_abandoned(left):
                        shutil.rmtree(left, ignore_errors=True)
                scratch = tempfile.mkdtemp(prefix=SCRATCH)
                self._stack.callback(shutil.rmtree, scratch, ignore_errors=True)
                self._store = Levels(Path(scratch))
            flags = {"stop": self.stop, "deadlock": self.request.deadlock}
            asked = {**asked_of(self.model, tuple(self.kinds), flags), CODE: self.request.code}
            self._store.look(asked)
            self._stack.enter_context(alone(self._store.folder, "--checkpoint"))
            self.levels = self._store.begin(asked)
            if self.levels:
                self.parts = self.levels[0].parts
            else:
                self._first_level()
            before = self.levels[-1].cpu
            while self.levels[-1].states and not self._is_decided() and not self.interrupted:
                self._next_level()
            result = self._result()
            self.worker_cpu += self.levels[-1].cpu - before
            return result

    @property
    def context(self) -> SparkContext:
        """Spark, started when it is first needed."""
        if self._context is None:
            log = None if self.checkpoint is None else self.checkpoint / LOG
            self._context = self._stack.enter_context(spark_session(self.master, log, True)).sparkContext
        return self._context

    def _is_decided(self) -> bool:
        return self.stop and any(hit["kind"] != "sometimes" for hit in self.levels[-1].hits)

    def _task(self) -> LevelTask:
        settled = frozenset(hit["name"] for hit in self.levels[-1].hits) if self.levels else frozenset[str]()
        return LevelTask(self.request, os.path.abspath(self._store.folder), self.parts, settled,
                    sum(level.states for level in self.levels))

    def _first_level(self) -> None:
        self.parts = self.parts or max(LEAST_PARTS, PER_CORE * self.context.defaultParallelism)
        expander, task, expansion = self.expander, self._task(), Expansion()
        expansion.generated = len(expander.starts)
        scratch = self._store.scratch(1)
        rows = []
        try:
            for part, table in expander.coder.tables(expander.starts, self.parts):
                for _, row in settle(task, part, iter([(part, to_bytes(table))]), [], scratch):
                    rows.append(row)
        except RuntimeError as error:
            raise Refusal(last_words(error, STOPPED)) from None
        self._commit(scratch, expansion, rows)

    def _next_level(self) -> None:
        """Make the level after the last one, unless it is interrupted."""
        task, parts, last = self._task(), self.parts, self.levels[-1]
        scratch = self._store.scratch(last.number + 1)
        seen = [[path for level in self.levels for path in level.of_part(part)] for part in range(parts)]
        tasks = self._tasks(last)

        def expanded(files: Iterable[str]) -> Iterable[tuple[int, bytes | Expansion]]:
            return grow(task, list(files))

        def settled(number: int, came: Iterable[tuple[int, bytes | Expansion]]) -> Iterable[Any]:
            if tasks == parts:
                yield from settle(task, number, iter(came), seen[number], scratch)
                return
            by_part: dict[int, list[Any]] = {}
            for part, content in came:
                by_part.setdefault(part, []).append((part, content))
            for part, some in sorted(by_part.items()):
                yield from settle(task, part, iter(some), seen[part], scratch)

        sent = self._spread(last).mapPartitions(expanded).partitionBy(tasks, lambda part: part % tasks)
        try:
            found = self._collect(sent.mapPartitionsWithIndex(settled), interruptible=True)
        except Refusal:
            self._store.discard(scratch)
            raise
        if found is None:
            self._store.discard(scratch)
            self.interrupted = True
            return
        expansion = Expansion()
        for some, _ in found:
            expansion.add(some)
        self._commit(scratch, expansion, [row for _, row in found])
        self.interrupted = self.wants_stop and self.levels[-1].states > 0 and not self._is_decided()

    def _tasks(self, level: Level) -> int:
        """Return how many tasks are worth their while for so many states."""
        return max(1, min(self.parts, level.states // PER_TASK))

    def _spread(self, level: Level) -> Any:
        """Return the files of a level, distributed."""
        return self.context.parallelize(level.paths(), min(len(level.files), self._tasks(level)))

    def _collect(self, data: Any, interruptible: bool = False) -> list[Any] | None:
        """Return what a distributed data set has, or None if it is interrupted. Raises Refusal."""
        job = SparkJob(self.context, data)
        last, distinct = self.levels[-1], sum(level.states for level in self.levels)
        while not job.over.wait(LOOK):
            left = last.states - int(last.states * job.done()) if interruptible else 0
            self.progress(distinct, last.generated, last.number, left)
            if interruptible and self.wants_stop:
                job.cancel()
                return None
        if job.failure is not None:
            raise Refusal(f"{last_words(job.failure, STOPPED)} ({counted(last.number, 'level', 'are')} kept)")
        return job.found

    def _commit(self, scratch: str, expansion: Expansion, rows: list[dict[str, Any] | None]) -> None:
        """Let what was made be the next level."""
        number = len(self.levels) + 1
        last = self.levels[-1] if self.levels else None
        hits = list(last.hits) if last is not None else []
        known = {hit["name"] for hit in hits}
        fresh: dict[str, tuple[int, Keys]] = {}
        for depth, group in ((number, expansion.outside), (number - 1, expansion.hits)):
            fresh |= {name: (depth, Keys.joined(keys)) for name, keys in group.items() if name not in known}
        keys = self._put_keys(self._store.folder / scratch, {name: keys for name, (_, keys) in sorted(fresh.items())})
        hits += [{"name": name, "kind": self.kinds.get(name, "deadlock"), "depth": depth, "level": number}
                 for name, (depth, _) in sorted(fresh.items())]
        files = sorted((row for row in rows if row is not None), key=lambda row: int(row["part"]))
        level = Level(
            number, sum(file["states"] for file in files), files, expansion.generated + (last.generated if last else 0),
            dict(sorted((Counter(last.actions if last else {}) + expansion.actions).items())), hits, keys, self.parts,
            expansion.cpu + (last.cpu if last else 0.0),
        )
        self._store.commit(scratch, level)
        self.levels.append(level)
        self.progress(sum(each.states for each in self.levels), level.generated, number, level.states)

    def _put_keys(self, folder: Path, keys: Mapping[str, Keys]) -> dict[str, Any] | None:
        if not keys:
            return None
        tables = [pa.table({"name": pa.array([name] * len(some), pa.string()), "hi": some.high, "lo": some.low})
                  for name, some in keys.items()]
        try:
            pq.write_table(pa.concat_tables(tables), folder / HITS, compression="zstd")
            to_disk(folder / HITS)
            return {"file": HITS, **stamp(folder / HITS)}
        except OSError as error:
            raise Refusal(f"cannot write {folder / HITS}: {reason_of(error)}; give another folder with --checkpoint"
                          ) from None

    def _keys_of(self, hit: Mapping[str, Any]) -> Keys:
        table = pq.read_table(self._store.folder / self.levels[hit["level"] - 1].folder / HITS)
        mine = table.filter(pc.equal(table["name"], hit["name"]))
        return Keys.joined([Keys.of(mine.combine_chunks())])

    def _result(self) -> Result:
        last = self.levels[-1]
        sizes = [level.states for level in self.levels if level.states]
        ways = self._ways({hit["name"]: hit for hit in last.hits})
        expander = self.expander

        def violation(name: str, kind: str) -> tuple[Violation, list[int]]:
            def key(state: int) -> int:
                return expander.coder.keys([state]).numbers().pop()

            return expander.steadily(lambda: first_path(
                expander.space, expander.chosen, name, kind, expander.starts, key,
                [keys.numbers() for keys in ways[name]],
            ))

        violations, witnesses = ranked((violation(hit["name"], hit["kind"]) for hit in last.hits), tuple(self.kinds))
        complete = not self.interrupted and not (violations and self.stop)
        return Result(
            len(expander.starts), sum(sizes), last.generated, len(sizes), complete, violations, witnesses,
            dict(last.actions), expander.space.layout.bits, "spark", KEYS,
        )

    def _ways(self, hits: Mapping[str, Mapping[str, Any]]) -> dict[str, list[Keys]]:
        """Return for each hit the states of each level that lie on a shortest way to it, going back level by level."""
        ways = {name: [self._keys_of(hit)] for name, hit in hits.items()}
        task = self._task()
        for depth in range(max((hit["depth"] for hit in hits.values()), default=1) - 1, 0, -1):
            targets = {name: ways[name][0] for name, hit in hits.items() if hit["depth"] > depth}
            level = self.levels[depth - 1]

            def sources(files: Iterable[str], wanted: Mapping[str, Keys] = targets) -> Iterator[dict[str, Keys]]:
                return lead(task, list(files), wanted)

            found = self._collect(self._spread(level).mapPartitions(sources)) or []
            for name in targets:
                ways[name].insert(0, Keys.joined(some[name] for some in found))
        return ways
