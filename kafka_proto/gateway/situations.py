"""Recorded situations played over the wire: each step as a request of its version, and what it leaves behind asked for.

Whoever answers is a broker like any other. A situation has a topic, transactional ids and a group of its own, so one
broker plays them all. What needs a marker to be held between brokers is left out where nobody holds it, and what takes
tens of thousands of requests where it is not asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kafka_proto.conformance.notes import DELIVERED, HELD, NO_MARKER, PASSED, REPEATED, awaited, with_holds
from kafka_proto.conformance.symbols import Symbols
from kafka_proto.errors import BY_NAME, NAMES
from kafka_proto.gateway import offer
from kafka_proto.gateway.fetch_reader import batches, shown, text
from kafka_proto.gateway.held_markers import HeldMarkers
from kafka_proto.gateway.odd_batches import batch_of
from kafka_proto.gateway.records import BatchHeader, WireRecord
from kafka_proto.gateway.verbatim import Verbatim, api_key
from kafka_proto.requests import partition_name

Ask = Callable[[int, int, Mapping[str, Any]], dict[str, Any]]
"""Sends a request, by API and version, and returns the response."""
PAUSE_MS = 50
MOST_PAUSES = 600
"""While something has to happen at the broker by itself, such as a time-out."""
Wait = Callable[[], bool]
"""Lets so much time pass; False where it was long enough."""
Fields = Mapping[str, Any]
TOPIC, GROUP = "T", "G"
TIDS = "tid-"
LEVELS = ("read_uncommitted", "read_committed")
EARLIEST = -2
"""The time stamp by which ListOffsets gives where a log begins."""
PREPARED = ("PrepareCommit", "PrepareAbort")
MEMBER_ID_REQUIRED = BY_NAME["MEMBER_ID_REQUIRED"].number
MOST = 2**20


class Situation:
    """A record that is played; `name` is in all names, so that no other situation has them."""

    def __init__(
        self, ask: Ask, wait: Wait, name: str, now_ms: int = 0, markers: HeldMarkers | None = None
    ) -> None:
        self._ask = ask
        self._wait = wait
        self._markers = markers
        self._holds = False
        self.now_ms = now_ms
        """The time stamp of records: a real broker begins a segment at a marker that is far from it."""
        self._prefix = f"{name}."
        self.symbols = Symbols()
        self._verbatim = Verbatim(self._prefix, now_ms, self.symbols)

    def play(self, record: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return the steps as they were answered. Raises KeyError for a request that is not known here."""
        self.create_topic(2)
        played = []
        for step, holds in with_holds(record["steps"]):
            ours = dict(step)
            if holds and self._markers is not None:
                self._markers.hold()
                self._holds = True
            if "request" in step:
                ours["response"] = self._answer(**step["request"])
            else:
                ours |= self._happened(step["note"])
            if "after" in step:
                ours["after"] = self._after(step["after"])
            if step.get("note") == DELIVERED and self._markers is not None:  # all are, now that nobody waits for one
                ours["marker_version"], ours["marker_answer"] = self._markers.answered()
            played.append(ours)
        if self._holds and self._markers is not None:
            self._deliver()
            self._markers.answered()  # nothing of this situation comes in the next one
        return played

    def _answer(self, api: str, version: int, fields: Fields | None = None, message: Any = None) -> dict[str, Any]:
        """Send a request of the record, and return what came back as a record has it."""
        if fields is not None:
            return REQUESTS[api](self, version, fields)
        return self._verbatim.shown(self._ask(api_key(api, version), version, self._verbatim.written(message)))

    def _happened(self, note: str) -> dict[str, Any]:
        """Do what a note says, and return what is seen of it."""
        if states := awaited(note):
            self._until(states, TIDS + "A")
        elif passed := PASSED.fullmatch(note):
            for _ in range(0, int(passed[1]), PAUSE_MS):
                self._wait()
        elif repeated := REPEATED.fullmatch(note):
            fields = {"transactional_id": TIDS + "A", "transaction_timeout": 60_000}
            while (epoch := _init(self, 1, fields)["producer_epoch"]) < int(repeated[1]) and (
                    epoch >= 0 or self._wait()):  # an error has no epoch, and is not asked about for ever
                pass
        elif note in (HELD, NO_MARKER) and self._markers is not None:
            return {"note": HELD if self._markers.is_holding() else NO_MARKER}
        elif note == DELIVERED:
            self._deliver()
        return {}

    def _deliver(self) -> None:
        self._holds = False
        if self._markers is not None:
            self._markers.deliver()

    def create_topic(self, partitions: int, version: int = 4) -> int:
        """Make the topic, and wait until it has leaders; return the error code."""
        answer = self._ask(offer.CREATE_TOPICS, version, {"timeout": 10_000, "topics": ({
            "name": self._prefix + TOPIC, "num_partitions": partitions, "replication_factor": 1, "assignments": (),
            "configs": ()},)})
        while any(self._errors(partitions)) and self._wait():
            pass
        return int(answer["topics"][0]["error_code"])

    def delete_topic(self, version: int) -> int:
        """Delete the topic, and wait until nobody leads it; return the error code."""
        answer = self._ask(offer.DELETE_TOPICS, version, {"topic_names": (self._prefix + TOPIC,), "timeout": 10_000})
        while not all(self._errors(1)) and self._wait():
            pass
        return int(answer["responses"][0]["error_code"])

    def _errors(self, partitions: int) -> list[int]:
        """Return what is said of the topic's partitions: none has an error once it has a leader."""
        wanted = [{"partition_index": index, "timestamp": -1, "current_leader_epoch": -1}
                  for index in range(partitions)]
        found = self.ask(offer.LIST_OFFSETS, 5, {"replica_id": -1, "topics": self.topics("partitions", *wanted)})
        return [row["error_code"] for topic in found["topics"] for row in topic["partitions"]]

    def _until(self, states: list[str], tid: str) -> None:
        while self.describe(tid).get("state") not in states and self._wait():
            pass

    def ask(self, api: int, version: int, message: Fields) -> dict[str, Any]:
        return self._ask(api, version, message)

    def named(self, name: str | None) -> str | None:
        """Return a name of the record as it is here; none and the empty one are themselves."""
        return self._prefix + name if name else name

    def owner(self, f: Fields) -> dict[str, Any]:
        return {"transactional_id": self.named(f.get("transactional_id")),
                "producer_id": self.symbols.producer_id(f.get("producer_id", -1)),
                "producer_epoch": f.get("producer_epoch", -1)}

    def topics(
        self, inner: str, *partitions: Any, name: str = "name", topic: str | None = None
    ) -> tuple[dict[str, Any], ...]:
        """Return partitions of the situation's topic, or of one whose name it does not choose."""
        return ({name: topic or self._prefix + TOPIC, inner: partitions},)

    def describe(self, tid: str) -> dict[str, Any]:
        (found,) = self.ask(offer.DESCRIBE_TRANSACTIONS, 0, {"transactional_ids": (self.named(tid),)})[
            "transaction_states"]
        if found["error_code"]:
            return {"error": NAMES[found["error_code"]]}
        partitions = [partition_name(topic["topic"].removeprefix(self._prefix), index)
                      for topic in found["topics"] for index in topic["partitions"]]
        return {"state": found["transaction_state"], "producer_id": self.symbols.producer_name(found["producer_id"]),
                "producer_epoch": found["producer_epoch"], "partitions": sorted(partitions)}

    def mine(self, tid: str) -> bool:
        return tid.startswith(self._prefix)

    def short(self, tid: str) -> str:
        return tid.removeprefix(self._prefix + TIDS)

    def _after(self, recorded: Mapping[str, Any]) -> dict[str, Any]:
        seen = dict(recorded)
        if "coordinator" in recorded:
            seen["coordinator"] = {tid: self._settled(tid) for tid in recorded["coordinator"]}
        if "partitions" in recorded:
            seen["partitions"] = {index: self._partition(int(index)) for index in recorded["partitions"]}
        return seen

    def _settled(self, tid: str) -> Any:
        while (found := self.describe(tid)).get("state") in PREPARED and not self._holds and self._wait():
            pass
        return found.get("error", found)

    def fetch(self, index: int, offset: int, level: str) -> dict[str, Any]:
        wanted = {"partition": index, "fetch_offset": offset, "partition_max_bytes": MOST}
        response = self.ask(offer.FETCH, 12, {
            "max_wait": 0, "min_bytes": 0, "max_bytes": MOST, "isolation_level": LEVELS.index(level),
            "session_epoch": -1, "topics": self.topics("partitions", wanted, name="topic")})
        found: dict[str, Any] = response["responses"][0]["partitions"][0]
        return found

    def aborted(self, found: Fields) -> list[dict[str, Any]] | None:
        listed = found["aborted_transactions"]
        return None if listed is None else [{"producer_id": self.symbols.producer_name(txn["producer_id"]),
                                             "first_offset": txn["first_offset"]} for txn in listed]

    def rows(self, found: Fields) -> list[list[Any]]:
        return [self._row(*batch) for batch in batches(found)]

    def _row(self, header: BatchHeader, records: list[WireRecord]) -> list[Any]:
        kind = ("txn" if header.is_transactional else "plain") + ("+ctl" if header.is_control else "")
        values = [text(header, record) for record in records]
        return [header.base_offset, self.symbols.producer_name(header.producer_id), header.producer_epoch,
                header.base_sequence, kind, values]

    def _start(self, index: int) -> int:
        """Return where a partition's log begins: not at 0 where records were deleted."""
        wanted = {"partition_index": index, "timestamp": EARLIEST, "current_leader_epoch": -1}
        found = self.ask(offer.LIST_OFFSETS, 5, {"replica_id": -1, "topics": self.topics("partitions", wanted)})
        return int(found["topics"][0]["partitions"][0]["offset"])

    def _partition(self, index: int) -> dict[str, Any]:
        start = self._start(index)
        committed, all_ = (self.fetch(index, start, level) for level in reversed(LEVELS))
        response = self.ask(offer.DESCRIBE_PRODUCERS, 0, {"topics": self.topics("partition_indexes", index)})
        producers = sorted(response["topics"][0]["partitions"][0]["active_producers"], key=lambda p: p["producer_id"])
        return {
            "high_watermark": all_["high_watermark"], "last_stable_offset": all_["last_stable_offset"],
            "aborted": self.aborted(committed), "committed_view": shown(committed), "log": self.rows(all_),
            "producers": [[self.symbols.producer_name(p["producer_id"]), p["producer_epoch"], p["last_sequence"],
                           p["current_txn_start_offset"]] for p in producers],
        }


