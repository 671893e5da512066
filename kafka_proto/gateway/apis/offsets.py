"""OffsetCommit, TxnOffsetCommit, OffsetFetch: offsets of groups, one partition of a message at a time."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from typing import Any

from kafka_proto.gateway.codec import Fields
from kafka_proto.gateway.connection import WireRequest
from kafka_proto.gateway.context import (
    AskedBroker,
    Handling,
    Reply,
    by_topic,
    code,
    each,
    named,
    not_coordinator,
    number,
)
from kafka_proto.requests import OffsetCommitRequest, OffsetFetchRequest, TxnOffsetCommitRequest

NO_EPOCH = -1


def offset_commit(here: AskedBroker, request: WireRequest) -> Handling:
    """Commit offsets of a group."""
    message = request.message
    wrong = not_coordinator(here, message["group_id"], is_group=True)

    def one(topic: str, partition: Any) -> object:
        index = partition["partition_index"]
        if wrong:
            return {"partition_index": index, "error_code": wrong}
        return OffsetCommitRequest(
            request.version, message["group_id"], named(topic, index), partition["committed_offset"],
            message["generation_id_or_member_epoch"], message["member_id"], message.get("group_instance_id"),
            *_kept_with(partition),
        )

    found = yield from each(message["topics"], "partitions", one, _committed)
    return Reply({"topics": tuple({"name": t, "partitions": results} for t, results in found)})


def txn_offset_commit(here: AskedBroker, request: WireRequest) -> Handling:
    """Commit offsets of a group as part of a transaction (KIP-98, KIP-447)."""
    message = request.message
    wrong = not_coordinator(here, message["group_id"], is_group=True)

    def one(topic: str, partition: Any) -> object:
        index = partition["partition_index"]
        if wrong:
            return {"partition_index": index, "error_code": wrong}
        return TxnOffsetCommitRequest(
            request.version, message["transactional_id"], message["group_id"], message["producer_id"],
            message["producer_epoch"], named(topic, index), partition["committed_offset"],
            message.get("generation_id", -1), message.get("member_id", ""), message.get("group_instance_id"),
            *_kept_with(partition),
        )

    found = yield from each(message["topics"], "partitions", one, _committed)
    return Reply({"topics": tuple({"name": t, "partitions": results} for t, results in found)})


def _kept_with(partition: Fields) -> tuple[int | None, str | None]:
    """Return leader epoch and metadata of an offset, None where there are none."""
    epoch = partition.get("committed_leader_epoch", NO_EPOCH)
    return None if epoch == NO_EPOCH else epoch, partition["committed_metadata"] or None


def _committed(topic: str, partition: Any, response: Any) -> Fields:
    return {"partition_index": partition["partition_index"], "error_code": number(response.error)}


def offset_fetch(here: AskedBroker, request: WireRequest) -> Handling:
    """Look up offsets of a group, from version 8 on of several groups; without topics: all that it has."""
    message = request.message
    stable = message.get("require_stable", False)
    if request.version < 8:
        found = yield from _fetched(here, request.version, message["group_id"], message["topics"], stable)
        return Reply(found)
    groups = []
    for group in message["groups"]:
        found = yield from _fetched(here, request.version, group["group_id"], group["topics"], stable)
        groups.append({"group_id": group["group_id"], **found})
    return Reply({"groups": tuple(groups)})


def _fetched(
    here: AskedBroker, version: int, group_id: str, topics: Iterable[Fields] | None, stable: bool
) -> Generator[tuple[object, ...], tuple[Any, ...], Fields]:
    if wrong := not_coordinator(here, group_id, is_group=True):
        refused = tuple({"name": topic["name"], "partitions": tuple(
            {"partition_index": index, "committed_offset": -1, "metadata": "", "error_code": wrong}
            for index in topic["partition_indexes"])} for topic in topics or ())
        return {"topics": refused, "error_code": wrong}
    if topics is None:
        known = here.cluster.groups(here.name).offsets.committed
        wanted = by_topic(partition for group, partition in known if group == group_id)
        topics = ({"name": topic, "partition_indexes": indexes} for topic, indexes in wanted)

    def one(topic: str, index: int) -> object:
        return OffsetFetchRequest(version, group_id, named(topic, index), stable)

    found = yield from each(topics, "partition_indexes", one, _offset)
    return {"topics": tuple({"name": topic, "partitions": results} for topic, results in found),
            "error_code": code("NONE")}


def _offset(topic: str, index: int, response: Any) -> Fields:
    epoch = response.leader_epoch
    return {"partition_index": index, "committed_offset": response.committed_offset,
            "committed_leader_epoch": NO_EPOCH if epoch is None else epoch, "metadata": response.metadata or "",
            "error_code": number(response.partition_error)}
