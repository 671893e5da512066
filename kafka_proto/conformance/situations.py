"""Recorded situations played over the wire: each step as a request of its version, and what it leaves behind asked for.

The receiver is a broker like any other. A situation has a topic, transactional ids and a group of its own, so one
broker plays them all. Situations that need a marker to be held between brokers are left out where that is impossible,
and those that take tens of thousands of requests unless asked for. `play_here` asks brokers in this process by frames,
without sockets and without a clock.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from kafka_proto.broker.versions import BrokerVersion
from kafka_proto.conformance.odd_batches import batch_of
from kafka_proto.conformance.player import LEVELS, ClusterMarkers, HeldMarkers, Player, Wait
from kafka_proto.conformance.verbatim import Verbatim, api_key, batches
from kafka_proto.errors import NAMES
from kafka_proto.gateway.client import request_bytes
from kafka_proto.gateway.codec import SIZE
from kafka_proto.gateway.connection import is_unanswered, read_response
from kafka_proto.gateway.host import Arrived, Close, Host, Opened, Passed, Write
from kafka_proto.gateway.inputs import Output, Settings
from kafka_proto.gateway.offer import LIST_OFFSETS
from kafka_proto.requests import partition_name

Ask = Callable[[int, int, Mapping[str, Any]], dict[str, Any]]
"""Sends a request, by API and version, and returns the response."""
PAUSE_MS = 50
MOST_PAUSES = 600
"""While something has to happen at the broker by itself, such as a time-out."""
Fields = Mapping[str, Any]
TOPIC = "T"
TIDS = "tid-"
MOST = 2**20
LATEST = -1
NESTED = (
    "responses", "partition_responses", "results_by_transaction", "topic_results", "results_by_topic_v3_and_below",
    "results_by_partition", "markers", "topics", "partitions",
)
"""Where the rows of a response are that are about one topic or partition."""
NAMED = {"generation": "generation_id", "state": "transaction_state"}
"""Fields of a record that are called otherwise on the wire."""
OF_THE_WHOLE = ("AddPartitionsToTxn", "OffsetFetch")
"""Whose response has a code besides those of its rows."""


class Situation(Player):
    """Plays a record over the wire; `name` is in all names, so that no other situation has them."""

    def __init__(self, ask: Ask, wait: Wait, name: str, now_ms: int = 0, markers: HeldMarkers | None = None) -> None:
        super().__init__(wait, wait, markers)
        self._ask = ask
        self.now_ms = now_ms
        """The time stamp of records: a real broker begins a segment at a marker that is far from it."""
        self._prefix = f"{name}."
        self._verbatim = Verbatim(self._prefix, now_ms, self.symbols)

    def play(self, record: Mapping[str, Any]) -> list[dict[str, Any]]:
        self.create_topic(2)
        return super().play(record)

    def answer(
        self, api: str, version: int, fields: Any = None, shown: tuple[str, ...] = (), message: Any = None
    ) -> dict[str, Any]:
        if message is None:
            return super().answer(api, version, fields, shown)
        return self._verbatim.shown(self._ask(api_key(api, version), version, self._verbatim.written(message)))

    def ask(self, api: str, version: int, fields: Fields) -> Callable[[str], Any]:
        message = MESSAGES[api](self, version, fields)
        found = self._ask(api_key(api, version), version, message)
        if api == "CreateTopics":
            while any(self._errors(fields["partitions"])) and self.wait():
                pass
        elif api == "DeleteTopics":
            while not all(self._errors(1)) and self.wait():
                pass
        return partial(self._field, api, found)

    def pass_ms(self, milliseconds: int) -> None:
        for _ in range(0, milliseconds, PAUSE_MS):
            self.wait()

    def repeat(self, epoch: int) -> None:
        fields = {"transactional_id": TIDS + "A", "transaction_timeout": 60_000}
        while (found := self.answer("InitProducerId", 1, fields)["producer_epoch"]) < epoch and (
                found >= 0 or self.wait()):  # an error has no epoch, and is not asked about for ever
            pass

    def create_topic(self, partitions: int) -> None:
        """Make the topic, and wait until it has leaders."""
        self.answer("CreateTopics", 4, {"partitions": partitions})

    def _errors(self, partitions: int) -> list[int]:
        """Return what is said of the topic's partitions: none has an error once it has a leader."""
        wanted = [{"partition_index": index, "timestamp": LATEST, "current_leader_epoch": -1}
                  for index in range(partitions)]
        found = self._ask(LIST_OFFSETS, 5, {"replica_id": -1, "topics": self.topics("partitions", *wanted)})
        return [row["error_code"] for row in innermost(found)]

    def named(self, name: str | None) -> str | None:
        """Return a name of the record as it is here; none and the empty one are themselves."""
        return self._prefix + name if name else name

    def owner(self, f: Fields) -> dict[str, Any]:
        return {"transactional_id": self.named(f.get("transactional_id")),
                "producer_id": self.symbols.producer_id(f.get("producer_id", -1)),
                "producer_epoch": f.get("producer_epoch", -1)}

    def member(self, f: Fields) -> dict[str, Any]:
        return {"group_id": self.named(f["group_id"]), "member_id": self.symbols.member_id(f.get("member_id", "")),
                "group_instance_id": f.get("group_instance_id")}

    def topics(
        self, inner: str, *partitions: Any, name: str = "name", topic: str | None = None
    ) -> tuple[dict[str, Any], ...]:
        """Return partitions of the situation's topic, or of one whose name it does not choose."""
        return ({name: topic or self._prefix + TOPIC, inner: partitions},)

    def _field(self, api: str, found: Fields, field: str) -> Any:
        """Return a field of a response as a record has it."""
        rows = found["transaction_states"] if api == "DescribeTransactions" else innermost(found)
        row = rows[0]
        match field:
            case "error":
                return NAMES[(found if api in OF_THE_WHOLE else row)["error_code"]]
            case "partition_error":
                return NAMES[row["error_code"]]
            case "errors":
                return {str(row["partition_index"]): NAMES[row.get("partition_error_code", row.get("error_code"))]
                        for row in rows if "partition_index" in row}
            case "producer_id":
                return self.symbols.producer_name(row["producer_id"])
            case "member_id":
                return self.symbols.member_name(row["member_id"])
            case "partitions" if api == "Produce":
                return [[row["index"], {"error": NAMES[row["error_code"]], "base_offset": row["base_offset"]}]
                        for row in sorted(rows, key=lambda row: int(row["index"]))]
            case "partitions":
                return sorted(partition_name(topic["topic"].removeprefix(self._prefix), index)
                              for topic in row["topics"] for index in topic["partitions"])
            case "aborted_transactions" if row[field] is not None:
                return [{"producer_id": self.symbols.producer_name(txn["producer_id"]),
                         "first_offset": txn["first_offset"]} for txn in row[field]]
            case "batches":
                return [[header.base_offset, self.symbols.producer_name(header.producer_id), header.producer_epoch,
                         header.base_sequence, ("txn" if header.is_transactional else "plain")
                         + ("+ctl" if header.is_control else ""), texts]
                        for header, texts in batches(row["records"])]
            case "unknown_state_filters":
                return list(row[field])
            case "mine":
                mine = ((row["transactional_id"], row["transaction_state"]) for row in found["transaction_states"])
                return sorted([tid.removeprefix(self._prefix + TIDS), state] for tid, state in mine
                              if tid.startswith(self._prefix))
            case "producers":
                return [[self.symbols.producer_name(p["producer_id"]), p["producer_epoch"], p["last_sequence"],
                         p["current_txn_start_offset"]]
                        for p in sorted(row["active_producers"], key=lambda p: int(p["producer_id"]))]
        return row[NAMED.get(field, field)]


