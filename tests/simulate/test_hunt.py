"""The hunt: flaws found, shrunk and silent where they are repaired; what is not as expected is said."""

from __future__ import annotations

import json
import multiprocessing
import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import attrs
import pytest
from support.commands.command_line import call
from support.runs.named_runs import scenario_of

from harness.cli import commands
from harness.memo.interning import IdView
from harness.model import Checked, FrozenMap, canonical_text
from harness.record import read_trail
from harness.record.search_results import Searched, code_digest
from harness.simulate.hunting import hunt
from harness.simulate.hunting.hunt import BRIEF, FIRST, HELD, SILENCE, Hunt, chosen_scenarios
from harness.simulate.hunting.rows import ScoreboardRow
from harness.simulate.hunting.scoreboard import SEARCHED, scoreboard
from harness.simulate.runs.plan import resolve
from harness.simulate.runs.session import Session
from harness.simulate.states.tables import Tables
from harness.simulate.strategies.portfolio import PortfolioStrategy
from harness.simulate.trails.replay import replay_plain
from harness.simulate.trails.shrink import perturbing_part
from harness.verify.spec_holding import held

Add = Callable[..., None]
RUNS = 60
CHOSEN = ("happy-path", "s2-stuck-replica", "s3-wiped-metadata", "s4-copied-tail")
EACH = ("random", "pct", "systematic", "guided")
ASKED = tuple(word for name in EACH for word in ("--strategy", name))


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> dict[str, ScoreboardRow]:
    """The rows of a hunt over a few scenarios under four strategies, made in this process."""
    chosen, out = chosen_scenarios(CHOSEN), tmp_path_factory.mktemp("out")
    hunting = Hunt(chosen, out, RUNS, processes=0, hold=held, strategies=EACH)
    return {row.scenario: row for row in hunting.run()}


@pytest.fixture
def edited(monkeypatch: pytest.MonkeyPatch) -> None:
    """No search that is kept is of the code as it is."""
    monkeypatch.setattr(Searched, "is_of_this_code", False)


@pytest.fixture(scope="module")
def thorough(tmp_path_factory: pytest.TempPathFactory) -> dict[str, ScoreboardRow]:
    """The rows of a thorough hunt over two flaws and their repaired twins."""
    chosen = chosen_scenarios(["s3-wiped-metadata", "s4-copied-tail"])
    hunting = Hunt(chosen, tmp_path_factory.mktemp("thorough"), RUNS, processes=0, thorough=True,
                   strategies=EACH)
    return {row.scenario: row for row in hunting.run()}


def test_hunt_over_a_few_scenarios_is_as_expected(rows: dict[str, ScoreboardRow]) -> None:
    """Rows come in the order of the table, a repaired twin with its flawed row; all are as expected."""
    assert list(rows) == [
        "happy-path", "s2-stuck-replica", "s2-stuck-replica-repaired", "s3-wiped-metadata",
        "s3-wiped-metadata-repaired", "s4-copied-tail", "s4-copied-tail-repaired",
    ]
    assert [row.scenario for row in rows.values() if not row.as_expected] == []


@pytest.mark.parametrize("name", ["s3-wiped-metadata", "s4-copied-tail"])
def test_twin_is_silent_over_twenty_times_the_runs_that_found_the_flaw(
    name: str, thorough: dict[str, ScoreboardRow]
) -> None:
    """In a thorough hunt, for each strategy that found the flaw, unless the twin has no more runs of it."""
    twin = {tried.strategy: tried for tried in thorough[f"{name}-repaired"].tried}
    found = {tried.strategy: tried.found_at for tried in thorough[name].tried if tried.found_at}
    assert found and thorough[f"{name}-repaired"].as_expected
    for strategy, at in found.items():
        assert twin[strategy].exhausted or twin[strategy].runs >= SILENCE * at
        assert twin[strategy].found_at is None


