"""Every history of a campaign judged again, from the stored events alone, by the checkers that judge recorded files."""

from __future__ import annotations

import gc
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import groupby, pairwise
from operator import itemgetter
from pathlib import Path
from typing import Any, TypeVar

import attrs
import pyarrow as pa

from harness.campaign import logs
from harness.campaign.cells import Cell
from harness.campaign.event_columns import Joiner
from harness.campaign.spark_job import SparkJob, last_words
from harness.campaign.store import CommittedBlock, read
from harness.campaign.tables import CampaignTables
from harness.model import Model, Refusal, Value, decode
from harness.record import Event, History, Recorder, header_of
from harness.record.events import INITIAL
from harness.record.history import all_types
from harness.record.recorded_events import event_of
from harness.verify.isolation.clients import Clients, judged
from harness.verify.judge import JudgedFile, Rejudge
from harness.verify.judge_cache import KnownEvent, Recall
from harness.verify.spec_ways import where

MOST_REMEMBERED = 30_000
"""The most values and turns whose meaning is remembered."""
RARELY = (200_000, 20, 20)
"""How often the garbage collector walks through the tables of a judge."""
MOST_TASKS = 2_000
"""Tasks on Spark: what a worker has learned it keeps from one to the next."""
LOOK = 0.25
"""Seconds between two looks at how far it is."""
STOPPED = "histories are not judged: "
EXPECTED = frozenset({"property", "isolation"})
"""Findings that a run's row may have as well; else there is another kind, too."""
MOST_SHOWN = 5
"""Runs of a block that are listed one by one."""
COLUMNS = ["seed", "n", "at_us", "turn", "values", "violated"]
MOST_RECALLED = 20_000
"""Events of a run that is judged with what is remembered; of longer ones the steps alone would fill the memory."""
Row = tuple[int, int, int | None, str, list[str], str | None]
Step = tuple[int, int | None, KnownEvent, Mapping[str, str]]
"""Number, time, what happens, and what is said to fail after it."""
Progress = Callable[[int, int, str], None]
K = TypeVar("K")
V = TypeVar("V")


@attrs.frozen
class RunFinding:
    """A run whose stored events are not what its row says, or not what the spec allows."""

    cell: str
    seed: int
    kinds: tuple[str, ...]
    """As `JudgedFile.findings` names them, and `digest`."""
    sentence: str


@attrs.frozen
class Rejudged:
    """The outcome of judging the stored histories of a cell."""

    cell: str
    what: str
    runs: int
    events: int
    kinds: Mapping[str, int]
    """How many runs there are with each kind of finding. `property` and `isolation` are what the run's row has as well.
    """
    refined: int
    """Runs that were checked against a spec."""
    disagreeing: int
    """Runs with any other kind of finding."""
    findings: tuple[RunFinding, ...]
    """Some of these runs, the first ones."""

    @property
    def ok(self) -> bool:
        """Whether nothing was found but violations that the runs' rows have as well."""
        return not self.disagreeing


def rejudge(
    tables: CampaignTables, progress: Progress = lambda *_: None, heard: Callable[[], None] = lambda: None
) -> list[Rejudged]:
    """Judge every stored history again, on Spark; return the outcome for each cell. Raises Refusal.

    `progress(events done, events stored, message)` is called meanwhile. An interrupt ends it; then `heard` is called.
    """
    kept = [block for block in tables.blocks if "events" in block.files]
    folder, cells = str(tables.store.folder.resolve()), tables.cells
    if not kept:
        return []

    def work(blocks: Iterable[CommittedBlock]) -> Iterator[Rejudged]:
        gc.enable()  # a judge whose tables are too large leaves them for the collector; workers have it turned off
        gc.set_threshold(*RARELY)
        for block in blocks:
            try:
                yield judge_block(Path(folder), block, cells[block.cell])
            except Refusal as error:
                raise RuntimeError(f"{STOPPED}{error}.") from None

    context = tables.spark.sparkContext
    job = SparkJob(context, context.parallelize(kept, min(len(kept), MOST_TASKS)).mapPartitions(work))
    planned = sum(block.files["events"]["rows"] for block in kept)
    try:
        while not job.over.wait(LOOK):
            progress(round(job.done() * planned), planned, "")
    except KeyboardInterrupt:
        heard()
        job.cancel()
        raise
    if job.failure is not None:
        raise Refusal(last_words(job.failure, STOPPED))
    progress(planned, planned, "")
    return _together(job.found)


def _together(parts: Iterable[Rejudged]) -> list[Rejudged]:
    found: dict[str, Rejudged] = {}
    for part in parts:
        old = found.get(part.cell)
        if old is not None:
            part = Rejudged(
                old.cell, old.what, old.runs + part.runs, old.events + part.events,
                dict(sorted((Counter(old.kinds) + Counter(part.kinds)).items())), old.refined + part.refined,
                old.disagreeing + part.disagreeing, (*old.findings, *part.findings)[:MOST_SHOWN],
            )
        found[part.cell] = part
    return list(found.values())


