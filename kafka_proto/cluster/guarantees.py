"""P1 to P11, what transactions guarantee, each decided here alone: of a simulation, behind a wire, of a broker's logs.

Pure functions of what was seen: what markers ended in partitions, what was acknowledged, what applications were told,
what brokers keep. Each returns nothing, or a reason that names actor and place, so that it can be checked by hand.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import TypeVar

from harness.model import Reason
from kafka_proto.broker.coordinator.transaction import PREPARED, TransactionMetadata, TxnState
from kafka_proto.broker.ghosts import Noted, Span
from kafka_proto.broker.group.coordinator import Key, Offsets
from kafka_proto.cluster.reasons import OF_FATAL_CODES, REASONS, RefusalReason
from kafka_proto.log import NO_PRODUCER_ID, Marker, RecordBatch

T = TypeVar("T")
Ends = Iterable[tuple[str, Span]]
"""Transactions in partitions."""
IsAcknowledged = Callable[[str, Noted], bool]
"""Whether a record of a partition was acknowledged to its producer."""
ENDED = {"commit": "committed", "abort": "aborted"}


def first(reasons: Iterable[Reason]) -> Reason:
    """Return the first reason that there is."""
    return next((reason for reason in reasons if reason is not None), None)


def marker_attribution(partition: str, spans: Iterable[Span], ended: Collection[str] | None = None) -> Reason:
    """P1: a marker closes only what is of the transaction whose end, or time-out, caused it.

    If its cause is not known, `ended` are the transactions that applications ended: it was one of those.
    """
    for span in spans:
        causes = (span.cause,) if ended is None else ended
        foreign = [record for record in span.records if record.transaction not in causes]
        if span.marker is None or not foreign:
            continue
        marker = f"the {span.marker} of {partition} at offset {span.marker_at}"
        if ended is not None:
            return f"{marker} ends {foreign[0]}, of a transaction that the application has not ended"
        names = (record.text or f"{record} of {record.transaction}" for record in foreign)
        return f"{marker} was caused by {span.cause}, but ends {', '.join(names)}"
    return None


def _ended(ends: Ends) -> Iterator[tuple[str, Noted, str, Span]]:
    """Yield the records that markers ended, each with its partition, and how."""
    for partition, span in ends:
        if span.marker is not None:
            outcome = span.marker.lower()
            yield from ((partition, record, outcome, span) for record in span.records)


def atomicity(ends: Ends, is_acknowledged: IsAcknowledged) -> Reason:
    """P2: of a transaction's acknowledged records all are committed or none."""
    found: dict[str, dict[str, str]] = {}
    for partition, record, outcome, span in _ended(ends):
        if is_acknowledged(partition, record):
            said = f"{record} of {partition} is {ENDED[outcome]} at offset {span.marker_at}"
            found.setdefault(record.transaction, {})[outcome] = said
    return first(f"of {transaction}, {said['commit']}, but {said['abort']}"
                 for transaction, said in sorted(found.items()) if len(said) > 1)


def acknowledged_outcome(who: str, ends: Ends, told: Mapping[str, str], is_acknowledged: IsAcknowledged) -> Reason:
    """P3: a transaction acknowledged as `commit` is not aborted, and one acknowledged as `abort` is never committed."""
    for partition, record, outcome, span in _ended(ends):
        heard = told.get(record.transaction, outcome)
        if heard != outcome and (outcome == "commit" or is_acknowledged(partition, record)):
            return (f"{who} was told that {record.transaction} is {ENDED[heard]}, but {record} of {partition} is "
                    f"{ENDED[outcome]} at offset {span.marker_at}")
    return None


def no_intermediate_read(reader: str, got: Iterable[tuple[str, Noted]], committed: Container[str]) -> Reason:
    """P4: a reader of committed records gets only those of transactions with a decided commit."""
    return first(f"{reader} got {record} of {partition}, but no commit of {record.transaction} was decided"
                 for partition, record in got if record.transaction not in committed)


def committed_is_read(
    reader: str, partition: str, position: int, seen: Sequence[str], readable: Iterable[Noted]
) -> Reason:
    """P4, the other way: a reader of committed records got each committed one that it is past, once and in order.

    `seen` are the texts that it got of a partition, `readable` the committed records of that, in order.
    """
    due = [record for record in readable if record.offset < position]
    for place, record in enumerate(due):
        if place >= len(seen) or seen[place] != record.text:
            got = f"got {seen[place]} instead" if place < len(seen) else "did not get it"
            return f"{reader} is past {record} of {partition}, which is committed at offset {record.offset}, and {got}"
    if len(seen) > len(due):
        return f"{reader} got {seen[len(due)]} of {partition}, which is not committed there, or was got before"
    return None


