"""Runs of any length: written while they go on, in bounded memory, and the same whatever the bounds are."""

from __future__ import annotations

import gc
import json
import pickle
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import attrs
import pytest
from support.commands.command_line import PATIENCE_S, Outcome, call, files_below, wait_until
from support.paths import SUPPORT
from support.runs.made_runs import model_runs
from support.runs.named_runs import each_kind, write_history_of
from support.toys import toy_refinement
from support.toys.endless_counter import FAULTY, registered

from harness.memo.interning import long_lived
from harness.model import Faults, Refusal, Scenario, find_model, model_of, scenarios, values
from harness.record import Chosen, HistoryFile, Recorder, SpooledChoices, choices, read_history, read_trail
from harness.record.choices import ChoiceLines
from harness.record.files import writing
from harness.record.parts import remove_parts
from harness.simulate.hunting.hunt import record_run
from harness.simulate.runs import session
from harness.simulate.runs.plan import Plan, plan_of, resolve
from harness.simulate.runs.run import Run
from harness.simulate.runs.session import Session, drive, run_plain
from harness.simulate.runtimes.trio_runtime import drive_on_trio
from harness.simulate.states.nodes import Node
from harness.simulate.states.tables import Tables
from harness.simulate.strategies.strategy import RandomStrategy
from harness.simulate.trails.replay import replay_plain
from harness.verify.refinement import Refiner

registered()
MODEL = "kafka/4.0"
DRIVES = {"plain": drive, "trio": drive_on_trio}
MANY: list[Any] = [scenario for scenario in scenarios() if scenario.name != FAULTY.name]


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short runs meet what else only long ones do: pauses, choices in a file, blocks of them."""
    monkeypatch.setattr(session, "PAUSE", 5)
    monkeypatch.setattr(session, "LONG", 50)
    monkeypatch.setattr(choices, "BLOCK", 16)
    monkeypatch.setattr(gc, "collect", lambda: 0)  # it would walk through what all tests left, at each fresh start


def made(scenario: Scenario, tables: Tables, runtime: str, seed: int = 0) -> Run:
    return DRIVES[runtime](Session(tables, plan_of(scenario), RandomStrategy(seed), Recorder()))


def lines(run: Run) -> tuple[list[str], list[str]]:
    """Return the trail and the events of a run."""
    assert run.recorder is not None
    return run.trail.lines(), run.recorder.lines


@pytest.mark.parametrize("runtime", list(DRIVES))
@pytest.mark.parametrize("scenario", each_kind([FAULTY, *MANY]))
def test_tables_that_start_over_change_no_run(scenario: Scenario, runtime: str, often: None) -> None:
    """Whether everything is remembered, a little or nothing, trail, history and verdict are the same."""
    roomy = Tables(model_of(scenario), budget=10**12)
    run = made(scenario, roomy, "plain")
    assert roomy.renewals == 0
    for budget in (0, 200_000):
        tables = Tables(model_of(scenario), budget=budget)
        again = made(scenario, tables, runtime)
        assert (lines(again), again.verdict, again.witnessed) == (lines(run), run.verdict, run.witnessed)
        main_part = run.trail.fair_from if run.trail.fair_from is not None else len(run.trail.choices)
        assert budget or tables.renewals >= main_part // session.PAUSE


def test_tables_whose_ids_somebody_keeps_do_not_start_over(often: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """A refiner tells states by their ids, from run to run, and finds the same whatever the budget of its tables is."""
    monkeypatch.setattr(session, "PAUSE", 1)
    model = toy_refinement.system().models[0].make(faults=Faults(drop=2, duplicate=2))
    found = []
    for budget in (0, 10**12):
        tables = Tables(model, budget=budget)
        refiner = Refiner(model, tables)
        found.append([refiner.simulate(Plan((), 40), RandomStrategy(seed))[1] for seed in range(10)])
        assert tables.renewals == 0
    assert found[0] == found[1]
    assert any(refined.steps > 5 for refined in found[0])


def test_runs_after_runs_stay_within_the_budget(often: None) -> None:
    """Runs too short to pause let full tables start over when they begin, and are the same."""
    model, plan = model_of(FAULTY), Plan(FAULTY.claims, 4)
    roomy, tight = Tables(model, budget=10**12), Tables(model, budget=50_000)
    for seed in range(60):
        one, other = (run_plain(tables, plan, RandomStrategy(seed), Recorder()) for tables in (roomy, tight))
        assert lines(one) == lines(other)
        assert tight.used < 2 * tight.budget
    assert roomy.used > 2 * tight.budget


@pytest.mark.usefixtures("settled")
def test_what_full_tables_held_is_freed() -> None:
    """Nodes lead to each other in circles; none of those that were dropped is left, with the collector switched off."""
    tables, seen = Tables(model_of(FAULTY), budget=1_500_000), 0

    def nodes() -> int:
        return sum(type(found) is Node for found in gc.get_objects())

    before = nodes()

    def watch(steps: int) -> bool:
        nonlocal seen
        seen = max(seen, nodes() - before)
        assert tables.used < 3 * tables.budget
        return True

    with long_lived():
        run = drive(Session(tables, Plan(FAULTY.claims, 1_500), RandomStrategy(0), None, watch))
    assert len(run.trail.choices) == 1_500
    assert tables.renewals >= 2
    assert session.PAUSE <= seen <= 3 * session.PAUSE


def test_texts_of_records_are_remembered_within_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is remembered of records costs at most what it may."""
    monkeypatch.setattr(values, "_MAX_REMEMBERED", 50_000)
    run_plain(Tables(model_of(FAULTY)), Plan(FAULTY.claims, 500), RandomStrategy(0))
    assert values._spent <= 50_000
    assert len(values._REMEMBERED) <= 50_000 // values._REMEMBERED_RECORD + 1


