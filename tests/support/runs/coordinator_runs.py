"""Runs of whole transactions that are held against diary 02's coordinators: the sizes and faults."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs

from harness.model import Faults, Model
from harness.model.faults import FAULT_KINDS
from harness.simulate.runs.plan import everything
from harness.verify.refinement import Refiner
from harness.verify.simulated_runs import Totals, refine_runs
from kafka_proto.broker import versions
from kafka_proto.broker.versions import BrokerVersion
from kafka_proto.cluster.models import OLDER, model

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
CLIENTS: Mapping[str, str] = {"kip-98": "java23", "kip-360": "java35", "kip-890-part-1": "java39", "kip-890": "tv2"}
"""The clients of brokers by the first part of their version's name; at level 1 they are those of Kafka 3.9."""
VERSIONS: Mapping[str, BrokerVersion] = {
    one.name: one for one in (
        versions.KIP_98, versions.KIP_98_0_11, *(one for many in versions.RELEASES.values() for one in many)
    ) if not one.name.endswith("level-0")
}
"""Every version of a broker that a model has."""


def build(version: BrokerVersion, row: str) -> Model:
    """Return whole transactions with brokers of a version, and every kind of fault."""
    log, sizes = ROWS[row]
    faults = Faults(**{**dict.fromkeys(FAULT_KINDS, 1), "crash": 2}, targets=("b1", "b2", "c1"))
    settings = {"log": log, "timeouts": "request,delivery,transaction"}
    client = CLIENTS["kip-890-part-1" if "level" in version.name else version.name.partition("/")[0]]
    made = model("compared", "", (client,), {OLDER: version})
    return made.make(sizes, settings, network="connections", faults=faults)


def refined(version: BrokerVersion, row: str, seeds: Iterable[int]) -> list[Totals]:
    """Make runs of seeds in each mode, and hold them against diary 02's coordinators."""
    built = build(version, row)
    refiner, planned, every = Refiner(built), list(seeds), everything(built)
    found = [refine_runs(built, attrs.evolve(every, steps=300, mode=mode), planned, refiner=refiner) for mode in MODES]
    refiner.close()
    return found
