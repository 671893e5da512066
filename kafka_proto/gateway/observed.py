"""What an observer of the wire knows, and no broker reads: which transaction everything belongs to.

A client finishes one transaction before it begins the next, and what it sends comes here in that order, before any
fault delays it. So a request belongs to its producer's transaction when it arrives: `app#3` is the third one of the
transactional id `app`. It goes with the request as its ghost: brokers note the transaction of a batch, and the one that
caused a marker.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from enum import StrEnum
from operator import attrgetter
from typing import Any

import attrs

from harness.model import FrozenMap, absent_if_none
from kafka_proto.broker.ghosts import Noted, SentRecords, Span, ended_by
from kafka_proto.broker.group.coordinator import OffsetRecord
from kafka_proto.gateway import offer
from kafka_proto.gateway.applications import Watched, asked
from kafka_proto.gateway.connection import WireRequest
from kafka_proto.gateway.records import BadBatch, BatchHeader, read_header, split
from kafka_proto.log import PartitionLog, RecordBatch, batches_between, beginning
from kafka_proto.log.chunks import NOTHING, Chunks, chunks

KEPT_EPOCHS = 3
"""Of each producer id, with the transaction that each is in: older ones are those of producers that are fenced."""
ADDING = (offer.ADD_PARTITIONS_TO_TXN, offer.ADD_OFFSETS_TO_TXN, offer.TXN_OFFSET_COMMIT)
BASE_OFFSET = attrgetter("base_offset")
NOBODY = ""
"""The transaction of what is not of one."""


class Phase(StrEnum):
    OPEN = "open"
    ENDING = "ending"
    ENDED = "ended"


@attrs.frozen
class Doing:
    """The transaction that a producer of an epoch is in, or was in last."""

    epoch: int
    transaction: str
    phase: Phase
    committed: bool = False


@attrs.frozen
class Ledger:
    """A partition's transactions as they were: those that are open by producer id, and those that ended, in order."""

    open: FrozenMap[int, Span] = FrozenMap()
    ended: Chunks[Span] = NOTHING
    end: int = 0
    """The offset up to which the partition was looked at."""
    gone: PartitionLog | None = attrs.field(default=None, metadata=absent_if_none())
    """What is known of producers by batches that were deleted or compacted, up to its end."""


@attrs.frozen
class AcknowledgedBatch:
    """A batch whose producer was told that it is in the log."""

    partition: str
    offset: int
    transaction: str
    number: tuple[int, int, int] | None = attrs.field(default=None, metadata=absent_if_none())
    """Of an idempotent producer's, see `number_of`."""

    def __str__(self) -> str:
        return f"offset {self.offset}"


@attrs.frozen
class LastRead:
    """A batch that a consumer was sent: its offset and its checksum, which is of all that its producer wrote."""

    offset: int
    crc: int


@attrs.frozen
class Heard:
    """How a transaction ended, as its producer heard."""

    transaction: str
    committed: bool


@attrs.frozen
class Reading:
    """From which offset up to which a client was sent records of a partition, and whether only committed ones."""

    first: int
    end: int
    committed: bool


@attrs.frozen
class Observed:
    """All of it. Keys of producers are their ids as text."""

    producers: FrozenMap[str, tuple[Doing, ...]] = FrozenMap()
    counts: FrozenMap[str, int] = FrozenMap()
    """By transactional id, how many transactions it began."""
    ledgers: FrozenMap[str, Ledger] = FrozenMap()
    acknowledged: Chunks[AcknowledgedBatch] = NOTHING
    heard: Chunks[Heard] = NOTHING
    broken: FrozenMap[str, str] = FrozenMap()
    """What an answer violated: the first reason by property."""
    reads: FrozenMap[str, LastRead] = FrozenMap()
    """By partition: the furthest that a consumer was sent."""
    watched: Watched | None = attrs.field(default=None, metadata=absent_if_none())
    """The applications that are to process each input exactly once."""
    clients: tuple[str, ...] = ()
    """The ids of clients in the order in which they came."""
    reading: FrozenMap[str, FrozenMap[str, Reading]] = FrozenMap()
    """By client and partition."""


def arrived(seen: Observed, request: WireRequest) -> tuple[Observed, str]:
    """Return the transaction that a request of a client is of, as it arrives."""
    if seen.watched is not None:
        seen = attrs.evolve(seen, watched=asked(seen.watched, request))
    client = request.client_id or NOBODY
    if client not in seen.clients:
        seen = attrs.evolve(seen, clients=(*seen.clients, client))
    owner = producer_of(request)
    if owner is None:
        return seen, NOBODY
    tid, producer_id, epoch = owner
    key = str(producer_id)
    known = seen.producers.get(key, ())
    now = next((doing for doing in known if doing.epoch == epoch), None)
    ends = request.api_key == offer.END_TXN
    committed = ends and bool(request.message["committed"])
    goes_on = now is not None and (
        now.phase is not Phase.ENDED or (ends and now.committed == committed))
    if now is None or not goes_on:
        count = seen.counts.get(tid, 0) + 1
        seen = attrs.evolve(seen, counts=seen.counts.set(tid, count))
        now = Doing(epoch, f"{tid}#{count}", Phase.OPEN)
    if ends and now.phase is not Phase.ENDED:
        now = attrs.evolve(now, phase=Phase.ENDING, committed=committed)
    others = tuple(doing for doing in known if doing.epoch != epoch)[1 - KEPT_EPOCHS :]
    return attrs.evolve(seen, producers=seen.producers.set(key, (*others, now))), now.transaction


