"""A record played in process, whether it and its replay are equal, and the paths of what differs.

Requests go as values to brokers of the models, or by frames where a record is about bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import attrs

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
    """Play a record, on a node of a version or as a player does, and say what differs, step by step."""
    try:
        played = play(record, version) if player is None else player(record)
    except (ConnectionError, KeyError, TypeError, ValueError) as error:
        played, why = [], f"not played: {type(error).__name__}: {error}"
        found: tuple[str, ...] = (why,)
    else:
        found = tuple(difference for number, (theirs, ours) in enumerate(zip(record["steps"], played, strict=True), 1)
                      for difference in differences(theirs, ours, f"step {number}"))
    return RecordVerdict(record["situation"], record["broker_version"], record["transaction_version"], record["family"],
                         not found, found)


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
