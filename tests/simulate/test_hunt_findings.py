"""Findings of the hunt that are no property's: an exception in an actor, a step that the spec does not allow."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import attrs
import pytest
from support.commands.command_line import call
from support.runs.named_runs import scenario_of
from support.toys import toy_refinement as toy

from harness.model import Model, Scenario, System, register
from harness.record import read_trail
from harness.simulate.hunting.hunt import Hunt
from harness.simulate.hunting.tasks import REFINEMENT
from harness.simulate.runs.protocol_errors import RAISED, is_same
from harness.simulate.strategies.by_name import DEFAULT, NAMES
from harness.simulate.trails.replay import replay_plain
from harness.simulate.trails.shrink import perturbing_part

RUNS = 30
FAILS, DEPARTS = "toy-fails", "toy-departs"


@pytest.fixture(autouse=True)
def registered(add: Callable[..., None]) -> None:
    """The toy and two flaws of it."""
    system = toy.system()
    register(system)
    calm, = system.scenarios
    add(attrs.evolve(calm, name=FAILS, settings={"flaw": "fails-on-old-values"}),
        attrs.evolve(calm, name=DEPARTS, settings={"flaw": "takes-old-values"}))


def test_exception_in_an_actor_is_a_finding_and_all_other_rows_are_judged(tmp_path: Path) -> None:
    """Its row is red and says which line raised; the trail is short; the rows before and after it are as ever."""
    asked = [word for name in NAMES if name != DEFAULT for word in ("--strategy", name)]
    outcome = call("hunt", "toy-crashing", FAILS, "s4-copied-tail", "--seeds", RUNS, *asked, "--out", tmp_path)
    said = " ".join(outcome.out.split())
    assert (outcome.code, outcome.err) == (1, "")
    assert f"NO {FAILS}" in said and "NOT AS EXPECTED: protocol code raises an exception" in said
    assert "3 of 4 scenarios as expected" in said
    assert "LookupError raised in on_message (toy_refinement.py, line " in said
    assert "[raise LookupError(f\"no value is newer than {local.copy}\")]: no value is newer than" in said
    rows = {row["scenario"]: row for row in json.loads((tmp_path / "scoreboard.json").read_text("utf-8"))["scenarios"]}
    assert {name: row["as_expected"] for name, row in rows.items()} == {
        "toy-crashing": True, FAILS: False, "s4-copied-tail": True, "s4-copied-tail-repaired": True,
    }
    assert rows[FAILS]["violated"] == RAISED
    trail = read_trail(Path(rows[FAILS]["trail"]))
    assert trail.violates == RAISED and 0 < len(perturbing_part(trail)) == rows[FAILS]["steps_shrunk"] <= 4


@pytest.mark.parametrize("runtime", ["plain", "trio"])
def test_trail_of_an_exception_replays_to_the_same_one(runtime: str, tmp_path: Path) -> None:
    """In one clear report, with exit code 1 and without a traceback, on either runtime."""
    call("hunt", FAILS, "--seeds", RUNS, "--out", tmp_path)
    path = tmp_path / f"{FAILS}.trail.jsonl"
    outcome = call("replay", path, "--runtime", runtime)
    assert (outcome.code, outcome.err) == (1, "")
    said = " ".join(outcome.out.split())
    assert f"violates {RAISED} at step {len(read_trail(path).choices)}" in said
    assert "LookupError raised in on_message (toy_refinement.py" in said
    outcome = call("replay", path, "--runtime", runtime, "--json")
    assert (outcome.json["verdict"]["kind"], outcome.json["recorded_as"]) == ("exception", RAISED)


def test_trail_of_an_exception_shows_verifies_and_shrinks(tmp_path: Path) -> None:
    """The other commands take it, and tell of the exception."""
    made = call("simulate", FAILS, "--seeds", RUNS, "--out", tmp_path, "--json")
    assert made.code == 1
    assert (made.json["verdict"]["violated"], made.json["verdict"]["kind"]) == (RAISED, "exception")
    assert 0 < made.json["violations"] < RUNS
    short = tmp_path / "short.trail.jsonl"
    shrunk = call("shrink", made.json["trail"], "--out", short, "--json")
    assert (shrunk.code, shrunk.json["violates"]) == (0, RAISED)
    assert shrunk.json["has"] <= 4
    one, other = replay_plain(read_trail(Path(made.json["trail"]))), replay_plain(read_trail(short))
    assert is_same(one.verdict.reason, other.verdict.reason)
    assert call("show", short).code == 0
    for file in (short, made.json["history"]):
        judged = call("verify", file)
        assert judged.code == 1 and f"violates {RAISED}" in judged.out


@pytest.mark.parametrize("strategy", NAMES)
@pytest.mark.parametrize("runtime", ["plain", "trio"])
def test_every_strategy_and_runtime_ends_a_run_in_order_where_an_actor_raises(
    strategy: str, runtime: str, tmp_path: Path
) -> None:
    """The run is written as far as it went."""
    made = call("simulate", FAILS, "--strategy", strategy, "--seeds", RUNS, "--runtime", runtime, "--out", tmp_path,
                "--json")
    assert (made.code, made.json["verdict"]["violated"]) == (1, RAISED)
    assert call("replay", made.json["trail"], "--json").json["digest"] == made.json["digest"]


def test_model_that_cannot_even_start_is_a_red_row(tmp_path: Path) -> None:
    """There is no run to replay, but a row with the line that raised."""

    def broken(*arguments: object) -> Model:
        raise ZeroDivisionError("nobody can be built like this")

    spec, = toy.system().models
    flawed = attrs.evolve(spec, name="toy/broken", build=broken)
    register(System("broken", (flawed,), (Scenario("toy-broken", "cannot start", "toy/broken"),)))
    outcome = call("hunt", "toy-broken", "toy-crashing", "--seeds", 3, "--out", tmp_path)
    said = " ".join(outcome.out.split())
    assert (outcome.code, outcome.err) == (1, "")
    assert "1 of 2 scenarios as expected" in said
    assert "ZeroDivisionError raised in broken (test_hunt_findings.py" in said


def test_silent_row_whose_steps_leave_the_spec_is_red(tmp_path: Path) -> None:
    """No property fails; the row says which step is none of the spec's and why, and its trail verifies to that."""
    outcome = call("hunt", DEPARTS, "toy-crashing", "--seeds", RUNS, "--out", tmp_path)
    said = " ".join(outcome.out.split())
    assert (outcome.code, outcome.err) == (1, "")
    assert f"NO {DEPARTS}" in said and "NOT AS EXPECTED: a step is not allowed by toy/spec" in said
    assert "is not a step of the spec: Apply(f1)" in said
    assert "1 of 2 scenarios as expected" in said
    path = tmp_path / f"{DEPARTS}.trail.jsonl"
    assert f"replay kafka-proto verify {path}" in said
    trail = read_trail(path)
    assert trail.violates is None and len(trail.choices) <= 12
    assert replay_plain(trail).verdict.ok
    judged = call("verify", path)
    assert judged.code == 1 and "is not a step of the spec: Apply(f1)" in judged.out
    rows = {row["scenario"]: row for row in json.loads((tmp_path / "scoreboard.json").read_text("utf-8"))["scenarios"]}
    assert rows[DEPARTS]["violated"] == REFINEMENT
    assert (rows["toy-crashing"]["spec"], rows["toy-crashing"]["as_expected"]) == ("toy/spec", True)
    assert rows["toy-crashing"]["held"] > 0
    assert "runs follow toy/spec" in said


def test_rows_are_heard_of_as_they_are_done_and_say_their_seconds(tmp_path: Path) -> None:
    """A row is reported before the next ones are made; the board then has them in order, each with its seconds."""
    made: list[int] = []
    heard: list[tuple[str, int]] = []
    chosen = (scenario_of("toy-crashing"), scenario_of(DEPARTS))
    hunting = Hunt(chosen, tmp_path, RUNS, 0, progress=lambda done, planned, message: made.append(done),
                   finished=lambda row: heard.append((row.scenario, made[-1])))
    rows = hunting.run()
    assert [name for name, _ in heard] == ["toy-crashing", DEPARTS] == [row.scenario for row in rows]
    assert heard[0][1] == rows[0].runs < heard[1][1]
    for row in rows:
        row_json = row.to_json()
        assert row_json["seconds"] >= 0 and row_json["cpu_seconds"] > 0
        assert all(one["cpu_seconds"] >= 0 for one in row_json["strategies"].values())