def _error(code: int) -> dict[str, Any]:
    return {"error": NAMES[code]}


def _init(s: Situation, version: int, f: Fields) -> dict[str, Any]:
    got = s.ask(offer.INIT_PRODUCER_ID, version, {**s.owner(f), "transaction_timeout": f["transaction_timeout"]})
    return {**_error(got["error_code"]), "producer_id": s.symbols.producer_name(got["producer_id"]),
            "producer_epoch": got["producer_epoch"]}


def _add(s: Situation, version: int, f: Fields) -> dict[str, Any]:
    one = {**s.owner(f), "topics": s.topics("partitions", *f["partitions"], topic=f.get("topic"))}
    if version < 4:
        got = s.ask(offer.ADD_PARTITIONS_TO_TXN, version, {f"v3_and_below_{key}": v for key, v in one.items()})
        return {"errors": _by_index(got["results_by_topic_v3_and_below"], "results_by_partition",
                                    "partition_error_code")}
    got = s.ask(offer.ADD_PARTITIONS_TO_TXN, version, {"transactions": (
        {**one, "verify_only": f.get("verify_only", False)},)})
    topics = [topic for results in got["results_by_transaction"] for topic in results["topic_results"]]
    return {**_error(got["error_code"]), "errors": _by_index(topics, "results_by_partition", "partition_error_code")}


