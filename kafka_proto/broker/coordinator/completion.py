"""What follows a Prepare*: markers to each partition, again until they are acknowledged, then Complete*."""

from __future__ import annotations

from enum import StrEnum

import attrs

from kafka_proto.broker.coordinator.transaction import CachedTransaction, TransactionMetadata, TxnState, prepare
from kafka_proto.errors import Error
from kafka_proto.log import NO_PRODUCER_ID

PERMANENT = (Error.INVALID_PRODUCER_EPOCH, Error.TRANSACTION_COORDINATOR_FENCED)
"""Somebody else has ended the transaction there: the coordinator sends no more markers for it."""
RETRIABLE = (
    Error.UNKNOWN_TOPIC_OR_PARTITION, Error.NOT_LEADER_OR_FOLLOWER, Error.NOT_ENOUGH_REPLICAS,
    Error.NOT_ENOUGH_REPLICAS_AFTER_APPEND, Error.REQUEST_TIMED_OUT, Error.KAFKA_STORAGE_ERROR,
    Error.COORDINATOR_LOAD_IN_PROGRESS, Error.COORDINATOR_NOT_AVAILABLE, Error.NOT_COORDINATOR, Error.NETWORK_EXCEPTION,
)


class AfterMarker(StrEnum):
    """What a coordinator does about the answer to a marker (`TransactionMarkerRequestCompletionHandler`)."""

    DONE = "done"
    AGAIN = "again"
    GIVE_UP = "give up"


def after_marker(error: Error) -> AfterMarker:
    """Say what follows from a partition's answer. Raises ValueError for a code that the coordinator does not expect."""
    if error is Error.NONE:
        return AfterMarker.DONE
    if error in PERMANENT:
        return AfterMarker.GIVE_UP
    if error in RETRIABLE:
        return AfterMarker.AGAIN
    raise ValueError(f"no coordinator expects {error} in an answer to its markers")


def completed(metadata: TransactionMetadata, now: int) -> TransactionMetadata:
    """Return a prepared transaction as Complete* is logged (`prepareComplete`): a new producer id is switched in."""
    committed = metadata.state is TxnState.PREPARE_COMMIT
    state = TxnState.COMPLETE_COMMIT if committed else TxnState.COMPLETE_ABORT
    switches = metadata.bumps_epoch and metadata.next_producer_id != NO_PRODUCER_ID
    return prepare(
        CachedTransaction(metadata), state=state, partitions=(), last_update_timestamp=now,
        producer_id=metadata.next_producer_id if switches else metadata.producer_id,
        producer_epoch=0 if switches else metadata.producer_epoch, next_producer_id=NO_PRODUCER_ID,
    )


def without_partition(cached: CachedTransaction, partition: str) -> CachedTransaction:
    """Return a prepared transaction one of whose partitions has its marker."""
    left = tuple(name for name in cached.metadata.partitions if name != partition)
    return attrs.evolve(cached, metadata=attrs.evolve(cached.metadata, partitions=left))
