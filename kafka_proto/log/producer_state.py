"""What a partition remembers of a producer (`ProducerStateEntry`): its epoch, last five batches, open transaction."""

from __future__ import annotations

import attrs

from kafka_proto.log.records import NO_PRODUCER_EPOCH, NO_SEQUENCE, RecordBatch

BATCHES_REMEMBERED = 5
"""As many as a producer may have in flight (`NUM_BATCHES_TO_RETAIN`)."""


@attrs.frozen
class RememberedBatch:
    """The sequences of a batch, and where its last record is (`BatchMetadata`)."""

    first_sequence: int
    last_sequence: int
    last_offset: int
    offset_delta: int

    @property
    def first_offset(self) -> int:
        return self.last_offset - self.offset_delta


@attrs.frozen
class ProducerState:
    """A producer id's state: no epoch before its first batch or marker, no batches after a marker of a new epoch."""

    producer_epoch: int = NO_PRODUCER_EPOCH
    batches: tuple[RememberedBatch, ...] = ()
    """The oldest first, all of `producer_epoch`."""
    coordinator_epoch: int = -1
    last_timestamp: int = -1
    open_from: int | None = None
    """The first offset of its open transaction."""

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    def duplicate_of(self, batch: RecordBatch) -> RememberedBatch | None:
        """Return the remembered batch of the same epoch with exactly these sequences (`findDuplicateBatch`)."""
        if batch.producer_epoch != self.producer_epoch:
            return None
        wanted = batch.base_sequence, batch.last_sequence
        return next((known for known in self.batches if (known.first_sequence, known.last_sequence) == wanted), None)


UNKNOWN_PRODUCER = ProducerState()


def after_batch(state: ProducerState, batch: RecordBatch) -> ProducerState:
    """Return the state after a batch of data (`addBatch`): a new epoch forgets the batches of the old one."""
    known = state.batches if batch.producer_epoch == state.producer_epoch else ()
    added = RememberedBatch(batch.base_sequence, batch.last_sequence, batch.last_offset, batch.last_offset_delta)
    opens = state.open_from is None and batch.is_transactional
    return ProducerState(
        batch.producer_epoch, (*known, added)[-BATCHES_REMEMBERED:], state.coordinator_epoch, batch.timestamp,
        batch.base_offset if opens else state.open_from,
    )


def after_marker(state: ProducerState, marker: RecordBatch) -> ProducerState:
    """Return the state after a marker (`ProducerStateEntry.update`): no transaction is open any more."""
    known = state.batches if marker.producer_epoch == state.producer_epoch else ()
    return ProducerState(marker.producer_epoch, known, marker.coordinator_epoch, marker.timestamp, None)
