"""Where properties see logs: the leaders' own where leaders stay, else that of the replica that the controller elected.

A leader that stays has, once it crashed, what is on its disk. A replica that is elected holds all that is committed;
what it holds beyond that may still be given up. One that crashed may have lost its tail, and leads again only when it
has registered and learned of its election: until then another in-sync replica counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, lru_cache
from operator import attrgetter
from typing import TypeVar

import attrs

from harness.model import View
from kafka_proto.broker.controller import PARTITION, Partition
from kafka_proto.broker.coordinator.transaction import TransactionMetadata, TransactionRecord, last_entries
from kafka_proto.broker.parts import LEADER, METADATA, RECORDS, REPLICA, Records
from kafka_proto.broker.placement import Placement
from kafka_proto.log import EMPTY_LOG, PartitionLog, RecordBatch, append, with_high_watermark
from kafka_proto.replication.controller import CONTROLLER
from kafka_proto.replication.replica_state import ReplicaState

S = TypeVar("S")
M = TypeVar("M")
T = TypeVar("T")
LOG, COMMITTED, BROKER_EPOCH = attrgetter("log"), attrgetter("committed"), attrgetter("broker_epoch")
SERVES = attrgetter("serves")
"""A leader that crashed does not do so until it has read its log again."""
Facts = tuple[tuple[str, str], ...]
MOST_LOGS = 2_000
"""Logs that are remembered by their batches."""


Kept = tuple[tuple[TransactionRecord, ...], int]
"""The records of a partition of the transaction log, and how many of them are committed."""


def itself(found: T) -> T:
    """Return what there is, unchanged, for callers that want all of it."""
    return found


@cache
def of(made: Callable[[S], M], function: Callable[[M], T]) -> Callable[[S], T]:
    """Return what a function makes of something that is made of a state; asked again, it is the same one."""
    return lambda state: function(made(state))


@lru_cache(maxsize=MOST_LOGS)
def log_of(batches: tuple[RecordBatch, ...], replicated: int | None = None) -> PartitionLog:
    """Return the log that batches make, some of them replicated, or all."""
    log = EMPTY_LOG
    for batch in batches:
        log = append(log, batch)
    passed = batches if replicated is None else batches[:replicated]
    return with_high_watermark(log, passed[-1].last_offset + 1 if passed else 0)


def log_of_records(state: Records) -> PartitionLog:
    """Return the log that a leader has on its disk."""
    return log_of(state.committed)


def kept_by_leader(state: Records) -> Kept:
    return (*state.committed, *(record for record, _ in state.under_way)), len(state.committed)


@attrs.frozen
class LocalLogs:
    """Logs whose leaders never change."""

    placement: Placement

    def made(self, view: View, p: str, function: Callable[[PartitionLog], T]) -> T:
        """Return what a function makes of the log of a partition, and depend on that alone: see `View.derived`."""
        leader = self.placement.leader(p)
        found: T
        if LEADER[p].derived(view, leader, SERVES):
            found = LEADER[p].derived(view, leader, of(LOG, function))
        else:
            found = RECORDS[p].derived(view, leader, of(log_of_records, function))
        return found

    def told(self, view: View, p: str, function: Callable[[Iterable[TransactionRecord]], T]) -> T:
        """Return what a function makes of the records of a partition of the transaction log, as `made` does."""
        found: T = RECORDS[p].derived(view, self.placement.leader(p), of(COMMITTED, function))
        return found

    def led_by(self, view: View, p: str) -> tuple[str, int]:
        """Return who leads a partition, with the leader epoch."""
        return self.placement.leader(p), 0

    def kept(self, view: View, p: str, holder: str, function: Callable[[Kept], T]) -> T:
        """Return what a function makes of a partition of the transaction log as its holder has it."""
        found: T = RECORDS[p].derived(view, holder, of(kept_by_leader, function))
        return found

    def held(self, view: View, p: str) -> Iterator[tuple[str, PartitionLog]]:
        """Yield the holders of a partition, each with its log there."""
        yield self.placement.leader(p), self.made(view, p, itself)

    def holders(self, p: str) -> tuple[str, ...]:
        return (self.placement.leader(p),)

    def facts(self, view: View, p: str, holder: str) -> Facts:
        """Return the leader of a partition and its ISR, as a holder of it knows that."""
        return ("leader", self.placement.leader(p)), ("ISR", "all replicas, at once")


def log_of_replica(state: ReplicaState) -> PartitionLog:
    """Return the log that a replica's records make."""
    return log_of(tuple([entry.value for entry in state.log]), state.high_watermark)


def written_in(state: ReplicaState) -> tuple[TransactionRecord, ...]:
    return tuple(entry.value for entry in state.log)


def kept_by_replica(state: ReplicaState) -> Kept:
    return written_in(state), state.high_watermark


def epoch_of(known: Partition) -> int:
    return known.quorum.leader_epoch


def may_lead(known: Partition) -> tuple[tuple[str, int], ...]:
    """Return the brokers that the controller lets lead a partition, the elected one first, with broker epochs."""
    quorum = known.quorum
    names = sorted(quorum.isr, key=lambda name: (name != quorum.leader, name))
    return tuple((name, quorum.broker_epochs[name]) for name in names)


@attrs.frozen
class ReplicatedLogs:
    """Logs that are replicated: those of the last elected leader; `hosts` are the brokers that have each partition."""

    hosts: Mapping[str, tuple[str, ...]]

    def leader(self, view: View, p: str) -> str:
        names = PARTITION[p].derived(view, CONTROLLER, may_lead)
        registered = [
            name for name, broker_epoch in names if REPLICA[p].derived(view, name, BROKER_EPOCH) == broker_epoch
        ]
        up = (name for name in registered if METADATA.of(view, name).known[p].leader)
        return next(up, registered[0] if registered else names[0][0])

    def made(self, view: View, p: str, function: Callable[[PartitionLog], T]) -> T:
        found: T = REPLICA[p].derived(view, self.leader(view, p), of(log_of_replica, function))
        return found

    def told(self, view: View, p: str, function: Callable[[Iterable[TransactionRecord]], T]) -> T:
        found: T = REPLICA[p].derived(view, self.leader(view, p), of(written_in, function))
        return found

    def led_by(self, view: View, p: str) -> tuple[str, int]:
        return self.leader(view, p), PARTITION[p].derived(view, CONTROLLER, epoch_of)

    def held(self, view: View, p: str) -> Iterator[tuple[str, PartitionLog]]:
        for b in self.hosts[p]:
            yield b, REPLICA[p].derived(view, b, log_of_replica)

    def kept(self, view: View, p: str, holder: str, function: Callable[[Kept], T]) -> T:
        found: T = REPLICA[p].derived(view, holder, of(kept_by_replica, function))
        return found

    def holders(self, p: str) -> tuple[str, ...]:
        return self.hosts[p]

    def facts(self, view: View, p: str, holder: str) -> Facts:
        state = REPLICA[p].of(view, holder)
        isr = ", ".join(sorted(state.isr)) or "nobody"
        return ("leader", state.leader or "nobody"), ("leader epoch", str(state.leader_epoch)), ("ISR", isr)


Logs = LocalLogs | ReplicatedLogs
"""The logs of a state."""


def all_entries(logs: Logs, placement: Placement, view: View) -> Iterator[TransactionMetadata]:
    """Yield the last entry of every transactional id."""
    for p in placement.transaction_partitions:
        yield from logs.told(view, p, last_entries).values()
