"""A session as its clients saw it: operations on logs, for the judge who knows no protocol.

A record is named by what its producer gave it: `1000.0#5` is the one with sequence 5 of producer id 1000, epoch 0. One
of no producer has no name, and is left out. Readers of all records have a log of their own for each partition, to which
each batch is an operation. In that of readers of committed records a transaction is one, with the records that were
acknowledged. What may be gone by right is left out: partitions with records deleted or compacted, of topics that were
deleted, ended by an operator's markers, or led by a replica that was not in sync.
"""

from __future__ import annotations

import typing
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any, Protocol, runtime_checkable

import attrs

from harness.model import Value, View
from harness.model.log_operations import ASSIGN, FAIL, INFO, INVOKE, OK, POLL, SEND, LogOperation, TakenStep
from kafka_proto.errors import BY_NAME, NAMES
from kafka_proto.gateway import offer as apis
from kafka_proto.gateway.answers import ALL, READ_COMMITTED
from kafka_proto.gateway.apis.records import replica_of
from kafka_proto.gateway.codec import Fields, structures
from kafka_proto.gateway.connection import WireRequest
from kafka_proto.gateway.faults import LOST, Exchanged
from kafka_proto.gateway.front import Front
from kafka_proto.gateway.host import Host
from kafka_proto.gateway.inputs import Fronted, Input, Started
from kafka_proto.gateway.named_records import (
    NamedRecords,
    has_no_holes,
    is_named,
    log_name,
    named_in,
    not_aborted,
    readable,
)
from kafka_proto.gateway.observed import NOBODY, Ledger, Observed, header_of, produced
from kafka_proto.gateway.properties import Brokers
from kafka_proto.gateway.proxy import ProxyHost
from kafka_proto.gateway.records import BadBatch, BatchHeader, read_header, split
from kafka_proto.log import PartitionLog
from kafka_proto.requests import INTERNAL_TOPICS, partition_name, topic_of

TXN, FINAL = "txn", "final reader"
UNCLEAN = 1
"""The type of an election (KIP-460)."""
LOSING = {apis.DELETE_TOPICS: "its topic was deleted", apis.ELECT_LEADERS: "an unclean election was asked for"}
"""Requests after which records of the topics that they name may be gone."""
Place = tuple[str, int, int, int]
"""A partition, producer id, epoch and base sequence."""
Starts = Callable[[Started | Fronted], Front]
"""Makes the host that takes a session's inputs."""


@runtime_checkable
class FromOutside(Protocol):
    """A step that has its input with it."""

    @property
    def input(self) -> Value: ...


@attrs.define(eq=False)
class WrittenBatch:
    """A batch that a producer sent, once or again: what it was told of it last, and how often it was told nothing."""

    place: Place
    count: int
    transaction: str
    began: int
    open: int = 0
    """How often it was sent, and not told for certain that nothing was written."""
    offset: int | None = None
    """As acknowledged by all in-sync replicas, in which step."""
    acknowledged: int = 0

    @property
    def sequences(self) -> range:
        return range(self.place[3], self.place[3] + self.count)

    @property
    def outcome(self) -> str:
        return OK if self.acknowledged else INFO if self.open else FAIL

    def parts(self, log: str) -> Iterator[list[Any]]:
        """Yield its records as sent to a log."""
        for offset, name in NamedRecords(self.offset or 0, *self.place[1:], self.count).rows():
            yield [SEND, log, None if self.offset is None else offset, name]


@attrs.define(eq=False)
class ProducerTransaction:
    """A transaction: when it began, and how it ended as its producer was told, in which step."""

    began: int
    outcome: str = INFO
    ended: int = 0


@attrs.define(eq=False)
class AskedFetch:
    """A fetch that was not answered: the offsets that it is to begin at, which its session keeps."""

    offsets: dict[tuple[str, int], int]
    begins_session: bool


