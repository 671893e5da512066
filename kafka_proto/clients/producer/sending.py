"""What a producer sends next (`TransactionManager.nextRequest`, `Sender.sendProducerData`)."""

from __future__ import annotations

from operator import itemgetter

import attrs

from kafka_proto import requests
from kafka_proto.clients.producer import (
    COMPLETING,
    TRANSACTION_TIMEOUT_MS,
    Family,
    Producer,
    ProducerStatus,
    TransactionalCall,
    TransactionalRequest,
)
from kafka_proto.log import NO_PRODUCER_ID, NO_SEQUENCE, RecordBatch
from kafka_proto.requests import Error

NO_TIMEOUT_MS = 2**31 - 1
"""What Kafka's client says in an InitProducerId without transactional id."""


def next_call(family: Family, producer: Producer) -> TransactionalRequest | None:
    """Return the request to send now beside batches, if any: one at a time, in the order of Kafka's priorities.

    A request that was not answered is sent again as it was. The end of a transaction waits for all batches. A producer
    without transactions asks only for its producer id, once there is something to write.
    """
    tid = producer.transactional_id
    if producer.status is ProducerStatus.FATAL_ERROR:
        return None
    if producer.call is not None:
        return None if producer.call.is_sent or producer.call.backs_off else producer.call.request
    if tid is None:
        asks = producer.producer_id == NO_PRODUCER_ID and producer.batches
        return requests.InitProducerIdRequest(family.init_producer_id, None, NO_TIMEOUT_MS) if asks else None
    who = producer.producer_id, producer.producer_epoch
    if producer.status is ProducerStatus.INITIALIZING:
        return requests.InitProducerIdRequest(
            family.init_producer_id, tid, TRANSACTION_TIMEOUT_MS, enable_2pc=family.enable_2pc,
            keep_prepared_txn=family.keep_prepared_txn,
        )
    if producer.status is ProducerStatus.ABORTABLE_ERROR:
        return None
    if producer.new_partitions:
        return requests.AddPartitionsToTxnRequest(family.add_partitions, tid, *who, producer.new_partitions)
    if producer.offsets:
        offsets = producer.offsets[0]
        if family.adds_partitions and offsets.group_id not in producer.groups:
            return requests.AddOffsetsToTxnRequest(family.add_offsets, tid, *who, requests.OFFSETS_PARTITION)
        return requests.TxnOffsetCommitRequest(
            family.txn_offset_commit, tid, offsets.group_id, *who, offsets.partition, offsets.offset,
            offsets.generation_id, offsets.member_id,
        )
    if producer.status not in COMPLETING or producer.batches:
        return None
    maps_no_id = producer.last_error is Error.INVALID_PRODUCER_ID_MAPPING
    if producer.is_ended or maps_no_id:
        return requests.InitProducerIdRequest(
            family.init_producer_id, tid, TRANSACTION_TIMEOUT_MS, *who, enable_2pc=family.enable_2pc
        )
    committed = producer.status is ProducerStatus.COMMITTING_TRANSACTION
    return requests.EndTxnRequest(family.end_txn, tid, *who, committed)


def ends_unasked(producer: Producer) -> bool:
    """Say whether a transaction is ending that no coordinator was told of: there is nothing to be asked."""
    return (
        producer.status in COMPLETING and producer.call is None and not producer.is_started and not producer.is_ended
        and not (producer.new_partitions or producer.batches or producer.offsets)
        and producer.last_error is not Error.INVALID_PRODUCER_ID_MAPPING
    )


def sent_call(producer: Producer, request: TransactionalRequest) -> Producer:
    """Return the producer with a transactional request under way."""
    return attrs.evolve(producer, call=TransactionalCall(request, is_sent=True))


def next_produces(family: Family, producer: Producer, most: int) -> tuple[tuple[int, requests.ProduceRequest], ...]:
    """Return the batches to send now, by their number; at most `most` of a partition are in flight.

    A batch that is sent again waits for those before it to be resolved. A new one waits for each that waits, for what
    was sent in an epoch of before, and for what timed out (`RecordAccumulator.shouldStopDrainBatchesForPartition`).
    """
    if producer.status is ProducerStatus.FATAL_ERROR or producer.producer_id == NO_PRODUCER_ID:
        return ()
    tid, found = producer.transactional_id, list[tuple[int, requests.ProduceRequest]]()
    for name in dict.fromkeys(batch.partition for batch in producer.batches):
        if tid is not None and name not in producer.partitions:
            continue
        known = producer.sequences_of(name)
        following, may_begin = known.following, not producer.is_stale(known) and known.unresolved == NO_SEQUENCE
        for before, batch in enumerate(batch for batch in producer.batches if batch.partition == name):
            again = batch.was_sent
            if batch.in_flight:
                continue
            if batch.backs_off or before >= (1 if again else most) or not (again or may_begin):
                break
            sequence, epoch = batch.base_sequence, batch.producer_epoch
            if not again:
                sequence, epoch = following, known.producer_epoch
                following = batch.after(sequence)
            data = RecordBatch(batch.records, known.producer_id, epoch, sequence, is_transactional=tid is not None)
            found.append((batch.number, requests.ProduceRequest(family.produce, tid, -1, name, data)))
    return tuple(sorted(found, key=itemgetter(0)))


def sent_batch(producer: Producer, number: int, request: requests.ProduceRequest) -> Producer:
    """Return the producer with a batch in flight."""
    data, batch = request.batch, producer.batch(number)
    assert batch is not None
    known = producer.sequences_of(request.partition)
    if not batch.was_sent:
        known = attrs.evolve(known, following=batch.after(data.base_sequence))
    sent = attrs.evolve(
        batch, base_sequence=data.base_sequence, producer_epoch=data.producer_epoch, in_flight=True,
        is_renumbered=False,
    )
    return producer.with_sequences(request.partition, known).with_batch(number, sent)
