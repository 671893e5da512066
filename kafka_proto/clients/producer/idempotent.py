"""The idempotent producer without transactions, as pure functions of a frozen value (`Sender`, `TransactionManager`).

It gets a producer id from any broker, numbers the batches of each partition, and sends again what was not acknowledged.
Where a leader has forgotten it, or finds a gap, there is no way on with these sequences. A client since KIP-360 takes
the next epoch of itself then, in which the partition's sequences begin at 0; one before it begins them again in the
same epoch (UNKNOWN_PRODUCER_ID), or gives up what it has sent and asks for another producer id.
"""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from harness.model import FrozenMap, Value
from kafka_proto.clients.producer.families import Family
from kafka_proto.clients.producer.verdicts import AnswerVerdict, verdict
from kafka_proto.log.records import (
    MAX_EPOCH,
    MAX_SEQUENCE,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    RecordBatch,
)
from kafka_proto.requests import Error, InitProducerIdRequest, InitProducerIdResponse, ProduceRequest

TRANSACTION_TIMEOUT_MS = 2**31 - 1
"""What Kafka's client says in an InitProducerId without transactional id."""


@attrs.frozen
class IdempotentBatch:
    """A batch that is not resolved. Its number says which one it is, whatever sequence it has by now."""

    number: int
    partition: str
    records: tuple[Value, ...]
    base_sequence: int = NO_SEQUENCE
    producer_epoch: int = NO_PRODUCER_EPOCH
    in_flight: bool = False
    backs_off: bool = False
    is_renumbered: bool = False
    """It has another sequence than the one that it was last sent with (`sequenceHasBeenReset`)."""

    @property
    def was_sent(self) -> bool:
        """Whether a leader may have it."""
        return self.base_sequence != NO_SEQUENCE


@attrs.frozen
class Sequences:
    """How far the sequences of a partition are (`TxnPartitionEntry`), in an epoch of a producer id."""

    producer_id: int
    producer_epoch: int
    following: int = 0
    """That of the next new record."""
    acknowledged: int = NO_SEQUENCE
    unresolved: int = NO_SEQUENCE
    """What follows the last batch that timed out: a leader may have it or not."""


@attrs.frozen
class IdempotentProducer:
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_PRODUCER_EPOCH
    asks: bool = False
    """InitProducerId is under way, or waits for a pause."""
    backs_off: bool = False
    """InitProducerId waits for a pause."""
    batches: tuple[IdempotentBatch, ...] = ()
    """Oldest first."""
    numbers: int = 0
    """How many batches there were."""
    sequences: FrozenMap[str, Sequences] = FrozenMap()
    """By partition."""


@attrs.frozen
class Resolved:
    """A producer after an answer: what it means, and the records that it acknowledges."""

    producer: IdempotentProducer
    verdict: AnswerVerdict
    acknowledged: tuple[Value, ...] = ()


def send(producer: IdempotentProducer, partition: str, *records: Value) -> IdempotentProducer:
    """Write records to a partition, in one batch."""
    batch = IdempotentBatch(producer.numbers + 1, partition, records)
    return attrs.evolve(producer, batches=(*producer.batches, batch), numbers=batch.number)


def next_init(family: Family, producer: IdempotentProducer) -> InitProducerIdRequest | None:
    """Return the request for a producer id, where there is none and nobody is asked yet."""
    if producer.producer_id != NO_PRODUCER_ID or producer.asks:
        return None
    return InitProducerIdRequest(family.init_producer_id, None, TRANSACTION_TIMEOUT_MS)


def initialized(producer: IdempotentProducer, response: InitProducerIdResponse) -> Resolved:
    """Take a producer id; whatever the error is, the next broker may be asked after a pause."""
    if response.error is not Error.NONE:
        return Resolved(attrs.evolve(producer, backs_off=True), AnswerVerdict.RETRY)
    given = attrs.evolve(
        producer, producer_id=response.producer_id, producer_epoch=response.producer_epoch, asks=False
    )
    return Resolved(given, AnswerVerdict.DONE)


def sequences_of(producer: IdempotentProducer, partition: str) -> Sequences:
    """Return how far a partition is: anew where its producer id, or epoch, is of before and nothing of it is left."""
    known = producer.sequences.get(partition)
    now = Sequences(producer.producer_id, producer.producer_epoch)
    if known is None or (is_stale(producer, known) and not sent_to(producer, partition)):
        return now
    return known


def is_stale(producer: IdempotentProducer, known: Sequences) -> bool:
    return (known.producer_id, known.producer_epoch) != (producer.producer_id, producer.producer_epoch)


def sent_to(producer: IdempotentProducer, partition: str) -> tuple[IdempotentBatch, ...]:
    """Return the batches of a partition that were sent and are not resolved, oldest first."""
    return tuple(batch for batch in producer.batches if batch.partition == partition and batch.was_sent)