def no_hanging_transaction(partition: str, spans: Iterable[Span], entries: Iterable[TransactionMetadata]) -> Reason:
    """P5: a transaction that is open in a partition is under way at its coordinator, and lists the partition."""
    open_ = [span for span in spans if span.marker is None]
    known = tuple(entries) if open_ else ()
    return first(f"{span.records[0]} of {partition} is in a transaction of producer id {span.producer_id}, epoch "
                 f"{span.producer_epoch}, that is open there, but no coordinator has it under way"
                 for span in open_ if not any(_is_of(entry, span, partition) for entry in known))


def _is_of(entry: TransactionMetadata, span: Span, partition: str) -> bool:
    """Say whether a coordinator's entry is of the transaction that is open; its epoch grows when its end is prepared.

    By one where a fence or a time-out ends it, and from KIP-890 on at each end.
    """
    if entry.producer_id != span.producer_id or partition not in entry.partitions:
        return False
    if entry.state is TxnState.ONGOING:
        return entry.producer_epoch == span.producer_epoch
    return entry.state in PREPARED and entry.producer_epoch >= span.producer_epoch


def nothing_stays_open(
    partition: str, last_stable_offset: int, high_watermark: int, open_: Iterable[Span] = (),
    entries: Iterable[TransactionMetadata] = (),
) -> Reason:
    """P5 at rest: committed readers reach the end of each partition, or what they wait for is under way.

    `open_` are the transactions that are open there, `entries` what coordinators know, if that is known.
    """
    if last_stable_offset >= high_watermark:
        return None
    under_way = [entry for entry in entries if entry.state is TxnState.ONGOING]
    said = f"the last stable offset of {partition} is {last_stable_offset}, its high watermark {high_watermark}"
    starts = [high_watermark]
    for span in open_:
        starts.append(span.records[0].offset)
        if not any(_is_of(entry, span, partition) for entry in under_way):
            return (f"{said}: the transaction of {span.records[0]}, producer id {span.producer_id}, epoch "
                    f"{span.producer_epoch}, is open, and not under way")
    return f"{said}, and no transaction is open there" if last_stable_offset < min(starts) else None


def written_once(
    partition: str, found: Iterable[tuple[T, int]], known: dict[T, int] | None = None,
    was_there: Callable[[T], bool] = lambda written: False,
) -> Reason:
    """P6: nothing is in a partition twice; `known` is what was found before, and what is found is added to it.

    `was_there` says what was in the partition and is deleted.
    """
    at = {} if known is None else known
    for written, offset in found:
        if written in at:
            return f"{written} is in {partition} twice, at the offsets {at[written]} and {offset}"
        if was_there(written):
            return f"{written} is in {partition} at offset {offset}, and was there before the log began"
        at[written] = offset
    return None


def as_acknowledged(
    partition: str, acknowledged: Iterable[Iterable[tuple[T, int | None]]], place: Callable[[T], int | None],
    start: int = 0,
) -> Reason:
    """P6: what was acknowledged is where its producer was told, in the order in which it was written.

    Records come in that order, those of one producer or transaction together, each with the offset that its producer
    was told, if any. `place` says where each is. What was before `start`, where the log begins, may be nowhere, but
    nowhere else either.
    """
    for together in acknowledged:
        before: tuple[T, int] | None = None
        for written, told in together:
            at, said = place(written), f"{written} was acknowledged{'' if told is None else f' at offset {told}'}"
            if at is None and (told is None or told >= start):
                return f"{said}, but is not in {partition}"
            if told is not None and at not in (None, told):
                return f"{said} of {partition}, and is there at offset {at}"
            now = told if at is None else at
            assert now is not None
            if before is not None and before[1] > now:
                return f"{before[0]} was written before {written}, but is after it in {partition}"
            before = written, now
    return None


def acknowledged_in_order(
    partition: str, acknowledged: Iterable[tuple[str, int]], waiting: Iterable[tuple[str, int]],
    is_there: Callable[[str], bool],
) -> Reason:
    """P6: what is acknowledged is in a partition after all that was written before it, and still waits for an answer.

    Records of one producer, or transaction, come with their numbers.
    """
    last, number = max(acknowledged, key=itemgetter(1), default=("", 0))
    return first(f"{last} was acknowledged, but {text}, which was written before it, is not in {partition}"
                 for text, before in waiting if before < number and not is_there(text))


def fenced_for_a_reason(
    who: str, error: str, mine: tuple[int, int], known: Iterable[tuple[int, int]]
) -> Reason:
    """P7: a producer is fenced only where a coordinator has another producer id for it, or a newer epoch."""
    if any(producer_id != mine[0] or epoch > mine[1] for producer_id, epoch in known):
        return None
    return f"{who} failed by {error} with producer id {mine[0]}, epoch {mine[1]}, but nobody has fenced it"


