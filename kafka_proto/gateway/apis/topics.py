"""Metadata, FindCoordinator, DescribeCluster, DescribeQuorum, CreateTopics, DeleteTopics."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence

from kafka_proto.gateway import configs
from kafka_proto.gateway.apis.settings import described
from kafka_proto.gateway.codec import NO_ID, Fields
from kafka_proto.gateway.connection import WireRequest
from kafka_proto.gateway.context import MOST_PARTITIONS, NO_ERROR, AskedBroker, at_once, code, number_of
from kafka_proto.requests import INTERNAL_TOPICS, OFFSETS_PARTITION, partition_name

LEGAL_NAME = re.compile(r"(?!\.{1,2}$)[a-zA-Z0-9._-]{1,249}")
FROM_IDS = 12
"""The first version of Metadata in which topics are asked for by id."""
MOST_DESCRIBED = 2_000
"""Kafka's `max.request.partition.size.limit`."""
GROUP, TRANSACTION = 0, 1
"""Types of keys that are coordinated. The next one is that of share groups, from version 6 on (KIP-932)."""
CLUSTER_TOPIC = "__cluster_metadata"


@at_once
def metadata(here: AskedBroker, request: WireRequest) -> Fields:
    """Say which topics there are; a topic that is asked for by name is made, if client and broker allow it.

    Where one is asked for by its id, those that are asked for by name are not looked at (`KafkaApis`).
    """
    wanted = request.message["topics"]
    names, unknown = [topic["name"] for topic in wanted or ()], []
    if ids := [topic["topic_id"] for topic in wanted or () if topic.get("topic_id", NO_ID) != NO_ID]:
        names = [here.cluster.topic_names[topic_id] for topic_id in ids if topic_id in here.cluster.topic_names]
        unknown = [topic_id for topic_id in ids if topic_id not in here.cluster.topic_names]
    if request.version < FROM_IDS and (ids or None in names):  # topics go by name
        return {"topics": tuple({**topic, "name": topic["name"] or "", "error_code": code("INVALID_REQUEST")}
                                for topic in wanted)}
    if wanted is None or (request.version == 0 and not names):
        names = [*here.cluster.topics, *here.cluster.internal]
    may_create = request.message.get("allow_auto_topic_creation", True) and here.settings.auto_create_topics_enable
    return {
        "brokers": tuple({"node_id": number, **here.address(number)} for number in here.there),
        "topics": (*({"name": None, "topic_id": topic_id, "error_code": code("UNKNOWN_TOPIC_ID")}
                     for topic_id in unknown), *(_topic(here, name, may_create) for name in names)),
        "cluster_id": here.settings.cluster_id, "controller_id": here.controller,
    }


def _topic(here: AskedBroker, name: str, may_create: bool) -> Fields:
    error, count, is_internal = NO_ERROR, 0, name in INTERNAL_TOPICS
    if is_internal:
        count = here.cluster.internal.get(name, 0)
        error = NO_ERROR if count else code("UNKNOWN_TOPIC_OR_PARTITION")
    elif not LEGAL_NAME.fullmatch(name):
        error = code("INVALID_TOPIC_EXCEPTION")
    elif name not in here.cluster.topics:
        fits = name != CLUSTER_TOPIC and here.settings.num_partitions <= room(here)
        if may_create and fits and _alike(here.cluster.topics, name) is None:
            here.cluster.create_topic(name, here.settings.num_partitions)
        else:
            error = code("UNKNOWN_TOPIC_OR_PARTITION")
    partitions = tuple(_partition(here, name, index) for index in range(count or here.partitions(name)))
    topic_id = NO_ID if error else here.cluster.topic_ids.get(name, NO_ID)
    return {"name": name, "topic_id": topic_id, "error_code": error, "is_internal": is_internal,
            "partitions": partitions}


def room(here: AskedBroker) -> int:
    """Return how many partitions may still be made."""
    return MOST_PARTITIONS - len(here.cluster.placement.partitions) - 1


def _partition(here: AskedBroker, topic: str, index: int) -> Fields:
    p = partition_name(topic, index)
    replicas, leader = here.cluster.replicas(p), here.leader(p)
    return {"partition_index": index, "leader_id": leader,
            "error_code": NO_ERROR if leader >= 0 else code("LEADER_NOT_AVAILABLE"),
            "leader_epoch": here.cluster.known(here.name, p).leader_epoch,
            "replica_nodes": tuple(map(number_of, replicas)),
            "isr_nodes": tuple(map(number_of, here.cluster.in_sync(p))),
            "offline_replicas": tuple(number_of(b) for b in replicas if b in here.cluster.fenced)}


