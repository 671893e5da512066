"""What a state of the stack is in diary 02's terms, so that recorded runs can be held against the spec.

The controller's election is a step of its own. A broker leads from when it has loaded its log, and follows when it has
heard of such a leader's epoch. An entry is committed when a leader's high watermark has passed it and every member of
the ISR holds it. Who serves is seen with its own log, high watermark and callbacks, everybody else with what is
committed; what a leader has appended and nobody has committed is remembered, as some replica may hold it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import cast

import attrs

from harness.model import FrozenMap, Network, Refinement, Value, View, slot
from kafka_proto.broker.controller import PARTITION
from kafka_proto.broker.logs.replicated import REPLICA
from kafka_proto.broker.state import METADATA
from kafka_proto.replication import partition
from kafka_proto.replication.partition import Replica, ReplicaState
from kafka_proto.replication.quorum import Quorum
from kafka_proto.replication.records import NIL
from kafka_proto.replication.records import Entry as LogEntry
from kafka_proto.transactions.controller import CONTROLLER
from kafka_proto.transactions.coordinator_role import COORDINATOR
from kafka_proto.transactions.correspondence import Entry, LogMetadata
from kafka_proto.transactions.extensions import ASKS, BY_EITHER, IS_ASKED
from kafka_proto.transactions.extensions.replicas import may_yet_commit
from kafka_proto.transactions.extensions.replicated_log import EXTENSIONS
from kafka_proto.transactions.numbering import Naming, Observer, Seen
from kafka_proto.transactions.records import Callback, TxnRecord, entry_of
from kafka_proto.transactions.refinement import Target, leader_of, lifted, term_of
from kafka_proto.transactions.versions.version import Version

Records = tuple[TxnRecord, ...]
FIRST = 1
"""The epoch of the first election in the spec; in the stack it is the one after NIL."""
NOBODY_WAITS = Callback("")
COMMITS = ("ReceiveFetchRequest", "ReceiveAlterPartitionResponse", *IS_ASKED, "CompletePartialTxn")
"""Actions of a leader after which its high watermark may rise: a follower has more, or the ISR is smaller."""
ABANDONED = ("ReceiveFetchRequest", "ReceiveAlterPartitionResponse", "ReceiveLeaderAndIsrRequest")
"""The same of a leader that has not loaded its log."""
FOLLOWS = ("ReceiveLeaderAndIsrRequest", "LoadTxnLog")
BY: Mapping[str, tuple[str, ...]] = {
    **BY_EITHER,
    **dict.fromkeys(("CommitTxnLogAppend", "CommitByIsr", "CommitRefused", "HearLate"), COMMITS),
    "CommitAbandoned": ABANDONED,
    "BecomeFollower": FOLLOWS,
    "FollowOlder": FOLLOWS,
    "RefuseAppend": IS_ASKED,
    "Resign": ("ReceiveLeaderAndIsrRequest",),
    "AnnounceLeader": ("ElectLeader", "ReceiveBrokerRegistrationRequest"),
    "TakeOver": ("LoadTxnLog",),
    "TakeOverBehind": ("LoadTxnLog",),
    "LoseMessage": ("Drop", "Crash", *ASKS, *COMMITS, "ReceiveLeaderAndIsrRequest"),
    "CopyMessage": ("Duplicate", *ASKS, *COMMITS, "ReceiveLeaderAndIsrRequest"),
}
"""Which actions of the stack may be these steps: a step that leaves the same state by chance does not count."""


@attrs.frozen
class Ghost:
    """What the mapping remembers of a run."""

    committed: FrozenMap[str, Records]
    written: FrozenMap[str, frozenset[Records]]
    """What may yet commit, by partition: runs of records that follow what is committed."""
    served: FrozenMap[str, tuple[int, ...]]
    """The epochs of each partition whose leader has loaded its log."""
    followed: FrozenMap[str, FrozenMap[str, int]]
    """The epoch of each partition that each broker is in: it does not go back when a crash makes a broker forget it."""
    seen: Seen


def refinement(
    version: Version, sizes: Mapping[str, int], settings: Mapping[str, str], network: Network, faulty: bool,
    rules: Mapping[str, Mapping[str, Replica]], home: Mapping[str, str], on: Iterable[str] = tuple(EXTENSIONS),
) -> Refinement:
    """Return the spec of the stack at a size, its bounds lifted and extensions `on`, and the mapping to its states.

    Extensions that are faults are on only where there are any.
    """
    target = lifted(version, sizes, settings, EXTENSIONS, on, faulty)
    mapping = Mapped(target, network, faulty, rules, home)
    return Refinement(
        target.spec, mapping.abstract, mapping.start, extensions=target.reasons, steps=sizes["brokers"] + 1, by=BY,
    )


class Mapped:
    """The mapping for one model of the stack."""

    def __init__(
        self, target: Target, network: Network, faulty: bool, rules: Mapping[str, Mapping[str, Replica]],
        home: Mapping[str, str],
    ) -> None:
        self.k = k = target.k
        self.rules = rules
        self.home = home
        self.observer = Observer(k, network, faulty)
        self.fixed = target.fixed
        self.start = Ghost(
            FrozenMap({p: () for p in rules}), FrozenMap({p: frozenset() for p in rules}),
            FrozenMap({p: (FIRST,) for p in rules}),
            FrozenMap({p: FrozenMap({b: FIRST for b in k.brokers}) for p in rules}), self.observer.start,
        )

    def abstract(self, view: View, before: Ghost) -> tuple[Mapping[str, Value], Ghost]:
        """Return the spec's state that a state of the stack stands for, and what is remembered after it."""
        ghost = self.remember(view, before)
        naming = Naming(ghost.seen)
        state = {**self.fixed, **self.observer.slots(view, ghost.seen, naming)}
        elections = 0
        for p in self.rules:
            terms = announced(view, p)
            elections += len(terms) - 1
            last = max(ghost.served[p])
            state[slot("announced", p)] = terms
            state[slot("txn_log_leader", p)] = leader_of(terms, last)
            state[slot("txn_log_epoch", p)] = last
            state[slot("written", p)] = frozenset(entries(naming, run) for run in ghost.written[p])
            done = entries(naming, ghost.committed[p])
            for b in self.k.brokers:
                state[slot("tc_log_metadata", b, p)] = term_of(terms, ghost.followed[p][b])
                state.update(self.coordinator(view, b, p, done, naming))
        return {**state, "aux_coord_ctr": elections}, ghost

    def coordinator(self, view: View, b: str, p: str, done: tuple[Entry, ...], naming: Naming) -> dict[str, Value]:
        """Return what the spec keeps of a broker and a partition of which so much is committed."""
        memory = COORDINATOR.of(view, b)
        serves = p in memory.loaded
        log, hwm = done, len(done)
        if serves:
            state = REPLICA[p].of(view, b)
            waiting, hwm = dict(state.callbacks), state.high_watermark
            callbacks = [waiting.get(n, NOBODY_WAITS) if n >= hwm else NOBODY_WAITS for n in range(len(state.log))]
            log = tuple(
                naming.entry(entry_of(record, callback))
                for record, callback in zip(carried(state.log), callbacks, strict=True)
            )
        tids = [tid for tid, home in self.home.items() if home == p]
        return {
            slot("tc_log", b, p): log, slot("tc_log_hwm", b, p): hwm, slot("serving", b, p): serves,
            slot("loading", b, p): False, **naming.memory(b, tids, memory.metadata, memory.transitions),
        }

    def remember(self, view: View, before: Ghost) -> Ghost:
        """Return the ghost with what is new in a state."""
        committed, written, served, followed = before.committed, before.written, before.served, before.followed
        for p in self.rules:
            done = self.committed(view, p, committed[p])
            serving = [b for b in self.rules[p] if p in COORDINATOR.of(view, b).loaded]
            logs = [carried(REPLICA[p].of(view, b).log) for b in serving]
            runs = may_yet_commit(written[p], committed[p], done, logs)
            epochs = tuple(epoch for b in serving if (epoch := known_epoch(view, b, p)) not in served[p])
            now = {b: self.follows(view, b, p, (*served[p], *epochs), followed[p][b]) for b in self.k.brokers}
            committed, written = committed.set(p, done), written.set(p, runs)
            served = served.set(p, (*served[p], *epochs))
            followed = followed.set(p, FrozenMap(now))
        metadata = [found for b in self.k.brokers for found in COORDINATOR.of(view, b).metadata.values()]
        leaders = {tid: leader_of(announced(view, p), max(served[p])) for tid, p in self.home.items()}
        seen = self.observer.sees(view, before.seen, metadata, leaders.__getitem__)
        return Ghost(committed, written, served, followed, seen)

    def follows(self, view: View, b: str, p: str, served: Iterable[int], before: int) -> int:
        """Return the epoch that a broker is in: the newest that it has heard of whose leader has loaded its log."""
        return max((before, *(epoch for epoch in served if epoch <= known_epoch(view, b, p))))

    def committed(self, view: View, p: str, before: Records) -> Records:
        """Return what is committed: below some leader's high watermark, and held by every member of the ISR."""
        done = before
        for b, k in self.rules[p].items():
            state = REPLICA[p].of(view, b)
            if state.high_watermark > len(done) and partition.leads(k, state):
                members = [REPLICA[p].of(view, member) for member in sorted(quorum(view, p).isr)]
                held = held_by_all(state, members)
                done = carried(state.log[:held]) if held > len(done) else done
        return done


