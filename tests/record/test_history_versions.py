"""Histories of version 1, in which maps with whole numbers as keys were in the order of the keys' text."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from support.commands.command_line import call

from harness.model import find_scenario, model_of
from harness.record import read_history
from harness.record.files import compact
from harness.simulate.hunting.hunt import record_run
from harness.simulate.runs.plan import plan_of
from harness.simulate.states.tables import Tables
from harness.simulate.strategies.by_name import Strategies


def by_text(data: Any) -> Any:
    """Return JSON in which maps are in the order of their keys' text."""
    if isinstance(data, list):
        return [by_text(item) for item in data]
    if not isinstance(data, dict):
        return data
    if "$map" in data:
        return {"$map": sorted(([key, by_text(item)] for key, item in data["$map"]), key=lambda pair: compact(pair[0]))}
    return {name: by_text(item) for name, item in data.items()}


def as_version_1(path: Path, into: Path) -> str:
    """Write a history as version 1 had it, and return its digest."""
    header, *events, end = (json.loads(line) for line in path.read_text(encoding="utf-8").splitlines())
    lines = [json.dumps(by_text(event), separators=(",", ":"), ensure_ascii=False) for event in events]
    digest = hashlib.sha256("".join(f"{line}\n" for line in lines).encode()).hexdigest()
    whole = [compact({**header, "version": 1}), *lines, compact({**end, "digest": digest})]
    into.write_text("".join(f"{line}\n" for line in whole), encoding="utf-8")
    return digest


def test_version_1_is_read_and_judged_as_it_was_written(tmp_path: Path) -> None:
    """A client of the run has asked ten times: both versions have the same events, each has its digest."""
    scenario = find_scenario("idempotent-in-flight")
    assert scenario is not None
    strategy = Strategies("random").run(0)
    assert strategy is not None
    model = model_of(scenario)
    path, run = record_run(Tables(model), plan_of(scenario), strategy, tmp_path / "now.trail.jsonl")
    before = tmp_path / "before.history.jsonl"
    run.trail.write(tmp_path / "before.trail.jsonl")
    assert as_version_1(path, before) != run.digest == read_history(path, model).digest
    assert read_history(before, model).events == read_history(path, model).events
    judged = [call("verify", each) for each in (path, before)]
    assert [each.code for each in judged] == [0, 0]
    now, then = (each.out.splitlines() for each in judged)
    needs_a_replay = "  not judged, for want of the trail beside it: OperationsEnd, NothingStaysOpen"
    assert [line for line in then if line != needs_a_replay][1:] == now[1:] and needs_a_replay in then