def next_produces(family: Family, producer: IdempotentProducer, most: int) -> tuple[tuple[int, ProduceRequest], ...]:
    """Return the batches to send now, by their number; at most `most` of a partition are in flight.

    One that is sent again waits for those before it to be resolved, a new one for what was sent in an epoch of before
    and for what timed out (`RecordAccumulator.shouldStopDrainBatchesForPartition`).
    """
    if producer.producer_id == NO_PRODUCER_ID:
        return ()
    found: list[tuple[int, ProduceRequest]] = []
    for name in sorted({batch.partition for batch in producer.batches}):
        known = sequences_of(producer, name)
        following, may_begin = known.following, not is_stale(producer, known) and known.unresolved == NO_SEQUENCE
        for before, batch in enumerate(batch for batch in producer.batches if batch.partition == name):
            if batch.in_flight:
                continue
            if batch.backs_off or before >= (1 if batch.was_sent else most) or not (batch.was_sent or may_begin):
                break
            sequence, epoch = batch.base_sequence, batch.producer_epoch
            if not batch.was_sent:
                sequence, epoch = following, known.producer_epoch
                following = after(sequence, batch)
            data = RecordBatch(batch.records, known.producer_id, epoch, sequence)
            found.append((batch.number, ProduceRequest(family.produce, None, -1, name, data)))
    return tuple(found)


def after(sequence: int, batch: IdempotentBatch) -> int:
    """Return the sequence that follows a batch."""
    return (sequence + len(batch.records)) % (MAX_SEQUENCE + 1)


def sent(producer: IdempotentProducer, number: int, request: ProduceRequest) -> IdempotentProducer:
    """Return the producer with a batch in flight."""
    data, batch = request.batch, batch_of(producer, number)
    assert batch is not None
    known = sequences_of(producer, request.partition)
    if not batch.was_sent:
        known = attrs.evolve(known, following=after(data.base_sequence, batch))
    flying = attrs.evolve(
        batch, base_sequence=data.base_sequence, producer_epoch=data.producer_epoch, in_flight=True,
        is_renumbered=False,
    )
    kept = attrs.evolve(producer, sequences=producer.sequences.set(request.partition, known))
    return with_batch(kept, number, flying)


def batch_of(producer: IdempotentProducer, number: int) -> IdempotentBatch | None:
    """Return the batch with a number, None where it is resolved."""
    return next((batch for batch in producer.batches if batch.number == number), None)


def with_batch(producer: IdempotentProducer, number: int, batch: IdempotentBatch | None) -> IdempotentProducer:
    """Return a producer with another batch of a number, or with none."""
    new = () if batch is None else (batch,)
    found = (new if known.number == number else (known,) for known in producer.batches)
    return attrs.evolve(producer, batches=tuple(batch for batches in found for batch in batches))


def answered(family: Family, producer: IdempotentProducer, number: int, error: Error) -> Resolved:
    """Take the answer to a batch (`Sender.completeBatch`, `TransactionManager.canRetry`); one that timed out is over.

    Where a leader answers UNKNOWN_PRODUCER_ID the start of its log has moved past all that was acknowledged, which is
    what Kafka's client finds out by the offsets in the answer.
    """
    batch, known = batch_of(producer, number), verdict("ProduceRequest", error)
    if batch is None:
        return Resolved(producer, known)
    if known is AnswerVerdict.DONE:
        return Resolved(acknowledged(family, producer, batch), known, batch.records)
    if known in (AnswerVerdict.RETRY, AnswerVerdict.LOOK_UP):
        return Resolved(retried(producer, number), known)
    out_of_order = error is Error.OUT_OF_ORDER_SEQUENCE_NUMBER
    if out_of_order or error is Error.UNKNOWN_PRODUCER_ID:
        if batch.is_renumbered or (out_of_order and waits_for_others(family, producer, batch)):
            return Resolved(retried(producer, number), AnswerVerdict.RETRY)
        if family.bumps_epoch or not out_of_order:
            return Resolved(retried(begun_again(family, producer, batch.partition), number), AnswerVerdict.RETRY)
    left = with_batch(producer, number, None)
    return Resolved(begun_again(family, left, batch.partition) if family.bumps_epoch else given_up(left), known)


def asked_for_id(producer: IdempotentProducer) -> IdempotentProducer:
    """Return the producer with InitProducerId under way."""
    return attrs.evolve(producer, asks=True)


def retried(producer: IdempotentProducer, number: int) -> IdempotentProducer:
    """Return a producer that sends a batch again after a pause."""
    batch = batch_of(producer, number)
    assert batch is not None
    return with_batch(producer, number, attrs.evolve(batch, in_flight=False, backs_off=True))


