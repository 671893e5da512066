"""The command line in good use: what each command prints and writes, its exit codes, signals and pipes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support.commands import command_line
from support.commands.command_line import Outcome, alive_in_group, call, ended, files_below, started, wait_until
from support.paths import TRAILS

from harness.model import model_specs, scenarios
from harness.render import FORMS

COPIED_TAIL = TRAILS / "s4-copied-tail.trail.jsonl"
STUCK_ABORT = TRAILS / "s5-stuck-abort.trail.jsonl"


@pytest.fixture(autouse=True)
def eighty_columns(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A terminal of 80 columns, in an empty folder."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(tmp_path)


def test_list_names_every_model_and_scenario_in_80_columns() -> None:
    """Nothing is cut off and no line is longer than the terminal is wide."""
    listed = call("list")
    assert listed.code == 0
    words = listed.out.replace(",", " ").split()
    for name in [spec.name for spec in model_specs()] + [row.name for row in scenarios()]:
        assert name in words
    assert max(map(len, listed.out.splitlines())) <= 80


def test_list_json_is_one_object_with_sizes_and_expectations() -> None:
    """Scripts read sizes with their ranges, settings with their values, and what each scenario expects."""
    data = call("list", "--json").json
    gist = next(model for model in data["models"] if model["name"] == "transactions/gist")
    assert gist["sizes"]["clients"] == {"default": 2, "minimum": 1, "maximum": gist["sizes"]["clients"]["maximum"]}
    assert "S4" in gist["settings"]["repair"]["values"]
    flawed = next(row for row in data["scenarios"] if row["name"] == "s4-copied-tail")
    assert (flawed["expected"], flawed["repaired"]) == ("LogsAgreeUpToHwm", "s4-copied-tail-repaired")


def test_hunt_json_tells_of_a_flawed_scenario_and_its_twin(tmp_path: Path) -> None:
    """The pair is hunted by processes of its own; stdout is one object, and files hold the same scoreboard."""
    with started("hunt", "s4-copied-tail", "--seeds", 60, "--json", "--out", tmp_path) as process:
        outcome = ended(process)
    assert (outcome.code, outcome.err) == (0, "")
    flawed, twin = outcome.json["scenarios"]
    assert (flawed["scenario"], flawed["as_expected"]) == ("s4-copied-tail", True)
    assert (twin["scenario"], twin["as_expected"]) == ("s4-copied-tail-repaired", True)
    assert flawed["violated"] == "LogsAgreeUpToHwm"
    assert flawed["steps_shrunk"] <= 10
    assert flawed["replay"] == f"kafka-proto replay {flawed['trail']}"
    assert json.loads((tmp_path / "scoreboard.json").read_text(encoding="utf-8")) == outcome.json
    board = (tmp_path / "scoreboard.txt").read_text(encoding="utf-8")
    assert "2 of 2 scenarios as expected" in board
    assert flawed["replay"] in board
    assert call("replay", flawed["trail"]).code == 1


@pytest.mark.usefixtures("no_search_ahead")
@pytest.mark.parametrize("runtime", ["plain", "trio"])
@pytest.mark.parametrize(
    "what", ["exactly-once-crashes", "exactly-once-lost-answers", "s5-stuck-abort", "kafka/4.0"]
)
def test_simulate_writes_a_run_that_replays_to_its_digest_on_both_runtimes(
    what: str, runtime: str, tmp_path: Path
) -> None:
    """Trail and history are written, and both runtimes replay the trail to the digest of the run."""
    made = call("simulate", what, "--seed", 3, "--runtime", runtime, "--out", tmp_path, "--json")
    assert made.code == 0
    data = made.json
    name = f"{what.replace('/', '-')}-random-3"
    assert sorted(files_below(tmp_path)) == [f"{name}.history.jsonl", f"{name}.trail.jsonl"]
    end = json.loads(Path(data["history"]).read_text(encoding="utf-8").splitlines()[-1])
    assert end["digest"] == data["digest"]
    for other in ("plain", "trio"):
        again = call("replay", data["trail"], "--runtime", other, "--json").json
        assert (again["digest"], again["verdict"]) == (data["digest"], data["verdict"])


@pytest.mark.parametrize("strategy", ["random", "pct", "systematic"])
def test_simulate_makes_many_runs_with_each_strategy(strategy: str, tmp_path: Path) -> None:
    """The number of runs, the violations among them and one run that violates are reported."""
    made = call("simulate", "s4-copied-tail", "--seeds", 40, "--strategy", strategy, "--out", tmp_path, "--json")
    data = made.json
    assert made.code == 0
    assert (data["runs"], data["expected"]) == (40, "LogsAgreeUpToHwm")
    assert data["violations"] >= data["violations_as_expected"] >= 1
    assert data["verdict"]["violated"] == "LogsAgreeUpToHwm"


@pytest.mark.parametrize(("what", "code", "said"), [
    ("s3-wiped-metadata", 0, ("violates OnePidPerTid, as expected", "kafka-proto replay")),
    ("transactions/gist", 1, ("violates ",)),
])
def test_simulate_exits_with_0_where_what_it_finds_is_expected(
    what: str, code: int, said: tuple[str, ...], tmp_path: Path
) -> None:
    """A flawed scenario expects a violation, and says where to see it; a model expects nothing, so that any is one."""
    made = call("simulate", what, "--seeds", 60, "--out", tmp_path)
    assert made.code == code and all(words in made.out for words in said)


def test_simulate_takes_sizes_settings_and_steps(tmp_path: Path) -> None:
    """What was asked for is what the trail says."""
    made = call("simulate", "transactions/gist", "--size", "clients=1", "--size", "brokers=3", "--set", "repair=S4,S3",
                "--steps", 5, "--out", tmp_path, "--json")
    lines = Path(made.json["trail"]).read_text(encoding="utf-8").splitlines()
    header, end = json.loads(lines[0]), json.loads(lines[-1])
    assert (header["sizes"]["clients"], header["sizes"]["brokers"]) == (1, 3)
    assert header["settings"] == {"repair": "S3,S4"}
    assert end["fair_from"] in (None, 5) or end["fair_from"] < 5


@pytest.mark.usefixtures("no_search_ahead")
def test_simulate_claims_what_the_model_claims_as_it_is_set(tmp_path: Path) -> None:
    """Replicas have properties of their own where logs are replicated."""
    for log in ("at-once", "replicated"):
        made = call("simulate", "kafka/4.4", "--set", f"log={log}", "--out", tmp_path, "--json")
        header = json.loads(Path(made.json["trail"]).read_text(encoding="utf-8").splitlines()[0])
        assert ("StrongIsr" in header["claims"]) == (log == "replicated")


def test_simulate_takes_every_kind_of_fault_and_a_mode(tmp_path: Path) -> None:
    """The budget is in the trail: each kind that the model can have, once; others as they are asked for."""
    made = call("simulate", "kafka/4.4", "--faults", "all,crash=2", "--target", "b1", "--mode", "timed",
                "--seeds", 3, "--out", tmp_path, "--json")
    header = json.loads(Path(made.json["trail"]).read_text(encoding="utf-8").splitlines()[0])
    kinds = {kind: n for kind, n in header["faults"].items() if isinstance(n, int)}
    once = ("drop", "duplicate", "delay", "partition", "one_way", "pause", "skew")
    assert kinds == {**dict.fromkeys(once, 1), "crash": 2}
    assert (header["faults"]["targets"], header["mode"]) == (["b1"], "timed")
    refused = call("simulate", "kafka/4.4", "--faults", "reorder=1", "--out", tmp_path)
    assert refused.code == 2 and "keeps no order" in refused.err


def test_replay_of_a_violating_trail_exits_with_1() -> None:
    """A replay names the property, the step and the reason, and judges as the trail says; a fair cycle is named."""
    replayed = call("replay", COPIED_TAIL)
    assert replayed.code == 1
    assert "violates LogsAgreeUpToHwm at step 8" in " ".join(replayed.out.split())
    assert call("replay", COPIED_TAIL, "--json").json["recorded_as"] == "LogsAgreeUpToHwm"
    assert "11 steps, then a fair cycle" in " ".join(call("replay", STUCK_ABORT).out.split())


def test_shrink_gives_a_shorter_trail_that_violates_the_same_property(tmp_path: Path) -> None:
    """The short trail replays to the same property, with fewer steps than the long one."""
    made = call("simulate", "s4-copied-tail", "--seeds", 60, "--out", tmp_path, "--json").json
    short = tmp_path / "deep" / "short.trail.jsonl"
    shrunk = call("shrink", made["trail"], "--out", short, "--json")
    assert shrunk.code == 0
    assert shrunk.json["has"] < shrunk.json["had"]
    again = call("replay", short, "--json")
    assert again.code == 1
    assert again.json["verdict"]["violated"] == made["verdict"]["violated"] == shrunk.json["violates"]
    assert again.json["steps"] == shrunk.json["has"]


def test_check_of_a_sound_model_says_ok_with_exact_counts(tmp_path: Path) -> None:
    """The JSON object has the counts of the model checker, the verdict, and what it took."""
    done = call("check", "transactions/repaired", "--size", "clients=1", "--json", "--out", tmp_path)
    summary = done.json
    assert done.code == 0
    assert (summary["verdict"], summary["distinct"], summary["generated"], summary["depth"]) == ("ok", 65, 76, 14)
    assert sum(summary["actions"].values()) + summary["initial"] == summary["generated"]


@pytest.mark.parametrize("form", FORMS)
def test_show_gives_a_trail_and_its_history_the_same_picture(form: str, tmp_path: Path) -> None:
    """A history read from its file is drawn as the replayed trail is, on stdout and in a file."""
    made = call("simulate", "s4-copied-tail", "--seeds", 40, "--out", tmp_path, "--json").json
    drawn = call("show", made["history"], "--as", form, "--width", 100)
    assert drawn.code == 0
    assert drawn.out == call("show", made["trail"], "--as", form, "--width", 100).out != ""
    picture = tmp_path / "picture"
    assert call("show", made["trail"], "--as", form, "--out", picture).out == ""
    assert picture.read_text(encoding="utf-8") == drawn.out


@pytest.mark.parametrize("columns", [80, 120])
def test_show_fits_into_the_terminal(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The timeline is as wide as the terminal, or as asked for."""
    monkeypatch.setenv("COLUMNS", str(columns))
    assert max(map(len, call("show", COPIED_TAIL).out.splitlines())) <= columns
    assert max(map(len, call("show", COPIED_TAIL, "--width", 70).out.splitlines())) <= 70


