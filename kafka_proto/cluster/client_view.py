"""A run of whole transactions as its clients saw it: operations on logs, for the judge who knows no protocol.

A transaction is an operation of its producer, from its begin to an acknowledged commit or abort; what ends otherwise
may have happened. A record without a transaction is an operation, and so is each fetch of a consumer.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs

from harness.model import Value, View
from harness.model.log_operations import ASSIGN, CRASH, FAIL, INFO, INVOKE, OK, POLL, SEND, LogOperation, TakenStep
from kafka_proto.broker.ghosts import record
from kafka_proto.broker.messages import Request, Response
from kafka_proto.broker.placement import Placement
from kafka_proto.cluster.logs import Logs, itself
from kafka_proto.errors import Error
from kafka_proto.log import PartitionLog, aborted_between, batches_between, visible_at
from kafka_proto.requests import ConsumerFetchRequest, ConsumerFetchResponse, IsolationLevel, ProduceRequest

TXN, FINAL = "txn", "final reader"
ENDS = {"commit": OK, "abort": FAIL}
"""What an acknowledged end says of a transaction."""


def named(written: Value) -> str:
    """Return the name of a record; what an application writes follows it."""
    return str(written).partition(" ")[0]


@attrs.define
class UnendedOperation:
    """A transaction that has not ended, or a record without one: where each record went, and at which offset."""

    process: str
    name: str
    sent: dict[str, tuple[str, int | None]] = attrs.field(factory=dict)

    def parts(self) -> list[list[Any]]:
        return [[SEND, partition, offset, text] for text, (partition, offset) in self.sent.items()]


class TransactionsView:
    """The clients of one run."""

    def __init__(self, placement: Placement, logs: Logs, isolation: str) -> None:
        self.level = isolation
        self.left_out: dict[str, str] = {}
        self._placement = placement
        self._logs = logs
        self._under_way: dict[str, list[UnendedOperation]] = {}
        self._counts: dict[str, int] = {}
        """How many records a producer sent in its transaction, or in all."""
        self._begun: dict[str, int] = {}
        """How many transactions, or records without one."""
        self._asked: dict[tuple[str, str, int, int], ProduceRequest | ConsumerFetchRequest] = {}

    def look(self, step: TakenStep) -> Iterator[LogOperation]:
        """Return what begins or ends with a step."""
        who = step.process
        if step.action == "BeginTransaction":
            yield from self._given_up(step.n, who)
            self._counts[who] = 0
            yield self._begin(step.n, who, TXN)
        elif step.action == "Send":
            yield from self._send(step, who, step.args[1])
        if isinstance(step.received, Response):
            yield from self._answered(step, step.received)
        for message in step.sent:
            if isinstance(message, Request) and isinstance(message.request, ProduceRequest | ConsumerFetchRequest):
                self._asked[message.source, message.dest, message.connection, message.correlation] = message.request
                if isinstance(message.request, ConsumerFetchRequest):
                    reader = f"{message.source} of {message.request.partition}"
                    yield LogOperation(step.n, None, reader, INVOKE, POLL, ([POLL, []],))
        if step.op is not None and step.op["name"] in ENDS and step.op["outcome"] == OK:
            yield from self._ended(step.n, who, ENDS[step.op["name"]])

    def finish(self, n: int, view: View) -> Iterator[LogOperation]:
        """Return what never ended, and all that is there to be read in the last state.

        The reader comes to the end of a log only where nothing is under way: what is not replicated, or open, is not
        lost.
        """
        for who in sorted(self._under_way):
            yield from self._given_up(n, who)
        logs = {p: self._logs.made(view, p, itself) for p in self._placement.partitions}
        at_rest = [p for p, log in logs.items() if log.last_stable_offset == log.log_end_offset]
        yield LogOperation(n, None, FINAL, OK, ASSIGN, ([ASSIGN, at_rest, True],))
        for polled in ([self._all(p, log) for p, log in logs.items()], []):
            parts = [POLL, [each for each in polled if each[1]]]
            yield LogOperation(n, None, FINAL, INVOKE, POLL, ([POLL, []],))
            yield LogOperation(n + 1, None, FINAL, OK, POLL, (parts,))
            n += 2

    def _all(self, p: str, log: PartitionLog) -> list[Any]:
        """Return the records of a partition as a reader gets them in the end."""
        if self.level == IsolationLevel.READ_UNCOMMITTED:
            found = visible_at(batches_between(log, log.log_start_offset, log.high_watermark), ())
        else:
            end = log.last_stable_offset
            found = visible_at(batches_between(log, log.log_start_offset, end), aborted_between(log, 0, end))
        return [p, [[offset, named(text)] for offset, text in found]]

    def _begin(self, n: int, who: str, name: str) -> LogOperation:
        number = self._begun[who] = self._begun.get(who, 0) + 1
        doing = UnendedOperation(f"{who} ({number})" if name == SEND else who, name)
        self._under_way.setdefault(who, []).append(doing)
        return LogOperation(n, None, doing.process, INVOKE, name, ())

    def _send(self, step: TakenStep, who: str, partition: str) -> Iterator[LogOperation]:
        number = self._counts[who] = self._counts.get(who, 0) + 1
        if who in self._placement.producers:
            text = record(f"{who}.{self._begun.get(who, 0)}", number)
        else:
            text = record(who, number)
            yield self._begin(step.n, who, SEND)
        if self._under_way.get(who):  # in an edited history a record may come before its transaction begins
            self._under_way[who][-1].sent[text] = partition, None

    def _answered(self, step: TakenStep, message: Response) -> Iterator[LogOperation]:
        asked = self._asked.pop((message.dest, message.source, message.connection, message.correlation), None)
        response = message.response
        if isinstance(asked, ProduceRequest) and step.action != "IgnoreResponse" and response.error is Error.NONE:
            for at, text in enumerate(map(named, asked.batch.records), response.base_offset):
                yield from self._acknowledged(step.n, message.dest, text, at if response.base_offset >= 0 else None)
        elif isinstance(asked, ConsumerFetchRequest) and isinstance(response, ConsumerFetchResponse):
            reader = f"{message.dest} of {asked.partition}"
            found = [[at, named(text)]
                     for at, text in visible_at(response.batches, response.aborted_transactions or ())]
            polled = [[asked.partition, found]] if found else []
            yield LogOperation(step.n, None, reader, OK, POLL, ([POLL, polled],))
            if response.error is Error.OFFSET_OUT_OF_RANGE:
                yield LogOperation(step.n, None, reader, INFO, CRASH, ())

    def _acknowledged(self, n: int, who: str, text: str, offset: int | None) -> Iterator[LogOperation]:
        """Note where a record is; one without a transaction has ended then."""
        for doing in self._under_way.get(who, ()):
            if text in doing.sent:
                doing.sent[text] = doing.sent[text][0], offset
                if doing.name == SEND:
                    yield from self._ended(n, who, OK, doing)

    def _ended(self, n: int, who: str, outcome: str, doing: UnendedOperation | None = None) -> Iterator[LogOperation]:
        under_way = self._under_way.get(who, [])
        if under_way:
            doing = doing or under_way[-1]
            under_way.remove(doing)
            yield LogOperation(n, None, doing.process, outcome, doing.name, tuple(doing.parts()))

    def _given_up(self, n: int, who: str) -> Iterator[LogOperation]:
        """Return that what a producer did before may have happened or not."""
        for doing in list(self._under_way.get(who, ())):
            yield from self._ended(n, who, INFO, doing)