@pytest.mark.parametrize("runtime", list(DRIVES))
@pytest.mark.parametrize("scenario", [FAULTY, *MANY[:6]], ids=lambda scenario: scenario.name)
def test_streamed_run_is_the_one_in_memory_byte_for_byte(
    scenario: Scenario, runtime: str, often: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The files written while a run goes on are those written after it."""
    model, plan = model_of(scenario), plan_of(scenario)
    path = tmp_path / "streamed" / "x.trail.jsonl"
    history, run = record_run(Tables(model), plan, RandomStrategy(3), path, runtime, drive=DRIVES[runtime])
    assert isinstance(run.trail.choices, SpooledChoices)
    monkeypatch.setattr(session, "LONG", 10**9)
    again = made(scenario, Tables(model), runtime, 3)
    assert isinstance(again.trail.choices, tuple)
    kept = tmp_path / "kept"
    again.trail.write(kept / "x.trail.jsonl")
    write_history_of(again, kept / "x.history.jsonl", model, runtime)
    assert history == path.with_name("x.history.jsonl")
    assert files_below(path.parent) == files_below(kept)
    assert replay_plain(read_trail(path), Recorder()).digest == run.digest == again.digest


@pytest.mark.parametrize("runtime", list(DRIVES))
def test_run_that_is_stopped_is_complete_as_far_as_it_went(runtime: str, often: None, tmp_path: Path) -> None:
    """A watcher that has heard enough ends a run between two steps; what was written replays."""
    heard: list[int] = []

    def watch(steps: int) -> bool:
        heard.append(steps)
        return steps < 120

    path = tmp_path / "x.trail.jsonl"
    model = model_of(FAULTY)
    history, run = record_run(
        Tables(model), plan_of(FAULTY), RandomStrategy(0), path, runtime, watch, DRIVES[runtime]
    )
    assert heard == list(range(5, 121, 5))
    trail = read_trail(path)
    assert (len(trail.choices), trail.fair_from, run.verdict.ok) == (120, None, True)
    assert replay_plain(trail, Recorder()).digest == read_history(history, model).digest == run.digest


def test_stopped_run_claims_nothing_about_its_ending() -> None:
    """No fair ending follows where somebody stopped the run, so nothing counts as pending for ever."""
    model, plan = resolve("s2-stuck-replica")
    plan = attrs.evolve(plan, steps=10**6)
    run = drive(Session(Tables(model), plan, RandomStrategy(0), None, lambda steps: False))
    assert (run.trail.fair_from, run.verdict.ok) == (None, True)


def endless(*arguments: object, limit_bytes: int | None = None) -> subprocess.Popen[str]:
    """Start the command line that knows the endless protocol."""
    command = [sys.executable, str(SUPPORT / "toys" / "endless_counter.py"), *map(str, arguments)]

    def limit() -> None:
        import resource

        resource.setrlimit(resource.RLIMIT_FSIZE, (limit_bytes or 0, limit_bytes or 0))

    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            preexec_fn=limit if limit_bytes else None)


def outcome_of(process: subprocess.Popen[str], patience_s: int = PATIENCE_S) -> tuple[Outcome, int]:
    """Wait for the end; return the outcome, and the most memory it had in kB."""
    with process:
        out, err = process.communicate(timeout=patience_s)
    *said, memory = err.splitlines()
    return Outcome(process.returncode, out, "".join(line + "\n" for line in said)), int(memory)


needs_proc = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc to see a process's memory")


@needs_proc
@pytest.mark.parametrize("runtime", list(DRIVES))
def test_interrupted_long_run_is_written_as_far_as_it_went(runtime: str, tmp_path: Path) -> None:
    """Ctrl-C in the middle of a run leaves a trail and a history that fit together, and no half-written file."""
    process = endless("simulate", FAULTY.name, "--steps", 10**9, "--runtime", runtime, "--out", tmp_path, "--json")
    wait_until(lambda: any(len(data) > 100_000 for data in files_below(tmp_path).values()))
    assert all(name.startswith(".") for name in files_below(tmp_path))
    process.send_signal(signal.SIGINT)
    outcome, _ = outcome_of(process)
    assert (outcome.code, outcome.json["interrupted"]) == (130, True)
    steps = outcome.json["steps"]
    assert outcome.sentence == f"interrupted; the run is written up to here, {steps:,} steps"
    assert sorted(files_below(tmp_path)) == [f"{FAULTY.name}-random-0.{kind}.jsonl" for kind in ("history", "trail")]
    trail = read_trail(Path(outcome.json["trail"]))
    assert len(trail.choices) == steps > 0
    history = read_history(Path(outcome.json["history"]), trail.build())
    assert replay_plain(trail, Recorder()).digest == history.digest == outcome.json["digest"]


@needs_proc
def test_full_disk_is_one_sentence_and_leaves_nothing(tmp_path: Path) -> None:
    """A history that no longer fits ends the run: nothing half-written stays."""
    process = endless("simulate", FAULTY.name, "--steps", 10**9, "--out", tmp_path, limit_bytes=300_000)
    outcome, _ = outcome_of(process)
    assert "cannot write" in outcome.refusal
    assert "history.jsonl: File too large; give another place with --out" in outcome.refusal
    assert files_below(tmp_path) == {}


class Full:
    """A file that takes nothing."""

    def seek(self, at: int) -> None: ...

    def close(self) -> None: ...

    def write(self, data: bytes) -> None:
        raise OSError(28, "No space left on device")


@pytest.mark.parametrize("seeds", [("--seed", 0), ("--seeds", 2)], ids=["one run", "several"])
def test_no_room_for_the_choices_is_one_sentence(
    seeds: tuple[object, ...], often: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The choices of a long run lie in a file without a name; where that is full, nothing is written at all."""
    files = SimpleNamespace(TemporaryFile=lambda dir: Full(), gettempdir=lambda: "somewhere")
    monkeypatch.setattr(choices, "tempfile", files)
    outcome = call("simulate", FAULTY.name, "--steps", 400, *seeds, "--out", tmp_path)
    assert "cannot keep the choices of a long run in" in outcome.refusal
    assert "No space left on device" in outcome.refusal
    assert files_below(tmp_path) == {}


def test_history_that_fails_at_its_end_takes_the_trail_with_it(tmp_path: Path) -> None:
    """The trail is written when nothing of the history can fail any more but its renaming."""
    path = tmp_path / "x.trail.jsonl"

    def failing(_: Session) -> Run:
        raise OSError(28, "No space left on device")

    with pytest.raises(Refusal, match=r"cannot write .*x.history.jsonl: No space left on device"):
        record_run(Tables(model_of(FAULTY)), plan_of(FAULTY), RandomStrategy(0), path, drive=failing)
    assert files_below(tmp_path) == {}


def test_history_left_without_its_end_is_an_error(tmp_path: Path) -> None:
    """A driver that forgets the end line does not leave a file that is cut off."""
    with pytest.raises(AssertionError, match="without its end line"):
        with HistoryFile(tmp_path / "x.history.jsonl", {}):
            pass
    assert files_below(tmp_path) == {}


def test_parts_are_removed_by_a_program_that_ends_at_once(tmp_path: Path) -> None:
    """Who gives a run up takes the hidden files away that are being written, and only these."""
    (tmp_path / ".other.part").write_text("", encoding="utf-8")
    with pytest.raises(Refusal, match="No such file"):
        with writing(tmp_path / "x") as file:
            file.write("text")
            assert len(files_below(tmp_path)) == 2
            remove_parts()
            assert list(files_below(tmp_path)) == [".other.part"]
    assert list(files_below(tmp_path)) == [".other.part"]


@pytest.mark.parametrize("count", [0, 15, 16, 17, 100])
def test_choices_in_a_file_are_a_sequence_like_any_other(count: int, often: None) -> None:
    """Length, items, slices, equality, copies to other processes, and the lines of the trail."""
    listed = [Chosen(f'step {n} "é\u2028"', n * 7 if n % 3 else None) for n in range(count)]
    spooled = SpooledChoices()
    for chosen in listed:
        spooled.append(chosen)
    assert list(spooled) == listed
    assert spooled == tuple(listed)
    assert spooled != tuple(listed[1:]) or not count
    assert [spooled[n] for n in range(-count, count)] == listed * 2
    assert spooled[3:40:2] == tuple(listed[3:40:2])
    assert pickle.loads(pickle.dumps(spooled)) == tuple(listed)
    lines = ChoiceLines()
    assert list(spooled.lines()) == [lines.line(n, chosen) for n, chosen in enumerate(listed, 1)]
    with pytest.raises(IndexError):
        spooled[count]


def test_several_long_runs_keep_one_and_write_it(often: None, no_search_ahead: None, tmp_path: Path) -> None:
    """With many seeds the run to keep is known at the end; its choices wait in a file, and it is replayed."""
    data = call("simulate", FAULTY.name, "--seeds", 3, "--steps", 200, "--out", tmp_path, "--json").json
    one = call("simulate", FAULTY.name, "--seed", 0, "--steps", 200, "--out", tmp_path / "one", "--json").json
    assert (data["runs"], data["steps"], one["steps"]) == (3, 600, 200)
    assert data["digest"] == one["digest"]
    written = files_below(tmp_path)
    for kind in ("trail", "history"):
        name = f"{FAULTY.name}-random-0.{kind}.jsonl"
        assert written[name] == written[f"one/{name}"]


def test_live_protocol_makes_as_many_steps_as_are_asked_for() -> None:
    """Timers and faults keep a protocol going; only one whose clients are done ends before."""
    (run,) = model_runs(model_of(FAULTY), Plan(FAULTY.claims, 5_000), "random", 1)
    assert len(run.trail.choices) == 5_000
    (run,) = model_runs(find_model(MODEL).make(), Plan((), 5_000), "random", 1)
    assert len(run.trail.choices) < 5_000


@needs_proc
@pytest.mark.large
def test_run_of_a_million_steps_stays_below_300_megabytes(tmp_path: Path) -> None:
    """A million steps, no state twice, everything on disk."""
    process = endless("simulate", FAULTY.name, "--steps", 1_000_000, "--out", tmp_path, "--json")
    outcome, memory_kb = outcome_of(process, 3_600)
    assert (outcome.code, outcome.json["steps"]) == (0, 1_000_000)
    assert memory_kb * 1024 < 300_000_000
    last = json.loads(Path(outcome.json["history"]).read_bytes().splitlines()[-1])
    assert (last["end"], last["digest"]) == (1_000_000, outcome.json["digest"])
