"""Wrong edits of the transaction roles, one line each in `tests/data/transaction_mutants.jsonl`, and what catches each.

A row is the edit (`file`, `old`, `new`) and its catcher: `conformance` with the situation that is answered otherwise,
`test` with the unit test that fails, `campaign` with the scenario in which a property fails within so many runs, or
`redundant` with the reason why nothing can.
"""

from __future__ import annotations

import json
from pathlib import Path

import attrs

from support.mutants.source_mutants import Mutant, mutated, python
from support.paths import ROOT, SUPPORT

TABLE = ROOT / "tests" / "data" / "transaction_mutants.jsonl"
REDUNDANT = "redundant"


@attrs.frozen
class Row:
    """A wrong edit, and the name of what catches it; of a redundant one, the reason."""

    mutant: Mutant
    kind: str
    where: str
    runs: int = 0

    @property
    def role(self) -> str:
        """Return the role whose decision it is."""
        room, *inner = self.mutant.file.removesuffix(".py").split("/")[1:]
        return inner[0] if room in ("broker", "clients") else room


def rows() -> tuple[Row, ...]:
    """Return the table."""
    found = []
    for line in TABLE.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        mutant = Mutant(row["name"], row["file"], row["old"], row["new"])
        found.append(Row(mutant, row["by"], row["where"], row.get("runs", 0)))
    return tuple(found)


def said(row: Row, folder: Path, kind: str = "", where: str = "") -> str:
    """Return what a row's catcher, or another one, says of the packages with the wrong edit, if anything."""
    arguments = (kind or row.kind, where or ("" if kind else row.where), *((row.runs,) if row.runs else ()))
    source = folder / "source"
    root = source if source.exists() else mutated(row.mutant, source)
    return python(root, SUPPORT / "mutants" / "transaction_catchers.py", root, *arguments).partition(" ")[2].strip()
