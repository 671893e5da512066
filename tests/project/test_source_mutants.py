"""How much is caught of wrong edits of the protocols' source, and that edits which are not wrong are not reported.

Of specs and actors by properties, the refinement and the hunt; of every decision of the transaction roles by
conformance, unit tests and campaigns. Whole tables are large tests. A few rows that tell a lot are run always.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from support.mutants import source_mutants as source
from support.mutants.campaigns import CAMPAIGNS, SEARCHES
from support.paths import SUPPORT

from harness.simulate.hunting.tasks import REFINEMENT
from harness.verify.judge import FileJudge

HUNT = """
import json, sys
from pathlib import Path
import compaction, kafka_proto
from harness.verify.spec_holding import held
from harness.simulate.hunting.hunt import Hunt, chosen_scenarios
root, row, runs = sys.argv[1:]
assert all(package.__file__.startswith(root) for package in (compaction, kafka_proto)), root
rows = Hunt(chosen_scenarios([row]), Path("out"), int(runs), 0, hold=held).run()
print(json.dumps([row.to_json() for row in rows]))
"""
"""Hunts through a row with the packages below the folder that is its first argument."""
ENOUGH = 25
"""So many mutants there are at least."""
TABLE = source.table("source")
HUNTED = {name: row for name, row in TABLE.items() if row.by == "hunted"}
SAMPLE_OF_HUNTED = ("who-loads-is-no-coordinator", "diary-02s-last-epoch", "last-epoch-is-not-kept")
ROLES = source.table("transaction")
CAUGHT = {name: row for name, row in ROLES.items() if row.by != "redundant"}
SAMPLE_OF_ROLES = ("add-older-epoch", "retry-of-the-same-epoch", "void-for-ever", "retry-gets-a-new-sequence")
"""Of the coordinator, a version's end of a transaction, the log, the producer."""
BY_NAME = {name: row for name, row in TABLE.items() if row.by not in ("redundant", "hunted")}
MUTANTS = tuple(BY_NAME.values())
SAMPLE = (
    "zombie-not-fenced", "epoch-not-bumped", "one-holder-is-enough", "no-truncation",
    "fence-removed", "first-of-a-key-kept", "cursor-forgotten",
)
"""Rows that are run always: guards removed, comparisons flipped, a field forgotten; of each protocol some."""
REDUNDANT = [name for name, row in TABLE.items() if row.by == "redundant"]
FORGOTTEN = [mutant for mutant in MUTANTS if mutant.name.endswith("-forgotten")]
"""What a crash should have left and does not."""


@cache
def judge_of(campaign: str) -> FileJudge:
    """One judge for all runs of a campaign: what it has learned of the right source stays."""
    return FileJudge()


def catchers(mutant: source.Mutant | None, campaign: str, within: int, folder: Path) -> list[str]:
    """Record with a mutant, or search its spec, and return what is found, the first first, up to what the table names.

    Without a mutant the packages are those that the tests run on.
    """
    root = source.ROOT if mutant is None else source.mutated(mutant, folder / "source")
    if campaign in SEARCHES:
        trails = source.searched(root, campaign)["trails"]
        return [finding.by for finding in source.findings_of_search(judge_of(campaign), root, trails)]
    seen = source.record(root, folder / "runs", (campaign,), within)[campaign]
    found = list[str]()
    for finding in source.findings(judge_of(campaign), folder / "runs", seen, campaign):
        found.append(finding.by)
        if mutant is not None and finding.by == mutant.by:
            break
    assert mutant is not None or seen["runs"] == within
    return found


@pytest.mark.parametrize("name", source.sampled(BY_NAME, SAMPLE))
def test_wrong_edit_is_caught_by_what_the_table_names(name: str, tmp_path: Path) -> None:
    """Recorded by the mutant, judged by the right source: what the table names catches it, within so many runs."""
    mutant = BY_NAME[name]
    assert mutant.by in catchers(mutant, mutant.where, mutant.runs, tmp_path)


def campaigns(names: Iterable[str]) -> dict[str, int]:
    """Return where these mutants are caught, and the most runs that one of them is given there."""
    rows = sorted((BY_NAME[name] for name in names), key=lambda row: row.runs)
    return {row.where: row.runs for row in rows}


@pytest.mark.parametrize(("campaign", "within"), [
    *(row for row in campaigns(SAMPLE).items() if row[0] not in SEARCHES),
    *(pytest.param(*row, marks=pytest.mark.large) for row in campaigns(BY_NAME).items()),
])
def test_right_source_is_silent_where_mutants_are_caught(campaign: str, within: int, tmp_path: Path) -> None:
    """The packages as they are: nothing is found in as many runs as any mutant is given, nor in any search."""
    assert catchers(None, campaign, within, tmp_path) == []


@cache
def right_counts(search: str) -> dict[str, Any]:
    """What a search says of the packages as they are."""
    return source.searched(source.ROOT, search)


