"""Campaigns on Spark, on one session of this process: the same runs as without it, resumable, checked from tables."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest
from support.commands.command_line import PATIENCE_S, call, started, wait_until
from support.spark import campaigns_made
from support.spark.campaigns_made import markers
from support.spark.held_workers import in_step_with, one_block_until, workers_of
from support.spark.spark_session import spark

from harness.campaign import judging
from harness.campaign import spark_campaign as campaigns
from harness.campaign.cells import cells
from harness.campaign.checks import CALM, rates, rates_by_faults, rates_by_sweep, reached
from harness.campaign.clusters import clusters, trail_of
from harness.campaign.judging import rejudge
from harness.campaign.store import MARKERS, CampaignStore, Manifest
from harness.campaign.tables import CampaignTables
from harness.model import Faults, Refusal, live
from harness.record import Recorder
from harness.simulate.runs.session import run_plain
from harness.simulate.states.guards import Guards
from harness.simulate.states.tables import Tables as Tables
from harness.simulate.strategies.by_name import Strategies
from harness.simulate.trails.replay import replay_plain

FLAWED, REPAIRED = "s4-copied-tail", "s4-copied-tail-repaired"
MIXED = ("pc-02-read-twice", FLAWED, REPAIRED, "happy-path")
MIXED_SAMPLED = (*MIXED, "--keep", "sample=0.02", "--coverage", "0.2")
SEEDS = 250


made = partial(campaigns_made.made, block=50)


def rows(out: Path, table: str) -> list[dict[str, Any]]:
    """Return all rows of a table, in an order of their own, without the clock's column."""
    frame = CampaignTables(spark(), CampaignStore(out)).frame(table).drop("wall_us", "day")
    return sorted((row.asDict() for row in frame.collect()), key=lambda row: json.dumps(row, sort_keys=True))


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A campaign of a thousand runs: two flawed scenarios, a repaired one, and replicated logs."""
    out = tmp_path_factory.mktemp("mixed") / "campaign"
    made(out, *MIXED_SAMPLED, runs=SEEDS)
    return out


@cache
def alone(what: str, strategy: str = "random", runs: int = SEEDS) -> Mapping[int, tuple[str | None, str | None]]:
    """Return digest and violation of each run as one plain process makes them."""
    cell, strategies = cells([what], (strategy,))[0], Strategies(strategy)
    tables = Tables(cell.build(), Guards() if strategies.campaign is not None else None)
    found = {}
    for seed in range(runs):
        run = run_plain(tables, cell.plan, strategies.run(seed), Recorder(keep=False))  # type: ignore[arg-type]
        found[seed] = run.digest, run.verdict.violated
    return found


def test_a_thousand_runs_have_the_digests_of_the_plain_runtime(mixed: Path) -> None:
    """Same scenario, same seed: same digest and same verdict, whoever made the run."""
    found = {(row["what"], row["seed"]): (row["digest"], row["violated"]) for row in rows(mixed, "runs")}
    assert found == {(what, seed): run for what in MIXED for seed, run in alone(what).items()}
    assert len(found) == 1_000


def test_runs_have_the_digests_of_the_command_line(mixed: Path, tmp_path: Path) -> None:
    """`simulate --seed` of a run that is in the table writes a history with the digest in the table."""
    found = {(row["what"], row["seed"]): row["digest"] for row in rows(mixed, "runs")}
    for what, seed in ((FLAWED, 0), (REPAIRED, 249), ("pc-02-read-twice", 7)):
        reported = call("simulate", what, "--seed", seed, "--out", tmp_path, "--json").json
        assert reported["digest"] == found[what, seed]


@pytest.mark.parametrize(("strategy", "what"), [("pct", FLAWED), ("systematic", FLAWED), ("guided", FLAWED),
                                               ("random", "leaders-crash")])
def test_other_strategies_and_timed_runs_have_the_same_digests_too(strategy: str, what: str, tmp_path: Path) -> None:
    """Guided and systematic searches begin as on the command line; a guided one begins anew with each block."""
    made(tmp_path, what, "--strategy", strategy, runs=40)
    found = {row["seed"]: (row["digest"], row["violated"]) for row in rows(tmp_path, "runs")}
    assert found == alone(what, strategy, 40)


def test_violations_are_data_and_a_complete_campaign_makes_nothing_again(mixed: Path) -> None:
    """The exit code is 0 though runs fail; started again, the same command finds every run there."""
    before = {path: path.stat().st_mtime_ns for path in (mixed / MARKERS).iterdir()}
    reported = made(mixed, *MIXED_SAMPLED, "--json", runs=SEEDS).json
    failing = sum(violated is not None for what in MIXED for _, violated in alone(what).values())
    assert [reported[name] for name in ("runs", "planned", "found", "failing")] == [1_000, 1_000, 1_000, failing]
    assert failing > 50 and before == {path: path.stat().st_mtime_ns for path in (mixed / MARKERS).iterdir()}


def test_only_what_is_missing_is_made_and_equals_what_was_lost(mixed: Path, tmp_path: Path) -> None:
    """Without some of its markers a campaign is as after a kill: their blocks are made again, row for row the same."""
    out = tmp_path / "campaign"
    shutil.copytree(mixed, out)
    lost = [path for end in ("-50", "-250") for path in (out / MARKERS).glob(f"*{end}.json")]
    for path in lost:
        path.unlink()
    told: list[tuple[str, Any]] = []
    with live.watched(lambda level, event, fields: told.append((event, fields["block"]))):
        reported = made(out, *MIXED_SAMPLED, "--json", runs=SEEDS).json
    assert (reported["runs"], reported["found"]) == (1_000, 600)
    assert sorted(told) == sorted(("block committed", path.stem) for path in lost), "each of these is told, once"
    for table in ("runs", "events", "violations", "coverage"):
        assert rows(out, table) == rows(mixed, table)


def test_one_scenario_or_one_day_is_read_alone(mixed: Path) -> None:
    """A scenario's rows lie in folders of their own, and nothing else is opened for them."""
    tables = CampaignTables(spark(), CampaignStore(mixed), what=FLAWED)
    files = [f"what={FLAWED}/" in path for path in tables.frame("runs").inputFiles()]
    assert len(files) == 5 and all(files) and tables.frame("runs").count() == SEEDS
    day = tables.blocks[0].day
    assert CampaignTables(spark(), CampaignStore(mixed), day=day).frame("runs").count() == 1_000
    assert CampaignTables(spark(), CampaignStore(mixed), day="2001-01-01").frame("events").count() == 0
    plain = spark().read.parquet(str(mixed / "runs")).where(f"what = '{FLAWED}'")
    assert plain.count() == SEEDS
    with pytest.raises(Refusal, match="has no runs of 'no-such'"):
        CampaignTables(spark(), CampaignStore(mixed), what="no-such")


