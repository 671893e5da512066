"""The models `exactly-once/*`: a version of the brokers each, with clients of any family that there is beside it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import attrs

from harness.model import Faults, Model, ModelSpec, Network, Refusal, Setting, Size, View
from kafka_proto import requests
from kafka_proto.broker import controller, ghosts, look_ups, messages, versions
from kafka_proto.broker import parts as broker_state
from kafka_proto.broker.composition import DISK
from kafka_proto.broker.coordinator import coordinator as role
from kafka_proto.broker.coordinator import role as transaction_coordinator
from kafka_proto.broker.coordinator import transaction_log
from kafka_proto.broker.coordinator.outcome import Answer, Outcome
from kafka_proto.broker.coordinator.producer_ids import Block, ProducerIds
from kafka_proto.broker.coordinator.transaction import CachedTransaction, TransactionMetadata
from kafka_proto.broker.group.coordinator import GroupCoordinator
from kafka_proto.broker.group.group_metadata import GroupMetadata
from kafka_proto.broker.group.membership import Group
from kafka_proto.broker.group.offsets import Committed, OffsetRecord, Offsets
from kafka_proto.broker.group.rebalance import ClassicGroup, Member
from kafka_proto.broker.group.role import GroupStored
from kafka_proto.broker.leader.state import Verification
from kafka_proto.broker.logs.local import Records
from kafka_proto.broker.placement import Placement
from kafka_proto.broker.state import Metadata
from kafka_proto.broker.versions import BrokerVersion
from kafka_proto.clients import administrator, application, client_connections, idempotent_client, reader
from kafka_proto.clients import transactional_client as client
from kafka_proto.clients.consumer import Consumer
from kafka_proto.clients.producer import FAMILIES, Batch, Call, Producer, idempotent
from kafka_proto.clients.producer.state import OffsetsToCommit
from kafka_proto.cluster import composition
from kafka_proto.cluster.epochs import used_up
from kafka_proto.cluster.logs import LocalLogs, ReplicatedLogs
from kafka_proto.cluster.properties import properties
from kafka_proto.cluster.topics import topics
from kafka_proto.log import PartitionLog, RecordBatch
from kafka_proto.log.chunks import Chunks
from kafka_proto.log.producer_state import ProducerState, RememberedBatch
from kafka_proto.log.transactions import AbortedTransaction, EndedTransaction, OpenTransaction
from kafka_proto.replication import messages as replication_messages
from kafka_proto.replication import quorum, replica_state
from kafka_proto.replication.known import LeaderAndEpoch
from kafka_proto.requests import IsolationLevel

SIZES = {
    "producers": Size(1, minimum=0, maximum=4, doc="transactional producers"),
    "idempotent-producers": Size(0, minimum=0, maximum=4, doc="producers that write without transactions"),
    "brokers": Size(2, maximum=5, doc="brokers: coordinators, and leaders of partitions"),
    "partitions": Size(2, maximum=4, doc="partitions of the topic"),
    "transactional-ids": Size(1, maximum=4, doc="transactional ids, which the producers have in turn"),
    "transactions": Size(2, maximum=9, doc="transactions that a producer begins"),
    "records": Size(2, maximum=9, doc="records that it writes in each, at most; or in all, without transactions"),
    "offsets": Size(0, minimum=0, maximum=9, doc="offsets that it commits with each, at most"),
    "in-flight": Size(1, maximum=5, doc="batches of a partition that may be under way"),
    "consumers": Size(0, minimum=0, maximum=4, doc="consumers of all partitions"),
    "replication-factor": Size(2, maximum=5, doc="replicas of each log with log=replicated, at most one per broker"),
    "min-insync-replicas": Size(1, maximum=5, doc="how large their ISR must be for a write"),
    "elections": Size(0, minimum=0, maximum=6, doc="spurious elections of their leaders (0: none)"),
    "deletions": Size(0, minimum=0, maximum=4, doc="times that records are deleted, up to a high watermark"),
    "epochs": Size(0, minimum=0, maximum=9, doc="epochs that the transactional ids have left (0: all 32,767)"),
}
TIMEOUTS = ("request", "delivery", "transaction")
LOGS = ("at-once", "later", "replicated")

TYPES: tuple[type, ...] = (
    *broker_state.TYPES, *replication_messages.OF_REPLICAS, *replica_state.TYPES, *quorum.TYPES, Metadata,
    LeaderAndEpoch, *controller.TYPES, Records, transaction_log.TransactionRecord,
    transaction_coordinator.EntryCallback, look_ups.Leaders, messages.MetadataRequest,
    messages.FindCoordinatorRequest, messages.LeaderResponse, messages.Request, messages.Response, messages.Asker,
    client_connections.ClientConnections, client_connections.Sent, client.ClientState, client.ApplicationCall,
    client.Written,
    idempotent_client.IdempotentState, idempotent_client.Placed, idempotent.IdempotentProducer,
    idempotent.IdempotentBatch, idempotent.Sequences,
    administrator.AdministratorState, reader.ReaderState, reader.Fetching, Consumer, Producer, Batch,
    Call, OffsetsToCommit, ghosts.Ghosts, ghosts.Cause, role.Coordinator, role.CoordinatorConfig, role.Waiting,
    role.Logged, role.Markers, Outcome, Answer, ProducerIds, Block, CachedTransaction, TransactionMetadata,
    PartitionLog, RecordBatch, Chunks, ProducerState,
    RememberedBatch, AbortedTransaction, EndedTransaction, OpenTransaction, Verification, GroupCoordinator, Group,
    ClassicGroup, Member, GroupMetadata, GroupStored,
    Offsets, Committed, OffsetRecord, requests.MemberIdentity,
    *(kind for name, kind in vars(requests).items() if name.endswith(("Request", "Response")) and attrs.has(kind)),
)


SETTINGS = {
    "timeouts": Setting(
        TIMEOUTS, "request", several=True,
        doc="what may time out: requests, the delivery of a batch, transactions at their coordinator",
    ),
    "log": Setting(
        LOGS, LOGS[0],
        doc="logs that one broker leads for good, where an entry of the transaction log is committed in the same turn "
        "or later; or replicated ones, whose leaders move",
    ),
    "disk": DISK,
    "election": Setting(
        ("clean", "elr"), "clean",
        doc="whom the controller may elect: the ISR; while it is too small also who left it last (KIP-966)",
    ),
    "isolation": Setting(
        tuple(level.value for level in IsolationLevel), IsolationLevel.READ_COMMITTED.value,
        doc="what consumers want to read",
    ),
}


def build(
    name: str, releases: Mapping[str, BrokerVersion], sizes: Mapping[str, int], settings: Mapping[str, str],
    network: Network, faults: Faults, history_variables: bool,
) -> Model:
    """Build the model of a release at a size. Raises Refusal where sizes or settings need a replicated log."""
    placement = Placement.of(sizes)
    timeouts = frozenset(settings["timeouts"].split(","))
    replicated = settings["log"] == "replicated"
    roles = {
        b: composition.roles_of(
            b, releases[settings["release"]], placement, times_out="transaction" in timeouts,
            begun=used_up(placement, sizes["epochs"]),
        )
        for b in placement.brokers
    }
    refuse(sizes, settings, replicated=replicated)
    compose = composition.with_replicated_logs if replicated else composition.with_local_logs
    processes, initial = compose(placement, roles, sizes, settings)
    clients = [
        client.TransactionalClient(
            c, FAMILIES[settings["client"]], placement, transactions=sizes["transactions"], records=sizes["records"],
            offsets=sizes["offsets"], in_flight=sizes["in-flight"], timeouts=timeouts, looks_up=replicated,
        )
        for c in placement.producers
    ]
    family = FAMILIES[settings["client"]]
    plain = [
        idempotent_client.IdempotentClient(
            i, family, placement, records=sizes["records"], in_flight=sizes["in-flight"], timeouts=timeouts,
            looks_up=replicated,
        )
        for i in placement.idempotent_producers
    ]
    admins = [administrator.Administrator(placement, sizes["deletions"])] if sizes["deletions"] else []
    readers = [reader.Reader(r, placement, IsolationLevel(settings["isolation"])) for r in placement.consumers]
    logs = ReplicatedLogs(composition.hosts_of(placement, sizes)) if replicated else LocalLogs(placement)
    return Model(
        name, (*clients, *plain, *processes, *readers, *admins), (initial,), network, faults,
        properties(placement, network, logs),
        history_variables=history_variables, sizes=sizes, settings=settings, types=TYPES,
        waits_for=partial(waits_for, placement), logs=partial(topics, placement, logs),
        application=application.TransactionalProducer,
    )


def refuse(sizes: Mapping[str, int], settings: Mapping[str, str], *, replicated: bool) -> None:
    """Raise Refusal where something is asked for that logs of the other kind have, or that nobody would do."""
    if replicated:
        asked = [name for name in ("deletions", "epochs") if sizes[name]]
        said = "replicated logs do not have that; leave it out, or log=replicated"
    else:
        asked = [name for name in ("disk", "election") if settings[name] != SETTINGS[name].default]
        asked += ["elections"] if sizes["elections"] else []
        said = "only replicated logs have that; set log=replicated too, or leave it out"
    if asked:
        raise Refusal(f"{', '.join(asked)}: {said}")
    if sizes["deletions"] and sizes["consumers"]:
        raise Refusal("deletions: a consumer here looks up no log's start; leave it out, or consumers")
    if not sizes["producers"] and not sizes["idempotent-producers"]:
        raise Refusal("producers: nobody writes; ask for some, or for idempotent-producers")


def waits_for(placement: Placement, view: View) -> tuple[str, ...]:
    """Say who waits for whom."""
    found = []
    for c in (*placement.producers, *placement.idempotent_producers):
        state: client.ClientState | idempotent_client.IdempotentState = view[c]
        asked = state.connections.asked.values()
        found += [f"{c} waits for {sent.dest} ({type(sent.request).__name__})" for sent in asked]
    return tuple(found)


def model(
    name: str, title: str, clients: tuple[str, ...], releases: Mapping[str, BrokerVersion], default: str = ""
) -> ModelSpec:
    """Return the model of a version with its releases; the first client is its default, and the first release too.

    Unless another default is named.
    """
    release = default or next(iter(releases))
    settings = {
        "client": Setting(clients, clients[0], doc="the family of the clients: which versions of requests they speak"),
        "release": Setting(tuple(releases), release, doc="the release of Kafka that the brokers are"),
        **SETTINGS,
    }
    return ModelSpec(
        f"exactly-once/{name}", title, partial(build, f"exactly-once/{name}", releases), SIZES, settings,
        ("connections", "bag"), may_fault=True,
    )


def recorded(level: int, *releases: str) -> dict[str, BrokerVersion]:
    """Return the versions that releases are at a level, by their first two numbers."""
    return {release.rpartition(".")[0]: versions.version_of(release, level) for release in releases}


MODELS = (
    model(
        "kip-98", "whole transactions with brokers as Kafka 1.0 to 2.3", ("aiokafka", "java23"),
        {"2.3": versions.KIP_98, "0.11": versions.KIP_98_0_11},
    ),
    model(
        "kip-360", "whole transactions with brokers as Kafka 2.5 to 3.5", ("java35", "rdkafka", "aiokafka"),
        recorded(0, "3.5.2"),
    ),
    model(
        "kip-890-part-1", "whole transactions with brokers as Kafka 3.6 to 3.9, or 4 at level 1",
        ("java39", "java35", "rdkafka", "aiokafka"),
        recorded(0, "3.6.2", "3.7.2", "3.8.1")
        | recorded(1, "3.9.2", "4.0.0", "4.1.1", "4.2.0", "4.3.1", "4.4.0"), "3.9",
    ),
    model(
        "kip-890", "whole transactions with brokers as Kafka 4", ("tv2", "java39", "java35", "rdkafka", "aiokafka"),
        recorded(2, "4.0.0", "4.1.1", "4.2.0", "4.3.1", "4.4.0"),
    ),
)
