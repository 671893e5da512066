"""What `check` leaves of a violation: a verdict, a table, a trail that replays, shrinks and is shown."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from support.commands.command_line import call

COUNTEREXAMPLES = {
    "invariant": (("transactions/gist", "--invariant", "LogsAgreeUpToHwm"),
                  "LogsAgreeUpToHwm is violated after 8 steps, the fewest possible"),
    "deadlock": (("transactions/gist", "--size", "clients=1", "--size", "elections=0", "--deadlock"),
                 "Deadlock is violated after 8 steps, the fewest possible"),
    "cycle": (("transactions/diary-01", "--property", "EventuallyAllClientsGetPid", "--fairness", "next"),
              "EventuallyAllClientsGetPid is violated by 6 steps, "),
    "own": (("transactions/diary-01", "--invariant", 'client["c1"].state != "HasPid"'),
            'client["c1"].state != "HasPid" is violated after 4 steps, the fewest possible'),
    "per action": (("transactions/diary-01", "--property", "EventuallyAllClientsGetPid", "--fairness", "action"),
                   "EventuallyAllClientsGetPid is violated by 6 steps, "),
    "stuttering": (("transactions/diary-01", "--property", "EventuallyAllClientsGetPid", "--fairness", "none"),
                   "EventuallyAllClientsGetPid is violated by 0 steps, "),
}


@pytest.fixture(params=COUNTEREXAMPLES)
def counterexample(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, str, Path]:
    """A kind of counterexample, what the check of it printed, and its trail."""
    arguments, said = COUNTEREXAMPLES[request.param]
    done = call("check", *arguments, "--out", tmp_path)
    assert (done.code, done.err) == (1, "")
    assert done.out.startswith(f"{arguments[0]}: {said}")
    (trail,) = tmp_path.glob("*.trail.jsonl")
    return request.param, done.out, trail


def test_counterexample_is_a_verdict_a_table_a_trail_and_a_command(counterexample: tuple[str, str, Path]) -> None:
    """The verdict is one line, the table has a column per actor, all fits into 100 columns."""
    kind, shown, trail = counterexample
    lines = shown.replace(str(trail.parent), "out").splitlines()
    assert max(map(len, lines)) <= 100
    assert any(re.fullmatch(r" +c1 +(c2 +)?b1 +b2", line) for line in lines)
    assert f"  trail   out/{trail.name}" in lines
    assert f"  replay  kafka-proto replay out/{trail.name}" in lines
    assert any(line.startswith("   1 ok") for line in lines) == (kind != "stuttering")
    assert kind != "invariant" or "CommitTxnLogAppend(b2,p1)" in shown


def test_counterexample_is_replayed_and_shown(counterexample: tuple[str, str, Path], tmp_path: Path) -> None:
    """The command that is printed finds the same, on both runtimes; every form of `show` takes the trail."""
    kind, shown, trail = counterexample
    for runtime in ("plain", "trio"):
        done = call("replay", trail, "--runtime", runtime, "--json")
        if kind != "deadlock":
            assert (done.code, done.json["verdict"]["violated"]) == (1, json.loads(trail.read_text("utf-8")
                                                                                  .splitlines()[0])["violates"])
        assert done.json["digest"] in shown
    for form in ("text", "mermaid", "svg", "itf", "shiviz", "log", "tla"):
        done = call("show", trail, "--as", form)
        assert (done.code, done.err, bool(done.out)) == (0, "", True), form
    history = trail.with_name(trail.name.replace("trail", "history"))
    assert call("show", history).code == 0


def test_counterexample_is_shrunk_or_said_not_to_be(counterexample: tuple[str, str, Path], tmp_path: Path) -> None:
    """A shortest run stays as it is; what is no run to a violated invariant is refused in a sentence."""
    kind, _, trail = counterexample
    done = call("shrink", trail, "--out", tmp_path / "short.jsonl")
    if kind in ("invariant", "own"):
        steps = 8 if kind == "invariant" else 4
        assert (done.code, f"{steps} -> {steps} steps, proved shortest" in done.out) == (0, True)
        assert f"kafka-proto replay {tmp_path / 'short.jsonl'}" in done.out
    else:
        assert "shrink" in done.refusal or "shrunk" in done.refusal
        assert not (tmp_path / "short.jsonl").exists()
