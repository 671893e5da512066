"""Records of brokers' own topics as bytes, as Kafka's brokers write them for the coordinators that come after them.

Keys and values are messages of Kafka's schemas after their version: `OffsetCommitKey`, `GroupMetadataValue`,
`TransactionLogValue` and the like. Of a consumer group there is its epoch alone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import attrs

from kafka_proto.broker.coordinator.transaction import TransactionMetadata, TransactionRecord
from kafka_proto.broker.group.consumer_group import ConsumerGroup
from kafka_proto.broker.group.coordinator import GroupMetadata, OffsetRecord
from kafka_proto.broker.group.rebalance import ClassicGroup
from kafka_proto.gateway.codec import Malformed, Source, primitive, write_varint
from kafka_proto.gateway.context import by_topic
from kafka_proto.gateway.records import WireRecord, rewritten, write_batch
from kafka_proto.log import NO_PRODUCER_ID, NO_SEQUENCE, RecordBatch
from kafka_proto.requests import TxnState, partition_index, partition_name, topic_of

Typed = tuple[str, object]
"""A value with its type in Kafka's schemas; of an `array` the value is its structures."""
OF_TRANSACTION, OF_OFFSET, OF_GROUP, OF_CONSUMER_GROUP = range(4)
"""Versions of keys, which say what a record is about."""
STATES = (TxnState.EMPTY, TxnState.ONGOING, TxnState.PREPARE_COMMIT, TxnState.PREPARE_ABORT, TxnState.COMPLETE_COMMIT,
          TxnState.COMPLETE_ABORT, TxnState.DEAD, TxnState.PREPARE_EPOCH_FENCE)
"""By their numbers in the log."""
HOST = "/127.0.0.1"
NO_EPOCH = -1
FLEXIBLE_OFFSET = 4
"""The first flexible version of `OffsetCommitValue`."""


@attrs.frozen
class CleanedRecord:
    """In place of a record that compaction has removed from a batch, whose first sequence it keeps."""

    base_sequence: int


def write(batch: RecordBatch, leader_epoch: int, level: int) -> bytes:
    """Return the bytes of a batch that a coordinator wrote, at a level of `transaction.version`."""
    data = write_batch(
        [WireRecord(*_record(record, batch.timestamp, level)) for record in batch.records],
        base_offset=batch.base_offset, base_timestamp=batch.timestamp, producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch, is_transactional=batch.is_transactional,
        base_sequence=_sequence(batch.records[0]), partition_leader_epoch=leader_epoch)
    there = {place for place, record in enumerate(batch.records) if not isinstance(record, CleanedRecord)}
    if batch.delete_horizon is None and len(there) == len(batch.records):
        return data
    return rewritten(data, there, batch.delete_horizon)


def cleaned(batch: RecordBatch, kept: Collection[int], horizon: int | None) -> RecordBatch:
    """Return a batch with the records at some offsets only, as compaction leaves it."""
    records = tuple(record if batch.base_offset + place in kept else CleanedRecord(_sequence(record))
                    for place, record in enumerate(batch.records))
    return attrs.evolve(batch, records=records, delete_horizon=horizon)


def _sequence(record: object) -> int:
    if isinstance(record, CleanedRecord):
        return record.base_sequence
    return NO_SEQUENCE if isinstance(record, TransactionRecord) else 0


def _record(record: object, time: int, level: int) -> tuple[bytes, bytes | None]:
    """Return key and value of a record; a tombstone has no value."""
    if isinstance(record, CleanedRecord):
        return b"", None
    if isinstance(record, TransactionRecord):
        value = None if record.entry is None else _transaction(record.entry, level)
        return _message(OF_TRANSACTION, ("string", record.transactional_id)), value
    if isinstance(record, OffsetRecord):
        topic, index = topic_of(record.partition), partition_index(record.partition)
        key = _message(OF_OFFSET, ("string", record.group_id), ("string", topic), ("int32", index))
        return key, None if record.offset is None else _offset(record, record.offset, time)
    assert isinstance(record, GroupMetadata)
    if isinstance(record.group, ConsumerGroup):
        return (_message(OF_CONSUMER_GROUP, ("string", record.group_id)),
                _flexible(0, (("int32", record.group.epoch),)))
    if record.was_of_consumers:
        return _message(OF_CONSUMER_GROUP, ("string", record.group_id)), None
    key = _message(OF_GROUP, ("string", record.group_id))
    return key, None if record.group is None else _group(record.group, time)


