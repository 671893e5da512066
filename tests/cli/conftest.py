"""Recorded runs that several files of tests read, and searches without what their tests are not about."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.commands.command_line import call

from harness.cli import check_limits
from harness.explore.growth import Growth


@pytest.fixture
def empty_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Let commands run in a folder of their own: nothing that one leaves there goes unseen."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")


@pytest.fixture(scope="session")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with trails and histories of a run without faults, one with faults, and one with a fair cycle."""
    folder = tmp_path_factory.mktemp("recorded")
    for name, what in (("plain", "s4-copied-tail"), ("faulty", "cut-off-coordinator"), ("cycle", "s5-stuck-abort")):
        made = call("simulate", what, "--seeds", 40, "--out", folder / name, "--json").json
        for kind in ("trail", "history"):
            Path(made[kind]).rename(folder / f"{name}.{kind}.jsonl")
    return folder


@pytest.fixture
def no_walks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """But for large tests, a search that ends early does not look for what keeps growing.

    tests/explore/test_growth.py is about that.
    """
    if request.node.get_closest_marker("large") is None:
        monkeypatch.setattr(check_limits, "growth", lambda *_: Growth((), ()))
