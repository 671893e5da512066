"""How the suite runs: hypothesis tries the same examples every time, without a deadline that a busy machine would miss;
the garbage collector leaves the simulator's tables alone, as the drivers do, and takes them when a test is over."""

from __future__ import annotations

import gc
import signal
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

MANY = 200_000
"""Objects that a test may leave before they are looked at: less than a tenth of a second's work for the collector."""
gc.disable()  # drivers that find it on look at all that is there once they end, what earlier tests left included
settings.register_profile(
    "project", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=False
)
settings.load_profile("project")
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell starts what it runs in the background so, and tests of interrupts would wait for one that nobody hears.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_finish() -> None:
    """What is there before the first test stays, and is not looked at again."""
    gc.freeze()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    """Free what a test leaves once it is over, before anybody else has to look at it, and so with a module's fixtures.

    What outlives its module stays for good: a full collection, as of tables that start over, is a matter of one module.
    """
    yield
    if nextitem is not None and nextitem.path != item.path:
        gc.collect()
        gc.freeze()
    elif gc.get_count()[0] > MANY:
        gc.collect(0)


@pytest.fixture
def settled() -> None:
    """For tests whose tables start over many times, which collects: what earlier tests left is not looked at."""
    gc.freeze()


@pytest.fixture
def no_search_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs that found nothing are not followed by a short search; tests/simulate/test_ahead.py is about that."""
    monkeypatch.setattr("harness.cli.commands.look_ahead", lambda *_: None)
