"""Runs of whole transactions in which the coordinators are held against diary 02: the sizes, faults and mutants."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

import attrs

from harness.model import Faults, Model
from harness.model.faults import FAULT_KINDS
from harness.simulate.runs.plan import everything
from harness.simulate.runs.session import run_plain
from harness.simulate.states.tables import Tables
from harness.simulate.strategies.strategy import RandomStrategy
from kafka_proto.broker import versions
from kafka_proto.broker.versions import BrokerVersion
from kafka_proto.cluster.models import model
from support.runs.coordinator_spec import Oracle

BUSY = {"brokers": 2, "producers": 2, "transactional-ids": 1, "offsets": 1}
"""Two producers with one transactional id: each fences the other."""
ROWS: Mapping[str, tuple[str, Mapping[str, int]]] = {
    "at-once": ("at-once", BUSY),
    "later": ("later", BUSY),
    "epochs": ("later", {**BUSY, "offsets": 0, "epochs": 2}),
    "replicated": ("replicated", {**BUSY, "elections": 3}),
}
"""The log and the sizes, by name."""
MODES = ("free", "timed")
CLIENTS: Mapping[str, str] = {
    "kip-98": "java23", "kip-360": "java35", "kip-890-part-1": "java39", "kip-890": "tv2", "kip-890/4.2": "tv2",
    "kip-890/4.4": "tv2",
}
"""The clients of each version of a broker."""
VERSIONS: Mapping[str, BrokerVersion] = {
    one.name: one for one in (
        versions.KIP_98, versions.KIP_360, versions.KIP_890_PART_1, versions.KIP_890, versions.KIP_890_4_2,
        versions.KIP_890_4_4,
    )
}


@attrs.define
class Sum:
    """What runs came to: the comparison, and what the properties of the model said."""

    oracle: Oracle
    steps: int = 0
    violated: Counter[str] = attrs.field(factory=Counter)


def build(version: BrokerVersion, row: str) -> Model:
    """Return whole transactions with brokers of a version, and every kind of fault."""
    log, sizes = ROWS[row]
    faults = Faults(**{**dict.fromkeys(FAULT_KINDS, 1), "crash": 2}, targets=("b1", "b2", "c1"))
    settings = {"log": log, "timeouts": "request,delivery,transaction"}
    made = model("compared", "", (CLIENTS[version.name],), {"0": version})
    return made.make(sizes, settings, network="connections", faults=faults)


def compare(version: BrokerVersion, row: str, seeds: Iterable[int]) -> Sum:
    """Make runs of each mode and seed, and compare what the coordinators do in them with diary 02."""
    built, total = build(version, row), Sum(Oracle(version.name))
    total.oracle.watch(built)
    tables, plan = Tables(built), attrs.evolve(everything(built), steps=300)
    for seed in seeds:
        for mode in MODES:
            run = run_plain(tables, attrs.evolve(plan, mode=mode), RandomStrategy(seed))
            total.steps += len(run.trail.choices)
            total.violated.update(verdict.violated for verdict in run.violations if verdict.violated)
    tables.close()
    return total
