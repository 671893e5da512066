"""Metadata, FindCoordinator, DescribeCluster, DescribeConfigs, CreateTopics, DeleteTopics: what there is and where."""

from __future__ import annotations

import re

import attrs

from harness.model import FrozenMap
from kafka_proto.gateway.apis.asking import NO_ERROR, answered
from kafka_proto.gateway.broker import MOST_PARTITIONS, Broker, Settings, Token, Turn, code, with_topic
from kafka_proto.gateway.codec import Fields
from kafka_proto.gateway.connection import Request
from kafka_proto.requests import GROUP_TOPIC, topic_of

LEGAL_NAME = re.compile(r"(?!\.{1,2}$)[a-zA-Z0-9._-]{1,249}")
DEFAULT_CONFIG, STATIC_BROKER_CONFIG = 5, 4
TOPIC, BROKER = 2, 4
"""Types of resources that have settings."""


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
    settings = broker.settings
    return answered(broker, token, {
        "brokers": (_address(settings),), "cluster_id": settings.cluster_id, "controller_id": settings.node_id,
        "topics": tuple(topics),
    })


def _address(settings: Settings) -> Fields:
    return {"node_id": settings.node_id, "host": settings.host, "port": settings.port}


def _topic(broker: Broker, name: str, may_create: bool) -> tuple[Broker, Fields]:
    error = NO_ERROR
    if not LEGAL_NAME.fullmatch(name):
        error = code("INVALID_TOPIC_EXCEPTION")
    elif name not in broker.topics:
        fits = len(broker.node.leaders) + broker.settings.num_partitions <= MOST_PARTITIONS
        if may_create and fits and name != GROUP_TOPIC:
            broker = with_topic(broker, name, broker.settings.num_partitions)
        else:
            error = code("UNKNOWN_TOPIC_OR_PARTITION")
    me = broker.settings.node_id
    partitions = tuple(
        {"partition_index": index, "leader_id": me, "leader_epoch": 0, "replica_nodes": (me,), "isr_nodes": (me,)}
        for index in range(broker.topics.get(name, 0)))
    return broker, {"name": name, "error_code": error, "partitions": partitions}


def find_coordinator(broker: Broker, request: Request, token: Token) -> Turn:
    """Say who coordinates groups and transactional ids: here this broker does; from version 4 on for several keys."""
    where = {**_address(broker.settings), "error_code": NO_ERROR}
    if request.version < 4:
        return answered(broker, token, where)
    keys = request.message["coordinator_keys"]
    return answered(broker, token, {"coordinators": tuple({"key": key, **where} for key in keys)})


def describe_cluster(broker: Broker, request: Request, token: Token) -> Turn:
    """Say which brokers there are."""
    settings = broker.settings
    me = {"broker_id": settings.node_id, "host": settings.host, "port": settings.port}
    return answered(broker, token, {"cluster_id": settings.cluster_id, "controller_id": settings.node_id,
                                    "brokers": (me,)})


def create_topics(broker: Broker, request: Request, token: Token) -> Turn:
    """Make topics of one replica. Settings of a topic are refused: there are none here."""
    results = []
    for topic in request.message["topics"]:
        partitions = topic["num_partitions"]
        if topic["assignments"]:
            partitions = len(topic["assignments"])
        elif partitions == -1:
            partitions = broker.settings.num_partitions
        error, reason = _refused(broker, topic, partitions)
        if error == "NONE" and not request.message["validate_only"]:
            broker = with_topic(broker, topic["name"], partitions)
        results.append({"name": topic["name"], "error_code": code(error), "error_message": reason,
                        "num_partitions": partitions if error == "NONE" else -1,
                        "replication_factor": 1 if error == "NONE" else -1})
    return answered(broker, token, {"topics": tuple(results)})


def _refused(broker: Broker, topic: Fields, partitions: int) -> tuple[str, str | None]:
    name = topic["name"]
    if not LEGAL_NAME.fullmatch(name):
        return "INVALID_TOPIC_EXCEPTION", f"{name!r} is no name of a topic"
    if name in broker.topics or name == GROUP_TOPIC:
        return "TOPIC_ALREADY_EXISTS", f"Topic '{name}' already exists."
    if partitions < 1 or len(broker.node.leaders) + partitions > MOST_PARTITIONS:
        return "INVALID_PARTITIONS", f"{partitions} partitions, where there may be {MOST_PARTITIONS} in all"
    if topic["replication_factor"] not in (-1, 1) or any(len(row["broker_ids"]) != 1 for row in topic["assignments"]):
        return "INVALID_REPLICATION_FACTOR", "there is one broker"
    if topic["configs"]:
        return "INVALID_CONFIG", "topics have no settings of their own here"
    return "NONE", None


def delete_topics(broker: Broker, request: Request, token: Token) -> Turn:
    """Delete topics with all that is in them."""
    results = []
    for name in request.message["topic_names"]:
        error = "NONE" if name in broker.topics else "UNKNOWN_TOPIC_OR_PARTITION"
        results.append({"name": name, "error_code": code(error)})
        if error == "NONE":
            leaders = FrozenMap((p, led) for p, led in broker.node.leaders.items() if topic_of(p) != name)
            node = attrs.evolve(broker.node, leaders=leaders)
            broker = attrs.evolve(broker, node=node, topics=broker.topics.without(name))
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
            known = {"cleanup.policy": "delete", "max.message.bytes": str(broker.settings.max_message_bytes),
                     "message.timestamp.type": "CreateTime", "min.insync.replicas": "1"}
        elif kind == BROKER and name == str(broker.settings.node_id):
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
