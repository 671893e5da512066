"""Matrices over scenarios: one of each kind in the suite, all others among the large tests."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from harness.model import Scenario


def each_kind(scenarios: Iterable[Scenario]) -> list[Any]:
    """Return a parameter for each scenario, by its name; the first of a kind is in the suite, the others are large.

    A kind is a model, a mode, the kind of log that it is on, and whether a violation is expected.
    """
    found, kinds = [], set[object]()
    for scenario in scenarios:
        kind = (scenario.model, scenario.mode, scenario.settings.get("log"), scenario.expected is None)
        marks = [pytest.mark.large] if kind in kinds else []
        kinds.add(kind)
        found.append(pytest.param(scenario, id=scenario.name, marks=marks))
    return found
