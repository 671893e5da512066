"""A record played in process, whether it and its replay are equal, and the paths of what differs.

Requests go as values to brokers of the models, or by frames where a record is about bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import attrs

from kafka_proto.broker.coordinator.coordinator import KAFKAS_DEFAULTS, CoordinatorConfig
from kafka_proto.broker.coordinator.role import TRANSACTION_TIMEOUT
from kafka_proto.broker.versions import BrokerVersion, version_of
from kafka_proto.cluster.failures import Replication
from kafka_proto.cluster.running import RunningCluster
from kafka_proto.conformance.player import ClusterMarkers, Player
from kafka_proto.conformance.replicas import play_replicated
from kafka_proto.conformance.requests import field_of, name, request_of
from kafka_proto.requests import (
    OFFSETS_PARTITION,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    Error,
    InitProducerIdRequest,
    ListTransactionsRequest,
    ListTransactionsResponse,
    ProduceRequest,
    WriteTxnMarkersRequest,
)

CLIENT = "c1"
REPLICATION = Replication(3, 2)
FEWEST_REPLICATED, MOST_REPLICATED = 3, 5
"""Brokers with replicated logs: as many as there are replicas, or more."""


class PlayedCluster(RunningCluster):
    """Brokers with the partitions of a topic, of one client that waits for each answer."""

    def __init__(
        self, version: BrokerVersion, partitions: Collection[str], brokers: int = 1, *,
        config: CoordinatorConfig = KAFKAS_DEFAULTS,
    ) -> None:
        super().__init__(version, partitions, brokers, replication=REPLICATION, config=config)

    def ask(self, request: object) -> Any:
        """Return the answer to a request. Raises TypeError if no broker has one."""
        if isinstance(request, ListTransactionsRequest):
            return self._listed(request)
        if isinstance(request, CreateTopicsRequest):
            if request.topic in self.topics:
                return CreateTopicsResponse(Error.TOPIC_ALREADY_EXISTS)
            self.create_topic(request.topic, request.partitions)
            return CreateTopicsResponse(Error.NONE)
        if isinstance(request, DeleteTopicsRequest):
            if request.topic not in self.topics:
                return DeleteTopicsResponse(Error.UNKNOWN_TOPIC_OR_PARTITION)
            self.delete_topic(request.topic)
            return DeleteTopicsResponse(Error.NONE)
        return self._ask(request, self._whom(request))

    def time_out(self) -> bool:
        """Let the first open transaction be open for too long; False if none is open."""
        due = [at for at, _, timer in self.deadlines() if timer.startswith(TRANSACTION_TIMEOUT)]
        if not due:
            return False
        self.pass_time(min(due))
        return True

    def _listed(self, request: ListTransactionsRequest) -> ListTransactionsResponse:
        """Ask every broker for its transactions, as an administrator does."""
        answers = [self._ask(request, b) for b in self.brokers]
        first: ListTransactionsResponse = answers[0]
        return attrs.evolve(first, transactions=tuple(sorted(each for one in answers for each in one.transactions)))

    def begin(self, request: object) -> int:
        """Ask the broker that a client would ask, and return the number of the request."""
        return self.send(request, self._whom(request), CLIENT)

    def answer(self, number: int) -> Any:
        """Take the answer to the request of a number, None while it waits."""
        return self.answers.pop(number, None)

    def wait_for(self, request: object) -> Any:
        """Return the answer to a request, for which time may pass. Raises TypeError if no broker has one."""
        number = self.begin(request)
        while number not in self.answers and (due := self.deadline) is not None:
            self.pass_time(due)
        return self._answered(number, request)

    def _ask(self, request: object, broker: str) -> Any:
        return self._answered(self.send(request, broker, CLIENT), request)

    def _answered(self, number: int, request: object) -> Any:
        if number not in self.answers:
            raise TypeError(f"a broker does not answer {type(request).__name__}")
        return self.answers.pop(number)

    def _whom(self, request: object) -> str:
        """Return the broker that a client would ask."""
        if isinstance(request, WriteTxnMarkersRequest):
            return self.leader(request.partitions[0])
        if hasattr(request, "group_id"):
            return self.leader(OFFSETS_PARTITION)
        tid = getattr(request, "transactional_id", None)
        if tid is not None and not isinstance(request, ProduceRequest):
            return self.leader(self.placement.transaction_partition(tid))
        return self.leader(getattr(request, "partition", ""))


PARTITIONS = (0, 1)
"""Of the topic `T`; a record means one that does not exist where it names another."""
MOST_WAITS = 100
OF_BYTES = frozenset(("bytes", "also", "control"))
"""Fields of a record's Produce: what is odd about a batch, and more batches in the same request."""


