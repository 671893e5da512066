"""Brokers with replicated logs and the controller that elects their leaders, as they are composed, and their start."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from harness.model import Local, Message, Part, Setting, Value
from kafka_proto.broker.broker import Broker
from kafka_proto.broker.controller import PARTITION, ClusterController
from kafka_proto.broker.logs.replicated import REPLICA, ReplicatedLog
from kafka_proto.broker.roles import Role
from kafka_proto.replication import partition, quorum
from kafka_proto.replication.controller import CONTROLLER
from kafka_proto.replication.known import LeaderAndEpoch
from kafka_proto.replication.replica_state import Replica, ReplicaState
from kafka_proto.replication.versions import KIP_320

DISK = Setting(
    ("flushed", "unflushed", "lost"), "flushed",
    doc="what a crash leaves: all, all that was flushed when a timer fired last, or nothing",
)

Rules = Mapping[str, Mapping[str, Replica]]
"""By partition and broker: the replica that it hosts."""


def in_turn(brokers: Sequence[str], first: int, count: int) -> tuple[str, ...]:
    """Return the brokers that host a partition: so many from a place on, as many as there are at most."""
    return tuple(brokers[(first + n) % len(brokers)] for n in range(min(count, len(brokers))))


def replicated(
    names: Sequence[str], hosts: Mapping[str, tuple[str, ...]], roles: Mapping[str, tuple[Role, ...]],
    sizes: Mapping[str, int], settings: Mapping[str, str],
) -> tuple[ClusterController, Rules, list[Broker]]:
    """Return the controller, the replicas and the brokers of these names; `hosts` have a replica of each partition.

    Sizes: `elections`, `min-insync-replicas`. Settings: `disk` (what a crash leaves) and `election`.
    """
    least = sizes["min-insync-replicas"]
    controller = ClusterController(hosts, tuple(names), sizes["elections"], settings["election"], least)
    flushes = settings["disk"] != "unflushed"
    rules = {
        p: {b: Replica(b, KIP_320, least, flushes, p, CONTROLLER) for b in replicas} for p, replicas in hosts.items()
    }
    brokers = []
    for b in names:
        replicas = {p: rules[p][b] for p in hosts if b in rules[p]}
        log = ReplicatedLog(b, replicas, roles[b], settings["disk"] == "lost", settings["election"] == "elr")
        brokers.append(Broker(b, log, roles[b]))
    return controller, rules, brokers


def start(controller: Local, rules: Rules, brokers: list[Broker]) -> Mapping[str, Value]:
    """Return the slots of the brokers' first states."""
    states = started(controller, rules, brokers)
    return {name: value for b in brokers for name, value in b.layout.values(states[b.name]).items()}


def started(controller: Local, rules: Rules, brokers: list[Broker]) -> dict[str, Local]:
    """Return the brokers' first states: the first election is over, and each follower's fetch waits at its leader."""
    states: dict[str, dict[Part[ReplicaState], ReplicaState]] = {b.name: {} for b in brokers}
    known: dict[str, LeaderAndEpoch] = {}
    for p in rules:
        q = controller[PARTITION[p]].quorum
        known[p] = LeaderAndEpoch(q.leader_epoch, q.leader or "")
        under_way: list[Message] = [quorum.announcement(q, CONTROLLER, b, p) for b in rules[p]]
        for b in rules[p]:
            states[b][REPLICA[p]] = ReplicaState()
        while under_way:
            message = under_way.pop(0)
            if message.dest != CONTROLLER:
                outcome = partition.receive(rules[p][message.dest], states[message.dest][REPLICA[p]], message)
                assert outcome is not None
                states[message.dest][REPLICA[p]] = outcome.state
                under_way += outcome.sent
    return {b.name: b.started(known, states[b.name]) for b in brokers}
