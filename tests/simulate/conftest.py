"""What tests of simulated tests and of hunts share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from harness.cli import commands
from harness.model import Scenario, System, register, registry
from harness.simulate.hunting.hunt import Hunt
from harness.simulate.testing import decorator


@pytest.fixture
def out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder for the trails of simulated tests that fail on purpose; nothing of them is reported."""
    reported = len(decorator.REPORTS)
    monkeypatch.setattr(decorator.SETTINGS, "out", tmp_path)
    monkeypatch.setattr(decorator.SETTINGS, "seeds", None)
    yield tmp_path
    del decorator.REPORTS[reported:]


@pytest.fixture
def add(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """A function that registers scenarios for one test, whose hunt is made in this process."""
    monkeypatch.setattr(registry, "_EXTRA", [])
    monkeypatch.setattr(commands, "Hunt", partial(Hunt, processes=0))
    monkeypatch.setenv("COLUMNS", "80")

    def add(*scenarios: Scenario) -> None:
        register(System("wrong", (), scenarios))

    yield add
    monkeypatch.undo()
    registry.systems.cache_clear()
