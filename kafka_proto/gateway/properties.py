"""P1 to P12 and R1 to R6 on a session behind the wire: `guarantees` decides each, here is what it decides about.

Brokers are at rest between inputs, so all of them are invariants. P4, P7 and P9 are about answers: `answers` notes what
they violate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import reduce
from operator import attrgetter, is_not
from typing import NamedTuple

import attrs

from harness.model import FrozenMap, Property, Reason, View, always
from kafka_proto.broker.coordinator.transaction import PREPARED, TransactionMetadata
from kafka_proto.broker.ghosts import CommittedOffsets, Noted, Span
from kafka_proto.broker.group.coordinator import Key, Offsets, replay
from kafka_proto.cluster import guarantees, served_replicas
from kafka_proto.cluster.failures import Leadership
from kafka_proto.cluster.running import RunningCluster
from kafka_proto.gateway.answers import violated
from kafka_proto.gateway.apis.records import as_bytes
from kafka_proto.gateway.applications import exactly_once
from kafka_proto.gateway.inputs import Ended, Injected, Input, Passed
from kafka_proto.gateway.observed import BASE_OFFSET, NOBODY, AcknowledgedBatch, Observed, noted_whole, number_of
from kafka_proto.gateway.records import read_header
from kafka_proto.gateway.transactions import EndedTransactions, TransactionCheck
from kafka_proto.log import MAX_SEQUENCE, UNKNOWN_PRODUCER, PartitionLog, RecordBatch
from kafka_proto.log.grown import Grown
from kafka_proto.requests import OFFSETS_PARTITION


@attrs.frozen
class Brokers:
    """What properties are about besides what was observed."""

    logs: FrozenMap[str, PartitionLog] = FrozenMap()
    """Of each partition that is served, as its leader has it."""
    entries: FrozenMap[str, TransactionMetadata] = FrozenMap()
    """What coordinators have of each transactional id."""
    waiting: frozenset[str] = frozenset()
    """Transactional ids whose markers are on their way."""
    offsets: Offsets = Offsets()
    """What the coordinator of groups knows."""
    led: FrozenMap[str, Leadership] = FrozenMap()
    """Who leads each partition, as the controller knows it; no property is about that."""
    of_groups: tuple[str, ...] = (OFFSETS_PARTITION,)
    """The partitions in which groups have their offsets."""


LAST_OFFSET = attrgetter("last_offset")
Check = Callable[[Observed, Brokers], Reason]
Parts = Callable[[Observed, Brokers], Iterable[object]]


class BatchNumber(NamedTuple):
    """What a batch of an idempotent producer has alone."""

    producer_id: int
    epoch: int
    sequence: int

    def __str__(self) -> str:
        return f"the batch with sequence {self.sequence} of producer id {self.producer_id}, epoch {self.epoch},"


def _open(log: PartitionLog) -> Iterator[Span]:
    """Yield what is open in a log, each by its first batch; where that was deleted its producer is known."""
    for txn in log.open:
        first = log.batches.first_after(txn.first_offset - 1, BASE_OFFSET)
        batch = next((each for each in log.batches.between(first, first + 1) if each.producer_id == txn.producer_id),
                     None)
        if batch is None:
            epoch = log.producer(txn.producer_id).producer_epoch
            yield Span(txn.producer_id, epoch, (Noted(txn.first_offset, NOBODY),))
        else:
            yield Span(txn.producer_id, batch.producer_epoch, noted_whole(batch))


@attrs.frozen
class Numbers:
    """Where the batches of a partition are, and what is known of producers by those that were deleted."""

    known: dict[BatchNumber, int]
    gone: PartitionLog | None

    def was_there(self, number: BatchNumber) -> bool:
        """Say whether a batch was deleted: its sequence is not after the last one of its epoch that was."""
        last = UNKNOWN_PRODUCER if self.gone is None else self.gone.producer(number.producer_id)
        return last.producer_epoch == number.epoch and 0 <= last.last_sequence - number.sequence < MAX_SEQUENCE // 2


def _later(batches: Iterable[RecordBatch], gone: PartitionLog | None) -> Iterator[RecordBatch]:
    """Yield the batches that are behind those of which some are gone: those were judged before."""
    return (batch for batch in batches if gone is None or batch.base_offset >= gone.log_end_offset)


def _note_numbers(name: str, batches: Iterable[RecordBatch], numbers: Numbers) -> Reason:
    found = ((BatchNumber(*number), batch.base_offset) for batch in _later(batches, numbers.gone)
             if batch.marker is None and (number := number_of(batch)) is not None)
    return guarantees.written_once(name, found, numbers.known, numbers.was_there)


Epochs = tuple[PartitionLog | None, tuple[dict[int, int], dict[int, int]]]
"""What is gone, and the epochs of producers, and of their coordinators, by all so far."""


def _epochs(gone: PartitionLog | None) -> Epochs:
    producers = {} if gone is None else gone.producers
    return gone, ({each: state.producer_epoch for each, state in producers.items()},
                  {each: state.coordinator_epoch for each, state in producers.items()})


def _note_epochs(name: str, batches: Iterable[RecordBatch], epochs: Epochs) -> Reason:
    return guarantees.producer_state_grows(name, _later(batches, epochs[0]), epochs[1])


@attrs.define
class Acknowledged:
    """What was acknowledged of a partition, in the order of the answers, and the largest offset of it."""

    batches: list[AcknowledgedBatch] = attrs.field(factory=list)
    furthest: int = -1


def _note_acknowledged(_: str, acknowledged: Iterable[AcknowledgedBatch], known: dict[str, Acknowledged]) -> None:
    for each in acknowledged:
        mine = known.setdefault(each.partition, Acknowledged())
        mine.batches.append(each)
        mine.furthest = max(mine.furthest, each.offset)


def _note_replayed(_: str, batches: Iterable[RecordBatch], known: list[Offsets]) -> None:
    known[0] = reduce(replay, batches, known[0])


NUMBERS: Grown[RecordBatch, Numbers, str] = Grown(lambda gone: Numbers({}, gone), _note_numbers)
ACKNOWLEDGED: Grown[AcknowledgedBatch, dict[str, Acknowledged], None] = Grown(lambda _: {}, _note_acknowledged)
IN_PLACE: dict[str, tuple[Numbers, Acknowledged, int, int]] = {}
"""By partition: how many of those that were acknowledged, from the first on, are where they should be, and by what."""
EPOCHS: Grown[RecordBatch, Epochs, str] = Grown(_epochs, _note_epochs)
COMMITTED: Grown[RecordBatch, CommittedOffsets, None] = Grown(
    lambda _: CommittedOffsets(), lambda _, new, known: known.note(new))
REPLAYED: Grown[RecordBatch, list[Offsets], None] = Grown(lambda _: [Offsets()], _note_replayed)


def _gone(seen: Observed, name: str) -> PartitionLog | None:
    return seen.ledgers[name].gone if name in seen.ledgers else None


def once(seen: Observed, brokers: Brokers) -> Reason:
    """P6, of the batches of idempotent producers, and of whatever was acknowledged."""
    acknowledged, _ = ACKNOWLEDGED.noted("", seen.acknowledged)

    def reasons(name: str, log: PartitionLog) -> Iterator[Reason]:
        gone = _gone(seen, name)
        numbers, reason = NUMBERS.noted(name, log.batches, seed=gone)
        yield reason
        if name in acknowledged:
            start = max(log.log_start_offset, 0 if gone is None else gone.log_end_offset)
            yield _in_place(name, acknowledged[name], log, numbers, start)

    return guarantees.first(reason for name, log in brokers.logs.items() for reason in reasons(name, log))


def _in_place(name: str, mine: Acknowledged, log: PartitionLog, numbers: Numbers, start: int) -> Reason:
    """Say which acknowledged batch a log ends before, or which one of a producer's is not at its offset.

    While a log only grows, what was in its place stays there: only after another change all are looked up again.
    """
    if mine.furthest >= log.log_end_offset:
        return guarantees.as_acknowledged(
            name, (((each, None),) for each in mine.batches),
            lambda each: each.offset if each.offset < log.log_end_offset else None)
    was = IN_PLACE.pop(name, None)
    at, reason = was[3] if was is not None and was[0] is numbers and was[1] is mine and was[2] == start else 0, None
    while at < len(mine.batches) and reason is None:
        each = mine.batches[at]
        if each.number is not None and each.offset >= start:
            told = BatchNumber(*each.number), each.offset
            reason = guarantees.as_acknowledged(name, ((told,),), numbers.known.get)
        at += reason is None
    IN_PLACE[name] = numbers, mine, start, at
    return reason


def offsets(seen: Observed, brokers: Brokers) -> Reason:
    """P10; where there are several partitions of offsets, each group is in one of them."""
    known = [_committed(p, brokers.logs[p]) for p in brokers.of_groups if p in brokers.logs]
    if not known:
        return None
    expected, replayed = known[0]
    for more, other in known[1:]:
        expected, replayed = expected.update(more), with_offsets(replayed, other)
    return guarantees.offsets_as_committed(expected, replayed, brokers.offsets)


def with_offsets(known: Offsets, more: Offsets) -> Offsets:
    """Return the offsets of groups together with those of others."""
    return Offsets(known.committed.update(more.committed), known.staged.update(more.staged))


def _committed(p: str, log: PartitionLog) -> tuple[FrozenMap[Key, int], Offsets]:
    """Return the offsets that records of a partition are, and those that a coordinator makes of them."""
    count = log.batches.first_after(log.high_watermark - 1, LAST_OFFSET)
    committed, _ = COMMITTED.noted(p, log.batches, count)
    (replayed,), _ = REPLAYED.noted(p, log.batches, count)
    return committed.found, replayed


def of_transactions(*checks: TransactionCheck) -> tuple[Check, ...]:
    """Return checks of the transactions that ended, which are noted once for all of them.

    What is noted is taken while a session is judged: another one, of another thread, begins with nothing.
    """
    last: list[EndedTransactions] = []

    def judged(seen: Observed) -> tuple[Reason, ...]:
        try:
            ended = last.pop()
        except IndexError:
            ended = EndedTransactions(checks)
        if not ended.lead_to(seen):
            ended = EndedTransactions(checks)
        reasons = ended.judge(seen)
        last[:] = [ended]
        return reasons

    def of(place: int) -> Check:
        return lambda seen, brokers: judged(seen)[place]

    return tuple(map(of, range(len(checks))))


def kept(check: Check, *parts: Parts) -> Check:
    """Return a check that keeps its last answer, and gives it again while what it is about is the same objects."""
    last: tuple[tuple[object, ...], Reason] = (), None

    def checked(seen: Observed, brokers: Brokers) -> Reason:
        nonlocal last
        now = tuple(each for part in parts for each in part(seen, brokers))
        before, reason = last
        if len(before) != len(now) or not now or any(map(is_not, before, now)):
            reason = check(seen, brokers)
            last = now, reason
        return reason

    return checked


def _reads(seen: Observed, brokers: Brokers) -> Iterable[object]:
    return (seen.reads,)


def _logs(seen: Observed, brokers: Brokers) -> Iterable[object]:
    return brokers.logs.values()


def _entries(seen: Observed, brokers: Brokers) -> Iterable[object]:
    return (*brokers.entries.values(), brokers.waiting)


def applied(seen: Observed, brokers: Brokers) -> Reason:
    """P12, while no transaction is half ended, and all its logs are served."""
    if seen.watched is None or brokers.waiting or not {*seen.ledgers} <= {*brokers.logs}:
        return None
    is_ending = any(entry.state in PREPARED for entry in brokers.entries.values())
    return None if is_ending else exactly_once(seen.watched, brokers.logs)


def stable(seen: Observed, brokers: Brokers) -> Reason:
    """R5: what a consumer was sent is in the log of each later leader, unless it was deleted or compacted."""
    for p, read in seen.reads.items():
        log = brokers.logs.get(p)
        gone = _gone(seen, p)
        if log is None or read.offset < max(log.log_start_offset, 0 if gone is None else gone.log_end_offset):
            continue
        first = log.batches.first_after(read.offset - 1, BASE_OFFSET)
        batch = next(iter(log.batches.between(first, first + 1)), None)
        if batch is None or batch.base_offset != read.offset or read_header(as_bytes(batch, 0)).crc != read.crc:
            return f"a consumer was sent offset {read.offset} of {p}, which its leader does not have, or as another one"
    return None


ATTRIBUTION, ATOMICITY, OUTCOME = of_transactions(
    lambda ends, told, is_acknowledged: guarantees.first(
        guarantees.marker_attribution(name, (span,)) for name, span in ends if span.cause),
    lambda ends, told, is_acknowledged: guarantees.atomicity(ends, is_acknowledged),
    lambda ends, told, is_acknowledged: guarantees.acknowledged_outcome("the producer", ends, told, is_acknowledged))
CHECKS: Mapping[str, tuple[str, Check]] = {
    "MarkerAttribution": ("P1", ATTRIBUTION), "Atomicity": ("P2", ATOMICITY), "AcknowledgedOutcome": ("P3", OUTCOME),
    "NoHangingTransaction": ("P5", kept(lambda seen, brokers: guarantees.first(
        guarantees.no_hanging_transaction(name, _open(log), brokers.entries.values())
        for name, log in brokers.logs.items()), _logs, _entries)),
    "AcknowledgedOnce": ("P6", once),
    "PreparedIsCompleted": ("P8", lambda seen, brokers: guarantees.prepared_is_completed(
        brokers.entries.items(), brokers.waiting)),
    "OffsetsOfTheLog": ("P10", offsets),
    "ProducerStateGrows": ("P11", lambda seen, brokers: guarantees.first(
        EPOCHS.noted(name, log.batches, seed=_gone(seen, name))[1] for name, log in brokers.logs.items())),
    "ExactlyOnce": ("P12", applied),
    "StableReads": ("R5", kept(stable, _reads, _logs)),
}
"""An operator may end what hangs: markers that no transaction caused are left out."""
OF_ANSWERS = {"NoIntermediateRead": "P4", "FencedForAReason": "P7", "ReadBound": "P9"}
NOTED = {**OF_ANSWERS, **served_replicas.NAMES}
"""Properties that an answer violates, or replicas when they are looked at, and that stay violated then."""
NAMES = tuple(sorted((*CHECKS, *NOTED)))


def problems(seen: Observed, brokers: Brokers) -> dict[str, str]:
    """Return the properties that fail, with reasons, P1 first."""
    found = [(number, name, why) for name, (number, check) in CHECKS.items()
             if (why := check(seen, brokers)) is not None]
    stays = {**{name: number for name, (number, _) in CHECKS.items()}, **NOTED}
    found += [(stays[name], name, why) for name, why in seen.broken.items()]
    return {name: why for _, name, why in sorted(found, key=lambda row: (row[0][0], int(row[0][1:]), row[1]))}


def judged(seen: Observed, brokers: Brokers) -> Observed:
    """Note what is violated so far: it stays so when the records are deleted that show it."""
    for name, why in problems(seen, brokers).items():
        seen = violated(seen, name, why)
    return seen


def looked_at(seen: Observed, cluster: RunningCluster, given: Input) -> Observed:
    """Note what replicas violate; they are looked at when a fault begins or ends, or time has passed."""
    for name, why in served_replicas.problems(cluster) if isinstance(given, Injected | Ended | Passed) else ():
        seen = violated(seen, name, why)
    return seen


def properties() -> tuple[Property, ...]:
    """Return them as properties of a recorded session."""

    def of_state(name: str, check: Check) -> Callable[[View], Reason]:
        return lambda view: view["observed"].broken.get(name) or check(view["observed"], view["brokers"])

    def noted(name: str) -> Callable[[View], Reason]:
        return lambda view: view["observed"].broken.get(name)

    return (
        *(always(name, of_state(name, check), source=f"ours: {number}") for name, (number, check) in CHECKS.items()),
        *(always(name, noted(name), source=f"ours: {number}") for name, number in NOTED.items()),
    )
