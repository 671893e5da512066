"""How much conformance, unit tests and campaigns catch: wrong edits of every decision of the transaction roles.

The whole table is a large test. A few rows that tell a lot are run always.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from support.mutants.transaction_mutants import REDUNDANT, Row, rows, said
from support.paths import ROOT

TABLE = {row.mutant.name: row for row in rows()}
CAUGHT = {name: row for name, row in TABLE.items() if row.kind != REDUNDANT}
ENOUGH = 120
SAMPLE = ("add-older-epoch", "retry-of-the-same-epoch", "void-for-ever", "retry-gets-a-new-sequence")
"""Of the coordinator, a version's end of a transaction, the log, the producer."""


def assert_caught(row: Row, folder: Path) -> None:
    """What the table names says what is wrong."""
    found = said(row, folder)
    assert found
    if row.kind == "conformance":
        assert found.startswith(f"{row.where}: ")
    elif row.kind == "test":
        assert found == row.where


@pytest.mark.parametrize("name", SAMPLE)
def test_wrong_edit_is_caught_by_what_the_table_names(name: str, tmp_path: Path) -> None:
    """In a process of its own, with a copy of the packages."""
    assert_caught(CAUGHT[name], tmp_path)


@pytest.mark.large
@pytest.mark.parametrize("name", sorted(set(CAUGHT) - set(SAMPLE)))
def test_every_wrong_edit_is_caught_by_what_the_table_names(name: str, tmp_path: Path) -> None:
    """As above, for every other row."""
    assert_caught(CAUGHT[name], tmp_path)


@pytest.mark.large
@pytest.mark.parametrize("name", sorted(set(TABLE) - set(CAUGHT)))
def test_redundant_edit_changes_no_answer(name: str, tmp_path: Path) -> None:
    """Whatever was recorded is answered as before, and no unit test fails."""
    row = TABLE[name]
    assert said(row, tmp_path, "conformance") == ""
    assert said(row, tmp_path, "test") == ""


def test_table_has_enough_wrong_edits_of_every_role() -> None:
    """Each can be made today, and none is there twice."""
    assert len(CAUGHT) >= ENOUGH and len(TABLE) == len(rows())
    assert {row.role for row in CAUGHT.values()} == {"coordinator", "leader", "log", "producer", "consumer", "group"}
    assert len({(row.mutant.file, row.mutant.old, row.mutant.new) for row in TABLE.values()}) == len(TABLE)
    for name, row in TABLE.items():
        assert (ROOT / row.mutant.file).read_text(encoding="utf-8").count(row.mutant.old) == 1, name
        assert row.mutant.old != row.mutant.new and row.where, name