def innermost(message: Fields) -> list[Fields]:
    """Return the rows of a response, or itself if it has none."""
    inner = [row for key in NESTED for part in message.get(key) or () if isinstance(part, Mapping)
             for row in innermost(part)]
    return inner or [message]


def _add(s: Situation, version: int, f: Fields) -> dict[str, Any]:
    one = {**s.owner(f), "topics": s.topics("partitions", *f["partitions"], topic=f.get("topic"))}
    if version < 4:
        return {f"v3_and_below_{key}": value for key, value in one.items()}
    return {"transactions": ({**one, "verify_only": f.get("verify_only", False)},)}


def _produce(s: Situation, version: int, f: Fields) -> dict[str, Any]:
    """Produce a batch; with `also` more of them, each for the partition that it names."""
    rows = ({**f, "bytes": {}, **row} for row in (f, *f.get("also", ())))
    wanted = tuple({"index": row["partition"], "records": batch_of(row, s.owner(row), s.now_ms)} for row in rows)
    return {"transactional_id": s.named(f.get("transactional_id")), "acks": f.get("acks", -1), "timeout": 10_000,
            "topic_data": s.topics("partition_data", *wanted, topic=f.get("topic"))}


def _offset(s: Situation, f: Fields) -> dict[str, Any]:
    return {**s.member(f), "topics": s.topics("partitions", {
        "partition_index": f["partition"], "committed_offset": f["offset"], "committed_metadata": ""})}


def _fetch(s: Situation, version: int, f: Fields) -> dict[str, Any]:
    wanted = {"partition": f["partition"], "fetch_offset": f["fetch_offset"], "partition_max_bytes": MOST}
    return {"max_wait": 0, "min_bytes": 0, "max_bytes": MOST, "isolation_level": LEVELS.index(f["isolation_level"]),
            "session_epoch": -1, "topics": s.topics("partitions", wanted, name="topic")}


def _list_offsets(s: Situation, version: int, f: Fields) -> dict[str, Any]:
    wanted = {"partition_index": f["partition"], "timestamp": f["timestamp"], "current_leader_epoch": -1}
    return {"replica_id": -1, "isolation_level": LEVELS.index(f["isolation_level"]),
            "topics": s.topics("partitions", wanted)}