@at_once
def describe_topic_partitions(here: AskedBroker, request: WireRequest) -> Fields:
    """Describe topics, at most so many of their partitions, and say where to go on (KIP-966)."""
    message, cursor = request.message, request.message["cursor"]
    names = sorted({topic["name"] for topic in message["topics"]} or {*here.cluster.topics, *here.cluster.internal})
    begin, first = (cursor["topic_name"], cursor["partition_index"]) if cursor else ("", 0)
    if first < 0 or (message["topics"] and begin and begin not in names):
        return {"topics": tuple({**topic, "error_code": code("INVALID_REQUEST")} for topic in message["topics"])}
    rows: list[Fields] = []
    left = max(1, min(message["response_partition_limit"], MOST_DESCRIBED))
    for name in (each for each in names if each >= begin):
        if left == 0:
            return {"topics": tuple(rows), "next_cursor": {"topic_name": name, "partition_index": 0}}
        row, start = _topic(here, name, may_create=False), first if name == begin else 0
        shown = tuple({**partition, **_eligible(here, partition_name(name, partition["partition_index"]))}
                      for partition in row["partitions"][start : start + left])
        rows.append({**row, "partitions": shown})
        left -= len(shown)
        if start + len(shown) < len(row["partitions"]):
            return {"topics": tuple(rows), "next_cursor": {"topic_name": name, "partition_index": start + len(shown)}}
    return {"topics": tuple(rows), "next_cursor": None}


def _eligible(here: AskedBroker, p: str) -> Fields:
    last = here.cluster.told(p).last_known if here.cluster.is_replicated else None
    return {"eligible_leader_replicas": tuple(map(number_of, here.cluster.eligible(p))),
            "last_known_elr": () if last is None else (number_of(last),)}


@at_once
def find_coordinator(here: AskedBroker, request: WireRequest) -> Fields:
    """Return the coordinator of a group or a transactional id; from version 4 on for several keys."""
    message = request.message
    kind = message.get("key_type", GROUP)
    if request.version < 4:
        return _coordinator(here, message["key"], kind)
    return {"coordinators": tuple({"key": key, **_coordinator(here, key, kind)} for key in message["coordinator_keys"])}


def _coordinator(here: AskedBroker, key: str, kind: int) -> Fields:
    if kind not in (GROUP, TRANSACTION):
        return {"node_id": -1, "host": "", "port": -1, "error_code": code("INVALID_REQUEST")}
    number = here.leader(OFFSETS_PARTITION if kind == GROUP else here.cluster.placement.transaction_partition(key))
    if number < 0:
        return {"node_id": -1, "host": "", "port": -1, "error_code": code("COORDINATOR_NOT_AVAILABLE")}
    return {"node_id": number, **here.address(number), "error_code": NO_ERROR}


@at_once
def describe_cluster(here: AskedBroker, request: WireRequest) -> Fields:
    """List the brokers."""
    return {
        "cluster_id": here.settings.cluster_id, "controller_id": here.controller,
        "brokers": tuple({"broker_id": number, **here.address(number)} for number in here.there)}


@at_once
def describe_quorum(here: AskedBroker, request: WireRequest) -> Fields:
    """Say who votes about the cluster's metadata: one controller, whose log is not kept: it ends at 0."""
    leader, *others = here.there
    row = {"partition_index": 0, "error_code": NO_ERROR, "leader_id": leader, "leader_epoch": 1, "high_watermark": 0,
           "current_voters": (_replica_state(leader),), "observers": tuple(map(_replica_state, others))}
    topics = tuple({**topic, "partitions": tuple(
        row if (topic["topic_name"], wanted["partition_index"]) == (CLUSTER_TOPIC, 0)
        else {**wanted, "error_code": code("UNKNOWN_TOPIC_OR_PARTITION")} for wanted in topic["partitions"])}
        for topic in request.message["topics"])
    return {"error_code": NO_ERROR, "topics": topics, "nodes": tuple(
        {"node_id": number, "listeners": ({"name": "PLAINTEXT", **here.address(number)},)} for number in here.there)}


def _replica_state(number: int) -> Fields:
    return {"replica_id": number, "replica_directory_id": NO_ID, "log_end_offset": 0}


@at_once
def create_topics(here: AskedBroker, request: WireRequest) -> Fields:
    """Make topics, with settings of their own."""
    before, results = frozenset(here.cluster.topics), []
    asked = request.message["topics"]
    names = Counter(topic["name"] for topic in asked)
    for topic in {topic["name"]: topic for topic in asked}.values():
        partitions = len(topic["assignments"]) or topic["num_partitions"]
        if partitions == -1:
            partitions = here.settings.num_partitions
        error, reason = _refused(here, before, topic, partitions)
        if names[topic["name"]] > 1:
            error, reason = "INVALID_REQUEST", "Duplicate topic name."
        if error != "NONE":
            results.append({"name": topic["name"], "error_code": code(error), "error_message": reason,
                            "num_partitions": -1, "replication_factor": -1, "configs": ()})
            continue
        own = {row["name"]: row["value"] for row in topic["configs"]}
        if not request.message["validate_only"]:
            here.cluster.create_topic(topic["name"], partitions, _assigned(topic), topic["replication_factor"],
                                      configs.rules_of(here.settings, own), own)
        results.append({"name": topic["name"], "topic_id": here.cluster.topic_ids.get(topic["name"], NO_ID),
                        "error_code": NO_ERROR, "num_partitions": partitions, "configs": tuple(described(here, own)),
                        "replication_factor": _factor(here, topic)})
    return {"topics": tuple(results)}


