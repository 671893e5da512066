"""The spec compositions against the counts and counterexample lengths of the model checker (TLC), row by row.

The rows of `data/counts.json` are complete runs without symmetry and view: `initial`, `distinct` and `generated` states
and `depth` where every invariant holds, else the violated invariant and the states of a shortest counterexample. Runs
of one model at one size that differ in the invariants they found to hold are one row with all of them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.explore.plain import search
from harness.model import find_model

Row = dict[str, Any]

ROWS: list[Row] = json.loads((Path(__file__).parent / "data" / "counts.json").read_text(encoding="utf-8"))
LETTERS = {
    "clients": "c", "brokers": "b", "txn-log-partitions": "p", "topic-partitions": "tp", "transactional-ids": "t",
    "elections": "e",
}
COUNTS = ("initial", "distinct", "generated", "depth")
NORMAL = 5_000
"""States that the plain search visits in about half a second."""
TOO_MANY = 200_000
SLOW_COUNTEREXAMPLE = ("transactions/diary-02", "ClientsHaveDifferentProducerEpochs")
"""A violation 14 states deep among four clients: S1."""


def row_name(row: Row) -> str:
    """Return a row's id: model, sizes, settings, and what is violated."""
    parts = [row["model"].removeprefix("transactions/"), "".join(f"{LETTERS[s]}{n}" for s, n in row["sizes"].items())]
    parts += [value for _, value in sorted(row["settings"].items())]
    if "violated" in row:
        parts.append(f"violates-{row['violated']}")
    return "-".join(parts)


def marks(row: Row) -> list[pytest.MarkDecorator]:
    """Return how a row runs: in the normal suite, as a large test, or not at all."""
    if row.get("distinct", 0) > TOO_MANY:
        too_slow = pytest.mark.skip(reason=f"more than {TOO_MANY} states: too slow for the plain search")
        return [pytest.mark.large, too_slow]
    if row.get("distinct", 0) > NORMAL or (row["model"], row.get("violated")) == SLOW_COUNTEREXAMPLE:
        return [pytest.mark.large]
    return []


@pytest.mark.parametrize("row", [pytest.param(row, id=row_name(row), marks=marks(row)) for row in ROWS])
def test_spec_counts_equal_the_model_checkers(row: Row) -> None:
    """Every row is reproduced by the plain search, except those beyond 200,000 states: they are too slow for it."""
    model = find_model(row["model"]).make(row["sizes"], row["settings"], history_variables=True)
    found = search(model, tuple(row["invariants"]))
    if "violated" in row:
        assert (found.violated, found.depth) == (row["violated"], row["counterexample_states"])
        assert found.reason
        assert len(found.path) == found.depth - 1
    else:
        assert found.violated is None
        assert {name: getattr(found, name) for name in COUNTS if name in row} == {
            name: row[name] for name in COUNTS if name in row
        }


def test_spec_counts_every_row_has_its_own_name() -> None:
    """There are 71 rows, 12 of them violations, and no id stands for two."""
    assert len({row_name(row) for row in ROWS}) == len(ROWS) == 71
    assert sum("violated" in row for row in ROWS) == 12