RunJudge = Callable[[Mapping[str, Any], Sequence[Row]], tuple[tuple[str, ...], str, bool]]
"""Says of a run and its events the kinds of findings, a sentence for the first, and whether it was held to a spec."""
_JUDGES: dict[str, RunJudge] = {}
"""In a worker: what was learned about the cell that was judged last."""


def judge_block(folder: Path, block: CommittedBlock, cell: Cell) -> Rejudged:
    """Judge the stored histories of a block. Raises Refusal for a damaged file."""
    if block.cell not in _JUDGES:
        _JUDGES.clear()
        _JUDGES[block.cell] = _judge_of(cell)
    judge = _JUDGES[block.cell]
    runs = {run["seed"]: run for run in _runs(folder / block.files["runs"]["path"])}
    kinds: Counter[str] = Counter()
    findings: list[RunFinding] = []
    judged = events = refined = disagreeing = 0
    for seed, group in groupby(_rows(folder / block.files["events"]["path"]), key=itemgetter(0)):
        rows = list(group)
        some, sentence, is_refined = judge(runs[seed], rows)
        kinds.update(some)
        judged, events, refined = judged + 1, events + len(rows), refined + is_refined
        if set(some) - EXPECTED:
            disagreeing += 1
            findings.append(RunFinding(block.cell, seed, some, sentence))
    return Rejudged(block.cell, cell.what, judged, events, dict(sorted(kinds.items())), refined,
                    disagreeing, tuple(findings[:MOST_SHOWN]))


def _judge_of(cell: Cell) -> RunJudge:
    """Return the judge of a cell's runs. What this code cannot build any more is a finding."""
    if cell.is_foreign:
        return partial(logs.judged, cell.settings[logs.LEVEL])
    try:
        return BlockJudge(cell)
    except Refusal as error:
        said = f"this code cannot build the model: {error}"
        return lambda run, rows: (("model",), said, False)


class BlockJudge:
    """Judges stored runs of one cell, and remembers what their texts mean and what was seen of their steps."""

    def __init__(self, cell: Cell) -> None:
        self._cell = cell
        self._model = cell.build()
        self._rejudge = Rejudge(self._model)
        self._reader = EventReader(self._model)
        self._header = header_of(cell.trail(0), self._model, "plain")

    def __call__(self, run: Mapping[str, Any], rows: Sequence[Row]) -> tuple[tuple[str, ...], str, bool]:
        """Return the kinds of findings about a run, a sentence for the first, and whether it was held to a spec."""
        try:
            found, digest = self.judged(run, rows)
        except Exception as error:
            return ("record",), f"the stored events are no history of {self._cell.model}: {where(error)}", False
        kinds, sentence = found.findings, _sentence(found) if found.findings else ""
        seen, said = sorted({breach.anomaly for breach in found.isolation}), run.get("anomalies")
        if said is not None and said != seen:
            kinds = tuple(dict.fromkeys((*kinds, "verdict")))
            sentence = f"clients saw {', '.join(seen) or 'nothing'}; the run's row says {', '.join(said) or 'nothing'}"
        if digest != run["digest"]:
            kinds = *kinds, "digest"
            sentence = sentence or "the stored events do not have the digest of the run"
        return kinds, sentence, found.refined is not None

    def judged(self, run: Mapping[str, Any], rows: Sequence[Row]) -> tuple[JudgedFile, str]:
        """Return the judgement on a run, and the digest of its events."""
        recall, end = self._rejudge.recall, _end(run, len(rows))
        recall.make_room()
        header = {**self._header, "seed": run["seed"]}
        if len(rows) <= MOST_RECALLED:
            with suppress(Exception):  # whatever it is that is no history: the way below says what is wrong
                steps = self._reader.steps(recall, rows)
                return self._seen(self._rejudge.moves(header, end, steps), steps), _digest(rows, steps)
        events, digest = self._reader.events(rows)
        found = self._rejudge.recorded(History(header, events, end, run["digest"]))
        return attrs.evolve(found, isolation=judged(self._model, events)), digest

    def _seen(self, found: JudgedFile, steps: Sequence[Step]) -> JudgedFile:
        """Return a judgement with what clients saw."""
        clients = Clients(self._model)
        if not clients.are_judged:
            return found
        for n, _, move, _ in steps:
            clients.known(n, move.event)
        return attrs.evolve(found, isolation=clients.breaches())


def _end(run: Mapping[str, Any], events: int) -> dict[str, Any]:
    """Return the end line of a history as the run's row has it."""
    verdict: dict[str, Any] = {"ok": run["violated"] is None}
    if not verdict["ok"]:
        verdict |= {name: run[name] for name in ("violated", "reason", "step", "kind")}
    return {"end": events - 1, "digest": run["digest"], "verdict": verdict}


