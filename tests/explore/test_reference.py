"""Every run of the model checker (TLC): the search gives the same counts, or the same shortest counterexample.

The rows of `data/reference.json` are the runs of the published reference, under the names of the models here: complete
ones with `initial`, `distinct` and `generated` states and `depth`, others with the invariant `violated` and the states
of a shortest counterexample, `length`. Complete runs of one model at one size are one row with all the invariants that
held. `runs` names what a row stands for. Runs that violate a temporal property are in `data/temporal.json`.

The search runs in both engines, and the plain search of the reference semantics where that takes no time.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.paths import DATA
from support.searches.engines import ENGINES, assert_violates
from support.searches.plain_search import search

from harness.explore.packed.result import Result
from harness.explore.packed.search import Search
from harness.model import Model, find_model

Row = dict[str, Any]

ROWS: list[Row] = json.loads((DATA / "reference.json").read_text(encoding="utf-8"))
COUNTS = ("initial", "distinct", "generated", "depth")
NORMAL = 20_000
"""States up to which a row is in the normal suite."""
PLAIN = 2_000
"""States up to which the plain search is asked, too."""
S1 = "ClientsHaveDifferentProducerEpochs"
"""Violated a million states deep."""
SLOW_IN_PLAIN = (S1, "CompactedLedgerLeak", "WeakIsr", "StrongIsr")
LETTERS = {
    "clients": "c", "brokers": "b", "txn-log-partitions": "p", "topic-partitions": "tp", "transactional-ids": "t",
    "elections": "e", "replicas": "R", "log-size": "L", "max-records": "M", "max-leader-epoch": "E",
    "max-version": "V", "max-offset": "O", "messages": "m", "compactions": "c", "keys": "k", "values": "v",
    "crashes": "x",
}


def row_name(row: Row) -> str:
    """Return a row's id: model, sizes, settings, what reduces the states, what is violated."""
    parts = [row["model"].partition("/")[2], "".join(f"{LETTERS[size]}{n}" for size, n in row["sizes"].items())]
    settings = {name: value for name, value in row["settings"].items() if value != "false"}
    parts += [name if value == "true" else value for name, value in settings.items()]
    parts += [option for option in ("symmetry", "view") if row.get(option)]
    return "-".join([*parts, f"violates-{row['violated']}"] if "violated" in row else parts)


def marks(row: Row) -> list[pytest.MarkDecorator]:
    return [pytest.mark.large] if row.get("distinct", 0) >= NORMAL or row.get("violated") == S1 else []


def made(row: Row) -> Model:
    """Build a row's model as `check` does: with the history variables of the counts, unless the view hides them."""
    return find_model(row["model"]).make(row["sizes"], row["settings"], history_variables=not row.get("view"))


def searched(row: Row, engine: str, model: Model | None = None, **options: bool) -> Result:
    """Search what a row says, in that engine and no other."""
    given = {"symmetry": row.get("symmetry", False), "view": row.get("view", False), **options}
    found = Search(model or made(row), tuple(row["invariants"]), engine=engine, **given).run()
    assert found.engine == engine
    return found


def assert_equals(row: Row, found: object) -> None:
    """Assert that a complete search has the counts of its row."""
    assert {name: getattr(found, name) for name in COUNTS if name in row} == {
        name: row[name] for name in COUNTS if name in row
    }


@pytest.mark.parametrize("row", [pytest.param(row, id=row_name(row), marks=marks(row)) for row in ROWS])
@pytest.mark.parametrize("engine", ENGINES)
def test_reference_is_reproduced(row: Row, engine: str) -> None:
    """Counts are equal; where one fails, the same invariant does first, by a run as short, which replays."""
    model = made(row)
    found = searched(row, engine, model)
    if "violated" in row:
        first = found.violations[0]
        assert (first.name, first.length) == (row["violated"], row["length"])
        assert not found.complete
        for violation in found.violations:
            assert violation.length == row["length"]
            assert_violates(model, violation)
    else:
        assert found.violations == ()
        assert found.complete
        assert sum(found.actions.values()) == found.generated - found.initial
        assert_equals(row, found)


def is_quick(row: Row) -> bool:
    """Say whether the plain search does a row quickly; it knows no symmetry."""
    return not row.get("symmetry") and row.get("distinct", 0) <= PLAIN and row.get("violated") not in SLOW_IN_PLAIN


@pytest.mark.parametrize("row", [pytest.param(row, id=row_name(row)) for row in ROWS if is_quick(row)])
def test_reference_semantics_give_the_reference(row: Row) -> None:
    """The plain search finds the same where it does so quickly."""
    found = search(made(row), tuple(row["invariants"]))
    if "violated" in row:
        assert (found.violated, found.depth, len(found.path)) == (row["violated"], row["length"], row["length"] - 1)
        assert found.reason
    else:
        assert found.violated is None
        assert_equals(row, found)


def test_reference_is_complete() -> None:
    """All 280 runs are here, but for the ten that violate a temporal property; no id stands for two rows."""
    runs = [run for row in ROWS for run in row["runs"]]
    temporal = json.loads((DATA / "temporal.json").read_text(encoding="utf-8"))
    assert len(set(runs)) == len(runs) == 280 - sum(not row["holds"] for row in temporal)
    assert len({row_name(row) for row in ROWS}) == len(ROWS) == 173
    assert sum("violated" in row for row in ROWS) == 56


def diary_01(clients: int, distinct: int, **counts: int) -> Row:
    """Return a row for diary 01 with 2 partitions, 2 ids, 3 brokers, up to renaming and as the view shows it."""
    sizes = {"clients": clients, "brokers": 3, "txn-log-partitions": 2, "transactional-ids": 2}
    return {"model": "transactions/diary-01", "sizes": sizes, "settings": {"init": "published"}, "symmetry": True,
            "view": True, "invariants": ["TypeOK", "NoBadStateResponse"], "distinct": distinct,
            **counts}


@pytest.mark.parametrize(("row", "fingerprints"), [
    pytest.param(diary_01(2, 1_472, initial=36, generated=3_120, depth=15), False, id="states"),
    pytest.param(diary_01(2, 1_472, initial=36, generated=3_120, depth=15), True, id="fingerprints"),
    pytest.param(diary_01(3, 32_776, initial=36, generated=94_632, depth=23), False, id="3", marks=pytest.mark.large),
])
@pytest.mark.parametrize("engine", ENGINES)
def test_symmetry_and_view_together_give_1472_classes(engine: str, row: Row, fingerprints: bool) -> None:
    """The model checker's number depends on its workers here; the exact one is 1,472, however it is found, and 32,776
    with a client more."""
    found = searched(row, engine, fingerprints=fingerprints)
    assert_equals(row, found)
    assert sum(found.actions.values()) == found.generated - found.initial
