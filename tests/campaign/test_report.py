"""Reports and comparisons of campaigns: what the page says is so, what it names replays, and it stands alone."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from collections import Counter
from collections.abc import Callable
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import attrs
import pyarrow as pa
import pytest
from support.commands.command_line import Outcome, call, files_below
from support.runs.named_runs import registering
from support.spark import campaigns_made
from support.spark.spark_session import spark
from support.toys import toy_refinement

from harness.campaign.cells import cells
from harness.campaign.checks import wilson
from harness.campaign.report import markup
from harness.campaign.report import summary as summary_of
from harness.campaign.report.compare import CHANGED, ERROR, GONE, NEW, compare
from harness.campaign.report.summary import KNOWN, Summary, known_clusters, natural, summarize
from harness.campaign.report.write_report import write_report
from harness.campaign.schemas import SCHEMAS, write
from harness.campaign.store import MARKERS, CampaignStore, Manifest, read, stamp
from harness.campaign.tables import CampaignTables
from harness.campaign.worker import BlockTask, Worker

FLAWED, REPAIRED, CALM = "s4-copied-tail", "s4-copied-tail-repaired", "happy-path"
RUNS = 80
VOID = {"meta", "br"}


def made(out: Path, *arguments: object, runs: int = RUNS) -> Path:
    """Make a campaign on this process's session, and return its folder."""
    campaigns_made.made(out, *arguments, runs=runs, block=20)
    return out


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A campaign of a flawed scenario, its repaired twin, and a third one, with its report."""
    return made(tmp_path_factory.mktemp("report") / "campaign", FLAWED, REPAIRED, CALM)


@pytest.fixture(scope="module")
def reported(campaign: Path) -> Outcome:
    """What the command says that writes the campaign's report."""
    outcome = call("report", campaign)
    assert outcome.code == 0, outcome.err
    return outcome


