"""An application that reads, transforms and writes: each of its inputs has exactly one committed output.

It is declared in words, as `orders to payments group=billing by=key`: topics that it reads, topics that it writes, its
group, and what an output has of its input. What the logs hold decides: the group's offsets, the outputs, and the
transaction of each. Exactly once means that both are committed by the same one.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import attrs

from harness.model import FrozenMap, Reason, Refusal, Value, absent_if_none
from kafka_proto.broker.ghosts import SentRecords
from kafka_proto.broker.group.coordinator import OffsetRecord
from kafka_proto.gateway import offer
from kafka_proto.gateway.connection import WireRequest
from kafka_proto.gateway.inputs import DeclaredApplication
from kafka_proto.gateway.records import WireRecord, read_header, read_records
from kafka_proto.log import Marker, PartitionLog, RecordBatch, batches_between
from kafka_proto.requests import OFFSETS_PARTITION, partition_name, topic_of

DECLARED = re.compile(r"(\S+) to (\S+) group=(\S+)(?: by=(key|value|header:\S+))?")
JOINING = (offer.JOIN_GROUP, offer.CONSUMER_GROUP_HEARTBEAT)
AN_EXAMPLE = "orders to payments group=billing by=key"


@attrs.frozen
class GoneRecord:
    """A committed input or output of an application, by its number, that was deleted."""

    application: int
    is_input: bool
    identity: Value
    """By which outputs name an input."""
    partition: str
    offset: int
    transaction: str


@attrs.frozen
class Watched:
    """The applications of a session, and what is seen of their reading."""

    applications: tuple[DeclaredApplication, ...]
    readers: FrozenMap[str, str] = FrozenMap()
    """The group that each client, by its id, is a member of or asks for its offsets."""
    first: FrozenMap[str, int] = FrozenMap()
    """By group and partition, as `billing orders-0`: the first offset that a reader asked for."""
    gone: tuple[GoneRecord, ...] | None = attrs.field(default=None, metadata=absent_if_none())
    """Inputs and outputs that were deleted, while others with their identity are there."""


def watched(applications: tuple[DeclaredApplication, ...] | None) -> Watched | None:
    """Return what is seen of applications at the beginning; None if there are none."""
    return Watched(applications) if applications else None


def declared(texts: str | Iterable[str]) -> tuple[DeclaredApplication, ...]:
    """Return applications as they are declared, several between semicolons. Raises Refusal."""
    found = []
    for text in (part.strip() for each in ([texts] if isinstance(texts, str) else texts) for part in each.split(";")):
        match = DECLARED.fullmatch(text)
        if match is None:
            raise Refusal(f"an application should be declared as {AN_EXAMPLE!r}, with by=key, by=value or "
                          f"by=header:NAME, not {text!r}")
        inputs, outputs = (tuple(names.split(",")) for names in match.group(1, 2))
        found.append(DeclaredApplication(inputs, outputs, match[3], match[4] or "key"))
    return tuple(found)


def asked(seen: Watched, request: WireRequest) -> Watched:
    """Note who is a group's reader, and from where it reads first."""
    message, client = request.message, request.client_id or ""
    groups = {application.group for application in seen.applications}
    if request.api_key in JOINING or request.api_key == offer.OFFSET_FETCH:
        named = [row["group_id"] for row in message.get("groups", (message,))]
        joined = next((name for name in named if name in groups), seen.readers.get(client))
        return seen if joined is None else attrs.evolve(seen, readers=seen.readers.set(client, joined))
    group = seen.readers.get(client)
    if request.api_key != offer.FETCH or group is None:
        return seen
    for topic in message["topics"]:
        for row in topic["partitions"]:
            key = f"{group} {partition_name(topic['topic'], row['partition'])}"
            if key not in seen.first:
                seen = attrs.evolve(seen, first=seen.first.set(key, row["fetch_offset"]))
    return seen


class CommittedRecord(NamedTuple):
    """A committed record, and the transaction that it is of, if any."""

    partition: str
    offset: int
    transaction: str

    def __str__(self) -> str:
        return f"{self.partition} offset {self.offset}"


def exactly_once(seen: Watched, logs: Mapping[str, PartitionLog]) -> Reason:
    """P12: say which input has no output, more than one, or one that is not committed with its offset."""
    found = [wrong for number in range(len(seen.applications)) for wrong in _wrong(*_records(seen, number, logs), logs,
                                                                                  seen.applications[number].group)]
    return min(found, key=lambda wrong: wrong.needs_a_crash).reason if found else None


class Wrong(NamedTuple):
    """What is wrong with an input: for good, or only if the application crashes between two commits."""

    reason: str
    needs_a_crash: bool = False


Records = dict[Any, list[CommittedRecord]]
"""By identity."""


def _records(seen: Watched, number: int, logs: Mapping[str, PartitionLog]) -> tuple[Records, Records]:
    """Return the inputs of an application and its outputs."""
    found: tuple[Records, Records] = {}, {}
    gone = (each for each in seen.gone or () if each.application == number)
    there = (each for p, log in logs.items() for each in _of_partition(seen, number, p, log))
    for each in (*gone, *there):
        written = CommittedRecord(each.partition, each.offset, each.transaction)
        found[not each.is_input].setdefault(each.identity, []).append(written)
    return found