def _by_index(topics: Any, inner: str, code: str) -> dict[str, str]:
    return {str(row["partition_index"]): NAMES[row[code]] for topic in topics for row in topic[inner]}


def _add_offsets(s: Situation, version: int, f: Fields) -> dict[str, Any]:
    return _error(s.ask(offer.ADD_OFFSETS_TO_TXN, version, {**s.owner(f), "group_id": s.named(f["group_id"])})[
        "error_code"])


def _end(s: Situation, version: int, f: Fields) -> dict[str, Any]:
    got = s.ask(offer.END_TXN, version, {**s.owner(f), "committed": f["committed"]})
    if version < 5:
        return _error(got["error_code"])
    return {**_error(got["error_code"]), "producer_id": s.symbols.producer_name(got["producer_id"]),
            "producer_epoch": got["producer_epoch"]}


def _produce(s: Situation, version: int, f: Fields) -> dict[str, Any]:
    """Produce a batch; with `also` more of them, each for the partition that it names."""
    rows = ({**f, "bytes": {}, **row} for row in (f, *f.get("also", ())))
    wanted = tuple({"index": row["partition"], "records": batch_of(row, s.owner(row), s.now_ms)} for row in rows)
    message = {"transactional_id": s.named(f.get("transactional_id")), "acks": f.get("acks", -1), "timeout": 10_000,
               "topic_data": s.topics("partition_data", *wanted, topic=f.get("topic"))}
    try:
        got = s.ask(offer.PRODUCE, version, message)
    except ConnectionError:
        return {"connection": "closed"}
    if message["acks"] == 0:
        return {"connection": "open"}
    found = [(row["index"], {**_error(row["error_code"]), "base_offset": row["base_offset"]})
             for topic in got["responses"] for row in topic["partition_responses"]]
    return {"partitions": [[index, row] for index, row in sorted(found)]} if "also" in f else found[0][1]


