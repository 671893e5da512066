"""Playing a record in process: requests as values to brokers of the models, or by frames where it is about bytes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from kafka_proto.broker.versions import BrokerVersion, version_of
from kafka_proto.conformance.cluster import PlayedCluster
from kafka_proto.conformance.player import ClusterMarkers, Player
from kafka_proto.conformance.requests import field_of, name, request_of
from kafka_proto.requests import Error, InitProducerIdRequest, ProduceRequest

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
    if is_of_the_wire(record):
        from kafka_proto.conformance.in_process import play_here

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
