"""OffsetCommit, TxnOffsetCommit, OffsetFetch: offsets of groups, one partition of a message at a time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kafka_proto.gateway.apis.asking import answered, ask, by_topic, each, named, not_coordinator, number
from kafka_proto.gateway.broker import Broker, Token, Turn, code
from kafka_proto.gateway.codec import Fields
from kafka_proto.gateway.connection import Request
from kafka_proto.requests import OffsetCommitRequest, OffsetFetchRequest, TxnOffsetCommitRequest

NO_EPOCH = -1


def offset_commit(broker: Broker, request: Request, token: Token) -> Turn:
    """Commit offsets of a group."""
    message = request.message
    wrong = not_coordinator(broker, message["group_id"])

    def one(broker: Broker, topic: str, partition: Any) -> tuple[Broker, Fields]:
        index = partition["partition_index"]
        if wrong:
            return broker, {"partition_index": index, "error_code": wrong}
        asked = OffsetCommitRequest(
            request.version, message["group_id"], named(topic, index), partition["committed_offset"],
            message["generation_id_or_member_epoch"], message["member_id"], message.get("group_instance_id"),
            *_kept_with(partition),
        )
        broker, response = ask(broker, asked)
        return broker, {"partition_index": index, "error_code": number(response.error)}

    broker, found = each(broker, message["topics"], "partitions", one)
    return answered(broker, token, {"topics": tuple({"name": t, "partitions": results} for t, results in found)})


def txn_offset_commit(broker: Broker, request: Request, token: Token) -> Turn:
    """Commit offsets of a group as part of a transaction (KIP-98, KIP-447)."""
    message = request.message
    wrong = not_coordinator(broker, message["group_id"])

    def one(broker: Broker, topic: str, partition: Any) -> tuple[Broker, Fields]:
        index = partition["partition_index"]
        if wrong:
            return broker, {"partition_index": index, "error_code": wrong}
        asked = TxnOffsetCommitRequest(
            request.version, message["transactional_id"], message["group_id"], message["producer_id"],
            message["producer_epoch"], named(topic, index), partition["committed_offset"],
            message.get("generation_id", -1), message.get("member_id", ""), message.get("group_instance_id"),
            *_kept_with(partition),
        )
        broker, response = ask(broker, asked)
        return broker, {"partition_index": index, "error_code": number(response.error)}

    broker, found = each(broker, message["topics"], "partitions", one)
    return answered(broker, token, {"topics": tuple({"name": t, "partitions": results} for t, results in found)})


def _kept_with(partition: Fields) -> tuple[int | None, str | None]:
    """Return leader epoch and metadata of an offset, None where there are none."""
    epoch = partition.get("committed_leader_epoch", NO_EPOCH)
    return None if epoch == NO_EPOCH else epoch, partition["committed_metadata"] or None


def offset_fetch(broker: Broker, request: Request, token: Token) -> Turn:
    """Look up offsets of a group, from version 8 on of several groups; without topics: all that it has."""
    message = request.message
    stable = message.get("require_stable", False)
    if request.version < 8:
        found = _fetched(broker, request.version, message["group_id"], message["topics"], stable)
        return answered(broker, token, found)
    groups = tuple({"group_id": group["group_id"], **_fetched(broker, request.version, group["group_id"],
                                                              group["topics"], stable)} for group in message["groups"])
    return answered(broker, token, {"groups": groups})


def _fetched(broker: Broker, version: int, group_id: str, topics: Iterable[Fields] | None, stable: bool) -> Fields:
    if wrong := not_coordinator(broker, group_id):
        refused = tuple({"name": topic["name"], "partitions": tuple(
            {"partition_index": index, "committed_offset": -1, "metadata": "", "error_code": wrong}
            for index in topic["partition_indexes"])} for topic in topics or ())
        return {"topics": refused, "error_code": wrong}
    if topics is None:
        known = broker.node.groups.offsets.committed
        wanted = by_topic(partition for group, partition in known if group == group_id)
    else:
        wanted = [(topic["name"], topic["partition_indexes"]) for topic in topics]
    found = tuple({"name": topic, "partitions": tuple(_offset(broker, version, group_id, topic, index, stable)
                                                      for index in indexes)} for topic, indexes in wanted)
    return {"topics": found, "error_code": code("NONE")}


def _offset(broker: Broker, version: int, group_id: str, topic: str, index: int, stable: bool) -> Fields:
    _, response = ask(broker, OffsetFetchRequest(version, group_id, named(topic, index), stable))
    epoch = response.leader_epoch
    return {"partition_index": index, "committed_offset": response.committed_offset,
            "committed_leader_epoch": NO_EPOCH if epoch is None else epoch, "metadata": response.metadata or "",
            "error_code": number(response.partition_error)}
