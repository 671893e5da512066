"""How the suite runs: hypothesis tries the same examples every time, without a deadline that a busy machine would miss;
the garbage collector leaves the simulator's tables alone, as the drivers do."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

gc.set_threshold(200_000, 50, 50)
settings.register_profile(
    "project", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=False
)
settings.load_profile("project")


@pytest.fixture
def settled() -> Iterator[None]:
    """For tests whose tables start over many times, which collects: what earlier tests left is not looked at."""
    gc.freeze()
    yield
    gc.unfreeze()
