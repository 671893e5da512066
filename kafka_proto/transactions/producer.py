"""The transactional client of the actor composition: carries out commands, finds its coordinator, times out, retries.

Every request carries a correlation id; an answer to an older one is ignored. A retriable error or a timeout retries
inside the operation; a fatal error ends it, and the client.
"""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from harness.model import Actor, Kind, Message, Op, Turn, View, fresh
from kafka_proto.transactions.decisions import client as clients
from kafka_proto.transactions.messages import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    Error,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from kafka_proto.transactions.records import ClientRecord
from kafka_proto.transactions.versions.version import Version

BACKOFF = "backoff"


@attrs.frozen
class Producer:
    """The local state of a client: the specs' record, the operation under way, and the request it waits for."""

    record: ClientRecord = ClientRecord()
    goal: tuple[str, str] | None = None
    """`("init", tid)` or `("add_partitions", topic partition)`."""
    correlation: int = attrs.field(default=0, metadata=fresh("correlation", "self"))
    awaits: str = ""
    """`coordinator`, `init` or `add_partitions`: the kind of the answer waited for, or nothing; or `backoff`."""


class TransactionalProducer(Actor[Producer]):
    """The actor of one client."""

    def __init__(
        self, name: str, brokers: tuple[str, ...], tids: tuple[str, ...], topic_partitions: tuple[str, ...],
        version: Version, backs_off: bool = False,
    ) -> None:
        self.name = name
        self.brokers = brokers
        self.tids = tids
        self.topic_partitions = topic_partitions
        self.version = version
        self.backs_off = backs_off
        """Whether it lets time pass after an error before it tries again (Kafka's `retry.backoff.ms`)."""
        self.initial = Producer()

    def step(self, local: Producer) -> Iterable[Turn[Producer]]:
        if local.goal is None:
            yield from self.commands(local)
        elif not local.awaits:
            yield from self.requests(local, local.goal)

    def commands(self, local: Producer) -> Iterable[Turn[Producer]]:
        """The application's choices while no operation is under way."""
        for tid in self.tids:
            if clients.may_init(local.record, tid):
                yield self.command(local, "Init", "init", tid)
        for tp in self.topic_partitions:
            if clients.may_add(local.record, tp):
                yield self.command(local, "AddPartitions", "add_partitions", tp)

    def command(self, local: Producer, action: str, name: str, value: str) -> Turn[Producer]:
        return Turn(
            action, (self.name, value), attrs.evolve(local, goal=(name, value)), kind=Kind.COMMAND,
            op=Op(self.name, name, "invoke", value),
        )

    def requests(self, local: Producer, goal: tuple[str, str]) -> Iterable[Turn[Producer]]:
        """The next request of the operation under way: look the coordinator up, or send it what is wanted."""
        number = local.correlation + 1
        record = local.record
        tid = goal[1] if goal[0] == "init" else record.transactional_id
        assert tid is not None
        if record.coordinator is None:
            for b in self.brokers:
                lookup = FindCoordinatorRequest(tid, number, source=self.name, dest=b)
                after = attrs.evolve(local, correlation=number, awaits="coordinator")
                yield Turn("SendFindCoordinatorRequest", (self.name, b), after, (lookup,))
        elif goal[0] == "init":
            request = InitProducerIdRequest(tid, correlation=number, source=self.name, dest=record.coordinator)
            after = attrs.evolve(local, record=clients.init_sent(record, tid), correlation=number, awaits="init")
            yield Turn("SendInitProducerIdRequest", (self.name,), after, (request,))
        else:
            add = AddPartitionsToTxnRequest(
                tid, record.producer_id, record.producer_epoch, frozenset((goal[1],)),
                correlation=number, source=self.name, dest=record.coordinator,
            )
            after = attrs.evolve(
                local, record=clients.add_sent(record, goal[1]), correlation=number, awaits="add_partitions"
            )
            yield Turn("SendAddPartitionsToTxnRequest", (self.name,), after, (add,))

    def timers(self, local: Producer) -> tuple[str, ...]:
        if local.awaits == BACKOFF:
            return ("RetryBackoff",)
        return ("RequestTimeout",) if local.awaits else ()

    def timer_fired(self, local: Producer, timer: str) -> Iterable[Turn[Producer]]:
        """Try again: after a pause, or because a request is given up and what became of it is unknown.

        Who gives up looks the coordinator up again.
        """
        if timer == "RetryBackoff":
            yield Turn(timer, (self.name,), attrs.evolve(local, awaits=""))
            return
        record = attrs.evolve(self.version.given_up(local.record), coordinator=None)
        after = attrs.evolve(local, record=record, awaits="")
        yield Turn("RequestTimeout", (self.name,), after, detail=f"{local.awaits} {local.correlation}")

    def on_message(self, local: Producer, message: Message) -> Iterable[Turn[Producer]]:
        who = (self.name, message.source)
        match message:
            case FindCoordinatorResponse() if self.is_awaited(local, "coordinator", message.correlation):
                record = attrs.evolve(local.record, coordinator=message.coordinator)
                yield Turn("ReceiveFindCoordinatorResponse", who, attrs.evolve(local, record=record, awaits=""))
            case InitProducerIdResponse() if self.is_awaited(local, "init", message.correlation):
                record = self.version.init_answered(local.record, message)
                if message.error is Error.NOT_COORDINATOR:
                    record = attrs.evolve(record, coordinator=None)
                yield self.answered(local, "ReceiveInitProducerIdResponse", who, record, message.error)
            case AddPartitionsToTxnResponse() if self.is_awaited(local, "add_partitions", message.correlation):
                record = self.version.add_answered(local.record, message, None)
                yield self.answered(local, "ReceiveAddPartitionsToTxnResponse", who, record, message.error)
            case _:
                yield Turn("IgnoreResponse", who, local)

    def is_awaited(self, local: Producer, kind: str, correlation: int | None) -> bool:
        return local.awaits == kind and local.correlation == correlation

    def answered(
        self, local: Producer, action: str, who: tuple[str, ...], record: ClientRecord, code: Error
    ) -> Turn[Producer]:
        """End the operation (ok, or fail with a fatal error), or leave it to a retry."""
        assert local.goal is not None
        name, value = local.goal
        after = attrs.evolve(local, record=record, awaits="")
        if code is Error.OK:
            return Turn(action, who, attrs.evolve(after, goal=None), op=Op(self.name, name, "ok", value))
        if code.is_retriable:
            return Turn(action, who, attrs.evolve(after, awaits=BACKOFF) if self.backs_off else after)
        return Turn(action, who, attrs.evolve(after, goal=None), op=Op(self.name, name, "fail", str(code)))


def waiting(view: View, clients: Iterable[str]) -> list[str]:
    """Say which clients wait for whom, for which answer."""
    locals_: dict[str, Producer] = {c: view[c] for c in clients}
    return [f"{c} waits for {p.record.coordinator or 'a broker'} ({p.awaits})" for c, p in locals_.items() if p.awaits]


TYPES: tuple[type, ...] = (Producer,)