def read_offset(key: bytes | None, value: bytes | None) -> OffsetRecord | None:
    """Return an offset that was committed, or is deleted; None if the record is about something else.

    Raises Malformed if it is about an offset and of no version that is known.
    """
    source = Source(key or b"")
    if len(source.data) < 2 or _take(source, "int16") not in (0, OF_OFFSET):
        return None
    group, topic, index = (_take(source, kind) for kind in ("string", "string", "int32"))
    named = OffsetRecord(group, partition_name(topic, index), None)
    if value is None:
        return named
    source = Source(value)
    version = _take(source, "int16")
    if not 0 <= version <= 4:
        raise Malformed(f"an offset of version {version}")
    offset, epoch = _take(source, "int64"), _take(source, "int32") if version >= 3 else NO_EPOCH
    metadata = _take(source, "string", version >= FLEXIBLE_OFFSET)
    return attrs.evolve(named, offset=offset, leader_epoch=None if epoch == NO_EPOCH else epoch,
                        metadata=metadata or None)


def _take(source: Source, kind: str, flexible: bool = False) -> Any:
    return primitive(kind, flexible, nullable=False)[0](source)


def _transaction(entry: TransactionMetadata, level: int) -> bytes:
    """Return a `TransactionLogValue`."""
    rows = tuple((("string", topic), ("array", tuple((("int32", index),) for index in indexes)))
                 for topic, indexes in by_topic(entry.partitions))
    fields: tuple[Typed, ...] = (
        ("int64", entry.producer_id), ("int16", entry.producer_epoch), ("int32", entry.timeout_ms),
        ("int8", STATES.index(entry.state)), ("array", None if entry.state is TxnState.EMPTY else rows),
        ("int64", entry.last_update_timestamp), ("int64", entry.start_timestamp))
    if level == 0:
        return _message(0, *fields)
    tags: tuple[tuple[Typed, object], ...] = (
        (("int64", entry.previous_producer_id), NO_PRODUCER_ID), (("int64", entry.next_producer_id), NO_PRODUCER_ID),
        (("int16", entry.transaction_version), 0))
    return _flexible(1, fields, [(tag, each) for tag, (each, default) in enumerate(tags) if each[1] != default])


def _offset(record: OffsetRecord, offset: int, time: int) -> bytes:
    """Return an `OffsetCommitValue`."""
    epoch = NO_EPOCH if record.leader_epoch is None else record.leader_epoch
    fields: tuple[Typed, ...] = (
        ("int64", offset), ("int32", epoch), ("string", record.metadata or ""), ("int64", time))
    if record.topic_id is None:
        return _message(3, *fields)
    return _flexible(FLEXIBLE_OFFSET, fields, [(0, ("raw", record.topic_id))])


def _group(group: ClassicGroup, time: int) -> bytes:
    """Return a `GroupMetadataValue`; of members it has what they said for the chosen protocol."""
    members = tuple((
        ("string", name), ("string", member.join.group_instance_id), ("string", member.join.client_id),
        ("string", HOST), ("int32", member.join.rebalance_timeout_ms), ("int32", member.join.session_timeout_ms),
        ("bytes", dict(member.join.protocols).get(group.protocol_name or "", b"")), ("bytes", member.assignment),
    ) for name, member in group.members.items())
    return _message(
        3, ("string", group.protocol_type or ""), ("int32", group.generation), ("string", group.protocol_name),
        ("string", group.leader or None), ("int64", time), ("array", members))


def _message(version: int, *fields: Typed) -> bytes:
    """Return a message of a version that is not flexible, after the number of the version."""
    out = bytearray(version.to_bytes(2, "big"))
    _write(out, fields, flexible=False)
    return bytes(out)


def _flexible(version: int, fields: Iterable[Typed], tagged: Iterable[tuple[int, Typed]] = ()) -> bytes:
    """Return a message of a flexible version, with its tagged fields (KIP-482)."""
    out, tags = bytearray(version.to_bytes(2, "big")), list(tagged)
    _write(out, fields, flexible=True)
    write_varint(out, len(tags))
    for tag, field in tags:
        value = bytearray()
        _write(value, (field,), flexible=True)
        write_varint(out, tag)
        write_varint(out, len(value))
        out += value
    return bytes(out)


def _write(out: bytearray, fields: Iterable[Typed], flexible: bool) -> None:
    for kind, value in fields:
        if kind == "raw":
            assert isinstance(value, bytes)
            out += value
        elif kind != "array":
            primitive(kind, flexible, nullable=True)[1](out, value)
        else:
            assert value is None or isinstance(value, tuple)
            length = -1 if value is None else len(value)
            if flexible:
                write_varint(out, length + 1)
            else:
                primitive("int32", flexible, nullable=False)[1](out, length)
            for row in value or ():
                _write(out, row, flexible)
                if flexible and len(row) > 1:  # a structure, which may have tags
                    write_varint(out, 0)
