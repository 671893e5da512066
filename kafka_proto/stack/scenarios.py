"""The scenarios of the stack as one table."""

from __future__ import annotations

from harness.model import Scenario

SCENARIOS: tuple[Scenario, ...] = ()
