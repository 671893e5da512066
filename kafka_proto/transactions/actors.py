"""The actor composition of diary 02 and its repairs: clients, brokers, controller and log partitions, over messages.

Same decisions as the spec composition; what is added is what running actors need: correlation ids, timeouts and
retries, look-ups that may be stale, crashes and reloads. The transaction log stays atomic (see `log`): brokers reach it
and the controller over reliable links, which can be cut off and lose nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from harness.model import NO_FAULTS, RELIABLE, Faults, Model, Network, Process, View, both_ways, departed
from kafka_proto.broker.broker import Broker
from kafka_proto.broker.state import METADATA, Metadata
from kafka_proto.replication.known import LeaderAndEpoch
from kafka_proto.stack.atomic_log import COPY, AtomicLog, Copy
from kafka_proto.transactions import controller, coordinator_role, log, messages, producer, records
from kafka_proto.transactions.actor_properties import acked_is_logged, service_type_ok
from kafka_proto.transactions.application import ProducerClient
from kafka_proto.transactions.coordinator_role import COORDINATOR, CoordinatorRole
from kafka_proto.transactions.properties import Logged, actor_message_type, properties
from kafka_proto.transactions.records import ClientRecord, TransactionMetadata
from kafka_proto.transactions.refinement import refinement
from kafka_proto.transactions.specs.names import Names, spread
from kafka_proto.transactions.versions.departures import DEPARTURES
from kafka_proto.transactions.versions.version import Version


def record_of(client: producer.Producer) -> ClientRecord:
    """Return what the protocol's properties look at of a client."""
    return client.record


class ActorState:
    """Where the actors keep what the properties speak of."""

    actors = True

    def client(self, view: View, c: str) -> ClientRecord:
        return view.derived(c, record_of)

    def log(self, view: View, b: str, p: str) -> Sequence[Logged]:
        return COPY[p].of(view, b).log

    def hwm(self, view: View, b: str, p: str) -> int:
        return COPY[p].of(view, b).high_watermark

    def believes(self, view: View, b: str, p: str) -> LeaderAndEpoch:
        return METADATA.of(view, b).known[p]

    def serves(self, view: View, b: str, p: str) -> bool:
        return p in COORDINATOR.of(view, b).loaded

    def metadata(self, view: View, b: str, tid: str) -> TransactionMetadata | None:
        return COORDINATOR.of(view, b).metadata.get(tid)


TYPES: tuple[type, ...] = (
    *records.TYPES, *log.TYPES, *producer.TYPES, *coordinator_role.TYPES, *controller.TYPES, Metadata, Copy,
    messages.FindCoordinatorRequest, messages.FindCoordinatorResponse, messages.LeaderAndIsrRequest,
    messages.BrokerRegistrationRequest, messages.AllocateProducerIdsRequest, messages.AllocateProducerIdsResponse,
)


def build(
    version: Version, sizes: Mapping[str, int], settings: Mapping[str, str], network: Network, faults: Faults,
    history_variables: bool,
) -> Model:
    """Build the actor composition of a version at a size, with the repairs that the settings name."""
    name = f"transactions/{version.name}/actors"
    version = departed(version, DEPARTURES, settings.get("repair", ""))
    constants = Names.of(sizes)
    leaders = spread(constants.txn_log_partitions, constants.brokers)
    home = spread(constants.transactional_ids, constants.txn_log_partitions)
    known = {p: LeaderAndEpoch(1, leader) for p, leader in leaders.items()}
    brokers = []
    for n, b in enumerate(constants.brokers):
        roles = (CoordinatorRole(b, n, constants.txn_log_partitions, home, version),)
        brokers.append(Broker(b, AtomicLog(b, roles, version.must_follow), roles, asks_again=False))
    processes: list[Process] = [
        producer.TransactionalProducer(
            c, constants.brokers, constants.transactional_ids, constants.topic_partitions, version
        )
        for c in constants.clients
    ]
    processes += brokers
    processes.append(controller.Controller(leaders, constants.brokers, constants.elections, version.election))
    logs = [log.TransactionLog(p, leader, constants.brokers) for p, leader in leaders.items()]
    processes += logs
    start = {slot: value for b in brokers for slot, value in b.layout.values(b.started(known)).items()}
    found = (
        *properties(constants, ActorState()), acked_is_logged(constants, home),
        service_type_ok(constants, home, actor_message_type(constants)),
    )
    return Model(
        name, tuple(processes), (start,), network, faults, found,
        history_variables=history_variables, sizes=sizes, settings=settings, types=TYPES,
        waits_for=lambda view: waits_for(constants, view), application=ProducerClient,
        links=(
            *both_ways(constants.clients, constants.brokers),
            *both_ways(constants.brokers, (controller.CONTROLLER, *(actor.name for actor in logs)), RELIABLE),
        ),
        symmetric=(constants.clients, constants.topic_partitions),
        refinement=None if flaws_show(version, sizes) else lambda: refinement(
            version, sizes, settings, network, faults != NO_FAULTS, brokers, logs, home
        ),
    )


SHOWS: Mapping[str, tuple[str, int]] = {
    "S1": ("transactional-ids", 1), "S2": ("brokers", 2), "S3": ("txn-log-partitions", 1),
}
"""The size above which a flaw shows."""


def flaws_show(version: Version, sizes: Mapping[str, int]) -> bool:
    """Say whether a flaw of the spec shows at a size: actors then go wrong in their own way, which no spec has."""
    left = (SHOWS[repair.id] for repair in DEPARTURES if repair.id in SHOWS and not repair.is_in(version))
    return any(sizes[name] > most for name, most in left)


def waits_for(constants: Names, view: View) -> tuple[str, ...]:
    """Say who waits for whom: clients for answers, logs for brokers that have not joined the epoch."""
    found = producer.waiting(view, constants.clients)
    for p in constants.txn_log_partitions:
        partition: log.LogPartition = view[log.log_name(p)]
        behind = [b for b, epoch in partition.joined.items() if epoch != partition.leader_epoch]
        if partition.waiting and behind:
            found.append(f"{p} waits for {', '.join(behind)} to join epoch {partition.leader_epoch}")
    return tuple(found)


