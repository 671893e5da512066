"""What a history knows and no protocol code reads: which of the application's transactions everything belongs to.

A record is the text `c1.2#3`: the third of its producer's second transaction. An offset that it commits is a number
that says the same (123), written `c1.2#offset3`. A marker's record names the transaction whose end, or whose time-out,
caused it.
"""

from __future__ import annotations

from functools import lru_cache

import attrs

from harness.model import FrozenMap, Value
from kafka_proto.broker.group.offsets import Key, OffsetRecord
from kafka_proto.log import Marker, PartitionLog, batches_between

MOST_NUMBERED = 9
"""Names and numbers of offsets have one digit."""
REMEMBERED = 1_000
"""Logs of which it is remembered what they tell: several slots and the next states hold the same log. More would only
keep logs of earlier runs in memory, beyond what a driver's tables may use."""


@attrs.frozen
class Written:
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
    """By transactional id: the last transaction of which something was added."""
    causes: FrozenMap[str, str] = FrozenMap()
    """By transactional id: the transaction whose end, or whose time-out, is prepared."""
    committed: frozenset[str] = frozenset()
    """Transactions whose own commit was decided in the log."""


@attrs.frozen
class Span:
    """A producer's records in a partition from the first to the marker that ends them, if any: a transaction there."""

    producer_id: int
    producer_epoch: int
    records: tuple[str, ...]
    offsets: tuple[int, ...]
    marker: Marker | None = None
    cause: str = ""
    marker_at: int = -1


@lru_cache(maxsize=REMEMBERED)
def spans(log: PartitionLog) -> tuple[Span, ...]:
    """Return the transactions of a log as its batches tell them, by their markers, the open ones last."""
    open_: dict[int, Span] = {}
    found = []
    for batch in log.batches:
        known = open_.get(batch.producer_id)
        if batch.marker is None:
            if batch.is_transactional:
                before = known or Span(batch.producer_id, batch.producer_epoch, (), ())
                at = tuple(batch.base_offset + n for n in range(len(batch.records)))
                open_[batch.producer_id] = attrs.evolve(
                    before, records=before.records + tuple(map(text_of, batch.records)), offsets=before.offsets + at
                )
        elif known is not None:
            cause = batch.records[0]
            ended = attrs.evolve(known, marker=batch.marker, cause=cause.transaction, marker_at=batch.base_offset)
            found.append(ended)
            del open_[batch.producer_id]
    return (*found, *(open_[producer_id] for producer_id in sorted(open_)))


@lru_cache(maxsize=REMEMBERED)
def committed_offsets(log: PartitionLog) -> FrozenMap[Key, int]:
    """Return each group's offsets by the replicated part of an offsets log: of the last committed record, by its place.
    """
    last: dict[Key, tuple[int, int | None]] = {}
    staged: dict[int, list[tuple[int, OffsetRecord]]] = {}
    for batch in batches_between(log, 0, log.high_watermark):
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
    return FrozenMap((key, found) for key, (_, found) in last.items() if found is not None)