def _txn_offset_commit(s: Situation, version: int, f: Fields) -> dict[str, Any]:
    got = s.ask(offer.TXN_OFFSET_COMMIT, version, {
        **s.owner(f), "group_id": s.named(f["group_id"]), "generation_id": f.get("generation_id", -1),
        "member_id": s.symbols.member_id(f.get("member_id", "")), "group_instance_id": f.get("group_instance_id"),
        "topics": s.topics("partitions", _offset(f))})
    return _error(got["topics"][0]["partitions"][0]["error_code"])


def _offset(f: Fields) -> dict[str, Any]:
    return {"partition_index": f["partition"], "committed_offset": f["offset"], "committed_metadata": ""}


def _offset_commit(s: Situation, version: int, f: Fields) -> dict[str, Any]:
    got = s.ask(offer.OFFSET_COMMIT, version, {
        "group_id": s.named(f["group_id"]), "generation_id_or_member_epoch": f.get("generation", -1),
        "member_id": s.symbols.member_id(f.get("member_id", "")), "group_instance_id": f.get("group_instance_id"),
        "topics": s.topics("partitions", _offset(f))})
    return _error(got["topics"][0]["partitions"][0]["error_code"])


def _offset_fetch(s: Situation, version: int, f: Fields) -> dict[str, Any]:
    got = s.ask(offer.OFFSET_FETCH, version, {
        "group_id": s.named(f["group_id"]), "require_stable": f.get("require_stable", False),
        "topics": s.topics("partition_indexes", f["partition"])})
    (row,) = got["topics"][0]["partitions"]
    return {**_error(got["error_code"]), "partition_error": NAMES[row["error_code"]],
            "committed_offset": row["committed_offset"]}


def _join(s: Situation, version: int, f: Fields) -> dict[str, Any]:
    """Join, with the id that is given where one is asked for, and sync as the leader."""
    asked = {"group_id": s.named(f["group_id"]), "member_id": s.symbols.member_id(f["member_id"]),
             "group_instance_id": f["group_instance_id"], "session_timeout": 30_000, "rebalance_timeout": 30_000,
             "protocol_type": "consumer", "protocols": ({"name": "range", "metadata": b""},)}
    got = s.ask(offer.JOIN_GROUP, version, asked)
    if got["error_code"] == MEMBER_ID_REQUIRED:
        got = s.ask(offer.JOIN_GROUP, version, {**asked, "member_id": got["member_id"]})
    sync = s.ask(offer.SYNC_GROUP, 3, {
        "group_id": asked["group_id"], "generation_id": got["generation_id"], "member_id": got["member_id"],
        "group_instance_id": f["group_instance_id"],
        "assignments": ({"member_id": got["member_id"], "assignment": b""},)})
    return {**_error(got["error_code"]), "generation": got["generation_id"],
            "member_id": s.symbols.member_name(got["member_id"]), "sync_error": NAMES[sync["error_code"]]}


