"""What the tests of judging runs share: the toy with a refinement is known, and there is a run of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.runs.named_runs import registering
from support.toys import toy_refinement as toy
from support.toys.toy_histories import recorded

toy_is_known = registering(toy.system())


@pytest.fixture
def history(toy_is_known: None, tmp_path: Path) -> Path:
    """A run in which much happens, under every kind of fault that the toy knows."""
    path = tmp_path / "run.history.jsonl"
    recorded(path)
    return path