def test_every_stored_history_is_judged_again_and_agrees(mixed: Path) -> None:
    """From the stored events alone: digests, verdicts, records, refinement and violations are as reported."""
    judged = {one.what: one for one in rejudge(CampaignTables(spark(), CampaignStore(mixed)))}
    assert set(judged) == set(MIXED) and all(one.ok for one in judged.values()), judged
    for what in MIXED:
        failing = sum(violated is not None for _, violated in alone(what).values())
        assert judged[what].kinds.get("property", 0) == failing <= judged[what].runs
    assert judged["happy-path"].refined == judged["happy-path"].runs > 0
    kept = sum(row["kept"] for row in rows(mixed, "runs"))
    assert sum(one.runs for one in judged.values()) == kept < 1_000
    events = CampaignTables(spark(), CampaignStore(mixed)).frame("events")
    assert sum(one.events for one in judged.values()) == events.count()


def test_an_interrupt_ends_judging_in_order(mixed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The job is ended, whoever deals with interrupts hears of it, and the session goes on."""
    monkeypatch.setattr(judging, "LOOK", 0)
    tables, reported = CampaignTables(spark(), CampaignStore(mixed)), list[str]()

    def interrupted(done: int, planned: int, message: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        rejudge(tables, interrupted, lambda: reported.append("heard"))
    assert reported == ["heard"] and tables.frame("runs").count() == 1_000


def test_violations_of_a_flaw_are_a_cluster_with_its_shortest_witness(mixed: Path) -> None:
    """The published flaw is one cluster of eight steps; its witness replays; the repaired twin has none."""
    found = clusters(CampaignTables(spark(), CampaignStore(mixed), what=FLAWED))
    assert [(one.property, one.has, one.proved) for one in found] == [("LogsAgreeUpToHwm", 8, True)]
    best = found[0]
    assert best.violations == best.runs == sum(violated is not None for _, violated in alone(FLAWED).values())
    run = replay_plain(trail_of(best.trail))
    assert (run.verdict.violated, run.verdict.step) == ("LogsAgreeUpToHwm", 8)
    assert best.faults == ("BecomeLeader",) and "CommitTxnLogAppend" in best.actions
    assert clusters(CampaignTables(spark(), CampaignStore(mixed), what=REPAIRED)) == []


def test_groups_beyond_the_most_are_told_as_they_were_found(mixed: Path) -> None:
    """Where nothing is shrunk the witness is the shortest run of its group, and says so."""
    found = clusters(CampaignTables(spark(), CampaignStore(mixed), what=FLAWED), most=0)
    assert found and not any(one.shrunk or one.proved for one in found)
    assert sum(one.violations for one in found) == sum(v is not None for _, v in alone(FLAWED).values())


def test_rates_count_what_the_runs_say(mixed: Path) -> None:
    """All runs, and the same by fault mix: numbers add up, and the interval holds the rate."""
    tables = CampaignTables(spark(), CampaignStore(mixed))
    whole = {rate.what: rate for rate in rates(tables)}
    mixes = rates_by_faults(tables)
    for what in MIXED:
        failing = sum(violated is not None for _, violated in alone(what).values())
        assert (whole[what].runs, whole[what].failing, whole[what].errors) == (SEEDS, failing, 0)
        assert whole[what].low <= whole[what].rate <= whole[what].high
        mine = [rate for rate in mixes if rate.what == what]
        assert (sum(rate.runs for rate in mine), sum(rate.failing for rate in mine)) == (SEEDS, failing)
    assert {rate.value for rate in mixes if rate.what == "happy-path"} == {CALM}
    assert rates_by_sweep(tables) == []


def test_swept_values_have_rates_of_their_own(tmp_path: Path) -> None:
    """The flaw needs its repair left out: with the repair swept, one value fails and the other does not."""
    made(tmp_path, FLAWED, "--sweep", "repair=,S4", "--keep", "failing", "--coverage", "0", runs=60)
    found = {rate.value: rate for rate in rates_by_sweep(CampaignTables(spark(), CampaignStore(tmp_path)))}
    assert {value: rate.runs for value, rate in found.items()} == {"repair=": 60, "repair=S4": 60}
    assert found["repair="].failing > 0 == found["repair=S4"].failing
    assert reached(CampaignTables(spark(), CampaignStore(tmp_path)))[0].states == 0


def test_runs_have_the_faults_that_are_asked_for(tmp_path: Path) -> None:
    """As `simulate` has them: each kind that the model can have, once, others as asked, on the actors named."""
    asked = ("--faults", "all,crash=2", "--target", "b1", "--set", "log=later", "--coverage", 0)
    made(tmp_path, "kafka/4.4", *asked, runs=20)
    (cell,) = CampaignStore(tmp_path).manifest().cells
    once = dict.fromkeys(("drop", "duplicate", "delay", "partition", "one_way", "pause", "skew"), 1)
    assert cell.faults == {**once, "crash": 2, "targets": ["b1"]}
    happened = {fault for row in rows(tmp_path, "runs") for fault in row["faults"]}
    assert {"Drop", "Delay", "Pause", "Crash"} <= happened
    swept = cells(["kafka/4.4"], sweeps=("crash=0,3",), faults=lambda own, model: Faults(crash=1, targets=("b2",)))
    assert [cell.faults.get("crash") for cell in swept] == [None, 3]
    refused = call("campaign", "kafka/4.4", "--runs", 1, "--faults", "reorder=1", "--out", tmp_path / "no")
    assert refused.code == 2 and "keeps no order" in refused.err


def test_coverage_and_its_curve_are_those_of_one_process(tmp_path: Path) -> None:
    """With every run covered: actions, guards and states are what one process counts; the curve ends at all states."""
    made(tmp_path, FLAWED, "--coverage", "1", runs=100)
    found = reached(CampaignTables(spark(), CampaignStore(tmp_path)))[0]
    cell, strategies = cells([FLAWED])[0], Strategies("random")
    tables = Tables(cell.build(), Guards())
    coverage = strategies.cover(tables)
    news = Counter[int]()
    for seed in range(100):
        before = coverage.states
        run_plain(tables, cell.plan, strategies.run(seed))  # type: ignore[arg-type]
        news[seed // 5] += coverage.states - before
    assert (found.states, found.covered, found.actions) == (coverage.states, 100, dict(sorted(coverage.taken.items())))
    assert tables.guards is not None
    assert [name for name, _ in found.one_way] == [str(guard) for guard, _ in tables.guards.one_way()]
    assert sorted(found.unseen) == sorted(map(str, coverage.unseen()))
    assert [point.new for point in found.curve] == [news[n] for n in range(20)]
    assert found.curve[-1].states == found.states and found.curve[0].per_thousand == 200 * found.curve[0].new


@pytest.mark.parametrize(("arguments", "said"), [
    ([REPAIRED], "holds another campaign: its scenarios and models are happy-path, pc-02-read-twice, s4-"),
    ([*MIXED, "--keep", "all"], "holds another campaign: its keep is sample=0.02, not all"),
    ([*MIXED_SAMPLED, "--strategy", "pct"], "its strategies, settings"),
    (["no-such-thing"], "nor a scenario of that name; see kafka-proto list"),
    ([*MIXED, "--keep", "some"], "expected --keep all, failing or sample=F"),
    ([*MIXED, "--coverage", "2"], "expected --coverage from 0 to 1, found 2"),
])
def test_what_cannot_be_is_refused_and_nothing_is_touched(arguments: list[str], said: str, mixed: Path) -> None:
    """Another campaign's folder, unknown names and values: one sentence, exit code 2, and all files as before."""
    before = {path: path.stat().st_mtime_ns for path in mixed.rglob("*") if path.is_file()}
    assert said in call("campaign", *arguments, "--runs", 10, "--out", mixed, "--block", 50).refusal
    assert before == {path: path.stat().st_mtime_ns for path in mixed.rglob("*") if path.is_file()}


def test_a_folder_keeps_its_size_of_blocks_where_nothing_is_said(mixed: Path) -> None:
    """The same command without --block finds all runs that there are."""
    said = call("campaign", *MIXED_SAMPLED, "--runs", SEEDS, "--out", mixed, "--json").json
    assert said["found"] == said["planned"] == said["runs"]


def test_a_worker_that_fails_ends_the_campaign_with_its_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing can be written, workers say why in one sentence, and what is committed stays."""
    spark()
    made(tmp_path, FLAWED, runs=50)
    (tmp_path / "violations").rename(tmp_path / "aside")
    (tmp_path / "violations").write_text("a file where a folder should be", encoding="utf-8")
    monkeypatch.setattr(CampaignStore, "verify", lambda store, blocks: None)
    outcome = call("campaign", FLAWED, "--runs", 100, "--out", tmp_path, "--block", 50)
    assert "the campaign cannot go on: " in outcome.refusal and "cannot be written to, " in outcome.refusal
    assert outcome.refusal.endswith("(50 of 100 runs are kept)")


def test_an_interrupt_keeps_what_is_committed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C in the middle: some blocks are there, complete; the next start makes the others."""
    manifest = Manifest(cells(["fencing-battle"]), "failing", 0.0, 4)
    folder, heard = tmp_path / "campaign", tmp_path / "heard"

    def progress(done: int, planned: int, message: str) -> None:
        if going.store.committed() and not heard.exists():
            os.kill(os.getpid(), signal.SIGINT)

    going = campaigns.SparkCampaign(folder, manifest, 60, progress, heard.touch)
    with monkeypatch.context() as held:
        held.setattr(campaigns, "make_blocks", one_block_until(heard))
        outcome = going.run(spark(), "2026-01-02")
    assert outcome.interrupted and 0 < outcome.runs < 60 and heard.exists()
    again = campaigns.SparkCampaign(folder, manifest, 60).run(spark(), "2026-01-03")
    assert not again.interrupted and (again.runs, again.found >= outcome.runs) == (60, True)
    digests = {row["seed"]: row["digest"] for row in rows(folder, "runs")}
    assert digests == {seed: digest for seed, (digest, _) in alone("fencing-battle", runs=60).items()}


def test_progress_has_numbers_before_the_first_block_is_committed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One block of all runs: what is done is seen rising from the start, and never beyond what there is."""
    manifest = Manifest(cells(["rp-04-fast-failover"]), "failing", 0.0, 600)
    reported: list[tuple[int, int, str, int]] = []
    folder, shown = tmp_path / "campaign", tmp_path / "shown"

    def progress(done: int, planned: int, message: str) -> None:
        reported.append((done, planned, message, len(going.store.committed())))
        shown.write_text("\n".join(str(each[0]) for each in reported), encoding="utf-8")

    monkeypatch.setattr(campaigns, "make_blocks", in_step_with(shown, times=3))
    going = campaigns.SparkCampaign(folder, manifest, 600, progress)
    with going.alone():
        going.begin("starting Spark")
        assert reported == [(0, 600, "starting Spark", 0)]
        outcome = going.run(spark(), "2026-01-02")
    early = [done for done, _, _, committed in reported if not committed]
    assert early == sorted(early) and 0 < early[-1] <= 600 and len(set(early)) > 2
    assert reported[-1][:3] == (600, 600, f"{outcome.failing} failing") and outcome.failing > 0
    assert not (folder / ".parts").exists()


@pytest.fixture
def undisturbed(tmp_path: Path) -> Iterator[tuple[list[object], Path]]:
    """The arguments of a campaign that takes a while, and its tables."""
    arguments = ["campaign", "rp-04-fast-failover", "--runs", 1_200, "--block", 25, "--keep", "all", "--coverage", 0]
    outcome = call(*arguments, "--out", tmp_path / "calm")
    assert outcome.code == 0, outcome.err
    yield arguments, tmp_path / "calm"


@pytest.mark.large
def test_a_driver_killed_three_times_leaves_the_tables_of_an_undisturbed_campaign(
    undisturbed: tuple[list[object], Path], tmp_path: Path
) -> None:
    """SIGKILL in the middle, three times; SIGTERM once, as Ctrl-C; then the tables are equal, row for row."""
    arguments, calm = undisturbed
    out = tmp_path / "killed"
    for turn, number in enumerate((signal.SIGKILL, signal.SIGKILL, signal.SIGKILL, signal.SIGTERM)):
        before = markers(out) if turn else 0
        with started(*arguments, "--out", out) as process:
            wait_until(lambda before=before: markers(out) > before + 1)
            os.kill(process.pid, number)
            code = process.wait(PATIENCE_S)
            assert code == (-signal.SIGKILL if number == signal.SIGKILL else 130)
    assert len(CampaignStore(out).committed()) < len(CampaignStore(calm).committed())
    made_now = call(*arguments, "--out", out, "--json").json
    assert made_now["runs"] == 1_200 > made_now["found"] >= 200
    for table in ("runs", "events", "violations", "coverage"):
        assert rows(out, table) == rows(calm, table)


@pytest.mark.large
def test_a_killed_worker_loses_nothing_that_was_committed(
    undisturbed: tuple[list[object], Path], tmp_path: Path
) -> None:
    """A worker that is killed is replaced, and its blocks that were not committed are made again."""
    arguments, calm = undisturbed
    out = tmp_path / "killed"
    with started(*arguments, "--out", out) as process:
        wait_until(lambda: markers(out) > 1)
        wait_until(lambda: bool(workers_of(process.pid)))
        os.kill(workers_of(process.pid)[0], signal.SIGKILL)
        assert process.wait(5 * PATIENCE_S) == 0
    for table in ("runs", "events", "violations"):
        assert rows(out, table) == rows(calm, table)
