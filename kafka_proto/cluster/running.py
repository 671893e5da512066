"""Brokers that run: what is sent arrives at once and in order, and what is due happens. Nothing here knows I/O.

Their driver says what time it is, and which of them are down, paused or cut off. The brokers are those of the models: a
single one that always leads, or several with replicas of each log and the controller that elects leaders.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from typing import TypeVar

import attrs

from harness.model import FrozenMap, Local, Part, Turn, durable, survivor
from kafka_proto.broker.controller import PARTITION
from kafka_proto.broker.coordinator.coordinator import KAFKAS_DEFAULTS, Coordinator, CoordinatorConfig
from kafka_proto.broker.coordinator.transaction import CachedTransaction, TransactionMetadata
from kafka_proto.broker.failover import REGISTRATIONS, FailoverController, PartitionRules
from kafka_proto.broker.group.coordinator import GroupCoordinator, Offsets
from kafka_proto.broker.leader.epochs import followed_log
from kafka_proto.broker.leader.fetching import written_together
from kafka_proto.broker.leader.role import RecordTimes
from kafka_proto.broker.logs.local import LocalLog, Records
from kafka_proto.broker.messages import PartitionsDeleted, Request
from kafka_proto.broker.other_brokers import REQUEST_TIMEOUT
from kafka_proto.broker.parts import CONNECTIONS, COORDINATOR, GROUPS, LEADER, METADATA
from kafka_proto.broker.placement import Placement, transaction_partitions
from kafka_proto.broker.versions import BrokerVersion
from kafka_proto.cluster.composition import in_turn, roles_of, rules_of, with_local_logs, with_replicated_logs
from kafka_proto.cluster.running_actors import REPLICA_LAG_MS, Pair, RunningActors
from kafka_proto.log import PartitionLog
from kafka_proto.replication.controller import CONTROLLER
from kafka_proto.replication.messages import PartitionMessage
from kafka_proto.replication.quorum import Quorum
from kafka_proto.replication.replica_state import ReplicaState
from kafka_proto.requests import OFFSETS_PARTITION, partition_name, topic_of

S = TypeVar("S")
BLOCK_SIZE = 1_000
"""Producer ids that a broker is given at a time, as Kafka's controller does."""
DRIVER = "driver"
SESSION = "BrokerSession"
"""The controller's timer for a broker whose heartbeats are missing."""
CHECKPOINT_MS = 5_000
"""How often high watermarks are written to disk (`replica.high.watermark.checkpoint.interval.ms`)."""
PAUSE_MS = 1_000
"""After which a paused broker is fenced, where no session time-out is set."""


@attrs.frozen
class Replication:
    """Replicas and elections, by the names of Kafka's settings."""

    factor: int = 3
    min_insync_replicas: int = 1
    session_timeout_ms: int | None = None
    """After which a broker is fenced that crashed, is paused or cut off (`broker.session.timeout.ms`).

    None: at once, and after a second if it is paused.
    """
    replica_lag_time_max_ms: int = REPLICA_LAG_MS
    auto_leader_rebalance_enable: bool = True
    """Whether a broker leads again at once what it leads by preference; in Kafka it may take five minutes."""


@attrs.frozen
class Told:
    """What the controller says of a partition."""

    leader: str | None
    leader_epoch: int
    last_known: str | None
    """KIP-966: who led last, while nobody leads and nobody is in sync."""


