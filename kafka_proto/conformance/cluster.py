"""Brokers whose messages all arrive, at once and in order: a request goes in, the response comes out when all is done.

The brokers are those of the models `exactly-once/*`: one that leads for good, or three with replicas of each log and
the controller that elects their leaders.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any

import attrs

from harness.model import Actor, Local, Message
from kafka_proto.broker.broker import Broker
from kafka_proto.broker.composition import replicated, started
from kafka_proto.broker.coordinator.coordinator import Coordinator
from kafka_proto.broker.coordinator.role import TRANSACTION_TIMEOUT
from kafka_proto.broker.coordinator.transaction import CachedTransaction
from kafka_proto.broker.logs.local import RECORDS, LocalLog, Records
from kafka_proto.broker.messages import PartitionsDeleted, Request, Response
from kafka_proto.broker.parts import COORDINATOR, LEADER
from kafka_proto.broker.placement import Placement, transaction_partitions
from kafka_proto.broker.state import METADATA
from kafka_proto.broker.versions import BrokerVersion
from kafka_proto.cluster.composition import hosts_of, roles_of
from kafka_proto.log import PartitionLog
from kafka_proto.requests import (
    OFFSETS_PARTITION,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    Error,
    ListTransactionsRequest,
    ListTransactionsResponse,
    ProduceRequest,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
    partition_name,
    topic_of,
)

CLIENT = "c1"
BLOCK_SIZE = 1_000
REPLICATED = {"replication-factor": 3, "min-insync-replicas": 2, "elections": 0}
FEWEST_REPLICATED, MOST_REPLICATED = 3, 5
"""Brokers with replicated logs: as many as there are replicas, or more."""
FLUSHED = {"disk": "flushed", "election": "clean"}
MOST_MESSAGES = 10_000
"""Of one request: more means that the brokers do not come to rest."""


class Cluster:
    """Brokers of a version with the partitions of a topic, and what is between them."""

    def __init__(self, version: BrokerVersion, partitions: Iterable[str], brokers: int = 1) -> None:
        names = tuple(f"b{n + 1}" for n in range(brokers))
        self.placement = Placement(
            names, (CLIENT,), (), (), tuple(partitions), (), transaction_partitions(len(names))
        )
        self.version = version
        self.now = 0
        """Logical milliseconds."""
        self.holds_markers = False
        self.held: list[Request] = []
        """Markers on their way."""
        self.written: list[tuple[str, Error]] = []
        """What partitions answered to markers of the coordinators."""
        self._actors: dict[str, Actor[Local]] = {}
        self._states: dict[str, Local] = {}
        self._answers: dict[int, object] = {}
        self._asked = 0
        self._compose()

    def _compose(self) -> None:
        """Make the brokers for the partitions that there are; what they kept, they keep."""
        before, names = self._states, self.placement.brokers
        roles = {
            b: roles_of(b, self.version, self.placement, times_out=True, block_size=BLOCK_SIZE) for b in names
        }
        if len(names) == 1:
            (b,) = names
            log = LocalLog(b, roles[b], dict.fromkeys(self.placement.all_partitions, b))
            broker = Broker(b, log, roles[b], asks_again=False)
            empty = {RECORDS[p]: Records(leader_epoch=0) for p in log.led}
            first = broker.initial
            for part, records in empty.items():
                first = first.put(part, records)
            self._actors, self._states = {b: broker}, {b: broker.started(log.known(first), empty)}
        else:
            hosts = hosts_of(self.placement, REPLICATED)
            controller, rules, members = replicated(names, hosts, roles, REPLICATED, FLUSHED)
            self._actors = {each.name: each for each in (*members, controller)}
            self._states = {**started(controller.initial, rules, members), controller.name: controller.initial}
        for name, state in before.items():
            kept = [part for part in state if part in self._states[name] and part is not METADATA]
            for part in kept:
                self._states[name] = self._states[name].put(part, state[part])
        self._settle(())

    def _create(self, request: CreateTopicsRequest) -> CreateTopicsResponse:
        """Make a topic, unless there is one of its name."""
        if request.topic in self.topics:
            return CreateTopicsResponse(Error.TOPIC_ALREADY_EXISTS)
        new = tuple(partition_name(request.topic, index) for index in range(request.partitions))
        self.placement = attrs.evolve(self.placement, partitions=(*self.placement.partitions, *new))
        self._compose()
        return CreateTopicsResponse(Error.NONE)

    def _delete(self, request: DeleteTopicsRequest) -> DeleteTopicsResponse:
        """Delete a topic, if there is one, and tell the coordinator of groups."""
        if request.topic not in self.topics:
            return DeleteTopicsResponse(Error.UNKNOWN_TOPIC_OR_PARTITION)
        gone = tuple(p for p in self.placement.partitions if topic_of(p) == request.topic)
        left = tuple(p for p in self.placement.partitions if p not in gone)
        self.placement = attrs.evolve(self.placement, partitions=left)
        self._compose()
        self._asked += 1
        told = Request(PartitionsDeleted(gone), self._asked, source=CLIENT, dest=self.leader(OFFSETS_PARTITION))
        self._settle((told,))
        return DeleteTopicsResponse(Error.NONE)

    @property
    def topics(self) -> frozenset[str]:
        """Return the names of the topics that there are."""
        return frozenset(map(topic_of, self.placement.partitions))

    def ask(self, request: object) -> object:
        """Return the answer to a request. Raises TypeError where no broker has one."""
        if isinstance(request, ListTransactionsRequest):
            return self._listed(request)
        if isinstance(request, CreateTopicsRequest):
            return self._create(request)
        if isinstance(request, DeleteTopicsRequest):
            return self._delete(request)
        return self._ask(request, self._whom(request))

    def _listed(self, request: ListTransactionsRequest) -> ListTransactionsResponse:
        """Ask every broker for its transactions, as an administrator does."""
        answers = [self._ask(request, b) for b in self.placement.brokers]
        first: ListTransactionsResponse = answers[0]
        return attrs.evolve(first, transactions=tuple(sorted(each for one in answers for each in one.transactions)))

    def _ask(self, request: object, broker: str) -> Any:
        self._asked += 1
        self._settle((Request(request, self._asked, source=CLIENT, dest=broker),))
        if self._asked not in self._answers:
            raise TypeError(f"a broker does not answer {type(request).__name__}")
        return self._answers.pop(self._asked)

    def deliver_held(self) -> tuple[tuple[str, Error], ...]:
        """Deliver the markers that were held, and return the answers of their partitions."""
        self.holds_markers, held, self.held = False, self.held, []
        self.written = []
        self._settle(held)
        return tuple(self.written)

    def time_out(self) -> bool:
        """Let the first open transaction be open for too long; False where none is open."""
        if (first := min(self._deadlines(), default=None)) is None:
            return False
        self.pass_time(first[0] - self.now)
        return True

    def pass_time(self, milliseconds: int) -> None:
        """Let time pass, and transactions time out that are open for too long."""
        self.now += milliseconds
        for name, state in self._states.items():
            if METADATA in state:
                self._states[name] = state.put(METADATA, attrs.evolve(state[METADATA], clock=self.now))
        fired = set[tuple[str, str]]()
        while due := [each for each in self._deadlines() if each[0] <= self.now and each[1:] not in fired]:
            _, name, timer = min(due)
            fired.add((name, timer))
            (turn,) = self._actors[name].timer_fired(self._states[name], timer)
            self._states[name] = turn.local
            self._settle(turn.sent)

    def _deadlines(self) -> list[tuple[int, str, str]]:
        """Return when transactions time out that are open, with the broker's name and its timer."""
        known = self.transactions
        return [
            (entry.start_timestamp + entry.timeout_ms + 1, name, timer)
            for name, actor in self._actors.items()
            for timer in actor.timers(self._states[name]) if timer.startswith(TRANSACTION_TIMEOUT)
            for entry in [known[timer.split()[1]].metadata]
        ]

    def leader(self, p: str) -> str:
        """Return the leader of a partition; of one that is not there, and of none, any broker."""
        return self.placement.leader(p) if p in self.placement.all_partitions else self.placement.brokers[0]

    def log(self, p: str) -> PartitionLog:
        """Return the log of a partition, as its leader has it."""
        log: PartitionLog = self._states[self.placement.leader(p)][LEADER[p]].log
        return log

    def coordinator(self, tid: str) -> Coordinator:
        """Return the coordinator of a transactional id."""
        p = self.placement.transaction_partition(tid)
        cache: Coordinator = self._states[self.placement.leader(p)][COORDINATOR[p]].cache
        return cache

    @property
    def transactions(self) -> dict[str, CachedTransaction]:
        """Return what the coordinators have of each transactional id."""
        caches = (self._states[self.placement.leader(p)][COORDINATOR[p]].cache
                  for p in self.placement.transaction_partitions)
        return {tid: cached for cache in caches for tid, cached in cache.transactions.items()}

    def with_epoch(self, tid: str, epoch: int) -> None:
        """Let a transactional id have had so many epochs."""
        p = self.placement.transaction_partition(tid)
        b, part = self.placement.leader(p), COORDINATOR[p]
        mine, cache = self._states[b][part], self.coordinator(tid)
        cached = cache.transactions[tid]
        aged = attrs.evolve(cached, metadata=attrs.evolve(cached.metadata, producer_epoch=epoch))
        after = attrs.evolve(cache, transactions=cache.transactions.set(tid, aged))
        self._states[b] = self._states[b].put(part, attrs.evolve(mine, cache=after))

    def _whom(self, request: object) -> str:
        """Return the broker that a client would ask."""
        if isinstance(request, WriteTxnMarkersRequest):
            return self.leader(request.partitions[0])
        if hasattr(request, "group_id"):
            return self.leader(OFFSETS_PARTITION)
        tid = getattr(request, "transactional_id", None)
        if tid is not None and not isinstance(request, ProduceRequest):
            return self.placement.coordinator(tid)
        return self.leader(getattr(request, "partition", ""))

    def _settle(self, sent: Iterable[Message]) -> None:
        """Deliver what was sent, and all that follows, until nothing is on its way and nobody has anything to do."""
        ahead, delivered = deque(sent), 0
        while True:
            while ahead:
                delivered += 1
                if delivered > MOST_MESSAGES:
                    raise RuntimeError(f"the brokers do not come to rest after {MOST_MESSAGES:,} messages")
                ahead.extend(self._delivered(ahead.popleft()))
            name, turn = next(
                ((name, turn) for name, actor in self._actors.items() for turn in actor.step(self._states[name])),
                ("", None),
            )
            if turn is None:
                return
            self._states[name] = turn.local
            ahead.extend(turn.sent)

    def _delivered(self, message: Message) -> tuple[Message, ...]:
        """Let a message arrive, and return what is sent then."""
        if message.dest == CLIENT:
            assert isinstance(message, Response)
            self._answers[message.correlation] = message.response
            return ()
        if self.holds_markers and isinstance(message, Request) and message.source != CLIENT and marks(message):
            self.held.append(message)
            return ()
        if isinstance(message, Response) and isinstance(message.response, WriteTxnMarkersResponse):
            self.written += message.response.errors.items()
        turn = next(iter(self._actors[message.dest].on_message(self._states[message.dest], message)), None)
        if turn is None:
            return ()
        self._states[message.dest] = turn.local
        return turn.sent


def marks(message: Request) -> bool:
    return isinstance(message.request, WriteTxnMarkersRequest)
