"""What a node leaves behind, as a record writes it: coordinator, and per partition offsets, log and producers."""

from __future__ import annotations

from typing import Any

from kafka_proto.broker.coordinator.answers import describe
from kafka_proto.broker.coordinator.coordinator import Coordinator
from kafka_proto.conformance.symbols import Symbols
from kafka_proto.log import PartitionLog, RecordBatch, aborted_between, batches_between, visible
from kafka_proto.requests import DescribeTransactionsRequest, Error

NONE_OPEN = -1


def transaction(coordinator: Coordinator, transactional_id: str, symbols: Symbols) -> Any:
    """Return a transaction as a broker describes it; the code where it does not."""
    found = describe(coordinator, DescribeTransactionsRequest(0, transactional_id))
    if found.error is not Error.NONE:
        return found.error.value
    return {"state": found.state, "producer_id": symbols.producer_name(found.producer_id),
            "producer_epoch": found.producer_epoch, "partitions": list(found.partitions)}


def partition(log: PartitionLog, symbols: Symbols) -> dict[str, Any]:
    """Return a partition: offsets, what a reader of committed records is given and shows, batches, producers."""
    stable = log.last_stable_offset
    read = batches_between(log, log.log_start_offset, stable)
    aborted = aborted_between(log, log.log_start_offset, log.log_end_offset) if read else ()
    return {
        "high_watermark": log.high_watermark,
        "last_stable_offset": stable,
        "aborted": [{"producer_id": symbols.producer_name(txn.producer_id), "first_offset": txn.first_offset}
                    for txn in aborted],
        "committed_view": list(visible(read, aborted)),
        "log": [batch_row(batch, symbols) for batch in log.batches],
        "producers": [
            [symbols.producer_name(producer), state.producer_epoch, state.last_sequence,
             NONE_OPEN if state.open_from is None else state.open_from]
            for producer, state in sorted(log.producers.items())
        ],
    }


def batch_row(batch: RecordBatch, symbols: Symbols) -> list[Any]:
    """Return a batch as a record writes it: `[base offset, producer id, epoch, base sequence, kind, values]`."""
    kind = ("txn" if batch.is_transactional else "plain") + ("+ctl" if batch.marker is not None else "")
    return [batch.base_offset, symbols.producer_name(batch.producer_id), batch.producer_epoch, batch.base_sequence,
            kind, [str(record) for record in batch.records]]