def _assigned(topic: Fields) -> dict[int, tuple[str, ...]]:
    """Return the brokers that a client assigned to partitions, by number."""
    return {row["partition_index"]: tuple(f"b{number}" for number in row["broker_ids"]) for row in topic["assignments"]}


def _factor(here: AskedBroker, topic: Fields) -> int:
    """Return how many replicas each partition of a topic has."""
    if topic["assignments"]:
        return len(topic["assignments"][0]["broker_ids"])
    return here.cluster.factor if topic["replication_factor"] == -1 else int(topic["replication_factor"])


def _refused(here: AskedBroker, before: Collection[str], topic: Fields, partitions: int) -> tuple[str, str | None]:
    """Say why a topic is not made; checks stand in Kafka's order (`ReplicationControlManager.createTopics`).

    Names are compared with topics that were there before the request.
    """
    name, factor = topic["name"], topic["replication_factor"]
    brokers = here.settings.brokers
    if name == CLUSTER_TOPIC:
        return "INVALID_REQUEST", f"{name} is the brokers' own"
    if not LEGAL_NAME.fullmatch(name):
        return "INVALID_TOPIC_EXCEPTION", f"{name!r} is no name of a topic"
    if name in before or name in INTERNAL_TOPICS:
        return "TOPIC_ALREADY_EXISTS", f"Topic '{name}' already exists."
    if (other := _alike(before, name)) is not None:
        return "INVALID_TOPIC_EXCEPTION", f"Topic '{name}' collides with existing topic: {other}"
    for row in topic["configs"]:
        if (reason := configs.wrong(row["name"], row["value"])) is not None:
            return "INVALID_CONFIG", reason
    if topic["assignments"]:
        if factor != -1 or topic["num_partitions"] != -1:
            return "INVALID_REQUEST", "replicas are assigned: their factor and the number of partitions have to be -1"
        if (reason := misassigned(topic["assignments"], brokers)) is not None:
            return "INVALID_REPLICA_ASSIGNMENT", reason
    elif factor < -1 or factor == 0:
        return "INVALID_REPLICATION_FACTOR", f"{factor} replicas, where -1 means as many as there are"
    if not 1 <= partitions <= room(here):
        return "INVALID_PARTITIONS", f"{partitions} partitions, where there may be {MOST_PARTITIONS} in all"
    if factor > len(brokers):
        return "INVALID_REPLICATION_FACTOR", f"{factor} replicas, and the brokers {', '.join(map(str, brokers))}"
    return "NONE", None


def _alike(topics: Iterable[str], name: str) -> str | None:
    """Return a topic whose name differs in `.` and `_` only: metrics would not tell them apart (`Topic.hasCollision`).
    """
    return next((other for other in topics if other.replace(".", "_") == name.replace(".", "_")), None)


def misassigned(assignments: Sequence[Fields], brokers: Collection[int]) -> str | None:
    """Return what is wrong with an assignment of replicas to partitions."""
    replicas = [row["broker_ids"] for row in assignments]
    if any(not ids or len({*ids}) < len(ids) or not {*ids} <= {*brokers} for ids in replicas):
        return f"each partition has to have different ones of the brokers {', '.join(map(str, brokers))}"
    if len({len(ids) for ids in replicas}) > 1:
        return "all partitions have to have as many replicas"
    if sorted(row["partition_index"] for row in assignments) != list(range(len(assignments))):
        return "partitions have to be numbered from 0, without gaps"
    return None


@at_once
def delete_topics(here: AskedBroker, request: WireRequest) -> Fields:
    """Delete topics with all their records, and what groups have committed of them; from version 6 on by id, too."""
    message, results = request.message, []
    rows = message["topics"] if request.version >= 6 else [{"name": name} for name in message["topic_names"]]
    for (name, topic_id), times in Counter((row["name"], row.get("topic_id", NO_ID)) for row in rows).items():
        known: str = here.cluster.topic_names.get(topic_id, "") if name is None else name
        error = "NONE"
        if times > 1 or (name is None) == (topic_id == NO_ID):
            error = "INVALID_REQUEST"
        elif known not in here.cluster.topics:
            error = "UNKNOWN_TOPIC_ID" if name is None else "UNKNOWN_TOPIC_OR_PARTITION"
        results.append({"name": known or None, "error_code": code(error),
                        "topic_id": here.cluster.topic_ids.get(known, topic_id)})
        if error == "NONE":
            here.cluster.delete_topic(known)
    return {"responses": tuple(results)}
