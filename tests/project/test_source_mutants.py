"""How much the properties and the refinement catch: wrong edits of the protocols' source, and edits that are not wrong.

The whole table is a large test. A few rows that tell a lot are run always.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from support.mutants.campaigns import CAMPAIGNS, SEARCHES
from support.mutants.generated_mutants import files, mutants
from support.mutants.source_mutants import (
    REFINEMENT,
    ROOT,
    Moved,
    Mutant,
    assert_possible,
    findings,
    findings_of_search,
    mutated,
    record,
    sampled,
    searched,
    table,
)

from harness.verify.judge import FileJudge

ENOUGH = 25
"""So many mutants there are at least."""
TABLE = table("source")
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


def catchers(mutant: Mutant | None, campaign: str, within: int, folder: Path) -> list[str]:
    """Record with a mutant, or search its spec, and return what is found, the first first, up to what the table names.

    Without a mutant the packages are those that the tests run on.
    """
    root = ROOT if mutant is None else mutated(mutant, folder / "source")
    if campaign in SEARCHES:
        trails = searched(root, campaign)["trails"]
        return [finding.by for finding in findings_of_search(judge_of(campaign), root, trails)]
    seen = record(root, folder / "runs", (campaign,), within)[campaign]
    found = list[str]()
    for finding in findings(judge_of(campaign), folder / "runs", seen, campaign):
        found.append(finding.by)
        if mutant is not None and finding.by == mutant.by:
            break
    assert mutant is not None or seen["runs"] == within
    return found


@pytest.mark.parametrize("name", sampled(BY_NAME, SAMPLE))
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
    return searched(ROOT, search)


@pytest.mark.parametrize("name", sampled(REDUNDANT, REDUNDANT[:1]))
def test_redundant_guard_stays_unreported_and_the_search_says_why(name: str, tmp_path: Path) -> None:
    """Campaigns say nothing, and the search counts the same states, steps and depth without the guard as with it."""
    mutant = TABLE[name]
    if mutant.where:
        assert catchers(mutant, mutant.where, mutant.runs, tmp_path) == []
    else:
        mutated(mutant, tmp_path / "source")
    right = right_counts(mutant.search)
    assert right["complete"] and searched(tmp_path / "source", mutant.search) == right


def test_guard_that_matters_changes_what_the_search_counts(tmp_path: Path) -> None:
    """The search that calls guards redundant runs the mutant, and tells one that is not."""
    mutant = BY_NAME["spec-epoch-not-bumped"]
    assert searched(mutated(mutant, tmp_path), "search-two-clients") != right_counts("search-two-clients")


@pytest.mark.parametrize("text", ("no such text", "def "))
def test_edit_of_text_that_is_not_there_once_is_refused(text: str, tmp_path: Path) -> None:
    """A row whose source has moved on says so, with its name and what was looked for."""
    lost = Mutant("lost", "kafka_proto/transactions/decisions/client.py", text, "")
    times = (ROOT / lost.file).read_text(encoding="utf-8").count(text)
    assert times != 1
    with pytest.raises(Moved, match=f"lost: .*client.py holds the text to edit {times} times, not once: {text!r}"):
        mutated(lost, tmp_path)


def test_table_has_enough_mutants_of_every_kind() -> None:
    """Of each protocol; by properties, by the refinement, by searches; and each edit can be made today."""
    assert len(MUTANTS) >= ENOUGH
    assert_possible(TABLE.values())
    assert {TABLE[name].where for name in (*BY_NAME, *REDUNDANT)} <= {"", *CAMPAIGNS, *SEARCHES}
    assert {mutant.file.removeprefix("kafka_proto/").partition("/")[0] for mutant in MUTANTS} == {
        "transactions", "replication", "compaction", "broker"
    }
    assert {mutant.by == REFINEMENT for mutant in MUTANTS} == {True, False}
    assert {mutant.where in SEARCHES for mutant in MUTANTS} == {True, False}
    assert len({mutant.file for mutant in FORGOTTEN}) == 3


@pytest.mark.parametrize("module", ("coordinator.py", "isr.py", "compactor.py"))
def test_generated_mutants_are_right_python_and_differ_from_the_source(module: str) -> None:
    """A module of each protocol has many; all of them compile, and none is the source or another one."""
    (file,) = (file for file in files() if file.endswith(f"/{module}"))
    made = list(mutants(file))
    assert len(made) > ENOUGH and len({mutant.name for mutant in made}) == len({mutant.new for mutant in made})
    for mutant in made:
        compile(mutant.new, file, "exec")
        assert mutant.new != mutant.old
