"""Records of clusters of three brokers, played on brokers in process whose logs are replicated."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import count
from typing import Any

import attrs

from kafka_proto.broker.failover import PartitionRules
from kafka_proto.broker.leader.epochs import epochs_of
from kafka_proto.broker.versions import BrokerVersion
from kafka_proto.cluster.failures import Replication
from kafka_proto.cluster.running import RunningCluster
from kafka_proto.conformance.player import SHOWN, Symbols
from kafka_proto.conformance.replicated import MOST_MS, STEP_MS, ReplicatedPlayer, Row
from kafka_proto.conformance.requests import TOPIC, field_of, name, request_of
from kafka_proto.log import RecordBatch
from kafka_proto.requests import (
    OFFSETS_PARTITION,
    ConsumerFetchRequest,
    ConsumerFetchResponse,
    DescribeProducersResponse,
    DescribeTransactionsResponse,
    Error,
    ListOffsetsResponse,
    OffsetForLeaderEpochResponse,
    partition_index,
    topic_of,
)

CLIENT = "c1"
CONFIGURED = Replication(
    3, min_insync_replicas=2, session_timeout_ms=3_000, replica_lag_time_max_ms=3_750,
    auto_leader_rebalance_enable=False,
)
"""As the recorded clusters were set up; each half of `replica.lag.time.max.ms` the ISR is looked at."""
STARTED_MS = 3_000
"""When the cluster has started: high watermarks are written to disk each 5 s."""
NO_ID = 0
"""What a description of a transaction has in place of a producer id and an epoch, where it is an error."""
P = name(0)
TIDS = "tid-"
"""What a record's transactional ids begin with; its groups do not."""


def play_replicated(record: Mapping[str, Any], version: BrokerVersion) -> list[Row]:
    """Return the steps of a record as our brokers answer them. Raises ValueError for a note that means nothing here."""
    cluster = RunningCluster(version, (), record["brokers"], now=STARTED_MS, replication=CONFIGURED)
    return ReplicatedPlayer(BrokersInProcess(record, cluster)).play(record)


