"""Requests of records as messages of the wire: one table, whoever plays them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kafka_proto.conformance.odd_batches import batch_of
from kafka_proto.conformance.player import LEVELS, Symbols

Fields = Mapping[str, Any]
TOPIC = "T"
MOST = 2**20


class MessageWriter:
    """What a player knows of names: those of a record stand for its own."""

    symbols: Symbols
    topic: str
    """The topic that a record means."""
    now_ms: int
    """The time stamp of records."""

    def named(self, name: str | None) -> str | None:
        """Return a name of a record as it is here."""
        raise NotImplementedError

    def message(self, api: str, version: int, fields: Fields) -> dict[str, Any]:
        """Return the message of a record's request."""
        return MESSAGES[api](self, version, fields)

    def owner(self, f: Fields) -> dict[str, Any]:
        return {"transactional_id": self.named(f.get("transactional_id")),
                "producer_id": self.symbols.producer_id(f.get("producer_id", -1)),
                "producer_epoch": f.get("producer_epoch", -1)}

    def member(self, f: Fields) -> dict[str, Any]:
        return {"group_id": self.named(f["group_id"]), "member_id": self.symbols.member_id(f.get("member_id", "")),
                "group_instance_id": f.get("group_instance_id")}

    def topics(
        self, inner: str, *partitions: Any, name: str = "name", topic: str | None = None
    ) -> tuple[dict[str, Any], ...]:
        """Return partitions of the situation's topic, or of another one."""
        return ({name: topic or self.topic, inner: partitions},)


def _add(s: MessageWriter, version: int, f: Fields) -> dict[str, Any]:
    one = {**s.owner(f), "topics": s.topics("partitions", *f["partitions"], topic=f.get("topic"))}
    if version < 4:
        return {f"v3_and_below_{key}": value for key, value in one.items()}
    return {"transactions": ({**one, "verify_only": f.get("verify_only", False)},)}


def _produce(s: MessageWriter, version: int, f: Fields) -> dict[str, Any]:
    """Produce a batch; with `also` more of them, each for the partition that it names."""
    rows = ({**f, "bytes": {}, **row} for row in (f, *f.get("also", ())))
    wanted = tuple({"index": row.get("partition", 0), "records": batch_of(row, s.owner(row), s.now_ms)} for row in rows)
    return {"transactional_id": s.named(f.get("transactional_id")), "acks": f.get("acks", -1),
            "timeout": f.get("timeout", 10_000), "topic_data": s.topics(
                "partition_data", *wanted, topic=f.get("topic"))}


def _offset(s: MessageWriter, f: Fields) -> dict[str, Any]:
    return {**s.member(f), "topics": s.topics("partitions", {
        "partition_index": f["partition"], "committed_offset": f["offset"], "committed_metadata": ""})}


def _fetch(s: MessageWriter, version: int, f: Fields) -> dict[str, Any]:
    wanted = {"partition": f.get("partition", 0), "fetch_offset": f["fetch_offset"], "partition_max_bytes": MOST,
              **_epochs(f)}
    return {"max_wait": 0, "min_bytes": 0, "max_bytes": MOST, "isolation_level": LEVELS.index(f["isolation_level"]),
            "session_epoch": -1, "topics": s.topics("partitions", wanted, name="topic")}


def _epochs(f: Fields) -> dict[str, int]:
    return {name: f[name] for name in ("current_leader_epoch", "last_fetched_epoch") if name in f}


def _leader_epoch(s: MessageWriter, version: int, f: Fields) -> dict[str, Any]:
    wanted = {"partition": 0, "leader_epoch": f["leader_epoch"], **_epochs(f)}
    return {"replica_id": -1, "topics": s.topics("partitions", wanted, name="topic")}


def _list_offsets(s: MessageWriter, version: int, f: Fields) -> dict[str, Any]:
    wanted = {"partition_index": f.get("partition", 0), "timestamp": f["timestamp"], **_epochs(f)}
    return {"replica_id": -1, "isolation_level": LEVELS.index(f["isolation_level"]),
            "topics": s.topics("partitions", wanted)}


def _write_markers(s: MessageWriter, version: int, f: Fields) -> dict[str, Any]:
    return {"markers": ({
        **s.owner(f), "coordinator_epoch": f["coordinator_epoch"], "transaction_result": f["committed"],
        "transaction_version": f.get("transaction_version", 0),
        "topics": s.topics("partition_indexes", *f["partitions"])},)}


def _list(s: MessageWriter, version: int, f: Fields) -> dict[str, Any]:
    return {"state_filters": tuple(f["state_filters"]), "duration_filter": f.get("duration_filter", -1),
            "producer_id_filters": tuple(map(s.symbols.producer_id, f["producer_id_filters"]))}


MESSAGES: dict[str, Callable[[MessageWriter, int, Fields], dict[str, Any]]] = {
    "InitProducerId": lambda s, v, f: {**s.owner(f), "transaction_timeout": f["transaction_timeout"]},
    "AddPartitionsToTxn": _add,
    "AddOffsetsToTxn": lambda s, v, f: {**s.owner(f), "group_id": s.named(f["group_id"])},
    "EndTxn": lambda s, v, f: {**s.owner(f), "committed": f["committed"]},
    "Produce": _produce, "WriteTxnMarkers": _write_markers, "Fetch": _fetch, "ListOffsets": _list_offsets,
    "DeleteRecords": lambda s, v, f: {"timeout": 10_000, "topics": s.topics(
        "partitions", {"partition_index": f["partition"], "offset": f["offset"]})},
    "DescribeProducers": lambda s, v, f: {"topics": s.topics(
        "partition_indexes", *f.get("partitions", (f.get("partition"),)))},
    "TxnOffsetCommit": lambda s, v, f: {**s.owner(f), **_offset(s, f), "generation_id": f.get("generation_id", -1)},
    "OffsetCommit": lambda s, v, f: {**_offset(s, f), "generation_id_or_member_epoch": f.get("generation", -1)},
    "OffsetFetch": lambda s, v, f: {
        "group_id": s.named(f["group_id"]), "require_stable": f.get("require_stable", False),
        "topics": s.topics("partition_indexes", f["partition"])},
    "JoinGroup": lambda s, v, f: {
        **s.member(f), "session_timeout": 30_000, "rebalance_timeout": 30_000, "protocol_type": "consumer",
        "protocols": ({"name": "range", "metadata": b""},)},
    "SyncGroup": lambda s, v, f: {**s.member(f), "generation_id": f["generation"], "assignments": (
        {"member_id": s.member(f)["member_id"], "assignment": b""},)},
    "LeaveGroup": lambda s, v, f: s.member(f),
    "DescribeTransactions": lambda s, v, f: {"transactional_ids": tuple(
        map(s.named, f.get("transactional_ids", (f.get("transactional_id"),))))},
    "OffsetForLeaderEpoch": _leader_epoch,
    "ListTransactions": _list,
    "CreateTopics": lambda s, v, f: {"timeout": 10_000, "topics": ({
        "name": s.named(TOPIC), "num_partitions": f["partitions"], "replication_factor": 1, "assignments": (),
        "configs": ()},)},
    "DeleteTopics": lambda s, v, f: {"topic_names": (s.named(TOPIC),), "timeout": 10_000},
}
