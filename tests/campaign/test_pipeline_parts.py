"""The parts of a campaign that need no Spark: cells, blocks, rows, events taken apart, the folder, intervals."""

from __future__ import annotations

import json
import os
import re
import sys
from functools import partial
from pathlib import Path

import attrs
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.commands.command_line import call
from support.runs.named_runs import registering
from support.toys import toy_refinement

from harness.campaign import requirements as needs
from harness.campaign import spark_campaign as campaign
from harness.campaign import spark_session as session
from harness.campaign import store
from harness.campaign.block_progress import BlockProgress, under_way
from harness.campaign.cells import Cell, cells, code_version
from harness.campaign.checks import wilson
from harness.campaign.clusters import trail_of
from harness.campaign.event_columns import Joiner, columns_of
from harness.campaign.judging import judge_block
from harness.campaign.missing_blocks import missing, spread, usual_block
from harness.campaign.schemas import SCHEMAS
from harness.campaign.spark_job import last_words
from harness.campaign.store import CampaignStore, CommittedBlock, Manifest
from harness.campaign.worker import BlockTask, Worker, is_sampled
from harness.model import Refusal
from harness.record import Recorder, read_trail
from harness.simulate.runs.plan import resolve
from harness.simulate.runs.session import run_plain
from harness.simulate.states.tables import Tables
from harness.simulate.strategies.by_name import Strategies
from harness.simulate.trails.replay import replay_plain

FLAWED, REPAIRED = "s4-copied-tail", "s4-copied-tail-repaired"


toy_is_known = registering(toy_refinement.system())


def made(cell: Cell, last: int, keep: str = "all", covered: bool = False, first: int = 0) -> dict[str, list[dict]]:
    """Make a block and return its tables as rows."""
    rows = Worker().make(BlockTask(cell, first, last, keep, covered))
    return {name: table.to_pylist() for name, table in rows.tables().items()}


def without_clock(rows: list[dict]) -> list[dict]:
    """Return rows of runs without the one column that differs from time to time."""
    return [{name: value for name, value in row.items() if name != "wall_us"} for row in rows]


def committed(folder: Path, cell: Cell, seeds: int = 20, keep: str = "all") -> tuple[CampaignStore, CommittedBlock]:
    """Make a campaign's folder with one block."""
    place = CampaignStore(folder)
    place.begin(Manifest((cell,), keep, 0.0, seeds))
    rows = Worker().make(BlockTask(cell, 0, seeds, keep, False))
    return place, place.commit(cell, 0, seeds, "2026-01-02", rows.tables(), rows.counts)


@pytest.mark.parametrize("what", [FLAWED, "fencing-battle", "rolling-restart", "pc-06-replayed-twice"])
def test_an_event_taken_apart_and_put_together_is_the_same_text(what: str) -> None:
    """Turn and values give back every byte of every line, timed events and failing properties among them."""
    model, plan = resolve(what)
    recorder, joiner = Recorder(), Joiner()
    run_plain(Tables(model), plan, Strategies("random").run(1), recorder)  # type: ignore[arg-type]
    again = Recorder()
    for line in recorder.lines:
        event = json.loads(line)
        violated = event.pop("violated", None)
        n, at_us = event.pop("n"), event.pop("at_us", None)
        columns = columns_of(json.dumps(event, separators=(",", ":"), ensure_ascii=False)[1:-1])
        text = json.dumps(violated, separators=(",", ":"), ensure_ascii=False)
        part = joiner.part(columns.turn, [value for _, value in columns.writes])
        again.add(n, at_us, part, "" if violated is None else f',"violated":{text}')
        assert again.lines[-1] == line
        assert (columns.process, columns.action) == (event.get("process"), event.get("action"))


def test_a_text_that_is_no_event_is_refused_when_it_is_taken_apart() -> None:
    """Text that would not come back byte for byte is never stored."""
    with pytest.raises(ValueError, match="no canonical text of an event"):
        columns_of('"process":"c1", "kind":"step","action":"A","args":[],"writes":{}')