class BrokersInProcess:
    """Brokers with one partition of `T`, in virtual time."""

    starts_ms = 4_000
    """How long a broker takes to start: others notice meanwhile that it is gone."""

    def __init__(self, record: Mapping[str, Any], cluster: RunningCluster) -> None:
        self.cluster = cluster
        self.names = self.cluster.brokers
        self.replicas = tuple(record["replicas"])
        self.symbols = Symbols()
        self._tids: dict[str, str] = {}
        self.create(record["topic_config"])

    def create(self, config: Mapping[str, str]) -> None:
        """Make the topic."""
        self.cluster.create_topic(TOPIC, 1, {0: self.replicas}, rules=PartitionRules(
            int(config.get("min.insync.replicas", CONFIGURED.min_insync_replicas)),
            config.get("unclean.leader.election.enable") == "true"))

    def do(self, verb: str, broker: str) -> None:
        if verb == "start":
            self.pass_ms(self.starts_ms)
        if verb in ("pause", "go_on"):
            self.cluster.pause(self.cluster.paused ^ {broker})
        else:
            getattr(self.cluster, verb)(broker)

    def send(
        self, to: str, api: str, version: int, fields: Mapping[str, Any], shown: tuple[str, ...] = ()
    ) -> Callable[[], Row]:
        given = {"timeout_ms" if field == "timeout" else field: value for field, value in fields.items()}
        tid = given.pop("transactional_id", None)
        if api == "DescribeTransactions":
            given["transactional_ids"] = [self.named(tid)]
        elif "transactional_id" in fields:
            given["transactional_id"] = self.named(tid)
        if api == "DescribeProducers":
            (given["partition"],) = given.pop("partitions")
        request = request_of(api, version, given, self.symbols)
        number = self.cluster.send(request, to, CLIENT)

        def response() -> Any:
            for _ in range(0, MOST_MS, STEP_MS):
                if number in self.cluster.answers:
                    return self._shown(api, version, to, self.cluster.answers.pop(number), shown)
                self.pass_ms(STEP_MS)
            raise TypeError(f"{to} does not answer {api}")

        return response

    def pass_ms(self, milliseconds: int) -> None:
        self.cluster.pass_time(self.cluster.now + milliseconds)

    def coordinator(self, name: str) -> str:
        return self.cluster.told(self._log_of(self.named(name) or "")).leader or ""

    def is_coordinated_by(self, name: str, broker: str) -> None:
        if not name.startswith(TIDS):
            while self.coordinator(name) != broker:
                self.cluster.elect(self._log_of(name))
        names = (f"{name}.{n}" for n in count())
        self._tids[name] = next(each for each in names if self.coordinator(each) == broker)

    def _log_of(self, name: str) -> str:
        """Return the partition that has the entries of a transactional id, or a group."""
        return self.cluster.placement.transaction_partition(name) if name.startswith(TIDS) else OFFSETS_PARTITION

    def named(self, transactional_id: str | None) -> str | None:
        """Return the transactional id that a record means."""
        return None if transactional_id is None else self._tids.get(transactional_id, transactional_id)

    def settle(self) -> None:
        """All that was sent has arrived."""

    def partition(self) -> Row:
        told = self.cluster.told(P)
        return {
            "leader": told.leader, "leader_epoch": told.leader_epoch, "isr": list(self.cluster.in_sync(P)),
            "offline": [b for b in self.replicas if b in self.cluster.fenced],
            "error": "NONE" if told.leader else "LEADER_NOT_AVAILABLE", "elr": list(self.cluster.eligible(P)),
            "last_known_elr": [told.last_known] if told.last_known else [],
        }

    def replica(self, broker: str) -> Row:
        log, local = self.cluster.log_on(P, broker), self.cluster.state(broker)
        epochs = epochs_of(local, P, broker, log)
        seen: Row = {
            "log": list(self._rows(log.batches, epochs.at)), "log_end_offset": log.log_end_offset,
            "leader_epochs": [list(start) for start in epochs.starts],
        }
        if broker not in self.cluster.down | self.cluster.paused:
            number = self.cluster.send(ConsumerFetchRequest(12, P, 0, min_bytes=0), broker, CLIENT)
            found = self.cluster.answers.pop(number)
            seen["fetch"] = {"error": found.error.value, "high_watermark": found.high_watermark,
                             "last_stable_offset": found.last_stable_offset}
        return seen

    def _rows(self, batches: Iterable[RecordBatch], epoch_at: Callable[[int], int]) -> Iterator[list[Any]]:
        """Yield batches as a record has them; coordinator epochs of markers count from that of the first, `e`."""
        first: int | None = None
        for batch in batches:
            values, kind = self.values(batch), "txn" if batch.is_transactional else "plain"
            if batch.marker is not None:
                first = batch.coordinator_epoch if first is None else first
                kind, values = f"{kind}+ctl", [marker(batch.marker, batch.coordinator_epoch - first)]
            yield [batch.base_offset, epoch_at(batch.base_offset), self.symbols.producer_name(batch.producer_id),
                   batch.producer_epoch, batch.base_sequence, kind, values]

    def values(self, batch: RecordBatch) -> list[str]:
        """Return the records of a batch as text."""
        return [str(record) for record in batch.records]

    def _shown(self, api: str, version: int, to: str, found: Any, fields: tuple[str, ...] = ()) -> Any:
        """Return a response as a record has it."""
        match found:
            case ConsumerFetchResponse():
                epochs = epochs_of(self.cluster.state(to), P, to, self.cluster.log_on(P, to))
                end = found.diverging_epoch
                return {
                    "error": found.error.value, "high_watermark": found.high_watermark,
                    "last_stable_offset": found.last_stable_offset, "log_start_offset": found.log_start_offset,
                    "aborted_transactions": field_of(found, self.symbols, "aborted_transactions"),
                    "records": list(self._rows(found.batches, epochs.at)),
                    "diverging_epoch": None if end is None else {
                        "epoch": end.leader_epoch, "end_offset": end.end_offset},
                    "current_leader": None,
                }
            case DescribeProducersResponse():
                return found.error.value if found.error is not Error.NONE else [
                    {"producer_id": self.symbols.producer_name(producer), "producer_epoch": state.producer_epoch,
                     "last_sequence": state.last_sequence, "coordinator_epoch": state.coordinator_epoch,
                     "current_txn_start_offset": -1 if state.open_from is None else state.open_from}
                    for producer, state in sorted(found.producers.items())]
            case DescribeTransactionsResponse():
                known = found.error is Error.NONE
                topics: dict[str, list[int]] = {}
                for p in found.partitions:
                    topics.setdefault(topic_of(p), []).append(partition_index(p))
                return {
                    "error": found.error.value, "transaction_state": found.state,
                    "producer_id": self.symbols.producer_name(found.producer_id if known else NO_ID),
                    "producer_epoch": found.producer_epoch if known else 0,
                    "topics": [{"topic": topic, "partitions": indexes} for topic, indexes in topics.items()],
                }
            case ListOffsetsResponse() | OffsetForLeaderEpochResponse():
                return {field: -1 if value is None else value for field, value in attrs.asdict(found).items()} | {
                    "error": found.error.value}
        shown = {"Produce": ("error", "base_offset"), "AddPartitionsToTxn": ("errors",)}.get(api)
        if shown is None:
            shown = ("error",) if api == "EndTxn" and version < 5 else fields or SHOWN[api]
        return {field: field_of(found, self.symbols, field) for field in shown}


def marker(kind: str, since: int) -> str:
    """Return a marker as a record has it, whose coordinator epoch is so much above that of the first one there."""
    return f"{kind}(cE=e{f'+{since}' if since else ''})"