@pytest.fixture(scope="module")
def repaired(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A campaign of the flawed scenario by its name, but with the flaw repaired by a setting."""
    return made(tmp_path_factory.mktemp("repaired") / "campaign", FLAWED, "--set", "repair=S4", "--coverage", 0)


@pytest.fixture(scope="module")
def summary(campaign: Path, reported: Outcome) -> Summary:
    """The numbers of the campaign's report."""
    return summarize(CampaignTables(spark(), CampaignStore(campaign)))


def page_of(folder: Path) -> str:
    """Return the page of a campaign's report."""
    return (folder / "report.html").read_text(encoding="utf-8")


class Reader(HTMLParser):
    """Reads a page: what it opens and closes, its ids, and all that it refers to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids = Counter[str]()
        self.tags = Counter[str]()
        self.refers: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.handle_startendtag(tag, attributes)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        for name, value in attributes:
            if name == "id":
                self.ids[value or ""] += 1
            if name in ("src", "href", "xlink:href", "action", "data"):
                self.refers.append(value or "")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_a_report_tells_verdict_and_rate_of_each_scenario(campaign: Path, summary: Summary) -> None:
    """The flaw is found as expected, twin and third scenario are silent; the numbers are those of the tables."""
    runs = CampaignTables(spark(), CampaignStore(campaign), what=FLAWED).frame("runs")
    failing = runs.where("outcome = 'violated'").count()
    verdicts = {one.what: one for one in summary.verdicts}
    assert list(verdicts) == [CALM, FLAWED, REPAIRED]
    assert [one.as_expected for one in verdicts.values()] == [True, True, True]
    assert verdicts[FLAWED].properties == {"LogsAgreeUpToHwm": failing} and 10 < failing < RUNS
    assert (summary.runs, summary.failing, verdicts[REPAIRED].failing) == (3 * RUNS, failing, 0)
    low, high = wilson(failing, RUNS)
    page = page_of(campaign)
    assert f"LogsAgreeUpToHwm in {failing} runs" in page and markup.interval(low, high) in page
    assert page.count("✓ as expected") == 3 and "3 of 3 scenarios as expected" in page


def test_witnesses_on_the_page_replay(campaign: Path, reported: Outcome, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command beside a cluster, entered in the page's folder, violates what the page says; its diagram is there."""
    monkeypatch.chdir(campaign)
    commands = re.findall(r"^(?:<pre>)?(kafka-proto replay .*)$", page_of(campaign), re.MULTILINE)
    assert len(commands) == 1
    outcome = call(*shlex.split(unescape(commands[0]))[1:], "--json")
    verdict = outcome.json["verdict"]
    assert (outcome.code, verdict["violated"], verdict["step"]) == (1, "LogsAgreeUpToHwm", 8)
    assert verdict["reason"] in page_of(campaign) and "! step 8 FAILS LogsAgreeUpToHwm" in page_of(campaign)
    line = next(line for line in reported.out.splitlines() if "kafka-proto replay" in line)
    assert call(*shlex.split(line)[1:]).code == 1


def test_a_page_needs_nothing_from_anywhere(campaign: Path, reported: Outcome) -> None:
    """One well-formed file: it refers to its own parts only, has no script, and no name twice."""
    page = page_of(campaign)
    found = Reader(page)
    assert found.open == [] and max(found.ids.values()) == 1
    assert all(one.startswith("#") and one[1:] in found.ids for one in found.refers) and len(found.refers) > 8
    assert not found.tags["script"] and not found.tags["img"] and not found.tags["link"]
    assert not re.search(r"https?:|@import|url\((?!#)", page)
    assert {name for name in re.findall(r"url\(#([^)]*)\)", page)} <= set(found.ids)


def test_equal_tables_give_equal_bytes(campaign: Path, reported: Outcome, tmp_path: Path) -> None:
    """Of a copy elsewhere, its clusters shrunk again, the page and the witnesses are the same to the byte."""
    copy = tmp_path / "copy"
    shutil.copytree(campaign, copy)
    (copy / KNOWN).unlink()
    again = call("report", copy, "--out", tmp_path / "report.html", "--json").json
    assert [(one["has"], one["proved_shortest"], one["shrunk"]) for one in again["clusters"]] == [(8, True, True)]
    assert [one["as_expected"] for one in again["verdicts"]] == [True, True, True] and again["since"] is None
    assert (tmp_path / "report.html").read_bytes() == (campaign / "report.html").read_bytes()
    assert files_below(tmp_path / "report-witnesses") == files_below(campaign / "report-witnesses") != {}
    assert (copy / KNOWN).read_bytes() == (campaign / KNOWN).read_bytes()


def test_known_clusters_are_those_of_the_same_runs_only(campaign: Path, tmp_path: Path) -> None:
    """A damaged file of clusters, or one of other runs, is not believed; they are found again."""
    copy = tmp_path / "copy"
    shutil.copytree(campaign, copy)
    tables = CampaignTables(spark(), CampaignStore(copy), what=FLAWED)
    found = known_clusters(tables, 0, False)
    kept = (copy / KNOWN).read_text()
    assert found and known_clusters(tables, 0, False) == found
    for text in ("{", "[]", '{"format": 1}', kept.replace('"of":"', '"of":"0'), kept.replace('"most":0', '"most":9')):
        (copy / KNOWN).write_text(text)
        assert known_clusters(tables, 0, False) == found and (copy / KNOWN).read_text() == kept
    (copy / KNOWN).write_text(kept.replace('"has":', '"has":9'))
    assert known_clusters(tables, 0, False) != found


def test_clusters_that_older_code_found_are_kept(
    campaign: Path, reported: Outcome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When the code has changed, the page says so, and shows the clusters in the folder, however many were shrunk."""
    monkeypatch.setattr(summary_of, "code_version", lambda package: "another")
    report = write_report(spark(), CampaignStore(campaign), tmp_path / "page.html", most=0)
    assert report.summary.stale == (CALM, FLAWED, REPAIRED)
    assert [(one.has, one.shrunk) for one in report.summary.clusters] == [(8, True)]
    assert "has changed since these runs were made" in report.page.read_text(encoding="utf-8")
    assert "has changed since these runs were made" not in page_of(campaign)


def test_the_terminal_shows_the_most_of_it_in_80_columns(campaign: Path, reported: Outcome) -> None:
    """Verdicts, clusters with their commands, coverage and extremes; paths alone may be longer."""
    out = reported.out
    assert f"ok  {FLAWED}\n" in out and "3 of 3 scenarios as expected" in out and "violated: LogsAgreeUpToHwm" in out
    assert "slowest run: seed " in out and "longest run: seed " in out and " new per thousand runs at the end" in out
    long = [line for line in out.splitlines() if len(line) > 80]
    assert all(str(campaign) in line for line in long)


def test_stored_histories_are_judged_again_unless_that_is_left_out(
    campaign: Path, reported: Outcome, tmp_path: Path
) -> None:
    """The terminal, the page and the JSON object say how many agree; the quick report says nothing of it."""
    kept = CampaignTables(spark(), CampaignStore(campaign)).frame("runs").where("kept").count()
    assert f"{kept} stored histories judged again from" in reported.out and "all agree" in reported.out
    page = page_of(campaign)
    assert "Histories judged again" in page and "all agree with their record" in page
    quick = call("report", campaign, "--no-rejudge", "--out", tmp_path / "quick.html", "--json").json
    assert quick["judged_again"] is None
    assert "judged again" not in (tmp_path / "quick.html").read_text(encoding="utf-8")


def test_a_history_that_does_not_agree_is_named_with_its_run(campaign: Path, reported: Outcome, tmp_path: Path) -> None:
    """One row tells another digest than its events have: how many agree, which run does not, and exit code 1."""
    copy = tmp_path / "copy"
    shutil.copytree(campaign, copy)
    store, name = CampaignStore(copy), "digest"
    block = next(block for block in store.committed().values() if "events" in block.files)
    path = copy / block.files["runs"]["path"]
    rows = [row for batch in read(path, "runs") for row in batch.to_pylist()]
    seed = next(row["seed"] for row in rows if row["kept"])
    changed = [{**row, name: row[name][::-1]} if row["seed"] == seed else row for row in rows]
    write(path, pa.Table.from_pylist(changed, SCHEMAS["runs"]))
    marker = copy / MARKERS / f"{block.name}.json"
    marker.write_text(json.dumps({**attrs.asdict(block), "files": {
        **block.files, "runs": {**block.files["runs"], **stamp(path)}}}))
    done = call("report", copy, "--check", "--json")
    wrong = [(one["what"], found) for one in done.json["judged_again"] for found in one["disagreeing"]]
    said = "the stored events do not have the digest of the run"
    assert done.code == 1 and [one["as_expected"] for one in done.json["verdicts"]] == [True] * 3
    assert [(found["seed"], found["kinds"][-1], found["reason"]) for _, found in wrong] == [(seed, "digest", said)] or (
        wrong[0][1]["kinds"] == ["property", "digest"])
    out = call("report", copy).out
    assert "1 DISAGREE" in " ".join(out.split()) and f"NO  {wrong[0][0]}, seed {seed}" in out
    assert "These do not agree" in page_of(copy)


def test_runs_that_stand_out_can_be_made_again(campaign: Path, summary: Summary, tmp_path: Path) -> None:
    """The command beside the longest run makes the run whose digest is in the table."""
    longest = summary.longest[0]
    runs = CampaignTables(spark(), CampaignStore(campaign)).frame("runs")
    assert longest.steps == runs.agg({"steps": "max"}).collect()[0][0]
    assert longest.again is not None and longest.again in unescape(page_of(campaign))
    again = call(*shlex.split(longest.again)[1:], "--out", tmp_path, "--json").json
    row = runs.where(f"cell = '{longest.cell.key}' and seed = {longest.seed}").collect()[0]
    assert again["digest"] == row["digest"]
    assert [one.wall_us for one in summary.slowest] == sorted((one.wall_us for one in summary.slowest), reverse=True)


def test_a_scenario_that_is_not_as_expected_is_said_and_can_fail_a_job(tmp_path: Path) -> None:
    """Too few runs to find the flaw: the page says NOT, and the exit code is 1 where that was asked for."""
    out = made(tmp_path / "few", "pc-02-read-twice", "--coverage", 0, runs=2)
    outcome = call("report", out, "--check")
    assert outcome.code == 1 and "NO  pc-02-read-twice" in outcome.out and "expected ReaderView" in outcome.out
    assert "✗ NOT as expected" in page_of(out) and "No run violates anything." in page_of(out)


def test_a_campaign_compared_with_itself_is_empty(campaign: Path, summary: Summary) -> None:
    """Nothing is new, gone, changed or different."""
    found = compare(summary, summary).to_json()
    assert found["compared"] == 3 and "Wilson" in found["method"]
    assert not any(found[name] for name in ("cells", "clusters", "only_before", "only_after", "different", "actions"))
    assert "3 cells compared, nothing is new, gone or changed" in call("compare", campaign, campaign).out


def test_a_repair_that_is_undone_is_a_new_violation_and_a_new_cluster(
    campaign: Path, repaired: Path, summary: Summary
) -> None:
    """With the setting changed, the flaw is new in cell and cluster; the other way round it is gone; both say so."""
    other = summarize(CampaignTables(spark(), CampaignStore(repaired)))
    for pair, change, one_sided in (((other, summary), NEW, "only_after"), ((summary, other), GONE, "only_before")):
        found = compare(*pair).to_json()
        assert found["compared"] == 1 and len(found[one_sided]) == 2
        assert [(one["change"], one["property"], one["apart"]) for one in found["cells"]] == [
            (change, "LogsAgreeUpToHwm", True)]
        assert [(one["change"], one["name"]) for one in found["clusters"]] == [(change, FLAWED)]
        assert "CommitTxnLogAppend" in found["clusters"][0]["actions"]
        assert "repair=S4" in found["different"][f"{FLAWED}, random"]
    outcome = call("compare", repaired, campaign)
    assert outcome.code == 0 and all(len(line) <= 80 for line in outcome.out.splitlines())
    text = " ".join(outcome.out.split())
    assert f"new in {FLAWED}, random: LogsAgreeUpToHwm, 0 of {RUNS} before, " in text
    assert f"new in cluster of {FLAWED}: " in text


def test_a_report_since_another_campaign_tells_what_changed(
    campaign: Path, repaired: Path, reported: Outcome, tmp_path: Path
) -> None:
    """The page has a section on what is new; without the option it has none."""
    out = tmp_path / "since" / "page.html"
    outcome = call("report", campaign, "--since", repaired, "--out", out)
    assert outcome.code == 0 and "since the other campaign:" in outcome.out
    page = out.read_text(encoding="utf-8")
    assert '<section id="since">' in page and "<b>new</b>" in page and "Only in this one" in page
    assert '<section id="since">' not in page_of(campaign)


@pytest.mark.parametrize(
    ("before", "after", "change", "apart"),
    [((0, 0), (1, 0), NEW, False), ((60, 0), (0, 0), GONE, True), ((20, 0), (26, 0), None, False),
     ((10, 0), (60, 0), CHANGED, True), ((0, 0), (0, 2), NEW, False)],
)
def test_rates_have_changed_where_their_intervals_are_apart(
    summary: Summary, before: tuple[int, int], after: tuple[int, int], change: str | None, apart: bool
) -> None:
    """One more of some hundred runs may be chance, six times as many are not; what is new is reported either way."""
    def with_counts(failing: int, errors: int) -> Summary:
        tally = attrs.evolve(summary.tallies[0], properties={"P": failing} if failing else {}, errors=errors)
        return attrs.evolve(summary, tallies=(tally,))

    found = compare(with_counts(*before), with_counts(*after)).cells
    expected = [] if change is None else [(change, ERROR if after[1] else "P", apart)]
    assert [(one.change, one.violated, one.is_apart) for one in found] == expected


toy_is_known = registering(toy_refinement.system(), autouse=False)


@pytest.fixture
def raising(tmp_path: Path, toy_is_known: None) -> CampaignStore:
    """A campaign of a protocol whose own code raises now and then."""
    cell, = cells(["toy/actors"], sizes={"fetches": 2}, settings={"flaw": "fails-on-old-values"})
    store = CampaignStore(tmp_path / "raising")
    store.begin(Manifest((cell,), "failing", 0.0, 30))
    rows = Worker().make(BlockTask(cell, 0, 30, "failing", False))
    store.commit(cell, 0, 30, "2026-01-02", rows.tables(), rows.counts)
    return store


def test_poisoned_seeds_are_told_with_their_trails(raising: CampaignStore) -> None:
    """A run that raised is no violation: the page names the error, its first seed, and a trail up to there."""
    report = write_report(spark(), raising, raising.folder / "report.html")
    page = page_of(raising.folder)
    assert 0 < report.summary.errors < 30 and "no value is newer than" in page and "ended in an error" in page
    first = report.summary.poisoned[0]
    trail = raising.folder / "report-witnesses" / "toy-actors-1-error.trail.jsonl"
    assert trail.read_text(encoding="utf-8") == first.trail and shlex.quote(str(trail.name)) in page
    assert "nothing is expected" in page and report.summary.verdicts[0].as_expected is None


def test_swept_values_have_a_plot_and_a_table(tmp_path: Path) -> None:
    """With the repair swept, the page shows both values, and its cells one by one."""
    out = made(tmp_path / "swept", FLAWED, "--sweep", "repair=,S4", "--coverage", 0, runs=40)
    assert call("report", out, "--shrink", 0).code == 0
    page = page_of(out)
    assert '<section id="sweep">' in page and "repair=S4" in page and "(2 cells)" in page
    assert "steps, as found" in page and "(--coverage 0)" in page
    assert sorted(["drop=10", "drop=2", "crash=3"], key=natural) == ["crash=3", "drop=2", "drop=10"]


def no_runs(folder: Path, campaign: Path) -> None:
    shutil.copytree(campaign, folder)
    shutil.rmtree(folder / MARKERS)


@pytest.mark.parametrize(("make", "said"), [
    (lambda folder, campaign: None, "holds no campaign: there is no campaign.json; give another folder"),
    (lambda folder, campaign: folder.mkdir(), "holds no campaign: there is no campaign.json"),
    (lambda folder, campaign: folder.write_text("no folder"), "cannot read "),
    (no_runs, "has no committed run yet; start it"),
], ids=["missing", "empty", "file", "no runs"])
def test_folders_that_hold_no_campaign_are_refused(
    make: Callable[[Path, Path], object], said: str, campaign: Path, tmp_path: Path
) -> None:
    """Missing, empty, without runs: one sentence, exit code 2, and nothing is written, wherever the folder is named."""
    folder = tmp_path / "bad"
    make(folder, campaign)
    before = files_below(tmp_path)
    out = ("--out", tmp_path / "page.html")
    for arguments in (("report", folder), ("report", campaign, "--since", folder, *out), ("compare", folder, campaign)):
        assert said in call(*arguments).refusal
    assert files_below(tmp_path) == before


def test_places_that_cannot_be_are_refused(campaign: Path, tmp_path: Path) -> None:
    """A page that is a folder, a campaign that is not named, a number that is none: one sentence each."""
    assert "it is a folder; give the path of a file" in call("report", campaign, "--out", tmp_path).refusal
    assert "missing argument" in call("compare", campaign).refusal
    assert "expected a whole number of at least 0" in call("report", campaign, "--shrink", "few").refusal