class SessionView:
    """The clients of one session: its inputs once more, of which each may be asked and answered."""

    level = "read_committed"

    def __init__(self, starts: Starts) -> None:
        self._starts = starts
        self._host: Front | None = None
        self._is_whole = True
        """Whether all that was written is known."""
        self._batches: list[WrittenBatch] = []
        self._last: dict[Place, WrittenBatch] = {}
        self._transactions: dict[str, ProducerTransaction] = {}
        self._produces: dict[tuple[int, int], list[WrittenBatch]] = {}
        """By connection and number, as all that was asked."""
        self._fetches: dict[tuple[int, int], AskedFetch] = {}
        self._sessions: dict[tuple[int, int], dict[tuple[str, int], int]] = {}
        """By broker and number: the offset that each partition is to be read from."""
        self._readers: dict[tuple[str, str], dict[int, str]] = {}
        """By client and log: who goes on at which offset."""
        self._named: dict[tuple[str, str], int] = {}
        """How many of these there were."""
        self._polls: list[tuple[int, str, str, str, list[NamedRecords]]] = []
        """In which step, by whom, of which partition and log: what was read."""
        self._losing: dict[str, str] = {}
        """Topics of which records may be gone, and why."""
        self._compacted: set[str] = set()
        self.left_out: dict[str, str] = {}

    # What happens

    def look(self, step: TakenStep) -> Iterable[LogOperation]:
        """Take a step's input; all is known at the end, when nothing can be sent again."""
        given = step.input if isinstance(step, FromOutside) else None
        if not isinstance(given, typing.get_args(Input)):
            return ()
        try:
            if isinstance(given, Started | Fronted):
                self.begin(self._starts(given))
            elif self._host is not None:
                self._host.take(given)
                self.see(step.n)
        except Exception:  # as of an edited history; whoever judges its steps says so
            self._host, self._is_whole = None, False
        return ()

    def begin(self, host: Front) -> None:
        """Begin with a host that has taken nothing else. Others may write to what is behind a proxy, too."""
        self._host = host
        self._is_whole = self._is_whole and isinstance(host, Host)

    def see(self, n: int) -> None:
        """Note what the host did with its last input, the nth of the session."""
        assert self._host is not None
        for each in self._host.exchanged:
            self._exchanged(n, self._host, each)

    def _exchanged(self, n: int, host: Front, each: Exchanged) -> None:
        request, key = each.request, (each.connection, each.request.number)
        if request.api_key in LOSING:
            self._loses(request, each.answer)
        if each.has_come:
            if request.api_key == apis.PRODUCE:
                self._produces[key] = list(self._written(n, request, each.transaction))
            elif request.api_key == apis.FETCH and replica_of(request) < 0:
                self._fetches[key] = self._fetch(each.broker, request)
        elif request.api_key == apis.PRODUCE and "duplicate" in each.faults:
            for batch in self._produces.get(key, ()):
                batch.open += 1
        elif each.answer is not None and each.faults != LOST and each.connection in host.clients:
            if request.api_key == apis.PRODUCE:
                self._told(n, request, self._produces.pop(key, []), each.answer)
            elif request.api_key == apis.FETCH and key in self._fetches:
                with suppress(BadBatch):
                    self._read(n, each, self._fetches.pop(key), each.answer, host)
            elif request.api_key == apis.END_TXN and each.answer["error_code"] == 0:
                known = self._transactions.get(each.transaction)
                if known is not None and not known.ended:
                    known.outcome, known.ended = OK if request.message["committed"] else FAIL, n

    def _loses(self, request: WireRequest, answer: Fields | None) -> None:
        """Note the topics of which records may be gone by right."""
        message, why = request.message, LOSING[request.api_key]
        if request.api_key == apis.ELECT_LEADERS and message.get("election_type") != UNCLEAN:
            return
        for part in structures({"asked": message, "answered": answer or {}}):
            self._losing |= {part[name]: why for name in ("name", "topic") if isinstance(part.get(name), str)}
        self._losing |= dict.fromkeys(message.get("topic_names") or (), why)

    # Writing

    def _written(self, n: int, request: WireRequest, transaction: str) -> Iterator[WrittenBatch]:
        """Yield the batches that a Produce has, those that it has once more, too."""
        for topic, index, data in produced(request.message):
            header = header_of(data)
            if header is None or not is_named(header) or topic in INTERNAL_TOPICS:
                continue
            whose = transaction if header.is_transactional else NOBODY
            place = partition_name(topic, index), header.producer_id, header.producer_epoch, header.base_sequence
            known = self._last.get(place)
            if known is None or (known.transaction, known.count) != (whose, header.count):
                known = self._last[place] = WrittenBatch(place, header.count, whose, n)
                self._batches.append(known)
                if whose != NOBODY:
                    self._transactions.setdefault(whose, ProducerTransaction(n))
            known.open += 1
            yield known

    def _told(self, n: int, request: WireRequest, batches: list[WrittenBatch], answer: Fields) -> None:
        """Note what a producer is told of its batches."""
        rows = {partition_name(topic.get("name", ""), row["index"]): row
                for topic in answer.get("responses", ()) for row in topic["partition_responses"]}
        for batch in batches:
            row = rows.get(batch.place[0])
            if row is None:
                continue
            error = row["error_code"]
            if error == 0 and request.message["acks"] == ALL and not batch.acknowledged:
                batch.acknowledged = n
                batch.offset = row["base_offset"] if row["base_offset"] >= 0 else None
            elif error != 0 and error in NAMES and BY_NAME[NAMES[error]].definite:
                batch.open -= 1

    # Reading

    def _fetch(self, broker: int, request: WireRequest) -> AskedFetch:
        """Return what a fetch is about; one in a session names what has changed (KIP-227)."""
        message = request.message
        number, epoch = message.get("session_id", 0), message.get("session_epoch", -1)
        given = {(row["topic"], wanted["partition"]): wanted["fetch_offset"]
                 for row in message["topics"] for wanted in row["partitions"]}
        if epoch <= 0:
            return AskedFetch(given, epoch == 0)
        known = self._sessions.setdefault((broker, number), {})
        known.update(given)
        for row in message.get("forgotten_topics_data", ()):
            for index in row["partitions"]:
                known.pop((row["topic"], index), None)
        return AskedFetch(known, False)

    def _read(self, n: int, each: Exchanged, asked: AskedFetch, answer: Fields, host: Front) -> None:
        """Note what a reader gets, from the offset on that it asked for: batches may begin before it."""
        if asked.begins_session and answer.get("session_id", 0):
            self._sessions[each.broker, answer["session_id"]] = asked.offsets
        is_committed = each.request.message["isolation_level"] == READ_COMMITTED
        for topic in answer.get("responses", ()):
            name = topic.get("topic", "")
            for row in topic["partitions"]:
                at = asked.offsets.get((name, row["partition_index"]))
                if not row.get("records") or at is None or name in INTERNAL_TOPICS:
                    continue
                p = partition_name(name, row["partition_index"])
                start = host.outside.starts.get(p, 0) if isinstance(host, ProxyHost) else 0
                batches = [(read_header(data), data) for data in split(row["records"])]
                self._compacted |= {p for header, _ in batches if header.count != header.last_offset_delta + 1}
                shown = not_aborted(batches, row.get("aborted_transactions") or ()) if is_committed else (
                    header for header, _ in batches if not header.is_control)
                found = [named_in(header).since(max(at, start)) for header in shown if is_named(header)]
                log = log_name(p, is_committed)
                reader = self._reader(each.request.client_id or "client", log, at, batches[-1][0] if batches else None)
                if any(each.length for each in found):
                    self._polls.append((n, reader, p, log, found))

    def _reader(self, client: str, log: str, at: int, last: BatchHeader | None) -> str:
        """Return who reads on at an offset: another reader, if the client was not there."""
        key = client, log
        known = self._readers.setdefault(key, {})
        name = known.pop(at, None)
        if name is None:
            count = self._named[key] = self._named.get(key, 0) + 1
            name = f"{client} of {log}" + (f" ({count})" if count > 1 else "")
        known[at if last is None else max(at, last.base_offset + last.last_offset_delta + 1)] = name
        return name

    # The end

    def finish(self, n: int, view: View) -> Iterator[LogOperation]:
        """Return all that was written and read, and readers of all there is in the last state.

        These come to the end of a log only where all of it is theirs to read: what is not replicated, or open, is not
        lost. A partition that nobody serves then is left out.
        """
        logs = self._logs(view)
        batches, doubtful = apart(self._batches)
        if not self._is_whole:
            yield LogOperation(0, None, "others", INFO, SEND, ())
        yield from self._sends(
            batch for batch in batches if batch.place[0] in logs and batch.place[:3] not in doubtful)

        def shown(p: str, found: list[NamedRecords]) -> list[list[Any]]:
            return [row for each in found if (p, *each.producer) not in doubtful for row in each.rows()]

        furthest: dict[str, int] = {}
        for at, reader, p, name, read in self._polls:
            if p in logs:
                furthest[p] = max(furthest.get(p, -1), read[-1].offset + read[-1].length - 1)
                yield from operation(reader, POLL, at, at, OK, ([POLL, [[name, shown(p, read)]]],))
        for is_committed in (True, False):
            process = f"{FINAL} of {'committed' if is_committed else 'all'} records"
            polled, at_rest = [], []
            for p, log in logs.items():
                end = max(log.high_watermark, furthest.get(p, -1) + 1)
                found, is_all = readable(log, end, is_committed)
                polled += [[log_name(p, is_committed), shown(p, found)]]
                at_rest += [log_name(p, is_committed)] if is_all else []
            yield LogOperation(n, None, process, OK, ASSIGN, ([ASSIGN, at_rest, True],))
            for rows in (polled, []):
                yield from operation(process, POLL, n, n + 1, OK, ([POLL, rows],))
                n += 2

    def _logs(self, view: View) -> dict[str, PartitionLog]:
        """Return the logs that are judged, as they are in the end; the others are `left_out`."""
        brokers: Brokers = view["brokers"]
        seen: Observed = view["observed"]
        found: dict[str, PartitionLog] = {}
        for p, log in sorted(brokers.logs.items()):
            if topic_of(p) in INTERNAL_TOPICS:
                continue
            why = self._why_not(p, log, seen.ledgers.get(p, Ledger()))
            if why:
                self.left_out[p] = why
            else:
                found[p] = log
        return found

    def _why_not(self, p: str, log: PartitionLog, ledger: Ledger) -> str:
        """Say why a partition's records may be gone, or not end as their producer wants, by right."""
        start = self._host.outside.starts.get(p, 0) if isinstance(self._host, ProxyHost) else 0
        if topic_of(p) in self._losing:
            return self._losing[topic_of(p)]
        if isinstance(self._host, Host) and self._host.cluster.elects_uncleanly(p):
            return "a replica that is not in sync may lead it"
        if any(not span.cause for span in ledger.ended):
            return "an operator ended a transaction in it"
        is_whole = p not in self._compacted and ledger.gone is None and has_no_holes(log, start)
        return "" if is_whole else "records were deleted or compacted"

    def _sends(self, batches: Iterable[WrittenBatch]) -> Iterator[LogOperation]:
        """Yield what was written: transactions as operations, batches without one, and all batches by themselves."""
        counts: dict[str, int] = {}
        together: dict[str, list[list[Any]]] = {}
        for batch in batches:
            p, producer_id, epoch, _ = batch.place
            known = self._transactions.get(batch.transaction)
            producer = f"producer {producer_id}.{epoch}"
            own = [log_name(p, False)]
            if known is not None and (batch.outcome == OK or known.outcome == FAIL):
                together.setdefault(batch.transaction, []).extend(batch.parts(log_name(p, True)))
            else:
                own.append(log_name(p, True))
            for log in own:
                parts = list(batch.parts(log))
                # A reader may have begun inside a batch that is lost by right: each record is there by itself.
                for mine in [parts] if batch.outcome != INFO else [[part] for part in parts]:
                    number = counts[producer] = counts.get(producer, 0) + 1
                    yield from operation(f"{producer} ({number})", SEND, batch.began,
                                         batch.acknowledged or batch.began, batch.outcome, mine)
        for transaction, parts in together.items():
            known = self._transactions[transaction]
            yield from operation(transaction, TXN, known.began, known.ended or known.began, known.outcome, parts)