def test_cells_are_what_is_swept_times_what_is_given() -> None:
    """Each combination of scenario, strategy and swept values is a cell with a key of its own, the same every time."""
    sweeps = ("drop=0,1,2", "brokers=2,3")
    found = cells(["fencing-battle"], ("random", "pct"), sweeps)
    assert len(found) == len({cell.key for cell in found}) == 12
    assert [cell.key for cell in cells(["fencing-battle"], ("random", "pct"), sweeps)] == [cell.key for cell in found]
    assert found[2].sweep == {"drop": "0", "brokers": "3"}
    assert found[2].sizes["brokers"] == 3 and "drop" not in found[2].faults
    again = [Cell.from_json(json.loads(json.dumps(cell.to_json()))) for cell in found]
    assert [cell.key for cell in again] == [cell.key for cell in found]
    assert attrs.evolve(found[0], code="other").key != found[0].key
    assert code_version("kafka_proto") == found[0].code != code_version("compaction")


def test_a_cell_claims_what_its_model_claims_as_it_is_set() -> None:
    """Replicas have properties of their own where logs are replicated, as in a simulation."""
    found = {cell.settings["log"]: cell.claims for cell in cells(["kafka/4.4"], sweeps=("log=at-once,replicated",))}
    assert "StrongIsr" in found["replicated"] and "StrongIsr" not in found["at-once"]
    assert found["replicated"] == resolve("kafka/4.4", settings={"log": "replicated"})[1].claims


def test_the_code_of_a_cell_is_that_of_its_protocol() -> None:
    """Models that are made by a function with some arguments given belong to the function's package, too."""
    packages = {what: cells([what])[0].package for what in (FLAWED, "rp-04-fast-failover", "pc-06-replayed-twice")}
    assert packages == {FLAWED: "kafka_proto", "rp-04-fast-failover": "kafka_proto",
                        "pc-06-replayed-twice": "compaction"}


@pytest.mark.parametrize(("whats", "sweeps", "said"), [
    (["no-such-thing"], (), "nor a scenario of that name"),
    ([FLAWED], ("colour=red",), "colour of s4-copied-tail cannot be swept; these can be:"),
    ([FLAWED], ("brokers",), "expected --sweep NAME="),
    ([FLAWED], ("brokers=many",), "brokers takes whole numbers"),
    ([FLAWED], ("brokers=99",), "must be between"),
    ([FLAWED], ("brokers=2", "brokers=3"), "swept twice"),
    ([FLAWED], ("crash=1",), "has no target, so it cannot be swept"),
])
def test_what_cannot_be_a_cell_is_refused(whats: list[str], sweeps: tuple[str, ...], said: str) -> None:
    """Unknown names and values become a sentence that says what there is."""
    with pytest.raises(Refusal, match=said):
        cells(whats, sweeps=sweeps)


def parts(
    runs: int, *committed: tuple[int, ...], coverage: float = 0.5, size: int = 10, strategy: str = "random"
) -> list[tuple[int, int, bool]]:
    """Return what is missing beside blocks of a first and a last seed, and perhaps fewer runs: is it covered?"""
    cell = cells([FLAWED], (strategy,))[0]
    blocks = [CommittedBlock(cell.key, first, last, *(made or (last - first,)), 0, 0, 0, {}, "")
              for first, last, *made in committed]
    tasks = missing(Manifest((cell,), "all", coverage, size), runs, blocks)
    return [(task.first, task.last, task.covered) for task in tasks]


def test_missing_blocks_are_the_gaps_between_committed_ones() -> None:
    """What is committed is left out, block borders stay where they are, and more runs continue where fewer ended."""
    assert parts(25) == [(0, 10, True), (10, 20, False), (20, 25, True)]
    assert parts(25, (10, 20)) == [(0, 10, True), (20, 25, True)]
    assert parts(35, (0, 10), (10, 20), (20, 25)) == [(25, 30, True), (30, 35, False)]
    assert parts(20, (0, 10), (10, 20), (20, 25)) == parts(100, (0, 20, 17)) == []


def test_the_files_of_a_cell_stay_few_however_many_runs_it_has() -> None:
    """500 seeds are a block, as long as there are no more than a hundred blocks."""
    assert [usual_block(runs) for runs in (1, 5_000, 50_000, 50_001, 200_000)] == [500, 500, 500, 1_000, 2_000]
    assert all(len(parts(runs, size=usual_block(runs))) <= 100 for runs in (50_000, 60_000, 1_234_567))


