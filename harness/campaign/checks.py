"""What a campaign's tables say, as small tables: how often runs fail and under which faults, and what was reached.

Each function asks Spark once or twice and returns rows of a few numbers, ready to be rendered.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import attrs

from harness.campaign.tables import CampaignTables

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

Z = 1.959964
"""Of the normal distribution, for intervals of 95 percent."""
POINTS = 20
"""Points of a saturation curve, at most."""
CALM = "no fault"
"""The fault mix of a run without any."""


def wilson(failing: int, runs: int, z: float = Z) -> tuple[float, float]:
    """Return the Wilson score interval for a rate, of `failing` in `runs`."""
    if not runs:
        return 0.0, 1.0
    seen, spread = failing / runs, z * z / runs
    middle, half = seen + spread / 2, z * math.sqrt(seen * (1 - seen) / runs + spread / (4 * runs))
    low, high = (middle - half) / (1 + spread), (middle + half) / (1 + spread)
    return (0.0 if not failing else max(0.0, low)), (1.0 if failing == runs else min(1.0, high))


@attrs.frozen
class Share:
    """How many of some runs fail; `low` to `high` is the Wilson interval of 95 percent for the rate behind that."""

    failing: int
    runs: int

    @property
    def rate(self) -> float:
        return self.failing / self.runs if self.runs else 0.0

    @property
    def low(self) -> float:
        return wilson(self.failing, self.runs)[0]

    @property
    def high(self) -> float:
        return wilson(self.failing, self.runs)[1]


@attrs.frozen
class Rate(Share):
    """How often the runs of a scenario or model fail under a strategy."""

    what: str
    strategy: str
    value: str
    """The fault mix (`Crash + Drop`), the swept values (`crash=1`), or nothing for all runs together."""
    errors: int


def rates(tables: CampaignTables) -> list[Rate]:
    """Return how often the runs of each scenario fail under each strategy."""
    from pyspark.sql import functions as f

    return _rates(tables.frame("runs"), f.lit(""))


def rates_by_faults(tables: CampaignTables) -> list[Rate]:
    """Return the rates by fault mix, by the faults that happened in a run; runs that ended in an error are left out."""
    return _rates(tables.frame("runs").where("outcome != 'error'"), fault_mix())


def fault_mix() -> Column:
    """Return the faults of a row as one text, `Crash + Drop`."""
    from pyspark.sql import functions as f

    return f.when(f.size("faults") == 0, CALM).otherwise(f.array_join("faults", " + "))


def rates_by_sweep(tables: CampaignTables) -> list[Rate]:
    """Return the rates by swept values, for those scenarios and models that were swept."""
    from pyspark.sql import functions as f

    swept = {key: cell.swept for key, cell in tables.cells.items() if cell.sweep}
    if not swept:
        return []
    names = f.create_map(*(f.lit(text) for pair in swept.items() for text in pair))
    return _rates(tables.frame("runs").where(f.col("cell").isin(*swept)), names[f.col("cell")])


def _rates(runs: DataFrame, value: Column) -> list[Rate]:
    from pyspark.sql import functions as f

    groups = runs.groupBy("what", "strategy", value.alias("value")).agg(
        f.count("*").alias("runs"), f.count_if(f.col("outcome") == "violated").alias("failing"),
        f.count_if(f.col("outcome") == "error").alias("errors"),
    )
    return [Rate(**row.asDict()) for row in groups.sort(*groups.columns[:3]).collect()]


@attrs.frozen
class Reached:
    """What the runs of a scenario or model reached, all cells together."""

    what: str
    actions: dict[str, int]
    """How often each action was taken, over all runs."""
    never: tuple[str, ...]
    """Actions that were possible in a covered run, and that no run took."""
    guards: int
    """Guards that were evaluated in covered runs."""
    one_way: tuple[tuple[str, bool], ...]
    """Those that always came out the same, with how."""
    unseen: tuple[str, ...]
    """Guards in the same files that were never evaluated."""
    states: int
    """Distinct states of the spec in covered runs."""
    covered: int
    """Covered runs."""
    curve: tuple[Point, ...]


@attrs.frozen
class Point:
    """A stretch of a saturation curve: up to how many covered runs, and how many states were new."""

    runs: int
    new: int
    states: int
    """All that were reached so far."""
    per_thousand: float
    """New states per thousand runs in this stretch."""


def reached(tables: CampaignTables) -> list[Reached]:
    """Return what the runs of each scenario or model reached."""
    coverage = tables.frame("coverage").cache()
    try:
        return _reached(tables, coverage)
    finally:
        coverage.unpersist()


def _reached(tables: CampaignTables, coverage: DataFrame) -> list[Reached]:
    from pyspark.sql import functions as f

    named = coverage.where("kind != 'state'").groupBy("what", "kind", "name").agg(
        f.sum("count").alias("count"), f.sort_array(f.collect_set("outcome")).alias("outcomes"))
    rows: dict[str, list[Any]] = {}
    for row in named.sort("what", "kind", "name").collect():
        rows.setdefault(row["what"], []).append(row)
    curves = _curves(tables, coverage)
    return [_told(what, rows.get(what, []), curves.get(what, ())) for what in sorted({*rows, *curves})]


def _told(what: str, rows: Sequence[Any], curve: tuple[Point, ...]) -> Reached:
    actions = {row["name"]: row["count"] for row in rows if row["kind"] == "action"}
    never = tuple(row["name"] for row in rows if row["kind"] == "offered" and row["name"] not in actions)
    guard_rows = sorted((row for row in rows if row["kind"] == "guard"), key=lambda row: _place(row["name"]))
    guards = {row["name"]: list(row["outcomes"]) for row in guard_rows}
    return Reached(
        what, actions, never, sum(bool(outcomes) for outcomes in guards.values()),
        tuple((name, outcomes[0]) for name, outcomes in guards.items() if len(outcomes) == 1),
        tuple(name for name, outcomes in guards.items() if not outcomes),
        curve[-1].states if curve else 0, curve[-1].runs if curve else 0, curve,
    )


def _place(guard: str) -> tuple[str, int, str]:
    """Return where a guard is, so that guards come in the order of their sources: `file:line condition`."""
    file, _, rest = guard.partition(":")
    line, _, condition = rest.partition(" ")
    return file, int(line), condition


def _curves(tables: CampaignTables, coverage: DataFrame) -> dict[str, tuple[Point, ...]]:
    """Return, for each scenario or model, how many states were new along its covered runs, in the order of seeds."""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    order = Window.partitionBy("what").orderBy("seed", "cell")
    runs = tables.frame("runs").where("covered").select("what", "cell", "seed").withColumn(
        "rank", f.row_number().over(order) - 1)
    sizes = {row["what"]: row["count"] for row in runs.groupBy("what").count().collect()}
    states = coverage.where("kind = 'state'").select("what", "cell", "seed", "state").join(
        runs, ["what", "cell", "seed"]).groupBy("what", "state").agg(f.min("rank").alias("rank"))
    news: dict[str, dict[int, int]] = {}
    for what, rank, new in states.groupBy("what", "rank").count().collect():
        news.setdefault(what, {})[rank] = new
    return {what: _curve(size, news.get(what, {})) for what, size in sorted(sizes.items())}


def _curve(runs: int, news: dict[int, int]) -> tuple[Point, ...]:
    """Return the points of a curve; `news` says how many states the nth run was the first to reach."""
    per = max(1, -(-runs // POINTS))
    points, states = [], 0
    for start in range(0, runs, per):
        end = min(runs, start + per)
        new = sum(news.get(rank, 0) for rank in range(start, end))
        states += new
        points.append(Point(end, new, states, 1_000 * new / (end - start)))
    return tuple(points)
