"""Histories of logs in the tables: an operation is an event, its sends and polls are the values, and back again."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from harness.campaign.cells import Cell
from harness.campaign.event_columns import Joiner, json_text
from harness.model.log_operations import LogOperation
from harness.record import Recorder
from harness.verify.isolation.anomalies import PROPERTIES
from harness.verify.isolation.judge import LogJudge

LEVEL = "isolation"
"""The setting that says what the system promises."""
MODEL, IMPORTED, RECORDED = "log", "imported", "recorded"
"""What stands in the place of a model, of a version of the code, and of a strategy."""


def cell_of_logs(what: str, level: str) -> Cell:
    """Return the cell of histories of logs that some system kept, judged at a level of isolation."""
    return Cell(what, MODEL, {}, {LEVEL: level}, "", {}, tuple(PROPERTIES), "free", 0, 0, None, RECORDED, {}, "",
                IMPORTED)


def part_of(operation: LogOperation) -> str:
    """Return the inside of the JSON object of an operation's event: its sends and polls by number, as `writes`."""
    return json_text({
        "process": operation.process, "kind": operation.outcome, "action": operation.name,
        "writes": {str(n): part for n, part in enumerate(operation.parts)},
    })[1:-1]


def judged(
    level: str, run: Mapping[str, Any], rows: Iterable[tuple[Any, ...]]
) -> tuple[tuple[str, ...], str, bool]:
    """Return the kinds of findings about a stored history of a log, and a sentence for the first."""
    recorder, joiner, judge = Recorder(keep=False), Joiner(), LogJudge(level)
    try:
        for _, n, at_us, turn, values, _ in rows:
            recorder.add(n, at_us, joiner.part(turn, values), "")
            event = json.loads(turn)
            parts = tuple(map(json.loads, values))
            judge.look(LogOperation(n, at_us, event["process"], event["kind"], event["action"], parts))
        found = judge.breaches()
    except (KeyError, IndexError, TypeError, ValueError) as error:
        return ("record",), f"the stored events are no history of a log: {type(error).__name__}: {error}", False
    kinds = ["property"] if found else []
    sentence = found[0].reason if found else ""
    first = (found[0].property, found[0].step, found[0].reason) if found else (None, None, None)
    if first != (run["violated"], run["step"], run["reason"]):
        kinds.append("verdict")
        sentence = f"the run's row says {run['violated'] or 'that nothing is violated'}; {sentence or 'nothing is'}"
    if recorder.digest() != run["digest"]:
        kinds.append("digest")
        sentence = "the stored events do not have the digest of the run"
    return tuple(kinds), sentence, False
