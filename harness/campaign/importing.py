"""Histories that were recorded elsewhere become a folder of the same tables as a campaign's.

Histories of one model, settings and faults are a cell, numbered in the order of the files; `imported.json` in the
folder says which file a run came from. The folder takes its place when all files were read, or never.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from harness.campaign.block_rows import NOT_JUDGED, BlockRows
from harness.campaign.cells import Cell
from harness.campaign.event_columns import ReadColumns, columns_of, json_text
from harness.campaign.logs import IMPORTED, cell_of_logs, part_of
from harness.campaign.store import CampaignStore, Manifest
from harness.campaign.worker import PERTURBING
from harness.foreign import jepsen
from harness.model import Refusal, find_model, find_scenario
from harness.model.log_operations import FAULT, OK
from harness.record import Recorder, model_of_history, read_events, read_trail
from harness.record.files import compact, each_text, reason_of, write_atomically
from harness.record.history import read_frame
from harness.record.parts import folder_of
from harness.record.trail import run_fields
from harness.record.wording import agreeing
from harness.simulate.runs.run import Verdict
from harness.verify.isolation.anomalies import Breach
from harness.verify.isolation.clients import count
from harness.verify.isolation.judge import LogJudge

KINDS = ("kafka-proto", "jepsen")
INDEX = "imported.json"
FORMAT, VERSION = "kafka-proto/imported", 1
MOST_EVENTS = 500_000
"""Events that are gathered before a block is committed."""
ALIKE = ("model", "sizes", "settings", "network", "faults", "strategy", "seed")
"""What a trail has in common with the history of its run."""
HEAD = re.compile(r'\{"n":\d+,(?:"at_us":(\d+),)?')
"""How an event's line begins, up to what the tables keep as text."""


@attrs.frozen
class Imported:
    """One file that was read: its run."""

    file: str
    cell: str
    seed: int
    """The number of the run in its cell."""
    events: int
    digest: str
    violated: str | None
    step: int | None
    reason: str | None
    anomalies: tuple[Breach, ...] = ()
    """All that is wrong with a history of logs."""

    def to_json(self) -> dict[str, Any]:
        found = attrs.asdict(self, filter=attrs.filters.exclude("anomalies"))
        return {**found, "anomalies": [one.to_json() for one in self.anomalies]}


@attrs.frozen
class _Run:
    """A history as the tables take it."""

    cell: Cell
    events: list[tuple[int, int | None, ReadColumns, str]]
    verdicts: tuple[Verdict, ...]
    digest: str
    faults: dict[int, str]
    actions: dict[int, str]
    trail: str | None
    anomalies: tuple[Breach, ...] = ()
    ended: Mapping[str, int] | None = None
    """How operations of clients ended, where they were judged."""


