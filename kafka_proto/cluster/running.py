"""Brokers that run: what is sent arrives at once and in order, and what is due happens. Nothing here knows I/O.

Their driver says what time it is, and which of them are down, paused or cut off. The brokers are those of the models: a
single one that always leads, or several with replicas of each log and the controller that elects leaders.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, TypeVar
from uuid import UUID

import attrs

from harness.model import FrozenMap, Local, Message, Part
from kafka_proto import requests
from kafka_proto.broker.coordinator.coordinator import KAFKAS_DEFAULTS, Coordinator, CoordinatorConfig
from kafka_proto.broker.coordinator.transaction import CachedTransaction, TransactionMetadata
from kafka_proto.broker.failover import FailoverController, PartitionRules
from kafka_proto.broker.group.coordinator import GroupCoordinator, Offsets
from kafka_proto.broker.group.settings import KAFKAS_GROUPS, GroupConfig
from kafka_proto.broker.leader.epochs import EpochCache, epochs_of, held_log
from kafka_proto.broker.leader.fetching import written_together
from kafka_proto.broker.leader.role import RecordTimes
from kafka_proto.broker.messages import PartitionsDeleted, Request
from kafka_proto.broker.other_brokers import REQUEST_TIMEOUT
from kafka_proto.broker.parts import CONNECTIONS, COORDINATOR, GROUPS, LEADER, METADATA, RECORDS, REPLICA, Records
from kafka_proto.broker.placement import Placement, transaction_partitions
from kafka_proto.broker.versions import BrokerVersion
from kafka_proto.cluster.composition import (
    blank,
    carried_over,
    in_turn,
    roles_of,
    rules_of,
    with_local_logs,
    with_replicated_logs,
)
from kafka_proto.cluster.failures import KAFKAS, FailingBrokers, Reassignment, Replication
from kafka_proto.errors import Error
from kafka_proto.log import PartitionLog
from kafka_proto.log.chunks import NOTHING, Chunks
from kafka_proto.log.cleaning import Compaction
from kafka_proto.log.segments import LogConfig
from kafka_proto.replication.controller import CONTROLLER
from kafka_proto.replication.messages import PartitionMessage
from kafka_proto.requests import INTERNAL_TOPICS, OFFSETS_PARTITION, TRANSACTION_TOPIC, partition_name, topic_of

S = TypeVar("S")
BLOCK_SIZE = 1_000
"""Producer ids that a broker is given at a time, as Kafka's controller does."""
DRIVER = "driver"


