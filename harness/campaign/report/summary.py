"""The outcome of a campaign, gathered from its tables: all that a report shows and that two campaigns are compared by.

Nothing is rendered here. The clusters of a campaign are kept in its folder, so that they are shrunk once, by the code
that made the runs.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import attrs

from harness.campaign.cells import Cell, cells, code_version
from harness.campaign.checks import Rate, Reached, Share, rates_by_faults, rates_by_sweep, reached
from harness.campaign.client_checks import AnomalyTally, ClientsTally, anomaly_tallies, clients_tallies
from harness.campaign.clusters import ViolationCluster, clusters
from harness.campaign.store import CampaignStore, Manifest
from harness.campaign.tables import CampaignTables
from harness.model import Refusal, find_scenario
from harness.record.files import compact, write_atomically

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

KNOWN, KNOWN_FORMAT = "clusters.json", "kafka-proto/clusters"
SHRUNK = 8
"""Groups of violations of each scenario that are shrunk for a report, unless another number is asked for."""
MOST_SHOWN = 10
"""Slowest runs, and longest, and kinds of errors."""


@attrs.frozen
class Tally(Share):
    """The outcome of the runs of a cell."""

    cell: Cell
    errors: int
    steps: int
    properties: Mapping[str, int]
    """How many runs violate each of the properties that are violated."""
    verdicts: frozenset[str]
    """Those that a run violates first: its verdict. What the same step violates besides is a consequence."""
    witnessed: tuple[str, ...]

    @property
    def sweep(self) -> str:
        return self.cell.swept

    @property
    def name(self) -> str:
        """What distinguishes the cell from the others of its campaign: scenario, strategy, swept values."""
        return ", ".join(part for part in (self.cell.what, self.cell.strategy, self.sweep) if part)


@attrs.frozen
class ScenarioVerdict(Share):
    """The outcome of the runs of a scenario or model, compared with what is expected of it."""

    what: str
    title: str
    expected: str | None
    is_judged: bool
    """False if nothing is expected: a model, a scenario with other settings or faults than its own."""
    errors: int
    properties: Mapping[str, int]
    verdicts: frozenset[str]
    """The properties that a run violates first."""
    missing: tuple[str, ...]
    """Witnesses that the scenario asks for and that no run reached."""

    @property
    def as_expected(self) -> bool | None:
        """Whether it came as expected; None if nothing is."""
        if not self.is_judged:
            return None
        only = {self.expected} if self.expected else set()
        return not self.errors and not self.missing and self.verdicts == only


@attrs.frozen
class Remarkable:
    """A run that stands out."""

    cell: Cell
    seed: int
    outcome: str
    steps: int
    wall_us: int

    @property
    def again(self) -> str | None:
        """The command that makes the run again, where the command line can say it."""
        usual = _usual(self.cell)
        if usual is None or self.cell.strategy in ("systematic", "guided") or self.cell.faults != usual.faults:
            return None
        strategy = "" if self.cell.strategy == "random" else f" --strategy {self.cell.strategy}"
        return (f"kafka-proto simulate {self.cell.what} --seed {self.seed}{strategy}"
                + _given("--size", self.cell.sizes, usual.sizes) + _given("--set", self.cell.settings, usual.settings)
                + (f" --steps {self.cell.steps}" if self.cell.steps != usual.steps else ""))


def _given(option: str, mine: Mapping[str, Any], usual: Mapping[str, Any]) -> str:
    return "".join(f" {option} {name}={value}" for name, value in mine.items() if usual.get(name) != value)


@attrs.frozen
class Poisoned:
    """Runs that ended in the same error of the protocol's own code, and the first of them."""

    what: str
    error: str
    runs: int
    seed: int
    trail: str


@attrs.frozen
class Summary:
    """A campaign in numbers."""

    manifest: Manifest
    days: tuple[str, ...]
    tallies: tuple[Tally, ...]
    verdicts: tuple[ScenarioVerdict, ...]
    by_faults: tuple[Rate, ...]
    by_sweep: tuple[Rate, ...]
    reached: tuple[Reached, ...]
    clients: tuple[ClientsTally, ...]
    anomalies: tuple[AnomalyTally, ...]
    clusters: tuple[ViolationCluster, ...]
    slowest: tuple[Remarkable, ...]
    longest: tuple[Remarkable, ...]
    poisoned: tuple[Poisoned, ...]
    stale: tuple[str, ...]
    """Scenarios and models whose code is no longer the one that made the runs."""

    @property
    def runs(self) -> int:
        return sum(tally.runs for tally in self.tallies)

    @property
    def failing(self) -> int:
        return sum(tally.failing for tally in self.tallies)

    @property
    def errors(self) -> int:
        return sum(tally.errors for tally in self.tallies)


def check(store: CampaignStore) -> None:
    """Raise Refusal unless a folder holds a campaign with runs, and each file is as it was written."""
    store.manifest()
    committed = store.committed()
    store.verify(committed.values())
    if not committed:
        raise Refusal(f"the campaign in {store.folder} has no committed run yet; start it again with "
                      "kafka-proto campaign")


def summarize(tables: CampaignTables, most: int = SHRUNK) -> Summary:
    """Ask the tables of a campaign for all that a report shows. Raises Refusal."""
    runs = tables.frame("runs").drop("digest").cache()
    try:
        tallies = _tallies(tables, runs)
        slowest, longest = (_remarkable(tables, runs, by) for by in ("wall_us", "steps"))
        poisoned = _poisoned(runs)
    finally:
        runs.unpersist()
    whats = list(dict.fromkeys(tally.cell.what for tally in tallies))
    ours = [tally.cell for tally in tallies if not tally.cell.is_foreign]
    stale = {cell.what for cell in ours if code_version(cell.package) != cell.code}
    return Summary(
        tables.store.manifest(), tuple(sorted({block.day for block in tables.blocks})), tallies,
        tuple(_verdict([tally for tally in tallies if tally.cell.what == what]) for what in whats),
        tuple(rates_by_faults(tables)), tuple(rates_by_sweep(tables)), tuple(reached(tables)),
        clients_tallies(tables), anomaly_tallies(tables),
        tuple(known_clusters(tables, most, bool(stale))), slowest, longest, poisoned, tuple(sorted(stale)),
    )