def _of_partition(seen: Watched, number: int, p: str, log: PartitionLog) -> Iterator[GoneRecord]:
    """Yield what an application has read, or written, of a partition, as it is remembered once it is gone."""
    application, topic = seen.applications[number], topic_of(p)
    first = seen.first.get(f"{application.group} {p}", log.log_end_offset)
    for written, record in committed(p, log) if topic in (*application.inputs, *application.outputs) else ():
        if topic in application.inputs and written.offset >= first:
            yield GoneRecord(number, True, _identity(application, written, record), *written)
        if topic in application.outputs:
            yield GoneRecord(number, False, _input_of(application, record), *written)


def deleted(seen: Watched, before: Mapping[str, PartitionLog], logs: Mapping[str, PartitionLog]) -> Watched:
    """Remember what is gone of some logs, while inputs or outputs with its identity are left.

    An input and an output that are both gone were judged, and are forgotten together.
    """
    kept: list[GoneRecord] = []
    for number in range(len(seen.applications)):
        gone = [each for each in seen.gone or () if each.application == number]
        rows = [each for p, log in logs.items() for each in _of_partition(seen, number, p, log)]
        there = {(each.partition, each.offset) for each in rows}
        gone += (each for p, log in before.items() for each in _of_partition(seen, number, p, log)
                 if (p, each.offset) not in there)
        left = {each.identity for each in rows}
        paired = Counter((each.identity, each.is_input) for each in gone)
        for each in gone if left else ():
            if each.identity not in left:
                continue
            if paired[each.identity, not each.is_input] > 0:
                paired[each.identity, not each.is_input] -= 1
            else:
                kept.append(each)
    return attrs.evolve(seen, gone=tuple(kept) or None)


def _wrong(inputs: Records, outputs: Records, logs: Mapping[str, PartitionLog], group: str) -> Iterator[Wrong]:
    moves = _moves(group, logs)
    for identity, read in inputs.items():
        wrong = _judged(read, outputs.get(identity, []), moves)
        yield from () if wrong is None else (wrong,)


def _judged(
    read: list[CommittedRecord], done: list[CommittedRecord], moves: Mapping[str, list[tuple[int, str]]]
) -> Wrong | None:
    """Say what is wrong with the inputs of one identity, which is one input as a rule."""
    by = [next((of for offset, of in moves.get(each.partition, ()) if offset > each.offset), None) for each in read]
    if len(done) > len(read):
        return Wrong(f"{read[0]} was done twice: {', '.join(f'{each} {_of(each.transaction)}' for each in done)}" + (
            "" if by[0] is None else f"; its offset was committed {_of(by[0])}"))
    if len(done) < len(read) and None not in by:
        return Wrong(f"{read[0]} was skipped: its offset was committed {_of(by[0])}, and it has no committed output")
    if len(read) > 1 or not done or done[0].transaction == by[0]:
        return None
    where = "and its offset is not" if by[0] is None else f"its offset {_of(by[0])}"
    return Wrong(f"{read[0]}: its output {done[0]} was committed {_of(done[0].transaction)}, {where}; a crash between "
                 "the two would do it twice, or skip it", needs_a_crash=True)


def _of(transaction: str | None) -> str:
    return f"by {transaction}" if transaction else "outside a transaction"


def _input_of(application: DeclaredApplication, record: WireRecord) -> Any:
    """Return what an output says of its input."""
    if application.by in ("key", "value"):
        return getattr(record, application.by)
    name = application.by.partition(":")[2]
    return next(((value or b"").decode(errors="replace") for header, value in record.headers if header == name), None)


def _identity(application: DeclaredApplication, written: CommittedRecord, record: WireRecord) -> Any:
    """Return that by which outputs name an input."""
    if application.by in ("key", "value"):
        return getattr(record, application.by)
    return f"{written.partition}@{written.offset}"


def committed(name: str, log: PartitionLog) -> Iterator[tuple[CommittedRecord, WireRecord]]:
    """Yield the records of a log that readers of committed ones get, in the order in which they become visible."""
    for batch in _visible(log):
        (sent,) = batch.records
        if isinstance(sent, SentRecords):
            for record in read_records(sent.data, read_header(sent.data)):
                yield CommittedRecord(name, batch.base_offset + record.offset_delta, sent.transaction), record


def _visible(log: PartitionLog) -> Iterator[RecordBatch]:
    """Yield the batches of a log without its markers, those of a transaction with its commit."""
    open_: dict[int, list[RecordBatch]] = {}
    for batch in batches_between(log, 0, log.high_watermark):
        if batch.marker is not None:
            ended = open_.pop(batch.producer_id, [])
            yield from ended if batch.marker is Marker.COMMIT else ()
        elif batch.is_transactional:
            open_.setdefault(batch.producer_id, []).append(batch)
        else:
            yield batch


def _moves(group: str, logs: Mapping[str, PartitionLog]) -> dict[str, list[tuple[int, str]]]:
    """Return how a group's offsets moved, by partition: each offset with the transaction that committed it, if any."""
    found: dict[str, list[tuple[int, str]]] = {}
    for batch in _visible(logs[OFFSETS_PARTITION]) if OFFSETS_PARTITION in logs else ():
        for record in batch.records:
            if isinstance(record, OffsetRecord) and record.group_id == group and record.offset is not None:
                found.setdefault(record.partition, []).append((record.offset, record.transaction or ""))
    return found
