"""The broker of the stack: it hosts replicas of the transaction log, coordinates what it leads, and knows who leads.

What a replica does is said in `kafka_proto.replication.partition`, what a coordinator decides in
`kafka_proto.transactions.decisions`. Here they meet: a coordinator's entry is a record produced with `acks=all`,
whose callback answers the client when the high watermark passes it; a broker that leads loads the log before it serves;
one that is deposed resigns.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from harness.model import FrozenMap, Local, Message, Part, Turn
from kafka_proto.replication import leading, partition
from kafka_proto.replication.messages import Error as ReplicationError
from kafka_proto.replication.messages import LeaderAndIsr, LeaderAndIsrResponse, PartitionMessage, RegisterBroker
from kafka_proto.replication.partition import Outcome, Replica, ReplicaState
from kafka_proto.replication.replica_state import then
from kafka_proto.stack.state import (
    COORDINATOR,
    METADATA,
    NOBODY,
    PRODUCER_IDS,
    REPLICA,
    Metadata,
    ProducerIds,
    TxnRecord,
    entry_of,
    log_of,
    record_at,
)
from kafka_proto.transactions.controller import CONTROLLER
from kafka_proto.transactions.coordinator_role import Coordinator, CoordinatorRole
from kafka_proto.transactions.decisions import producer_ids
from kafka_proto.transactions.records import Callback, Entry, LogMetadata
from kafka_proto.transactions.versions.version import Version


@attrs.frozen
class Disk:
    """What a crash does to a broker's disk."""

    flushes_each: bool = True
    """Whether a record is on disk before anything leaves the broker that depends on it, or when a timer fires."""
    is_lost: bool = False
    """Whether a broker that crashed starts again with an empty disk."""


