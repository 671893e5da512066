"""A player of records: each request to brokers, each note as what happened in between, and a look at the state after.

How brokers answer, and how time passes there, is said by subclasses: brokers in process, or over the wire. Notes are
read by their words. Producer ids and members differ from run to run: they have names by order of appearance.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Protocol

import attrs

from harness.model import Message, Value
from kafka_proto.broker.coordinator.transaction import PREPARED
from kafka_proto.cluster.running import RunningCluster
from kafka_proto.cluster.running_actors import RETRY_MS, marks
from kafka_proto.log import AbortedTransaction, Marker, RecordBatch, visible
from kafka_proto.requests import partition_index

UNKNOWN_ID = 1_000_000
"""Where ids begin that a record names before a broker gave them."""


class Symbols:
    """A two-way table of `pidN` and producer ids, `member-N` and member ids, grown as they appear."""

    def __init__(self) -> None:
        self._ids: dict[str, int] = {}
        self._names: dict[int, str] = {}
        self._members: dict[str, str] = {}

    def producer_id(self, name: Value) -> int:
        """Return the producer id that a record means."""
        if not isinstance(name, str):
            return int(name)
        if name not in self._ids:
            self._ids[name] = UNKNOWN_ID + len(self._ids)
            self._names[self._ids[name]] = name
        return self._ids[name]

    def producer_name(self, producer_id: int) -> Value:
        """Return what a record calls a producer id; -1, which is none, is itself."""
        if producer_id < 0:
            return producer_id
        if producer_id not in self._names:
            name = f"pid{len(self._names) + 1}"
            self._names[producer_id], self._ids[name] = name, producer_id
        return self._names[producer_id]

    def member_id(self, name: str) -> str:
        """Return the member that a record means; what no broker gave is itself."""
        return next((member for member, known in self._members.items() if known == name), name)

    def member_name(self, member: str) -> str:
        """Return what a record calls a member; none has no name."""
        return self._members.setdefault(member, f"member-{len(self._members) + 1}") if member else member


HELD = "the coordinator's WriteTxnMarkers is held on its way to the partition"
NO_MARKER = "no marker came"
"""In place of it, where the step before ended nothing."""
DELIVERED = "the held WriteTxnMarkers is delivered"
REPEATED_UNTIL = "InitProducerId without producer id repeated until the epoch is "
KINDS = {kind: re.compile(words, re.IGNORECASE) for kind, words in {
    "waited": r"waited until .*\bstate is (?:one of )?\[?([^\]]*)\]?",
    "passed": r"^(\d+) ms pass",
    "repeated": REPEATED_UNTIL + r"(\d+)",
    "timed_out": r"\btime[sd]?[- ]?out\b",
    "lost": r"\banswers?\b.*\blost\b",
    "twice": r"\b(?:marker|WriteTxnMarkers)\b.*\b(?:twice|again|second time|duplicate)\b",
    "delivered": r"\bmarkers?\b.*\bdelivered\b|WriteTxnMarkers is delivered",
    "held": rf"\b(?:markers?|WriteTxnMarkers)\b.*\bheld\b|^{NO_MARKER}$",
    "looked": r"^state$",
}.items()}
"""By the name of what a player does then; the first that fits is meant."""
OF_MARKERS = {"held", "delivered", "twice", "lost"}


def kind_of(step: Mapping[str, Any]) -> tuple[str, str]:
    """Return the kind of a step's note, and what it says of how long; "" if it has none or only names a request."""
    if "note" not in step or "request" in step:
        return "", ""
    for kind, words in KINDS.items():
        if found := words.search(str(step["note"])):
            return kind, next(iter(found.groups()), "")
    raise ValueError(f"unknown note {step['note']!r}")


def with_holds(steps: list[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], bool]]:
    """Yield each step, and whether the markers that it causes are held: the next note says so."""
    for step, following in zip(steps, [*steps[1:], {}], strict=True):
        yield step, kind_of(following)[0] == "held" or (kind_of(step)[0] == "timed_out" and "held" in step["note"])


