"""Exhibits among actors by exhaustive search: the flaw's shortest schedule, and its repaired twin, all of it.

The size and the budget are the scenario's own unless a row says otherwise; they contain the flaw's shortest schedule,
since that is found at them.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import attrs
import pytest
from support.command_line import call

from harness.model import find_scenario


@attrs.frozen
class Exhibit:
    """What a search of a flawed row finds, and of its twin."""

    row: str
    violates: str
    steps: int
    """Of the shortest schedule that violates it."""
    states: int
    """Of the twin, all of which keep it, with every reduction."""
    sizes: Mapping[str, int] = attrs.field(factory=dict)
    timers: int | None = None
    """How many timers may fire, where that is not as many as the scenario says."""

    @property
    def arguments(self) -> list[str]:
        sizes = [f"--size={name}={n}" for name, n in self.sizes.items()]
        timers = [] if self.timers is None else [f"--timers={self.timers}"]
        return [*sizes, *timers, "--reduce", "all", "--states", "800000"]


LARGE = pytest.mark.large
EXHIBITS = (
    Exhibit("pc-01-leaked-ledger", "NoLeak", 9, 15_248, {"messages": 1}, 0),
    Exhibit("pc-05-read-too-far", "CompactionEquivalence", 15, 24_146),
    Exhibit("rp-01-truncate-to-high-watermark", "StrongIsr", 12, 60_779),
)
LONGER = (
    Exhibit("pc-02-read-twice", "ReaderView", 14, 70_447),
    Exhibit("pc-03-trimmed-too-early", "ReaderView", 19, 663_270),
    Exhibit("pc-03-durable-too-late", "ReaderView", 20, 264_072),
    Exhibit("pc-04-lost-property", "CompactionEquivalence", 18, 264_072),
    Exhibit("pc-06-replayed-twice", "ReaderView", 17, 46_378),
    Exhibit("pc-07-first-read-only", "ReaderView", 26, 663_270),
)


@pytest.mark.parametrize(
    "exhibit", [*EXHIBITS, *(pytest.param(row, marks=LARGE) for row in LONGER)], ids=lambda row: row.row
)
def test_repaired_twin_is_complete_where_the_flaw_shows(exhibit: Exhibit, tmp_path: Path) -> None:
    """The flaw's shortest schedule has so many steps; at the same size and budget its twin has no bad schedule."""
    scenario = find_scenario(exhibit.row)
    assert scenario is not None
    flawed = call("check", exhibit.row, *exhibit.arguments, "--json", "--out", tmp_path)
    assert flawed.code == 1, flawed.err
    lengths = {each["property"]: each["length"] - 1 for each in flawed.json["violated"]}
    assert lengths[exhibit.violates] == exhibit.steps == min(lengths.values())
    assert scenario.expected == exhibit.violates
    assert scenario.repaired is not None
    twin = call("check", scenario.repaired, *exhibit.arguments, "--json", "--out", tmp_path)
    assert twin.code == 0, twin.err
    assert [twin.json[name] for name in ("verdict", "complete", "distinct")] == ["ok", True, exhibit.states]
    assert [twin.json[name] for name in ("sizes", "faults", "timers")] == [
        flawed.json[name] for name in ("sizes", "faults", "timers")
    ]


def test_stack_is_complete_with_one_election_and_one_crash(tmp_path: Path) -> None:
    """One client, two brokers, an election and a crash of either broker: no invariant fails in any order of steps."""
    sizes = {"clients": 1, "brokers": 2, "replication-factor": 2, "elections": 1}
    at = [f"--size={name}={n}" for name, n in sizes.items()]
    faults = ("--timers", "0", "--faults", "crash=1", "--target", "b1", "--target", "b2")
    done = call("check", "cluster", *at, *faults, "--reduce", "all", "--json", "--out", tmp_path)
    assert done.code == 0, done.err
    assert [done.json[name] for name in ("verdict", "complete", "distinct")] == ["ok", True, 95_414]
    assert all(done.json["witnesses"][name] for name in ("CoordinatorResigned", "LogTruncated", "FollowerRejoinsIsr"))
