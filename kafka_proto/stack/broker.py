"""The broker of the stack: it hosts replicas of the transaction log, coordinates what it leads, and knows who leads.

What a replica does is said in `kafka_proto.replication.partition`, what a coordinator decides in
`kafka_proto.transactions.decisions`. Here they meet: a coordinator's entry is a record produced with `acks=all`,
whose callback answers the client when the high watermark passes it; a broker that leads loads the log before it serves;
one that is deposed resigns.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs

from harness.model import FrozenMap, Message, Turn
from kafka_proto.replication import leading, partition
from kafka_proto.replication.messages import Error as ReplicationError
from kafka_proto.replication.messages import LeaderAndIsr, LeaderAndIsrResponse, PartitionMessage, RegisterBroker
from kafka_proto.replication.partition import Outcome, Replica, ReplicaState
from kafka_proto.replication.replica_state import then
from kafka_proto.stack.state import NOBODY, Broker, TxnRecord, entry_of, log_of, replica, with_replica
from kafka_proto.transactions.controller import CONTROLLER
from kafka_proto.transactions.coordinator_role import CoordinatorRole
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


class StackBroker(CoordinatorRole[Broker]):
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
        self.initial = Broker(known=FrozenMap({p: NOBODY for p in partitions}))
        for p in hosts:
            self.initial = with_replica(self.initial, p, ReplicaState())

    def started(self, states: Mapping[str, ReplicaState], known: Mapping[str, LogMetadata]) -> Broker:
        """Return the state at the start: everybody has heard of the first election, logs are empty and loaded."""
        source, limit = self.first_block
        local = attrs.evolve(
            self.initial, known=FrozenMap(known), pid_source=source, pid_limit=limit,
            loaded=frozenset(p for p, metadata in known.items() if metadata.leader == self.name),
        )
        for p in self.hosts:
            local = with_replica(local, p, states[p])
        return local

    def restarted(self, local: Broker) -> Broker:
        """Start a new incarnation from what is on disk, or from nothing where the disk is lost."""
        after = attrs.evolve(local, incarnation=local.incarnation + 1)
        for p in self.hosts:
            survivor = partition.restarted(replica(local, p), loses_tail=not self.disk.flushes_each)
            if self.disk.is_lost:
                survivor = ReplicaState(incarnation=survivor.incarnation)
            after = with_replica(after, p, survivor)
        return after

    def step(self, local: Broker) -> Iterable[Turn[Broker]]:
        if NOBODY in local.known.values() and not local.registering:
            after = attrs.evolve(local, registering=True)
            yield Turn("RegisterBroker", (self.name,), after, (self.registration(local),), flush=True)
        for p in self.hosts:
            yield from self.lead(local, p)
        for tid, p in self.home.items():
            if p in self.hosts and self.may_append(local, p):
                yield from self.complete_partial_txn(local, tid)

    def lead(self, local: Broker, p: str) -> Iterable[Turn[Broker]]:
        """What a leader does of its own accord: it loads the log, and lets followers into the ISR."""
        k, state = self.hosts[p], replica(local, p)
        if self.may_load(k, state) and p not in local.loaded:
            entries = (entry_of(record, Callback("")) for record in log_of(local, p))
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

    def may_append(self, local: Broker, p: str) -> bool:
        """Say whether a record would be taken with `acks=all`."""
        return leading.may_append(self.hosts[p], replica(local, p), "all") is ReplicationError.NONE

    def on_message(self, local: Broker, message: Message) -> Iterable[Turn[Broker]]:
        match message:
            case LeaderAndIsr():
                yield self.receive_leader_and_isr(local, message)
            case PartitionMessage(partition=str(p)) if p in self.hosts:
                outcome = partition.receive(self.hosts[p], replica(local, p), message)
                if outcome is not None:
                    yield self.turn(f"Receive{message.type}", (self.name, message.source), local, p, outcome)
            case _:
                yield from self.receive_request(local, message)

    def receive_leader_and_isr(self, local: Broker, announced: LeaderAndIsr) -> Turn[Broker]:
        """Learn who leads a partition: update the cache, resign or load later, and tell the replica, if one is here."""
        p = announced.partition
        assert p is not None
        action, who = "ReceiveLeaderAndIsr", (self.name, p)
        if announced.incarnation != local.incarnation:
            return Turn(action, who, local)
        if announced.leader_epoch > local.known[p].cepoch:
            known = local.known.set(p, LogMetadata(announced.leader_epoch, announced.leader or ""))
            waits = local.registering and NOBODY in known.values()
            local = attrs.evolve(self.resigned(local, p), known=known, registering=waits)
        if p in self.hosts:
            outcome = partition.obey(self.hosts[p], replica(local, p), announced)
            return self.turn(action, who, local, p, outcome)
        heard = LeaderAndIsrResponse(
            announced.leader_epoch, announced.incarnation, source=self.name, dest=announced.source, partition=p
        )
        return Turn(action, who, local, (heard,) if announced.again else ())

    def append_entry(
        self, local: Broker, action: str, who: tuple[str, ...], entry: Entry, waits: bool
    ) -> Turn[Broker]:
        """Produce a transition with `acks=all`; what waits for it is the entry's callback."""
        p = self.home[entry.tid]
        pending, outcome = self.produce(local, p, entry)
        return self.turn(action, who, pending, p, outcome)

    def produce(self, local: Broker, p: str, entry: Entry) -> tuple[Broker, Outcome]:
        """Append an entry to the leader's log and make its transition pending, unless the log refuses it."""
        state = replica(local, p)
        record = TxnRecord(entry.tid, entry.transition)
        outcome = partition.produce(self.hosts[p], state, record, "all", entry.callback)
        if outcome.state.log != state.log:
            local = attrs.evolve(local, transitions=local.transitions.set(entry.tid, entry.transition))
        return with_replica(local, p, outcome.state), outcome

    def turn(self, action: str, who: tuple[str, ...], local: Broker, p: str, outcome: Outcome) -> Turn[Broker]:
        """Return the turn that an outcome of a replica is, with all that follows from it at once.

        Clients whose entry failed are answered, the high watermark rises as far as it may, and the coordinator learns
        what it passes.
        """
        k = self.hosts[p]
        local, outcome = self.complete(with_replica(local, p, outcome.state), p, outcome)
        while self.may_raise(k, replica(local, p)):
            raised = partition.increase_high_watermark(k, replica(local, p))
            local = with_replica(local, p, raised.state)
            if p in local.loaded:
                record = log_of(local, p)[raised.state.high_watermark - 1]
                local = self.learned(local, entry_of(record, Callback("")))
            local, raised = self.complete(local, p, raised)
            outcome = then(outcome, raised)
        return Turn(action, who, local, outcome.sent, outcome.flush)

    def may_raise(self, k: Replica, state: ReplicaState) -> bool:
        """Say whether the high watermark may pass a record."""
        if self.waits_for_min_isr and not leading.has_enough_in_sync(k, state):
            return False
        return partition.may_increase_high_watermark(k, state)

    def complete(self, local: Broker, p: str, outcome: Outcome) -> tuple[Broker, Outcome]:
        """Run the callbacks of the records that are completed; a transaction that is prepared now is completed next."""
        for done in outcome.completed:
            callback: Callback = done.callback
            if done.error is not ReplicationError.NONE:
                refusal = () if callback.err is None else (callback.err,)
                outcome = attrs.evolve(outcome, sent=(*outcome.sent, *refusal))
                continue
            completion = self.version.entry_committed(entry_of(log_of(local, p)[done.offset], callback))
            outcome = attrs.evolve(outcome, sent=(*outcome.sent, *completion.answers))
            if completion.entry is not None:
                local, appended = self.produce(local, p, completion.entry)
                outcome = then(outcome, appended)
        return local, outcome

    def flushed(self, local: Broker) -> Broker:
        """Return the state in which all records are on disk."""
        for p in self.hosts:
            state = replica(local, p)
            local = with_replica(local, p, attrs.evolve(state, flushed=len(state.log)))
        return local

    def registration(self, local: Broker) -> RegisterBroker:
        return RegisterBroker(local.incarnation, source=self.name, dest=CONTROLLER)

    def timers(self, local: Broker) -> tuple[str, ...]:
        states = [(k, replica(local, p)) for p, k in self.hosts.items()]
        asks = local.registering or local.allocating or any(partition.resend(state) for _, state in states)
        lags = any(partition.lagging(k, state) for k, state in states)
        dirty = not self.disk.flushes_each and any(state.flushed < len(state.log) for _, state in states)
        return (
            *(("BrokerRequestTimeout",) if asks else ()),
            *(("ReplicaLagTime",) if lags else ()),
            *(("LogFlushInterval",) if dirty else ()),
        )

    def timer_fired(self, local: Broker, timer: str) -> Iterable[Turn[Broker]]:
        """Ask again for what was not answered; flush the logs; or propose to go on without a follower that lags."""
        if timer == "BrokerRequestTimeout":
            again = tuple(message for p in self.hosts for message in partition.resend(replica(local, p)))
            register = (self.registration(local),) if local.registering else ()
            allocate = (self.allocate(),) if local.allocating else ()
            yield Turn(timer, (self.name,), local, (*register, *allocate, *again))
            return
        if timer == "LogFlushInterval":
            yield Turn("FlushLog", (self.name,), self.flushed(local), flush=True)
            return
        for p, k in self.hosts.items():
            state = replica(local, p)
            for follower in sorted(partition.lagging(k, state)):
                outcome = partition.propose_isr(k, state, state.isr - {follower})
                yield self.turn("ProposeShrinkIsr", (self.name, p, follower), local, p, outcome)


def start_of_epoch(state: ReplicaState) -> int:
    """Return the offset at which a leader's own epoch begins in its log: its end where it has written nothing yet."""
    earlier = (entry.epoch < state.leader_epoch for entry in state.log)
    return sum(earlier)
