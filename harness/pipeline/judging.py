"""Every history of a campaign judged again, from the stored events alone, by the checkers that judge recorded files."""

from __future__ import annotations

import gc
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import groupby, pairwise
from operator import itemgetter
from pathlib import Path
from typing import Any

import attrs
import pyarrow as pa
import pyarrow.parquet as pq

from harness.history.judge import Judge, Judged
from harness.history.refine import where
from harness.model import Model, Refusal, Value, decode
from harness.pipeline import logs
from harness.pipeline.cells import Cell
from harness.pipeline.pieces import INITIAL, Joiner
from harness.pipeline.store import Block, read
from harness.pipeline.tables import Tables
from harness.record import Event, History, Recorder, header_of
from harness.record.history import all_types, event_of

MOST_REMEMBERED = 100_000
"""Values and turns of which is remembered what they mean."""
RARELY = (200_000, 20, 20)
"""How often the garbage collector walks through the tables of a judge."""
MOST_SHOWN = 5
"""Runs of a block that are told of one by one."""
COLUMNS = ["seed", "n", "at_us", "turn", "values", "violated"]
Row = tuple[int, int, int | None, str, list[str], str | None]


@attrs.frozen
class Finding:
    """A run whose stored events are not what its row says, or not what the spec allows."""

    cell: str
    seed: int
    kinds: tuple[str, ...]
    """As `Judged.findings` names them, and `digest`."""
    sentence: str


@attrs.frozen
class Rejudged:
    """What judging the stored histories of a cell came to."""

    cell: str
    what: str
    runs: int
    events: int
    kinds: Mapping[str, int]
    """How many runs there are with each kind of finding. `property` is a violation that the run's row tells as well."""
    refined: int
    """Runs that were held against a spec."""
    findings: tuple[Finding, ...]
    """Some of the runs with any other kind of finding."""

    @property
    def ok(self) -> bool:
        """Whether nothing was found but violations that the runs' rows tell as well."""
        return not set(self.kinds) - {"property"}


def rejudge(tables: Tables) -> list[Rejudged]:
    """Judge every stored history again, on Spark; return what that came to for each cell. Raises Refusal."""
    kept = [block for block in tables.blocks if "events" in block.files]
    folder, cells = str(tables.store.folder.resolve()), tables.cells
    if not kept:
        return []

    def work(blocks: Iterable[Block]) -> Iterator[Rejudged]:
        gc.enable()  # a judge whose tables are too large leaves them for the collector; workers have it turned off
        gc.set_threshold(*RARELY)
        for block in blocks:
            yield judge_block(Path(folder), block, cells[block.cell])

    context = tables.spark.sparkContext
    parts = min(len(kept), 4 * context.defaultParallelism)
    return _together(context.parallelize(kept, parts).mapPartitions(work).collect())


def _together(parts: Iterable[Rejudged]) -> list[Rejudged]:
    found: dict[str, Rejudged] = {}
    for part in parts:
        old = found.get(part.cell)
        if old is not None:
            part = Rejudged(
                old.cell, old.what, old.runs + part.runs, old.events + part.events,
                dict(sorted((Counter(old.kinds) + Counter(part.kinds)).items())), old.refined + part.refined,
                (*old.findings, *part.findings)[:MOST_SHOWN],
            )
        found[part.cell] = part
    return list(found.values())


Court = Callable[[Mapping[str, Any], list[Row]], tuple[tuple[str, ...], str, bool]]
"""Says of a run and its events the kinds of findings, a sentence for the first, and whether it was held to a spec."""
_COURTS: dict[str, Court] = {}
"""In a worker: what was learned about the cell that was judged last."""


def judge_block(folder: Path, block: Block, cell: Cell) -> Rejudged:
    """Judge the stored histories of a block. Raises Refusal for a damaged file."""
    if block.cell not in _COURTS:
        _COURTS.clear()
        _COURTS[block.cell] = logs.judged if cell.is_foreign else _court(cell)
    court = _COURTS[block.cell]
    runs = {run["seed"]: run for run in _runs(folder / block.files["runs"]["path"])}
    kinds: Counter[str] = Counter()
    findings: list[Finding] = []
    judged = events = refined = 0
    for seed, group in groupby(_rows(folder / block.files["events"]["path"]), key=itemgetter(0)):
        rows = list(group)
        some, sentence, is_refined = court(runs[seed], rows)
        kinds.update(some)
        judged, events, refined = judged + 1, events + len(rows), refined + is_refined
        if set(some) - {"property"}:
            findings.append(Finding(block.cell, seed, some, sentence))
    return Rejudged(block.cell, cell.what, judged, events, dict(sorted(kinds.items())), refined,
                    tuple(findings[:MOST_SHOWN]))