@pytest.mark.parametrize(
    "arguments",
    [
        ("list",), ("simulate", "exactly-once-zombie"), ("simulate", "exactly-once-zombie", "--runtime", "trio"),
        ("replay", COPIED_TAIL),
        ("shrink", COPIED_TAIL, "--out", "short.trail.jsonl"),
    ],
    ids=lambda arguments: " ".join(map(str, arguments[:1])),
)
def test_json_is_one_object_and_nothing_else(arguments: tuple[object, ...]) -> None:
    """With --json stdout is one line with one object, and stderr is empty."""
    outcome = call(*arguments, "--json")
    assert outcome.json
    assert len(outcome.out.splitlines()) == 1
    assert outcome.err == ""


@pytest.mark.parametrize("arguments", [("--help",), ("hunt", "--help"), ("simulate", "-h"), ("--version",)])
def test_help_and_version_exit_with_0(arguments: tuple[str, ...]) -> None:
    """Asking for help is no wrong use."""
    outcome = call(*arguments)
    assert (outcome.code, outcome.err) == (0, "")
    assert "kafka-proto" in outcome.out


def test_no_command_shows_the_help_and_says_where_to_start() -> None:
    """Without a command the help is on stdout and one sentence on stderr."""
    outcome = call()
    assert "expected a command; start with kafka-proto hunt" in outcome.refusal
    assert "Commands:" in outcome.out