def test_a_small_part_of_the_runs_is_covered_in_small_campaigns_too() -> None:
    """A fiftieth is a tenth of the first block and one in the middle of fifty; searches in order stay whole."""
    of = partial(parts, size=20, coverage=0.02)
    whole = of(10_000)
    assert whole[:3] == [(0, 2, True), (2, 20, False), (20, 40, False)]
    blocks = [(first, first + 20, True) for first in range(500, 10_000, 1_000)]
    assert [part for part in whole if part[2]] == [(0, 2, True), *blocks]
    assert of(10_000, (0, 2), (20, 9_980)) == [(2, 20, False), (9_980, 10_000, False)]
    assert of(20, (0, 1)) == [(1, 2, True), (2, 20, False)]
    assert of(60, coverage=0.001) == [(0, 2, True), (2, 20, False), (20, 40, False), (40, 60, False)]
    assert of(40, coverage=0.1) == of(40, strategy="guided") == [(0, 20, True), (20, 40, False)]
    assert of(40, strategy="systematic") == [(0, 40, True)]


def test_tasks_hold_neighbours_and_long_blocks_come_first() -> None:
    """Every block is in one task, several to a task where there are many, covered ones alone and first."""
    cell = cells([FLAWED])[0]
    tasks = missing(Manifest((cell,), "all", 0.1, 10), 1_000, ())
    parts = spread(tasks, 2)
    assert sorted((task for part in parts for task in part), key=lambda task: task.first) == tasks
    assert [len(part) for part in parts[:10]] == [1] * 10 and all(part[0].covered for part in parts[:10])
    assert len(parts) == 10 + 8 and max(map(len, parts)) == 12


@pytest.mark.parametrize("strategy", ["random", "pct", "systematic", "guided"])
def test_a_block_made_again_has_the_same_rows(strategy: str) -> None:
    """Rows depend on the cell and the seeds, not on what the worker made before."""
    cell = cells([FLAWED], (strategy,))[0]
    first, again = Worker(), Worker()
    again.make(BlockTask(cell, 40, 60, "all", False))
    task = BlockTask(cell, 10, 40, "sample=0.5", True)
    tables = [worker.make(task).tables() for worker in (first, again)]
    mine, other = ({name: table.to_pylist() for name, table in some.items()} for some in tables)
    assert without_clock(mine.pop("runs")) == without_clock(other.pop("runs"))
    assert mine == other and len(mine["coverage"]) > 50


def test_a_guided_block_is_the_guided_search_of_the_command_line() -> None:
    """The block that begins with seed 0 makes the runs that a guided search makes from its start."""
    cell = cells([FLAWED], ("guided",))[0]
    whole = made(cell, 30)["runs"]
    assert [row["digest"] for row in made(cell, 10)["runs"]] == [row["digest"] for row in whole[:10]]
    assert [row["seed"] for row in made(cell, 30, first=20)["runs"]] == list(range(20, 30))


def test_a_systematic_block_goes_on_where_the_one_before_ended() -> None:
    """Run number 10 of an enumeration is the same one, whether its predecessors' rows are wanted or not."""
    cell = cells([FLAWED], ("systematic",))[0]
    runs, coverage = (made(cell, 20, covered=True)[name] for name in ("runs", "coverage"))
    later = made(cell, 20, first=10, covered=True)
    assert without_clock(later["runs"]) == without_clock(runs[10:])
    assert sum(row["kind"] == "state" for row in later["coverage"]) == sum(row["kind"] == "state" for row in coverage)


def test_a_poisoned_seed_becomes_a_row_with_its_trail() -> None:
    """A run in which protocol code raises has where, and the choices so far; the other runs are as ever."""
    raising, = cells(["toy/actors"], sizes={"fetches": 2}, settings={"flaw": "fails-on-old-values"})
    tables = made(raising, 30)
    rows = {row["outcome"]: row for row in tables["runs"]}
    assert len(tables["runs"]) == 30 and set(rows) == {"ok", "error"}
    bad = rows["error"]
    assert re.match(r"LookupError: no value is newer than \d \(toy_refinement\.py, line", bad["error"])
    trail = trail_of(bad["trail"])
    assert len(trail.choices) == bad["steps"] > 0 and trail.seed == bad["seed"]
    assert replay_plain(attrs.evolve(trail, choices=trail.choices[:-1])).verdict.ok
    assert {row["seed"] for row in tables["events"]} == {r["seed"] for r in tables["runs"] if r["outcome"] == "ok"}
    assert Worker().make(BlockTask(raising, 0, 30, "all", False)).counts["errors"] == sum(
        row["outcome"] == "error" for row in tables["runs"])