@pytest.mark.parametrize("name", source.sampled(REDUNDANT, REDUNDANT[:1]))
def test_redundant_guard_stays_unreported_and_the_search_says_why(name: str, tmp_path: Path) -> None:
    """Campaigns say nothing, and the search counts the same states, steps and depth without the guard as with it."""
    mutant = TABLE[name]
    if mutant.where:
        assert catchers(mutant, mutant.where, mutant.runs, tmp_path) == []
    else:
        source.mutated(mutant, tmp_path / "source")
    right = right_counts(mutant.search)
    assert right["complete"] and source.searched(tmp_path / "source", mutant.search) == right


def test_guard_that_matters_changes_what_the_search_counts(tmp_path: Path) -> None:
    """The search that calls guards redundant runs the mutant, and tells one that is not."""
    mutant = BY_NAME["spec-epoch-not-bumped"]
    assert source.searched(source.mutated(mutant, tmp_path), "search-two-clients") != right_counts("search-two-clients")


@pytest.mark.parametrize("text", ("no such text", "def "))
def test_edit_of_text_that_is_not_there_once_is_refused(text: str, tmp_path: Path) -> None:
    """A row whose source has moved on says so, with its name and what was looked for."""
    lost = source.Mutant("lost", "kafka_proto/transactions/decisions/client.py", text, "")
    times = (source.ROOT / lost.file).read_text(encoding="utf-8").count(text)
    assert times != 1
    said = f"lost: .*client.py holds the text to edit {times} times, not once: {text!r}"
    with pytest.raises(source.Moved, match=said):
        source.mutated(lost, tmp_path)


def test_table_has_enough_mutants_of_every_kind() -> None:
    """Of each protocol; by properties, by the refinement, by searches; and each edit can be made today."""
    assert len(MUTANTS) >= ENOUGH
    source.assert_possible(TABLE.values())
    assert {TABLE[name].where for name in (*BY_NAME, *REDUNDANT)} <= {"", *CAMPAIGNS, *SEARCHES}
    assert {mutant.file.removeprefix("kafka_proto/").partition("/")[0] for mutant in MUTANTS} == {
        "transactions", "replication", "compaction", "broker"
    }
    assert {mutant.by == source.REFINEMENT for mutant in MUTANTS} == {True, False}
    assert {mutant.where in SEARCHES for mutant in MUTANTS} == {True, False}
    assert len({mutant.file for mutant in FORGOTTEN}) == 3


@pytest.mark.parametrize("name", source.sampled(HUNTED, SAMPLE_OF_HUNTED))
def test_row_is_red_where_only_the_spec_sees_the_edit(name: str, tmp_path: Path) -> None:
    """The row is red, and nothing but the refinement says so; its trail is there."""
    mutant = HUNTED[name]
    root = source.mutated(mutant, tmp_path)
    row, = json.loads(source.python(root, "-c", HUNT, root, mutant.where, mutant.runs))
    assert (row["as_expected"], row["violated"]) == (False, REFINEMENT)
    assert "is not a step of the spec" in row["reason"]
    assert (root / row["trail"]).is_file() and row["replay"].startswith("kafka-proto verify ")


def test_at_least_eight_are_seen_by_the_spec_alone() -> None:
    """Of each protocol."""
    assert len(HUNTED) >= 8
    assert {part for mutant in HUNTED.values() for part in Path(mutant.file).parts if part in (
        "coordinator", "replication", "compaction")} == {"coordinator", "replication", "compaction"}


def said(root: Path, kind: str, *arguments: object) -> str:
    """Return what a catcher says of the packages below a folder, if anything."""
    catchers = SUPPORT / "mutants" / "transaction_catchers.py"
    return source.python(root, catchers, root, kind, *arguments).partition(" ")[2].strip()


@pytest.mark.parametrize("name", source.sampled(CAUGHT, SAMPLE_OF_ROLES))
def test_wrong_edit_of_a_role_is_caught_by_what_the_table_names(name: str, tmp_path: Path) -> None:
    """In a process of its own, with a copy of the packages."""
    row = CAUGHT[name]
    found = said(source.mutated(row, tmp_path), row.by, row.where, *([row.runs] if row.runs else []))
    assert found
    if row.by == "conformance":
        assert found.startswith(f"{row.where}: ")
    elif row.by == "test":
        assert found == row.where


@pytest.mark.large
@pytest.mark.parametrize("name", sorted(set(ROLES) - set(CAUGHT)))
def test_redundant_edit_of_a_role_changes_no_answer(name: str, tmp_path: Path) -> None:
    """Whatever was recorded is answered as before, and no unit test fails."""
    root = source.mutated(ROLES[name], tmp_path)
    assert (said(root, "conformance", ""), said(root, "test", "")) == ("", "")


def role(row: source.Mutant) -> str:
    """Return the role whose decision it is."""
    room, *inner = row.file.removesuffix(".py").split("/")[1:]
    return inner[0] if room in ("broker", "clients") else room


def test_table_has_enough_wrong_edits_of_every_role() -> None:
    """Each can be made today, and none is there twice."""
    rows = ROLES.values()
    source.assert_possible(rows)
    assert len(CAUGHT) >= 120 and len({(row.file, row.old, row.new) for row in rows}) == len(rows)
    assert {role(row) for row in CAUGHT.values()} == {
        "coordinator", "leader", "log", "logs", "producer", "consumer", "group", "gateway", "application", "controller",
        "failover", "replication", "roles"}
    assert all(row.where for row in rows)
