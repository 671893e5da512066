"""The models `kafka/*`: a release of the brokers each, with clients of any family."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from importlib import import_module
from pkgutil import walk_packages
from types import ModuleType
from typing import Any

import attrs

from harness.model import (
    Actor,
    Faults,
    FrozenMap,
    Link,
    Model,
    ModelSpec,
    Network,
    Property,
    Refusal,
    Setting,
    Size,
    View,
)
from kafka_proto import broker, clients, log, requests
from kafka_proto.broker import versions
from kafka_proto.broker.broker import Broker
from kafka_proto.broker.changes import CHANGES, BrokerChange
from kafka_proto.broker.controller import ClusterController
from kafka_proto.broker.parts import LeaderAndEpoch, Records
from kafka_proto.broker.placement import Placement
from kafka_proto.broker.versions import BrokerVersion
from kafka_proto.clients import administrator, application, consumer
from kafka_proto.clients.producer import FAMILIES, PROPOSED, Family
from kafka_proto.clients.producer_client import ClientState, ProducerClient
from kafka_proto.cluster import composition, replicas
from kafka_proto.cluster.client_view import TransactionsView
from kafka_proto.cluster.logs import LocalLogs, Logs, ReplicatedLogs
from kafka_proto.cluster.properties import NOT_CLAIMED, properties
from kafka_proto.cluster.refinement import refinement
from kafka_proto.cluster.topics import topics
from kafka_proto.log import RecordBatch
from kafka_proto.replication import messages as replication_messages
from kafka_proto.replication import quorum, replica_state
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


def classes_of(*packages: ModuleType) -> Iterator[type]:
    """Yield the attrs classes that are written in the modules of some packages, but for those that hold functions."""
    for package in packages:
        inner = (found.name for found in walk_packages(package.__path__, f"{package.__name__}."))
        for module in (package, *map(import_module, inner)):
            yield from (kind for kind in vars(module).values() if isinstance(kind, type) and attrs.has(kind)
                        and kind.__module__ == module.__name__ and "Callable" not in str(kind.__annotations__))


TYPES: tuple[type, ...] = (
    *replication_messages.OF_REPLICAS, *replica_state.TYPES, *quorum.TYPES, LeaderAndEpoch,
    *classes_of(broker, clients, log, requests),
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
    "disk": composition.DISK,
    "election": Setting(
        ("clean", "elr", "unclean"), "clean",
        doc="whom the controller may elect: the ISR; while it is too small also who left it last (KIP-966); anybody",
    ),
    "isolation": Setting(
        tuple(level.value for level in IsolationLevel), IsolationLevel.READ_COMMITTED.value,
        doc="what consumers want to read",
    ),
}


Settings = Mapping[str, str]
Beside = tuple[tuple[Actor[Any], ...], tuple[Link, ...]]
"""Other processes, and the links to them, if these are not like all others."""


def nothing_beside(addresses: tuple[str, ...], clients: tuple[str, ...], settings: Settings) -> Beside:
    return (), ()


def nothing_held(placement: Placement, sizes: Mapping[str, int]) -> Mapping[str, tuple[RecordBatch, ...]]:
    return FrozenMap()


def nothing_more(placement: Placement, network: Network, logs: Logs) -> tuple[Property, ...]:
    return ()


@attrs.frozen
class Applications:
    """Who uses the brokers of a model, and what of that is its own."""

    families: Mapping[str, Family]
    """By the values of the setting `client`."""
    client: Callable[..., ProducerClient] = ProducerClient
    beside: Callable[[tuple[str, ...], tuple[str, ...], Settings], Beside] = nothing_beside
    """Given the addresses of all others, and the producers'."""
    properties: Callable[[Placement, Network, Logs], tuple[Property, ...]] = nothing_more
    changes: Mapping[str, BrokerChange] = CHANGES
    """By the values of the setting `change`."""
    not_claimed: tuple[str, ...] = NOT_CLAIMED
    """Properties that a search leaves out if it is not asked for them."""
    is_released: bool = True
    """Whether coordinators are checked against diary 02, and applications are written in Python."""
    held: Callable[[Placement, Mapping[str, int]], Mapping[str, tuple[RecordBatch, ...]]] = nothing_held
    """What partitions hold at the start, if logs are not replicated."""


