"""What a history knows and no protocol code reads: which of the application's transactions everything belongs to.

A record is the text `c1.2#3`: the third of its producer's second transaction. A marker's record names the transaction
whose end, or whose time-out, caused it.
"""

from __future__ import annotations

from functools import lru_cache

import attrs

from harness.model import FrozenMap
from kafka_proto.log import Marker, PartitionLog


def record(transaction: str, number: int) -> str:
    """Return the record that an application writes."""
    return f"{transaction}#{number}"


def transaction_of(record: str) -> str:
    """Return the transaction of a record."""
    return record.partition("#")[0]


@attrs.frozen
class Cause:
    """The record of a marker: its type, as Kafka's, and the transaction that caused it."""

    marker: Marker
    transaction: str


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


@lru_cache(maxsize=20_000)
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
                    before, records=before.records + batch.records, offsets=before.offsets + at
                )
        elif known is not None:
            cause = batch.records[0]
            ended = attrs.evolve(known, marker=batch.marker, cause=cause.transaction, marker_at=batch.base_offset)
            found.append(ended)
            del open_[batch.producer_id]
    return (*found, *(open_[producer_id] for producer_id in sorted(open_)))
