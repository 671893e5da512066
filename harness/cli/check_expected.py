"""What `check` says if it does not find what a scenario expects to be violated: that first, and never exit code 0."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

from harness.cli.check_limits import FREE_STATES, goes_beyond_specs
from harness.cli.check_options import PLAIN, SPARK, beyond_specs
from harness.explore.target import SearchTarget
from harness.model import Model, Scenario
from harness.record.search_results import searched

NEEDED = ("numpy", "scipy")
"""What temporal properties are checked with."""


def temporal_of(asked: SearchTarget, model: Model, engine: str, others: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the temporal claims of a scenario that are checked unasked: all, where nothing that is given spoils it.

    `others` are the options that do.
    """
    spoilt = any(others.values()) or engine in (PLAIN, SPARK) or beyond_specs(model) or model.constraint is not None
    return () if spoilt or not all(map(find_spec, NEEDED)) else asked.temporal_claims(model)


def missed(summary: Mapping[str, Any], invariants: tuple[str, ...]) -> dict[str, Any] | None:
    """Return what is expected to be violated and was not found so, and why; None if nothing is missed.

    The reason is `asked`: only other invariants were asked for; `unchecked`: it was not looked at; `absent`: it is not
    in what was searched.
    """
    expected = summary["expected"]
    if expected is None or summary["violated"] or summary["verdict"] == "interrupted":
        return None
    holds = summary["properties"].get(expected, expected in summary["checked"])
    why = "absent" if holds else "asked" if invariants and expected not in invariants else "unchecked"
    return {"property": expected, "why": why}


def first_line(summary: Mapping[str, Any], counts: str) -> str:
    """Return the first line of what a person is shown of a search that found no violation."""
    left_out, partly = summary["missed"], summary["verdict"] in ("interrupted", "limited")
    if left_out is None:
        return f"{'searched in part, no violation so far' if partly else 'no violation'} in {counts}"
    part = "searched in part, " if partly else ""
    expected = f"{part}expected violation of {left_out['property']}"
    if left_out["why"] == "absent":
        return f"{expected} not found in {counts}"
    what = "asked for" if left_out["why"] == "asked" else "checked"
    return f"{expected} not {what}; no other violation in {counts}"


def why_missed(asked: SearchTarget, summary: Mapping[str, Any], given: Mapping[str, Any]) -> str:
    """Say in a sentence that an expected violation was not found; `given` are the options that may leave it out."""
    return f"{asked.name} is expected to violate {summary['missed']['property']}, but this search did not find it; " \
           f"{what_finds_it(asked, summary, given)}"


def what_finds_it(asked: SearchTarget, summary: Mapping[str, Any], given: Mapping[str, Any]) -> str:
    """Say what finds an expected violation: a command where one is known to, else what to change."""
    scenario, expected = asked.scenario, summary["missed"]["property"]
    assert scenario is not None
    if summary["missed"]["why"] == "unchecked" and goes_beyond_specs(summary):
        return f"temporal properties are checked on specs only: use kafka-proto simulate {asked.name} --seeds 1000"
    if (known := _known_search(scenario, expected)) is not None:
        return known
    options = [name for name, value in given.items() if value]
    if options:
        return f"leave {', '.join(options)} out, or give more"
    return "give more with --timers, --faults or --size, or correct what the scenario expects"


def _known_search(scenario: Scenario, expected: str) -> str | None:
    """Name the search that found it, if the model's package keeps one."""
    found = searched(scenario.name)
    if found is None or found.violated != expected:
        return None
    return f"another search found it: {found.command(scenario, FREE_STATES)}"