def acknowledged(family: Family, producer: IdempotentProducer, batch: IdempotentBatch) -> IdempotentProducer:
    known = producer.sequences[batch.partition]
    last = (batch.base_sequence + len(batch.records) - 1) % (MAX_SEQUENCE + 1)
    if known.producer_epoch == batch.producer_epoch:
        known = attrs.evolve(known, acknowledged=max(known.acknowledged, last))
    left = with_batch(producer, batch.number, None)
    left = attrs.evolve(left, sequences=left.sequences.set(batch.partition, known))
    return resolved(family, left, batch.partition)


def waits_for_others(family: Family, producer: IdempotentProducer, batch: IdempotentBatch) -> bool:
    """Say whether a batch is out of order because one before it is not there yet."""
    known = producer.sequences[batch.partition]
    if known.unresolved != NO_SEQUENCE:
        return family.bumps_epoch and batch.base_sequence != known.unresolved
    return batch.base_sequence != known.acknowledged + 1


def resolved(family: Family, producer: IdempotentProducer, partition: str) -> IdempotentProducer:
    """Go on after a time-out, once nothing of the partition is under way (`maybeResolveSequences`)."""
    known = producer.sequences.get(partition)
    if known is None or known.unresolved == NO_SEQUENCE or sent_to(producer, partition):
        return producer
    if known.acknowledged + 1 == known.following:
        now = attrs.evolve(known, unresolved=NO_SEQUENCE)
        return attrs.evolve(producer, sequences=producer.sequences.set(partition, now))
    return begun_again(family, producer, partition) if family.bumps_epoch else given_up(producer)


def begun_again(family: Family, producer: IdempotentProducer, partition: str) -> IdempotentProducer:
    """Number what was sent to a partition from 0: in the next epoch since KIP-360, before it in the same one.

    What is in flight is numbered anew when it comes back (`bumpIdempotentProducerEpoch`, `startSequencesAtBeginning`).
    """
    if family.bumps_epoch:
        if producer.producer_epoch == MAX_EPOCH:
            return given_up(producer)
        producer = attrs.evolve(producer, producer_epoch=producer.producer_epoch + 1)
    sequence, batches = 0, list[IdempotentBatch]()
    for batch in producer.batches:
        if batch.partition == partition and batch.was_sent:
            batch = attrs.evolve(
                batch, base_sequence=sequence, producer_epoch=producer.producer_epoch, is_renumbered=True
            )
            sequence = after(sequence, batch)
        batches.append(batch)
    known = Sequences(producer.producer_id, producer.producer_epoch, sequence)
    return attrs.evolve(producer, batches=tuple(batches), sequences=producer.sequences.set(partition, known))


def given_up(producer: IdempotentProducer) -> IdempotentProducer:
    """Give up all that was sent, and ask for another producer id (`resetIdempotentProducerId`)."""
    left = tuple(batch for batch in producer.batches if not batch.was_sent)
    return attrs.evolve(
        producer, producer_id=NO_PRODUCER_ID, producer_epoch=NO_PRODUCER_EPOCH, batches=left, sequences=FrozenMap()
    )


def delivery_timed_out(family: Family, producer: IdempotentProducer) -> IdempotentProducer:
    """Give up the oldest batch that was sent: a leader may have it or not (`delivery.timeout.ms`)."""
    batch = next(batch for batch in producer.batches if batch.was_sent)
    known = producer.sequences[batch.partition]
    left = with_batch(producer, batch.number, None)
    if known.producer_epoch == batch.producer_epoch:
        waits = attrs.evolve(known, unresolved=max(known.unresolved, after(batch.base_sequence, batch)))
        left = attrs.evolve(left, sequences=left.sequences.set(batch.partition, waits))
    return resolved(family, left, batch.partition)


def connection_lost(producer: IdempotentProducer, numbers: Iterable[int], *, was_asked: bool) -> IdempotentProducer:
    """Give a connection up: what was sent on it goes again as it is now, after a pause."""
    lost = frozenset(numbers)
    batches = tuple(
        attrs.evolve(batch, in_flight=False, backs_off=True) if batch.number in lost else batch
        for batch in producer.batches
    )
    return attrs.evolve(producer, batches=batches, asks=producer.asks and not was_asked)


def backs_off(producer: IdempotentProducer) -> bool:
    """Say whether something waits for a pause."""
    return producer.backs_off or any(batch.backs_off for batch in producer.batches)


def rested(producer: IdempotentProducer) -> IdempotentProducer:
    """Return the producer after its pause."""
    batches = tuple(attrs.evolve(batch, backs_off=False) for batch in producer.batches)
    return attrs.evolve(
        producer, batches=batches, backs_off=False, asks=producer.asks and not producer.backs_off
    )
