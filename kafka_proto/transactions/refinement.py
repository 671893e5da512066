"""What a state of the actors is in diary 02's terms, so that recorded runs can be held against the spec.

An election counts when the elected broker has joined its epoch at the log, which fences its predecessor; one that the
log has not heard of counts with the next one that it has, and later for a broker that still takes over. A broker
follows when it knows of that epoch, or the log says that it joined it. An entry is committed when its leader hears so,
or, where the leader has stopped serving or is deposed, when the log commits it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile

import attrs

from harness.model import (
    RELIABLE,
    FrozenMap,
    Local,
    Message,
    Model,
    Network,
    Refinement,
    Value,
    View,
    slot,
)
from kafka_proto.broker.broker import Broker
from kafka_proto.broker.state import known
from kafka_proto.replication.known import LeaderAndEpoch
from kafka_proto.stack.atomic_log import COPY, AtomicLog
from kafka_proto.transactions import extensions, log, messages
from kafka_proto.transactions.controller import CONTROLLER, LEADER
from kafka_proto.transactions.coordinator_role import COORDINATOR
from kafka_proto.transactions.correspondence import in_spec
from kafka_proto.transactions.decisions.election import replay
from kafka_proto.transactions.extensions import BY, EXTENSIONS, OF_FAULTS
from kafka_proto.transactions.numbering import Naming, Observer, Seen
from kafka_proto.transactions.records import Entry, TransactionMetadata
from kafka_proto.transactions.specs.names import Names
from kafka_proto.transactions.versions.version import Version

ELECTIONS = 1_000_000
"""More elections than any run has: the bound of the spec, lifted."""


@attrs.frozen
class Ghost:
    """What the mapping remembers of a run."""

    terms: FrozenMap[str, tuple[LeaderAndEpoch, ...]] = FrozenMap()
    """Leader and epoch of every election of a partition so far, the first one included."""
    led: FrozenMap[str, int] = FrozenMap()
    """The last epoch of each partition that its leader has joined at the log: the spec's epoch."""
    followed: FrozenMap[str, FrozenMap[str, int]] = FrozenMap()
    """The epoch of each partition that each broker is in: it does not go back when a crash makes a broker forget it."""
    seen: Seen = Seen()


def refinement(
    version: Version, sizes: Mapping[str, int], settings: Mapping[str, str], network: Network, faulty: bool,
    brokers: Sequence[Broker], logs: Sequence[log.TransactionLog], home: Mapping[str, str],
    on: Iterable[str] = tuple(EXTENSIONS),
) -> Refinement:
    """Return the spec of actors at a size, its bounds lifted and extensions `on`, and the mapping to its states.

    Extensions that are faults are on only where there are any.
    """
    target = lifted(version, sizes, settings, EXTENSIONS, on, faulty)
    mapping = Mapped(target, network, faulty, brokers, logs, home)
    steps = sizes["elections"] + len(brokers)
    return Refinement(
        target.spec, mapping.abstract, mapping.start, extensions=target.reasons, steps=steps, by=BY,
    )


@attrs.frozen
class Target:
    """The spec that runs are held against, its bounds lifted."""

    k: Names
    spec: Model
    reasons: Mapping[str, str]
    """The extension actions that are on, and why the truth has each."""

    @property
    def fixed(self) -> dict[str, Value]:
        """The slots that never change."""
        start = self.spec.initial_states()[0]
        return {name: start[name] for name in start if name.startswith(("topic_partitions", "t_to_p_mapping"))}


def lifted(
    version: Version, sizes: Mapping[str, int], settings: Mapping[str, str], table: Mapping[str, str],
    on: Iterable[str], faulty: bool,
) -> Target:
    """Return a version of diary 02 without bounds, with those extensions of a table that are `on`.

    Extensions that are faults are on only where there are any.
    """
    unlimited = {**sizes, "elections": ELECTIONS}
    chosen = frozenset(name for name in on if faulty or name not in OF_FAULTS)
    reasons = {name: reason for name, reason in table.items() if name in chosen}
    return Target(Names.of(unlimited), extensions.unbounded(version, unlimited, settings, chosen), reasons)


