"""Records of clusters of three brokers, played by frames of Kafka's protocol on a host without sockets.

Requests and responses are those of the wire; what a broker has on its disk, and what the controller knows, is looked at
in the host.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from kafka_proto.broker.versions import BrokerVersion
from kafka_proto.conformance.messages import TOPIC, MessageWriter
from kafka_proto.conformance.replicas import CONFIGURED, NO_ID, STARTED_MS, BrokersInProcess, marker
from kafka_proto.conformance.replicated import MOST_MS, STEP_MS, ReplicatedPlayer, Row
from kafka_proto.conformance.verbatim import api_key, batches
from kafka_proto.errors import NAMES
from kafka_proto.gateway.client import request_bytes
from kafka_proto.gateway.codec import SIZE
from kafka_proto.gateway.connection import read_response
from kafka_proto.gateway.host import Host
from kafka_proto.gateway.inputs import Arrived, Close, Ended, Injected, Input, Opened, Passed, Settings, Write
from kafka_proto.gateway.records import MARKER_VALUE, read_records, split
from kafka_proto.log import RecordBatch

CREATE_TOPICS_VERSION = 5


def play_by_frames(record: Mapping[str, Any], version: BrokerVersion) -> list[Row]:
    """Return the steps of a record as brokers of its release and level answer them."""
    return ReplicatedPlayer(BrokersByFrames(record, version)).play(record)


class WireMessages(MessageWriter):
    """Requests and responses of records of clusters as messages of the wire."""

    topic = TOPIC

    def read(self, api: str, found: Mapping[str, Any]) -> Any:
        """Return a response as a record has it."""
        match api:
            case "Produce":
                (row,) = found["responses"][0]["partition_responses"]
                return {"error": NAMES[row["error_code"]], "base_offset": row["base_offset"]}
            case "Fetch":
                (row,) = found["responses"][0]["partitions"]
                end, failed = row["diverging_epoch"], row["error_code"] != 0
                listed = row["aborted_transactions"]
                return {
                    "error": NAMES[row["error_code"]], "high_watermark": row["high_watermark"],
                    "last_stable_offset": row["last_stable_offset"], "log_start_offset": row["log_start_offset"],
                    "aborted_transactions": None if failed or listed is None else [
                        {"producer_id": self.symbols.producer_name(txn["producer_id"]),
                         "first_offset": txn["first_offset"]} for txn in listed],
                    "records": list(self._read_rows(row["records"])),
                    "diverging_epoch": None if end["epoch"] < 0 else end, "current_leader": None}
            case "ListOffsets" | "OffsetForLeaderEpoch":
                (row,) = found["topics"][0]["partitions"]
                return {"error": NAMES[row["error_code"]], **{
                    field: row[field] for field in ("timestamp", "offset", "leader_epoch", "end_offset")
                    if field in row}}
            case "AddPartitionsToTxn":
                rows = found["results_by_topic_v3_and_below"][0]["results_by_partition"]
                return {"errors": {str(row["partition_index"]): NAMES[row["partition_error_code"]] for row in rows}}
            case "DescribeProducers":
                (row,) = found["topics"][0]["partitions"]
                return [{**{field: p[field] for field in (
                    "producer_epoch", "last_sequence", "coordinator_epoch", "current_txn_start_offset")},
                    "producer_id": self.symbols.producer_name(p["producer_id"])} for p in row["active_producers"]]
            case "DescribeTransactions":
                (row,) = found["transaction_states"]
                failed = row["error_code"] != 0
                return {
                    "error": NAMES[row["error_code"]], "transaction_state": row["transaction_state"],
                    "producer_id": self.symbols.producer_name(NO_ID if failed else row["producer_id"]),
                    "producer_epoch": 0 if failed else row["producer_epoch"],
                    "topics": [{"topic": topic["topic"], "partitions": list(topic["partitions"])}
                               for topic in row["topics"]]}
        given = {field: found[field] for field in ("producer_epoch",) if field in found}
        if "producer_id" in found:
            given["producer_id"] = self.symbols.producer_name(found["producer_id"])
        return {"error": NAMES[found["error_code"]], **given}

    def _read_rows(self, data: bytes | None) -> Iterator[list[Any]]:
        first: int | None = None
        for batch, (header, texts) in zip(split(data or b""), batches(data), strict=True):
            kind = "txn" if header.is_transactional else "plain"
            if header.is_control:
                (record,) = read_records(batch, header)
                epoch = MARKER_VALUE.unpack(record.value or b"")[1]
                first = epoch if first is None else first
                kind, texts = f"{kind}+ctl", [marker(texts[0], epoch - first)]
            yield [header.base_offset, header.partition_leader_epoch, self.symbols.producer_name(header.producer_id),
                   header.producer_epoch, header.base_sequence, kind, texts]


class BrokersByFrames(BrokersInProcess, WireMessages):
    """A host with three brokers, a connection for each request."""

    def __init__(self, record: Mapping[str, Any], version: BrokerVersion) -> None:
        self.now_ms = STARTED_MS
        self._host = Host(Settings(
            record["broker_version"], record["transaction_version"], ports=(0,) * record["brokers"],
            min_insync_replicas=CONFIGURED.min_insync_replicas, session_timeout_ms=CONFIGURED.session_timeout_ms,
            replica_lag_time_max_ms=CONFIGURED.replica_lag_time_max_ms, auto_leader_rebalance_enable=False,
        ), {}, self.now_ms, version)
        self._connections = self._begun = 0
        self._faults: dict[str, int] = {}
        """By broker: the number of the fault that it has."""
        self._written: dict[int, bytes] = {}
        self._closed: dict[int, str] = {}
        super().__init__(record, self._host.cluster)

    def create(self, config: Mapping[str, str]) -> None:
        ids = tuple(int(b[1:]) for b in self.replicas)
        self._wait("b1", "CreateTopics", CREATE_TOPICS_VERSION, {"timeout": 10_000, "validate_only": False, "topics": ({
            "name": TOPIC, "num_partitions": -1, "replication_factor": -1,
            "assignments": ({"partition_index": 0, "broker_ids": ids},),
            "configs": tuple({"name": name, "value": value} for name, value in config.items())},)})

    def do(self, verb: str, broker: str) -> None:
        if verb == "start":
            self.pass_ms(self.starts_ms)
        if broker in self._faults:
            self._take(Ended(self._faults.pop(broker), self.now_ms))
        else:
            self._begun += 1
            self._faults[broker] = self._begun
            self._take(Injected(self._begun, verb, self.now_ms, broker=int(broker[1:])))

    def pass_ms(self, milliseconds: int) -> None:
        until = self.now_ms + milliseconds
        while (due := self._host.deadline) is not None and due < until:
            self.now_ms = max(due, self.now_ms + 1)
            self._take(Passed(self.now_ms))
        self.now_ms = until
        self._take(Passed(until))

    def send(
        self, to: str, api: str, version: int, fields: Mapping[str, Any], shown: tuple[str, ...] = ()
    ) -> Callable[[], Any]:
        connection = self._sent(to, api, version, self.message(api, version, fields))
        return lambda: self.read(api, self._answered(connection, api, version))

    def _take(self, given: Input) -> None:
        for output in self._host.take(given):
            if isinstance(output, Write):
                self._written[output.connection] = self._written.get(output.connection, b"") + output.data
            elif isinstance(output, Close):
                self._closed[output.connection] = output.reason

    def _sent(self, to: str, api: str, version: int, message: Mapping[str, Any]) -> int:
        self._connections += 1
        self._take(Opened(self._connections, self.now_ms, int(to[1:])))
        self._take(Arrived(self._connections, request_bytes(api_key(api, version), version, message), self.now_ms))
        return self._connections

    def _answered(self, connection: int, api: str, version: int) -> dict[str, Any]:
        """Return the response on a connection; time passes until it comes. Raises ConnectionError without one."""
        for _ in range(0, MOST_MS, STEP_MS):
            if connection in self._written:
                return read_response(self._written.pop(connection)[SIZE:], api_key(api, version), version)[1]
            if connection in self._closed:
                break
            self.pass_ms(STEP_MS)
        raise ConnectionError(f"no answer to {api}: {self._closed.get(connection, 'it waits')}")

    def _wait(self, to: str, api: str, version: int, message: Mapping[str, Any]) -> dict[str, Any]:
        return self._answered(self._sent(to, api, version, message), api, version)

    def values(self, batch: RecordBatch) -> list[str]:
        if batch.marker is not None:
            return []
        ((_, texts),) = batches(batch.records[0].data)
        return texts
