"""What a history knows and no protocol code reads: which of the application's transactions everything belongs to.

A record is the text `c1.2#3`: the third of its producer's second transaction. An offset that it commits is a number
that says the same (123), written `c1.2#offset3`. A marker's record names the transaction whose end, or whose time-out,
caused it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, MutableMapping
from functools import lru_cache

import attrs

from harness.model import FrozenMap, Value
from kafka_proto.broker.group.coordinator import Key, OffsetRecord
from kafka_proto.log import Marker, PartitionLog, RecordBatch, batches_between

MOST_NUMBERED = 9
"""Names and numbers of offsets have one digit."""
REMEMBERED = 1_000
"""Logs whose ghosts are remembered: several slots and the next states hold the same log. More would only keep logs of
earlier runs in memory, beyond what a driver's tables may use."""


@attrs.frozen
class SentRecords:
    """A batch's records as a client of the wire sent them, with the ghost of the transaction that they are of."""

    data: bytes
    transaction: str

    def __str__(self) -> str:
        return f"{self.transaction}#{len(self.data)}"


def record(transaction: str, number: int) -> str:
    """Return the record that an application writes."""
    return f"{transaction}#{number}"


def offset(transaction: str, number: int) -> int:
    """Return the offset that an application commits; names and numbers have one digit."""
    return int(transaction[1:].replace(".", "")) * 10 + number


def text_of(written: Value) -> str:
    """Return the text of a record, or of an offset."""
    if not isinstance(written, OffsetRecord):
        return str(written)
    digits = str(written.offset)
    return f"c{digits[0]}.{digits[1]}#offset{digits[2]}"


def transaction_of(record: str) -> str:
    """Return the transaction of a record."""
    return record.partition("#")[0]


@attrs.frozen
class Cause:
    """The record of a marker: its type, as Kafka's, and the transaction that caused it."""

    marker: Marker
    transaction: str

    def __str__(self) -> str:
        return self.marker.value


@attrs.frozen
class Ghosts:
    """What a coordinator's log would tell of transactions, if it told."""

    ongoing: FrozenMap[str, str] = FrozenMap()
    """By transactional id: the last transaction to which something was added."""
    causes: FrozenMap[str, str] = FrozenMap()
    """By transactional id: the transaction whose end, or whose time-out, is prepared."""
    committed: frozenset[str] = frozenset()
    """Transactions whose own commit was decided in the log."""


@attrs.frozen
class Noted:
    """A record of a log, or a whole batch where its records are not looked into, and the transaction that it is of."""

    offset: int
    transaction: str
    text: str = ""
    """Of a record."""

    def __str__(self) -> str:
        return self.text or f"offset {self.offset}"


@attrs.frozen
class Span:
    """A producer's records in a partition from the first to the marker that ends them, if any: a transaction there."""

    producer_id: int
    producer_epoch: int
    """Of the first."""
    records: tuple[Noted, ...] = ()
    marker: Marker | None = None
    cause: str = ""
    marker_at: int = -1


def noted(batch: RecordBatch) -> tuple[Noted, ...]:
    """Return the records of a batch whose texts name their transactions."""
    texts = enumerate(map(text_of, batch.records), batch.base_offset)
    return tuple(Noted(offset, transaction_of(text), text) for offset, text in texts)


def ended_by(
    batch: RecordBatch, open_: MutableMapping[int, Span],
    note: Callable[[RecordBatch], tuple[Noted, ...]] = noted,
) -> Span | None:
    """Return the transaction that a log's next batch ends; `open_` has those that are open by producer id, after it."""
    if batch.marker is not None:
        known = open_.pop(batch.producer_id, None)
        return known and attrs.evolve(known, marker=batch.marker, cause=batch.records[0].transaction,
                                      marker_at=batch.base_offset)
    if batch.is_transactional:
        known = open_.get(batch.producer_id) or Span(batch.producer_id, batch.producer_epoch)
        open_[batch.producer_id] = attrs.evolve(known, records=known.records + note(batch))
    return None


def spans_of(batches: Iterable[RecordBatch]) -> tuple[Span, ...]:
    """Return the transactions that batches tell of, by their markers, the open ones last."""
    open_: dict[int, Span] = {}
    ended = [span for batch in batches if (span := ended_by(batch, open_)) is not None]
    return (*ended, *(open_[producer_id] for producer_id in sorted(open_)))


@lru_cache(maxsize=REMEMBERED)
def spans(log: PartitionLog) -> tuple[Span, ...]:
    """Return the transactions of a log."""
    return spans_of(log.batches)


@lru_cache(maxsize=REMEMBERED)
def committed_offsets(log: PartitionLog) -> FrozenMap[Key, int]:
    """Return each group's offsets by the replicated part of an offsets log: of the last committed record, by its place.
    """
    known = CommittedOffsets()
    known.note(batches_between(log, 0, log.high_watermark))
    return known.found


class CommittedOffsets:
    """Groups' offsets as batches of an offsets log tell of them, one after the other."""

    def __init__(self) -> None:
        self._last: dict[Key, tuple[int, int | None]] = {}
        self._staged: dict[int, list[tuple[int, OffsetRecord]]] = {}

    @property
    def found(self) -> FrozenMap[Key, int]:
        return FrozenMap((key, found) for key, (_, found) in self._last.items() if found is not None)

    def note(self, batches: Iterable[RecordBatch]) -> None:
        """Go on with the next batches."""
        last, staged = self._last, self._staged
        for batch in batches:
            placed = [(batch.base_offset + n, record) for n, record in enumerate(batch.records)
                      if isinstance(record, OffsetRecord)]
            if batch.marker is not None:
                placed = staged.pop(batch.producer_id, []) if batch.marker is Marker.COMMIT else []
                if batch.marker is Marker.ABORT:
                    staged.pop(batch.producer_id, None)
            elif batch.is_transactional:
                staged.setdefault(batch.producer_id, []).extend(placed)
                continue
            for at, record in placed:
                last[record.key] = max(last.get(record.key, (-1, -1)), (at, record.offset))
