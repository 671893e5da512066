"""The broker of the actor composition: a transaction coordinator with its copy of the log partitions.

Persisted: the log and its high watermark, and the number of the incarnation (as in KIP-631), by which answers to what
it asked before a crash are told apart. Volatile: who leads, what is loaded, the metadata and pending transitions, the
callbacks, the block of producer ids. A broker that restarts asks the controller who leads, joins the epochs it is told,
and serves a partition again after it has loaded the committed prefix.
"""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from harness.model import Actor, FrozenMap, Message, Turn, persisted, volatile
from kafka_proto.transactions import coordinator
from kafka_proto.transactions.controller import CONTROLLER, PID_BLOCK
from kafka_proto.transactions.log import AppendEntry, Committed, Joined, JoinEpoch, log_name
from kafka_proto.transactions.messages import (
    AddPartitionsToTxnRequest,
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
    Error,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    InitPidRequest,
    LeaderAndIsr,
    RegisterBroker,
    answer,
)
from kafka_proto.transactions.records import Entry, LogMetadata, TxnMetadata
from kafka_proto.transactions.variants import Variant

NOBODY = LogMetadata(0, "")


@attrs.frozen
class Broker:
    """The local state of a broker; maps are keyed by partition (logs) or by transactional id (transactions)."""

    log: FrozenMap[str, tuple[Entry, ...]] = persisted()
    hwm: FrozenMap[str, int] = persisted()
    known: FrozenMap[str, LogMetadata] = volatile()
    """Leader and epoch of each partition, as far as this broker was told; also its cache for FindCoordinator."""
    incarnation: int = persisted(default=0)
    """How often this broker was started again; durable before it joins an epoch."""
    registering: bool = volatile(default=False)
    loaded: frozenset[str] = volatile(default=frozenset())
    """Partitions that it leads and has loaded."""
    metadata: FrozenMap[str, TxnMetadata] = volatile(default=FrozenMap())
    transitions: FrozenMap[str, TxnMetadata] = volatile(default=FrozenMap())
    callbacks: frozenset[tuple[str, int]] = volatile(default=frozenset())
    """Partition and offset of the entries whose commit is still to be answered."""
    pid_source: int = volatile(default=0)
    pid_limit: int = volatile(default=0)
    """The last producer id used and the last one of the block; equal when a new block is needed."""
    allocating: bool = volatile(default=False)