def _leave(s: Situation, version: int, f: Fields) -> dict[str, Any]:
    return _error(s.ask(offer.LEAVE_GROUP, version, {
        "group_id": s.named(f["group_id"]), "member_id": s.symbols.member_id(f["member_id"])})["error_code"])


def _write_markers(s: Situation, version: int, f: Fields) -> dict[str, Any]:
    got = s.ask(offer.WRITE_TXN_MARKERS, version, {"markers": ({
        **s.owner(f), "coordinator_epoch": f["coordinator_epoch"], "transaction_result": f["committed"],
        "transaction_version": f.get("transaction_version", 0),
        "topics": s.topics("partition_indexes", *f["partitions"])},)})
    return {"errors": _by_index(got["markers"][0]["topics"], "partitions", "error_code")}


def _fetch(s: Situation, version: int, f: Fields) -> dict[str, Any]:
    found = s.fetch(f["partition"], f["fetch_offset"], f["isolation_level"])
    return {**_error(found["error_code"]), "high_watermark": found["high_watermark"],
            "last_stable_offset": found["last_stable_offset"], "aborted_transactions": s.aborted(found),
            "batches": s.rows(found)}


def _list_offsets(s: Situation, version: int, f: Fields) -> dict[str, Any]:
    wanted = {"partition_index": f["partition"], "timestamp": f["timestamp"], "current_leader_epoch": -1}
    got = s.ask(offer.LIST_OFFSETS, version, {
        "replica_id": -1, "isolation_level": LEVELS.index(f["isolation_level"]),
        "topics": s.topics("partitions", wanted)})
    (row,) = got["topics"][0]["partitions"]
    return {**_error(row["error_code"]), "offset": row["offset"]}


def _delete_records(s: Situation, version: int, f: Fields) -> dict[str, Any]:
    wanted = {"partition_index": f["partition"], "offset": f["offset"]}
    got = s.ask(offer.DELETE_RECORDS, version, {"topics": s.topics("partitions", wanted), "timeout": 10_000})
    (row,) = got["topics"][0]["partitions"]
    return {**_error(row["error_code"]), "low_watermark": row["low_watermark"]}


def _describe(s: Situation, version: int, f: Fields) -> dict[str, Any]:
    found = s.describe(f["transactional_ids"][0])
    return {"error": found.get("error", "NONE"), "state": found.get("state", "")}


def _list(s: Situation, version: int, f: Fields) -> dict[str, Any]:
    got = s.ask(offer.LIST_TRANSACTIONS, version, {
        "state_filters": tuple(f["state_filters"]),
        "producer_id_filters": tuple(map(s.symbols.producer_id, f["producer_id_filters"])),
        "duration_filter": f.get("duration_filter", -1)})
    return {**_error(got["error_code"]), "unknown_state_filters": list(got["unknown_state_filters"]),
            "mine": sorted([s.short(row["transactional_id"]), row["transaction_state"]]
                           for row in got["transaction_states"] if s.mine(row["transactional_id"]))}


def _create_topic(s: Situation, version: int, f: Fields) -> dict[str, Any]:
    return _error(s.create_topic(f["partitions"], version))


def _delete_topic(s: Situation, version: int, f: Fields) -> dict[str, Any]:
    return _error(s.delete_topic(version))


REQUESTS: dict[str, Callable[[Situation, int, Fields], dict[str, Any]]] = {
    "InitProducerId": _init, "AddPartitionsToTxn": _add, "AddOffsetsToTxn": _add_offsets, "EndTxn": _end,
    "Produce": _produce, "WriteTxnMarkers": _write_markers, "Fetch": _fetch, "ListOffsets": _list_offsets,
    "DeleteRecords": _delete_records, "TxnOffsetCommit": _txn_offset_commit, "OffsetCommit": _offset_commit,
    "OffsetFetch": _offset_fetch, "JoinGroup+SyncGroup": _join, "LeaveGroup": _leave,
    "DescribeTransactions": _describe, "ListTransactions": _list, "CreateTopics": _create_topic,
    "DeleteTopics": _delete_topic,
}