@pytest.mark.parametrize("name", ["s3-wiped-metadata", "s4-copied-tail"])
@pytest.mark.usefixtures("edited")
def test_silent_runs_of_a_twin_would_have_found_the_flaw_several_times(name: str, tmp_path: Path) -> None:
    """In any hunt, all strategies together; the row says how often, by what finding took in the flawed scenario."""
    flawed, twin = Hunt(chosen_scenarios([name]), tmp_path, processes=0, strategies=EACH).run()
    found = {tried.strategy: tried.found_at for tried in flawed.tried if tried.found_at}
    assert twin.due == pytest.approx(sum(t.runs / found[t.strategy] for t in twin.tried if t.strategy in found))
    assert twin.due is not None and twin.due >= BRIEF and twin.as_expected and twin.flawed == name
    assert twin.runs < sum(SILENCE * at for at in found.values())


@pytest.mark.parametrize("name", ["s2-stuck-replica", "s4-copied-tail"])
@pytest.mark.usefixtures("edited")
def test_hunt_makes_one_series_of_runs_up_to_the_violation(name: str, tmp_path: Path) -> None:
    """By default, under the portfolio; the repaired twin gets as many as three strategies would give it."""
    flawed, twin = Hunt(chosen_scenarios([name]), tmp_path, processes=0, hold=held).run()
    found, = flawed.tried
    assert (found.strategy, found.found_at, flawed.as_expected) == ("portfolio", flawed.runs, True)
    assert flawed.runs <= FIRST and flawed.violated == flawed.expected
    silent, = twin.tried
    assert (silent.strategy, silent.runs) == ("portfolio", max(300, BRIEF * flawed.runs))
    assert twin.as_expected and twin.due == twin.runs / flawed.runs
    assert twin.held == (HELD if twin.spec else 0)
    lines = scoreboard((flawed, twin), 2)
    assert lines[0].split() == ["scenario", "runs", "found", "by", "run", "steps"]
    assert lines[1].split()[:5] == ["ok", name, str(flawed.runs), "portfolio", str(flawed.runs)]


@pytest.mark.parametrize("name", ["s2-stuck-replica", "s4-copied-tail"])
def test_twin_that_a_search_of_this_code_covered_gets_the_runs_that_follow_its_spec(name: str, tmp_path: Path) -> None:
    """Nothing is left to be found there, so that these are enough, but for a hunt that is thorough, or told how many.
    """
    chosen = chosen_scenarios([name])
    flawed, twin = Hunt(chosen, tmp_path, processes=0, hold=held).run()
    assert flawed.as_expected and twin.as_expected and twin.is_covered
    assert (twin.runs, twin.held, twin.runs_needed) == (HELD, HELD if twin.spec else 0, 0)
    assert Hunt(chosen, tmp_path, 70, processes=0).run()[1].runs == 70
    assert Hunt(chosen, tmp_path, processes=0, thorough=True).run()[1].runs >= SILENCE * flawed.runs