def import_files(
    files: Sequence[Path], kind: str, folder: Path, what: str, level: str, day: str,
    progress: Callable[[int, int, str], None] = lambda *_: None,
) -> list[Imported]:
    """Make a folder of tables of histories. Raises Refusal if a file is none, or the folder is in use.

    `kind` is one of `KINDS`; `what` names the system that Jepsen tested, `level` what it promises; `progress` gets
    files done and planned.
    """
    check_free(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    try:
        with folder_of(folder) as part:
            found = _import(files, kind, part, what, level, day, progress)
            os.chmod(part, 0o755)
            os.replace(part, folder)
    except OSError as error:
        raise Refusal(f"cannot write {folder}: {reason_of(error)}; give another place with --out") from None
    return found


def check_free(folder: Path) -> None:
    """Refuse a folder in which there is something already."""
    try:
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise Refusal(f"{folder} is not empty; give a new folder with --out")
    except OSError as error:
        raise Refusal(f"cannot read {folder}: {reason_of(error)}; give another place with --out") from None


def _import(
    files: Sequence[Path], kind: str, part: Path, what: str, level: str, day: str,
    progress: Callable[[int, int, str], None],
) -> list[Imported]:
    writers: dict[str, _TableWriter] = {}
    store, found = CampaignStore(part), []
    for file in files:
        run = _from_jepsen(file, what, level) if kind == "jepsen" else _from_history(file)
        writer = writers.setdefault(run.cell.key, _TableWriter(store, run.cell, day))
        first = run.verdicts[0] if run.verdicts else Verdict()
        found.append(Imported(str(file), run.cell.key, writer.add(run), len(run.events), run.digest, first.violated,
                              first.step, first.reason, run.anomalies))
        violating = sum(one.violated is not None for one in found)
        progress(len(found), len(files), f"{violating:,} {agreeing(violating, 'violate')} something")
    for writer in writers.values():
        writer.commit()
    index = {"format": FORMAT, "version": VERSION, "files": [one.to_json() for one in found]}
    write_atomically(part / INDEX, [json.dumps(index, ensure_ascii=False, sort_keys=True, indent=1)])
    store.describe(Manifest(tuple(writer.cell for writer in writers.values()), "all", 0.0, max(1, len(files))))
    store.clear_parts()
    return found


class _TableWriter:
    """The histories of one cell, in blocks."""

    def __init__(self, store: CampaignStore, cell: Cell, day: str) -> None:
        self.cell = cell
        self._store = store
        self._day = day
        self._first = self._next = 0
        self._rows, self._events = BlockRows(cell), 0

    def add(self, run: _Run) -> int:
        """Add a history, and return its number in the cell."""
        seed, self._next = self._next, self._next + 1
        self._rows.events(seed, run.events)
        self._rows.actions.update(action for n, action in run.actions.items() if n)
        seen = NOT_JUDGED if run.ended is None else self._rows.clients(
            seed, run.anomalies, run.ended,
            lambda step: sorted({name for n, name in run.faults.items() if n <= step}))
        self._rows.recorded(
            seed, run.verdicts, run.events[-1][0], run.digest, run.faults, run.actions, run.trail, seen)
        self._events += len(run.events)
        if self._events >= MOST_EVENTS:
            self.commit()
        return seed

    def commit(self) -> None:
        """Commit what was added since the last time."""
        if self._next > self._first:
            self._rows.finish(self._first, None, [])
            self._store.commit(self.cell, self._first, self._next, self._day, self._rows.tables(), self._rows.counts)
            self._first, self._rows, self._events = self._next, BlockRows(self.cell), 0


def _from_jepsen(path: Path, what: str, level: str) -> _Run:
    """Read a history that Jepsen wrote, and judge it. Raises Refusal."""
    recorder, judge = Recorder(keep=False), LogJudge(level)
    events: list[tuple[int, int | None, ReadColumns, str]] = []
    faults, actions = {}, {}
    ended: Counter[str] = Counter()
    for operation in jepsen.operations(path):
        judge.look(operation)
        count(ended, operation)
        part = part_of(operation)
        recorder.add(operation.n, operation.at_us, part, "")
        events.append((operation.n, operation.at_us, columns_of(part), ""))
        if operation.outcome == FAULT:
            faults[operation.n] = operation.name
        if operation.outcome in (FAULT, OK):
            actions[operation.n] = operation.name
    verdicts = tuple(Verdict(breach.property, breach.reason, breach.step, "safety")
                     for breach in judge.breaches())
    cell = cell_of_logs(what, level)
    return _Run(cell, events, verdicts, recorder.digest(), faults, actions, None, judge.anomalies(), ended)


def _from_history(path: Path) -> _Run:
    """Read one of our own histories. Raises Refusal."""
    header, end = read_frame(path)
    model_of_history(path)
    events, faults, actions = [], {}, {}
    for event, (n, at_us, columns, failing) in zip(read_events(path), _lines(path), strict=False):
        events.append((n, at_us, columns, failing))
        actions[n] = event.action if n else ""
        if event.kind in PERTURBING:
            faults[n] = event.action
    verdict = end["verdict"]
    verdicts = () if verdict["ok"] else (
        Verdict(verdict["violated"], verdict["reason"], verdict["step"], verdict["kind"]),)
    return _Run(_cell(header), events, verdicts, end["digest"], faults, actions, _trail(path, header))


def _lines(path: Path) -> Iterator[tuple[int, int | None, ReadColumns, str]]:
    """Yield number, time, columns and failing invariants of each event, as they stand in the file. Raises Refusal."""
    for number, line in enumerate(each_text(path, "history"), 1):
        if number == 1:
            continue
        event = json.loads(line)
        if "end" in event:
            return
        failing = f',"violated":{json_text(event["violated"])}' if "violated" in event else ""
        head = HEAD.match(line)
        part = line[0 if head is None else head.end() : len(line) - len(failing) - 1]
        try:
            columns = columns_of(part)
            if head is None or not line.endswith(failing + "}"):
                raise ValueError
        except (AttributeError, KeyError, ValueError):
            raise Refusal(f"{path}, line {number}: not the text of an event as this program writes it; record the run "
                          "again") from None
        yield event["n"], event.get("at_us"), columns, failing


def _trail(path: Path, header: Mapping[str, Any]) -> str | None:
    """Return the text of the trail beside a history, if there is one of the same run. Raises Refusal."""
    beside = path.with_name(path.name.removesuffix(".history.jsonl") + ".trail.jsonl")
    if beside == path or not beside.is_file():
        return None
    trail = read_trail(beside)
    mine = run_fields(trail)
    if any(compact(mine[name]) != compact(header[name]) for name in ALIKE):
        return None
    return trail.text()


def _cell(header: Mapping[str, Any]) -> Cell:
    """Return the cell of a history's header."""
    what = header["scenario"] or header["model"]
    package = find_model(header["model"]).build.__module__.partition(".")[0]
    scenario = find_scenario(what)
    return Cell(
        what, header["model"], dict(header["sizes"]), dict(header["settings"]), header["network"],
        json.loads(compact(header["faults"])), tuple(header["claims"]), header["mode"],
        scenario.steps if scenario is not None else 0, scenario.timeouts if scenario is not None else 0,
        header["scenario"], header["strategy"], {}, package, IMPORTED,
    )
