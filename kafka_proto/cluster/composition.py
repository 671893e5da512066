"""What a broker is made of: its roles, a line each, and logs that it leads for good or that are replicated."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from harness.model import FrozenMap, Process, Value, durable
from kafka_proto.broker.broker import Broker
from kafka_proto.broker.composition import Rules, in_turn, replicated, start
from kafka_proto.broker.coordinator.coordinator import KAFKAS_DEFAULTS, CoordinatorConfig
from kafka_proto.broker.coordinator.role import BLOCK_SIZE, TransactionCoordinator
from kafka_proto.broker.coordinator.transaction_log import TransactionRecord
from kafka_proto.broker.group.role import GroupRole
from kafka_proto.broker.leader.fetching import written_together
from kafka_proto.broker.leader.marker_answers import MarkerAnswers
from kafka_proto.broker.leader.role import RecordTimes, TopicLeader
from kafka_proto.broker.logs.local import RECORDS, LocalLog, Records
from kafka_proto.broker.logs.replicated import ReplicatedLog
from kafka_proto.broker.look_ups import LookUps
from kafka_proto.broker.other_brokers import OtherBrokers
from kafka_proto.broker.placement import Placement
from kafka_proto.broker.roles import Role
from kafka_proto.broker.versions import BrokerVersion
from kafka_proto.cluster.epochs import used_up


def roles_of(
    name: str, version: BrokerVersion, placement: Placement, *, times_out: bool,
    begun: Mapping[str, tuple[TransactionRecord, ...]] = FrozenMap(), block_size: int = BLOCK_SIZE,
    record_times: RecordTimes = written_together, config: CoordinatorConfig = KAFKAS_DEFAULTS,
) -> tuple[Role, ...]:
    """Return what a broker is made of; `begun` is what the transaction log holds at the start."""
    others, marker_answers = OtherBrokers(name, placement), MarkerAnswers()
    groups = GroupRole(name, version, placement.partitions, others, marker_answers)
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


Composition = tuple[tuple[Process, ...], dict[str, Value]]
"""Brokers with whatever else they need, and the slots that are not as they are at first."""


def with_local_logs(
    placement: Placement, roles: Mapping[str, tuple[Role, ...]], sizes: Mapping[str, int], settings: Mapping[str, str]
) -> Composition:
    """Return brokers that lead their partitions for good; entries of the transaction log may commit later."""
    leaders = {p: placement.leader(p) for p in placement.all_partitions}
    later = frozenset(placement.transaction_partitions if settings["log"] == "later" else ())
    begun = used_up(placement, sizes["epochs"])
    brokers, initial = [], dict[str, Value]()
    for b in placement.brokers:
        log = LocalLog(b, roles[b], leaders, later)
        broker = Broker(b, log, roles[b])
        brokers.append(broker)
        held = {RECORDS[p]: Records(begun[p]) for p in log.led if p in begun}
        initial |= on_disk(broker, broker.layout.values(broker.started(log.known(broker.initial), held)))
    return tuple(brokers), initial


def with_replicated_logs(
    placement: Placement, roles: Mapping[str, tuple[Role, ...]], sizes: Mapping[str, int], settings: Mapping[str, str]
) -> Composition:
    """Return brokers that host replicas of all partitions, and the controller that elects their leaders."""
    hosts = hosts_of(placement, sizes)
    controller, rules, brokers = replicated(placement.brokers, hosts, roles, sizes, settings)
    values = start(controller.initial, rules, brokers)
    initial = {slot: value for broker in brokers for slot, value in on_disk(broker, values).items()}
    return (*brokers, controller), {**values, **initial}


def hosts_of(placement: Placement, sizes: Mapping[str, int]) -> dict[str, tuple[str, ...]]:
    """Return the brokers that have a replica of each partition, who leads at first before the others."""
    brokers, count = placement.brokers, sizes["replication-factor"]
    return {p: in_turn(brokers, brokers.index(placement.leader(p)), count) for p in placement.all_partitions}


def rules_of(processes: Iterable[Process], hosts: Mapping[str, tuple[str, ...]]) -> Rules:
    """Return the replicas that brokers host, by partition and broker."""
    logs = {b.name: b.log for b in processes if isinstance(b, Broker)}
    found = {p: {name: log.hosts[p] for name, log in logs.items() if isinstance(log, ReplicatedLog) and p in log.hosts}
             for p in hosts}
    return found


def on_disk(broker: Broker, values: Mapping[str, Value]) -> dict[str, Value]:
    """Return the slots of a broker as they are after its first start, all of it durable."""
    layout = broker.layout
    disks = {disk: durable(values[slot]) for slot, disk in layout.disks.items()}
    return {**{slot: values[slot] for slot in layout.slots}, **disks}