RELEASED = Applications(FAMILIES)


def build(
    name: str, levels: Mapping[str, BrokerVersion], users: Applications, sizes: Mapping[str, int],
    settings: Settings, network: Network, faults: Faults, history_variables: bool,
) -> Model:
    """Build the model of a release at a size. Raises Refusal if sizes or settings do not go together.

    `levels` are the versions that it is by the level of `transaction.version`.
    """
    level, family = settings.get(LEVEL, OLDER), users.families[settings["client"]]
    if level == "1" and family.ends_with_new_epoch:
        raise Refusal(f"client={family.name} speaks to {LEVEL}=2; ask for java39, java35, rdkafka or aiokafka")
    version, change = levels[level], settings["change"]
    if change in users.changes:
        version = users.changes[change].of(version, change)
    else:
        settings = {name: value for name, value in settings.items() if name != "change"}
    placement = Placement.of(sizes)
    timeouts = frozenset(settings["timeouts"].split(","))
    replicated = settings["log"] == "replicated"
    begun = composition.used_up(placement, sizes["epochs"])
    roles = {
        b: composition.roles_of(b, version, placement, times_out="transaction" in timeouts, begun=begun)
        for b in placement.brokers
    }
    refuse(sizes, settings, replicated=replicated)
    rules: composition.Rules | None = None
    if replicated and users.held is not nothing_held:
        raise Refusal("log: replicated logs are empty at the start, and there is nothing to process; leave log out")
    if replicated:
        hosts, least = composition.hosts_of(placement, sizes), sizes["min-insync-replicas"]
        rules = composition.rules_of(hosts, dict.fromkeys(hosts, least), settings)
        controller = ClusterController(hosts, tuple(roles), sizes["elections"], settings["election"], least)
        processes, states = composition.with_replicated_logs(roles, rules, controller, settings, begun=begun)
    else:
        leaders = {p: placement.leader(p) for p in placement.all_partitions}
        later = frozenset(placement.transaction_partitions if settings["log"] == "later" else ())
        written = {**begun, **users.held(placement, sizes)}
        held = {p: Records(records) for p, records in written.items()}
        processes, states = composition.with_local_logs(roles, leaders, held, later)
    initial = {slot: value for b in processes if isinstance(b, Broker)
               for slot, value in composition.on_disk(b, states[b.name]).items()}
    writers = [users.client(name, family, placement, sizes, timeouts, looks_up=replicated)
               for name in (*placement.producers, *placement.idempotent_producers)]
    admins = [administrator.Administrator(placement, sizes["deletions"])] if sizes["deletions"] else []
    readers = [consumer.Reader(r, placement, IsolationLevel(settings["isolation"])) for r in placement.consumers]
    logs: Logs = LocalLogs(placement)
    if rules is not None:
        logs = ReplicatedLogs({p: tuple(hosts) for p, hosts in rules.items()})
    keeps_records = settings["disk"] == "flushed" and settings["election"] != "unclean"
    of_replicas = () if rules is None else replicas.properties(placement, rules, keeps_records=keeps_records)
    judged = (*properties(placement, network, logs, family, commits_later=settings["log"] != LOGS[0]),
              *users.properties(placement, network, logs), *of_replicas)
    all_processes: tuple[Actor[Any], ...] = (*writers, *processes, *readers, *admins)
    beside, links = users.beside(tuple(one.name for one in all_processes), placement.producers, settings)
    return Model(
        name, (*all_processes, *beside), (initial,), network, faults, judged, links=links,
        claimed=tuple(p.name for p in judged if (p.is_safety or p.is_temporal) and p.name not in users.not_claimed),
        history_variables=history_variables, sizes=sizes, settings=settings, types=TYPES,
        waits_for=partial(waits_for, placement), logs=partial(topics, placement, logs),
        application=application.TransactionalProducer if users.is_released else None,
        refinement=partial(refinement, levels[level].name, placement, logs, initial, change=change)
        if users.is_released else None,
        client_view=None if sizes["deletions"] else lambda: TransactionsView(placement, logs, settings["isolation"]),
    )


