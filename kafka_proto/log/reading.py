"""Reading a log: the batches of a range, the aborted transactions that overlap it, what a consumer shows of both."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from harness.model import Value
from kafka_proto.log.partition_log import AbortedTransaction, PartitionLog
from kafka_proto.log.records import Marker, RecordBatch


def batches_between(log: PartitionLog, start: int, stop: int, most: int | None = None) -> tuple[RecordBatch, ...]:
    """Return the batches from one offset up to another, the one that holds `start` first; at most `most` of them.

    A batch is given whole, and one that ends after `stop` not at all.
    """
    first = log.batches.first_after(start - 1, lambda batch: batch.last_offset)
    end = log.batches.first_after(stop - 1, lambda batch: batch.last_offset)
    return tuple(log.batches.between(first, end if most is None else min(end, first + most)))


def aborted_between(log: PartitionLog, start: int, stop: int) -> tuple[AbortedTransaction, ...]:
    """Return the aborted transactions that overlap a range of offsets (`TransactionIndex.collectAbortedTxns`).

    The index is by last offset, so what ends before `start` is skipped. It is read up to the first entry whose stable
    offset reaches `stop`: a later entry's transaction cannot have begun before.
    """
    found = []
    first = log.aborted.first_after(start - 1, lambda txn: txn.last_offset)
    for txn in log.aborted.between(first, len(log.aborted)):
        if txn.first_offset < stop:
            found.append(txn)
        if txn.last_stable_offset >= stop:
            break
    return tuple(found)


def visible(batches: Iterable[RecordBatch], aborted: Iterable[AbortedTransaction]) -> Iterator[Value]:
    """Yield the records that a consumer of committed records shows (`CompletedFetch.nextFetchedRecord`).

    An aborted transaction of the list is in force from its first offset to the ABORT marker of its producer.
    """
    ahead = sorted(aborted, key=lambda txn: txn.first_offset)
    void: set[int] = set()
    for batch in batches:
        while ahead and ahead[0].first_offset <= batch.last_offset:
            void.add(ahead.pop(0).producer_id)
        if batch.marker is Marker.ABORT:
            void.discard(batch.producer_id)
        if batch.marker is not None or (batch.is_transactional and batch.producer_id in void):
            continue
        yield from batch.records