class RunningCluster(FailingBrokers):
    """Brokers of a version with the partitions that there are, and what is between them."""

    def __init__(
        self, version: BrokerVersion, partitions: Collection[str], brokers: int = 1, *, now: int = 0,
        replication: Replication = KAFKAS, record_times: RecordTimes = written_together,
        config: CoordinatorConfig = KAFKAS_DEFAULTS, group_config: GroupConfig = KAFKAS_GROUPS,
        internal: Mapping[str, tuple[Mapping[str, str], PartitionRules]] = FrozenMap(),
    ) -> None:
        super().__init__([f"b{n + 1}" for n in range(brokers)], now, replication)
        self.version = version
        self.record_times = record_times
        """The time stamps of a batch's records."""
        self.began = now
        self.deleted: list[str] = []
        """Partitions that are gone, until the driver takes note."""
        self.topics: FrozenMap[str, int] = FrozenMap(Counter(map(topic_of, partitions)))
        """Clients' topics with their numbers of partitions."""
        self.topic_ids: dict[str, UUID] = {}
        self.topic_names: dict[UUID, str] = {}
        """By id (KIP-516)."""
        self._made = 0
        """How many topics were made."""
        for topic in INTERNAL_TOPICS:
            self._identify(topic, 0)
        for topic in self.topics:
            self._identify_next(topic)
        self.reassignments: dict[str, Reassignment] = {}
        """By partition: those that are under way."""
        self.configs = FrozenMap((topic, FrozenMap(own)) for topic, (own, _) in internal.items())
        """The settings that each topic has of its own, which the driver gave it."""
        self.placement: Placement
        """What roles know of names."""
        self.config, self.group_config = config, group_config
        self._rules: dict[str, PartitionRules] = {}
        self._asked = 0
        for p in (*transaction_partitions(brokers), OFFSETS_PARTITION, *partitions):
            self._place(p, rules=internal[topic_of(p)][1] if topic_of(p) in internal else None)
        self._compose()

    @property
    def partitions(self) -> tuple[str, ...]:
        """Return the partitions of clients' topics, in the order in which they were made."""
        return tuple(p for p in self.placement.partitions if topic_of(p) not in INTERNAL_TOPICS)

    @property
    def internal(self) -> dict[str, int]:
        """Return the brokers' own topics with their numbers of partitions, once something was written to them."""
        own = [p for p in self._replicas if topic_of(p) in INTERNAL_TOPICS]
        written = {topic_of(p) for p in own for b in self._replicas[p] if (
            self._states[b][REPLICA[p]].log if self.is_replicated else self._states[b][RECORDS[p]].committed)}
        return {topic: sum(topic_of(p) == topic for p in own) for topic in sorted(written)}

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

    def log(self, p: str, broker: str | None = None) -> PartitionLog:
        """Return the log of a partition, as its leader has it, or another broker."""
        log: PartitionLog = self._states[broker or self.leader(p)][LEADER[p]].log
        return log

    def state(self, broker: str) -> Local:
        """Return all that a broker keeps."""
        return self._states[broker]

    def may_differ(self, p: str) -> bool:
        """Say whether replicas of a partition need not agree: it may be led, or was, by one that lacks records."""
        return p in self._lossy or self.elects_uncleanly(p)

    def elects_uncleanly(self, p: str) -> bool:
        """Say whether a replica of a partition may lead that was not in sync."""
        return self._rules[p].unclean_leader_election_enable

    def log_config(self, p: str) -> LogConfig:
        """Return the settings by which the logs of a partition become shorter."""
        return self._rules[p].log

    def delete_before(self, p: str, offset: int) -> None:
        """Let the leader of a partition delete what is before an offset."""
        self.answers.pop(self.send(requests.DeleteRecordsRequest(0, p, offset), self.leader(p), DRIVER), None)

    def items(self, p: str, broker: str) -> Chunks[Any]:
        """Return the log of a partition as it is on a broker's disk."""
        state = self._states[broker]
        found = state[REPLICA[p]].log if self.is_replicated else state[RECORDS[p]].committed
        assert isinstance(found, Chunks)
        return found

    def compact(self, p: str, broker: str, done: Compaction) -> None:
        """Let a broker's log of a partition be compacted."""
        self._became(broker, self._broker(broker).log.compacted(self._states[broker], p, done))

    def log_on(self, p: str, broker: str) -> PartitionLog:
        """Return the log of a partition as a broker has it, whether it leads, follows or is down."""
        state = self._states[broker]
        if LEADER[p] not in state or (REPLICA[p] in state and not self.leads(broker, p)):
            return held_log(state, p)
        found: PartitionLog = state[LEADER[p]].log
        return found

    def follows(self, broker: str, p: str) -> bool:
        """Say whether a broker has a replica of a partition, whoever leads it."""
        return self.is_replicated and p in self._replicas and broker in self._replicas[p]

    def epochs(self, p: str, broker: str) -> EpochCache:
        """Return the leader epochs of a partition's log as a broker has it."""
        return epochs_of(self._states[broker], p, broker, self.log_on(p, broker))

    def leads(self, broker: str, p: str) -> bool:
        """Say whether a broker serves a partition as its leader."""
        if p not in self._replicas or broker in self.down:
            return False
        state = self._states[broker]
        return bool(state[LEADER[p]].serves if LEADER[p] in state else state[METADATA].known[p].leader == broker)

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

    def entry(self, tid: str) -> TransactionMetadata | None:
        """Return what is in the log of a transactional id."""
        cached = self.coordinator(tid).transactions.get(tid)
        return None if cached is None else cached.metadata

    @property
    def entries(self) -> dict[str, TransactionMetadata]:
        """Return what is in the log of each transactional id."""
        return {tid: cached.metadata for tid, cached in self.transactions.items()}

    @property
    def served(self) -> dict[str, PartitionLog]:
        """Return the log of each partition but those of transactions, as the leader has it that serves it."""
        found = ((p, self.served_log(p)) for p in (*self.partitions, OFFSETS_PARTITION))
        return {p: log for p, log in found if log is not None}

    def is_read(self, p: str) -> bool:
        """Say whether there is such a partition of a topic of clients, or of the offsets topic."""
        return p in self._replicas and topic_of(p) != TRANSACTION_TOPIC

    def served_log(self, p: str) -> PartitionLog | None:
        """Return the log of a partition as the leader has it; None if it does not serve it, or nobody leads."""
        b = self.led[p].leader
        state = None if not b or b in self.down else self._states[b][LEADER[p]]
        return state.log if state is not None and state.serves else None

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
        self._keep(b, self._states[b].put(part, attrs.evolve(mine, cache=after)))

    # What comes from outside.

    def send(self, request: object, broker: str, source: str, transaction: str = "") -> int:
        """Ask a broker, and return the correlation id by which its answer comes, now or later."""
        self._asked += 1
        self._settle((Request(request, self._asked, transaction=transaction, source=source, dest=broker),))
        return self._asked

    def create_topic(
        self, topic: str, partitions: int, assigned: Mapping[int, tuple[str, ...]] = FrozenMap(), factor: int = -1,
        rules: PartitionRules | None = None, configs: Mapping[str, str] = FrozenMap(),
    ) -> None:
        """Make a topic that is not there; a factor of -1 is the cluster's own. Fenced brokers lead nothing of it."""
        made = tuple(partition_name(topic, index) for index in range(partitions))
        for index, p in enumerate(made):
            self._place(p, assigned.get(index), factor, rules)
        self.topics = self.topics.set(topic, partitions)
        self._identify_next(topic)
        self.configs = self.configs.set(topic, FrozenMap(configs))
        self._compose()
        for b in sorted(self.fenced) if self.is_replicated else ():
            self._fence(b, made)

    def add_partitions(self, topic: str, count: int, assigned: Sequence[tuple[str, ...]] = ()) -> None:
        """Let a topic have so many partitions, the new ones with these replicas, if they are said.

        Coordinators go on with those of their topics that were there before, as real ones do until they start again.
        """
        own = self.internal
        before = own[topic] if topic in own else self.topics[topic]
        rules = self._rules[partition_name(topic, 0)]
        made = tuple(partition_name(topic, index) for index in range(before, count))
        for n, p in enumerate(made):
            self._place(p, assigned[n] if assigned else None, len(self._replicas[partition_name(topic, 0)]), rules)
        self.topics = self.topics if topic in own else self.topics.set(topic, count)
        self._compose()
        for b in sorted(self.fenced) if self.is_replicated else ():
            self._fence(b, made)

    def delete_topic(self, topic: str) -> None:
        """Delete a topic with all that is in it, and tell the coordinator of groups."""
        gone = tuple(p for p in self.partitions if topic_of(p) == topic)
        for p in gone:
            del self._replicas[p], self._rules[p]
            self.reassignments.pop(p, None)
        self.topics, self.configs = self.topics.without(topic), self.configs.without(topic)
        del self.topic_names[self.topic_ids.pop(topic)]
        self.deleted += gone
        self.held = [m for m in self.held if not (isinstance(m, PartitionMessage) and m.partition in gone)]
        self._compose()
        for b in () if self.holds_markers else self.brokers:
            dests = {asked.message.dest for asked in self._states[b][CONNECTIONS].asked.values()
                     if not frozenset(gone).isdisjoint(asked.message.request.partitions)}
            for dest in sorted(dests):  # no broker is left there to answer
                self._fire(b, f"{REQUEST_TIMEOUT} {dest}")
        self.send(PartitionsDeleted(gone), self.leader(OFFSETS_PARTITION), DRIVER)

    def configure(self, topic: str, configs: Mapping[str, str], rules: PartitionRules) -> None:
        """Give a topic settings of its own, which take effect at once."""
        self.configs = self.configs.set(topic, FrozenMap(configs))
        self._rules |= {p: rules for p in self._replicas if topic_of(p) == topic}
        self._compose()

    def reassign(self, p: str, target: tuple[str, ...] | None) -> Error:
        """Let a partition have other replicas: new ones join, and old ones go once these are in sync (KIP-455).

        None ends that, where it is under way: the partition keeps the replicas that it had.
        """
        under_way = self.reassignments.pop(p, None)
        if target is None and under_way is None:
            return Error.NO_REASSIGNMENT_IN_PROGRESS
        original = self._replicas[p] if under_way is None else under_way.original
        move = Reassignment(original, original if target is None else target)
        if move.adding <= frozenset(self.in_sync(p)):
            self._host(p, move.target)
        else:
            self.reassignments[p] = move
            self._host(p, move.replicas)
        return Error.NONE

    def _settle(self, sent: Iterable[Message]) -> None:
        """Let brokers come to rest, and complete reassignments whose new replicas are in sync."""
        super()._settle(sent)
        done = [p for p, move in self.reassignments.items() if move.adding <= frozenset(self.in_sync(p))]
        for p in done:
            if (move := self.reassignments.pop(p, None)) is not None:
                self._host(p, move.target)

    def _host(self, p: str, replicas: tuple[str, ...]) -> None:
        """Let these brokers, and no others, have a replica of a partition."""
        before, self._replicas[p] = self._replicas[p], replicas
        if before == replicas:
            return
        self._compose()
        if not frozenset(before) <= frozenset(replicas):
            self._announce(self._controller().reassigned(self._states[CONTROLLER], p))
        joining = tuple(b for b in replicas if b not in before)
        self._announce(self._controller().joined(self._states[CONTROLLER], p, joining))
        self._ask_again()

    # How it is made.

    def _identify_next(self, topic: str) -> None:
        """Give a topic an id that no other one has or had."""
        self._made += 1
        self._identify(topic, self._made)

    def _identify(self, topic: str, number: int) -> None:
        """Give a topic its id by a number; as of `Uuid.randomUuid`, its text begins with no dash."""
        digest = hashlib.sha256(f"{number} {topic}".encode()).digest()
        topic_id = UUID(bytes=bytes((digest[0] & 0x7F, *digest[1:16])), version=4)
        self.topic_ids[topic], self.topic_names[topic_id] = topic_id, topic

    def _place(
        self, p: str, replicas: tuple[str, ...] | None = None, factor: int = -1, rules: PartitionRules | None = None
    ) -> None:
        """Give a partition its replicas, which begin with the next broker each time."""
        if replicas is None:
            first = len(self._replicas) % len(self.brokers)
            replicas = in_turn(self.brokers, first, self.factor if factor == -1 else factor)
        self._replicas[p] = replicas
        self._rules[p] = rules or PartitionRules(self.replication.min_insync_replicas)

    def _compose(self) -> None:
        """Make the brokers for the partitions that there are; what they kept, they keep."""
        before, names = self._states, self.brokers
        inner = (OFFSETS_PARTITION, *transaction_partitions(len(names)))
        own = tuple(p for p in self._replicas if p not in inner)
        self.placement = placement = Placement(names, (), (), (), own, (), inner[1:])
        roles = {b: roles_of(b, self.version, placement, times_out=True, block_size=BLOCK_SIZE,
                             record_times=self.record_times, config=self.config, group_config=self.group_config)
                 for b in names}
        if not self.is_replicated:
            led = placement.all_partitions
            held = dict.fromkeys(led, Records(NOTHING, leader_epoch=0, epoch_starts=((0, 0),)))
            actors, self._states = with_local_logs(roles, dict.fromkeys(led, names[0]), held)
        else:
            hosts = {p: self._replicas[p] for p in placement.all_partitions}
            settings = {"disk": "flushed", "election": "elr" if self.version.keeps_eligible_leaders else "clean"}
            rules = {p: attrs.evolve(rule, min_insync_replicas=min(rule.min_insync_replicas, len(hosts[p])))
                     for p in hosts if (rule := self._rules[p])}
            least = {p: rules[p].min_insync_replicas for p in hosts}
            epochs = {b: before[b][METADATA].broker_epoch for b in names if b in before}
            controller = FailoverController(hosts, names, settings["election"], rules, epochs)
            actors, self._states = with_replicated_logs(
                roles, rules_of(hosts, least, settings), controller, settings, NOTHING)
        self._actors = {each.name: each for each in actors}
        for name, state in before.items():
            after = carried_over(state, self._states[name])
            if self.is_replicated and name != CONTROLLER:
                after = after.put_all(blank(before[CONTROLLER], state, after))
            self._states[name] = after
        self._rested, self._timers = {}, {}
        self.stirred.update(self._replicas)
        for name in names:
            self._tell_time(name)
        self._settle(())