def _digest(rows: Sequence[Row], steps: Iterable[Step]) -> str:
    """Return the digest of events."""
    recorder = Recorder(keep=False)
    for (n, at_us, move, _), row in zip(steps, rows, strict=True):
        recorder.add(n, at_us, move.text, _failing(row[-1]))
    return recorder.digest()


def _failing(violated: str | None) -> str:
    return "" if violated is None else f',"violated":{violated}'


def _sentence(found: JudgedFile) -> str:
    """Return the first thing that is wrong with a history."""
    said = [*found.differs, *(oddity.sentence for oddity in found.odd)]
    if found.explanation is not None:
        said.append(f"step {found.explanation.step} is not a step of the spec")
    if found.departed is not None:
        said.append(f"step {found.departed.step}: {found.departed.sentence}")
    return [*said, *(broken.reason for broken in found.broken), *(breach.reason for breach in found.isolation)][0]


def _runs(path: Path) -> list[dict[str, Any]]:
    columns = ["seed", "digest", "outcome", "violated", "kind", "reason", "step", "anomalies"]
    return [row for batch in read(path, "runs", columns) for row in batch.to_pylist()]


def _rows(path: Path) -> Iterator[Row]:
    """Yield the rows of a file of events; texts that are repeated are one object."""
    for batch in read(path, "events", COLUMNS):
        yield from zip(*(_column(batch.column(name)) for name in COLUMNS), strict=True)


def _column(column: pa.Array) -> list[Any]:
    if pa.types.is_dictionary(column.type):
        texts = [*column.dictionary.to_pylist(), None]
        return [texts[-1 if n is None else n] for n in column.indices.to_pylist()]
    if pa.types.is_list(column.type):
        flat, ends = _column(column.flatten()), column.offsets.to_pylist()
        start = ends[0]
        return [flat[a - start : b - start] for a, b in pairwise(ends)]
    found: list[Any] = column.to_pylist()
    return found


class EventReader:
    """Reads stored events; what texts mean is remembered, since they come again and again."""

    def __init__(self, model: Model) -> None:
        self._types = {cls.__name__: cls for cls in all_types(model)}
        self._turns: dict[str, tuple[Event, list[str]]] = {}
        self._values: dict[str, Value] = {}
        self._violated: dict[str | None, dict[str, str]] = {None: {}}
        self._joiner = Joiner()

    def steps(self, recall: Recall, rows: Sequence[Row]) -> list[Step]:
        """Return the events of a run, the initial one first, as moves. Raises ValueError if they are no such."""
        known = recall.moves
        steps: list[Step] = []
        for number, (_, n, at_us, turn, values, violated) in enumerate(rows):
            key = (turn, *values)
            move = known.get(key)
            if move is None:
                event = self._event(n, None, turn, values, None)
                texts = dict(zip(event.writes, values, strict=True))
                move = recall.move(key, turn, self._joiner.part(turn, values), event, texts)
            if n != number or (move.event.kind == INITIAL) != (n == 0):
                raise ValueError(f"this is event {number}, not {n}")
            steps.append((n, at_us, move, self._violations(violated)))
        return steps

    def events(self, rows: Iterable[Row]) -> tuple[tuple[Event, ...], str]:
        """Return the events of a run, and their digest."""
        recorder, events = Recorder(keep=False), []
        for _, n, at_us, turn, values, violated in rows:
            recorder.add(n, at_us, self._joiner.part(turn, values), _failing(violated))
            events.append(self._event(n, at_us, turn, values, violated))
        return tuple(events), recorder.digest()

    def _event(self, n: int, at_us: int | None, turn: str, values: Sequence[str], violated: str | None) -> Event:
        event, names = self._turn(turn)
        return Event(
            n, at_us, event.process, event.kind, event.action, event.args, event.detail, event.received, event.sent,
            event.lost, event.held, event.op, dict(zip(names, map(self._value, values), strict=True)),
            self._violations(violated), event.input,
        )

    def _turn(self, turn: str) -> tuple[Event, list[str]]:
        found = self._turns.get(turn)
        if found is None:
            data = json.loads(turn)
            field = INITIAL if INITIAL in data else "writes"
            names, data[field] = data[field], {}
            event = event_of({"n": int(field != INITIAL), **data}, self._types, {})
            found = _remember(self._turns, turn, (event, names))
        return found

    def _value(self, text: str) -> Value:
        if text not in self._values:
            _remember(self._values, text, decode(json.loads(text), self._types))
        return self._values[text]

    def _violations(self, violated: str | None) -> dict[str, str]:
        found = self._violated.get(violated)
        if found is None:
            found = _remember(self._violated, violated, json.loads(violated or "{}"))
        return found


def _remember(known: dict[K, V], key: K, value: V) -> V:
    if len(known) >= MOST_REMEMBERED:
        known.clear()
    known[key] = value
    return value
