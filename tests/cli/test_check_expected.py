"""`check SCENARIO` searches what the scenario declares; an expected violation that is not found is never a silence."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from support.commands.command_line import Outcome, call

from harness.model import Scenario, find_scenario, scenarios
from harness.record.search_results import Searched, searched

FLAWED = [row for row in scenarios() if row.expected is not None]
TEMPORAL = {"s2-stuck-replica": 4, "s5-stuck-abort": 20, "s6-stuck-transition": 14}
"""Scenarios of specs that are expected to violate a temporal property."""
FOUND = [found for row in FLAWED if (found := searched(row.name)) is not None and found.violated == row.expected]


def first_line(done: Outcome) -> str:
    return done.out.splitlines()[0]


@pytest.mark.parametrize("name", TEMPORAL)
def test_temporal_claims_of_a_scenario_are_checked_unasked(name: str, tmp_path: Path) -> None:
    """A lasso is found where one is expected, none in the twin, and the twin's claims are said to hold."""
    done = call("check", name, "--out", tmp_path)
    scenario = find_scenario(name)
    assert scenario is not None and scenario.repaired is not None
    assert done.code == 1 and f"{scenario.expected} is violated by {TEMPORAL[name]} steps" in first_line(done)
    twin = call("check", scenario.repaired, "--out", tmp_path)
    assert twin.code == 0 and f"  {scenario.expected} holds\n" in twin.out


@pytest.mark.parametrize(("scenario", "bounds"), [
    *(pytest.param(row, ("--states", 300), id=row.name) for row in FLAWED),
    *(pytest.param(row, ("--states", 50_000, "--memory", 2), id=f"{row.name}-longer", marks=pytest.mark.large)
      for row in scenarios()),
])
def test_bound_that_leaves_the_expected_violation_out_is_said_first(
    scenario: Scenario, bounds: tuple[object, ...], no_walks: None, tmp_path: Path
) -> None:
    """Of a search of a few states: it is found, or the first line says that it was not, and the code is 2.

    The same of every scenario, repaired twins among them, with more states and bounded memory.
    """
    done = call("check", scenario.name, *bounds, "--out", tmp_path)
    said = first_line(done)
    assert said.startswith(f"{scenario.name}: ")
    if scenario.expected is None:
        assert done.code in (0, 2) and " no violation " in said, said
        assert (done.code == 0) is ("in part" not in said)
    elif done.code == 2:
        assert f"expected violation of {scenario.expected} not " in said and done.refusal
    else:
        assert done.code == 1 and f"{scenario.expected} is violated" in done.out and ", as expected" in said


@pytest.mark.parametrize(("options", "command"), [
    (("--timers", "0"), "kafka-proto check late-end"),
    (("--faults", "none", "--timers", "0"), "kafka-proto check late-end"),
    (("--memory", "0.0001"), "kafka-proto check late-end"),
])
def test_refusal_names_a_search_that_finds_it(options: tuple[str, ...], command: str, tmp_path: Path) -> None:
    """The command can be pasted: it finds what is expected."""
    done = call("check", "late-end", *options, "--json", "--out", tmp_path)
    assert done.refusal.endswith(f": {command}") and "another search found it" in done.refusal
    assert done.json["missed"] == {"property": "MarkerAttribution", "why": "absent"}
    assert done.json["verdict"] == ("limited" if "--memory" in options else "missed")
    assert call(*shlex.split(command)[1:], "--out", tmp_path).code == 1


@pytest.mark.parametrize("found", FOUND, ids=lambda found: found.scenario)
def test_named_search_is_the_one_that_was_made(found: Searched, no_walks: None, tmp_path: Path) -> None:
    """Its sizes, settings, network, faults, timers and reductions are those of the search that is kept."""
    scenario = find_scenario(found.scenario)
    assert scenario is not None
    words = shlex.split(found.command(scenario, 500_000))
    assert words[:3] == ["kafka-proto", "check", scenario.name]
    assert ("--states" in words) is (found.timers is not None and found.states >= 500_000)
    made = call(*words[1:], "--states", 10, "--json", "--out", tmp_path).json
    assert [made["sizes"], made["settings"], made["network"], made["faults"], made["timers"], made["reductions"]] == [
        found.sizes, found.settings, found.network, found.faults, found.timers, list(found.reductions)]


@pytest.mark.parametrize(("asked", "code", "said"), [
    (("late-marker", "--invariant", "Atomicity"), 0,
     "late-marker: expected violation of MarkerAttribution not asked for; no other violation in .*"),
    (("s5-stuck-abort", "--symmetry"), 2, ".*expected violation of EventuallyAllClientsGetPid not checked.*"),
    (("late-end", "--invariant", "AcknowledgedOutcome"), 1, ".*, expected MarkerAttribution"),
])
def test_expected_violation_that_is_not_looked_for_is_said_first(
    asked: tuple[str, ...], code: int, said: str, tmp_path: Path
) -> None:
    """Other invariants are asked for and hold, or are violated; or an option leaves temporal properties unchecked."""
    done = call("check", *asked, "--out", tmp_path)
    assert done.code == code and re.fullmatch(said, first_line(done))
    assert code != 2 or done.refusal.endswith(f": kafka-proto check {asked[0]}")