def _court(cell: Cell) -> Court:
    """Return the court of a model of ours."""
    model = cell.build()
    judge, reader = Judge(), Reader(model)
    return lambda run, rows: _judged(cell, run, rows, judge, model, reader)


def _judged(
    cell: Cell, run: Mapping[str, Any], rows: list[Row], judge: Judge, model: Model, reader: Reader
) -> tuple[tuple[str, ...], str, bool]:
    """Return the kinds of findings about a run, a sentence for the first, and whether it was held against a spec."""
    try:
        history, digest = reader.history(cell, run, rows)
        found = judge.recorded(history, model)
    except Exception as error:
        return ("record",), f"the stored events are no history of {cell.model}: {where(error)}", False
    wrong = digest != run["digest"]
    sentence = "the stored events do not have the digest of the run" if wrong else ""
    if found.findings:
        sentence = _sentence(found)
    return (*found.findings, *(("digest",) if wrong else ())), sentence, found.refined is not None


def _sentence(found: Judged) -> str:
    """Return the first thing that is wrong with a history."""
    said = [*found.differs, *(oddity.sentence for oddity in found.odd)]
    if found.explanation is not None:
        said.append(f"step {found.explanation.step} is no step of the spec")
    if found.departed is not None:
        said.append(f"step {found.departed.step}: {found.departed.sentence}")
    return (said or [broken.reason for broken in found.broken])[0]


def _runs(path: Path) -> list[dict[str, Any]]:
    columns = ["seed", "digest", "outcome", "violated", "kind", "reason", "step"]
    try:
        rows: list[dict[str, Any]] = pq.ParquetFile(path).read(columns).to_pylist()
    except (OSError, pa.ArrowException) as error:
        raise Refusal(f"{path} is damaged ({error}); remove its block's marker and start the campaign again") from None
    return rows


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


class Reader:
    """Makes histories of stored events; what texts mean is remembered, since they come again and again."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._types = {cls.__name__: cls for cls in all_types(model)}
        self._turns: dict[str, tuple[Event, list[str]]] = {}
        self._values: dict[str, Value] = {}
        self._joiner = Joiner()

    def history(self, cell: Cell, run: Mapping[str, Any], rows: Iterable[Row]) -> tuple[History, str]:
        """Return a run's history with the digest that its row tells, and the digest of its events."""
        recorder, events = Recorder(keep=False), []
        for _, n, at_us, turn, values, violated in rows:
            failing = "" if violated is None else f',"violated":{violated}'
            recorder.event(n, at_us, self._joiner.part(turn, values), failing)
            events.append(self._event(n, at_us, turn, values, violated))
        verdict: dict[str, Any] = {"ok": run["violated"] is None}
        if not verdict["ok"]:
            verdict |= {name: run[name] for name in ("violated", "reason", "step", "kind")}
        header = header_of(cell.trail(run["seed"]), self._model, "plain")
        end = {"end": len(events) - 1, "digest": run["digest"], "verdict": verdict}
        return History(header, tuple(events), end, run["digest"]), recorder.digest()

    def _event(self, n: int, at_us: int | None, turn: str, values: list[str], violated: str | None) -> Event:
        event, names = self._turn(turn)
        return Event(
            n, at_us, event.process, event.kind, event.action, event.args, event.detail, event.received, event.sent,
            event.lost, event.held, event.op, dict(zip(names, map(self._value, values), strict=True)),
            json.loads(violated) if violated is not None else {},
        )

    def _turn(self, turn: str) -> tuple[Event, list[str]]:
        found = self._turns.get(turn)
        if found is None:
            if len(self._turns) >= MOST_REMEMBERED:
                self._turns.clear()
            data = json.loads(turn)
            field = INITIAL if INITIAL in data else "writes"
            names, data[field] = data[field], {}
            found = self._turns[turn] = event_of({"n": int(field != INITIAL), **data}, self._types), names
        return found

    def _value(self, text: str) -> Value:
        if text not in self._values:
            if len(self._values) >= MOST_REMEMBERED:
                self._values.clear()
            self._values[text] = decode(json.loads(text), self._types)
        return self._values[text]
