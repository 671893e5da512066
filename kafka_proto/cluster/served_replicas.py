"""R1, R2, R3 and R6 of brokers that run: what the replicas of a partition owe each other, looked at between inputs."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, permutations
from operator import is_

from harness.model import View
from kafka_proto.broker.controller import PARTITION
from kafka_proto.broker.parts import REPLICA
from kafka_proto.cluster.running import RunningCluster
from kafka_proto.replication.checks import ReplicaChecks
from kafka_proto.replication.controller import CONTROLLER
from kafka_proto.replication.quorum import Quorum
from kafka_proto.replication.replica_state import Replica, ReplicaState
from kafka_proto.replication.versions import KIP_320

NAMES = {"StrongIsr": "R1", "WeakIsr": "R2", "LogMatching": "R3", "FollowerLogMatches": "R3", "IsrEligibility": "R6"}


def problems(cluster: RunningCluster) -> Iterator[tuple[str, str]]:
    """Yield the properties that fail, with reasons, of partitions that have changed.

    R1 to R3 are not claimed of a partition that has lost records by an unclean election or on a disk.
    """
    for p in cluster.placement.all_partitions if cluster.is_replicated else ():
        hosts = cluster.replicas(p)
        states: dict[str, ReplicaState] = {b: cluster.state(b)[REPLICA[p]] for b in hosts}
        quorum: Quorum = cluster.state(CONTROLLER)[PARTITION[p]].quorum
        now = (quorum, *states.values())
        if len(before := cluster.looked_at.get(p, ())) == len(now) and all(map(is_, before, now)):
            continue  # it is as it was when it was looked at last
        cluster.looked_at[p] = now
        rules = {b: Replica(b, KIP_320, partition=p) for b in hosts}
        checks = ReplicaChecks(rules, lambda view, b: view[b], lambda view: view[CONTROLLER])
        view = View({**states, CONTROLLER: quorum})
        found = [("IsrEligibility", checks.eligibility(view, b)) for b in hosts]
        if not cluster.may_differ(p):
            for a, b in permutations(hosts, 2):
                found += [("StrongIsr", checks.strong_isr(view, a, b)), ("WeakIsr", checks.weak_isr(view, a, b)),
                          ("FollowerLogMatches", checks.follower_log_matches(view, a, b))]
            found += [("LogMatching", checks.log_matching(view, a, b)) for a, b in combinations(hosts, 2)]
        yield from ((name, f"{p}: {why}") for name, why in found if why is not None)
