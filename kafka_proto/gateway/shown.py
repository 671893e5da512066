"""The partitions of a session as a viewer sees them: records decoded, what became of them, marks, groups, readers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache

from harness.model import EntryKind, LogEntry, LogMark, ShownLog, View
from kafka_proto.broker.coordinator.transaction import TransactionMetadata
from kafka_proto.broker.ghosts import Cause, SentRecords
from kafka_proto.broker.group.coordinator import GroupMetadata
from kafka_proto.cluster.failures import Leadership
from kafka_proto.cluster.topics import ENDED, MARKERS, ended_by, text_of, told
from kafka_proto.gateway import words
from kafka_proto.gateway.observed import Observed, Reading
from kafka_proto.gateway.properties import Brokers
from kafka_proto.log import NO_SEQUENCE, PartitionLog, RecordBatch
from kafka_proto.requests import OFFSETS_PARTITION

MOST_ENTRIES = 400
"""Records of a partition that are shown, the last ones."""
VOID = (EntryKind.ABORTED, EntryKind.COMMIT_MARKER, EntryKind.ABORT_MARKER)
"""What a reader of committed records passes over."""
Row = tuple[str, tuple[tuple[str, str], ...]]


def logs(view: View) -> tuple[ShownLog, ...]:
    """Return the partitions of clients' topics, that of offsets once something is in it, and all transactional ids."""
    brokers: Brokers = view["brokers"]
    seen: Observed = view["observed"]
    names = [p for p in brokers.logs if p != OFFSETS_PARTITION]
    if OFFSETS_PARTITION in brokers.logs and brokers.logs[OFFSETS_PARTITION].log_end_offset:
        names.append(OFFSETS_PARTITION)
    found = [shown(p, brokers, seen) for p in names]
    return (*found, _transactions(brokers.entries.items())) if brokers.entries else tuple(found)


def shown(p: str, brokers: Brokers, seen: Observed) -> ShownLog:
    """Return a partition as its leader has it."""
    log = brokers.logs[p]
    led = brokers.led.get(p, Leadership("", -1, ()))
    readers = {client: mine[p] for client, mine in seen.reading.items() if p in mine}
    marks = [LogMark("last stable offset", "LSO", log.last_stable_offset),
             LogMark("high watermark", "HW", log.high_watermark)]
    marks += [LogMark(f"offset of the group {group}", words.text(group), committed.offset)
              for (group, partition), committed in brokers.offsets.committed.items() if partition == p]
    facts = (("leader", led.leader or "nobody"), ("leader epoch", str(led.epoch)),
             ("ISR", ", ".join(led.isr) or "nobody"))
    producers = tuple((f"producer id {n}", told(state)) for n, state in log.producers.items())
    return ShownLog(p, led.leader or "nobody", log.log_end_offset, tuple(_entries(log, readers)), tuple(marks),
                    producers, facts)


def _entries(log: PartitionLog, readers: dict[str, Reading]) -> Iterator[LogEntry]:
    ends = ended_by(log)
    first = log.batches.first_after(log.log_end_offset - MOST_ENTRIES - 1, key=lambda batch: batch.base_offset)
    for batch in log.batches.between(first, len(log.batches)):
        kind = EntryKind.PLAIN
        if batch.marker is not None:
            kind = MARKERS[batch.marker]
        elif batch.is_transactional:
            kind = ENDED[ends.get(batch.base_offset)]
        for delta, (text, about) in _records(batch):
            offset = batch.base_offset + delta
            got = tuple(client for client, mine in readers.items()
                        if mine.first <= offset < mine.end and not (mine.committed and kind in VOID))
            yield LogEntry(offset, text, kind, _note(batch), got, about)


def _note(batch: RecordBatch) -> str:
    """Return whose a batch is, in a word or two."""
    ghost = batch.records[0] if batch.records else None
    transaction = ghost.transaction if isinstance(ghost, SentRecords | Cause) else ""
    return transaction or (f"e{batch.producer_epoch}" if batch.producer_id >= 0 else "")


@lru_cache(maxsize=10_000)
def _unpacked(data: bytes) -> tuple[tuple[int, Row], ...]:
    """Return the records of a batch, each with its offset from the first, and key, value and headers."""
    return tuple(
        (record.offset_delta, (words.record_text(record), (
            ("key", words.text(record.key, 200)), ("value", words.text(record.value, 200)),
            *((f"header {words.text(name)}", words.text(value)) for name, value in record.headers))))
        for _, records in words.batches(data) for record in records)


def _records(batch: RecordBatch) -> Iterator[tuple[int, Row]]:
    """Yield the records of a batch in a word, each with its offset from the first, and what is known of it."""
    about = ((("producer id", str(batch.producer_id)), ("epoch", str(batch.producer_epoch)))
             if batch.producer_id >= 0 else ())
    for place, record in enumerate(batch.records):
        if isinstance(record, SentRecords):
            for n, (text, own) in _unpacked(record.data):
                sequence = (("sequence", str(batch.base_sequence + n)),) if batch.base_sequence != NO_SEQUENCE else ()
                yield n, (text, (*own, *about, *sequence, ("transaction", record.transaction or "none")))
        elif isinstance(record, Cause):
            yield place, (text_of(record), (*about, ("caused by", record.transaction)))
        else:
            text = str(record) if isinstance(record, GroupMetadata) else text_of(record)
            yield place, (words.text(text, 60), (*about, ("record", str(place))))


def _transactions(entries: Iterable[tuple[str, TransactionMetadata]]) -> ShownLog:
    """Return what coordinators have of each transactional id."""
    found = tuple(LogEntry(n, str(entry.state), note=f"{words.text(tid)} e{entry.producer_epoch}", details=(
        ("transactional id", words.text(tid)), ("producer id", str(entry.producer_id)),
        ("epoch", str(entry.producer_epoch)), ("partitions", ", ".join(entry.partitions) or "none"),
    )) for n, (tid, entry) in enumerate(sorted(entries)))
    return ShownLog("transactional ids", "their coordinators", len(found), found)