class StackBroker(CoordinatorRole[Local]):
    """The actor of one broker."""

    may_crash = True

    def __init__(
        self, name: str, number: int, hosts: Mapping[str, Replica], partitions: tuple[str, ...],
        home: Mapping[str, str], version: Version, disk: Disk, waits_for_min_isr: bool = False,
    ) -> None:
        self.name = name
        self.hosts = hosts
        """The constants of each replica here, by partition."""
        self.home = home
        self.version = version
        self.disk = disk
        self.waits_for_min_isr = waits_for_min_isr
        """KIP-966: whether the high watermark stays while the ISR is smaller than `min.insync.replicas`."""
        self.first_block = producer_ids.block(number)
        nobody = Metadata(FrozenMap({p: NOBODY for p in partitions}))
        first = Local.first(name, METADATA, COORDINATOR, PRODUCER_IDS, *(REPLICA[p] for p in hosts))
        self.initial = first.put(METADATA, nobody)

    def started(self, states: Mapping[str, ReplicaState], known: Mapping[str, LogMetadata]) -> Local:
        """Return the state at the start: everybody has heard of the first election, logs are empty and loaded."""
        loaded = frozenset(p for p, metadata in known.items() if metadata.leader == self.name)
        local = self.initial.put(METADATA, Metadata(FrozenMap(known))).put(COORDINATOR, Coordinator(loaded))
        local = local.put(PRODUCER_IDS, ProducerIds(*self.first_block))
        for p in self.hosts:
            local = local.put(REPLICA[p], states[p])
        return local

    def known(self, local: Local, p: str) -> LogMetadata:
        return local[METADATA].known[p]

    def coordinator(self, local: Local) -> Coordinator:
        return local[COORDINATOR]

    def remembering(self, local: Local, **changed: Any) -> Local:
        return local.put(COORDINATOR, attrs.evolve(local[COORDINATOR], **changed))

    def producer_ids(self, local: Local) -> ProducerIds:
        return local[PRODUCER_IDS]

    def with_producer_ids(self, local: Local, **changed: Any) -> Local:
        return local.put(PRODUCER_IDS, attrs.evolve(local[PRODUCER_IDS], **changed))

    def restarted(self, local: Local) -> Local:
        """Start a new incarnation from what is on disk, or from nothing where the disk is lost."""
        metadata = local[METADATA]
        local = local.put(METADATA, attrs.evolve(metadata, incarnation=metadata.incarnation + 1))
        for p in self.hosts:
            survivor = partition.restarted(local[REPLICA[p]], loses_tail=not self.disk.flushes_each)
            if self.disk.is_lost:
                survivor = ReplicaState(incarnation=survivor.incarnation)
            local = local.put(REPLICA[p], survivor)
        return local

    def step(self, local: Local) -> Iterable[Turn[Local]]:
        metadata = local[METADATA]
        if NOBODY in metadata.known.values() and not metadata.registering:
            after = local.put(METADATA, attrs.evolve(metadata, registering=True))
            numbers: tuple[Part[Any], ...] = (METADATA, *(REPLICA[p] for p in self.hosts))
            yield Turn("RegisterBroker", (self.name,), after, (self.registration(local),), flush=numbers)
        for p in self.hosts:
            yield from self.lead(local, p)
        for tid, p in self.home.items():
            if p in self.hosts and self.may_append(local, p):
                yield from self.complete_partial_txn(local, tid)

    def lead(self, local: Local, p: str) -> Iterable[Turn[Local]]:
        """What a leader does of its own accord: it loads the log, and lets followers into the ISR."""
        k, state = self.hosts[p], local[REPLICA[p]]
        if self.may_load(k, state) and p not in local[COORDINATOR].loaded:
            entries = (entry_of(record, Callback("")) for record in log_of(state))
            yield Turn("LoadTxnLog", (self.name, p), self.serving(local, p, entries))
        for follower in state.followers:
            if self.may_expand_isr(k, state, follower):
                outcome = partition.propose_isr(k, state, state.isr | {follower})
                yield self.turn("ProposeExpandIsr", (self.name, p, follower), local, p, outcome)

    def may_expand_isr(self, k: Replica, state: ReplicaState, follower: str) -> bool:
        """Say whether a leader may propose to let a follower in.

        Where the high watermark waits for a larger ISR, the ISR must not wait for the high watermark: it is enough that
        the follower holds all that the leader held when it was elected, which is Kafka's own rule.
        """
        if not self.waits_for_min_isr or leading.has_enough_in_sync(k, state):
            return partition.may_expand_isr(k, state, follower)
        end_offset = leading.known_end_offset(state, follower)
        if not partition.leads(k, state) or state.proposal is not None or follower in state.isr or end_offset is None:
            return False
        return end_offset >= start_of_epoch(state)

    def may_load(self, k: Replica, state: ReplicaState) -> bool:
        """Say whether a leader may load its log: all that was in it when it was elected is committed.

        Kafka reads up to the end of the log without waiting, so that a coordinator may refuse a client because of a
        transition that the next leader does not have.
        """
        return partition.leads(k, state) and state.high_watermark == len(state.log)

    def may_append(self, local: Local, p: str) -> bool:
        """Say whether a record would be taken with `acks=all`."""
        return leading.may_append(self.hosts[p], local[REPLICA[p]], "all") is ReplicationError.NONE

    def on_message(self, local: Local, message: Message) -> Iterable[Turn[Local]]:
        match message:
            case LeaderAndIsr():
                yield self.receive_leader_and_isr(local, message)
            case PartitionMessage(partition=str(p)) if p in self.hosts:
                outcome = partition.receive(self.hosts[p], local[REPLICA[p]], message)
                if outcome is not None:
                    yield self.turn(f"Receive{message.type}", (self.name, message.source), local, p, outcome)
            case _:
                yield from self.receive_request(local, message)

    def receive_leader_and_isr(self, local: Local, announced: LeaderAndIsr) -> Turn[Local]:
        """Learn who leads a partition: update the cache, resign or load later, and tell the replica, if one is here."""
        p = announced.partition
        assert p is not None
        action, who, metadata = "ReceiveLeaderAndIsr", (self.name, p), local[METADATA]
        if announced.incarnation != metadata.incarnation:
            return Turn(action, who, local)
        if announced.leader_epoch > metadata.known[p].cepoch:
            known = metadata.known.set(p, LogMetadata(announced.leader_epoch, announced.leader or ""))
            waits = metadata.registering and NOBODY in known.values()
            learned = attrs.evolve(metadata, known=known, registering=waits)
            local = self.resigned(local, p).put(METADATA, learned)
        if p in self.hosts:
            outcome = partition.obey(self.hosts[p], local[REPLICA[p]], announced)
            return self.turn(action, who, local, p, outcome)
        heard = LeaderAndIsrResponse(
            announced.leader_epoch, announced.incarnation, source=self.name, dest=announced.source, partition=p
        )
        return Turn(action, who, local, (heard,) if announced.again else ())

    def append_entry(self, local: Local, action: str, who: tuple[str, ...], entry: Entry, waits: bool) -> Turn[Local]:
        """Produce a transition with `acks=all`; what waits for it is the entry's callback."""
        p = self.home[entry.tid]
        pending, outcome = self.produce(local, p, entry)
        return self.turn(action, who, pending, p, outcome)

    def produce(self, local: Local, p: str, entry: Entry) -> tuple[Local, Outcome]:
        """Append an entry to the leader's log and make its transition pending, unless the log refuses it."""
        state = local[REPLICA[p]]
        record = TxnRecord(entry.tid, entry.transition)
        outcome = partition.produce(self.hosts[p], state, record, "all", entry.callback)
        if outcome.state.log != state.log:
            pending = local[COORDINATOR].transitions.set(entry.tid, entry.transition)
            local = self.remembering(local, transitions=pending)
        return local.put(REPLICA[p], outcome.state), outcome

    def turn(self, action: str, who: tuple[str, ...], local: Local, p: str, outcome: Outcome) -> Turn[Local]:
        """Return the turn that an outcome of a replica is, with all that follows from it at once.

        Clients whose entry failed are answered, the high watermark rises as far as it may, and the coordinator learns
        what it passes.
        """
        k, part = self.hosts[p], REPLICA[p]
        local, outcome = self.complete(local.put(part, outcome.state), p, outcome)
        while self.may_raise(k, local[part]):
            raised = partition.increase_high_watermark(k, local[part])
            local = local.put(part, raised.state)
            if p in local[COORDINATOR].loaded:
                record = record_at(local, p, raised.state.high_watermark - 1)
                local = self.learned(local, entry_of(record, Callback("")))
            local, raised = self.complete(local, p, raised)
            outcome = then(outcome, raised)
        return Turn(action, who, local, outcome.sent, outcome.flush)

    def may_raise(self, k: Replica, state: ReplicaState) -> bool:
        """Say whether the high watermark may pass a record."""
        if self.waits_for_min_isr and not leading.has_enough_in_sync(k, state):
            return False
        return partition.may_increase_high_watermark(k, state)

    def complete(self, local: Local, p: str, outcome: Outcome) -> tuple[Local, Outcome]:
        """Run the callbacks of the records that are completed; a transaction that is prepared now is completed next."""
        for done in outcome.completed:
            callback: Callback = done.callback
            if done.error is not ReplicationError.NONE:
                refusal = () if callback.err is None else (callback.err,)
                outcome = attrs.evolve(outcome, sent=(*outcome.sent, *refusal))
                continue
            completion = self.version.entry_committed(entry_of(record_at(local, p, done.offset), callback))
            outcome = attrs.evolve(outcome, sent=(*outcome.sent, *completion.answers))
            if completion.entry is not None:
                local, appended = self.produce(local, p, completion.entry)
                outcome = then(outcome, appended)
        return local, outcome

    def flushed(self, local: Local) -> Local:
        """Return the state in which all records are on disk."""
        for p in self.hosts:
            state = local[REPLICA[p]]
            local = local.put(REPLICA[p], attrs.evolve(state, flushed=len(state.log)))
        return local

    def registration(self, local: Local) -> RegisterBroker:
        return RegisterBroker(local[METADATA].incarnation, source=self.name, dest=CONTROLLER)

    def timers(self, local: Local) -> tuple[str, ...]:
        states = [(k, local[REPLICA[p]]) for p, k in self.hosts.items()]
        waits = local[METADATA].registering or local[PRODUCER_IDS].allocating
        asks = waits or any(partition.resend(state) for _, state in states)
        lags = any(partition.lagging(k, state) for k, state in states)
        dirty = not self.disk.flushes_each and any(state.flushed < len(state.log) for _, state in states)
        return (
            *(("BrokerRequestTimeout",) if asks else ()),
            *(("ReplicaLagTime",) if lags else ()),
            *(("LogFlushInterval",) if dirty else ()),
        )

    def timer_fired(self, local: Local, timer: str) -> Iterable[Turn[Local]]:
        """Ask again for what was not answered; flush the logs; or propose to go on without a follower that lags."""
        if timer == "BrokerRequestTimeout":
            again = tuple(message for p in self.hosts for message in partition.resend(local[REPLICA[p]]))
            register = (self.registration(local),) if local[METADATA].registering else ()
            allocate = (self.allocate(),) if local[PRODUCER_IDS].allocating else ()
            yield Turn(timer, (self.name,), local, (*register, *allocate, *again))
            return
        if timer == "LogFlushInterval":
            yield Turn("FlushLog", (self.name,), self.flushed(local), flush=True)
            return
        for p, k in self.hosts.items():
            state = local[REPLICA[p]]
            for follower in sorted(partition.lagging(k, state)):
                outcome = partition.propose_isr(k, state, state.isr - {follower})
                yield self.turn("ProposeShrinkIsr", (self.name, p, follower), local, p, outcome)


def start_of_epoch(state: ReplicaState) -> int:
    """Return the offset at which a leader's own epoch begins in its log: its end where it has written nothing yet."""
    earlier = (entry.epoch < state.leader_epoch for entry in state.log)
    return sum(earlier)
