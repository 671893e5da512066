"""What a broker of the stack keeps: its replicas of log partitions, its metadata cache, its coordinator's memory.

A replica's state has persisted and volatile fields of its own. The broker keeps the two apart, so that the one generic
crash leaves what is on disk; `replica` and `with_replica` put a replica's state together and take it apart.
"""

from __future__ import annotations

from typing import cast

import attrs

from harness.model import FrozenMap, Value, durable, persisted, volatile
from kafka_proto.replication.partition import ReplicaState
from kafka_proto.replication.records import NIL
from kafka_proto.transactions.coordinator_role import Coordinator
from kafka_proto.transactions.records import Callback, Entry, LogMetadata, TxnMetadata

NOBODY = LogMetadata(NIL, "")
"""What a broker knows of a partition until it learns who leads it."""
Fields = FrozenMap[str, Value]


@attrs.frozen
class TxnRecord:
    """A record of the transaction log: the transition of a transactional id. Who is answered stays with the leader."""

    tid: str
    transition: TxnMetadata


def entry_of(record: TxnRecord, callback: Callback) -> Entry:
    """Return a record as the entry that the coordinator's decisions speak of, with what its commit sets off."""
    return Entry(record.tid, record.transition, callback)


@attrs.frozen
class Broker(Coordinator):
    """The local state of a broker. `known` is its metadata cache, also of partitions that it does not host."""

    stored: FrozenMap[str, Fields] = persisted(default=FrozenMap())
    """Of each replica, by partition: the fields that are on disk as of the last flush."""
    running: FrozenMap[str, Fields] = volatile(default=FrozenMap())
    """Of each replica: the volatile fields that are not at their defaults."""
    incarnation: int = persisted(default=0)
    """How often this broker was started again. Kafka's controller gives the number (broker epoch): no disk loses it."""
    registering: bool = volatile(default=False)
    """Whether it has reported its restart to the controller, and waits to learn who leads."""


def replica(local: Broker, p: str) -> ReplicaState:
    """Return the state of a broker's replica of a partition."""
    running = local.running.get(p)
    return ReplicaState(**local.stored[p], **(running if running is not None else {}))


def with_replica(local: Broker, p: str, state: ReplicaState) -> Broker:
    """Return the broker with another state of its replica of a partition."""
    return attrs.evolve(
        local, stored=local.stored.set(p, durable(state)), running=local.running.set(p, running_fields(state))
    )


def running_fields(state: ReplicaState) -> Fields:
    """Return the volatile fields of a replica that are not at their defaults."""
    values = ((f.name, getattr(state, f.name), f.default) for f in VOLATILE)
    return FrozenMap({name: value for name, value, default in values if value != default})


def log_of(local: Broker, p: str) -> tuple[TxnRecord, ...]:
    """Return what the records of a broker's replica carry."""
    return tuple(cast(TxnRecord, entry.value) for entry in local.stored[p]["log"])


VOLATILE = tuple(f for f in attrs.fields(ReplicaState) if not f.metadata.get("persisted"))