def _tallies(tables: CampaignTables, runs: DataFrame) -> tuple[Tally, ...]:
    from pyspark.sql import functions as f

    counted = {row["cell"]: row for row in runs.groupBy("cell").agg(
        f.count("*").alias("runs"), f.count_if(f.col("outcome") == "violated").alias("failing"),
        f.count_if(f.col("outcome") == "error").alias("errors"), f.sum("steps").alias("steps"),
        f.array_distinct(f.flatten(f.collect_set("witnessed"))).alias("witnessed"),
        f.collect_set("violated").alias("verdicts"),
    ).collect()}
    properties: dict[str, dict[str, int]] = {}
    violated = tables.frame("violations").groupBy("cell", "property").agg(f.count_distinct("seed").alias("runs"))
    for row in violated.sort("cell", "property").collect():
        properties.setdefault(row["cell"], {})[row["property"]] = row["runs"]
    found = [
        Tally(row["failing"], row["runs"], cell, row["errors"], row["steps"] or 0, properties.get(key, {}),
              frozenset(row["verdicts"]), tuple(sorted(row["witnessed"])))
        for key, cell in tables.cells.items() if key in counted for row in (counted[key],)
    ]
    return tuple(sorted(found, key=lambda tally: natural(tally.name)))


def natural(name: str) -> list[tuple[int, str]]:
    """Return what names are sorted by, so that numbers in them come in the order of numbers."""
    return [(int(part), "") if part.isdecimal() else (0, part) for part in re.split(r"(\d+)", name)]


def _verdict(tallies: Sequence[Tally]) -> ScenarioVerdict:
    """Return the outcome of the cells of one scenario or model."""
    what = tallies[0].cell.what
    scenario = find_scenario(what)
    is_judged = scenario is not None and all(_is_usual(tally.cell) for tally in tallies)
    properties: Counter[str] = Counter()
    for tally in tallies:
        properties.update(tally.properties)
    seen = {name for tally in tallies for name in tally.witnessed}
    missing = () if scenario is None else tuple(name for name in scenario.witnesses if name not in seen)
    return ScenarioVerdict(
        sum(tally.failing for tally in tallies), sum(tally.runs for tally in tallies), what,
        scenario.title if scenario else "", scenario.expected if scenario else None, is_judged,
        sum(tally.errors for tally in tallies), dict(sorted(properties.items(), key=lambda one: (-one[1], one[0]))),
        frozenset[str]().union(*(tally.verdicts for tally in tallies)), missing,
    )


def _usual(cell: Cell) -> Cell | None:
    """Return the cell that the name alone stands for, or None if the name is not known any more."""
    try:
        return cells([cell.what], (cell.strategy,))[0]
    except Refusal:
        return None


def _is_usual(cell: Cell) -> bool:
    """Say whether a cell is as its scenario says, but for the strategy: then what is expected of it is known."""
    usual = _usual(cell)
    return usual is not None and attrs.evolve(cell, sweep={}, code="") == attrs.evolve(usual, code="")


def _remarkable(tables: CampaignTables, runs: DataFrame, by: str) -> tuple[Remarkable, ...]:
    from pyspark.sql import functions as f

    first = runs.where(f"{by} is not null").sort(f.desc(by), "what", "cell", "seed").limit(MOST_SHOWN)
    return tuple(Remarkable(tables.cells[row["cell"]], row["seed"], row["outcome"], row["steps"], row["wall_us"])
                 for row in first.select("cell", "seed", "outcome", "steps", "wall_us").collect())


def _poisoned(runs: DataFrame) -> tuple[Poisoned, ...]:
    from pyspark.sql import functions as f

    first = f.min_by(f.struct("seed", "trail"), f.struct("seed", "cell")).alias("first")
    groups = runs.where("outcome = 'error'").groupBy("what", "error").agg(f.count("*").alias("runs"), first)
    rows = groups.sort("what", f.desc("runs"), "error").limit(MOST_SHOWN).collect()
    return tuple(Poisoned(row["what"], row["error"], row["runs"], *row["first"]) for row in rows)


def known_clusters(tables: CampaignTables, most: int, is_stale: bool) -> list[ViolationCluster]:
    """Return the clusters of a whole campaign: those in its folder, if they are of these runs, else made and kept.

    Of runs that other code made, those in the folder are better than what this code could find.
    """
    path = tables.store.folder / KNOWN
    stamps = [block.files["violations"]["digest"] for block in tables.blocks if "violations" in block.files]
    head = {"format": KNOWN_FORMAT, "most": most, "of": hashlib.sha256(compact(stamps).encode()).hexdigest()}
    matters = ("format", "of") if is_stale else tuple(head)
    with suppress(OSError, ValueError, TypeError, KeyError):
        data = json.loads(path.read_text(encoding="utf-8"))
        if all(data[name] == head[name] for name in matters):
            return [ViolationCluster(**{**one, "actions": tuple(one["actions"]), "faults": tuple(one["faults"])})
                    for one in data["clusters"]]
    found = clusters(tables, most)
    if not is_stale:
        with suppress(Refusal):  # a folder that is only read has no place for them
            write_atomically(path, [compact({**head, "clusters": [attrs.asdict(one) for one in found]})])
    return found
