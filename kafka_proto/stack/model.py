"""The model `cluster`: transactional clients, brokers whose coordinators write to a replicated log, a controller.

Brokers host replicas of the transaction log's partitions by the rules of KIP-320 and KIP-497, and coordinate what they
lead; clients find their coordinator by asking any broker. See docs/models.md for what it adds and leaves out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from harness.model import (
    NO_FAULTS,
    Faults,
    Model,
    ModelSpec,
    Network,
    Process,
    Setting,
    Size,
    Value,
    View,
)
from kafka_proto.broker import controller as controllers
from kafka_proto.broker.composition import DISK, in_turn, replicated, start
from kafka_proto.broker.logs.replicated import REPLICA
from kafka_proto.broker.roles import Role, owners
from kafka_proto.broker.state import METADATA, Metadata
from kafka_proto.replication import messages as replication_messages
from kafka_proto.replication import quorum, replica_state
from kafka_proto.replication.topics import replica_log
from kafka_proto.stack.properties import properties
from kafka_proto.stack.refinement import refinement
from kafka_proto.transactions import coordinator_role, messages, producer, records
from kafka_proto.transactions.application import ProducerClient
from kafka_proto.transactions.coordinator_role import CoordinatorRole
from kafka_proto.transactions.records import TxnRecord
from kafka_proto.transactions.specs.names import Names, spread
from kafka_proto.transactions.versions.repaired import REPAIRED

SIZES = {
    "clients": Size(2, maximum=6, doc="transactional clients"),
    "brokers": Size(3, maximum=5, doc="brokers, each a transaction coordinator"),
    "replication-factor": Size(3, maximum=5, doc="replicas of each log partition, at most one per broker"),
    "min-insync-replicas": Size(2, maximum=5, doc="how large the ISR must be for a write with acks=all"),
    "txn-log-partitions": Size(1, maximum=4, doc="partitions of the transaction log"),
    "topic-partitions": Size(1, maximum=4, doc="partitions that a transaction adds"),
    "transactional-ids": Size(1, maximum=4, doc="transactional ids"),
    "elections": Size(1, minimum=0, maximum=6, doc="spurious elections (0: none)"),
}
SETTINGS = {
    "disk": DISK,
    "election": Setting(
        ("clean", "elr", "unclean"), "clean",
        doc="whom the controller may elect: the ISR; while it is too small also who left it last (KIP-966); anybody",
    ),
}
ROLES: tuple[Callable[[str], Role], ...] = ()
"""What brokers are besides coordinators: each makes a role of the broker of a name."""
TYPES: tuple[type, ...] = (
    *records.TYPES, *producer.TYPES, *replication_messages.TYPES, *replica_state.TYPES, *quorum.TYPES,
    *coordinator_role.TYPES, *controllers.TYPES, Metadata, messages.FindCoordinatorRequest,
    messages.FindCoordinatorResponse, messages.AllocateProducerIdsRequest, messages.AllocateProducerIdsResponse,
)


def build(
    sizes: Mapping[str, int], settings: Mapping[str, str], network: Network, faults: Faults, history_variables: bool
) -> Model:
    """Build the model at a size, as it is after the first election."""
    constants = Names.of(sizes)
    home = spread(constants.transactional_ids, constants.txn_log_partitions)
    roles = {
        b: (CoordinatorRole(b, n, constants.txn_log_partitions, home, REPAIRED), *(make(b) for make in ROLES))
        for n, b in enumerate(constants.brokers)
    }
    partitions = tuple(owners(roles[constants.brokers[0]]))
    hosts = {p: in_turn(constants.brokers, n, sizes["replication-factor"]) for n, p in enumerate(partitions)}
    controller, rules, brokers = replicated(constants.brokers, hosts, roles, sizes, settings)
    producers = [
        producer.TransactionalProducer(
            c, constants.brokers, constants.transactional_ids, constants.topic_partitions, REPAIRED, backs_off=True
        )
        for c in constants.clients
    ]
    processes: list[Process] = [*producers, *brokers, controller]
    return Model(
        "cluster", tuple(processes), (start(controller.initial, rules, brokers),), network, faults,
        properties(constants, hosts, home), history_variables=history_variables, sizes=sizes, settings=settings,
        types=TYPES, waits_for=lambda view: waits_for(constants, hosts, view), application=ProducerClient,
        symmetric=(constants.clients, constants.topic_partitions),
        logs=lambda view: tuple(replica_log(p, b, REPLICA[p].of(view, b), entry) for p in hosts for b in hosts[p]),
        refinement=None if loses_records(settings) else lambda: refinement(
            REPAIRED, sizes, settings, network, faults != NO_FAULTS,
            {p: rules[p] for p in constants.txn_log_partitions}, home
        ),
    )


def entry(record: Value) -> str:
    """Return a record of the transaction log in words."""
    assert isinstance(record, TxnRecord)
    return f"{record.transactional_id} {record.transition.state}"


def loses_records(settings: Mapping[str, str]) -> bool:
    """Say whether the log may lose what is committed, which no spec of coordinators does."""
    return settings["disk"] != "flushed" or settings["election"] == "unclean"


def waits_for(constants: Names, hosts: Mapping[str, tuple[str, ...]], view: View) -> tuple[str, ...]:
    """Say who waits for whom: clients for answers, leaders for followers."""
    found = producer.waiting(view, constants.clients)
    for b in constants.brokers:
        for p in sorted(p for p in hosts if b in hosts[p] and METADATA.of(view, b).known[p].leader == b):
            state = REPLICA[p].of(view, b)
            behind = len(state.log) - state.high_watermark
            if behind:
                found.append(f"{b} leads {p} with {behind} records above its high watermark")
    return tuple(found)


MODELS = (
    ModelSpec(
        "cluster", "coordinators on a replicated transaction log: the whole stack on a faulty network", build, SIZES,
        SETTINGS, ("bag", "fifo"), may_fault=True,
    ),
)
