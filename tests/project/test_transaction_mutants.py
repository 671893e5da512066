"""How much conformance, unit tests and campaigns catch: wrong edits of every decision of the transaction roles.

The whole table is a large test. A few rows that tell a lot are run always.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from support.mutants.source_mutants import Mutant, assert_possible, mutated, python, sampled, table
from support.paths import SUPPORT

TABLE = table("transaction")
CAUGHT = {name: row for name, row in TABLE.items() if row.by != "redundant"}
ENOUGH = 120
SAMPLE = ("add-older-epoch", "retry-of-the-same-epoch", "void-for-ever", "retry-gets-a-new-sequence")
"""Of the coordinator, a version's end of a transaction, the log, the producer."""


def said(root: Path, kind: str, *arguments: object) -> str:
    """Return what a catcher says of the packages below a folder, if anything."""
    catchers = SUPPORT / "mutants" / "transaction_catchers.py"
    return python(root, catchers, root, kind, *arguments).partition(" ")[2].strip()


@pytest.mark.parametrize("name", sampled(CAUGHT, SAMPLE))
def test_wrong_edit_is_caught_by_what_the_table_names(name: str, tmp_path: Path) -> None:
    """In a process of its own, with a copy of the packages."""
    row = CAUGHT[name]
    found = said(mutated(row, tmp_path), row.by, row.where, *([row.runs] if row.runs else []))
    assert found
    if row.by == "conformance":
        assert found.startswith(f"{row.where}: ")
    elif row.by == "test":
        assert found == row.where


@pytest.mark.large
@pytest.mark.parametrize("name", sorted(set(TABLE) - set(CAUGHT)))
def test_redundant_edit_changes_no_answer(name: str, tmp_path: Path) -> None:
    """Whatever was recorded is answered as before, and no unit test fails."""
    root = mutated(TABLE[name], tmp_path)
    assert (said(root, "conformance", ""), said(root, "test", "")) == ("", "")


def role(row: Mutant) -> str:
    """Return the role whose decision it is."""
    room, *inner = row.file.removesuffix(".py").split("/")[1:]
    return inner[0] if room in ("broker", "clients") else room


def test_table_has_enough_wrong_edits_of_every_role() -> None:
    """Each can be made today, and none is there twice."""
    rows = TABLE.values()
    assert_possible(rows)
    assert len(CAUGHT) >= ENOUGH and len({(row.file, row.old, row.new) for row in rows}) == len(rows)
    assert {role(row) for row in CAUGHT.values()} == {"coordinator", "leader", "log", "producer", "consumer", "group"}
    assert all(row.where for row in rows)
