"""Violations in clusters: those that shrink to the same signature, each cluster with its shortest witness.

Violating runs are many, and their trails long. They are first grouped by what a row says (property, action of the
step that violates it, faults before it); the shortest run of each such group is shrunk, and groups whose witnesses
have the same signature then are one cluster: same property, same actions involved, same kinds of faults.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import attrs

from harness.campaign.tables import CampaignTables
from harness.campaign.worker import PERTURBING, EventBuffer
from harness.model import Refusal
from harness.record import Trail, faults_to_json, trail_of_text
from harness.record.files import compact
from harness.simulate.states.tables import Tables
from harness.simulate.trails.replay import replay_plain
from harness.simulate.trails.shrink import shrink

MOST = 64
"""Groups of each scenario or model whose shortest run is shrunk, those of the most violations first."""


@attrs.frozen
class ViolationCluster:
    """Violations that are the same thing, as far as their shortest witness shows."""

    what: str
    property: str
    actions: tuple[str, ...]
    """The actions of the witness, faults among them, each once, by name."""
    faults: tuple[str, ...]
    """Those of them that are faults or perturbations."""
    violations: int
    runs: int
    cell: str
    seed: int
    """The run that the witness was shrunk from."""
    had: int
    has: int
    """Steps of that run, before its fair ending, and of the witness."""
    proved: bool
    """Whether a search found no shorter one."""
    reason: str
    trail: str
    """The witness, as a trail file has it; empty if the run was recorded elsewhere without one."""
    shrunk: bool = True
    """False if there are too many groups, or no trail: the witness is a run as it was found."""
    replays: bool = True
    """False if there is no trail, or the trail does not fit the code any more."""


def clusters(tables: CampaignTables, most: int = MOST) -> list[ViolationCluster]:
    """Return the clusters of the violations of each scenario or model, those of the most violations first."""
    groups = _groups(tables)
    ranks: dict[str, int] = {}
    tasks = []
    for group in groups:
        ranks[group["what"]] = ranks.get(group["what"], 0) + 1
        tasks.append((group, ranks[group["what"]] <= most))
    if not tasks:
        return []
    context = tables.spark.sparkContext
    found = context.parallelize(tasks, min(len(tasks), 4 * context.defaultParallelism)).mapPartitions(_witnesses)
    return _merged(found.collect())


def _groups(tables: CampaignTables) -> list[dict[str, Any]]:
    """Return the groups of violations whose rows say the same, each with its shortest run."""
    from pyspark.sql import functions as f

    trails = tables.frame("runs").where("outcome = 'violated'").select("cell", "seed", "trail")
    rows = tables.frame("violations").join(trails, ["cell", "seed"])
    shortest = f.min_by(f.struct("cell", "seed", "trail", "reason", "step"),
                        f.struct(f.isnull("trail"), "step", "cell", "seed"))
    grouped = rows.groupBy("what", "property", "action", "faults").agg(
        f.count("*").alias("violations"), f.count_distinct("cell", "seed").alias("runs"), shortest.alias("run"))
    ordered = grouped.sort("what", f.desc("violations"), "property", "action", "faults").collect()
    return [row.asDict(recursive=True) for row in ordered]


def _witnesses(tasks: Iterable[tuple[dict[str, Any], bool]]) -> Iterator[ViolationCluster]:
    """Shrink the shortest run of each group that is to be."""
    for group, is_wanted in tasks:
        run = group["run"]
        if run["trail"] is None:
            yield _recorded(group)
            continue
        trail = attrs.evolve(trail_of(run["trail"]), violates=group["property"])
        had = len(trail.choices) if trail.fair_from is None else trail.fair_from
        has, proved, reason, buffer = had, False, run["reason"], EventBuffer()
        replays = True
        try:
            if is_wanted:
                short = shrink(trail, tables=_tables(trail))
                trail, had, has, proved = short.trail, short.had, short.has, short.proved
            replayed = replay_plain(trail, buffer)
            reason = next((v.reason for v in replayed.violations if v.violated == trail.violates), None) or reason
            actions, faults = signature(buffer, has)
        except Refusal:  # runs that other code made: what their rows say is all that is known
            actions, faults, replays = (group["action"],), tuple(group["faults"]), False
        yield ViolationCluster(
            group["what"], group["property"], actions, faults, group["violations"], group["runs"], run["cell"],
            run["seed"], had, has, proved, reason, trail.text(), is_wanted and replays, replays,
        )


_TABLES: dict[str, Tables] = {}
"""In a worker: the tables of the model whose run was shrunk last; groups of one model share what they learn."""


def _tables(trail: Trail) -> Tables:
    """Return the tables of a trail's model."""
    key = compact([trail.model, dict(trail.sizes), dict(trail.settings), trail.network, faults_to_json(trail.faults),
                   list(trail.claims)])
    if key not in _TABLES:
        for tables in _TABLES.values():
            tables.start_over()  # only this frees them where the garbage collector is off
        _TABLES.clear()
        _TABLES[key] = Tables(trail.build())
    return _TABLES[key]


def _recorded(group: dict[str, Any]) -> ViolationCluster:
    """Return the cluster of a group whose runs were recorded without trails: they cannot be made again, nor shrunk."""
    run, faults = group["run"], tuple(group["faults"])
    actions = tuple(sorted({*faults, *([group["action"]] if group["action"] else [])}))
    return ViolationCluster(group["what"], group["property"], actions, faults, group["violations"], group["runs"],
                   run["cell"], run["seed"], run["step"], run["step"], False, run["reason"], "", False, False)


def signature(buffer: EventBuffer, steps: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the actions of a run's first steps, and those of them by which the environment disturbed the protocol."""
    actions, faults = set(), set()
    for _, _, what, _ in buffer.events[1 : steps + 1]:
        action = what.action or ""
        actions.add(action)
        if what.kind in PERTURBING:
            faults.add(action)
    return tuple(sorted(actions)), tuple(sorted(faults))


def _merged(found: Iterable[ViolationCluster]) -> list[ViolationCluster]:
    merged: dict[tuple[Any, ...], ViolationCluster] = {}
    for cluster in found:
        key = (cluster.what, cluster.property, cluster.actions, cluster.faults)
        old = merged.get(key)
        if old is not None:
            best, other = sorted((old, cluster), key=lambda one: (one.has, not one.shrunk, one.cell, one.seed))
            cluster = attrs.evolve(best, violations=best.violations + other.violations, runs=best.runs + other.runs)
        merged[key] = cluster
    return sorted(merged.values(), key=lambda one: (one.what, -one.violations, one.property, one.actions))


def trail_of(text: str) -> Trail:
    """Return a trail of its text in a table. Raises Refusal."""
    try:
        return trail_of_text("row.trail.jsonl", text)
    except Refusal as error:
        raise Refusal(f"the table runs holds a trail that cannot be read: {error}") from None