def held_by_all(leader: ReplicaState, members: Iterable[ReplicaState]) -> int:
    """Return up to which offset members of the ISR hold what is below a leader's high watermark."""
    held = leader.high_watermark
    for member in members:
        while member.log[:held] != leader.log[:held]:
            held -= 1
    return held


def quorum(view: View, p: str) -> Quorum:
    """Return what the controller keeps of a partition."""
    return PARTITION[p].of(view, CONTROLLER).quorum


def announced(view: View, p: str) -> tuple[LogMetadata, ...]:
    """Return the elections of a partition, the first one included, in the spec's epochs."""
    elected = ((request.leader, request.leader_epoch) for request in quorum(view, p).announced)
    return tuple(LogMetadata(epoch - NIL, leader) for leader, epoch in elected if leader is not None)


def known_epoch(view: View, b: str, p: str) -> int:
    """Return the epoch of which a broker has heard, as the spec counts."""
    return METADATA.of(view, b).known[p].leader_epoch - NIL


def carried(log: Iterable[LogEntry]) -> Records:
    """Return what the records of a log carry."""
    return tuple(cast(TxnRecord, entry.value) for entry in log)


def entries(naming: Naming, records: Iterable[TxnRecord]) -> tuple[Entry, ...]:
    """Return records as entries of which nobody waits for the commit."""
    return tuple(naming.entry(entry_of(record, NOBODY_WAITS)) for record in records)