def producer_of(request: WireRequest) -> tuple[str, int, int] | None:
    """Return transactional id, producer id and epoch of a request in a transaction; None if it is in none."""
    message = request.message
    if request.api_key == offer.PRODUCE:
        tid = message["transactional_id"]
        headers = (header for _, _, data in produced(message) if (header := header_of(data)) is not None)
        found = next(((h.producer_id, h.producer_epoch) for h in headers if h.is_transactional), None)
        return None if tid is None or found is None else (tid, *found)
    if request.api_key not in (*ADDING, offer.END_TXN):
        return None
    is_adding = request.api_key == offer.ADD_PARTITIONS_TO_TXN
    if is_adding and request.version >= 4:
        return None
    before = "v3_and_below_" if is_adding else ""
    return message[f"{before}transactional_id"], message[f"{before}producer_id"], message[f"{before}producer_epoch"]


def produced(message: Any) -> Iterator[tuple[str, int, bytes | None]]:
    """Yield topic, partition and batch of each part of a Produce request."""
    for topic in message["topic_data"]:
        for partition in topic["partition_data"]:
            yield topic["name"], partition["index"], partition["records"]


def number_of(batch: BatchHeader | RecordBatch | None) -> tuple[int, int, int] | None:
    """Return producer id, epoch and first sequence of a batch, which no other one has; None if it has no sequence."""
    if batch is None or batch.producer_id < 0 or batch.base_sequence < 0:
        return None
    return batch.producer_id, batch.producer_epoch, batch.base_sequence


def header_of(data: bytes | None) -> Any:
    """Return the header of the first batch; None if there is no batch."""
    try:
        return next((read_header(batch) for batch in split(data or b"")), None)
    except BadBatch:
        return None


def logged(seen: Observed, name: str, log: PartitionLog) -> Observed:
    """Note the batches of a partition that were committed since it was looked at."""
    ledger = seen.ledgers.get(name, Ledger())
    if log.high_watermark <= ledger.end:
        return seen
    open_, ended = dict(ledger.open), ledger.ended
    first = log.batches.first_after(ledger.end - 1, key=BASE_OFFSET)
    for batch in log.batches.between(first, len(log.batches)):
        if batch.base_offset >= log.high_watermark:
            break
        span = ended_by(batch, open_, noted_whole)
        ended = ended if span is None else ended.add(span)
    now = attrs.evolve(ledger, open=FrozenMap(open_), ended=ended, end=log.high_watermark)
    return attrs.evolve(seen, ledgers=seen.ledgers.set(name, now))


def noted_whole(batch: RecordBatch) -> tuple[Noted, ...]:
    """Return a batch without looking into its records."""
    ghost = batch.records[0]
    transaction = ghost.transaction if isinstance(ghost, SentRecords | OffsetRecord) else None
    return (Noted(batch.base_offset, transaction or NOBODY),)


@attrs.frozen
class Shortened:
    """A log of which something is gone, as it was and as it is; all that is gone was below an offset."""

    before: PartitionLog
    after: PartitionLog
    end: int


def shortened(seen: Observed, found: Mapping[str, Shortened]) -> Observed:
    """Forget what is gone of logs, but for transactions that are under way anywhere."""
    going = {each.transaction for doing in seen.producers.values() for each in doing if each.phase is not Phase.ENDED}
    going |= {record.transaction for each in seen.ledgers.values() for span in each.open.values()
              for record in span.records}
    there = {name: {batch.base_offset for batch in each.after.batches} for name, each in found.items()}

    def stays(name: str, offset: int, *transactions: str) -> bool:
        return name not in found or offset >= found[name].end or offset in there[name] or not going.isdisjoint(
            transactions)

    ledgers = dict(seen.ledgers)
    for name, each in found.items():
        ledger = ledgers.get(name, Ledger())
        ended = [span for span in ledger.ended
                 if stays(name, span.marker_at, *(record.transaction for record in span.records))]
        gone = batches_between(each.before, 0, each.end)
        made = beginning(ledger.gone, gone, each.after.log_start_offset)
        ledgers[name] = attrs.evolve(ledger, ended=chunks(ended), gone=made)
    known = going | {record.transaction for ledger in ledgers.values() for span in ledger.ended
                     for record in span.records}
    return attrs.evolve(
        seen, ledgers=FrozenMap(ledgers), heard=chunks(each for each in seen.heard if each.transaction in known),
        acknowledged=chunks(ack for ack in seen.acknowledged if stays(ack.partition, ack.offset, ack.transaction)))


def without(seen: Observed, gone: Collection[str]) -> Observed:
    """Forget partitions of a topic that was deleted: another of its name may come."""
    ledgers = FrozenMap((name, ledger) for name, ledger in seen.ledgers.items() if name not in gone)
    kept = chunks(each for each in seen.acknowledged if each.partition not in gone)
    reads = FrozenMap((name, read) for name, read in seen.reads.items() if name not in gone)
    return attrs.evolve(seen, ledgers=ledgers, acknowledged=kept, reads=reads)