def test_events_are_kept_of_failing_runs_and_of_a_sample_of_the_others() -> None:
    """All failing runs have their events; of the others, those that their name says, with any worker."""
    cell = cells([FLAWED])[0]
    kept = {keep: {row["seed"] for row in made(cell, 100, keep)["events"]} for keep in ("failing", "sample=0.2", "all")}
    failing = {row["seed"] for row in made(cell, 100)["runs"] if row["outcome"] == "violated"}
    assert kept["failing"] == failing and kept["all"] == set(range(100))
    assert kept["sample=0.2"] == failing | {n for n in range(100) if is_sampled("sample=0.2", cell.key, n)}
    assert 100 < sum(is_sampled("sample=0.2", "cell", n) for n in range(1_000)) < 300


def test_the_trail_in_a_row_replays_to_the_digest_in_the_row(tmp_path: Path) -> None:
    """A failing run's trail is a trail file, and its replay has the digest and violates what the row says."""
    row = next(row for row in made(cells([FLAWED])[0], 30)["runs"] if row["outcome"] == "violated")
    path = tmp_path / "row.trail.jsonl"
    path.write_text(row["trail"], encoding="utf-8")
    run = replay_plain(read_trail(path), Recorder(keep=False))
    assert (run.digest, run.verdict.violated, run.verdict.step) == (row["digest"], row["violated"], row["step"])


def test_a_full_disk_leaves_no_block_and_no_part_of_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a table cannot be written there is no marker and no hidden file, and the sentence says what to do."""
    cell = cells([FLAWED])[0]
    place = CampaignStore(tmp_path)
    place.begin(Manifest((cell,), "all", 0.0, 20))

    def full(path: Path, table: object) -> None:
        path.write_bytes(b"PAR1")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(store, "write", full)
    tasks = [missing(place.manifest(), 20, ())]
    with pytest.raises(RuntimeError, match="cannot be written to, No space left on device; make room"):
        list(campaign.make_blocks(tasks, str(tmp_path), "2026-01-02", {cell.package: cell.code}))
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and path.name != store.MANIFEST]


def test_a_worker_with_other_code_makes_nothing(tmp_path: Path) -> None:
    """The version of the protocol's code is compared before the first run."""
    with pytest.raises(RuntimeError, match="another version of kafka_proto than the driver"):
        list(campaign.make_blocks([[]], str(tmp_path), "2026-01-02", {"kafka_proto": "0123"}))


@pytest.mark.parametrize("harm", ["cut", "flip", "gone"])
def test_a_damaged_file_is_named_with_what_to_do(tmp_path: Path, harm: str) -> None:
    """A table that was cut off, changed in one byte or removed is noticed before anything is read from it."""
    place, block = committed(tmp_path, cells([FLAWED])[0])
    path = place.files("events", [block])[0]
    data = path.read_bytes()
    harmed = {"cut": data[:-100], "flip": data[:500] + bytes([data[500] ^ 1]) + data[501:]}
    path.unlink()
    if harm in harmed:
        path.write_bytes(harmed[harm])
    with pytest.raises(Refusal, match=f"{path.name} is (damaged|not readable); remove .*{block.name}.json and start"):
        place.verify([block])
    with pytest.raises(Refusal, match="is damaged"):
        list(store.read(path, "events"))


@pytest.mark.parametrize(("harm", "kinds"), [("swap", {"actors", "digest"}), ("lose", {"record"})])
def test_stored_events_that_were_changed_are_found_when_they_are_judged(
    tmp_path: Path, harm: str, kinds: set[str]
) -> None:
    """Histories as stored agree with their rows; with one value changed or lost, one of them is no run of the model."""
    cell = cells([REPAIRED])[0]
    place, block = committed(tmp_path, cell)
    judged = judge_block(tmp_path, block, cell)
    assert judged.ok and (judged.runs, judged.kinds) == (20, {})
    path = place.files("events", [block])[0]
    rows = [row for batch in store.read(path, "events") for row in batch.to_pylist()]
    values = next(row["values"] for row in rows if row["seed"] == 7 and row["action"] == "SendInitPidRequest")
    if harm == "swap":
        values[0] = next(value for value in rows[0]["values"] if '"Client' in value and value != values[0])
    else:
        values.pop()
    store.write(path, pa.Table.from_pylist(rows, SCHEMAS["events"]))
    judged = judge_block(tmp_path, block, cell)
    assert not judged.ok and {kind for kind, runs in judged.kinds.items() if runs == 1} == set(judged.kinds) >= kinds
    assert [finding.seed for finding in judged.findings] == [7]


