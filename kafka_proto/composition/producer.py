"""A transactional producer as an actor: Kafka's calls are its commands, and a time-out asks again on a new connection.

What was asked before may still arrive: a request that timed out is not taken back.
"""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from harness.model import Actor, FrozenMap, Kind, Message, Op, Turn, fresh
from kafka_proto.clients import producer as client
from kafka_proto.clients.family import Family
from kafka_proto.clients.producer import Producer, Request, State
from kafka_proto.clients.verdicts import Verdict
from kafka_proto.composition.messages import BrokerResponse, ClientRequest
from kafka_proto.requests import EndTxnRequest, ProduceRequest

CALLS = {
    "InitTransactions": "init_transactions", "BeginTransaction": "begin_transaction", "Send": "send",
    "CommitTransaction": "commit_transaction", "AbortTransaction": "abort_transaction",
}
"""The commands, and the calls that they are."""
TIMEOUT = "RequestTimeout"
DELIVERY_TIMEOUT = "DeliveryTimeout"


@attrs.frozen
class ProducerState:
    """A producer, the call under way, its request, and what the application knows of its transactions."""

    producer: Producer = Producer()
    call: str = ""
    request: Request | None = None
    correlation: int = attrs.field(default=0, metadata=fresh("correlation", "self"))
    sent: int = 0
    """Records of this transaction."""
    acknowledged: FrozenMap[int, tuple[tuple[str, str], ...]] = FrozenMap()
    """Of each transaction, the partitions and values of acknowledged records."""
    outcomes: FrozenMap[int, str] = FrozenMap()
    """Of each transaction that was ended: `commit` or `abort`, acknowledged."""


class TransactionalProducer(Actor[ProducerState]):
    """The actor of one producer with a transactional id of its own."""

    def __init__(self, name: str, broker: str, family: Family, partitions: tuple[str, ...], transactions: int,
                 records: int) -> None:
        self.name = name
        self.broker = broker
        self.family = family
        self.partitions = partitions
        self.transactions = transactions
        self.records = records
        self.initial = ProducerState()

    def step(self, local: ProducerState) -> Iterable[Turn[ProducerState]]:
        if not local.call:
            yield from self.commands(local)
        elif local.request is None:
            yield self.asks(local)

    def commands(self, local: ProducerState) -> Iterable[Turn[ProducerState]]:
        """Yield the calls that an application may make now."""
        state = local.producer.state
        if state is State.UNINITIALIZED:
            yield self.command(local, "InitTransactions")
        if state is State.READY and local.producer.transaction < self.transactions:
            yield self.command(local, "BeginTransaction")
        if state is State.IN_TRANSACTION:
            if local.sent < self.records:
                for partition in self.partitions:
                    yield self.command(local, "Send", partition)
            yield self.command(local, "CommitTransaction")
        if state in (State.IN_TRANSACTION, State.ABORTABLE_ERROR):
            yield self.command(local, "AbortTransaction")

    def command(self, local: ProducerState, action: str, partition: str = "") -> Turn[ProducerState]:
        number = local.producer.transaction
        record = (partition, f"{self.name}/{number}/{local.sent + 1}") if partition else None
        after = attrs.evolve(local, producer=client.called(local.producer, CALLS[action], record), call=action)
        if action == "Send":
            after = attrs.evolve(after, sent=local.sent + 1)
        value = "" if record is None else FrozenMap({"partition": partition, "value": record[1]})
        op = Op(self.name, CALLS[action], "invoke", value)
        return attrs.evolve(self.settled(after, action, (self.name, partition) if partition else (self.name,)),
                            kind=Kind.COMMAND, op=op)

    def settled(self, local: ProducerState, action: str, args: tuple[str, ...]) -> Turn[ProducerState]:
        """Return a turn after which a call that needs no request, or no more, is over."""
        producer = local.producer
        if client.ended_without_request(producer):
            number, outcome = producer.transaction, "commit" if producer.state is State.COMMITTING else "abort"
            local = attrs.evolve(local, producer=client.ended(producer), outcomes=local.outcomes.set(number, outcome))
        if client.next_request(self.family, local.producer, self.name, 1) is None:
            local = attrs.evolve(local, call="", sent=local.sent if local.producer.state is State.IN_TRANSACTION else 0)
        return Turn(action, args, local)

    def asks(self, local: ProducerState) -> Turn[ProducerState]:
        """Send the next request of the call under way, under a new number: an answer to an older one is ignored."""
        request = client.next_request(self.family, local.producer, self.name, 1)
        assert request is not None
        number = local.correlation + 1
        sent = ClientRequest(request, correlation=number, source=self.name, dest=self.broker)
        after = attrs.evolve(local, producer=client.asked(self.family, local.producer, request), request=request,
                             correlation=number)
        return Turn("Ask", (self.name, type(request).__name__.removesuffix("Request")), after, (sent,))

    def on_message(self, local: ProducerState, message: Message) -> Iterable[Turn[ProducerState]]:
        if not isinstance(message, BrokerResponse):
            return
        who = (self.name, message.source)
        if local.request is None or message.correlation != local.correlation:
            yield Turn("IgnoreResponse", who, local)
            return
        before, request = local.producer, local.request
        producer, found = client.answered(self.family, before, request, message.response)
        after = attrs.evolve(local, producer=producer, request=None)
        if found is Verdict.DONE:
            after = self.noted(after, before, request)
        error = client.error_of(message.response)
        turn = self.settled(after, "ReceiveResponse", who)
        op = None
        if found in (Verdict.ABORTABLE, Verdict.FATAL):
            op = Op(self.name, CALLS[local.call], "fail" if error.is_definite else "info", str(error))
            turn = attrs.evolve(turn, local=attrs.evolve(turn.local, call=""))
        elif not turn.local.call:
            op = Op(self.name, CALLS[local.call], "ok", "")
        yield attrs.evolve(turn, op=op, detail=f"{error} {found.value}")

    def noted(self, local: ProducerState, before: Producer, request: Request) -> ProducerState:
        """Keep what was acknowledged to the application."""
        number = before.transaction
        if isinstance(request, ProduceRequest):
            assert before.sending is not None
            known = local.acknowledged.get(number, ())
            return attrs.evolve(local, acknowledged=local.acknowledged.set(number, (*known, before.sending)))
        if isinstance(request, EndTxnRequest):
            outcome = "commit" if request.committed else "abort"
            return attrs.evolve(local, outcomes=local.outcomes.set(number, outcome))
        return local

    def timers(self, local: ProducerState) -> tuple[str, ...]:
        if local.request is None:
            return ()
        return (TIMEOUT, DELIVERY_TIMEOUT) if isinstance(local.request, ProduceRequest) else (TIMEOUT,)

    def timer_fired(self, local: ProducerState, timer: str) -> Iterable[Turn[ProducerState]]:
        """Give the connection up and ask again, the same with the same sequences; or give the record up."""
        asks_again = attrs.evolve(local, request=None)
        if timer == TIMEOUT:
            yield Turn(timer, (self.name,), asks_again)
            return
        after = attrs.evolve(asks_again, call="", producer=client.expired(self.family, local.producer))
        yield Turn(timer, (self.name,), after, op=Op(self.name, CALLS[local.call], "info", timer))
