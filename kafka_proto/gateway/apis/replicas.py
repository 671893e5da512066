"""Where replicas are: AlterPartitionReassignments and ListPartitionReassignments (KIP-455), AlterReplicaLogDirs."""

from __future__ import annotations

from kafka_proto.gateway import configs
from kafka_proto.gateway.apis.topics import misassigned
from kafka_proto.gateway.codec import Fields
from kafka_proto.gateway.connection import WireRequest
from kafka_proto.gateway.context import NO_ERROR, AskedBroker, at_once, by_topic, code, number_of
from kafka_proto.requests import partition_index, partition_name


@at_once
def alter_replica_log_dirs(here: AskedBroker, request: WireRequest) -> Fields:
    """Let replicas lie in another directory: a broker has only one."""
    topics: dict[str, list[Fields]] = {}
    for folder in request.message["dirs"]:
        for topic in folder["topics"]:
            for index in topic["partitions"]:
                error = "NONE" if folder["path"] == configs.LOG_DIR else "LOG_DIR_NOT_FOUND"
                if not 0 <= index < here.partitions(topic["name"]):
                    error = "UNKNOWN_TOPIC_OR_PARTITION"
                elif here.name not in here.cluster.replicas(partition_name(topic["name"], index)):
                    error = "NOT_LEADER_OR_FOLLOWER"
                topics.setdefault(topic["name"], []).append({"partition_index": index, "error_code": code(error)})
    return {"results": tuple({"topic_name": name, "partitions": tuple(rows)} for name, rows in topics.items())}


@at_once
def alter_partition_reassignments(here: AskedBroker, request: WireRequest) -> Fields:
    """Let partitions have other replicas; without replicas: end that, where it is under way (KIP-455)."""
    may_resize = request.message.get("allow_replication_factor_change", True)
    topics = []
    for topic in request.message["topics"]:
        rows = []
        for partition in topic["partitions"]:
            error, reason = _reassigned(here, topic["name"], partition, may_resize)
            rows.append({"partition_index": partition["partition_index"], "error_code": code(error),
                         "error_message": reason})
        topics.append({"name": topic["name"], "partitions": tuple(rows)})
    return {"error_code": NO_ERROR, "error_message": None, "responses": tuple(topics)}


def _reassigned(here: AskedBroker, topic: str, partition: Fields, may_resize: bool) -> tuple[str, str | None]:
    index, ids = partition["partition_index"], partition["replicas"]
    if not 0 <= index < here.partitions(topic):
        return "UNKNOWN_TOPIC_OR_PARTITION", f"Unable to find partition {topic}:{index}."
    p = partition_name(topic, index)
    move = here.cluster.reassignments.get(p)
    before = len(here.cluster.replicas(p) if move is None else move.original)
    if ids is not None:
        if (reason := misassigned([{"partition_index": 0, "broker_ids": ids}], here.settings.brokers)) is not None:
            return "INVALID_REPLICA_ASSIGNMENT", reason
        if not may_resize and len(ids) != before:
            return "INVALID_REPLICATION_FACTOR", f"The replication factor is changed from {before} to {len(ids)}"
    return here.cluster.reassign(p, None if ids is None else tuple(f"b{id_}" for id_ in ids)), None


@at_once
def list_partition_reassignments(here: AskedBroker, request: WireRequest) -> Fields:
    """List the partitions, all or some, that get other replicas at present."""
    asked = request.message["topics"]
    wanted = None if asked is None else {
        partition_name(row["name"], index) for row in asked for index in row["partition_indexes"]}
    moves = here.cluster.reassignments
    rows = {p: {
        "partition_index": partition_index(p), "replicas": tuple(map(number_of, move.replicas)),
        "adding_replicas": tuple(number_of(b) for b in move.target if b in move.adding),
        "removing_replicas": tuple(number_of(b) for b in move.original if b in move.removing),
    } for p, move in moves.items() if wanted is None or p in wanted}
    return {"error_code": NO_ERROR, "error_message": None, "topics": tuple(
        {"name": topic, "partitions": tuple(rows[partition_name(topic, index)] for index in indexes)}
        for topic, indexes in by_topic(rows))}
