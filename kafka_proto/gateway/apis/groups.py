"""The protocols of groups; OffsetCommit, TxnOffsetCommit and OffsetFetch, one partition of a message at a time."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from typing import Any

from kafka_proto import requests
from kafka_proto.broker.group.consumer_group import check_fetch
from kafka_proto.gateway.codec import Fields
from kafka_proto.gateway.connection import WireRequest
from kafka_proto.gateway.context import (
    AskedBroker,
    Handling,
    Refused,
    answering,
    ask,
    asking,
    by_topic,
    each,
    named,
    number,
    told,
)
from kafka_proto.gateway.topic_ids import text
from kafka_proto.requests import Error, partition_name

heartbeat = answering(requests.HeartbeatRequest)


def join_group(here: AskedBroker, request: WireRequest) -> Handling:
    """Let a member join; its answer comes with the new generation."""
    message = request.message
    found = yield from ask(asking(
        requests.JoinGroupRequest, request,
        rebalance_timeout_ms=message.get("rebalance_timeout", message["session_timeout"]),
        group_instance_id=message.get("group_instance_id"), client_id=request.client_id or "",
        protocols=tuple((protocol["name"], protocol["metadata"]) for protocol in message["protocols"])))
    return told(found, members=tuple(
        {"member_id": known, "group_instance_id": instance, "metadata": said}
        for known, instance, said in found.members))


def sync_group(here: AskedBroker, request: WireRequest) -> Handling:
    """Take the leader's assignments, and tell a member its own."""
    assignments = tuple((given["member_id"], given["assignment"]) for given in request.message["assignments"])
    return told((yield from ask(asking(requests.SyncGroupRequest, request, assignments=assignments))))


def leave_group(here: AskedBroker, request: WireRequest) -> Handling:
    """Let members go, from version 3 on several of them, each with its own error."""
    message = request.message
    leaving = message["members"] if request.version >= 3 else (message,)
    found = yield from ask(asking(requests.LeaveGroupRequest, request, members=tuple(
        requests.MemberIdentity(member["member_id"], member.get("group_instance_id")) for member in leaving)))
    return told(found, members=tuple(map(told, found.members)))


def consumer_group_heartbeat(here: AskedBroker, request: WireRequest) -> Handling:
    """Let a member of a consumer group join, go on or leave (KIP-848): partitions go by their topics' ids."""
    given, names = request.message["topic_partitions"], here.cluster.topic_names
    owned = None if given is None else tuple(
        partition_name(names.get(row["topic_id"], text(row["topic_id"])), index)
        for row in given for index in row["partitions"])
    found = yield from ask(asking(requests.ConsumerGroupHeartbeatRequest, request, owned=owned,
                                  client_id=request.client_id or ""))
    assignment = None if found.assignment is None else {"topic_partitions": rows(here, found.assignment)}
    return told(found, assignment=assignment)


def rows(here: AskedBroker, partitions: Iterable[str]) -> tuple[Fields, ...]:
    """Return partitions by topic, each topic with its id; one that was deleted meanwhile has none."""
    return tuple({"topic_id": here.cluster.topic_ids[topic], "topic_name": topic, "partitions": indexes}
                 for topic, indexes in by_topic(partitions) if topic in here.cluster.topic_ids)


NO_EPOCH = -1
STORES_TOPIC_IDS = "4.1"
"""The first release whose log of offsets has them."""


def offset_commit(here: AskedBroker, request: WireRequest) -> Handling:
    """Commit offsets of a group."""
    generation_id = request.message["generation_id_or_member_epoch"]
    return _committed(here, requests.OffsetCommitRequest, request, generation_id=generation_id)


def txn_offset_commit(here: AskedBroker, request: WireRequest) -> Handling:
    """Commit offsets of a group as part of a transaction (KIP-98, KIP-447)."""
    return _committed(here, requests.TxnOffsetCommitRequest, request)


def _committed(here: AskedBroker, kind: type, request: WireRequest, **more: Any) -> Handling:
    """Commit each offset with its leader epoch and metadata, None if they are missing."""
    ids = here.cluster.topic_ids if here.settings.release >= STORES_TOPIC_IDS else {}

    def one(topic: str, index: int, partition: Any) -> object:
        topic_id = ids[topic].bytes if topic in ids else None
        epoch = partition.get("committed_leader_epoch", NO_EPOCH)
        return asking(kind, request, partition=named(topic, index), offset=partition["committed_offset"],
                      leader_epoch=None if epoch == NO_EPOCH else epoch,
                      metadata=partition["committed_metadata"] or None, topic_id=topic_id, **more)

    return {"topics": (yield from each(request.message["topics"], "partitions", one))}


def offset_fetch(here: AskedBroker, request: WireRequest) -> Handling:
    """Look up offsets of a group, from version 8 on of several groups; without topics: all that it has."""
    message = request.message
    stable = message.get("require_stable", False)
    if request.version < 8:
        return (yield from _fetched(here, request, message, stable))
    groups = []
    for group in message["groups"]:
        found = yield from _fetched(here, request, group, stable)
        groups.append({"group_id": group["group_id"], **found})
    return {"groups": tuple(groups)}


def _fetched(
    here: AskedBroker, request: WireRequest, group: Fields, stable: bool
) -> Generator[tuple[object, ...], tuple[Any, ...], Fields]:
    """Look up a group's offsets if its coordinator has read its log; else each offset, and the whole, is refused."""
    error, topics, groups = Error.NONE, group["topics"], here.cluster.groups(here.name)
    consumers = groups.consumer(group["group_id"])
    if not here.cluster.leads(here.name, requests.OFFSETS_PARTITION):
        error = Error.COORDINATOR_LOAD_IN_PROGRESS if here.loads_groups else Error.NOT_COORDINATOR
    elif consumers is not None:
        error = check_fetch(consumers, group.get("member_id"), group.get("member_epoch", NO_EPOCH))
    if topics is None:
        known = groups.offsets.committed if error is Error.NONE else ()
        wanted = by_topic(partition for name, partition in known if name == group["group_id"])
        topics = ({"name": topic, "partition_indexes": indexes} for topic, indexes in wanted)

    def one(topic: str, index: int, partition: int) -> object:
        if error is not Error.NONE:
            return Refused(requests.OffsetFetchResponse(error, error))
        return requests.OffsetFetchRequest(request.version, group["group_id"], named(topic, index), stable)

    return {"topics": (yield from each(topics or (), "partition_indexes", one, _offset)), "error_code": number(error)}


def _offset(topic: str, index: int, response: Any) -> Fields:
    epoch = response.leader_epoch
    return {"committed_offset": response.committed_offset, "metadata": response.metadata or "",
            "committed_leader_epoch": NO_EPOCH if epoch is None else epoch,
            "error_code": number(response.partition_error)}
