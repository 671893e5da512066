"""What the pages docs/models/specs/*.md say of each action, read from tests/data/spec_rows.toml: where its
module has it, and its guard and effect in our words."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from typing import Any

import attrs

from support.paths import DATA


@attrs.frozen
class Module:
    """A published file: what its module is called, where it is, and how many lines it has."""

    name: str
    repository: str
    commit: str
    folder: str
    lines: int

    @property
    def file(self) -> str:
        return f"{self.name}.tla"

    @property
    def address(self) -> str:
        """Where the file is published, at the commit that the line numbers are of."""
        return f"{self.repository}/blob/{self.commit}/{self.folder}{self.file}"


@attrs.frozen
class Row:
    """An action: its module, the first and the last line of its definition there, when it may happen, what it does."""

    module: Module
    first: int
    last: int
    guard: str
    effect: str

    @property
    def link(self) -> str:
        lines = f"lines {self.first}-{self.last}"
        return f"[{self.module.file}, {lines}]({self.module.address}#L{self.first}-L{self.last})"


def _pages() -> Mapping[str, Mapping[str, Row]]:
    """Return the rows of each page by action."""
    table = tomllib.loads((DATA / "spec_rows.toml").read_text(encoding="utf-8"))
    modules = {name: Module(**{"name": name, **said}) for name, said in table["modules"].items()}

    def row(said: Mapping[str, Any]) -> Row:
        module, first, last = said["at"]
        return Row(modules[module], first, last, said["guard"], said["effect"])

    return {page: {action: row(said) for action, said in rows.items()} for page, rows in table["pages"].items()}


ROWS = _pages()
