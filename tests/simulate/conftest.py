"""What tests of simulated tests share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.simulate.testing import decorator


@pytest.fixture
def out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder for the trails of simulated tests that fail on purpose; nothing of them is reported."""
    reported = len(decorator.REPORTS)
    monkeypatch.setattr(decorator.SETTINGS, "out", tmp_path)
    monkeypatch.setattr(decorator.SETTINGS, "seeds", None)
    yield tmp_path
    del decorator.REPORTS[reported:]
