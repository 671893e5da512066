"""What clients saw in a campaign's runs, as small tables: how their operations ended, and what they must not see."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from harness.campaign.checks import fault_mix
from harness.campaign.tables import CampaignTables


@attrs.frozen
class ClientsTally:
    """The runs of a cell whose clients were looked at."""

    what: str
    sweep: str
    """The swept values, `release=3.9`, or nothing."""
    strategy: str
    runs: int
    anomalous: int
    """Runs in which clients saw what they must not see."""
    ended: Mapping[str, int]
    """How many operations ended, by name and outcome."""


@attrs.frozen
class AnomalyTally:
    """An anomaly that clients saw in runs of a cell with the same fault mix."""

    what: str
    sweep: str
    strategy: str
    anomaly: str
    property: str
    """What it violates of the promised level of isolation."""
    faults: str
    """Those that came before, `Crash + Drop`."""
    runs: int
    silent: int
    """Of these, runs that violate no claimed property."""
    seed: int
    """The first of them."""
    reason: str
    """Of the first."""


def clients_tallies(tables: CampaignTables) -> tuple[ClientsTally, ...]:
    """Return how the operations of clients ended, by cell; models without a view of clients are left out."""
    from pyspark.sql import functions as f

    runs = tables.frame("runs").where("anomalies is not null")
    counts = {row["cell"]: row for row in runs.groupBy("cell").agg(
        f.count("*").alias("runs"), f.count_if(f.size("anomalies") > 0).alias("anomalous")).collect()}
    ended: dict[str, dict[str, int]] = {}
    named = runs.select("cell", f.explode("ended").alias("name", "count"))
    for row in named.groupBy("cell", "name").agg(f.sum("count").alias("count")).sort("cell", "name").collect():
        ended.setdefault(row["cell"], {})[row["name"]] = row["count"]
    return tuple(
        ClientsTally(*_of(tables, cell), counts[cell]["runs"], counts[cell]["anomalous"], ended.get(cell, {}))
        for cell in sorted(counts, key=lambda cell: (_of(tables, cell), cell)))


def anomaly_tallies(tables: CampaignTables) -> tuple[AnomalyTally, ...]:
    """Return what clients saw that they must not see, by cell, anomaly and fault mix, the most runs first."""
    from pyspark.sql import functions as f

    first = f.min_by(f.struct("seed", "reason"), "seed").alias("first")
    outcomes = tables.frame("runs").select("cell", "seed", "outcome")
    groups = tables.frame("anomalies").join(outcomes, ["cell", "seed"]).groupBy(
        "cell", "anomaly", "property", fault_mix().alias("mix")).agg(
        f.count("*").alias("runs"), f.count_if(f.col("outcome") == "ok").alias("silent"), first)
    found = [
        AnomalyTally(*_of(tables, row["cell"]), row["anomaly"], row["property"], row["mix"], row["runs"],
                     row["silent"], *row["first"])
        for row in groups.collect()
    ]
    return tuple(sorted(found, key=lambda one: (one.what, one.sweep, one.strategy, -one.runs, one.anomaly, one.faults)))


def _of(tables: CampaignTables, key: str) -> tuple[str, str, str]:
    """Return scenario or model, swept values and strategy of a cell."""
    cell = tables.cells[key]
    return cell.what, cell.swept, cell.strategy