@pytest.mark.usefixtures("edited")
@pytest.mark.parametrize("first", [1, 300])
def test_what_the_portfolio_misses_all_others_look_for(
    first: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The row names the one that found it first; the twin has the portfolio's runs and those that would find it."""
    monkeypatch.setattr(hunt, "FIRST", first)
    flawed, twin = Hunt(chosen_scenarios(["s3-wiped-metadata"]), tmp_path, processes=0).run()
    found = flawed.first
    assert found is not None and flawed.as_expected and twin.as_expected
    assert twin.due is not None and twin.due >= BRIEF
    names = [tried.strategy for tried in flawed.tried]
    line = scoreboard((flawed, twin), 2)[1]
    assert f"{found.strategy} {found.found_at}" in line
    if first == 300:
        assert names == ["portfolio"] == [tried.strategy for tried in twin.tried]
        return
    assert sorted(names) == sorted((*EACH, "portfolio")) and found.strategy in EACH
    assert {tried.strategy for tried in twin.tried} == {"portfolio", min(
        (t for t in flawed.tried if t.found_at), key=lambda t: (t.found_at or 0) * (8 if t.strategy == "guided" else 1)
    ).strategy}
    assert [tried.runs for tried in flawed.missed if tried.strategy == "portfolio"] == [1]


def test_silent_row_says_how_many_of_a_searchs_states_its_runs_visited(tmp_path: Path) -> None:
    """Before fair endings, each once; a search with a reduction or a bound on timers counts otherwise."""
    chosen = chosen_scenarios(["s2-stuck-replica"])
    twin = Hunt(chosen, tmp_path, 40, processes=0).run()[1]
    assert twin.searched is not None and twin.is_numbered and twin.searched.numbers(chosen[1])
    model, plan = resolve(twin.scenario)
    states = set()
    for seed in range(twin.runs):
        session = Session(Tables(model), plan, PortfolioStrategy(seed))
        while True:
            states.add(canonical_text(FrozenMap(IdView(session.tables, session.node.state))))
            if (n := session.decide()) < 0 or session.fair_from is not None:
                break
            session.take(n)
    assert twin.visited == len(states) < twin.searched.states
    text = " ".join(" ".join(scoreboard([twin], 1)).split())
    assert f"; these runs visited {len(states):,} of them ({100 * len(states) / twin.searched.states:.2g} %); " in text
    reduced = attrs.evolve(twin.searched, reductions=("symmetry",))
    assert not reduced.numbers(chosen[1]) and attrs.evolve(twin, is_numbered=False).visited is None
    assert not attrs.evolve(twin.searched, timers={"": 1}).numbers(chosen[1])


def test_row_says_what_a_search_proved_of_this_code_only(rows: dict[str, ScoreboardRow]) -> None:
    """Instead of its runs where it was of all the scenario, beside them where it was of less; nothing of other code."""
    row = rows["s4-copied-tail-repaired"]
    assert row.searched is not None and row.is_covered is row.searched.is_of_this_code
    found = attrs.evolve(row.searched, digest=code_digest("kafka_proto.transactions"))
    texts = [" ".join(" ".join(scoreboard([made], 1)).split()) for made in (
        attrs.evolve(row, searched=found, is_covered=True), attrs.evolve(row, searched=found, is_covered=False),
        attrs.evolve(row, searched=attrs.evolve(found, digest=""), is_covered=False),
        attrs.evolve(row, searched=attrs.evolve(found, complete=False), is_covered=False),
    )]
    said = f"searched completely: {found.states:,} states at brokers=2 clients=2 elections=1"
    assert [said in text for text in texts] == [True, True, False, False]
    assert ["no violation: the flaw of" in text for text in texts] == [False, True, True, True]
    assert [SEARCHED in text for text in texts] == [True, False, False, False]
    assert f"searched in part: none within {found.steps} steps" in texts[3]
    bad = rows["s4-copied-tail"]
    assert bad.searched is not None and (bad.searched.violated, bad.searched.steps) == ("LogsAgreeUpToHwm", 8)
    now = attrs.evolve(bad, searched=attrs.evolve(bad.searched, digest=found.digest))
    text = " ".join(" ".join(scoreboard([now], 1)).split())
    assert "a search finds it after 8 steps, the fewest possible at brokers=2 clients=2" in text


def test_search_at_another_size_says_at_which_its_steps_are_the_fewest(rows: dict[str, ScoreboardRow]) -> None:
    """A run of the scenario's own size may take fewer steps than the shortest at a size that can be searched."""
    bad = rows["s4-copied-tail"]
    assert bad.searched is not None and bad.steps_shrunk == 9
    other = attrs.evolve(bad.searched, digest=code_digest("kafka_proto.transactions"), steps=10, network="fifo",
                         sizes={**bad.searched.sizes, "clients": 1})
    text = " ".join(" ".join(scoreboard([attrs.evolve(bad, searched=other)], 1)).split())
    assert "a search finds it after 10 steps, the fewest possible at another size, " in text
    assert "clients=1 elections=1 topic-partitions=1 transactional-ids=1 txn-log-partitions=1 network=fifo" in text


@pytest.mark.parametrize("name", ["s2-stuck-replica", "s3-wiped-metadata", "s4-copied-tail"])
def test_finding_is_a_short_trail_that_replays(name: str, rows: dict[str, ScoreboardRow]) -> None:
    """The trail of a row violates what was expected, and is as long as the row says."""
    row = rows[name]
    assert row.trail is not None
    trail = read_trail(Path(row.trail))
    assert replay_plain(trail).verdict.violated == row.violated == row.expected == trail.violates
    assert row.steps_shrunk == len(perturbing_part(trail)) <= (row.steps_found or 0)
    assert row.fair_steps == len(trail.choices) - row.steps_shrunk
    assert Path(row.history or "").exists()


def test_scoreboard_fits_into_80_columns_and_cuts_nothing_off(rows: dict[str, ScoreboardRow]) -> None:
    """Names are written in full, misses are dashes, and each finding has its reason, trail and replay command."""
    lines = scoreboard(tuple(rows.values()), len(rows), 80)
    paths = ("  trail   ", "  replay  ")
    assert max(len(line) for line in lines if not line.startswith(paths)) <= 80
    text = "\n".join(lines)
    assert "…" not in text
    for row in rows.values():
        line = next(line for line in lines if line.startswith(f"ok  {row.scenario} "))
        if row.violated is None:
            assert line.split() == ["ok", row.scenario, str(row.runs), "searched" if row.is_covered else "none"]
            follow = f"{row.held} runs follow {row.spec}" if row.spec else "no spec to follow"
            said = f"a violation in 1 of {row.runs // 3} runs would have shown" if row.due is None else (
                f"the flaw of {row.flawed} would have been found about {round(row.due)} times")
            said = f"searched completely: {row.searched.states:,} states at {row.searched.within}" if (
                row.searched is not None and row.is_covered) else f"no violation: {said}"
            said += f"; these runs visited {row.visited:,} of them" if row.visited is not None else ""
            assert re.search(f"{re.escape(said)}(; | .[0-9.]+ %.; ){follow}", " ".join(text.split()))
            continue
        found = [str(next(t.found_at for t in row.tried if t.strategy == name) or "-") for name in EACH]
        steps = [str(row.steps_found), "->", str(row.steps_shrunk)]
        assert line.split() == ["ok", row.scenario, str(row.runs), *found, *steps]
        assert f"      violates {row.violated}" in lines
        assert f"  trail   {row.trail}" in lines
        assert f"  replay  {row.replay}" in lines
        assert (row.reason or "missing") in " ".join(text.split())
    assert lines[-1] == f"{len(rows)} of {len(rows)} scenarios as expected"


def test_scoreboard_shows_a_strategy_that_missed_and_a_fair_ending(rows: dict[str, ScoreboardRow]) -> None:
    """A miss is a dash; a fair ending is kept apart from the steps that the trail was shrunk to."""
    row = rows["s4-copied-tail"]
    missed = [attrs.evolve(tried, found_at=None) if tried.strategy == "pct" else tried for tried in row.tried]
    liveness = attrs.evolve(row, tried=tuple(missed), fair_steps=7, fair_cycle=True, as_expected=False, expected=None)
    lines = scoreboard((liveness,), 3)
    assert lines[2].split()[4] == "-"
    assert lines[2].startswith("NO  s4-copied-tail")
    assert any(f"-> {row.steps_shrunk} steps, then a fair cycle" in line for line in lines)
    assert "NOT AS EXPECTED: violates LogsAgreeUpToHwm, expected no violation" in " ".join(" ".join(lines).split())
    assert lines[-1] == "0 of 1 scenario as expected, 2 not finished"
    endless = attrs.evolve(liveness, fair_cycle=False)
    assert any("steps, then 7 fair steps" in line for line in scoreboard((endless,), 1))


@pytest.mark.parametrize(("name", "changed", "runs", "said"), [
    ("happy-path", {"expected": "Atomicity"}, 20, [
        "NO wrong", "- - - - not found", "NOT AS EXPECTED: no run violates Atomicity", "0 of 1 scenario as expected"]),
    ("s4-copied-tail", {"expected": None, "repaired": None}, RUNS, [
        "NOT AS EXPECTED: violates LogsAgreeUpToHwm, expected no violation",
        "replay kafka-proto replay {out}/wrong.trail.jsonl"]),
    ("happy-path", {"witnesses": ("ProducerIsFenced",)}, 20, ["NOT AS EXPECTED: no run reached ProducerIsFenced"]),
], ids=["a flaw that is absent", "a violation that nobody expects", "a witness that no run reaches"])
def test_scenario_that_is_not_as_expected_fails_the_hunt(
    name: str, changed: dict[str, Any], runs: int, said: list[str], add: Add, tmp_path: Path
) -> None:
    """An expected violation never comes; a claim fails where none is expected, which is found, shrunk and reported;
    silence may be vacuous."""
    add(attrs.evolve(scenario_of(name), name="wrong", **changed))
    outcome = call("hunt", "wrong", "--seeds", runs, *ASKED, "--out", tmp_path)
    text = " ".join(outcome.out.split())
    assert outcome.code == 1
    assert [part for part in said if part.format(out=tmp_path) not in text] == []
    board = json.loads((tmp_path / "scoreboard.json").read_text(encoding="utf-8"))
    assert [row["as_expected"] for row in board["scenarios"]] == [False]


def test_twin_with_the_flaw_is_not_as_expected(add: Add, tmp_path: Path) -> None:
    """A repair that repairs nothing fails the hunt in the row of the twin, not in that of the flaw."""
    flawed = scenario_of("s3-wiped-metadata")
    twin = attrs.evolve(flawed, name="wrong-repaired", expected=None, repaired=None)
    add(attrs.evolve(flawed, name="wrong", repaired="wrong-repaired"), twin)
    outcome = call("hunt", "wrong", "--seeds", RUNS, "--out", tmp_path, "--json")
    assert outcome.code == 1
    assert [row["as_expected"] for row in outcome.json["scenarios"]] == [True, False]


def test_progress_counts_runs_up_to_those_planned(tmp_path: Path) -> None:
    """Reports never go back, and the last one has all runs done."""
    reports: list[tuple[int, int]] = []
    hunting = Hunt(chosen_scenarios(["s4-copied-tail"]), tmp_path, RUNS, 0, lambda *report: reports.append(report[:2]))
    rows = hunting.run()
    assert [done for done, _ in reports] == sorted(done for done, _ in reports)
    assert reports[-1] == (sum(row.runs for row in rows),) * 2


def test_worker_that_is_killed_ends_the_hunt_with_what_is_finished(tmp_path: Path) -> None:
    """A hunt does not wait for ever for a worker that the machine has killed."""

    def kill(done: int, planned: int, message: str) -> None:
        if message.startswith("1 of"):
            for worker in multiprocessing.active_children():
                worker.kill()

    hunting = Hunt(chosen_scenarios(["s2-stuck-replica"]), tmp_path, 100_000, 1, kill)
    assert [row.scenario for row in hunting.run()] == ["s2-stuck-replica"]
    assert not hunting.interrupted
    assert "a worker process was killed" in (hunting.failure or "")


def test_hunt_in_other_processes_finds_the_same(rows: dict[str, ScoreboardRow], tmp_path: Path) -> None:
    """Where the runs are made changes nothing but the time."""
    hunting = Hunt(chosen_scenarios(["s3-wiped-metadata"]), tmp_path, RUNS, 2, strategies=EACH)
    found = {row.scenario: row for row in hunting.run()}
    for name, row in found.items():
        here = rows[name]
        assert row.tried == here.tried
        assert (row.violated, row.steps_shrunk, row.reason) == (here.violated, here.steps_shrunk, here.reason)


def test_row_does_not_depend_on_which_worker_was_done_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three strategies find this flaw in their second run."""
    chosen, batches = chosen_scenarios(("hanging-transaction",))[:1], Hunt._batches
    row, = Hunt(chosen, tmp_path, 4, processes=0, strategies=EACH).run()
    monkeypatch.setattr(Hunt, "_batches", lambda *arguments: batches(*arguments)[::-1])
    other, = Hunt(chosen, tmp_path, 4, processes=0, strategies=EACH).run()
    assert [one.found_at for one in row.tried] == [2, 1, 2, 2]
    assert (row.steps_found, row.steps_shrunk, row.reason) == (other.steps_found, other.steps_shrunk, other.reason)


def test_scoreboard_shows_the_length_of_the_flaw_in_the_spec(add: Add, tmp_path: Path) -> None:
    """A search finds it once for the row; a spec without the flaw is not as expected, whatever the runs find."""
    flawed = attrs.evolve(scenario_of("s4-copied-tail"), repaired=None)
    repaired = {**flawed.settings, "repair": "S4"}
    spec = Checked(flawed.model, "LogsAgreeUpToHwm", flawed.sizes, flawed.settings)
    add(attrs.evolve(flawed, name="wrong-in-both", checked=spec),
        attrs.evolve(flawed, name="wrong", checked=attrs.evolve(spec, settings=repaired)))
    outcome = call("hunt", "wrong-in-both", "wrong", "--seeds", RUNS, *ASKED, "--out", tmp_path, "--json")
    both, one = outcome.json["scenarios"]
    assert outcome.code == 1
    assert (both["as_expected"], both["checked"]["steps"], both["steps_shrunk"]) == (True, 8, 9)
    assert (one["as_expected"], one["checked"]["steps"], one["violated"]) == (False, None, "LogsAgreeUpToHwm")
    text = (tmp_path / "scoreboard.txt").read_text(encoding="utf-8")
    said = " ".join(text.split())
    assert next(line for line in text.splitlines() if line.startswith("ok  wrong-in-both")).endswith("9     8")
    assert f"in {flawed.model} LogsAgreeUpToHwm is violated after 8 steps, the fewest possible" in said
    assert f"but a search of {flawed.model} does not find LogsAgreeUpToHwm" in said


def test_scoreboard_names_the_strategies_that_missed(add: Add, tmp_path: Path) -> None:
    """With the number of their runs, where another strategy found what was expected."""
    add(attrs.evolve(scenario_of("s4-copied-tail"), name="wrong", repaired=None))
    outcome = call("hunt", "wrong", "--seeds", 10, *ASKED, "--out", tmp_path)
    row, = json.loads((tmp_path / "scoreboard.json").read_text(encoding="utf-8"))["scenarios"]
    missed = [name for name in EACH if row["strategies"][name]["found_at"] is None]
    assert row["missed_by"] == missed and missed
    assert f"missed by {', '.join(f'{name} (10 runs)' for name in missed)}" in " ".join(outcome.out.split())


def test_hunt_through_all_shows_findings_first_and_a_line_for_each_group_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows without a finding are one line for each group; --all and the files have a row for each."""
    chosen = chosen_scenarios(CHOSEN)
    monkeypatch.setattr(hunt, "scenarios", lambda: chosen)
    short, long = (call("hunt", "--seeds", RUNS, "--out", tmp_path, *more).out for more in ((), ("--all",)))
    rows = [line.split()[1] for line in short.splitlines() if line.startswith("ok  ")]
    assert sorted(rows[:3]) == ["s2-stuck-replica", "s3-wiped-metadata", "s4-copied-tail"] and rows[3:] == ["1", "3"]
    assert "ok  3 scenarios of transactions: no violation in " in short and "--all shows a row for each" in short
    for text in (long, (tmp_path / "scoreboard.txt").read_text(encoding="utf-8")):
        shown = {line.split()[1] for line in text.splitlines() if line.startswith("ok  ")}
        assert shown == {scenario.name for scenario in chosen} and "--all" not in text


@pytest.mark.parametrize(("digest", "said"), [
    (None, ", same digest on trio"),
    ("another", "NOT AS EXPECTED: violates OnePidPerTid, but replays with another digest on trio"),
], ids=["as it is", "with a runtime that differs"])
def test_finding_is_replayed_on_trio(
    digest: str | None, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The row says that the digest is the same; where it is not, the row is not as expected."""
    if digest is not None:
        monkeypatch.setattr(commands, "replayed_on_trio", lambda trail: SimpleNamespace(digest=digest))
    outcome = call("hunt", "s3-wiped-metadata", "--seeds", RUNS, "--out", tmp_path)
    assert outcome.code == (digest is not None)
    assert said in " ".join(outcome.out.split())
    row, *_ = json.loads((tmp_path / "scoreboard.json").read_text(encoding="utf-8"))["scenarios"]
    assert (row["same_on_trio"], row["as_expected"]) == (digest is None,) * 2
