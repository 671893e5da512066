"""The pytest plugin: `--harness-out` and `--harness-seeds`, and what the summary says of simulations.

It lists the trails of those that failed. Of those that found nothing it says which could be searched completely, and
what that search finds. Loaded by every pytest run through the entry point `pytest11`, so it imports nothing heavy until
it is needed.
"""

from __future__ import annotations

import re
import sys
from collections.abc import AsyncIterator, Generator, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from harness.record.short_search import Ahead
    from harness.simulate.runtimes.trio_runtime import Cluster


def pytest_addoption(parser: Any) -> None:
    """Add the options."""
    group = parser.getgroup("harness", "deterministic simulation")
    group.addoption("--harness-out", default="out", help="folder for the trails of failed simulations")
    group.addoption("--harness-seeds", type=int, default=None, help="seeds per simulated test, instead of its own")


def pytest_configure(config: Any) -> None:
    """Hand the options to the decorator, and tell pytest of the mark."""
    from harness.simulate.testing.decorator import SETTINGS

    config.addinivalue_line("markers", "simulated_cluster(scenario, seed=0, strategy='random', injected=None): what "
                            "the fixture simulated_cluster runs, as arguments of harness.open_cluster")
    SETTINGS.out = Path(config.getoption("--harness-out"))
    SETTINGS.seeds = config.getoption("--harness-seeds")


@pytest.fixture
async def simulated_cluster(request: pytest.FixtureRequest) -> AsyncIterator[Cluster]:
    """A cluster in virtual time inside a test of pytest-trio, which its mark describes; judged after the test.

    Raises SimulationFailed if an invariant is violated then, and leaves the shrunk trail.
    """
    import harness
    from harness.simulate.testing.decorator import judge

    mark = request.node.get_closest_marker("simulated_cluster")
    if mark is None or len(mark.args) != 1:
        pytest.fail('simulated_cluster needs a mark with a scenario, as @pytest.mark.simulated_cluster("happy-path")',
                    pytrace=False)
    async with harness.open_cluster(*mark.args, **mark.kwargs) as cluster:
        yield cluster
    assert cluster.result is not None
    judge(cluster.result, re.sub(r"[^\w.-]+", "-", request.node.name).strip("-"), mark.kwargs.get("seed", 0))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: Any) -> Generator[None, Any, Any]:
    """Note in a test's report what it simulated without a finding; a worker of xdist sends that on."""
    report = yield
    testing = sys.modules.get("harness.simulate.testing.decorator")
    if testing is not None and report.when == "call":
        report.harness_silent = testing.SILENT[:]
        testing.SILENT.clear()
    return report


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """List the trails of failed simulations with the commands that replay them, and searches for silent ones."""
    testing = sys.modules.get("harness.simulate.testing.decorator")
    reports = testing.REPORTS if testing is not None else []
    if reports:
        terminalreporter.section("failed simulations")
        for report in reports:
            terminalreporter.write_line(report)
    if silent := _silent(terminalreporter.stats.get("passed", ())):
        terminalreporter.section("simulations that found nothing")
        for ahead, tests in silent.items():
            terminalreporter.write_line(f"{', '.join(tests)}: {ahead.sentence}")
            terminalreporter.write_line(f"  {ahead.command}")


def _silent(reports: Iterable[Any]) -> dict[Ahead, list[str]]:
    """Return the tests that found nothing, by the search that is complete and ends soon, if there is one."""
    tests: dict[tuple[str, tuple[str, ...] | None], list[str]] = {}
    for report in reports:
        for simulated in getattr(report, "harness_silent", ()):
            tests.setdefault(simulated, []).append(report.nodeid.rpartition("::")[2])
    if not tests:
        return {}
    from harness.explore.short_search import look_ahead

    found: dict[Ahead, list[str]] = {}
    for (what, claims), names in tests.items():
        if (ahead := look_ahead(what, claims=claims)) is not None:
            found.setdefault(ahead, []).extend(names)
    return {ahead: list(dict.fromkeys(names)) for ahead, names in found.items()}
