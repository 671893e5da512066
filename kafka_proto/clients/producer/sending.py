"""What a producer sends next (`TransactionManager.nextRequest`, `Sender.sendProducerData`)."""

from __future__ import annotations

import attrs

from kafka_proto.clients.producer.families import Family
from kafka_proto.clients.producer.state import (
    COMPLETING,
    TRANSACTION_TIMEOUT_MS,
    Batch,
    Producer,
    ProducerStatus,
    TransactionalCall,
    TransactionalRequest,
)
from kafka_proto.log.records import MAX_SEQUENCE, RecordBatch
from kafka_proto.requests import (
    OFFSETS_PARTITION,
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    Error,
    InitProducerIdRequest,
    ProduceRequest,
    TxnOffsetCommitRequest,
)


def next_call(family: Family, producer: Producer, tid: str) -> TransactionalRequest | None:
    """Return the transactional request to send now, if any: one at a time, in the order of Kafka's priorities.

    A request that was not answered is sent again as it was. The end of a transaction waits for all batches.
    """
    if producer.status is ProducerStatus.FATAL_ERROR:
        return None
    if producer.call is not None:
        return None if producer.call.is_sent or producer.call.backs_off else producer.call.request
    who = producer.producer_id, producer.producer_epoch
    if producer.status is ProducerStatus.INITIALIZING:
        return InitProducerIdRequest(family.init_producer_id, tid, TRANSACTION_TIMEOUT_MS)
    if producer.status is ProducerStatus.ABORTABLE_ERROR:
        return None
    if producer.new_partitions:
        return AddPartitionsToTxnRequest(family.add_partitions, tid, *who, producer.new_partitions)
    if producer.offsets:
        offsets = producer.offsets[0]
        if family.adds_partitions and offsets.group_id not in producer.groups:
            return AddOffsetsToTxnRequest(family.add_offsets, tid, *who, OFFSETS_PARTITION)
        return TxnOffsetCommitRequest(
            family.txn_offset_commit, tid, offsets.group_id, *who, offsets.partition, offsets.offset,
            offsets.generation_id, offsets.member_id,
        )
    if producer.status not in COMPLETING or producer.batches:
        return None
    maps_no_id = producer.last_error is Error.INVALID_PRODUCER_ID_MAPPING
    if producer.is_ended or maps_no_id:
        return InitProducerIdRequest(family.init_producer_id, tid, TRANSACTION_TIMEOUT_MS, *who)
    committed = producer.status is ProducerStatus.COMMITTING_TRANSACTION
    return EndTxnRequest(family.end_txn, tid, *who, committed)


def ends_unasked(producer: Producer) -> bool:
    """Say whether a transaction is ending of which no coordinator was told: there is nothing to be asked."""
    return (
        producer.status in COMPLETING and producer.call is None and not producer.is_started and not producer.is_ended
        and not (producer.new_partitions or producer.batches or producer.offsets)
        and producer.last_error is not Error.INVALID_PRODUCER_ID_MAPPING
    )


def sent_call(producer: Producer, request: TransactionalRequest) -> Producer:
    """Return the producer with a transactional request under way."""
    return attrs.evolve(producer, call=TransactionalCall(request, is_sent=True))


def next_produces(family: Family, producer: Producer, tid: str, most: int) -> tuple[tuple[int, ProduceRequest], ...]:
    """Return the batches to send now, by their place in `batches`; at most `most` of a partition are in flight.

    A batch that is sent again waits for those before it to be resolved; a new one for each that waits.
    """
    if producer.status is ProducerStatus.FATAL_ERROR:
        return ()
    found: list[tuple[int, ProduceRequest]] = []
    flying: dict[str, int] = {}
    stopped: set[str] = set()
    sequences = dict(producer.next_sequence)
    for place, batch in enumerate(producer.batches):
        name = batch.partition
        before = flying.setdefault(name, 0)
        flying[name] += 1
        if batch.in_flight or name in stopped:
            continue
        again = batch.was_sent
        if name not in producer.partitions or batch.backs_off or before >= (1 if again else most):
            stopped.add(name)
            continue
        sequence = batch.base_sequence if again else sequences.get(name, 0)
        if not again:
            sequences[name] = (sequence + len(batch.records)) % (MAX_SEQUENCE + 1)
        data = RecordBatch(
            batch.records, producer.producer_id, producer.producer_epoch, sequence, is_transactional=True
        )
        found.append((place, ProduceRequest(family.produce, tid, -1, name, data)))
    return tuple(found)


def sent_batch(producer: Producer, place: int, request: ProduceRequest) -> Producer:
    """Return the producer with a batch in flight."""
    batch, data = producer.batches[place], request.batch
    sequences = producer.next_sequence
    if not batch.was_sent:
        sequences = sequences.set(batch.partition, (data.last_sequence + 1) % (MAX_SEQUENCE + 1))
    sent = attrs.evolve(batch, base_sequence=data.base_sequence, in_flight=True)
    return attrs.evolve(producer, batches=with_batch(producer.batches, place, sent), next_sequence=sequences)


def with_batch(batches: tuple[Batch, ...], place: int, batch: Batch | None) -> tuple[Batch, ...]:
    """Return batches with another one at a place, or with none."""
    return (*batches[:place], *(() if batch is None else (batch,)), *batches[place + 1:])
