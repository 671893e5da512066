"""Judging with what was seen before: of good histories and of edited ones it says what judging each alone says."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs
import pytest
from support.runs.history_edits import EACH_RUN, RUNS, Edit, Lines, compact, evenly, events_of, families, written
from support.runs.named_runs import write_history_of

from harness.campaign import judging
from harness.campaign.cells import Cell, cells
from harness.campaign.event_columns import columns_of
from harness.campaign.judging import BlockJudge, Row
from harness.model import Model
from harness.record import Recorder, read_history
from harness.simulate.runs.plan import resolve
from harness.simulate.runs.session import run_plain
from harness.simulate.states.tables import Tables
from harness.simulate.strategies.strategy import RandomStrategy
from harness.verify import judge_cache as recall_module
from harness.verify import refinement as refine
from harness.verify.judge import FileJudge, JudgedFile

FEW = 3
"""Edits of a family that are judged."""


@attrs.frozen(eq=False)
class Recorded:
    """Runs of a model on disk, and the cell that they are of."""

    model: Model
    cell: Cell
    paths: tuple[Path, ...]
    """Histories of some seeds; the first one is edited."""

    def edits(self) -> Iterator[Edit]:
        """Yield some edits of each family, evenly chosen, some of them put right by a careful hand."""
        events = events_of(self.paths[0])
        for _, made in families(self.model, events):
            yield from evenly(made, FEW)
        yield lambda: [*events[:3], {**events[3], "process": "nobody"}, *events[4:]]
        yield lambda: [events[0], *({**event, "violated": {"Nothing": "no"}} for event in events[1:])]
        yield lambda: [with_initial(events[0]), *events[1:]]


def with_initial(first: Mapping[str, Any]) -> dict[str, Any]:
    """Return a first event whose state is no initial one: two slots have changed their values."""
    initial = dict(first["initial"])
    numbers = [name for name, value in initial.items() if name.startswith(("inbox", "gate", "disk")) or value == 0]
    one, other = numbers[0], next(name for name in numbers if initial[name] != initial[numbers[0]])
    return {**first, "initial": {**initial, one: initial[other], other: initial[one]}}


@pytest.fixture(scope="module", params=EACH_RUN)
def recorded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    """Three runs of each model, the first one short, as the tests of edited histories have it."""
    name, seed, steps = RUNS[request.param]
    (model, plan), folder = resolve(name), tmp_path_factory.mktemp("runs")
    tables, paths = Tables(model), []
    for at in range(seed, seed + 3):
        run = run_plain(tables, attrs.evolve(plan, steps=steps), RandomStrategy(at), Recorder())
        paths.append(write_history_of(run, folder / f"{at}.history.jsonl"))
    return Recorded(model, cells([name])[0], tuple(paths))


def rows_of(events: Lines) -> list[Row]:
    """Return the events of a history as the table has them."""
    rows: list[Row] = []
    for event in events:
        part = compact({name: value for name, value in event.items() if name not in ("n", "at_us", "violated")})
        columns = columns_of(part[1:-1])
        violated = compact(event["violated"]) if "violated" in event else None
        rows.append((0, event["n"], event.get("at_us"), columns.turn, [value for _, value in columns.writes], violated))
    return rows


def both(recorded: Recorded, bench: BlockJudge, judge: FileJudge, path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what judging with and without what was seen before says of a history, as JSON objects."""
    end = json.loads(path.read_text(encoding="utf-8").splitlines()[-1])
    verdict = {name: end["verdict"].get(name) for name in ("violated", "reason", "step", "kind")}
    row = {"seed": 0, "digest": end["digest"], **verdict}
    found, digest = bench.judged(row, rows_of(events_of(path)))
    assert digest == end["digest"]
    return outcome_of(found), outcome_of(judge.recorded(read_history(path, recorded.model), recorded.model))


def outcome_of(judged: JudgedFile) -> dict[str, Any]:
    """Return all that was found but ids, which mean something in their own tables only."""
    refined = judged.refined
    more = () if refined is None else (
        refined.taken, refined.pairs, refined.reached, None if refined.failure is None else refined.failure.label)
    return {**judged.to_json(), "more": more}


def test_edited_histories_come_to_the_same_with_and_without_memory(recorded: Recorded, settled: None) -> None:
    """Good runs, edits of one of them, and the good runs again: findings, sentences and explanations are equal."""
    bench, judge = BlockJudge(recorded.cell), FileJudge()
    kinds = set()
    for path in recorded.paths:
        one, other = both(recorded, bench, judge, path)
        assert one == other and one["ok"]
    for edit in recorded.edits():
        edited = written(recorded.paths[0], edit(), recorded.paths[0].with_name("edited.history.jsonl"))
        one, other = both(recorded, bench, judge, edited)
        assert one == other
        kinds.update(one["findings"])
    assert {"record", "actors"} <= kinds and len(kinds) > 3
    for path in recorded.paths:
        one, other = both(recorded, bench, judge, path)
        assert one == other and one["ok"]


def test_steps_that_were_met_are_not_looked_at_again(recorded: Recorded, monkeypatch: pytest.MonkeyPatch) -> None:
    """A history that is judged once more has no step that is looked at."""
    looked: list[int] = []
    see = recall_module.Recall.see
    monkeypatch.setattr(recall_module.Recall, "see", lambda *given: looked.append(0) or see(*given))
    bench, judge = BlockJudge(recorded.cell), FileJudge()
    both(recorded, bench, judge, recorded.paths[0])
    once = len(looked)
    assert 0 < once < len(events_of(recorded.paths[0]))
    both(recorded, bench, judge, recorded.paths[0])
    assert len(looked) == once


def test_full_memory_starts_over_and_nothing_else_changes(
    recorded: Recorded, monkeypatch: pytest.MonkeyPatch, settled: None
) -> None:
    """With room for a few states, or for nothing at all, the same is said of good and bad histories."""
    small = ((recall_module, "MOST_PLACES", 3), (judging, "MOST_REMEMBERED", 2), (recall_module, "ROOM", 1))
    for module, name, value in small:
        monkeypatch.setattr(module, name, value)
        monkeypatch.setattr(refine, "ROOM", recall_module.ROOM)
        bench, judge = BlockJudge(recorded.cell), FileJudge()
        for edit in evenly(list(recorded.edits()), 5):
            edited = written(recorded.paths[0], edit(), recorded.paths[0].with_name("edited.history.jsonl"))
            one, other = both(recorded, bench, judge, edited)
            one["explanation"] = other["explanation"] = None  # tells of states that were met since memory was full
            assert one == other