Wait = Callable[[], bool]
"""Lets a little time pass; False if it was long enough."""
WAITED_FOR = "tid-A"
"""Whose state a note is about."""
LEVELS = ("read_uncommitted", "read_committed")
EARLIEST = -2
"""The time stamp by which ListOffsets gives where a log begins."""
JOIN_AND_SYNC = "JoinGroup+SyncGroup"
"""A join, with the id that is given where one is asked for, and the sync that follows, as the leader's."""
OF_SYNC = 3
"""The version of that sync."""
OF_BATCH = 6
"""Columns of a batch: base offset, producer id, epoch, base sequence, kind, values."""
TOPIC_APIS = ("CreateTopics", "DeleteTopics")
SHOWN: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("InitProducerId", "EndTxn"), ("error", "producer_id", "producer_epoch")),
    **dict.fromkeys(("AddPartitionsToTxn", "WriteTxnMarkers"), ("errors",)),
    **dict.fromkeys(
        ("AddOffsetsToTxn", "TxnOffsetCommit", "OffsetCommit", "LeaveGroup", "SyncGroup", *TOPIC_APIS), ("error",)),
    "Produce": ("error", "base_offset"),
    "Fetch": ("error", "high_watermark", "last_stable_offset", "aborted_transactions", "batches"),
    "ListOffsets": ("error", "offset"),
    "DeleteRecords": ("error", "low_watermark"),
    "OffsetFetch": ("error", "partition_error", "committed_offset"),
    "JoinGroup": ("error", "generation", "member_id"),
    "DescribeTransactions": ("error", "state"),
    "ListTransactions": ("error", "unknown_state_filters", "mine"),
    "DescribeProducers": ("producers",),
    "OffsetForLeaderEpoch": ("error", "leader_epoch", "end_offset"),
}
"""What a record has of each response."""
OF_TRANSACTION = ("error", "state", "producer_id", "producer_epoch", "partitions")


class HeldMarkers(Protocol):
    """What holds markers on their way between brokers, as a player needs it."""

    def hold(self) -> None:
        """Hold all markers that come from now on."""

    def is_holding(self) -> bool:
        """Say whether markers are held, after they had time to come."""

    def deliver(self) -> None:
        """Let go of what is held, and hold nothing from now on."""

    def answered(self) -> tuple[int | None, dict[str, str]]:
        """Return the version of WriteTxnMarkers of what was let go, and the partitions' answers."""


class ClusterMarkers:
    """The markers of running brokers in process."""

    def __init__(self, cluster: RunningCluster) -> None:
        self._cluster = cluster
        self._sent: list[Message] = []
        self._errors: dict[str, str] = {}

    def hold(self) -> None:
        self._cluster.holds_markers = True

    def is_holding(self) -> bool:
        return bool(self._cluster.held)

    def deliver(self) -> None:
        self._sent = list(self._cluster.held)
        self._errors = {str(partition_index(name)): error.value for name, error in self._cluster.deliver_held()}

    def lose(self) -> None:
        """Let held requests be taken and their answers be lost: the senders ask again later."""
        self._copies(self._cluster.held)

    def again(self) -> None:
        """Deliver what is held, and then all that was delivered last once more, without waiting for those answers."""
        if self.is_holding():
            self.deliver()
        self._copies(self._sent)

    def _copies(self, sent: list[Message]) -> None:
        self._cluster.held = [attrs.evolve(each, correlation=-each.correlation) for each in sent if marks(each)]
        self.deliver()

    def answered(self) -> tuple[int | None, dict[str, str]]:
        return max((each.request.version for each in self._sent if marks(each)), default=None), self._errors


