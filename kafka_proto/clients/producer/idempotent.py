"""How a producer goes on with the sequences of a partition (`Sender`, `TransactionManager`).

Where a leader has forgotten a producer without transactions, or finds a gap, there is no way on with these sequences. A
client since KIP-360 takes the next epoch of itself then, in which the partition's sequences begin at 0; one before it
begins them again in the same epoch (UNKNOWN_PRODUCER_ID), or gives up what it has sent and asks for another id.
"""

from __future__ import annotations

import attrs

from harness.model import FrozenMap
from kafka_proto.clients.producer import Batch, Family, Producer, Sequences
from kafka_proto.log import MAX_EPOCH, NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE
from kafka_proto.requests import Error


def retried(producer: Producer, batch: Batch) -> Producer:
    """Return a producer that sends a batch again after a pause."""
    return producer.with_batch(batch.number, attrs.evolve(batch, in_flight=False, backs_off=True))


def acknowledged(family: Family, producer: Producer, batch: Batch) -> Producer:
    """Return a producer with a batch that is in its partition."""
    known = producer.sequences[batch.partition]
    if known.producer_epoch == batch.producer_epoch:
        last = batch.after(batch.base_sequence - 1)
        known = attrs.evolve(known, acknowledged=max(known.acknowledged, last))
    left = producer.with_batch(batch.number, None).with_sequences(batch.partition, known)
    return resolved(family, left, batch.partition)


def refused(family: Family, producer: Producer, batch: Batch, error: Error) -> Producer:
    """Send a refused batch again if there is a way on (`TransactionManager.canRetry`), or give it up.

    Where a leader answers UNKNOWN_PRODUCER_ID the start of its log has moved past all that was acknowledged, which is
    what Kafka's client finds out by the offsets in the answer.
    """
    out_of_order = error is Error.OUT_OF_ORDER_SEQUENCE_NUMBER
    if out_of_order or error is Error.UNKNOWN_PRODUCER_ID:
        if batch.is_renumbered or (out_of_order and waits_for_others(family, producer, batch)):
            return retried(producer, batch)
        if family.bumps_epoch or not out_of_order:
            begun = begun_again(family, producer, batch.partition)
            again = begun.batch(batch.number)
            return begun if again is None else retried(begun, again)
    left = producer.with_batch(batch.number, None)
    return begun_again(family, left, batch.partition) if family.bumps_epoch else given_up(left)


def waits_for_others(family: Family, producer: Producer, batch: Batch) -> bool:
    """Say whether a batch is out of order because one before it is not there yet."""
    known = producer.sequences[batch.partition]
    if known.unresolved != NO_SEQUENCE:
        return family.bumps_epoch and batch.base_sequence != known.unresolved
    return batch.base_sequence != known.acknowledged + 1


def timed_out(family: Family, producer: Producer, batch: Batch) -> Producer:
    """Give up a batch whose fate is unknown: new batches wait until it is known whether a leader has it."""
    known, left = producer.sequences[batch.partition], producer.with_batch(batch.number, None)
    if known.producer_epoch == batch.producer_epoch:
        waits = attrs.evolve(known, unresolved=max(known.unresolved, batch.after(batch.base_sequence)))
        left = left.with_sequences(batch.partition, waits)
    return resolved(family, left, batch.partition)


def resolved(family: Family, producer: Producer, partition: str) -> Producer:
    """Go on after a time-out, once nothing of the partition is under way (`maybeResolveSequences`)."""
    known = producer.sequences.get(partition)
    if known is None or known.unresolved == NO_SEQUENCE or producer.sent_to(partition):
        return producer
    if known.acknowledged + 1 == known.following:
        return producer.with_sequences(partition, attrs.evolve(known, unresolved=NO_SEQUENCE))
    return begun_again(family, producer, partition) if family.bumps_epoch else given_up(producer)


def begun_again(family: Family, producer: Producer, partition: str) -> Producer:
    """Number what was sent to a partition from 0: in the next epoch since KIP-360, before it in the same one.

    What is in flight is numbered anew when it comes back (`bumpIdempotentProducerEpoch`, `startSequencesAtBeginning`).
    """
    if family.bumps_epoch:
        if producer.producer_epoch == MAX_EPOCH:
            return given_up(producer)
        producer = attrs.evolve(producer, producer_epoch=producer.producer_epoch + 1)
    sequence = 0
    for batch in producer.sent_to(partition):
        again = attrs.evolve(
            batch, base_sequence=sequence, producer_epoch=producer.producer_epoch, is_renumbered=True
        )
        producer, sequence = producer.with_batch(batch.number, again), batch.after(sequence)
    return producer.with_sequences(partition, Sequences(producer.producer_id, producer.producer_epoch, sequence))


def given_up(producer: Producer) -> Producer:
    """Give up all that was sent, and ask for another producer id (`resetIdempotentProducerId`)."""
    left = tuple(batch for batch in producer.batches if not batch.was_sent)
    return attrs.evolve(
        producer, producer_id=NO_PRODUCER_ID, producer_epoch=NO_PRODUCER_EPOCH, batches=left, sequences=FrozenMap()
    )
