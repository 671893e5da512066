"""Searches of every model, and of exhibits with their repaired twins: as the page and the packages' files say.

`check_rows` of `support/searches` has what is searched and what is expected; `check_table` does it, and wrote the page.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import attrs
import pytest
from support.commands.command_line import call
from support.searches.check_rows import EXHIBITS, ROWS, Exhibit, Row
from support.searches.check_table import COLUMNS, MODELS, PAGE, PROVED, cells_of, model_line, proved, twin_of

from harness.explore.any_model import ORDER, REDUCTIONS
from harness.model import find_scenario, registry, scenarios
from harness.model.registry import systems
from harness.record import search_results
from harness.record.search_results import Searched

LARGE = pytest.mark.large
QUICK_MODELS = ("compaction/pulsar", "kafka/4.0", "replication/kip-320-first-try/actors")


def marked(rows: tuple[Row, ...] | tuple[Exhibit, ...]) -> list[Any]:
    """Return rows as parameters; those that take long are for `make test-large`."""
    found = []
    for row in rows:
        is_quick = not row.is_large and (isinstance(row, Exhibit) or row.model in QUICK_MODELS)
        name = f"{row.model}, {row.within}" if isinstance(row, Row) else row.row
        found.append(pytest.param(row, id=name, marks=() if is_quick else LARGE))
    return found


@pytest.mark.parametrize("row", marked(ROWS))
def test_search_of_a_model_is_what_the_page_says(row: Row) -> None:
    """States without and with each reduction, and the verdict."""
    line = model_line(row)
    assert line.wrong == ""
    page = cells_of(PAGE.read_text(encoding="utf-8"), MODELS)
    assert page[line.cells[:2]] == dict(zip(COLUMNS[MODELS], line.cells, strict=True))


def test_page_has_a_row_for_every_model_of_list() -> None:
    """Each has a line with its verdict, all in the order of the table, with a column for each reduction."""
    page = cells_of(PAGE.read_text(encoding="utf-8"), MODELS)
    assert list(page) == [(f"`{row.model}`", row.within) for row in ROWS]
    assert {row.model for row in ROWS} == {
        spec.name for system in systems() if system not in registry._EXTRA for spec in system.models
    }
    assert {*REDUCTIONS, ORDER, "none", "all", "all, order", "verdict"} <= set(COLUMNS[MODELS])
    assert all({*COLUMNS[MODELS]} == set(cells) and all(cells.values()) for cells in page.values())
    assert [cells["verdict"] for cells in page.values()] == [
        ", ".join(row.violates) or cells["verdict"] for row, cells in zip(ROWS, page.values(), strict=True)
    ]
    exhibits = cells_of(PAGE.read_text(encoding="utf-8"), PROVED)
    assert list(exhibits) == [(f"`{row.row}`", row.within) for row in EXHIBITS]


@pytest.mark.parametrize("exhibit", marked(EXHIBITS))
def test_repaired_twin_is_complete_where_the_flaw_shows(exhibit: Exhibit) -> None:
    """The flaw's shortest schedule has so many steps; at the same size and budget its twin has no bad schedule."""
    if exhibit.gigabytes * 2**30 > os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"):
        pytest.skip(f"the search takes {exhibit.gigabytes} GB of memory, more than this machine has")
    line, found = proved(exhibit)
    assert line.wrong == ""
    scenario = find_scenario(exhibit.row)
    assert scenario is not None and exhibit.violates == scenario.expected
    bad, good = found
    assert (bad.faults, bad.timers) == (good.faults, good.timers)
    twin = find_scenario(scenario.repaired or scenario.name)
    assert twin is not None and bad.sizes.keys() == good.sizes.keys()
    flaw = {name for name in bad.sizes if scenario.sizes.get(name) != twin.sizes.get(name)}
    assert {name: n for name, n in bad.sizes.items() if good.sizes[name] != n}.keys() <= flaw
    page = cells_of(PAGE.read_text(encoding="utf-8"), PROVED)
    assert page[line.cells[:2]] == dict(zip(COLUMNS[PROVED], line.cells, strict=True))
    for entry in found:
        kept = search_results.searched(entry.scenario)
        assert kept is not None and lasting(kept) == lasting(entry)


def lasting(entry: Searched) -> dict[str, object]:
    """Return an entry without what another engine, or other code, may have otherwise."""
    return attrs.asdict(attrs.evolve(entry, digest="", states=entry.states if entry.complete else 0))


def test_every_flaw_has_a_search_beside_it() -> None:
    """Each scenario with a repaired twin is in the table."""
    flawed = {row.row for row in EXHIBITS}
    assert flawed == {scenario.name for scenario in scenarios() if scenario.repaired is not None}
    assert all(search_results.searched(name) is not None for row in EXHIBITS for name in (row.row, twin_of(row)))


@LARGE
def test_replicated_logs_are_complete_with_one_election_and_one_crash(tmp_path: Path) -> None:
    """A record, two brokers, an election and a crash of either broker: no invariant fails in any order of steps."""
    sizes = {"producers": 0, "idempotent-producers": 1, "partitions": 1, "records": 1, "elections": 1}
    at = [f"--size={name}={n}" for name, n in sizes.items()]
    faults = ("--timers", "0", "--faults", "crash=1", "--target", "b1", "--target", "b2")
    at.append("--set=log=replicated")
    bounds = ("--reduce", "all", "--states", 3_000_000)
    done = call("check", "kafka/4.0", *at, *faults, *bounds, "--json", "--out", tmp_path)
    assert done.code == 0, done.err
    assert [done.json[name] for name in ("verdict", "complete", "distinct")] == ["ok", True, 2_073_121]
    assert all(done.json["witnesses"][name] for name in ("CoordinatorResigned", "LogTruncated", "FollowerRejoinsIsr"))
