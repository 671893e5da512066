"""The broker: it routes requests to its roles and answers, and asks other brokers until they answer."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from harness.model import Actor, FrozenMap, Local, Message, Turn
from kafka_proto.coordinator.transaction import TxnState
from kafka_proto.exactly_once.broker_state import CONNECTIONS, COORDINATOR, GROUPS, LEADER
from kafka_proto.exactly_once.coordinating import Coordinating, Done
from kafka_proto.exactly_once.messages import Request, Response
from kafka_proto.exactly_once.placement import Placement
from kafka_proto.exactly_once.serving import Serving
from kafka_proto.requests import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    FetchRequest,
    InitProducerIdRequest,
    WriteTxnMarkersResponse,
)
from kafka_proto.versions import BrokerVersion

REQUEST_TIMEOUT, TRANSACTION_TIMEOUT = "RequestTimeout", "TransactionTimeout"
OF_COORDINATOR = (InitProducerIdRequest, AddOffsetsToTxnRequest, EndTxnRequest)


class Broker(Actor[Local]):
    """The actor of one broker: coordinator of transactions, leader of partitions, coordinator of groups."""

    may_crash = True

    def __init__(
        self, name: str, version: BrokerVersion, placement: Placement, *, logs_at_once: bool, times_out: bool
    ) -> None:
        self.name = name
        self.placement = placement
        self.times_out = times_out
        self.coordinating = Coordinating(name, placement.brokers.index(name), version, placement, logs_at_once)
        self.serving = Serving(name, version, placement)
        leaders = [LEADER[p] for p in placement.led_by(name)]
        blank = Local.first(name, COORDINATOR, CONNECTIONS, GROUPS, *leaders)
        self.initial = blank
        self.start, _ = self.coordinating.loaded(blank)

    def restarted(self, local: Local) -> Local:
        """Start again on new connections; the coordinator is still to load its log."""
        mine = local[CONNECTIONS]
        opened = mine.opened.update({b: mine.opened.get(b, 0) + 1 for b in self.placement.brokers})
        return local.put(CONNECTIONS, attrs.evolve(mine, opened=opened))

    def step(self, local: Local) -> Iterable[Turn[Local]]:
        mine = local[COORDINATOR]
        if mine.cache.loading:
            yield self.turn("LoadTransactions", (self.name,), self.coordinating.loaded(local))
        for logged in mine.unlogged:
            tid = logged.transactional_id
            yield self.turn("CommitTransactionLogEntry", (self.name, tid), self.coordinating.committed(local, tid))

    def timers(self, local: Local) -> tuple[str, ...]:
        """A request to another broker that is not answered, and a transaction that is open."""
        asked = sorted({asked.message.dest for asked in local[CONNECTIONS].asked.values()})
        found = [f"{REQUEST_TIMEOUT} {dest}" for dest in asked]
        if self.times_out:
            found += [
                f"{TRANSACTION_TIMEOUT} {tid}" for tid, cached in local[COORDINATOR].cache.transactions.items()
                if cached.metadata.state is TxnState.ONGOING and cached.pending_state is None
            ]
        return tuple(found)

    def timer_fired(self, local: Local, timer: str) -> Iterable[Turn[Local]]:
        kind, _, whom = timer.partition(" ")
        if kind == TRANSACTION_TIMEOUT:
            yield self.turn(kind, (self.name, whom), self.coordinating.timed_out(local, whom))
        else:
            yield self.turn(kind, (self.name, whom), self.asked_again(local, whom))

    def asked_again(self, local: Local, dest: str) -> Done:
        """Give the connection to a broker up, and ask everything again on a new one."""
        mine = local[CONNECTIONS]
        number = mine.opened.get(dest, 0) + 1
        asked, sent = mine.asked, []
        for correlation, about in mine.asked.items():
            if about.message.dest == dest:
                message = attrs.evolve(about.message, connection=number)
                asked = asked.set(correlation, attrs.evolve(about, message=message))
                sent.append(message)
        after = attrs.evolve(mine, opened=mine.opened.set(dest, number), asked=asked)
        return local.put(CONNECTIONS, after), tuple(sent)

    def on_message(self, local: Local, message: Message) -> Iterable[Turn[Local]]:
        who = (self.name, message.source)
        if isinstance(message, Request):
            if isinstance(message.request, FetchRequest) and not self.serving.has_news(local, message.request):
                return
            yield self.turn(f"Receive{message.type}", who, self.received(local, message))
        elif isinstance(message, Response):
            yield self.turn(f"Receive{message.type}", who, self.answered(local, message))

    def received(self, local: Local, message: Request) -> Done:
        """Answer a request, now or later."""
        request = message.request
        if isinstance(request, AddPartitionsToTxnRequest):
            if request.verify_only:
                return self.serving.verified(local, message)
            return self.coordinating.receive(local, message)
        if isinstance(request, OF_COORDINATOR):
            return self.coordinating.receive(local, message)
        return self.serving.received(local, message)

    def answered(self, local: Local, message: Response) -> Done:
        """Take the answer to something that this broker asked; one to an earlier connection is stale."""
        mine = local[CONNECTIONS]
        asked = mine.asked.get(message.correlation)
        if asked is None or asked.message.connection != message.connection or asked.message.dest != message.source:
            return local, ()
        local = local.put(CONNECTIONS, attrs.evolve(mine, asked=mine.asked.without(message.correlation)))
        if isinstance(message.response, WriteTxnMarkersResponse):
            return self.coordinating.marked(local, asked, FrozenMap(message.response.errors))
        return self.serving.verification_answered(local, asked, message.response)

    def turn(self, action: str, who: tuple[str, ...], done: Done) -> Turn[Local]:
        """Return a turn whose effects are durable before anything is sent."""
        local, sent = done
        return Turn(action, who, local, sent, flush=True)