class Player:
    """What plays one record."""

    def __init__(self, wait: Wait, settle: Wait, markers: HeldMarkers | None = None) -> None:
        self.symbols = Symbols()
        self.wait, self.settle = wait, settle
        """A transaction may time out in the one, what is on its way may arrive in the other."""
        self._markers = markers
        self._holds = False

    def ask(self, api: str, version: int, fields: Mapping[str, Any]) -> Callable[[str], Any]:
        """Send a request, and return what gives a field of its response, as a record has both.

        Raises KeyError for a request that is not known here, ConnectionError where a connection is closed instead.
        """
        raise NotImplementedError

    def pass_ms(self, milliseconds: int) -> None:
        """Let time pass."""
        raise NotImplementedError

    def repeat(self, epoch: int) -> None:
        """Ask for new epochs of a transactional id up to a number."""
        raise NotImplementedError

    def play(self, record: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return the steps as they were answered. Raises ValueError for a note that means nothing here."""
        played = []
        for step, holds in with_holds(record["steps"]):
            if holds and self._markers is not None:
                self._markers.hold()
                self._holds = True
            ours, (kind, said) = dict(step), kind_of(step)
            if kind:
                ours |= self._happened(kind, said, step["note"])
            else:
                answer = self.answer(**step["request"])
                if "response" in step or not KINDS["lost"].search(step.get("note", "")):
                    ours["response"] = answer
            if "after" in step:
                ours["after"] = self._after(step["after"])
            if self._markers is not None and (kind == "delivered" or "marker_answer" in step):
                ours["marker_version"], ours["marker_answer"] = self._markers.answered()  # now that all are
            played.append(in_form_of(step, ours))
        if self._holds and self._markers is not None:
            self._markers.deliver()
            self._markers.answered()  # nothing of this record comes in the next one
        return played

    def answer(
        self, api: str, version: int, fields: Any = None, shown: tuple[str, ...] = (), message: Any = None
    ) -> dict[str, Any]:
        """Return what is answered to a request of a record, as a record has both; fields may be chosen."""
        if api == JOIN_AND_SYNC:
            return self._join_and_sync(version, fields)
        try:
            field = self.ask(api, version, fields)
        except ConnectionError:
            if api != "Produce":
                raise
            return {"connection": "closed"}
        if api == "Produce":
            shown = ("connection",) if fields.get("acks") == 0 else ("partitions",) if "also" in fields else shown
        elif api == "EndTxn" and version < 5:
            shown = ("error",)
        elif api == "AddPartitionsToTxn" and version >= 4:
            shown = ("error", "errors")  # one for the whole request, too: what its coordinator throws
        return {name: "open" if name == "connection" else field(name) for name in shown or SHOWN[api]}

    def _join_and_sync(self, version: int, fields: Mapping[str, Any]) -> dict[str, Any]:
        joined = self.answer("JoinGroup", version, fields)
        if joined["error"] == "MEMBER_ID_REQUIRED":
            joined = self.answer("JoinGroup", version, {**fields, "member_id": joined["member_id"]})
        of_member = {"generation": joined["generation"], "member_id": joined["member_id"]}
        synced = self.answer("SyncGroup", OF_SYNC, {**fields, **of_member})
        return {**joined, "sync_error": synced["error"]}

    def _happened(self, kind: str, said: str, note: str) -> dict[str, Any]:
        """Do what a note says, and return what is seen of it."""
        match kind:
            case "waited":
                states = [state.strip(" '\"") for state in said.split(",")]
                while self._state(WAITED_FOR) not in states and self.wait():
                    pass
            case "passed":
                self.pass_ms(int(said))
            case "repeated":
                self.repeat(int(said))
            case "timed_out":
                self.wait()
            case "held" if self._markers is not None:
                is_holding = self._markers.is_holding()
                if is_holding == (note == NO_MARKER):
                    return {"note": HELD if is_holding else NO_MARKER}
            case "delivered" | "twice" | "lost":
                self._deliver(kind)
        return {}

    def _deliver(self, kind: str) -> None:
        """Let markers go: once, twice, or so that their sender hears nothing and sends them again."""
        self._holds = False
        if isinstance(self._markers, ClusterMarkers) and kind == "twice":
            self._markers.again()
        elif isinstance(self._markers, ClusterMarkers) and kind == "lost":
            self._markers.lose()
            for _ in range(2):  # the sender that waits for the answer notices, and asks again
                self.pass_ms(RETRY_MS)
        elif self._markers is not None:
            self._markers.deliver()

    def _after(self, recorded: Mapping[str, Any]) -> dict[str, Any]:
        """Return the state after a step, of the transactional ids and partitions that the record looks at."""
        seen = dict(recorded)
        if "coordinator" in recorded:
            seen["coordinator"] = {tid: self._settled(tid) for tid in recorded["coordinator"]}
        if "partitions" in recorded:
            seen["partitions"] = {index: self.partition(int(index)) for index in recorded["partitions"]}
        return seen

    def _settled(self, tid: str) -> Any:
        while isinstance(found := self.describe(tid), dict) and found["state"] in PREPARED and (
                not self._holds and self.settle()):
            pass
        return found

    def _state(self, tid: str) -> Any:
        return self.answer("DescribeTransactions", 0, {"transactional_ids": [tid]})["state"]

    def describe(self, tid: str) -> Any:
        """Return a transaction as a broker describes it; the code if it does not."""
        found = self.answer("DescribeTransactions", 0, {"transactional_ids": [tid]}, OF_TRANSACTION)
        error = found.pop("error")
        return found if error == "NONE" else error

    def fetch(self, index: int, offset: int, level: str) -> dict[str, Any]:
        """Return a partition from an offset on."""
        return self.answer("Fetch", 12, {"partition": index, "fetch_offset": offset, "isolation_level": level})

    def partition(self, index: int) -> dict[str, Any]:
        """Return a partition: offsets, what a reader of committed records is given and shows, batches, producers."""
        start = self.answer("ListOffsets", 5, {
            "partition": index, "timestamp": EARLIEST, "isolation_level": LEVELS[0]})["offset"]
        whole, committed = (self.fetch(index, start, level) for level in LEVELS)
        aborted = committed["aborted_transactions"]
        return {
            "high_watermark": whole["high_watermark"], "last_stable_offset": whole["last_stable_offset"],
            "aborted": aborted, "committed_view": shown(committed["batches"], aborted or ()),
            "log": whole["batches"], **self.answer("DescribeProducers", 0, {"partition": index}),
        }


def as_batch(row: list[Any], producer_id: int) -> RecordBatch:
    """Return a batch as a record has it, of a producer."""
    offset, _, epoch, sequence, kind, values = row
    marker = Marker(values[0]) if kind.endswith("+ctl") else None
    return RecordBatch(tuple(values), producer_id, epoch, sequence, kind.startswith("txn"), marker, base_offset=offset)


def shown(rows: Iterable[list[Any]], aborted: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the records that a consumer of committed records shows of batches, as ours does."""
    batches = [as_batch(row, row[1]) for row in rows]
    void = [AbortedTransaction(txn["producer_id"], txn["first_offset"], -1, -1) for txn in aborted]
    return [str(record) for record in visible(batches, void)]


def _are_rows(value: Any, length: int) -> bool:
    return isinstance(value, list) and all(isinstance(row, list) and len(row) == length for row in value)


def in_form_of(recorded: Any, ours: Any) -> Any:
    """Return a step as its record has it: batches in short are the `[offset, value]` of each record."""
    if isinstance(recorded, dict) and isinstance(ours, dict):
        if "records" in recorded and "batches" in ours:
            ours = {"records" if key == "batches" else key: value for key, value in ours.items()}
        return {key: in_form_of(recorded.get(key), value) for key, value in ours.items()}
    if recorded and _are_rows(recorded, 2) and _are_rows(ours, OF_BATCH):
        return [[offset + n, value] for offset, *_, values in ours for n, value in enumerate(values)]
    return ours
