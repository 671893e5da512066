"""What a schedule asks of the world outside: an application's calls in their order, and which requests come late.

Of a run of whole transactions (`kafka/...`): the calls of producers, the requests that are delivered after their
connection was given up or after another producer's call, and those that are lost. What brokers do among themselves is
theirs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property

import attrs

from harness.model import Message
from kafka_proto.broker.ghosts import record
from kafka_proto.broker.messages import Request
from kafka_proto.clients.client_connections import DELIVERY_TIMEOUT, REQUEST_TIMEOUT, RETRY_BACKOFF

CALLS = ("InitTransactions", "BeginTransaction", "Send", "CommitTransaction", "AbortTransaction")
ENDS = {"CommitTransaction": "commit", "AbortTransaction": "abort"}
GIVEN_UP = (REQUEST_TIMEOUT, DELIVERY_TIMEOUT)
SILENT = ("Release", "Poll", "IgnoreResponse", RETRY_BACKOFF, *GIVEN_UP)
"""Steps that the world outside makes by itself, or that no producer has to do with."""
OPERATIONS = ("EndTxn", "InitProducerId")
AWAITED = ("Produce", *OPERATIONS)
"""Requests whose arrival leads to the end of what an application waits for."""
REQUEST = "Request"
NO_NAME = re.compile(r"\W")


class Unplayable(ValueError):
    """A schedule that asks for more than calls, delays and losses."""


@attrs.frozen
class RunStep:
    """A step of a run: its label, the message that it delivers or loses, and those that it sends."""

    label: str
    subject: Message | None = None
    sent: tuple[Message, ...] = ()

    @property
    def action(self) -> str:
        return NO_NAME.split(self.label, 1)[0]

    @property
    def args(self) -> tuple[str, ...]:
        return tuple(filter(None, self.label.partition("(")[2].partition(")")[0].split(",")))


@attrs.frozen
class ScheduledCall:
    """A call of the application; a record has the text that names it."""

    producer: str
    action: str
    transaction: int
    """Which of the producer's it belongs to, from 1; 0 before the first."""
    partition: str = ""
    record: str = ""

    @property
    def ends(self) -> str:
        """How it ends its transaction: `commit`, `abort`, or not at all."""
        return ENDS.get(self.action, "")

    def __str__(self) -> str:
        return f"{self.action}({', '.join(filter(None, (self.producer, self.partition)))})"


@attrs.frozen
class Late:
    """The nth request of an API that a producer sends from one of its calls on, and before its next call."""

    producer: str
    api: str
    call: int
    """Which call of the schedule it is, from 0."""
    nth: int
    is_lost: bool = False
    """Whether it never arrives, and its connection ends."""


@attrs.frozen
class Settled:
    """Wait until what a producer asked for is answered."""

    producer: str


@attrs.frozen
class Comes:
    """Wait until a late request is sent."""

    late: Late


@attrs.frozen
class Arrives:
    """Let a late request arrive, and wait until it is answered."""

    late: Late


Event = ScheduledCall | Settled | Comes | Arrives


@attrs.frozen
class Schedule:
    """Events in their order, and what is asked of the client."""

    events: tuple[Event, ...]
    lates: tuple[Late, ...]
    tids: tuple[tuple[str, str], ...]
    """The transactional id of each producer."""
    gives_up: frozenset[str]
    """Which of RequestTimeout and DeliveryTimeout fire."""

    @property
    def partitions(self) -> tuple[str, ...]:
        """Those that are written to."""
        calls = (event for event in self.events if isinstance(event, ScheduledCall))
        return tuple(sorted({call.partition for call in calls if call.partition}))


def schedule_of(steps: Sequence[RunStep]) -> Schedule:
    """Return the schedule of a run. Raises Unplayable."""
    return _Reading(tuple(steps)).schedule()