def _write_markers(s: Situation, version: int, f: Fields) -> dict[str, Any]:
    return {"markers": ({
        **s.owner(f), "coordinator_epoch": f["coordinator_epoch"], "transaction_result": f["committed"],
        "transaction_version": f.get("transaction_version", 0),
        "topics": s.topics("partition_indexes", *f["partitions"])},)}


def _list(s: Situation, version: int, f: Fields) -> dict[str, Any]:
    return {"state_filters": tuple(f["state_filters"]), "duration_filter": f.get("duration_filter", -1),
            "producer_id_filters": tuple(map(s.symbols.producer_id, f["producer_id_filters"]))}


MESSAGES: dict[str, Callable[[Situation, int, Fields], dict[str, Any]]] = {
    "InitProducerId": lambda s, v, f: {**s.owner(f), "transaction_timeout": f["transaction_timeout"]},
    "AddPartitionsToTxn": _add,
    "AddOffsetsToTxn": lambda s, v, f: {**s.owner(f), "group_id": s.named(f["group_id"])},
    "EndTxn": lambda s, v, f: {**s.owner(f), "committed": f["committed"]},
    "Produce": _produce, "WriteTxnMarkers": _write_markers, "Fetch": _fetch, "ListOffsets": _list_offsets,
    "DeleteRecords": lambda s, v, f: {"timeout": 10_000, "topics": s.topics(
        "partitions", {"partition_index": f["partition"], "offset": f["offset"]})},
    "DescribeProducers": lambda s, v, f: {"topics": s.topics("partition_indexes", f["partition"])},
    "TxnOffsetCommit": lambda s, v, f: {**s.owner(f), **_offset(s, f), "generation_id": f.get("generation_id", -1)},
    "OffsetCommit": lambda s, v, f: {**_offset(s, f), "generation_id_or_member_epoch": f.get("generation", -1)},
    "OffsetFetch": lambda s, v, f: {
        "group_id": s.named(f["group_id"]), "require_stable": f.get("require_stable", False),
        "topics": s.topics("partition_indexes", f["partition"])},
    "JoinGroup": lambda s, v, f: {
        **s.member(f), "session_timeout": 30_000, "rebalance_timeout": 30_000, "protocol_type": "consumer",
        "protocols": ({"name": "range", "metadata": b""},)},
    "SyncGroup": lambda s, v, f: {**s.member(f), "generation_id": f["generation"], "assignments": (
        {"member_id": s.member(f)["member_id"], "assignment": b""},)},
    "LeaveGroup": lambda s, v, f: s.member(f),
    "DescribeTransactions": lambda s, v, f: {"transactional_ids": tuple(map(s.named, f["transactional_ids"]))},
    "ListTransactions": _list,
    "CreateTopics": lambda s, v, f: {"timeout": 10_000, "topics": ({
        "name": s.named(TOPIC), "num_partitions": f["partitions"], "replication_factor": 1, "assignments": (),
        "configs": ()},)},
    "DeleteTopics": lambda s, v, f: {"topic_names": (s.named(TOPIC),), "timeout": 10_000},
}


FIRST_MS = 1_000_000
"""When a broker begins that no clock counts for."""


def play_here(record: dict[str, Any], version: BrokerVersion) -> list[dict[str, Any]]:
    """Return the steps of a record as brokers of its release and level answer them, asked by frames in process.

    They decide as a version does. Nothing waits for a clock.
    """
    host = Host(Settings(record["broker_version"], record["transaction_version"]), {}, FIRST_MS, version)
    frames = Frames(host)
    return Situation(frames.ask, frames.wait, "run1-0", FIRST_MS, ClusterMarkers(host.cluster)).play(record)


class Frames:
    """A client of a host without sockets, with a time of its own."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._now = FIRST_MS
        self._pauses = MOST_PAUSES
        self._connection = -1
        self._is_open = False

    def ask(self, api: int, version: int, message: Mapping[str, Any]) -> dict[str, Any]:
        """Send a request, and return its response; time passes until it comes.

        Raises ConnectionError if the connection is closed instead.
        """
        if not self._is_open:
            self._connection, self._is_open = self._connection + 1, True
            self._host.take(Opened(self._connection, self._now))
        outputs = self._host.take(Arrived(self._connection, request_bytes(api, version, message), self._now))
        while not outputs and not is_unanswered(api, message) and self._host.deadline is not None:
            outputs = self._pass(self._host.deadline)
        written = b"".join(output.data for output in outputs if isinstance(output, Write))
        for output in outputs:
            if isinstance(output, Close):
                self._is_open = False
                raise ConnectionError(f"the broker closed the connection: {output.reason}")
        return {} if is_unanswered(api, message) else read_response(written[SIZE:], api, version)[1]

    def wait(self) -> bool:
        """Let a little time pass, so many times."""
        self._pass(self._now + PAUSE_MS)
        self._pauses -= 1
        return self._pauses > 0

    def _pass(self, until: int) -> list[Output]:
        self._now = until
        return self._host.take(Passed(until))
