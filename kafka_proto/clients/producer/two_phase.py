"""What a producer that takes part in two-phase commits may be asked besides (KIP-939)."""

from __future__ import annotations

import attrs

from kafka_proto.clients.producer import (
    IllegalState,
    PreparedTxnState,
    Producer,
    ProducerStatus,
)


def is_flushed(producer: Producer) -> bool:
    """Say whether all that was written in a transaction is acknowledged."""
    return producer.call is None and not (producer.batches or producer.offsets or producer.new_partitions)


def prepare_transaction(producer: Producer) -> Producer:
    """Prepare a transaction that is flushed: from now on it can only be ended (`prepareTransaction`)."""
    if producer.status is not ProducerStatus.IN_TRANSACTION or not is_flushed(producer):
        raise IllegalState("prepare_transaction is called in a transaction of which all is acknowledged")
    prepared = PreparedTxnState(producer.producer_id, producer.producer_epoch)
    return attrs.evolve(producer, status=ProducerStatus.PREPARED_TRANSACTION, prepared=prepared)


def complete_transaction(producer: Producer, decided: PreparedTxnState | None) -> Producer:
    """Commit if what the application's store has is the transaction that is prepared, else abort it."""
    if producer.status is not ProducerStatus.PREPARED_TRANSACTION:
        raise IllegalState("complete_transaction is called after prepare_transaction, or with a transaction kept")
    commits = decided == producer.prepared
    status = ProducerStatus.COMMITTING_TRANSACTION if commits else ProducerStatus.ABORTING_TRANSACTION
    return attrs.evolve(producer, status=status)