class Mapped:
    """The mapping for one model of actors."""

    def __init__(
        self, target: Target, network: Network, faulty: bool, brokers: Sequence[Broker],
        logs: Sequence[log.TransactionLog], home: Mapping[str, str],
    ) -> None:
        self.observer = Observer(target.k, network, faulty)
        self.brokers = {actor.name: actor for actor in brokers}
        self.logs = {actor.partition: actor for actor in logs}
        self.home = home
        self.fixed = target.fixed
        nowhere = FrozenMap({b: 0 for b in self.brokers})
        self.start = Ghost(
            FrozenMap({p: () for p in self.logs}), FrozenMap({p: 0 for p in self.logs}),
            FrozenMap({p: nowhere for p in self.logs}), self.observer.start,
        )

    def abstract(self, view: View, before: Ghost) -> tuple[Mapping[str, Value], Ghost]:
        """Return the spec's state that a state of the actors stands for, and what is remembered after it."""
        near = {b: self.loaded(view, b) for b in self.brokers}
        ghost = self.remember(view, before, near)
        naming = Naming(ghost.seen)
        state: dict[str, Value] = dict(self.fixed)
        late: list[Message] = []
        for p in self.logs:
            partition = Partition(self, view, p, ghost, near)
            state[slot("txn_log_leader", p)] = partition.leader
            state[slot("txn_log_epoch", p)] = ghost.led[p]
            for b in self.brokers:
                slots, answers = self.replica(b, partition, naming)
                state.update(slots)
                late += answers
        elections = sum(led - 1 for led in ghost.led.values())
        state.update(self.observer.slots(view, ghost.seen, naming, late))
        return {**state, "aux_coord_ctr": elections}, ghost

    def remember(self, view: View, ghost: Ghost, near: Mapping[str, Local]) -> Ghost:
        """Return the ghost with what is new in a state."""
        terms, led, followed = ghost.terms, ghost.led, ghost.followed
        for p in self.logs:
            now = LEADER[p].of(view, CONTROLLER)
            if now not in terms[p]:
                terms = terms.set(p, (*terms[p], now))
            partition: log.LogPartition = view[log.log_name(p)]
            epochs = (term.leader_epoch for term in terms[p] if partition.joined[term.leader] == term.leader_epoch)
            last, before = max(led[p], *epochs, 0), followed[p]
            led = led if led[p] == last else led.set(p, last)
            now_in = {b: max(self.follows(near[b], b, p, partition.joined[b], terms[p], last), before[b])
                      for b in self.brokers}
            followed = followed if now_in == dict(before) else followed.set(p, FrozenMap(now_in))
        metadata = [found for b in self.brokers for found in COORDINATOR.of(view, b).metadata.values()]
        leaders = {tid: leader_of(terms[p], led[p]) for tid, p in self.home.items()}
        seen = self.observer.sees(view, ghost.seen, metadata, leaders.__getitem__)
        now_known = Ghost(terms, led, followed, seen)
        return ghost if now_known == ghost else now_known

    def follows(
        self, local: Local, b: str, p: str, joined: int, terms: Iterable[LeaderAndEpoch], led: int
    ) -> int:
        """Return the epoch that a broker is in: one that it has joined, or follows already, up to that of the log.

        One that it was to lead and that is over does not count unless it serves.
        """
        believed = known(local, p)
        if joined < led and leader_of(terms, joined) == b and p not in local[COORDINATOR].loaded:
            joined = 0
        return min(max(joined, 0 if believed.leader == b else believed.leader_epoch), led)

    def loaded(self, view: View, b: str) -> Local:
        """Return a broker as it is once it has taken the prefixes that are on their way to it."""
        actor = self.brokers[b]
        local = actor.layout.read(view)
        arriving = view.at("inbox", b, RELIABLE.name)
        for p in self.logs if arriving else ():
            for message in between(view, log.log_name(p), b):
                if isinstance(message, log.Joined):
                    local = copies(actor).receive_joined(local, message).local
        return local

    def replica(
        self, b: str, partition: Partition, naming: Naming
    ) -> tuple[Mapping[str, Value], tuple[Message, ...]]:
        """Return what the spec keeps of a broker and a partition, and the answers of the broker that count as sent."""
        p, replica = partition.p, partition.replica(b)
        tids = [tid for tid, home in self.home.items() if home == p]
        return {
            slot("tc_log", b, p): tuple(naming.entry(entry) for entry in (*replica.committed, *replica.tail)),
            slot("tc_log_hwm", b, p): len(replica.committed),
            slot("tc_log_metadata", b, p): in_spec(replica.believes),
            slot("serving", b, p): replica.serves,
            slot("loading", b, p): replica.loads,
            **naming.memory(b, tids, replica.metadata, replica.transitions),
        }, replica.late


