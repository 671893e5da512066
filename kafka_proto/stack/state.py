"""What a broker of the stack keeps, by part: metadata cache, memory as a coordinator, producer ids, and replicas."""

from __future__ import annotations

import attrs

from harness.model import FrozenMap, Local, Part, Parts, persisted, volatile
from kafka_proto.replication.partition import ReplicaState
from kafka_proto.replication.records import NIL
from kafka_proto.transactions.coordinator_role import Coordinator
from kafka_proto.transactions.records import Callback, Entry, LogMetadata, TxnMetadata

NOBODY = LogMetadata(NIL, "")
"""What a broker knows of a partition until it learns who leads it."""


@attrs.frozen
class TxnRecord:
    """A record of the transaction log: the transition of a transactional id. Who is answered stays with the leader."""

    tid: str
    transition: TxnMetadata


def entry_of(record: TxnRecord, callback: Callback) -> Entry:
    """Return a record as the entry that the coordinator's decisions speak of, with what its commit sets off."""
    return Entry(record.tid, record.transition, callback)


@attrs.frozen
class Metadata:
    """What a broker knows of the cluster, and what the cluster knows of it."""

    known: FrozenMap[str, LogMetadata] = volatile(default=FrozenMap())
    """Leader and epoch of each partition, also of those that it does not host, as far as this broker knows."""
    incarnation: int = persisted(default=0)
    """How often this broker was started again. Kafka's controller gives the number (broker epoch): no disk loses it."""
    registering: bool = volatile(default=False)
    """Whether it has reported its restart to the controller, and waits to learn who leads."""


@attrs.frozen
class ProducerIds:
    """A broker's block of producer ids: the last one used and the last one of the block."""

    pid_source: int = volatile(default=0)
    pid_limit: int = volatile(default=0)
    allocating: bool = volatile(default=False)


METADATA = Part("metadata", Metadata())
COORDINATOR = Part("coordinator", Coordinator())
PRODUCER_IDS = Part("producer_ids", ProducerIds())
REPLICA = Parts("replica", ReplicaState)
"""By partition: the replicas that a broker hosts."""


def log_of(state: ReplicaState) -> tuple[TxnRecord, ...]:
    """Return what the records of a replica carry."""
    return tuple(entry.value for entry in state.log)


def record_at(local: Local, p: str, offset: int) -> TxnRecord:
    """Return what a record of a broker's replica carries."""
    record: TxnRecord = local[REPLICA[p]].log[offset].value
    return record


TYPES: tuple[type, ...] = (TxnRecord, Metadata, Coordinator, ProducerIds)
