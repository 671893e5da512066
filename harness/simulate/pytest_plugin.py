"""The pytest plugin: `--harness-out` and `--harness-seeds`, and a section that lists the trails of failed simulations.

Loaded by every pytest run through the entry point `pytest11`, so it imports nothing heavy until it is needed.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any


def pytest_addoption(parser: Any) -> None:
    """Add the options."""
    group = parser.getgroup("harness", "deterministic simulation")
    group.addoption("--harness-out", default="out", help="folder for the trails of failed simulations")
    group.addoption("--harness-seeds", type=int, default=None, help="seeds per simulated test, instead of its own")


def pytest_configure(config: Any) -> None:
    """Hand the options to the decorator."""
    from harness.simulate.testing import SETTINGS

    SETTINGS.out = Path(config.getoption("--harness-out"))
    SETTINGS.seeds = config.getoption("--harness-seeds")


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """List the trails of failed simulations with the commands that replay them."""
    testing = sys.modules.get("harness.simulate.testing")
    reports = testing.REPORTS if testing is not None else []
    if reports:
        terminalreporter.section("failed simulations")
        for report in reports:
            terminalreporter.write_line(report)