@attrs.frozen
class Replica:
    """What the spec keeps of a broker and a partition, in the actors' numbers."""

    believes: LeaderAndEpoch
    serves: bool
    loads: bool
    """Whether the prefix that it loads is on its way to it."""
    committed: tuple[Entry, ...]
    tail: tuple[Entry, ...]
    metadata: Mapping[str, TransactionMetadata]
    transitions: Mapping[str, TransactionMetadata]
    late: tuple[Message, ...] = ()
    """Answers that count as sent: a deposed leader has not heard yet that their entries are committed."""


class Partition:
    """A partition of the transaction log in one state of the actors."""

    def __init__(self, mapped: Mapped, view: View, p: str, ghost: Ghost, near: Mapping[str, Local]) -> None:
        self.mapped, self.view, self.p, self.near = mapped, view, p, near
        self.log: log.LogPartition = view[log.log_name(p)]
        self.terms, self.epoch, self.followed = ghost.terms[p], ghost.led[p], ghost.followed[p]
        self.leader = leader_of(self.terms, self.epoch)
        heard = near[self.leader][COPY[p]].high_watermark if self.serves(self.leader) else len(self.log.committed)
        self.committed = self.log.committed[:heard]

    def serves(self, b: str) -> bool:
        """Say whether a broker does the work of a leader, as far as it knows."""
        return self.p in self.near[b][COORDINATOR].loaded

    def replica(self, b: str) -> Replica:
        """Return what the spec keeps of a broker."""
        local = self.near[b]
        epoch = self.followed[b]
        believes = term_of(self.terms, epoch)
        if not self.serves(b) and believes.leader == b:
            tail = self.waiting(b)
            known, pending = replay(self.committed), replay(tail)
            return Replica(believes, False, False, self.committed, tail, known, pending)
        loads = self.serves(b) and self.p not in COORDINATOR.of(self.view, b).loaded
        late: list[messages.Response] = []
        if self.serves(b) and b != self.leader:
            local, late = self.all_heard(b)
        copy, memory = local[COPY[self.p]], local[COORDINATOR]
        tail = copy.log[copy.high_watermark :] if self.serves(b) else ()
        return Replica(
            believes, self.serves(b), loads, self.committed, tail, memory.metadata, memory.transitions, tuple(late)
        )

    def waiting(self, b: str) -> tuple[Entry, ...]:
        """Return what the log may still commit for a leader that has stopped serving."""
        if self.log.leader_epoch != self.epoch or self.log.leader != b:
            return ()
        partition = self.log
        arriving = between(self.view, b, log.log_name(self.p))
        for message in takewhile(lambda message: not isinstance(message, log.JoinEpoch), arriving):
            assert isinstance(message, log.AppendEntry)
            partition = self.mapped.logs[self.p].append(partition, message)
        return partition.waiting

    def all_heard(self, b: str) -> tuple[Local, list[messages.Response]]:
        """Return a broker as it is once it has heard of all commits, and what it answers to clients then."""
        actor, local = copies(self.mapped.brokers[b]), self.near[b]
        sent: list[messages.Response] = []
        for message in between(self.view, log.log_name(self.p), b):
            if isinstance(message, log.Committed):
                turn = actor.receive_committed(local, message)
                local = turn.local
                sent += [answer for answer in turn.sent if isinstance(answer, messages.Response)]
        return local, sent


def copies(actor: Broker) -> AtomicLog:
    """Return the log of a broker."""
    assert isinstance(actor.log, AtomicLog)
    return actor.log


def between(view: View, source: str, dest: str) -> tuple[Message, ...]:
    """Return the messages on a reliable link from one process to another, in order."""
    queue: tuple[Message, ...] = view.at("inbox", dest, RELIABLE.name).get(source, ())
    return queue


def leader_of(terms: Iterable[LeaderAndEpoch], epoch: int) -> str:
    """Return who was elected in an epoch."""
    return term_of(terms, epoch).leader


def term_of(terms: Iterable[LeaderAndEpoch], epoch: int) -> LeaderAndEpoch:
    """Return the election of an epoch."""
    return next(term for term in terms if term.leader_epoch == epoch)
