"""What a client hears, as an observer of the wire notes it; and the properties that a single answer can violate."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import Any

import attrs

from harness.model import FrozenMap
from kafka_proto.broker.coordinator.transaction import TransactionMetadata
from kafka_proto.broker.ghosts import Noted, Span
from kafka_proto.cluster import guarantees
from kafka_proto.errors import BY_NAME
from kafka_proto.gateway import offer
from kafka_proto.gateway.codec import Fields
from kafka_proto.gateway.connection import WireRequest
from kafka_proto.gateway.observed import (
    NOBODY,
    AcknowledgedBatch,
    Heard,
    LastRead,
    Ledger,
    Observed,
    Phase,
    Reading,
    header_of,
    number_of,
    produced,
    producer_of,
)
from kafka_proto.gateway.records import BatchHeader, read_header, split
from kafka_proto.log import NO_PRODUCER_EPOCH, Marker
from kafka_proto.requests import partition_name

Entries = Callable[[str], TransactionMetadata | None]
"""Returns what its coordinator has of a transactional id."""
FENCED = {BY_NAME[name].number: name for name in ("PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH")}
READ_COMMITTED = 1
ALL = -1
"""Acks: what fewer replicas have may be lost."""


def answered(seen: Observed, request: WireRequest, transaction: str, response: Fields, entries: Entries) -> Observed:
    """Return what is known after a client is sent an answer."""
    look = LOOKS.get(request.api_key)
    return seen if look is None else look(seen, request, transaction, response, entries)


def violated(seen: Observed, name: str, reason: str | None) -> Observed:
    """Note what an answer violates; the first reason of each property stays."""
    if reason is None or name in seen.broken:
        return seen
    return attrs.evolve(seen, broken=seen.broken.set(name, reason))


def _produced(seen: Observed, request: WireRequest, transaction: str, response: Fields, entries: Entries) -> Observed:
    is_promised = request.message["acks"] == ALL
    sent = {(name, index): data for name, index, data in produced(request.message)} if is_promised else {}
    for topic in response["responses"]:
        for partition in topic["partition_responses"]:
            if partition["error_code"] == 0 and is_promised:
                name, index = topic["name"], partition["index"]
                heard = AcknowledgedBatch(partition_name(name, index), partition["base_offset"], transaction,
                                          number_of(header_of(sent.get((name, index)))))
                seen = attrs.evolve(seen, acknowledged=seen.acknowledged.add(heard))
            seen = _fenced(seen, request, partition["error_code"], entries)
    return seen


def _ended(seen: Observed, request: WireRequest, transaction: str, response: Fields, entries: Entries) -> Observed:
    if response["error_code"] != 0:
        return _fenced(seen, request, response["error_code"], entries)
    committed = bool(request.message["committed"])
    seen = attrs.evolve(seen, heard=seen.heard.add(Heard(transaction, committed)))
    key = str(request.message["producer_id"])
    doing = tuple(attrs.evolve(each, phase=Phase.ENDED) if each.transaction == transaction else each
                  for each in seen.producers.get(key, ()))
    return attrs.evolve(seen, producers=seen.producers.set(key, doing))


def _added(seen: Observed, request: WireRequest, transaction: str, response: Fields, entries: Entries) -> Observed:
    return _fenced(seen, request, response.get("error_code", 0), entries)


def _fenced(seen: Observed, request: WireRequest, error: int, entries: Entries) -> Observed:
    owner = producer_of(request)
    return seen if owner is None or error not in FENCED else fenced(seen, owner, error, entries)


def fenced(seen: Observed, owner: tuple[str, int, int], error: int, entries: Entries) -> Observed:
    """P7: a producer is fenced only where its coordinator has another epoch for its transactional id."""
    tid, producer_id, epoch = owner
    entry = entries(tid)
    if entry is None or (entry.producer_id == producer_id and entry.producer_epoch < epoch):
        return seen  # no client was given that epoch
    known = ((entry.producer_id, entry.producer_epoch),)
    return violated(seen, "FencedForAReason", guarantees.fenced_for_a_reason(
        tid, FENCED[error], (producer_id, epoch), known))


@attrs.frozen
class ReadRecords:
    """What a reader is sent of a partition."""

    batches: tuple[BatchHeader, ...]
    last_stable_offset: int
    aborted: frozenset[tuple[int, int]]
    """Producer ids and first offsets, as listed."""
    is_committed: bool
    """Whether it reads committed records only."""


def reads(request: WireRequest, response: Fields) -> Iterator[tuple[str, ReadRecords]]:
    """Yield what a response has for a reader, by partition."""
    is_committed = request.message["isolation_level"] == READ_COMMITTED
    for topic in response["responses"]:
        for partition in topic["partitions"]:
            if partition["records"]:
                listed = {(txn["producer_id"], txn["first_offset"]) for txn in partition["aborted_transactions"] or ()}
                yield partition_name(topic["topic"], partition["partition_index"]), ReadRecords(
                    tuple(map(read_header, split(partition["records"]))), partition["last_stable_offset"],
                    frozenset(listed), is_committed)


def _fetched(seen: Observed, request: WireRequest, transaction: str, response: Fields, entries: Entries) -> Observed:
    """P4 and P9; what each reader has got is noted, and for R5 the furthest that any of them has."""
    for name, got in reads(request, response):
        last, known = got.batches[-1], seen.reads.get(name)
        if known is None or known.offset < last.base_offset:
            seen = attrs.evolve(seen, reads=seen.reads.set(name, LastRead(last.base_offset, last.crc)))
        seen = read(_reading(seen, request.client_id or NOBODY, name, got), name, got)
    return seen


def _reading(seen: Observed, client: str, name: str, got: ReadRecords) -> Observed:
    first, last = got.batches[0].base_offset, got.batches[-1]
    end = last.base_offset + last.last_offset_delta + 1
    mine = seen.reading.get(client, FrozenMap())
    known = mine.get(name, Reading(first, end, got.is_committed))
    now = Reading(min(known.first, first), max(known.end, end), got.is_committed)
    return attrs.evolve(seen, reading=seen.reading.set(client, mine.set(name, now)))


def read(seen: Observed, name: str, got: ReadRecords) -> Observed:
    """P4 and P9: the records that a reader of committed records is sent."""
    ledger = seen.ledgers.get(name, Ledger())
    for batch in got.batches if got.is_committed else ():
        is_transactional = batch.is_transactional and not batch.is_control and batch.producer_id >= 0
        sent = (_sent(ledger, batch.producer_id, batch.base_offset),) if is_transactional else ()
        seen = violated(seen, "ReadBound", guarantees.read_bound(
            f"a reader of committed records of {name}", batch.base_offset + batch.last_offset_delta,
            got.last_stable_offset, got.aborted, ((name, record, span) for record, span in sent)))
        for record, span in sent:
            if span.marker is not Marker.ABORT:
                committed = () if span.marker is None else (span.cause,)
                seen = violated(seen, "NoIntermediateRead", guarantees.no_intermediate_read(
                    "a reader of committed records", ((name, record),), committed))
    return seen


def _sent(ledger: Ledger, producer_id: int, offset: int) -> tuple[Noted, Span]:
    """Return what a producer has at an offset, and the transaction that it is in there."""
    first = ledger.ended.first_after(offset, key=attrgetter("marker_at"))
    ended = (span for span in ledger.ended.between(first, len(ledger.ended)) if span.producer_id == producer_id)
    span = next(ended, ledger.open.get(producer_id, Span(producer_id, NO_PRODUCER_EPOCH)))
    unknown = Noted(offset, "a transaction that is open")
    return next((record for record in span.records if record.offset == offset), unknown), span


LOOKS: dict[int, Callable[[Observed, WireRequest, str, Any, Entries], Observed]] = {
    offer.PRODUCE: _produced, offer.END_TXN: _ended, offer.ADD_OFFSETS_TO_TXN: _added, offer.FETCH: _fetched,
}