class TransactionCoordinator(Actor[Broker]):
    """The actor of one broker."""

    may_crash = True

    def __init__(
        self, name: str, number: int, leaders: dict[str, str], home: dict[str, str], variant: Variant
    ) -> None:
        self.name = name
        self.home = home
        self.variant = variant
        self.partitions = tuple(leaders)
        nothing: FrozenMap[str, tuple[Entry, ...]] = FrozenMap({p: () for p in leaders})
        self.blank = Broker(nothing, FrozenMap({p: 0 for p in leaders}), FrozenMap({p: NOBODY for p in leaders}))
        self.initial = self.blank
        self.start = attrs.evolve(
            self.blank,
            known=FrozenMap({p: LogMetadata(1, leader) for p, leader in leaders.items()}),
            loaded=frozenset(p for p, leader in leaders.items() if leader == name),
            pid_source=number * PID_BLOCK,
            pid_limit=number * PID_BLOCK + PID_BLOCK,
        )

    def restarted(self, local: Broker) -> Broker:
        """Start a new incarnation; nothing that it asks is answered before it has flushed its number."""
        return attrs.evolve(local, incarnation=local.incarnation + 1)

    def step(self, local: Broker) -> Iterable[Turn[Broker]]:
        if NOBODY in local.known.values() and not local.registering:
            register = RegisterBroker(source=self.name, dest=CONTROLLER)
            yield Turn("RegisterBroker", (self.name,), attrs.evolve(local, registering=True), (register,))
        for tid in self.home:
            yield from self.complete_partial_txn(local, tid)

    def complete_partial_txn(self, local: Broker, tid: str) -> Iterable[Turn[Broker]]:
        """ACTION CompletePartialTxn(b, tid): finish what a predecessor, or this broker before a crash, prepared."""
        entry = coordinator.complete_partial_txn(
            tid,
            leads=self.home[tid] in local.loaded,
            metadata=local.metadata.get(tid),
            pending=local.transitions.get(tid),
        )
        if entry is not None and self.variant.completes_partial_txns:
            after, append = self.append(local, entry)
            yield Turn("CompletePartialTxn", (self.name, tid), after, (append,), flush=True)

    def on_message(self, local: Broker, message: Message) -> Iterable[Turn[Broker]]:
        match message:
            case InitPidRequest():
                yield self.receive_init_pid_request(local, message)
            case AddPartitionsToTxnRequest():
                yield self.receive_add_partitions_request(local, message)
            case FindCoordinatorRequest():
                yield self.receive_find_coordinator_request(local, message)
            case LeaderAndIsr():
                yield self.receive_leader_and_isr(local, message)
            case Joined():
                yield self.receive_joined(local, message)
            case Committed():
                yield self.receive_committed(local, message)
            case AllocateProducerIdsResponse():
                after = attrs.evolve(
                    local, pid_source=message.start - 1, pid_limit=message.start - 1 + message.length, allocating=False
                )
                yield Turn("ReceiveAllocateProducerIdsResponse", (self.name,), after)

    def receive_init_pid_request(self, local: Broker, request: InitPidRequest) -> Turn[Broker]:
        """ACTION ReceiveInitPidRequest(b, c), refused with a retriable error while loading or out of producer ids."""
        who = (self.name, request.source)
        p = self.home[request.tid]
        leads = local.known[p].leader == self.name
        if leads and p not in local.loaded:
            refusal = answer(request, Error.COORDINATOR_LOAD_IN_PROGRESS)
            return Turn("ReceiveInitPidRequest", who, local, (refusal,))
        if leads and request.tid not in local.metadata and local.pid_source >= local.pid_limit:
            refusal = answer(request, Error.COORDINATOR_LOAD_IN_PROGRESS)
            if local.allocating:
                return Turn("ReceiveInitPidRequest", who, local, (refusal,))
            ask = AllocateProducerIdsRequest(source=self.name, dest=CONTROLLER)
            return Turn("ReceiveInitPidRequest", who, attrs.evolve(local, allocating=True), (refusal, ask))
        decision = coordinator.receive_init_pid_request(
            request,
            leads=leads,
            metadata=local.metadata.get(request.tid),
            pending=local.transitions.get(request.tid),
            pid_source=local.pid_source,
            variant=self.variant,
        )
        if decision.metadata is not None:
            local = attrs.evolve(local, metadata=local.metadata.set(request.tid, decision.metadata))
        if decision.pid_source is not None:
            local = attrs.evolve(local, pid_source=decision.pid_source)
        return self.carry_out(local, "ReceiveInitPidRequest", who, decision)

    def receive_add_partitions_request(self, local: Broker, request: AddPartitionsToTxnRequest) -> Turn[Broker]:
        """ACTION ReceiveAddPartitionsToTxnRequest(b, c), refused with a retriable error while loading."""
        who = (self.name, request.source)
        p = self.home[request.tid]
        leads = local.known[p].leader == self.name
        if leads and p not in local.loaded:
            refusal = answer(request, Error.COORDINATOR_LOAD_IN_PROGRESS)
            return Turn("ReceiveAddPartitionsToTxnRequest", who, local, (refusal,))
        decision = coordinator.receive_add_partitions(
            request,
            leads=leads,
            metadata=local.metadata.get(request.tid),
            pending=local.transitions.get(request.tid),
        )
        return self.carry_out(local, "ReceiveAddPartitionsToTxnRequest", who, decision)

    def carry_out(
        self, local: Broker, action: str, who: tuple[str, ...], decision: coordinator.Decision
    ) -> Turn[Broker]:
        """Answer now, or append the entry whose commit answers."""
        if decision.entry is None:
            return Turn(action, who, local, (decision.reply,) if decision.reply is not None else ())
        p = self.home[decision.entry.tid]
        callback = (p, len(local.log[p]))
        after, append = self.append(local, decision.entry)
        return Turn(action, who, attrs.evolve(after, callbacks=after.callbacks | {callback}), (append,), flush=True)

    def append(self, local: Broker, entry: Entry) -> tuple[Broker, AppendEntry]:
        """Append an entry to the local log, make its transition pending, and hand it to the log partition."""
        p = self.home[entry.tid]
        offset = len(local.log[p])
        after = attrs.evolve(
            local,
            log=local.log.set(p, (*local.log[p], entry)),
            transitions=local.transitions.set(entry.tid, entry.transition),
        )
        request = AppendEntry(local.known[p].cepoch, offset, entry, source=self.name, dest=log_name(p))
        return after, request

    def receive_find_coordinator_request(self, local: Broker, request: FindCoordinatorRequest) -> Turn[Broker]:
        """Answer from the metadata cache, stale or not; a broker that knows nobody sends the client back to itself."""
        leader = local.known[self.home[request.tid]].leader or self.name
        found = FindCoordinatorResponse(leader, request.correlation, source=self.name, dest=request.source)
        return Turn("ReceiveFindCoordinatorRequest", (self.name, request.source), local, (found,))

    def receive_leader_and_isr(self, local: Broker, told: LeaderAndIsr) -> Turn[Broker]:
        """Learn of a leader and epoch: become leader or follower, or (S2) not notice."""
        p, known = told.partition, local.known[told.partition]
        local = attrs.evolve(local, registering=False)
        if told.cepoch <= known.cepoch:
            return Turn("ReceiveLeaderAndIsr", (self.name, p), local, detail=f"epoch {told.cepoch}, already known")
        if told.leader == self.name:
            return self.take_over(local, told)
        if known == NOBODY or coordinator.must_follow(
            self.name, known.leader, known.cepoch, told.leader, told.cepoch, self.variant
        ):
            return self.become_follower(local, told)
        return Turn("ReceiveLeaderAndIsr", (self.name, p), local, detail=f"epoch {told.cepoch}, not followed")

    def take_over(self, local: Broker, told: LeaderAndIsr) -> Turn[Broker]:
        """Become leader of a partition: serve it once its committed prefix is loaded."""
        p = told.partition
        after = self.forget(local, p)
        after = attrs.evolve(after, known=after.known.set(p, LogMetadata(told.cepoch, self.name)))
        join = JoinEpoch(told.cepoch, True, local.incarnation, source=self.name, dest=log_name(p))
        return Turn("TakeOver", (self.name, p), after, (join,), flush=True, detail=f"epoch {told.cepoch}")

    def become_follower(self, local: Broker, told: LeaderAndIsr) -> Turn[Broker]:
        """ACTION BecomeFollower(b, p): truncate, forget the ids of the partition, fail what was not committed."""
        p = told.partition
        pending = [entry for n, entry in enumerate(local.log[p]) if (p, n) in local.callbacks]
        failed = coordinator.failed_responses(pending)
        after = self.forget(local, p)
        after = attrs.evolve(after, known=after.known.set(p, LogMetadata(told.cepoch, told.leader)))
        join = JoinEpoch(told.cepoch, False, local.incarnation, source=self.name, dest=log_name(p))
        return Turn(
            "BecomeFollower", (self.name, p), after, (*failed, join), flush=True, detail=f"epoch {told.cepoch}"
        )

    def forget(self, local: Broker, p: str) -> Broker:
        """Give up what is not committed of a partition, and the metadata of its ids."""
        mine = [tid for tid, home in self.home.items() if home == p]
        return attrs.evolve(
            local,
            log=local.log.set(p, local.log[p][: local.hwm[p]]),
            loaded=local.loaded - {p},
            callbacks=frozenset(callback for callback in local.callbacks if callback[0] != p),
            metadata=without(local.metadata, mine),
            transitions=without(local.transitions, mine),
        )

    def receive_joined(self, local: Broker, joined: Joined) -> Turn[Broker]:
        """Take over the committed prefix; a leader now knows its ids and serves (S3: and may forget the others)."""
        p = joined.partition
        action, who = "LoadTxnLog", (self.name, p)
        if joined.cepoch != local.known[p].cepoch:
            return Turn(action, who, local, detail=f"epoch {joined.cepoch} is over")
        if joined.incarnation != local.incarnation:
            return Turn(action, who, local, detail=f"epoch {joined.cepoch}, joined before a crash")
        after = attrs.evolve(
            local, log=local.log.set(p, joined.committed), hwm=local.hwm.set(p, len(joined.committed))
        )
        if local.known[p].leader == self.name:
            loaded = coordinator.replay(joined.committed)
            metadata = {
                tid: found
                for tid, home in self.home.items()
                if (
                    found := coordinator.materialized(
                        tid, home == p, loaded.get(tid), local.metadata.get(tid), self.variant
                    )
                )
                is not None
            }
            after = attrs.evolve(after, loaded=after.loaded | {p}, metadata=FrozenMap(metadata))
        return Turn(action, who, after, flush=True, detail=f"epoch {joined.cepoch}")

    def receive_committed(self, local: Broker, committed: Committed) -> Turn[Broker]:
        """An entry is committed: advance the high watermark; a leader learns the transition and runs the callback."""
        p, offset, entry = committed.partition, committed.offset, committed.entry
        action, who = "ReceiveCommitted", (self.name, p)
        if offset != local.hwm[p]:
            return Turn(action, who, local, detail=f"offset {offset} is out of turn")
        rest = local.log[p][offset + 1 :] if local.log[p][offset : offset + 1] == (entry,) else ()
        after = attrs.evolve(
            local, log=local.log.set(p, (*local.log[p][:offset], entry, *rest)), hwm=local.hwm.set(p, offset + 1)
        )
        if p not in local.loaded:
            return Turn(action, who, after, flush=True, detail=f"offset {offset}")
        after = attrs.evolve(
            after,
            metadata=after.metadata.set(entry.tid, entry.transition),
            transitions=after.transitions.without(entry.tid),
        )
        sent: tuple[Message, ...] = ()
        if (p, offset) in local.callbacks:
            after = attrs.evolve(after, callbacks=after.callbacks - {(p, offset)})
            done = coordinator.entry_committed(entry)
            if done.response is not None:
                sent = (done.response,)
            if done.entry is not None:
                after, append = self.append(after, done.entry)
                sent = (*sent, append)
        return Turn(action, who, after, sent, flush=True, detail=f"offset {offset}")


def without(entries: FrozenMap[str, TxnMetadata], keys: list[str]) -> FrozenMap[str, TxnMetadata]:
    """Return a map without some keys."""
    return FrozenMap({key: value for key, value in entries.items() if key not in keys})
