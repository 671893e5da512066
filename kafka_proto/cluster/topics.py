"""The partitions of whole transactions as a viewer sees them: their records, and what brokers derive from them."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from harness.model import EntryKind, LogEntry, LogMark, ShownLog, Value, View
from kafka_proto.broker.coordinator.transaction import TransactionRecord, last_entries
from kafka_proto.broker.ghosts import Cause
from kafka_proto.broker.group.coordinator import OffsetRecord
from kafka_proto.broker.placement import Placement
from kafka_proto.clients.consumer import ReaderState
from kafka_proto.cluster.logs import Logs, itself
from kafka_proto.log import NO_SEQUENCE, Marker, PartitionLog, ProducerState, RecordBatch
from kafka_proto.requests import OFFSETS_PARTITION

MARKERS = {Marker.COMMIT: EntryKind.COMMIT_MARKER, Marker.ABORT: EntryKind.ABORT_MARKER}
ENDED = {Marker.COMMIT: EntryKind.COMMITTED, Marker.ABORT: EntryKind.ABORTED, None: EntryKind.OPEN}


def topics(placement: Placement, logs: Logs, view: View) -> tuple[ShownLog, ...]:
    """Return the partitions of the topic, that of offsets once something is in it, those of the transaction log."""
    data = [
        shown(partition, holder, log, readers(placement, view, partition))
        for partition in (*placement.partitions, OFFSETS_PARTITION)
        for holder, log in logs.held(view, partition)
        if log.log_end_offset or partition != OFFSETS_PARTITION
    ]
    transactions = [
        shown_transactions(partition, holder, *logs.kept(view, partition, holder, itself))
        for partition in placement.transaction_partitions
        for holder in logs.holders(partition)
    ]
    return tuple(attrs.evolve(one, facts=logs.facts(view, one.partition, one.holder)) for one in (*data, *transactions))


def shown_transactions(
    partition: str, holder: str, records: tuple[TransactionRecord, ...], committed: int
) -> ShownLog:
    """Return a partition of the transaction log, with so many records committed."""
    found = []
    for offset, record in enumerate(records):
        tid, entry = record.transactional_id, record.entry
        if entry is None:
            found.append(LogEntry(offset, "tombstone", note=tid))
            continue
        known = (
            ("transactional id", tid), ("producer id", str(entry.producer_id)), ("epoch", str(entry.producer_epoch)),
            ("partitions", ", ".join(entry.partitions) or "none"),
        )
        found.append(LogEntry(offset, entry.state.value, note=f"{tid} e{entry.producer_epoch}", details=known))
    marks = (LogMark("high watermark", "HW", committed),)
    last = tuple((tid, f"{entry.state}, epoch {entry.producer_epoch}") for tid, entry in last_entries(records).items())
    return ShownLog(partition, holder, len(records), tuple(found), marks, last)


def readers(placement: Placement, view: View, partition: str) -> dict[str, tuple[int, tuple[str, ...]]]:
    """Return by consumer its position in a partition, and the records that its application got."""
    found = {}
    for r in placement.consumers:
        state: ReaderState = view[r]
        found[r] = state.consumer.positions.get(partition, 0), state.seen.get(partition, ())
    return found


def shown(partition: str, holder: str, log: PartitionLog, read: dict[str, tuple[int, tuple[str, ...]]]) -> ShownLog:
    """Return a log with its marks and its producers' state."""
    marks = [
        LogMark("last stable offset", "LSO", log.last_stable_offset),
        LogMark("high watermark", "HW", log.high_watermark),
    ]
    if partition != OFFSETS_PARTITION:
        marks += [LogMark(f"position of {r}", r, position) for r, (position, _) in read.items()]
    producers = tuple((f"producer id {n}", told(state)) for n, state in log.producers.items())
    return ShownLog(partition, holder, log.log_end_offset, tuple(entries(log, read)), tuple(marks), producers)


def told(state: ProducerState) -> str:
    """Return what a partition remembers of a producer, in words."""
    found = [f"epoch {state.producer_epoch}"]
    if state.last_sequence != NO_SEQUENCE:
        found.append(f"last sequence {state.last_sequence}")
    if state.coordinator_epoch >= 0:
        found.append(f"coordinator epoch {state.coordinator_epoch}")
    found.append("no open transaction" if state.open_from is None else f"open from offset {state.open_from}")
    return ", ".join(found)


def entries(log: PartitionLog, read: dict[str, tuple[int, tuple[str, ...]]]) -> Iterator[LogEntry]:
    """Yield the records by offset, each with what became of its transaction here."""
    ends = ended_by(log)
    for batch in log.batches:
        kind = EntryKind.PLAIN
        if batch.marker is not None:
            kind = MARKERS[batch.marker]
        elif batch.is_transactional:
            kind = ENDED[ends.get(batch.base_offset)]
        for place, record in enumerate(batch.records):
            offset, text = batch.base_offset + place, text_of(record)
            seen = tuple(r for r, (position, got) in read.items() if offset < position and text in got)
            by = f" by {record.transaction}" if isinstance(record, Cause) else ""
            note = f"e{batch.producer_epoch}{by}"
            yield LogEntry(offset, text, kind, note, seen, tuple(details(batch, place, record)))


def ended_by(log: PartitionLog) -> dict[int, Marker]:
    """Return by a batch's first offset the marker that ended its transaction, for those that have ended."""
    found: dict[int, Marker] = {}
    under_way: dict[int, list[int]] = {}
    for batch in log.batches:
        if batch.marker is not None:
            found.update(dict.fromkeys(under_way.pop(batch.producer_id, ()), batch.marker))
        elif batch.is_transactional:
            under_way.setdefault(batch.producer_id, []).append(batch.base_offset)
    return found


def text_of(record: Value) -> str:
    """Return a record in a word."""
    if isinstance(record, Cause):
        return record.marker.value
    if isinstance(record, OffsetRecord):
        return f"{record.group_id} {record.partition}={record.offset}"
    return str(record)


def details(batch: RecordBatch, place: int, record: Value) -> Iterator[tuple[str, str]]:
    """Yield what is known of one record of a batch."""
    yield "producer id", str(batch.producer_id)
    yield "epoch", str(batch.producer_epoch)
    if batch.base_sequence != NO_SEQUENCE:
        yield "sequence", str(batch.base_sequence + place)
    if batch.marker is not None:
        yield "coordinator epoch", str(batch.coordinator_epoch)
    if isinstance(record, Cause):
        yield "caused by", record.transaction
