"""What makes a log shorter, or makes it forget: truncation and DeleteRecords; and reading it anew."""

from __future__ import annotations

import attrs

from harness.model import FrozenMap
from kafka_proto.log.chunks import chunks
from kafka_proto.log.partition_log import EndedTransaction, PartitionLog, append, with_high_watermark


def rebuild(log: PartitionLog) -> PartitionLog:
    """Derive everything anew from the batches, as a broker that starts or becomes leader does without a snapshot.

    Equal to the log itself while nothing was removed: what a snapshot holds of deleted records is not in the batches.
    """
    found = PartitionLog(log_start_offset=log.log_start_offset, log_end_offset=log.log_start_offset)
    for batch in log.batches:
        if batch.base_offset != found.log_end_offset:  # it holds the start of the log, or what was between is gone
            found = attrs.evolve(found, log_end_offset=batch.base_offset)
        found = append(found, batch)
    return with_high_watermark(attrs.evolve(found, log_end_offset=log.log_end_offset), log.high_watermark)


def truncate(log: PartitionLog, offset: int) -> PartitionLog:
    """Cut what begins at or after an offset, and derive the rest anew (`truncateTo`)."""
    kept = chunks(batch for batch in log.batches if batch.last_offset < offset)
    end = min(log.log_end_offset, max(offset, log.log_start_offset))
    shorter = attrs.evolve(log, batches=kept, log_end_offset=end, high_watermark=min(log.high_watermark, end))
    return rebuild(shorter)


def delete_records(log: PartitionLog, offset: int) -> PartitionLog:
    """Move the start of the log up to an offset (`maybeIncrementLogStartOffset`); it is at most the high watermark.

    Batches that are wholly before it go. Producers stay known until they expire (since Kafka 2.4, KAFKA-7190).
    """
    if offset <= log.log_start_offset:
        return log
    kept = chunks(batch for batch in log.batches if batch.last_offset >= offset)
    waiting: tuple[EndedTransaction, ...] = tuple(txn for txn in log.unreplicated if txn.last_offset >= offset)
    aborted = chunks(txn for txn in log.aborted if txn.last_offset >= offset)
    return attrs.evolve(log, batches=kept, log_start_offset=offset, unreplicated=waiting, aborted=aborted)


def open_from_start(log: PartitionLog) -> PartitionLog:
    """Let transactions begin at the start of the log where it lies within a batch of theirs (up to Kafka 3.9).

    From 4.0 on a reader of committed records may read up to that batch, which is as far.
    """
    moved = tuple(attrs.evolve(txn, first_offset=max(txn.first_offset, log.log_start_offset)) for txn in log.open)
    return log if moved == log.open else attrs.evolve(log, open=moved)


def forget_deleted_producers(log: PartitionLog) -> PartitionLog:
    """Forget producers whose last batch is not in the log any more, open transactions and all (up to Kafka 2.3).

    `ProducerStateManager.truncateHead`; why a producer was told UNKNOWN_PRODUCER_ID, and KIP-360's reason.
    """
    kept = FrozenMap((producer_id, state) for producer_id, state in log.producers.items()
                     if state.batches and state.batches[-1].last_offset >= log.log_start_offset)
    still_open = tuple(txn for txn in log.open if txn.producer_id in kept)
    return open_from_start(attrs.evolve(log, producers=kept, open=still_open))
