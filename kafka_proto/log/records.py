"""Record batches: what producers write, and the markers that end transactions (message format 2).

A record is any value: text in a model, bytes on the wire. A batch that a codec keeps packed is one record with the
`last_offset_delta` of all of them.
"""

from __future__ import annotations

from enum import StrEnum

import attrs

from harness.model import Value

NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
NO_SEQUENCE = -1
MAX_SEQUENCE = 2**31 - 1
MAX_EPOCH = 2**15 - 1


class Marker(StrEnum):
    """The type of a control record that ends a transaction (Kafka's `ControlRecordType`)."""

    COMMIT = "COMMIT"
    ABORT = "ABORT"


@attrs.frozen
class RecordBatch:
    """Records that were written together; `base_offset` is given by the leader's log."""

    records: tuple[Value, ...]
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_PRODUCER_EPOCH
    base_sequence: int = NO_SEQUENCE
    is_transactional: bool = False
    marker: Marker | None = None
    """Set in a control batch."""
    coordinator_epoch: int = -1
    """Of a marker."""
    timestamp: int = -1
    """Logical milliseconds of the newest record."""
    base_offset: int = -1
    last_offset_delta: int = attrs.Factory(lambda self: len(self.records) - 1, takes_self=True)

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def last_sequence(self) -> int:
        """Return the sequence of the last record; it wraps after `MAX_SEQUENCE` (`DefaultRecordBatch`)."""
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return (self.base_sequence + self.last_offset_delta) % (MAX_SEQUENCE + 1)


def marker_batch(
    producer_id: int, producer_epoch: int, marker: Marker, coordinator_epoch: int, timestamp: int = -1
) -> RecordBatch:
    """Return the control batch that ends a producer's transaction (`MemoryRecords.withEndTransactionMarker`)."""
    return RecordBatch((marker,), producer_id, producer_epoch, is_transactional=True, marker=marker,
                       coordinator_epoch=coordinator_epoch, timestamp=timestamp)
