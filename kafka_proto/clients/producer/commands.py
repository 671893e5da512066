"""What an application may ask of its producer, and what it is told where it may not (`KafkaProducer`).

Each returns the producer as it is then, or raises what Kafka's client raises, by its Java name.
"""

from __future__ import annotations

import attrs

from harness.model import Value
from kafka_proto.clients.producer.state import Batch, OffsetsToCommit, Producer, ProducerStatus
from kafka_proto.requests import Error


class KafkaError(Exception):
    """Kafka's `KafkaException`: the transaction has to be aborted, or the producer closed."""


class ProducerFenced(KafkaError):
    """Another producer with the same transactional id was started; this one can only be closed."""


class IllegalState(Exception):
    """Java's `IllegalStateException`: the call makes no sense in the state that the producer is in."""


FENCING = (Error.PRODUCER_FENCED, Error.INVALID_PRODUCER_EPOCH)
FENCED = "another producer with the same transactional id was started; close this one"


def init_transactions(producer: Producer) -> Producer:
    """Ask for a producer id and epoch, which fences whoever had the transactional id before."""
    _fail_if_error(producer)
    if producer.status is not ProducerStatus.UNINITIALIZED:
        raise IllegalState(f"init_transactions is called once, first; the producer is {_words(producer)}")
    return attrs.evolve(producer, status=ProducerStatus.INITIALIZING)


def begin_transaction(producer: Producer) -> Producer:
    """Begin a transaction; nothing is sent."""
    _fail_if_error(producer)
    _need(producer, "begin_transaction", ProducerStatus.READY, "init_transactions and the end of the last transaction")
    return attrs.evolve(producer, status=ProducerStatus.IN_TRANSACTION)


def send(producer: Producer, partition: str, *records: Value, adds_partitions: bool) -> Producer:
    """Write records to a partition, in one batch; with `adds_partitions` it is added to the transaction first."""
    known, new = producer.partitions, producer.new_partitions
    if producer.transactional_id is not None:
        _fail_if_error(producer)
        _need(producer, "send", ProducerStatus.IN_TRANSACTION, "begin_transaction")
        if not adds_partitions:
            known = tuple(sorted({*known, partition}))
        elif partition not in known:
            new = tuple(sorted({*new, partition}))
    batch = Batch(producer.numbers + 1, partition, records)
    return attrs.evolve(
        producer, batches=(*producer.batches, batch), numbers=batch.number, partitions=known, new_partitions=new
    )


def send_offsets_to_transaction(producer: Producer, offsets: OffsetsToCommit) -> Producer:
    """Commit a group's offset with the transaction."""
    _fail_if_error(producer)
    _need(producer, "send_offsets_to_transaction", ProducerStatus.IN_TRANSACTION, "begin_transaction")
    return attrs.evolve(producer, offsets=(*producer.offsets, offsets))


def commit_transaction(producer: Producer) -> Producer:
    """Send what is not sent yet, then commit."""
    _fail_if_error(producer)
    _need(producer, "commit_transaction", ProducerStatus.IN_TRANSACTION, "begin_transaction")
    return attrs.evolve(producer, status=ProducerStatus.COMMITTING_TRANSACTION)


def abort_transaction(producer: Producer) -> Producer:
    """Give up what was never sent, resolve what was, then abort (`RecordAccumulator.abortUndrainedBatches`)."""
    _fail_if_fatal(producer)
    if producer.status is not ProducerStatus.ABORTABLE_ERROR:
        _need(producer, "abort_transaction", ProducerStatus.IN_TRANSACTION, "begin_transaction")
    return attrs.evolve(
        producer, status=ProducerStatus.ABORTING_TRANSACTION, new_partitions=(), offsets=(),
        batches=tuple(batch for batch in producer.batches if batch.was_sent),
    )


def _fail_if_fatal(producer: Producer) -> None:
    if producer.status is ProducerStatus.FATAL_ERROR:
        if producer.last_error in FENCING:
            raise ProducerFenced(FENCED)
        raise KafkaError(f"the producer failed by {producer.last_error.value}; close it and make another")


def _fail_if_error(producer: Producer) -> None:
    _fail_if_fatal(producer)
    if producer.status is ProducerStatus.ABORTABLE_ERROR:
        raise KafkaError(f"the transaction failed by {producer.last_error.value}; call abort_transaction")


def _need(producer: Producer, command: str, status: ProducerStatus, first: str) -> None:
    if producer.status is not status:
        raise IllegalState(f"{command} is called after {first}; the producer is {_words(producer)}")


def _words(producer: Producer) -> str:
    return producer.status.value.lower().replace("_", " ")
