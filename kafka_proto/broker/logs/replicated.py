"""The log of a broker as replicas of log partitions, by the rules of KIP-320 and KIP-497.

What a replica does is said in `kafka_proto.replication.partition`. The callback of a record that is produced with
`acks=all` runs when the high watermark passes it. A new leader loads a log before it serves, and a deposed one resigns.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any

import attrs

from harness.model import Local, Message, Turn, Value
from kafka_proto.broker.parts import METADATA, NOBODY, REPLICA, LeaderAndEpoch
from kafka_proto.broker.roles import Append, Await, Effect, Log, Role, batch_at, batch_of, begun, compacted
from kafka_proto.errors import Error
from kafka_proto.log import PartitionLog, RecordBatch
from kafka_proto.log.chunks import Chunks, EpochStart
from kafka_proto.log.cleaning import Compaction
from kafka_proto.replication import leading, messages, partition, replica_state
from kafka_proto.replication.controller import CONTROLLER
from kafka_proto.replication.records import ReplicaEntry
from kafka_proto.replication.replica_state import Completed, Replica, ReplicaOutcome, ReplicaState, leads

LAG_TIME, FLUSH_INTERVAL, REQUEST_EXPIRY = "ReplicaLagTime", "LogFlushInterval", "RequestExpiry"
"""Timers of a log."""


@attrs.frozen
class Expiring:
    """A callback that runs at a time at the latest, in milliseconds (`DelayedProduce`)."""

    callback: Value
    at: int


def without_value(entry: ReplicaEntry) -> ReplicaEntry:
    """Return what stays of an entry that is gone: its leader epoch."""
    return attrs.evolve(entry, value=None)


class ReplicatedLog(Log):
    """The replicas of one broker."""

    def __init__(
        self, name: str, hosts: Mapping[str, Replica], roles: Iterable[Role], loses_disk: bool = False,
        waits_for_min_isr: bool = False,
    ) -> None:
        super().__init__(name, roles)
        self.hosts = hosts
        """The constants of each replica here, by partition."""
        self.loses_disk = loses_disk
        """Whether a broker that crashed starts again with an empty disk."""
        self.waits_for_min_isr = waits_for_min_isr
        """KIP-966: whether the high watermark stays while the ISR is smaller than `min.insync.replicas`."""
        self.named = tuple(hosts)
        self.parts = tuple(REPLICA[p] for p in hosts)
        self.places = {p: n for n, p in enumerate(hosts)}
        self.numbered = (METADATA, *self.parts)

    def registration(self, local: Local) -> Message:
        return messages.BrokerRegistrationRequest(local[METADATA].broker_epoch, source=self.name, dest=CONTROLLER)

    def restarted(self, local: Local) -> Local:
        """Start again from what is on disk, or from nothing where the disk is lost."""
        for p, k in self.hosts.items():
            survivor = replica_state.restarted(local[REPLICA[p]], loses_tail=not k.flushes_each)
            if self.loses_disk:
                survivor = ReplicaState(broker_epoch=survivor.broker_epoch)
            local = local.put(REPLICA[p], survivor)
        return local

    def step(self, local: Local, among: Collection[str] | None = None) -> Iterable[Turn[Local]]:
        """What a leader does of its own accord: it loads its log, and lets followers into the ISR."""
        places = self.places
        here = self.hosts if among is None else sorted((p for p in among if p in places), key=places.__getitem__)
        for p in here:
            k, state, role = self.hosts[p], local[REPLICA[p]], self.roles[p]
            if self.may_load(k, state) and not role.serves(local, p):
                yield Turn("LoadTxnLog", (self.name, p), self.read(local, p, state.log))
            for follower in state.followers:
                if self.may_expand_isr(k, state, follower):
                    outcome = leading.propose_isr(k, state, state.isr | {follower})
                    yield self.turn("ProposeExpandIsr", (self.name, p, follower), local, p, outcome)

    def may_expand_isr(self, k: Replica, state: ReplicaState, follower: str) -> bool:
        """Say whether a leader may propose to let a follower in.

        Where the high watermark waits for a larger ISR, the ISR must not wait for the high watermark: it is enough that
        the follower holds all that the leader held when it was elected, which is Kafka's own rule.
        """
        if not self.waits_for_min_isr or leading.has_enough_in_sync(k, state):
            return leading.may_expand_isr(k, state, follower)
        end_offset = leading.known_end_offset(state, follower)
        if not leads(k, state) or state.proposal is not None or follower in state.isr or end_offset is None:
            return False
        return end_offset >= bisect_left(state.log, state.leader_epoch, key=attrgetter("epoch"))

    def may_load(self, k: Replica, state: ReplicaState) -> bool:
        """Say whether a leader may load its log: all that was in it when it was elected is committed.

        Kafka reads up to the end of the log without waiting, so that a coordinator may refuse a client because of a
        transition that the next leader does not have.
        """
        return leads(k, state) and state.high_watermark == len(state.log)

    def may_append(self, local: Local, p: str) -> bool:
        """Say whether a record would be taken with `acks=all`."""
        if p not in self.hosts:
            return False
        return leading.may_append(self.hosts[p], local[REPLICA[p]], "all") is Error.NONE

    def receive(self, local: Local, message: Message) -> Turn[Local] | None:
        match message:
            case messages.LeaderAndIsrRequest():
                return self.receive_leader_and_isr(local, message)
            case messages.PartitionMessage(partition=str(p)) if p in self.hosts:
                outcome = partition.receive(self.hosts[p], local[REPLICA[p]], message)
                if outcome is not None:
                    return self.turn(f"Receive{message.type}", (self.name, message.source), local, p, outcome)
        return None

    def receive_leader_and_isr(self, local: Local, announced: messages.LeaderAndIsrRequest) -> Turn[Local]:
        """Learn a partition's leader: update the cache, resign or load later, and tell the replica, if one is here.

        What still waits for replicas has an unknown outcome, NOT_LEADER_OR_FOLLOWER (`DelayedProduce.tryComplete`).
        """
        p = announced.partition
        assert p is not None
        action, who, metadata = "ReceiveLeaderAndIsrRequest", (self.name, p), local[METADATA]
        if announced.broker_epoch != metadata.broker_epoch:
            return Turn(action, who, local)
        if announced.leader_epoch > metadata.known[p].leader_epoch:
            known = metadata.known.set(p, LeaderAndEpoch(announced.leader_epoch, announced.leader or ""))
            waits = metadata.registering and NOBODY in known.values()
            learned = attrs.evolve(metadata, known=known, registering=waits)
            local = self.roles[p].resigned(local, p).put(METADATA, learned)
        if p in self.hosts:
            outcome = partition.obey(self.hosts[p], local[REPLICA[p]], announced)
            outcome = attrs.evolve(outcome, completed=tuple(
                attrs.evolve(each, error=Error.NOT_LEADER_OR_FOLLOWER) for each in outcome.completed))
            return self.turn(action, who, local, p, outcome)
        heard = messages.LeaderAndIsrResponse(
            announced.leader_epoch, announced.broker_epoch, source=self.name, dest=announced.source, partition=p
        )
        return Turn(action, who, local, (heard,) if announced.again else ())

    def append(self, local: Local, wanted: Append) -> Effect:
        """Produce a record; the role hears of it unless the log refuses it."""
        p, state = wanted.partition, local[REPLICA[wanted.partition]]
        acks = "all" if wanted.waits else "1"
        outcome = self.produce(self.hosts[p], state, wanted.record, acks, self.expiring(local, wanted))
        if outcome.state.log is not state.log:
            local = self.roles[p].appended(local, p, wanted.record)
        return self.followed(local, p, outcome)

    def wait(self, local: Local, wanted: Await) -> Effect:
        """Wait until the high watermark passes a record; a duplicate is answered then, as the first one is."""
        state = local[REPLICA[wanted.partition]]
        place = self.place(state.log, wanted.offset)
        if place < state.high_watermark:
            done = Completed(wanted.callback, Error.NONE, place)
            outcome = ReplicaOutcome(state, completed=(done,))
        else:
            waiting = (*state.callbacks, (place, self.expiring(local, wanted)))
            outcome = ReplicaOutcome(attrs.evolve(state, callbacks=waiting))
        return self.followed(local, wanted.partition, outcome)

    def begun(self, local: Local, p: str, log: PartitionLog) -> Effect:
        """Forget what is before the start of a log, and let its followers know."""
        state = local[REPLICA[p]]
        shorter = attrs.evolve(state, log=begun(state.log, log, self.value, without_value))
        outcome = leading.serve(self.hosts[p], shorter)
        return self.followed(local, p, attrs.evolve(outcome, flush=True))

    def compacted(self, local: Local, p: str, done: Compaction) -> Local:
        state, without = local[REPLICA[p]], dict[int, ReplicaEntry]()
        assert isinstance(state.log, Chunks)
        firsts, epoch = set[int](), None
        for place, entry in enumerate(state.log.between(state.log.gone, len(state.log)), state.log.gone):
            if entry.epoch != epoch and (batch := self.value(entry)) is not None:
                firsts.add(batch_at(batch, place).base_offset)
            epoch = entry.epoch

        def other(entry: ReplicaEntry, before: RecordBatch, batch: RecordBatch | None) -> ReplicaEntry:
            if batch is None and before.base_offset in firsts:
                return attrs.evolve(entry, value=EpochStart(before.base_offset))
            if batch is None:
                return without.setdefault(entry.epoch, without_value(entry))
            return attrs.evolve(entry, value=batch)

        local = local.put(REPLICA[p], attrs.evolve(state, log=compacted(state.log, done, self.value, other)))
        return self.roles[p].compacted(local, p, done.log) if self.roles[p].serves(local, p) else local

    @staticmethod
    def value(item: ReplicaEntry) -> Any:
        return batch_of(item.value)

    def expiring(self, local: Local, wanted: Append | Await) -> Value:
        """Return a callback with the time at which it runs at the latest, if there is a clock."""
        clock = local[METADATA].clock
        if clock is None or wanted.timeout_ms is None:
            return wanted.callback
        return Expiring(wanted.callback, clock + wanted.timeout_ms)

    def produce(self, k: Replica, state: ReplicaState, record: Value, acks: str, callback: Value) -> ReplicaOutcome:
        return leading.append(k, state, record, acks, callback)

    def turn(self, action: str, who: tuple[str, ...], local: Local, p: str, outcome: ReplicaOutcome) -> Turn[Local]:
        """Return the turn that an outcome of a replica is, with all that follows from it at once."""
        effect = self.followed(local, p, outcome)
        return Turn(action, who, effect.local, effect.sent, effect.flush)

    def followed(self, local: Local, p: str, outcome: ReplicaOutcome) -> Effect:
        """Return what follows at once from an outcome of a replica.

        Callbacks of records that failed run, the high watermark rises as far as it may, and the role learns what it
        passes.
        """
        k, part, role = self.hosts[p], REPLICA[p], self.roles[p]
        whole = max(local[part].log, outcome.state.log, key=len)
        local = local.put(part, outcome.state)
        if role.loads_at_once and leads(k, outcome.state) and not role.serves(local, p):
            local = self.loaded(local, p, outcome.state.log, outcome.state.high_watermark)
        effect = self.called_back(local, p, outcome, whole)
        while self.may_raise(k, effect.local[part]):
            raised = leading.increase_high_watermark(k, effect.local[part])
            local = effect.local.put(part, raised.state)
            passed = raised.state.log[raised.state.high_watermark - 1].value
            if role.serves(local, p) and passed is not None:
                local = role.committed(local, p, passed)
            effect = effect.then(self.called_back(local, p, raised, raised.state.log))
        return effect

    def may_raise(self, k: Replica, state: ReplicaState) -> bool:
        """Say whether the high watermark may pass a record."""
        if self.waits_for_min_isr and not leading.has_enough_in_sync(k, state):
            return False
        return leading.may_increase_high_watermark(k, state)

    def called_back(self, local: Local, p: str, outcome: ReplicaOutcome, log: Sequence[ReplicaEntry]) -> Effect:
        """Return an outcome's messages and flush after the callbacks of its records, committed or failed, have run.

        `log` still has what is truncated now.
        """
        effect, role = Effect(local, outcome.sent, flush=outcome.flush), self.roles[p]
        for done in outcome.completed:
            local, record = effect.local, log[done.offset].value if done.offset >= 0 else None
            callback = done.callback.callback if isinstance(done.callback, Expiring) else done.callback
            if done.error is Error.NONE:
                follows = role.completed(local, p, record, callback)
            else:
                follows = role.failed(local, p, callback, done.error, record)
            effect = effect.then(self.carried_out(follows))
        return effect

    def resend(self, local: Local) -> tuple[Message, ...]:
        return tuple(message for p in self.hosts for message in partition.resend(local[REPLICA[p]]))

    def timers(self, local: Local) -> Mapping[str, int | None]:
        found = super().timers(local)
        return {**{timer: None for timer in (LAG_TIME, FLUSH_INTERVAL) if timer in found}, **found}

    def armed(self, local: Local, p: str) -> Mapping[str, int | None]:
        k, state = self.hosts[p], local[REPLICA[p]]
        found: dict[str, int | None] = {}
        if leading.lagging(k, state):
            found[LAG_TIME] = None
        if not k.flushes_each and state.flushed < len(state.log):
            found[FLUSH_INTERVAL] = None
        times = [callback.at for _, callback in state.callbacks if isinstance(callback, Expiring)]
        if times:
            found[f"{REQUEST_EXPIRY} {p}"] = min(times)
        return found

    def timer_fired(self, local: Local, timer: str) -> Iterable[Turn[Local]]:
        """Flush the logs, go on without a follower that lags, or answer what has waited for long enough."""
        kind, _, about = timer.partition(" ")
        if kind == REQUEST_EXPIRY:
            yield self.expired(local, about)
        if timer == FLUSH_INTERVAL:
            for part in self.parts:
                local = local.put(part, attrs.evolve(local[part], flushed=len(local[part].log)))
            yield Turn("FlushLog", (self.name,), local, flush=True)
        if timer != LAG_TIME:
            return
        for p, k in self.hosts.items():
            state = local[REPLICA[p]]
            for follower in sorted(leading.lagging(k, state)):
                outcome = leading.propose_isr(k, state, state.isr - {follower})
                yield self.turn("ProposeShrinkIsr", (self.name, p, follower), local, p, outcome)

    def expired(self, local: Local, p: str) -> Turn[Local]:
        """Answer the requests whose time is over; their records stay (`DelayedProduce.onExpiration`)."""
        state, now = local[REPLICA[p]], local[METADATA].clock or 0
        over = [each for each in state.callbacks if isinstance(each[1], Expiring) and each[1].at <= now]
        rest = tuple(each for each in state.callbacks if each not in over)
        done = tuple(Completed(callback, Error.REQUEST_TIMED_OUT, place) for place, callback in over)
        outcome = ReplicaOutcome(attrs.evolve(state, callbacks=rest), completed=done)
        return self.turn(REQUEST_EXPIRY, (self.name, p), local, p, outcome)
