"""Histories of the toy protocol, and edits of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness.model import Faults, find_model
from harness.simulate.hunting.hunt import write_run
from harness.simulate.runs.plan import Plan
from harness.simulate.runs.run import Run
from harness.simulate.runs.session import run_plain
from harness.simulate.states.tables import Tables
from harness.simulate.strategies.strategy import RandomStrategy
from support.runs.history_edits import events_of, written
from support.toys import toy_refinement as toy

Line = dict[str, Any]
Edit = Callable[[list[Line]], object]
PLAN = Plan(("ConfirmedIsHeld",), 60)


def recorded(path: Path, flaw: str = "", seed: int = 0, faults: Faults = toy.HARD) -> Run:
    """Record a run of the toy: trail and history."""
    tables = Tables(find_model("toy/actors").make({"fetches": 8}, {"flaw": flaw}, "bag", faults))
    run = run_plain(tables, PLAN, RandomStrategy(seed))
    write_run(run.trail, path.with_name(path.name.replace(".history.", ".trail.")))
    return run


def edited(source: Path, edit: Edit, name: str = "edited.history.jsonl") -> Path:
    """Write a copy of a history with other events: numbered again, with the digest that fits."""
    events = events_of(source)
    edit(events)
    return written(source, events, source.with_name(name))
