"""What a broker is made of: its roles, a line each, and logs that it leads for good or that are replicated; the start.

Where they are replicated a controller elects their leaders: the first election is over at the start.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from harness.model import Actor, FrozenMap, Local, Message, Part, Setting, Value, durable
from kafka_proto.broker.broker import Broker
from kafka_proto.broker.controller import PARTITION, ClusterController
from kafka_proto.broker.coordinator.coordinator import KAFKAS_DEFAULTS, CoordinatorConfig
from kafka_proto.broker.coordinator.role import BLOCK_SIZE, TransactionCoordinator, block_of
from kafka_proto.broker.coordinator.transaction import LAST_EPOCH, TransactionMetadata, TransactionRecord
from kafka_proto.broker.group.role import GroupRole
from kafka_proto.broker.group.settings import KAFKAS_GROUPS, GroupConfig
from kafka_proto.broker.leader.fetching import written_together
from kafka_proto.broker.leader.role import MarkerAnswers, RecordTimes, TopicLeader
from kafka_proto.broker.logs.local import LocalLog
from kafka_proto.broker.logs.replicated import ReplicatedLog
from kafka_proto.broker.look_ups import LookUps
from kafka_proto.broker.other_brokers import OtherBrokers
from kafka_proto.broker.parts import METADATA, RECORDS, REPLICA, LeaderAndEpoch, Records
from kafka_proto.broker.placement import Placement
from kafka_proto.broker.roles import Role
from kafka_proto.broker.versions import BrokerVersion
from kafka_proto.clients.producer import TRANSACTION_TIMEOUT_MS
from kafka_proto.log.chunks import NOTHING
from kafka_proto.replication import partition, quorum
from kafka_proto.replication.controller import CONTROLLER
from kafka_proto.replication.records import EntryLog, ReplicaEntry
from kafka_proto.replication.replica_state import Replica, ReplicaState
from kafka_proto.replication.versions import KIP_320

DISK = Setting(
    ("flushed", "unflushed", "lost"), "flushed",
    doc="what a crash leaves: all, all that was flushed when a timer fired last, or nothing",
)
Rules = Mapping[str, Mapping[str, Replica]]
"""By partition and broker: the replica that it hosts."""
Begun = Mapping[str, tuple[TransactionRecord, ...]]
"""By partition of the transaction log: what it holds at the start."""
NOTHING_BEGUN: Begun = FrozenMap()
Roles = Mapping[str, tuple[Role, ...]]
"""By broker."""
Composition = tuple[tuple[Actor[Local], ...], dict[str, Local]]
"""Brokers with whatever else they need, and the first state of each."""


def roles_of(
    name: str, version: BrokerVersion, placement: Placement, *, times_out: bool,
    begun: Begun = NOTHING_BEGUN, block_size: int = BLOCK_SIZE,
    record_times: RecordTimes = written_together, config: CoordinatorConfig = KAFKAS_DEFAULTS,
    group_config: GroupConfig = KAFKAS_GROUPS,
) -> tuple[Role, ...]:
    """Return what a broker is made of; `begun` is what the transaction log holds at the start."""
    others, marker_answers = OtherBrokers(name, placement), MarkerAnswers()
    groups = GroupRole(name, version, placement.partitions, others, marker_answers, config=group_config)
    return (
        others,
        TransactionCoordinator(
            name, version, placement, others, times_out=times_out, begun=begun, block_size=block_size,
            config=config,
        ),
        TopicLeader(name, version, placement.partitions, others, marker_answers, (groups,), record_times),
        groups,
        marker_answers,
        LookUps(name, placement),
    )


def used_up(placement: Placement, left: int) -> Begun:
    """Return by partition an entry of each transactional id with so many epochs left; 0: no client had an epoch yet."""
    found: dict[str, tuple[TransactionRecord, ...]] = {}
    for tid in placement.transactional_ids if left else ():
        p = placement.transaction_partition(tid)
        before = found.get(p, ())
        producer_id = block_of(placement.leader(p), placement, 0).first + len(before)
        entry = TransactionMetadata(
            producer_id, producer_epoch=LAST_EPOCH - left, timeout_ms=TRANSACTION_TIMEOUT_MS
        )
        found[p] = (*before, TransactionRecord(tid, entry))
    return FrozenMap(found)


def with_local_logs(
    roles: Roles, leaders: Mapping[str, str], held: Mapping[str, Records], later: frozenset[str] = frozenset()
) -> Composition:
    """Return brokers that lead their partitions for good; `held` is in their logs, some commit their records later."""
    brokers, states = [], dict[str, Local]()
    for b, its in roles.items():
        log = LocalLog(b, its, leaders, later)
        broker = Broker(b, log, its)
        first = broker.initial
        for p in log.led:
            first = first.put(RECORDS[p], held.get(p, first[RECORDS[p]]))
        brokers.append(broker)
        started = broker.started(log.known(first), {part: first[part] for part in log.parts})
        for p in log.led:
            if p in held and log.roles[p].loads_at_once:
                started = log.loaded(started, p, held[p].committed, len(held[p].committed))
        states[b] = started
    return tuple(brokers), states


def in_turn(brokers: Sequence[str], first: int, count: int) -> tuple[str, ...]:
    """Return the brokers that host a partition: so many from a place on, as many as there are at most."""
    return tuple(brokers[(first + n) % len(brokers)] for n in range(min(count, len(brokers))))


def hosts_of(placement: Placement, sizes: Mapping[str, int]) -> dict[str, tuple[str, ...]]:
    """Return the brokers that have a replica of each partition, its first leader before the others."""
    brokers, count = placement.brokers, sizes["replication-factor"]
    return {p: in_turn(brokers, brokers.index(placement.leader(p)), count) for p in placement.all_partitions}


def rules_of(hosts: Mapping[str, tuple[str, ...]], least: Mapping[str, int], settings: Mapping[str, str]) -> Rules:
    """Return the replicas that brokers host; `least` is `min.insync.replicas` by partition."""
    flushes = settings["disk"] != "unflushed"
    return {p: {b: Replica(b, KIP_320, least[p], flushes, p, CONTROLLER) for b in hosts[p]} for p in hosts}


def with_replicated_logs(
    roles: Roles, rules: Rules, controller: ClusterController, settings: Mapping[str, str], empty: EntryLog = (),
    begun: Begun = NOTHING_BEGUN,
) -> Composition:
    """Return brokers that host replicas, and the controller that elects their leaders; each follower's fetch waits.

    Settings: `disk` (what a crash leaves) and `election`. Logs are like `empty`, but for what is `begun`: that is
    committed.
    """
    brokers = []
    for b, its in roles.items():
        replicas = {p: rules[p][b] for p in rules if b in rules[p]}
        log = ReplicatedLog(b, replicas, its, settings["disk"] == "lost", settings["election"] == "elr")
        brokers.append(Broker(b, log, its))
    states: dict[str, dict[Part[ReplicaState], ReplicaState]] = {b: {} for b in roles}
    known: dict[str, LeaderAndEpoch] = {}
    for p in rules:
        q = controller.initial[PARTITION[p]].quorum
        known[p] = LeaderAndEpoch(q.leader_epoch, q.leader or "")
        under_way: list[Message] = [quorum.announcement(q, CONTROLLER, b, p) for b in rules[p]]
        for b in rules[p]:
            held = tuple(ReplicaEntry(0, record) for record in begun.get(p, ()))
            states[b][REPLICA[p]] = ReplicaState(held or empty, len(held), broker_epoch=q.broker_epochs[b])
        while under_way:
            message = under_way.pop(0)
            if message.dest != CONTROLLER:
                outcome = partition.receive(rules[p][message.dest], states[message.dest][REPLICA[p]], message)
                assert outcome is not None
                states[message.dest][REPLICA[p]] = outcome.state
                under_way += outcome.sent
    first = {b.name: b.started(known, states[b.name]) for b in brokers}
    return (*brokers, controller), {**first, CONTROLLER: controller.initial}


def on_disk(actor: Actor[Local], state: Local) -> dict[str, Value]:
    """Return the slots of an actor in its first state, all of it durable."""
    layout = actor.layout
    values = layout.values(state)
    return {**values, **{disk: durable(values[slot]) for slot, disk in layout.disks.items()}}


def blank(controller: Local, before: Local, after: Local) -> dict[Part[ReplicaState], ReplicaState]:
    """Return replicas of partitions that were there before, for a broker that had none of them: they are empty."""
    made = ReplicaState(NOTHING, broker_epoch=after[METADATA].broker_epoch)
    return {part: made for part in after if part.index[0] == REPLICA.name and part not in before
            and PARTITION[part.index[-1]] in controller}


def carried_over(before: Local, after: Local) -> Local:
    """Return a state of more or fewer partitions with what another one kept."""
    after = after.put_all({part: before[part] for part in before if part in after and part is not METADATA})
    if METADATA in before:
        metadata, fresh = before[METADATA], after[METADATA].known
        there = FrozenMap({p: metadata.known.get(p, known) for p, known in fresh.items()})
        after = after.put(METADATA, attrs.evolve(metadata, known=there))
    return after.folded()
