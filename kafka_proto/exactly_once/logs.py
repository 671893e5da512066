"""Where properties see logs: the leaders' own where leaders stay, else that of the replica that the controller elected.

A leader that stays has, once it crashed, what is on its disk. A replica that is elected holds all that is committed;
what it holds beyond that may still be given up. One that crashed may have lost its tail, and leads again only when it
has registered and learned of its election: until then another in-sync replica counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Protocol

import attrs

from harness.model import FrozenMap, View
from kafka_proto.coordinator.transaction import TransactionMetadata
from kafka_proto.exactly_once.broker_state import LEADER, LeaderState
from kafka_proto.exactly_once.ghosts import Ghosts, Span, spans
from kafka_proto.exactly_once.placement import Placement
from kafka_proto.exactly_once.transaction_log import TransactionRecord, ghosts_of, last_entries
from kafka_proto.log import EMPTY_LOG, PartitionLog, append, with_high_watermark
from kafka_proto.replication.partition import ReplicaState
from kafka_proto.stack.controller import PARTITION, Partition
from kafka_proto.stack.local_log import RECORDS, Records
from kafka_proto.stack.replicated_log import REPLICA
from kafka_proto.stack.state import METADATA
from kafka_proto.transactions.controller import CONTROLLER


class Logs(Protocol):
    """The logs of a state."""

    def partition(self, view: View, p: str) -> PartitionLog: ...
    def spans(self, view: View, p: str) -> tuple[Span, ...]: ...
    def entries(self, view: View, p: str) -> FrozenMap[str, TransactionMetadata]:
        """Return the last entry of each transactional id of a partition of the transaction log."""
        ...
    def ghosts(self, view: View, p: str) -> Ghosts: ...
    def held(self, view: View, p: str) -> Iterator[tuple[str, PartitionLog]]:
        """Yield who holds a partition, and its log there."""
        ...
    def transactions(self, view: View, p: str) -> Iterator[tuple[str, tuple[TransactionRecord, ...], int]]:
        """Yield who holds a partition of the transaction log, its records there, and how many are committed."""
        ...


def log_of_leader(state: LeaderState) -> PartitionLog | None:
    """Return what a leader has read of its log; None where it crashed and has not read it again."""
    return state.log if state.serves else None


def spans_of_leader(state: LeaderState) -> tuple[Span, ...] | None:
    return spans(state.log) if state.serves else None


def log_of_records(state: Records) -> PartitionLog:
    """Return the log that a partition's records make."""
    log = EMPTY_LOG
    for batch in state.committed:
        log = append(log, batch)
    return with_high_watermark(log, log.log_end_offset)


def spans_of_records(state: Records) -> tuple[Span, ...]:
    return spans(log_of_records(state))


def entries_of_records(state: Records) -> FrozenMap[str, TransactionMetadata]:
    return last_entries(state.committed)


def ghosts_of_records(state: Records) -> Ghosts:
    return ghosts_of(state.committed)


@attrs.frozen
class LocalLogs:
    """Logs whose leaders stay for good."""

    placement: Placement

    def partition(self, view: View, p: str) -> PartitionLog:
        leader = self.placement.leader(p)
        log = LEADER[p].derived(view, leader, log_of_leader)
        return RECORDS[p].derived(view, leader, log_of_records) if log is None else log

    def spans(self, view: View, p: str) -> tuple[Span, ...]:
        leader = self.placement.leader(p)
        found = LEADER[p].derived(view, leader, spans_of_leader)
        return RECORDS[p].derived(view, leader, spans_of_records) if found is None else found

    def entries(self, view: View, p: str) -> FrozenMap[str, TransactionMetadata]:
        return RECORDS[p].derived(view, self.placement.leader(p), entries_of_records)

    def ghosts(self, view: View, p: str) -> Ghosts:
        return RECORDS[p].derived(view, self.placement.leader(p), ghosts_of_records)

    def held(self, view: View, p: str) -> Iterator[tuple[str, PartitionLog]]:
        yield self.placement.leader(p), self.partition(view, p)

    def transactions(self, view: View, p: str) -> Iterator[tuple[str, tuple[TransactionRecord, ...], int]]:
        leader = self.placement.leader(p)
        log = RECORDS[p].of(view, leader)
        yield leader, (*log.committed, *(record for record, _ in log.under_way)), len(log.committed)


def log_of_replica(state: ReplicaState) -> PartitionLog:
    """Return the log that a replica's records make."""
    log = EMPTY_LOG
    for entry in state.log:
        log = append(log, entry.value)
    passed = state.log[state.high_watermark - 1].value.last_offset + 1 if state.high_watermark else 0
    return with_high_watermark(log, passed)


def spans_of_replica(state: ReplicaState) -> tuple[Span, ...]:
    return spans(log_of_replica(state))


def entries_of_replica(state: ReplicaState) -> FrozenMap[str, TransactionMetadata]:
    return last_entries(entry.value for entry in state.log)


def ghosts_of_replica(state: ReplicaState) -> Ghosts:
    return ghosts_of(entry.value for entry in state.log)


def may_lead(known: Partition) -> tuple[tuple[str, int], ...]:
    """Return who may lead a partition in the controller's eyes, who was elected first, each with its broker epoch."""
    quorum = known.quorum
    names = sorted(quorum.isr, key=lambda name: (name != quorum.leader, name))
    return tuple((name, quorum.broker_epochs[name]) for name in names)


def broker_epoch_of(state: ReplicaState) -> int:
    return state.broker_epoch


@attrs.frozen
class ReplicatedLogs:
    """Logs that are replicated: those of who was elected last; `hosts` are the brokers that have each partition."""

    hosts: Mapping[str, tuple[str, ...]]

    def leader(self, view: View, p: str) -> str:
        names = PARTITION[p].derived(view, CONTROLLER, may_lead)
        registered = [
            name for name, broker_epoch in names if REPLICA[p].derived(view, name, broker_epoch_of) == broker_epoch
        ]
        up = (name for name in registered if METADATA.of(view, name).known[p].leader)
        return next(up, registered[0] if registered else names[0][0])

    def partition(self, view: View, p: str) -> PartitionLog:
        return REPLICA[p].derived(view, self.leader(view, p), log_of_replica)

    def spans(self, view: View, p: str) -> tuple[Span, ...]:
        return REPLICA[p].derived(view, self.leader(view, p), spans_of_replica)

    def entries(self, view: View, p: str) -> FrozenMap[str, TransactionMetadata]:
        return REPLICA[p].derived(view, self.leader(view, p), entries_of_replica)

    def ghosts(self, view: View, p: str) -> Ghosts:
        return REPLICA[p].derived(view, self.leader(view, p), ghosts_of_replica)

    def held(self, view: View, p: str) -> Iterator[tuple[str, PartitionLog]]:
        for b in self.hosts[p]:
            yield b, REPLICA[p].derived(view, b, log_of_replica)

    def transactions(self, view: View, p: str) -> Iterator[tuple[str, tuple[TransactionRecord, ...], int]]:
        for b in self.hosts[p]:
            state = REPLICA[p].of(view, b)
            yield b, tuple(entry.value for entry in state.log), state.high_watermark


def all_entries(logs: Logs, placement: Placement, view: View) -> Iterator[TransactionMetadata]:
    """Yield the last entry of every transactional id."""
    for p in placement.transaction_partitions:
        yield from logs.entries(view, p).values()
