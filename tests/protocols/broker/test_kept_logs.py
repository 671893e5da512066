"""What a broker reads of a log: which records are there, where each is, and what those made that are gone."""

from __future__ import annotations

import pytest

from harness.model import FrozenMap
from kafka_proto.broker.roles import Log, batch_of, kept
from kafka_proto.log import PartitionLog, RecordBatch
from kafka_proto.log.chunks import LogStart, chunks

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