def fatal_for_a_reason(who: str, error: str, mine: tuple[int, int], known: Iterable[tuple[int, int]]) -> Reason:
    """P7: the code that makes a producer unusable says what has happened to it.

    `REASONS` has what that is. To a client that keeps the rules nothing else happens for good, and one without a
    producer id cannot have been fenced.
    """
    others = [each for each in known if each[0] != mine[0]]
    newer = [each for each in known if each[0] == mine[0] and each[1] > mine[1]]
    happened = {RefusalReason.FENCED: others or newer, RefusalReason.REPLACED: others}
    reasons = REASONS.get((OF_FATAL_CODES, error), ()) if mine[0] != NO_PRODUCER_ID else ()
    if any(happened.get(each) for each in reasons):
        return None
    said = f"{who} is unusable by {error} with producer id {mine[0]}, epoch {mine[1]}"
    if newer:
        return f"{said}, though what happened is a fence: the coordinator has epoch {max(newer)[1]}"
    return f"{said}, though nothing happened that this code is for"


def nothing_after_a_fence(partition: str, batches: Iterable[RecordBatch], told: Mapping[int, int]) -> Reason:
    """P7: once a producer was told its epoch, nothing of an earlier one is appended; `told` is the newest by id."""
    return first(f"{batch.records[0]} of producer id {batch.producer_id}, epoch {batch.producer_epoch}, whose epoch "
                 f"{told[batch.producer_id]} somebody has, is appended to {partition}"
                 for batch in batches
                 if batch.marker is None and batch.producer_epoch < told.get(batch.producer_id, -1))


def is_not_answered(who: str, operation: str, mine: tuple[int, int], awaited: str) -> str:
    """P8 at rest: tell of an application without an answer, by its producer id and epoch; `awaited` says of whom."""
    return f"{who} waits for {operation} with producer id {mine[0]}, epoch {mine[1]}: {awaited}"


def unmarked(tid: str, entry: TransactionMetadata) -> str:
    """Say what a prepared end lacks as far as its coordinator alone tells."""
    if not entry.partitions:
        return "the entry that it is complete is missing"
    return f"no marker is acknowledged of {', '.join(entry.partitions)}"


def prepared_is_completed(
    entries: Iterable[tuple[str, TransactionMetadata]], waiting: Container[str] = (),
    lacks: Callable[[str, TransactionMetadata], str] = unmarked,
) -> Reason:
    """P8 at rest: what is prepared is completed, but for the transactional ids whose markers are on their way.

    `lacks` says what is missing.
    """
    return first(f"{tid} stays in {entry.state} with producer id {entry.producer_id}, epoch {entry.producer_epoch}: "
                 f"{lacks(tid, entry)}" for tid, entry in entries
                 if entry.state in PREPARED and tid not in waiting)


def read_bound(
    reader: str, last_offset: int, last_stable_offset: int, listed: Container[tuple[int, int]],
    sent: Iterable[tuple[str, Noted, Span]],
) -> Reason:
    """P9: an answer ends below the last stable offset and lists each aborted transaction that overlaps it.

    `sent` are its records with partition and transaction; `listed` has the producer ids and first offsets.
    """
    if last_offset >= last_stable_offset:
        return f"{reader} is sent records up to offset {last_offset}, the last stable offset is {last_stable_offset}"
    return first(f"{reader} is sent {record} of {partition} without being told that it is aborted"
                 for partition, record, span in sent
                 if span.marker is Marker.ABORT and (span.producer_id, span.records[0].offset) not in listed)


def offsets_as_committed(expected: Mapping[Key, int], replayed: Offsets, live: Offsets) -> Reason:
    """P10: a group's offset is that of the last committed record; a replay of the log gives the live view."""
    for (group, partition), known in live.committed.items():
        last = expected.get((group, partition))
        if last != known.offset:
            return f"the offset of {group} in {partition} is {known.offset}, the last committed one is {last}"
    for group, partition in expected:
        if (group, partition) not in live.committed:
            return f"an offset of {group} in {partition} is committed, but nobody knows it"
    if replayed != live:
        return "a replay of the offsets log gives other offsets than there are"
    return None


def producer_state_grows(
    partition: str, batches: Iterable[RecordBatch], known: tuple[dict[int, int], dict[int, int]] | None = None
) -> Reason:
    """P11: what a partition knows of a producer's epoch, and of its coordinator's, never becomes older.

    `known` is what earlier batches told of both, and is brought up to date.
    """
    epochs, coordinators = ({}, {}) if known is None else known
    for batch in batches:
        producer_id = batch.producer_id
        if producer_id == NO_PRODUCER_ID:
            continue
        if batch.producer_epoch < epochs.get(producer_id, -1):
            return (f"{partition} has epoch {batch.producer_epoch} of producer id {producer_id} at offset "
                    f"{batch.base_offset}, after epoch {epochs[producer_id]}")
        epochs[producer_id] = batch.producer_epoch
        if batch.marker is not None:
            if batch.coordinator_epoch < coordinators.get(producer_id, -1):
                return f"{partition} has the marker of an older coordinator at offset {batch.base_offset}"
            coordinators[producer_id] = batch.coordinator_epoch
    return None
