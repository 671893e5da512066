"""Metadata, FindCoordinator, DescribeCluster, DescribeConfigs, CreateTopics, DeleteTopics: what there is and where."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence

from kafka_proto.gateway.apis.asking import NO_ERROR, answered
from kafka_proto.gateway.broker import MOST_PARTITIONS, Broker, Token, Turn, code, with_topic, without_topic
from kafka_proto.gateway.codec import Fields
from kafka_proto.gateway.connection import Request
from kafka_proto.gateway.placement import coordinator_of, leader_of
from kafka_proto.requests import INTERNAL_TOPICS, partition_name

LEGAL_NAME = re.compile(r"(?!\.{1,2}$)[a-zA-Z0-9._-]{1,249}")
DEFAULT_CONFIG, STATIC_BROKER_CONFIG = 5, 4
GROUP, TRANSACTION = 0, 1
"""Types of keys that are coordinated. The next one is that of share groups, from version 6 on (KIP-932)."""
CLUSTER_TOPIC = "__cluster_metadata"
TOPIC, BROKER = 2, 4
"""Types of resources that have settings."""
TOPIC_SETTINGS = ("cleanup.policy", "max.message.bytes", "message.timestamp.type", "min.insync.replicas")
"""Those that topics have here; nobody can change them."""


def metadata(broker: Broker, request: Request, token: Token) -> Turn:
    """Say which topics there are; one that is asked for by name is made, where client and broker let it."""
    wanted = request.message["topics"]
    names = [topic["name"] for topic in wanted or ()]
    if wanted is None or (request.version == 0 and not names):
        names = list(broker.topics)
    topics = []
    may_create = request.message.get("allow_auto_topic_creation", True) and broker.settings.auto_create_topics_enable
    for name in names:
        broker, fields = _topic(broker, name, may_create)
        topics.append(fields)
    there = _there(broker)
    return answered(broker, token, {
        "brokers": tuple({"node_id": number, **_address(broker, number)} for number in there),
        "cluster_id": broker.settings.cluster_id, "controller_id": there[0], "topics": tuple(topics),
    })


def _there(broker: Broker) -> tuple[int, ...]:
    """Return the brokers that can be asked; where none can, all of them."""
    ids = broker.settings.brokers
    return tuple(number for number in ids if number not in broker.absent) or ids


def _address(broker: Broker, number: int) -> Fields:
    return {"host": broker.settings.host, "port": broker.settings.ports[number - 1]}


def _topic(broker: Broker, name: str, may_create: bool) -> tuple[Broker, Fields]:
    error = NO_ERROR
    if not LEGAL_NAME.fullmatch(name):
        error = code("INVALID_TOPIC_EXCEPTION")
    elif name not in broker.topics:
        fits = name != CLUSTER_TOPIC and len(broker.node.leaders) + broker.settings.num_partitions <= MOST_PARTITIONS
        if may_create and fits and name not in INTERNAL_TOPICS and _alike(broker, name) is None:
            broker = with_topic(broker, name, broker.settings.num_partitions)
        else:
            error = code("UNKNOWN_TOPIC_OR_PARTITION")
    partitions = tuple(_partition(broker, name, index) for index in range(broker.topics.get(name, 0)))
    return broker, {"name": name, "error_code": error, "partitions": partitions}


def _partition(broker: Broker, topic: str, index: int) -> Fields:
    return {"partition_index": index, "leader_id": leader_of(broker, partition_name(topic, index)),
            "leader_epoch": broker.leader_epoch, "replica_nodes": broker.settings.brokers,
            "isr_nodes": _there(broker)}


def find_coordinator(broker: Broker, request: Request, token: Token) -> Turn:
    """Say who coordinates a group or a transactional id; from version 4 on for several keys."""
    message = request.message
    kind = message.get("key_type", GROUP)
    if request.version < 4:
        return answered(broker, token, _coordinator(broker, message["key"], kind))
    found = tuple({"key": key, **_coordinator(broker, key, kind)} for key in message["coordinator_keys"])
    return answered(broker, token, {"coordinators": found})


def _coordinator(broker: Broker, key: str, kind: int) -> Fields:
    if kind not in (GROUP, TRANSACTION):
        return {"node_id": -1, "host": "", "port": -1, "error_code": code("INVALID_REQUEST")}
    number = coordinator_of(broker, key)
    return {"node_id": number, **_address(broker, number), "error_code": NO_ERROR}


def describe_cluster(broker: Broker, request: Request, token: Token) -> Turn:
    """Say which brokers there are."""
    there = _there(broker)
    return answered(broker, token, {
        "cluster_id": broker.settings.cluster_id, "controller_id": there[0],
        "brokers": tuple({"broker_id": number, **_address(broker, number)} for number in there)})


def create_topics(broker: Broker, request: Request, token: Token) -> Turn:
    """Make topics, replicated at once to every broker. Settings of a topic are refused: there are none here."""
    before, results = broker, []
    asked = request.message["topics"]
    names = Counter(topic["name"] for topic in asked)
    settings = tuple({"name": name, "value": value, "read_only": False, "config_source": DEFAULT_CONFIG}
                     for name, value in _topic_settings(broker).items())
    for topic in {topic["name"]: topic for topic in asked}.values():
        partitions = len(topic["assignments"]) or topic["num_partitions"]
        if partitions == -1:
            partitions = broker.settings.num_partitions
        error, reason = _refused(before, topic, partitions, MOST_PARTITIONS - len(broker.node.leaders))
        if names[topic["name"]] > 1:
            error, reason = "INVALID_REQUEST", "Duplicate topic name."
        if error != "NONE":
            results.append({"name": topic["name"], "error_code": code(error), "error_message": reason,
                            "num_partitions": -1, "replication_factor": -1, "configs": ()})
            continue
        if not request.message["validate_only"]:
            broker = with_topic(broker, topic["name"], partitions)
        results.append({"name": topic["name"], "error_code": NO_ERROR, "num_partitions": partitions,
                        "replication_factor": len(broker.settings.ports), "configs": settings})
    return answered(broker, token, {"topics": tuple(results)})


def _refused(broker: Broker, topic: Fields, partitions: int, room: int) -> tuple[str, str | None]:
    """Say why a topic is not made; checks stand in Kafka's order (`ReplicationControlManager.createTopics`).

    Names are compared with topics that were there before the request; there is room for so many partitions.
    """
    name, factor = topic["name"], topic["replication_factor"]
    brokers = broker.settings.brokers
    if name == CLUSTER_TOPIC:
        return "INVALID_REQUEST", f"{name} is the brokers' own"
    if not LEGAL_NAME.fullmatch(name):
        return "INVALID_TOPIC_EXCEPTION", f"{name!r} is no name of a topic"
    if name in broker.topics or name in INTERNAL_TOPICS:
        return "TOPIC_ALREADY_EXISTS", f"Topic '{name}' already exists."
    if (other := _alike(broker, name)) is not None:
        return "INVALID_TOPIC_EXCEPTION", f"Topic '{name}' collides with existing topic: {other}"
    if topic["configs"]:
        return "INVALID_CONFIG", "topics have no settings of their own here"
    if topic["assignments"]:
        if factor != -1 or topic["num_partitions"] != -1:
            return "INVALID_REQUEST", "replicas are assigned: their factor and the number of partitions have to be -1"
        if (reason := _misassigned(topic["assignments"], brokers)) is not None:
            return "INVALID_REPLICA_ASSIGNMENT", reason
    elif factor < -1 or factor == 0:
        return "INVALID_REPLICATION_FACTOR", f"{factor} replicas, where -1 means as many as there are"
    if not 1 <= partitions <= room:
        return "INVALID_PARTITIONS", f"{partitions} partitions, where there may be {MOST_PARTITIONS} in all"
    if factor > len(brokers):
        return "INVALID_REPLICATION_FACTOR", f"{factor} replicas, and the brokers {', '.join(map(str, brokers))}"
    return "NONE", None


def _alike(broker: Broker, name: str) -> str | None:
    """Return a topic whose name differs in `.` and `_` only: metrics would not tell them apart (`Topic.hasCollision`).
    """
    return next((other for other in broker.topics if other.replace(".", "_") == name.replace(".", "_")), None)


def _misassigned(assignments: Sequence[Fields], brokers: Collection[int]) -> str | None:
    """Return what is wrong with an assignment of replicas to partitions."""
    replicas = [row["broker_ids"] for row in assignments]
    if any(not ids or len({*ids}) < len(ids) or not {*ids} <= {*brokers} for ids in replicas):
        return f"each partition has to have different ones of the brokers {', '.join(map(str, brokers))}"
    if len({len(ids) for ids in replicas}) > 1:
        return "all partitions have to have as many replicas"
    if sorted(row["partition_index"] for row in assignments) != list(range(len(assignments))):
        return "partitions have to be numbered from 0, without gaps"
    return None


def _topic_settings(broker: Broker) -> dict[str, str]:
    values = "delete", str(broker.settings.max_message_bytes), "CreateTime", "1"
    return dict(zip(TOPIC_SETTINGS, values, strict=True))


def delete_topics(broker: Broker, request: Request, token: Token) -> Turn:
    """Delete topics with all that is in them, and what groups have committed of them."""
    results = []
    for name, times in Counter(request.message["topic_names"]).items():
        error = "NONE" if name in broker.topics else "UNKNOWN_TOPIC_OR_PARTITION"
        if times > 1:
            error = "INVALID_REQUEST"
        results.append({"name": name, "error_code": code(error)})
        if error == "NONE":
            broker = without_topic(broker, name)
    return answered(broker, token, {"responses": tuple(results)})


def describe_configs(broker: Broker, request: Request, token: Token) -> Turn:
    """Say the settings of topics and of the broker that mean something here."""
    results = []
    for resource in request.message["resources"]:
        kind, name = resource["resource_type"], resource["resource_name"]
        known: dict[str, str] = {}
        error = "NONE"
        if kind == TOPIC:
            error = "NONE" if name in broker.topics else "UNKNOWN_TOPIC_OR_PARTITION"
            known = _topic_settings(broker)
        elif kind == BROKER and name in map(str, broker.settings.brokers):
            known = {"auto.create.topics.enable": str(broker.settings.auto_create_topics_enable).lower(),
                     "group.initial.rebalance.delay.ms": "0", "num.partitions": str(broker.settings.num_partitions),
                     "transaction.max.timeout.ms": str(broker.node.coordinator.config.transaction_max_timeout_ms)}
        else:
            error = "INVALID_REQUEST"
        keys = resource["configuration_keys"]
        source = DEFAULT_CONFIG if kind == TOPIC else STATIC_BROKER_CONFIG
        rows = tuple({"name": key, "value": value, "read_only": True, "config_source": source}
                     for key, value in known.items() if error == "NONE" and (keys is None or key in keys))
        results.append({"error_code": code(error), "resource_type": kind, "resource_name": name, "configs": rows})
    return answered(broker, token, {"results": tuple(results)})