def play(record: dict[str, Any], version: BrokerVersion | None = None, brokers: int = 1) -> list[dict[str, Any]]:
    """Return the steps of a record as our brokers answer them: the same keys, other values where it differs.

    Raises ValueError for a release without version, or a note that means nothing here.
    """
    chosen = version or version_of(record["broker_version"], record["transaction_version"])
    if is_of_a_cluster(record):
        return play_replicated(record, chosen)
    if is_of_the_wire(record):
        from kafka_proto.conformance.situations import play_here

        return play_here(record, chosen)
    return OfValues(chosen, brokers).play(record)


class OfValues(Player):
    """Plays a record on brokers in process."""

    def __init__(self, version: BrokerVersion, brokers: int = 1) -> None:
        self.cluster = PlayedCluster(version, tuple(map(name, PARTITIONS)), brokers)
        super().__init__(self._time_out, lambda: False, ClusterMarkers(self.cluster))
        self._waits = MOST_WAITS

    def ask(self, api: str, version: int, fields: Mapping[str, Any]) -> Callable[[str], Any]:
        request = request_of(api, version, fields, self.symbols)
        response = self.cluster.wait_for(request) if api in ("JoinGroup", "SyncGroup") else self.cluster.ask(request)
        if isinstance(request, ProduceRequest) and request.acks == 0 and response.error is not Error.NONE:
            raise ConnectionError
        return partial(field_of, response, self.symbols)

    def _time_out(self) -> bool:
        self._waits -= 1
        return self._waits > 0 and self.cluster.time_out()

    def pass_ms(self, milliseconds: int) -> None:
        self.cluster.pass_time(self.cluster.now + milliseconds)

    def repeat(self, epoch: int) -> None:
        """Bump the epoch of the only transactional id: all but the last bump at once, for they are alike."""
        ((tid, cached),) = self.cluster.transactions.items()
        self.cluster.with_epoch(tid, epoch - 1)
        self.cluster.ask(InitProducerIdRequest(4, tid, cached.metadata.timeout_ms))


def is_of_the_wire(record: dict[str, Any]) -> bool:
    """Say whether a record has whole messages, or is about the bytes of a batch: it is played by frames."""
    requests = [step.get("request", {}) for step in record["steps"]]
    return any("message" in asked or not OF_BYTES.isdisjoint(asked.get("fields", ())) for asked in requests)


def is_of_a_cluster(record: Mapping[str, Any]) -> bool:
    """Say whether a record is of a cluster of three brokers: it is played on as many, whatever is asked for."""
    return "replicas" in record


UNORDERED = ("mine", "producers")
"""What a broker lists in the order of a hash map: its transactions, and the producers of a partition."""


@attrs.frozen
class RecordVerdict:
    """A record's verdict, as the command prints it."""

    situation: str
    broker_version: str
    transaction_version: int
    family: str
    equal: bool
    differences: tuple[str, ...]


Plays = Callable[[dict[str, Any]], list[dict[str, Any]]]
"""Plays a record, and returns its steps as they were answered."""


def judge(record: dict[str, Any], version: BrokerVersion | None = None, player: Plays | None = None) -> RecordVerdict:
    """Play a record, on a node of a version or as a player does, and say what differs, step by step.

    Where two passes at the real broker differ, it is compared with the one that is more alike.
    """
    try:
        played = play(record, version) if player is None else player(record)
    except (ConnectionError, KeyError, TypeError, ValueError) as error:
        played, why = [], f"not played: {type(error).__name__}: {error}"
        found: tuple[str, ...] = (why,)
    else:
        passes = (record["steps"], *([record["second_pass"]] if record.get("second_pass") else ()))
        found = min((tuple(_of_steps(steps, played)) for steps in passes), key=len)
    return RecordVerdict(record["situation"], record["broker_version"], record["transaction_version"], record["family"],
                         not found, found)


def _of_steps(recorded: Sequence[Any], played: Sequence[Any]) -> Iterator[str]:
    for number, (theirs, ours) in enumerate(zip(recorded, played, strict=True), 1):
        yield from differences(theirs, ours, f"step {number}")


def differences(theirs: Any, ours: Any, path: str) -> Iterator[str]:
    """Yield where two JSON values differ: the path, what the real broker has, and what ours has."""
    if isinstance(theirs, dict) and isinstance(ours, dict):
        for key in sorted({*theirs, *ours}):
            one, other = theirs.get(key), ours.get(key)
            if key in UNORDERED and one is not None and other is not None:
                one, other = sorted(one), sorted(other)
            yield from differences(one, other, f"{path}.{key}")
    elif theirs != ours:
        yield f"{path}: expected {theirs!r}, found {ours!r}"
