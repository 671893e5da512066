"""What a broker reads of a log: which records are there, where each is, and what those made that are gone."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from harness.model import FrozenMap
from kafka_proto.broker.roles import Log, batch_of, compacted, kept
from kafka_proto.log import (
    EMPTY_LOG,
    Marker,
    PartitionLog,
    RecordBatch,
    append,
    cleaning,
    marker_batch,
    read_on,
    rebuild,
    with_high_watermark,
)
from kafka_proto.log.chunks import LogStart, chunks
from kafka_proto.log.segments import LogConfig

FIRST, SECOND, THIRD = (RecordBatch((f"r{n}",), base_offset=n) for n in range(3))
MADE = PartitionLog(log_start_offset=0, log_end_offset=2, producers=FrozenMap())


@pytest.mark.parametrize(("batches", "is_kept"), [((FIRST, SECOND, THIRD), True), ((FIRST, SECOND), True),
                                                  ((FIRST,), False)])
def test_what_a_compacted_log_made_counts_unless_the_log_was_cut_below_its_end(
    batches: tuple[RecordBatch, ...], is_kept: bool
) -> None:
    """A log that ends just where that ends was not cut; one that ends before is derived anew from its records."""
    items = chunks(batches).replaced(LogStart(0, 0, MADE, 0, 2), lambda item, place: item)
    found, start = kept(items, batch_of)
    assert [record for record, _ in found] == list(batches)
    assert start == (MADE if is_kept else PartitionLog())


@pytest.mark.parametrize("offset", [0, 1, 2])
def test_a_batch_is_found_at_its_offset(offset: int) -> None:
    """A batch that is acknowledged again is waited for where it is, not at the end of the log."""
    assert Log.place(Log, (FIRST, SECOND, THIRD), offset) == offset  # type: ignore[arg-type]


def aborting(key: str, sequence: int) -> tuple[RecordBatch, RecordBatch]:
    return RecordBatch((key,), 0, 0, sequence, is_transactional=True), marker_batch(0, 0, Marker.ABORT, 1)


WRITTEN = (RecordBatch(("a",)), *aborting("a", 0), RecordBatch(("a",)), *aborting("b", 1), RecordBatch(("c",)))
"""Two aborted transactions: their markers are at the offsets 2 and 5."""


def rewritten(batch: RecordBatch, offsets: Any, until: int | None) -> RecordBatch:
    records = tuple(text for at, text in enumerate(batch.records, batch.base_offset) if at in offsets)
    return attrs.evolve(batch, records=records, delete_horizon=until)


FORM = cleaning.BatchFormat(
    lambda batch: 100,
    lambda batch: [cleaning.KeyedRecord(at, key, True) for at, key in enumerate(batch.records, batch.base_offset)],
    rewritten)


@pytest.mark.parametrize("end", range(1, len(WRITTEN)))
def test_aborted_transactions_are_known_once_after_a_restart(end: int) -> None:
    """Wherever compaction ends: what is beyond is read again from the batches, the markers at its end included."""
    log = EMPTY_LOG
    for batch in WRITTEN:
        log = append(log, batch)
    log = with_high_watermark(log, log.log_end_offset)
    done = cleaning.compacted(log, end, 0, LogConfig(), FORM, 5)
    items = compacted(chunks(log.batches), done, batch_of, lambda item, batch, other: other)
    found, start = kept(items, batch_of)
    again = read_on(start, [record for record, _ in found])
    assert [txn.last_offset for txn in again.aborted] == [2, 5]
    assert again.aborted == done.log.aborted == rebuild(log).aborted