def test_paths_with_spaces_can_be_copied_from_the_output(tmp_path: Path) -> None:
    """The replay command quotes what a shell would split."""
    made = call("simulate", "happy-path", "--out", tmp_path / "two words")
    assert f"kafka-proto replay '{tmp_path / 'two words'}" in made.out


def test_stdout_closed_early_ends_quietly() -> None:
    """A reader that goes away, as `| head -1` does, is no error to report."""
    reader, writer = os.pipe()
    os.close(reader)
    with started("list", stdout=writer) as process:
        os.close(writer)
        outcome = ended(process)
    assert (outcome.code, outcome.err) == (141, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_stdout_that_takes_nothing_is_refused_in_a_sentence() -> None:
    """A full disk behind stdout is one sentence."""
    with open("/dev/full", "w", encoding="utf-8") as full, started("list", stdout=full.fileno()) as process:
        assert "No space left" in ended(process).refusal


def interrupted(process: subprocess.Popen[str], how: str) -> Outcome:
    """Interrupt a process the way a person or a machine does, and wait for its end."""
    if how == "Ctrl-C":
        os.killpg(process.pid, signal.SIGINT)
    elif how == "Ctrl-C twice":
        os.killpg(process.pid, signal.SIGINT)
        os.killpg(process.pid, signal.SIGINT)
    else:
        process.send_signal(signal.SIGTERM)
    outcome = ended(process)
    assert outcome.code == 130
    assert "interrupted" in outcome.sentence
    if Path("/proc/self/stat").exists():
        wait_until(lambda: not alive_in_group(process.pid))
    return outcome


@pytest.mark.parametrize("how", ["Ctrl-C", "Ctrl-C twice", "SIGTERM"])
def test_interrupted_hunt_keeps_its_finished_rows(how: str, tmp_path: Path) -> None:
    """What was found before the interrupt is in the scoreboard; no worker and no half-written file is left."""
    with started("hunt", "s2-stuck-replica", "--seeds", 100_000, "--out", tmp_path) as process:
        assert process.stdout is not None
        assert any("s2-stuck-replica" in line for line in process.stdout)
        outcome = interrupted(process, how)
    assert "1 of 2 scenarios was finished" in outcome.err
    assert "1 of 1 scenario as expected, 1 not finished" in outcome.out
    board = json.loads((tmp_path / "scoreboard.json").read_text(encoding="utf-8"))
    assert [row["scenario"] for row in board["scenarios"]] == ["s2-stuck-replica"]
    assert board["interrupted"] is True
    assert sorted(files_below(tmp_path)) == [
        "s2-stuck-replica.history.jsonl", "s2-stuck-replica.trail.jsonl", "scoreboard.json", "scoreboard.txt",
    ]


TELLS = """
import harness.cli.commands as commands
add = commands._Made.add
def told(made, run):
    add(made, run)
    if made.runs == 3:
        open("three-runs", "w").close()
commands._Made.add = told
from harness.cli import main
main()
"""
"""The command line, which leaves a file once a simulation has made three runs."""


@pytest.mark.parametrize("runtime", ["plain", "trio"])
@pytest.mark.parametrize("how", ["Ctrl-C", "Ctrl-C twice", "SIGTERM"])
def test_interrupted_simulation_writes_what_it_has(
    how: str, runtime: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run to keep is written as if the simulation had been that long."""
    monkeypatch.setattr(command_line, "COMMAND", (sys.executable, "-c", TELLS))
    out = tmp_path / "out"
    arguments = ("simulate", "exactly-once-zombie", "--seeds", 100_000, "--runtime", runtime, "--out", out, "--json")
    with started(*arguments) as process:
        wait_until(lambda: process.poll() is not None or Path("three-runs").exists())
        outcome = interrupted(process, how)
    data = outcome.json
    assert data["interrupted"] is True
    assert 3 <= data["runs"] < 100_000
    written = [f"exactly-once-zombie-random-0.{kind}.jsonl" for kind in ("history", "trail")]
    assert sorted(files_below(out)) == written
    assert call("replay", data["trail"], "--json").json["digest"] == data["digest"]


def test_command_is_installed_beside_the_interpreter() -> None:
    """The entry point runs the same command line."""
    command = Path(sys.executable).with_name("kafka-proto")
    if not command.exists():
        pytest.skip("the project is not installed here")
    done = subprocess.run([command, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == call("--version").out