def refuse(sizes: Mapping[str, int], settings: Settings, *, replicated: bool) -> None:
    """Raise Refusal for an option that logs of the other kind have, or that makes no sense."""
    if replicated:
        asked = ["deletions"] if sizes["deletions"] else []
        said = "replicated logs do not have that; leave it out, or log=replicated"
    else:
        asked = [name for name in ("disk", "election") if settings[name] != SETTINGS[name].default]
        asked += ["elections"] if sizes["elections"] else []
        said = "only replicated logs have that; set log=replicated too, or leave it out"
    if asked:
        raise Refusal(f"{', '.join(asked)}: {said}")
    if sizes["deletions"] and sizes["consumers"]:
        raise Refusal("deletions: consumers do not look up a log's start; leave out deletions or consumers")
    if not sizes["producers"] and not sizes["idempotent-producers"]:
        raise Refusal("producers: nobody writes; set producers or idempotent-producers")


def waits_for(placement: Placement, view: View) -> tuple[str, ...]:
    """Say which actors wait for which."""
    found = []
    for c in (*placement.producers, *placement.idempotent_producers):
        state: ClientState = view[c]
        asked = state.connections.asked.values()
        found += [f"{c} waits for {sent.dest} ({type(sent.request).__name__})" for sent in asked]
    return tuple(found)


def changed_by(changes: Mapping[str, BrokerChange]) -> Setting:
    """Return the setting that builds one of these into the brokers."""
    said = "; ".join(f"{name}, {change.title}" for name, change in changes.items())
    return Setting(("none", *changes), "none", doc=f"what the brokers do otherwise than the release: {said}")


def model(
    release: str, kips: str, clients: tuple[str, ...], levels: Mapping[str, BrokerVersion],
    users: Applications = RELEASED, more: Mapping[str, Setting] = FrozenMap(),
) -> ModelSpec:
    """Return the model of a release; the first client is its default, and the first level of `transaction.version`."""
    name = f"kafka/{release}"
    settings = {"client": Setting(clients, clients[0], doc="the clients: which versions of requests they speak")}
    if len(levels) > 1:
        settings[LEVEL] = Setting(tuple(levels), next(iter(levels)), doc="the level of this feature of the cluster")
    return ModelSpec(
        name, f"whole transactions with brokers as Kafka {release} ({kips})", partial(build, name, levels, users),
        SIZES, {**settings, **SETTINGS, "change": changed_by(users.changes), **more}, ("connections", "bag"),
        may_fault=True,
    )


def recorded(release: str) -> dict[str, BrokerVersion]:
    """Return the versions that a release is at levels 2 and 1, as real brokers were recorded; up to 3.9 it is one."""
    (at,) = (levels for name, levels in versions.RELEASES.items() if name.startswith(f"{release}."))
    return {"2": at[2], "1": at[1]} if len(at) > 2 else {OLDER: at[0]}


LEVEL = "transaction-version"
OLDER = ""
"""The level of releases that have none which matters."""
UP_TO_35 = ("java35", "rdkafka", *(family.name for family in PROPOSED), "aiokafka")
UP_TO_39 = ("java39", *UP_TO_35)
UP_TO_4 = ("tv2", *UP_TO_39)
MODELS = (
    model("0.11", "KIP-98", ("aiokafka", "java23"), {OLDER: versions.KIP_98_0_11}),
    model("2.3", "KIP-98, as from 1.0 on", ("aiokafka", "java23"), {OLDER: versions.KIP_98}),
    model("3.5", "KIP-360, as from 2.5 on", UP_TO_35, recorded("3.5")),
    model("3.6", "KIP-890 part 1", UP_TO_39, recorded("3.6")),
    model("3.7", "KIP-890 part 1", UP_TO_39, recorded("3.7")),
    model("3.8", "KIP-890 part 1", UP_TO_39, recorded("3.8")),
    model("3.9", "KIP-890 part 1", UP_TO_39, recorded("3.9")),
    model("4.0", "KIP-890", UP_TO_4, recorded("4.0")),
    model("4.1", "KIP-890", UP_TO_4, recorded("4.1")),
    model("4.2", "KIP-890, KIP-1228", UP_TO_4, recorded("4.2")),
    model("4.3", "KIP-890, KIP-1228", UP_TO_4, recorded("4.3")),
    model("4.4", "KIP-890, KIP-1228", UP_TO_4, recorded("4.4")),
)