def apart(batches: Iterable[WrittenBatch]) -> tuple[list[WrittenBatch], set[tuple[str, int, int]]]:
    """Return batches without those that were refused and whose sequences others took, and what stays doubtful then.

    A client that is told for certain that nothing was written uses the sequences again. One that uses them again
    without that gives records the same names: partition, producer id and epoch are left out.
    """
    kept: list[WrittenBatch] = []
    doubtful: set[tuple[str, int, int]] = set()
    of: dict[tuple[str, int, int], list[WrittenBatch]] = {}
    for batch in batches:
        of.setdefault(batch.place[:3], []).append(batch)
    for key, mine in of.items():
        taken: set[int] = set()
        for batch in mine:
            if batch.outcome != FAIL:
                doubtful |= set() if taken.isdisjoint(batch.sequences) else {key}
                taken.update(batch.sequences)
        kept += [batch for batch in mine if batch.outcome != FAIL or taken.isdisjoint(batch.sequences)]
    return kept, doubtful


def operation(
    process: str, name: str, began: int, ended: int, outcome: str, parts: Iterable[list[Any]]
) -> Iterator[LogOperation]:
    """Yield the begin and the end of an operation."""
    yield LogOperation(began, None, process, INVOKE, name, ())
    yield LogOperation(ended, None, process, outcome, name, tuple(parts))
