"""The broker of the actor composition: a transaction coordinator with its copy of the log partitions.

Persisted: the log and its high watermark, and the number of the incarnation (as in KIP-631), by which answers to what
it asked before a crash are told apart. Volatile: who leads, what is loaded, the metadata and pending transitions, the
callbacks, the block of producer ids. A broker that restarts asks the controller who leads, joins the epochs it learns,
and serves a partition again after it has loaded the committed prefix.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import attrs

from harness.model import FrozenMap, Message, Turn, fresh, persisted, volatile
from kafka_proto.transactions.controller import CONTROLLER
from kafka_proto.transactions.coordinator_role import Coordinator, CoordinatorRole, HasProducerIds
from kafka_proto.transactions.decisions import election, producer_ids
from kafka_proto.transactions.log import AppendEntry, Committed, Joined, JoinEpoch, log_name
from kafka_proto.transactions.messages import LeaderAndIsr, RegisterBroker
from kafka_proto.transactions.records import Entry, LogMetadata
from kafka_proto.transactions.versions.version import Version

NOBODY = LogMetadata(0, "")


@attrs.frozen
class Broker(Coordinator):
    """The local state of a broker; maps are keyed by partition (logs) or by transactional id (transactions)."""

    known: FrozenMap[str, LogMetadata] = volatile(default=FrozenMap())
    pid_source: int = volatile(default=0)
    pid_limit: int = volatile(default=0)
    allocating: bool = volatile(default=False)
    log: FrozenMap[str, tuple[Entry, ...]] = persisted(default=FrozenMap())
    hwm: FrozenMap[str, int] = persisted(default=FrozenMap())
    incarnation: int = persisted(default=0, metadata=fresh("incarnation", "self"))
    """How often this broker was started again; durable before it joins an epoch."""
    registering: bool = volatile(default=False)
    callbacks: frozenset[tuple[str, int]] = volatile(default=frozenset())
    """Partition and offset of the entries whose commit is still to be answered."""


class TransactionCoordinator(CoordinatorRole[Broker]):
    """The actor of one broker."""

    may_crash = True

    def __init__(
        self, name: str, number: int, leaders: dict[str, str], home: dict[str, str], version: Version
    ) -> None:
        self.name = name
        self.home = home
        self.version = version
        self.partitions = tuple(leaders)
        nothing: FrozenMap[str, tuple[Entry, ...]] = FrozenMap({p: () for p in leaders})
        self.blank = Broker(
            known=FrozenMap({p: NOBODY for p in leaders}), log=nothing, hwm=FrozenMap({p: 0 for p in leaders})
        )
        self.initial = self.blank
        source, limit = producer_ids.block(number)
        self.start = attrs.evolve(
            self.blank,
            known=FrozenMap({p: LogMetadata(1, leader) for p, leader in leaders.items()}),
            loaded=frozenset(p for p, leader in leaders.items() if leader == name),
            pid_source=source,
            pid_limit=limit,
        )

    def known(self, local: Broker, p: str) -> LogMetadata:
        return local.known[p]

    def coordinator(self, local: Broker) -> Coordinator:
        return local

    def remembering(self, local: Broker, **changed: Any) -> Broker:
        return attrs.evolve(local, **changed)

    def producer_ids(self, local: Broker) -> HasProducerIds:
        return local

    def with_producer_ids(self, local: Broker, **changed: Any) -> Broker:
        return attrs.evolve(local, **changed)

    def restarted(self, local: Broker) -> Broker:
        """Start a new incarnation; nothing that it asks is answered before it has flushed its number."""
        return attrs.evolve(local, incarnation=local.incarnation + 1)

    def step(self, local: Broker) -> Iterable[Turn[Broker]]:
        if NOBODY in local.known.values() and not local.registering:
            register = RegisterBroker(source=self.name, dest=CONTROLLER)
            yield Turn("RegisterBroker", (self.name,), attrs.evolve(local, registering=True), (register,))
        for tid in self.home:
            yield from self.complete_partial_txn(local, tid)

    def on_message(self, local: Broker, message: Message) -> Iterable[Turn[Broker]]:
        match message:
            case LeaderAndIsr():
                yield self.receive_leader_and_isr(local, message)
            case Joined():
                yield self.receive_joined(local, message)
            case Committed():
                yield self.receive_committed(local, message)
            case _:
                yield from self.receive_request(local, message)

    def append_entry(
        self, local: Broker, action: str, who: tuple[str, ...], entry: Entry, waits: bool
    ) -> Turn[Broker]:
        """Append an entry to the local log and hand it to the log partition; its callback waits for the commit."""
        p = self.home[entry.tid]
        callback = frozenset(((p, len(local.log[p])),)) if waits else frozenset()
        after, append = self.append(local, entry)
        return Turn(action, who, attrs.evolve(after, callbacks=after.callbacks | callback), (append,), flush=True)

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

    def receive_leader_and_isr(self, local: Broker, announced: LeaderAndIsr) -> Turn[Broker]:
        """Learn of a leader and epoch: become leader or follower, or (S2) not notice."""
        p, known = announced.partition, local.known[announced.partition]
        local = attrs.evolve(local, registering=False)
        if announced.cepoch <= known.cepoch:
            return Turn("ReceiveLeaderAndIsr", (self.name, p), local, detail=f"epoch {announced.cepoch}, already known")
        if announced.leader == self.name:
            return self.take_over(local, announced)
        if known == NOBODY or self.version.must_follow(
            self.name, known.leader, known.cepoch, announced.leader, announced.cepoch
        ):
            return self.become_follower(local, announced)
        return Turn("ReceiveLeaderAndIsr", (self.name, p), local, detail=f"epoch {announced.cepoch}, not followed")

    def take_over(self, local: Broker, announced: LeaderAndIsr) -> Turn[Broker]:
        """Become leader of a partition: serve it once its committed prefix is loaded."""
        p = announced.partition
        after = self.forget(local, p)
        after = attrs.evolve(after, known=after.known.set(p, LogMetadata(announced.cepoch, self.name)))
        join = JoinEpoch(announced.cepoch, True, local.incarnation, source=self.name, dest=log_name(p))
        return Turn("TakeOver", (self.name, p), after, (join,), flush=True, detail=f"epoch {announced.cepoch}")

    def become_follower(self, local: Broker, announced: LeaderAndIsr) -> Turn[Broker]:
        """ACTION BecomeFollower(b, p): truncate, forget the ids of the partition, fail what was not committed."""
        p = announced.partition
        pending = [entry for n, entry in enumerate(local.log[p]) if (p, n) in local.callbacks]
        failed = election.failed_responses(pending)
        after = self.forget(local, p)
        after = attrs.evolve(after, known=after.known.set(p, LogMetadata(announced.cepoch, announced.leader)))
        join = JoinEpoch(announced.cepoch, False, local.incarnation, source=self.name, dest=log_name(p))
        return Turn(
            "BecomeFollower", (self.name, p), after, (*failed, join), flush=True, detail=f"epoch {announced.cepoch}"
        )

    def forget(self, local: Broker, p: str) -> Broker:
        """Give up what is not committed of a partition, and the metadata of its ids."""
        return attrs.evolve(
            self.resigned(local, p),
            log=local.log.set(p, local.log[p][: local.hwm[p]]),
            callbacks=frozenset(callback for callback in local.callbacks if callback[0] != p),
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
            after = self.serving(after, p, joined.committed)
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
        after = self.learned(after, entry)
        sent: tuple[Message, ...] = ()
        if (p, offset) in local.callbacks:
            after = attrs.evolve(after, callbacks=after.callbacks - {(p, offset)})
            done = self.version.entry_committed(entry)
            sent = done.answers
            if done.entry is not None:
                after, append = self.append(after, done.entry)
                sent = (*sent, append)
        return Turn(action, who, after, sent, flush=True, detail=f"offset {offset}")

