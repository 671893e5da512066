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
from kafka_proto.conformance.messages import TOPIC, Fields, MessageWriter
from kafka_proto.conformance.player import ClusterMarkers, HeldMarkers, Player, Wait
from kafka_proto.conformance.verbatim import Verbatim, api_key, batches
from kafka_proto.errors import NAMES
from kafka_proto.gateway.client import request_bytes
from kafka_proto.gateway.codec import SIZE
from kafka_proto.gateway.connection import is_unanswered, read_response
from kafka_proto.gateway.host import Host
from kafka_proto.gateway.inputs import Arrived, Close, Opened, Output, Passed, Settings, Write
from kafka_proto.gateway.offer import LIST_OFFSETS
from kafka_proto.requests import partition_name

Ask = Callable[[int, int, Mapping[str, Any]], dict[str, Any]]
"""Sends a request, by API and version, and returns the response."""
PAUSE_MS = 50
MOST_PAUSES = 600
"""While something has to happen at the broker by itself, such as a time-out."""
TIDS = "tid-"
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


class Situation(Player, MessageWriter):
    """Plays a record over the wire; `name` is in all names, so that no other situation has them."""

    def __init__(self, ask: Ask, wait: Wait, name: str, now_ms: int = 0, markers: HeldMarkers | None = None) -> None:
        super().__init__(wait, wait, markers)
        self._ask = ask
        self.now_ms = now_ms
        """The time stamp of records: a real broker begins a segment at a marker that is far from it."""
        self._prefix = f"{name}."
        self.topic = self._prefix + TOPIC
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
        message = self.message(api, version, fields)
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
