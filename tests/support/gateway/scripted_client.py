"""A client of a test's own over sockets: one transactional producer that asks whom Kafka's clients would ask."""

from __future__ import annotations

import socket
import time
from contextlib import ExitStack
from types import TracebackType
from typing import Any

from kafka_proto.gateway import offer
from kafka_proto.gateway.client import Client, request_bytes
from kafka_proto.gateway.records import read_header, read_records, split
from support.commands.command_line import PATIENCE_S
from support.gateway.set_clock import SetClock
from support.gateway.wire import adding, fetched, initializing, owner_in, produced, transactional_batch

TRANSACTION = 1
"""The type of key that FindCoordinator has for a transactional id."""


class Scripted:
    """A producer with a connection to each broker. It writes to the topic `t` as librdkafka does."""

    def __init__(self, servers: str, tid: str = "app") -> None:
        self.tid = tid
        self._servers = [server.split(":") for server in servers.split(",")]
        self._open = ExitStack()
        self._clients = [self._open.enter_context(Client(host, int(port))) for host, port in self._servers]
        self.coordinator: int = self.ask(1, offer.FIND_COORDINATOR, 3, {"key": tid, "key_type": TRANSACTION})["node_id"]
        (topic,) = self.ask(1, offer.METADATA, 9, {"topics": ({"name": "t"},)})["topics"]
        self.leaders: list[int] = [row["leader_id"] for row in topic["partitions"]]
        """By partition."""
        self.owner: dict[str, int] = {}
        self.sequences = [0] * len(self.leaders)

    def __enter__(self) -> Scripted:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self._open.close()

    def ask(self, broker: int, api: int, version: int, message: dict[str, Any]) -> dict[str, Any]:
        """Ask a broker by its number."""
        return self._clients[broker - 1].ask(api, version, message)

    def init(self, timeout_ms: int = 60_000) -> int:
        """Get a producer id, and return the error code."""
        got = self.ask(self.coordinator, offer.INIT_PRODUCER_ID, 4, initializing(self.tid, timeout_ms))
        self.owner = owner_in(got)
        self.sequences = [0] * len(self.leaders)
        return int(got["error_code"])

    def add(self, partition: int) -> int:
        """Add a partition to the transaction, and return the error code."""
        got = self.ask(self.coordinator, offer.ADD_PARTITIONS_TO_TXN, 0, adding(self.tid, self.owner, partition))
        return int(got["results_by_topic_v3_and_below"][0]["results_by_partition"][0]["partition_error_code"])

    def produce(self, partition: int, value: bytes, version: int = 9) -> int:
        """Write a record, and return the error code."""
        data = transactional_batch(value, self.sequences[partition], self.owner)
        asked = produced((partition, data), tid=self.tid)
        got = self.ask(self.leaders[partition], offer.PRODUCE, version, asked)
        error = int(got["responses"][0]["partition_responses"][0]["error_code"])
        self.sequences[partition] += error == 0
        return error

    def write(self, partition: int, value: bytes) -> int:
        """Add a partition and write to it."""
        return self.add(partition) or self.produce(partition, value)

    def end(self, committed: bool, version: int = 1) -> int:
        """End the transaction, and return the error code."""
        got = self.ask(self.coordinator, offer.END_TXN, version, {
            "transactional_id": self.tid, "committed": committed, **self.owner})
        if version >= 5 and got["error_code"] == 0:
            self.owner = owner_in(got)
        return int(got["error_code"])

    def end_and_give_up(self, committed: bool) -> None:
        """Ask for the end on a connection of its own, and close that without reading an answer.

        The brokers are one thread whose connections take turns: after ten more answers it has read this request.
        """
        host, port = self._servers[self.coordinator - 1]
        with socket.create_connection((host, int(port))) as given_up:
            given_up.sendall(request_bytes(offer.END_TXN, 1, {
                "transactional_id": self.tid, "committed": committed, **self.owner}))
            for _ in range(10):
                self.state()

    def state(self) -> str:
        """Return the state that the coordinator has of the transaction."""
        (found,) = self.ask(self.coordinator, offer.DESCRIBE_TRANSACTIONS, 0, {
            "transactional_ids": (self.tid,)})["transaction_states"]
        return str(found["transaction_state"])

    def until(self, state: str, clock: SetClock | None = None) -> None:
        """Wait until the coordinator has a state of the transaction; a set clock goes on. Raises TimeoutError."""
        end = time.monotonic() + PATIENCE_S
        while self.state() != state:
            if time.monotonic() > end:
                raise TimeoutError(f"{self.tid} stays in {self.state()}")
            if clock is None:
                time.sleep(0.02)
            else:
                clock.pass_ms(100)

    def read(self, partition: int) -> list[bytes | None]:
        """Return the records that a reader of committed records gets: it leaves out what is aborted."""
        got = self.ask(self.leaders[partition], offer.FETCH, 12, fetched(0, level=1, partition=partition))
        found: list[bytes | None] = []
        fields = got["responses"][0]["partitions"][0]
        aborted = sorted((txn["first_offset"], txn["producer_id"]) for txn in fields["aborted_transactions"] or ())
        skipped: set[int] = set()
        for batch in split(fields["records"]):
            header = read_header(batch)
            while aborted and aborted[0][0] <= header.base_offset + header.last_offset_delta:
                skipped.add(aborted.pop(0)[1])
            if header.is_control:
                skipped.discard(header.producer_id)
            elif header.producer_id not in skipped:
                found += [record.value for record in read_records(batch, header)]
        return found
