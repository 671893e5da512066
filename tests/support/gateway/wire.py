"""Requests as bytes, for tests of the gateway: frames with a header, and what comes back taken apart again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.model import FrozenMap
from kafka_proto.gateway import offer
from kafka_proto.gateway.client import CLIENT_ID, request_bytes
from kafka_proto.gateway.connection import read_response
from kafka_proto.gateway.host import Host
from kafka_proto.gateway.inputs import Arrived, Gone, Injected, Opened, Passed, Settings, Write
from kafka_proto.gateway.records import WireRecord, write_batch

__all__ = ["Producer", "Talk", "adding", "fetched", "initializing", "inject", "owner_in", "produced", "request_bytes",
           "responses", "talk", "transactional_batch"]


def responses(data: bytes, *asked: tuple[int, int]) -> list[tuple[int, dict[str, Any]]]:
    """Return the responses in some bytes as (correlation id, message); `asked` has API and version of each."""
    found, at = [], 0
    for api, version in asked:
        size = int.from_bytes(data[at : at + 4], "big")
        correlation_id, message, left = read_response(data[at + 4 : at + 4 + size], api, version)
        found.append((correlation_id, message))
        assert left == 0
        at += 4 + size
    assert at == len(data)
    return found


AT_ID = 12
"""Where the client id begins in a request: after size, api, version and correlation id. Null has the length -1."""


class Talk:
    """Clients of a host without sockets: connections by number, a time that tests set, and all outputs kept."""

    def __init__(self, host: Any, now: int = 1_000_000) -> None:
        self.host = host
        self.now = now
        self.outputs: list[Any] = []
        self._asked: dict[int, list[tuple[int, int]]] = {}
        self._opened = 0
        self.ids: dict[int, str | None] = {}
        """The client ids of connections that have one of their own, or none at all."""

    def give(self, given: Any) -> list[Any]:
        """Hand an input to the host, and return what it wants done."""
        found = self.host.take(given)
        self.outputs.append(found)
        return list(found)

    def connect(self, broker: int = 1) -> int:
        """Return the number of a new connection."""
        self._opened += 1
        self.give(Opened(self._opened - 1, self.now, broker))
        self._asked[self._opened - 1] = []
        return self._opened - 1

    def ask(self, connection: int, api: int, version: int, message: dict[str, Any]) -> dict[int, list[dict[str, Any]]]:
        """Send a request, and return the responses that come of it by connection."""
        self._asked[connection].append((api, version))
        id_ = self.ids.get(connection, CLIENT_ID)
        data = request_bytes(api, version, message, client_id=id_ or "")
        if id_ is None:
            data = data[:AT_ID] + b"\xff\xff" + data[AT_ID + 2 :]
        return self.written(self.give(Arrived(connection, data, self.now)))

    def one(self, connection: int, api: int, version: int, message: dict[str, Any]) -> dict[str, Any]:
        """Send a request that is answered at once, and return its response."""
        found = self.ask(connection, api, version, message)
        assert list(found) == [connection]
        (response,) = found[connection]
        return response

    def wait(self, milliseconds: int) -> dict[int, list[dict[str, Any]]]:
        """Let time pass at once, and return the responses that come of it."""
        self.now += milliseconds
        return self.written(self.give(Passed(self.now)))

    def written(self, outputs: list[Any]) -> dict[int, list[dict[str, Any]]]:
        """Return the responses that were written, by connection."""
        found: dict[int, list[dict[str, Any]]] = {}
        for output in outputs:
            assert isinstance(output, Write), output
            asked = self._asked[output.connection].pop(0)
            ((_, message),) = responses(output.data, asked)
            found.setdefault(output.connection, []).append(message)
        return found


def talk(topics: Mapping[str, int] = FrozenMap({"t": 2}), **settings: Any) -> Talk:
    """Return clients of brokers with such settings."""
    return Talk(Host(Settings(**settings), topics, 1_000_000))


def produced(*rows: tuple[int, bytes], acks: int = -1, topic: str = "t", tid: str | None = None) -> dict[str, Any]:
    """Return a Produce with a batch for each partition that is named."""
    partitions = tuple({"index": index, "records": data} for index, data in rows)
    return {"acks": acks, "transactional_id": tid, "timeout": 30_000,
            "topic_data": ({"name": topic, "partition_data": partitions},)}


def fetched(offset: int, wait: int = 0, level: int = 0, most: int = 2**20, partition: int = 0) -> dict[str, Any]:
    """Return a Fetch of one partition."""
    wanted = {"partition": partition, "fetch_offset": offset, "partition_max_bytes": most}
    return {"max_wait": wait, "min_bytes": 1, "max_bytes": most, "isolation_level": level, "session_epoch": -1,
            "topics": ({"topic": "t", "partitions": (wanted,)},)}


def initializing(tid: str | None, timeout_ms: int = 60_000) -> dict[str, Any]:
    """Return an InitProducerId of a producer that has no id."""
    return {"transactional_id": tid, "transaction_timeout": timeout_ms, "producer_id": -1, "producer_epoch": -1}


def owner_in(got: Mapping[str, Any]) -> dict[str, int]:
    """Return the producer id and epoch that an answer gives."""
    return {name: got[name] for name in ("producer_id", "producer_epoch")}


def adding(tid: str, owner: Mapping[str, int], partition: int) -> dict[str, Any]:
    """Return an AddPartitionsToTxn of a client, with one partition."""
    fields = {"transactional_id": tid, **owner, "topics": ({"name": "t", "partitions": (partition,)},)}
    return {f"v3_and_below_{name}": value for name, value in fields.items()}


def transactional_batch(value: bytes, sequence: int, owner: Mapping[str, int]) -> bytes:
    return write_batch([WireRecord(None, value)], base_timestamp=5, is_transactional=True, base_sequence=sequence,
                       **owner)


OLD = {"init": 4, "add": 0, "produce": 9, "end": 1}
"""Versions of the requests of librdkafka."""


class Producer:
    """A transactional producer that speaks as librdkafka does."""

    def __init__(self, clients: Talk) -> None:
        self.clients = clients
        self.me = clients.connect()
        self.owner = owner_in(clients.one(self.me, offer.INIT_PRODUCER_ID, OLD["init"], initializing("app")))
        self.sequences = [0, 0]

    def write(self, partition: int, value: bytes) -> int:
        """Add a partition and write to it; return the error code."""
        self.clients.one(self.me, offer.ADD_PARTITIONS_TO_TXN, OLD["add"], adding("app", self.owner, partition))
        answer = self.clients.one(self.me, offer.PRODUCE, OLD["produce"], self.batch(partition, value))
        (topic,) = answer["responses"]
        return int(topic["partition_responses"][0]["error_code"])

    def batch(self, partition: int, value: bytes) -> dict[str, Any]:
        data = transactional_batch(value, self.sequences[partition], self.owner)
        self.sequences[partition] += 1
        return produced((partition, data), tid="app")

    def end(self, committed: bool) -> dict[int, list[dict[str, Any]]]:
        """Ask for the end, and return what is answered, if anything."""
        return self.clients.ask(self.me, offer.END_TXN, OLD["end"],
                                {"transactional_id": "app", "committed": committed, **self.owner})

    def reconnect(self) -> None:
        """Give the connection up."""
        self.clients.give(Gone(self.me, self.clients.now))
        self.me = self.clients.connect()


def inject(clients: Talk, number: int, kind: str, **what: Any) -> list[Any]:
    return clients.give(Injected(number, kind, clients.now, **what))