@attrs.frozen(slots=False)
class _Reading:
    """A run that is read: its steps from 0, its calls, and the requests of its producers."""

    steps: tuple[RunStep, ...]

    @cached_property
    def calls(self) -> tuple[int, ...]:
        """The steps that are calls."""
        return tuple(n for n, step in enumerate(self.steps) if step.action in CALLS)

    @cached_property
    def producers(self) -> frozenset[str]:
        return frozenset(self.steps[n].args[0] for n in self.calls)

    def schedule(self) -> Schedule:
        for n, step in enumerate(self.steps):
            self._check(n, step)
        lates = {n: self._late(n) for n in range(len(self.steps)) if self._is_late(n)}
        requests = [request for step in self.steps for request in self._requests(step)]
        plain = sorted({asked.source for asked in requests if getattr(asked.request, "transactional_id", "") is None})
        if plain:
            raise Unplayable(f"{plain[0]} writes without transactions; only producers with transactions can be played")
        tids = {request.source: str(request.request.transactional_id) for request in requests
                if hasattr(request.request, "transactional_id")}
        events = tuple(self._events(lates))
        if not any(isinstance(event, ScheduledCall) and event.action == "Send" for event in events):
            raise Unplayable("it writes nothing, so the logs show nothing")
        given_up = frozenset(step.action for step in self.steps if step.action in GIVEN_UP)
        return Schedule(events, tuple(lates[n] for n in sorted(lates)), tuple(sorted(tids.items())), given_up)

    def _check(self, n: int, step: RunStep) -> None:
        if step.action in CALLS or step.action in SILENT or step.action.startswith("Receive"):
            return
        if step.action == "Drop" and self._request(step) is not None:
            return
        what = "a loss of what brokers send" if step.action == "Drop" else f"{step.action}({','.join(step.args)})"
        raise Unplayable(f"step {n + 1} is {what}; only calls of producers, and delays and losses of their requests, "
                         "can be played")

    def _requests(self, step: RunStep) -> list[Request]:
        """Return what producers send in a step."""
        return [message for message in step.sent if isinstance(message, Request) and message.source in self.producers]

    def _request(self, step: RunStep) -> Request | None:
        """Return the producer's request that a step delivers or loses."""
        subject = step.subject
        return subject if isinstance(subject, Request) and subject.source in self.producers else None

    def _sent_at(self, request: Request, before: int) -> int:
        """Return the step in which a request was sent."""
        return max(n for n in range(before) if request in self.steps[n].sent)

    def _is_late(self, n: int) -> bool:
        """Say whether a request is lost, or comes after its producer gave it up or after another producer called."""
        step = self.steps[n]
        request = self._request(step)
        if request is None or step.action == "Drop":
            return request is not None
        between = self.steps[self._sent_at(request, n) + 1 : n]
        given_up = ((REQUEST_TIMEOUT, (request.source, request.dest)), (DELIVERY_TIMEOUT, (request.source,)))
        return step.action.startswith("Receive") and any(
            (other.action, other.args) in given_up or (other.action in CALLS and other.args[0] != request.source)
            for other in between
        )

    def _late(self, n: int) -> Late:
        """Return which request a step delivers late, or loses, as the world outside can tell it."""
        request = self._request(self.steps[n])
        assert request is not None
        sent = self._sent_at(request, n)
        call, start = max((k, at) for k, at in enumerate(self.calls)
                          if at <= sent and self.steps[at].args[0] == request.source)
        alike = [other for step in self.steps[start : sent + 1] for other in self._requests(step)
                 if (other.source, other.type) == (request.source, request.type)]
        return Late(request.source, _api(request), call, alike.index(request) + 1, self.steps[n].action == "Drop")

    def _events(self, lates: dict[int, Late]) -> Iterator[Event]:
        """Yield what happens outside.

        What was sent is written before its transaction is ended, unless it is late: librdkafka sends no request to end
        an empty transaction.
        """
        made = tuple(_calls(self.steps[n] for n in self.calls))
        waits = {(late.producer, made[late.call].transaction) for late in lates.values() if late.api not in OPERATIONS}
        calls = iter(made)
        comes = {self._sent_at(request, n): late for n, late in lates.items()
                 if (request := self._request(self.steps[n])) is not None}
        for n, step in enumerate(self.steps):
            late, request = lates.get(n), self._request(step)
            if late is not None:
                if not late.is_lost:
                    yield Arrives(late)
            elif step.action in CALLS:
                call = next(calls)
                if call.ends and (call.producer, call.transaction) not in waits:
                    yield Settled(call.producer)
                yield call
            elif step.action.startswith("Receive") and _api(request) in AWAITED:
                yield Settled(step.args[1])
            if n in comes:
                yield Comes(comes[n])


def _api(request: Request | None) -> str:
    """Return what Kafka calls a request; nothing is empty."""
    return "" if request is None else request.type.removesuffix(REQUEST)


def _calls(steps: Iterable[RunStep]) -> Iterator[ScheduledCall]:
    """Yield the calls that steps are, their records numbered as the actors do."""
    begun: dict[str, int] = {}
    written: dict[str, int] = {}
    for step in steps:
        producer = step.args[0]
        if step.action == "BeginTransaction":
            begun[producer] = begun.get(producer, 0) + 1
            written[producer] = 0
        transaction = begun.get(producer, 0)
        if step.action != "Send":
            yield ScheduledCall(producer, step.action, transaction)
            continue
        written[producer] += 1
        text = record(f"{producer}.{transaction}", written[producer])
        yield ScheduledCall(producer, step.action, transaction, step.args[1], text)
