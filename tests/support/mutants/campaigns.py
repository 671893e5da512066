"""The runs by which mutants of the protocols' source are hunted: a model at a size, under faults, and what is claimed.

No campaign knows a mutant, and the protocols as they are stay silent on all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from compaction.actor_properties import LIVENESS, SAFETY
from harness.model import NO_FAULTS, Faults, Scenario, find_scenario

TRANSACTIONS = (
    "exactly-once-commits", "exactly-once-zombie", "exactly-once-crashes", "exactly-once-lost-answers", "leaders-move",
    "leaders-crash",
)
"""Scenarios of whole transactions that are campaigns as they are."""
REPLICATION = tuple(f"{name}-repaired" for name in (
    "rp-01-truncate-to-high-watermark", "rp-02-diverging-tails", "rp-03-unknown-epoch", "rp-04-fast-failover",
    "rp-05-unfenced-fetch", "rp-06-first-try", "rp-10-unseen-member",
))
"""Likewise for replication: rows that are silent because one flaw is repaired, so that a mutant can undo the repair."""
OPERATIONS = (
    "replication-calm", "replication-late-leader-and-isr", "replication-rolling-crash",
    "replication-doubled-and-reordered", "replication-tail-loss",
)
"""Rows of replication in which everything is claimed."""
LOSSY = Faults(drop=1, duplicate=1, delay=1, crash=1, targets=("broker", "producer", "r1"))
CRASH = Faults(crash=2, targets=("broker",))
MESSAGES = {"messages": 3, "keys": 2, "values": 1, "readers": 1, "disconnects": 1}


def compacting(name: str, faults: Faults = NO_FAULTS) -> Scenario:
    """Return a campaign of topic compaction."""
    claims = (*SAFETY, *LIVENESS)
    return Scenario(name, "", "compaction/pulsar/actors", MESSAGES, faults=faults, claims=claims, steps=150)


def known(*names: str) -> Iterable[Scenario]:
    """Yield scenarios by name."""
    for name in names:
        scenario = find_scenario(name)
        assert scenario is not None, name
        yield scenario


ROWS: tuple[Scenario, ...] = (
    *known(*TRANSACTIONS, *REPLICATION, *OPERATIONS),
    compacting("compaction"), compacting("broker-crash", CRASH), compacting("compaction-lossy", LOSSY),
)
CAMPAIGNS: Mapping[str, Scenario] = {row.name: row for row in ROWS}
STRATEGIES: Mapping[str, str] = {name: "pct" if name.endswith("-crash") else "random" for name in CAMPAIGNS}
"""PCT for what happens late: `random` crashes a broker, or elects one, before there is anything to lose."""
SEARCHES: Mapping[str, tuple[str, Mapping[str, int]]] = {
    "search-two-clients": ("transactions/diary-02", {"clients": 2, "elections": 1}),
    "search-two-partitions": ("transactions/diary-02", {"clients": 2, "elections": 0, "topic-partitions": 2}),
    "search-two-replicas": ("replication/kip-320", {"replicas": 2}),
    "search-three-replicas": ("replication/kip-320", {"replicas": 3, "log-size": 1, "max-records": 1}),
    "search-by-epoch": ("replication/kip-101", {"replicas": 2, "max-leader-epoch": 1}),
    "search-compaction": ("compaction/pulsar", {"messages": 2, "compactions": 2, "keys": 1, "values": 1}),
}
"""Exhaustive searches of specs, by model and sizes: what a mutant of a shared decision does to the spec itself."""
