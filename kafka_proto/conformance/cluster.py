"""Brokers that answer a recording's requests one after the other: a request goes in, its answer comes out."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import attrs

from kafka_proto.broker.coordinator.coordinator import KAFKAS_DEFAULTS, CoordinatorConfig
from kafka_proto.broker.coordinator.role import TRANSACTION_TIMEOUT
from kafka_proto.broker.versions import BrokerVersion
from kafka_proto.cluster.running import Replication, RunningCluster
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
        """Return the answer to a request. Raises TypeError where no broker has one."""
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
        """Let the first open transaction be open for too long; False where none is open."""
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
        """Ask whom a client would ask, and return the number of the request."""
        return self.send(request, self._whom(request), CLIENT)

    def answer(self, number: int) -> Any:
        """Take the answer to the request of a number, None while it waits."""
        return self.answers.pop(number, None)

    def wait_for(self, request: object) -> Any:
        """Return the answer to a request, for which time may pass. Raises TypeError where no broker has one."""
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