class RunningCluster(RunningActors):
    """Brokers of a version with the partitions that there are, and what is between them."""

    def __init__(
        self, version: BrokerVersion, partitions: Collection[str], brokers: int = 1, *, now: int = 0,
        replication: Replication = Replication(), record_times: RecordTimes = written_together,
        config: CoordinatorConfig = KAFKAS_DEFAULTS,
    ) -> None:
        super().__init__([f"b{n + 1}" for n in range(brokers)], now)
        self.version = version
        self.replication = replication
        self.replica_lag_ms = replication.replica_lag_time_max_ms
        self.record_times = record_times
        """The time stamps of a batch's records."""
        self.deleted: list[str] = []
        """Partitions that are gone, until the driver takes note."""
        self.topics: FrozenMap[str, int] = FrozenMap(Counter(map(topic_of, partitions)))
        """Clients' topics with their numbers of partitions."""
        self.placement: Placement
        """What roles know of names."""
        self.config = config
        self._replicas: dict[str, tuple[str, ...]] = {}
        self._rules: dict[str, PartitionRules] = {}
        self._silent: dict[str, int] = {}
        """The brokers that the controller does not hear and has not fenced: since when."""
        self._checkpoint: Mapping[str, Local] = {}
        self._checkpointed = now // CHECKPOINT_MS
        self._asked = 0
        for p in (*transaction_partitions(brokers), OFFSETS_PARTITION, *partitions):
            self._place(p)
        self._compose()

    @property
    def is_replicated(self) -> bool:
        return len(self.brokers) > 1

    @property
    def partitions(self) -> tuple[str, ...]:
        """Return the partitions of clients' topics, in the order in which they were made."""
        return self.placement.partitions

    @property
    def factor(self) -> int:
        """Return how many replicas a partition has by default."""
        return min(self.replication.factor, len(self.brokers))

    def part(self, broker: str, part: Part[S]) -> S:
        """Return a part of what a broker keeps."""
        return self._states[broker][part]

    def groups(self, broker: str) -> GroupCoordinator:
        """Return what a broker knows of groups."""
        found: GroupCoordinator = self._states[broker][GROUPS].groups
        return found

    def replicas(self, p: str) -> tuple[str, ...]:
        """Return the brokers that have a partition, its first leader before the others."""
        return self._replicas[p]

    def in_sync(self, p: str) -> tuple[str, ...]:
        """Return the ISR of a partition, as the controller has it."""
        if not self.is_replicated:
            return self.brokers
        isr = self._quorum(p).isr
        return tuple(b for b in self._replicas[p] if b in isr)

    def eligible(self, p: str) -> tuple[str, ...]:
        """Return the eligible leaders of a partition that are not in its ISR (KIP-966)."""
        found = self._states[CONTROLLER][PARTITION[p]].eligible if self.is_replicated else ()
        return tuple(b for b in self._replicas[p] if b in found)

    def told(self, p: str) -> Told:
        """Return what the controller says of a partition's leader."""
        found = self._states[CONTROLLER][PARTITION[p]]
        return Told(found.quorum.leader, found.quorum.leader_epoch, found.last_known)

    @property
    def fenced(self) -> frozenset[str]:
        """Return the brokers that the controller does not hear."""
        found: frozenset[str] = self._states[CONTROLLER][REGISTRATIONS].fenced if self.is_replicated else self.down
        return found

    def state(self, broker: str) -> Local:
        """Return all that a broker keeps."""
        return self._states[broker]

    def log_on(self, p: str, broker: str) -> PartitionLog:
        """Return the log of a partition as a broker has it, whether it leads, follows or is down."""
        found: PartitionLog = self._states[broker][LEADER[p]].log
        return found if self.leads(broker, p) else followed_log(self._states[broker], p) or found

    def _quorum(self, p: str) -> Quorum:
        found: Quorum = self._states[CONTROLLER][PARTITION[p]].quorum
        return found

    def leader(self, p: str) -> str:
        """Return the leader of a partition as the controller knows it; of a missing partition, any broker."""
        if p not in self._replicas or not self.is_replicated:
            return self.brokers[0]
        return self._quorum(p).leader or self._replicas[p][0]

    def log(self, p: str, broker: str | None = None) -> PartitionLog:
        """Return the log of a partition, as its leader has it, or another broker."""
        log: PartitionLog = self._states[broker or self.leader(p)][LEADER[p]].log
        return log

    def leads(self, broker: str, p: str) -> bool:
        """Say whether a broker serves a partition as its leader."""
        return p in self._replicas and broker not in self.down and bool(self._states[broker][LEADER[p]].serves)

    def coordinator(self, tid: str) -> Coordinator:
        """Return the coordinator of a transactional id."""
        p = self.placement.transaction_partition(tid)
        cache: Coordinator = self._states[self.leader(p)][COORDINATOR[p]].cache
        return cache

    @property
    def transactions(self) -> dict[str, CachedTransaction]:
        """Return what the coordinators have of each transactional id."""
        caches = (self._states[self.leader(p)][COORDINATOR[p]].cache for p in self.placement.transaction_partitions)
        return {tid: cached for cache in caches for tid, cached in cache.transactions.items()}

    @property
    def entries(self) -> dict[str, TransactionMetadata]:
        """Return what is in the log of each transactional id."""
        return {tid: cached.metadata for tid, cached in self.transactions.items()}

    @property
    def served(self) -> dict[str, PartitionLog]:
        """Return the log of each partition but those of transactions, as the leader has it that serves it."""
        led = ((p, self.leader(p)) for p in (*self.partitions, OFFSETS_PARTITION))
        states = ((p, self._states[b][LEADER[p]]) for p, b in led if b not in self.down)
        return {p: state.log for p, state in states if state.serves}

    @property
    def marking(self) -> frozenset[str]:
        """Return the transactional ids that still lack markers."""
        asked = (each for b in self.brokers for each in self._states[b][CONNECTIONS].asked.values())
        return frozenset(each.transactional_id for each in asked if each.transactional_id)

    @property
    def offsets(self) -> Offsets:
        """Return what the coordinator of groups knows of its offsets."""
        return self.groups(self.leader(OFFSETS_PARTITION)).offsets

    def with_epoch(self, tid: str, epoch: int) -> None:
        """Let a transactional id have had so many epochs."""
        p = self.placement.transaction_partition(tid)
        b, part = self.leader(p), COORDINATOR[p]
        mine, cache = self._states[b][part], self.coordinator(tid)
        cached = cache.transactions[tid]
        aged = attrs.evolve(cached, metadata=attrs.evolve(cached.metadata, producer_epoch=epoch))
        after = attrs.evolve(cache, transactions=cache.transactions.set(tid, aged))
        self._states[b] = self._states[b].put(part, attrs.evolve(mine, cache=after))

    # What comes from outside.

    def send(self, request: object, broker: str, source: str, transaction: str = "") -> int:
        """Ask a broker, and return the correlation id by which its answer comes, now or later."""
        self._asked += 1
        self._settle((Request(request, self._asked, transaction=transaction, source=source, dest=broker),))
        return self._asked

    def create_topic(
        self, topic: str, partitions: int, assigned: Mapping[int, tuple[str, ...]] = FrozenMap(), factor: int = -1,
        rules: PartitionRules | None = None,
    ) -> None:
        """Make a topic that is not there; a factor of -1 is the cluster's own. Fenced brokers lead nothing of it."""
        made = tuple(partition_name(topic, index) for index in range(partitions))
        for index, p in enumerate(made):
            self._place(p, assigned.get(index), factor, rules)
        self.topics = self.topics.set(topic, partitions)
        self._compose()
        for b in self.brokers if self.is_replicated else ():
            if b in self._states[CONTROLLER][REGISTRATIONS].fenced:
                self._fence(b, made)

    def delete_topic(self, topic: str) -> None:
        """Delete a topic with all that is in it, and tell the coordinator of groups."""
        gone = tuple(p for p in self.partitions if topic_of(p) == topic)
        for p in gone:
            del self._replicas[p], self._rules[p]
        self.topics = self.topics.without(topic)
        self.deleted += gone
        self.held = [m for m in self.held if not (isinstance(m, PartitionMessage) and m.partition in gone)]
        self._compose()
        for b in () if self.holds_markers else self.brokers:
            dests = {asked.message.dest for asked in self._states[b][CONNECTIONS].asked.values()
                     if not frozenset(gone).isdisjoint(asked.message.request.partitions)}
            for dest in sorted(dests):  # no broker is left there to answer
                self._fire(b, f"{REQUEST_TIMEOUT} {dest}")
        self.send(PartitionsDeleted(gone), self.leader(OFFSETS_PARTITION), DRIVER)

    def elect(self, p: str) -> None:
        """Let the next member of a partition's ISR lead it; a leader without others leads on in a new epoch."""
        if not self.is_replicated:
            (b,) = self.brokers
            broker = self._broker(b)
            assert isinstance(broker.log, LocalLog)
            self._states[b] = broker.log.elected(self._states[b], p)
            self._settle(())
        else:
            isr = self.in_sync(p)
            leader = self.leader(p)
            order = self._replicas[p]
            at = order.index(leader)
            nexts = [b for b in (*order[at + 1:], *order[:at]) if b in isr and b not in self.absent]
            self._elect(p, nexts[0] if nexts else leader)
        self._ask_again()

    def crash(self, broker: str) -> None:
        """Let a broker lose what is not on its disk. Others lead; it is down until it starts again."""
        if broker in self.down:
            return
        self._stop(broker, flushes=False)
        self._lost(broker, self.replication.session_timeout_ms)

    def shut_down(self, broker: str) -> None:
        """Let a broker leave its offices and stop, with all it has on its disk; it is down until it starts again."""
        if broker in self.down:
            return
        if self.is_replicated:
            self._announce(self._controller().fenced(self._states[CONTROLLER], broker, is_clean=True))
        self._stop(broker, flushes=True)
        self._silent.pop(broker, None)
        self._ask_again()

    def at(self, now: int) -> None:
        """Let it be a time; what brokers have then is the last checkpoint of their high watermarks."""
        if now // CHECKPOINT_MS > self._checkpointed:
            self._checkpoint, self._checkpointed = dict(self._states), now // CHECKPOINT_MS
        super().at(now)

    def _high_watermarks_as_on_disk(self, broker: str, local: Local) -> Local:
        """Return a state with the high watermarks of the last checkpoint, 0 if there was none."""
        before = self._checkpoint.get(broker)
        for part in local:
            if isinstance(state := local[part], ReplicaState):
                saved = before[part].high_watermark if before is not None and part in before else 0
                local = local.put(part, attrs.evolve(state, high_watermark=min(saved, state.high_watermark)))
        return local

    def _stop(self, broker: str, flushes: bool) -> None:
        self.down |= {broker}
        before = self._states[broker]
        initial = local = self._broker(broker).initial
        for part in before:
            disk = durable(before[part])
            local = local.put(part, survivor(initial[part], disk) if disk else initial[part])
        self._states[broker] = local if flushes else self._high_watermarks_as_on_disk(broker, local)
        self._unanswered = {
            (source, id_): dest for (source, id_), dest in self._unanswered.items() if broker not in (source, dest)}
        self.held = [message for message in self.held if broker not in (message.source, message.dest)]

    def start(self, broker: str) -> None:
        """Start a broker that is down, and let it lead again what it led at first."""
        self.down -= {broker}
        self._silent.pop(broker, None)
        self._states[broker] = self._broker(broker).restarted(self._states[broker])
        self._tell_time(broker)
        self._settle(())
        self._ask_again()
        self._prefer(broker)

    def cut_link(self, links: Collection[Pair]) -> None:
        """Let these pairs of brokers, and no others, not hear each other."""
        self.links = frozenset(links)
        self._deliver_held()
        self._ask_again()

    def pause(self, brokers: Collection[str]) -> None:
        """Let these brokers, and no others, take nothing."""
        before, self.paused = self.paused, frozenset(brokers)
        for b in sorted(self.paused - before):
            after = self.replication.session_timeout_ms
            self._lost(b, PAUSE_MS if after is None else after)
        self._deliver_held()
        self._heard(before - self.paused)

    def isolate(self, brokers: Collection[str]) -> None:
        """Let these brokers, and no others, be cut off from everybody: others lead what they led."""
        before, self.cut_off = self.cut_off, frozenset(brokers)
        for b in sorted(self.cut_off - before):
            self._lost(b, self.replication.session_timeout_ms)
        self._deliver_held()
        self._ask_again()
        self._heard(before - self.cut_off)

    # How it is made.

    def _place(
        self, p: str, replicas: tuple[str, ...] | None = None, factor: int = -1, rules: PartitionRules | None = None
    ) -> None:
        """Give a partition its replicas, which begin with the next broker each time."""
        if replicas is None:
            first = len(self._replicas) % len(self.brokers)
            replicas = in_turn(self.brokers, first, self.factor if factor == -1 else factor)
        self._replicas[p] = replicas
        rules = rules or PartitionRules(self.replication.min_insync_replicas)
        self._rules[p] = attrs.evolve(rules, min_insync_replicas=min(rules.min_insync_replicas, len(replicas)))

    def _compose(self) -> None:
        """Make the brokers for the partitions that there are; what they kept, they keep."""
        before, names = self._states, self.brokers
        inner = (OFFSETS_PARTITION, *transaction_partitions(len(names)))
        own = tuple(p for p in self._replicas if p not in inner)
        self.placement = placement = Placement(names, (), (), (), own, (), inner[1:])
        roles = {b: roles_of(b, self.version, placement, times_out=True, block_size=BLOCK_SIZE,
                             record_times=self.record_times, config=self.config) for b in names}
        if not self.is_replicated:
            led = placement.all_partitions
            held = dict.fromkeys(led, Records(leader_epoch=0))
            actors, self._states = with_local_logs(roles, dict.fromkeys(led, names[0]), held)
        else:
            hosts = {p: self._replicas[p] for p in placement.all_partitions}
            settings = {"disk": "flushed", "election": "elr" if self.version.keeps_eligible_leaders else "clean"}
            rules = {p: self._rules[p] for p in hosts}
            least = {p: rules[p].min_insync_replicas for p in hosts}
            controller = FailoverController(hosts, names, settings["election"], rules)
            actors, self._states = with_replicated_logs(roles, rules_of(hosts, least, settings), controller, settings)
        self._actors = {each.name: each for each in actors}
        for name, state in before.items():
            self._states[name] = carried_over(state, self._states[name])
        for name in names:
            self._tell_time(name)
        self._settle(())

    # Elections.

    def _controller(self) -> FailoverController:
        controller = self._actors[CONTROLLER]
        assert isinstance(controller, FailoverController)
        return controller

    def _lost(self, broker: str, after: int | None) -> None:
        """Let the controller not hear a broker from now on, and find out after a time; None: at once."""
        if after is None:
            self._fence(broker)
        else:
            self._silent.setdefault(broker, self.now + after)

    def _heard(self, brokers: Collection[str]) -> None:
        """Let the controller hear brokers again that run: they may lead again."""
        for b in sorted(frozenset(brokers) - self.absent - self.paused) if self.is_replicated else ():
            self._silent.pop(b, None)
            if b in self._states[CONTROLLER][REGISTRATIONS].fenced:
                self._announce(self._controller().unfenced(self._states[CONTROLLER], b))
                self._ask_again()
                self._prefer(b)

    def deadlines(self) -> list[tuple[int, str, str]]:
        return [*super().deadlines(), *((at, b, SESSION) for b, at in self._silent.items())]

    def _fire(self, name: str, timer: str) -> None:
        if timer == SESSION:
            del self._silent[name]
            self._fence(name)
        else:
            super()._fire(name, timer)

    def _fence(self, broker: str, partitions: Collection[str] | None = None) -> None:
        """Let the controller find out that a broker does not answer: it leaves each ISR and office."""
        if self.is_replicated:
            self._announce(self._controller().fenced(self._states[CONTROLLER], broker, partitions))
            self._ask_again()

    def _elect(self, p: str, broker: str) -> None:
        self._announce(self._controller().elected(self._states[CONTROLLER], p, broker))

    def _announce(self, turn: Turn[Local]) -> None:
        """Let the controller take a turn of its own."""
        self._states[CONTROLLER] = turn.local
        self._settle(turn.sent)

    def _prefer(self, broker: str) -> None:
        """Let a broker lead again what it led at first, where it is in sync (`auto.leader.rebalance.enable`)."""
        moves = self.is_replicated and self.replication.auto_leader_rebalance_enable
        for p, replicas in self._replicas.items() if moves else ():
            if replicas[0] == broker and broker in self.in_sync(p) and self.leader(p) != broker:
                self._elect(p, broker)
        self._ask_again()


def carried_over(before: Local, after: Local) -> Local:
    """Return a state of more or fewer partitions with what another one kept."""
    for part in before:
        if part in after and part is not METADATA:
            after = after.put(part, before[part])
    if METADATA in before:
        metadata, fresh = before[METADATA], after[METADATA].known
        there = FrozenMap({p: metadata.known.get(p, known) for p, known in fresh.items()})
        after = after.put(METADATA, attrs.evolve(metadata, known=there))
    return after