def test_wilson_intervals_are_those_of_the_tables() -> None:
    """Values from the literature: 0 of 10, 1 of 10, 5 of 10, and nothing known at all."""
    assert wilson(0, 10) == (0.0, pytest.approx(0.2775, abs=1e-4))
    assert wilson(1, 10) == (pytest.approx(0.0179, abs=1e-4), pytest.approx(0.4042, abs=1e-4))
    assert wilson(5, 10) == (pytest.approx(0.2366, abs=1e-4), pytest.approx(0.7634, abs=1e-4))
    assert wilson(0, 0) == (0.0, 1.0)


@given(st.integers(1, 10_000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_intervals_hold_what_was_seen(seen: tuple[int, int]) -> None:
    """The interval lies within 0 and 1, around the rate that was seen."""
    low, high = wilson(*seen)
    assert 0 <= low <= seen[0] / seen[1] <= high <= 1 and low < high


def test_local_masters_retry_tasks() -> None:
    """However many cores they have."""
    assert session.checked_master("local[*]") == "local[*,4]"
    assert (session.checked_master("local"), session.checked_master("local[3,1]")) == ("local[1,4]", "local[3,1]")


def test_a_java_home_without_java_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing else is tried where somebody says where Java is."""
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    with pytest.raises(Refusal, match="JAVA_HOME is /nowhere, which has no bin/java"):
        needs.require_java()


@pytest.mark.parametrize("command", [
    ("campaign", FLAWED, "--runs", 1), ("check", "transactions/diary-01", "--engine", "spark"),
], ids=lambda command: command[0])
def test_without_the_extra_the_command_says_what_to_install(
    command: tuple[object, ...], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The core install has the commands, which ask for the extra in one sentence."""
    monkeypatch.setattr(needs, "find_spec", lambda name: None)
    assert call(*command, "--out", tmp_path / "c").refusal.endswith(
        "pyspark and pyarrow and pandas cannot be imported; install the extra with: pip install 'kafka-proto[spark]'")
    assert command[0] == "check" or not (tmp_path / "c").exists()


@pytest.mark.parametrize(("said", "sentence"), [
    ("Job aborted\n  File \"x.py\"\nModuleNotFoundError: No module named 'harness'\n\tat org.apache",
     "a worker cannot import harness; install the project on each machine, and let PYSPARK_PYTHON name the Python"),
    (f"Job aborted\nRuntimeError: {campaign.STOPPED}there is no room.\n", "there is no room"),
    ("Job aborted\njava.lang.OutOfMemoryError: Java heap space", "Spark gave up, java.lang.OutOfMemoryError: Java"),
])
def test_why_a_job_failed_is_told_in_one_sentence(said: str, sentence: str) -> None:
    """A worker without the project, a worker's own words, and whatever else Spark says."""
    assert last_words(RuntimeError(said), campaign.STOPPED).startswith(campaign.STOPPED + sentence)


def test_workers_elsewhere_run_the_python_that_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """On this machine workers run this Python; elsewhere the one that PYSPARK_PYTHON names, if it does."""
    monkeypatch.setenv("PYSPARK_DRIVER_PYTHON", "none")
    for here, named, chosen in ((True, "/opt/python", sys.executable), (False, "/opt/python", "/opt/python"),
                                (False, "", sys.executable)):
        monkeypatch.setenv("PYSPARK_PYTHON", named)
        session._choose_python(here)
        assert (os.environ["PYSPARK_PYTHON"], os.environ["PYSPARK_DRIVER_PYTHON"]) == (chosen, sys.executable)


def test_pulse_tells_of_blocks_that_are_not_committed(tmp_path: Path) -> None:
    """Not of those that are, nor of those that are over; what is no word of a worker is passed over."""
    one, other = BlockProgress(tmp_path, "one"), BlockProgress(tmp_path, "other")
    one.report(3, 1)
    other.report(40, 0)
    assert under_way(tmp_path, ()) == (43, 1)
    one.report(5, 2)
    (tmp_path / "odd.making").write_text("what", encoding="utf-8")
    assert under_way(tmp_path, ("other",)) == (5, 2)
    one.clear()
    one.clear()
    assert under_way(tmp_path, ("other",)) == (0, 0)
    BlockProgress(tmp_path / "gone", "two").report(1, 1)
    assert under_way(tmp_path / "gone", ()) == (0, 0)
