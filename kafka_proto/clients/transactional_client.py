"""The producer's actor: it carries out an application's commands, keeps connections, says which timers are armed."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from harness.model import Actor, FrozenMap, Kind, Message, Op, Turn, Value
from kafka_proto.broker.ghosts import MOST_NUMBERED, offset, record, text_of
from kafka_proto.broker.group.offsets import OffsetRecord
from kafka_proto.broker.look_ups import UNKNOWN, about_of
from kafka_proto.broker.messages import LeaderResponse, LookUp, Response
from kafka_proto.broker.placement import Placement
from kafka_proto.clients import producer as producers
from kafka_proto.clients.client_connections import DELIVERY_TIMEOUT, REQUEST_TIMEOUT, ClientConnections, Sent
from kafka_proto.clients.producer import Family, Producer, ProducerStatus
from kafka_proto.clients.producer.answers import backs_off, delivery_timed_out, rested, without_end
from kafka_proto.clients.producer.sending import ends_unasked
from kafka_proto.clients.producer.state import COMPLETING, OffsetsToCommit
from kafka_proto.clients.producer.verdicts import AnswerVerdict
from kafka_proto.requests import OFFSETS_PARTITION, ProduceRequest, TxnOffsetCommitRequest

IDLE = ""
REFUSED = "refused"
"""The operation of a call that is refused."""
GROUP = "G"
"""Whose offsets of the first partition an application commits with its transactions."""


@attrs.frozen
class ApplicationCall:
    """What an application asks of its producer, by the name of the method: input from outside."""

    name: str
    partition: str = ""
    text: str = ""
    """What is written, beside what the record says of its transaction."""


@attrs.frozen
class Written:
    """A ghost: a record that a leader acknowledged, and the partition where it is."""

    partition: str
    record: str


@attrs.frozen
class ClientState:
    """A producer with its connections; and, as ghosts, what the application did and was told."""

    producer: Producer = Producer()
    connections: ClientConnections = ClientConnections()
    operation: str = IDLE
    """What the application waits for: `init`, `commit`, `abort`, or nothing."""
    transactions: int = 0
    """How many the application began."""
    sends: int = 0
    """How many records it wrote in the present one."""
    commits: int = 0
    """How many offsets it committed with the present one."""
    acknowledged: tuple[Written, ...] = ()
    outcomes: FrozenMap[str, str] = FrozenMap()
    """By transaction: `commit` or `abort`, once that was acknowledged."""
    verdicts: frozenset[str] = frozenset()
    """The verdicts that it took."""


class TransactionalClient(Actor[ClientState]):
    """The actor of one producer."""

    def __init__(
        self, name: str, family: Family, placement: Placement, *, transactions: int, records: int, offsets: int,
        in_flight: int, timeouts: frozenset[str], looks_up: bool = False,
    ) -> None:
        self.name = name
        self.family = family
        self.placement = placement
        self.tid = placement.tid_of(name)
        self.transactions = transactions
        self.records = records
        self.offsets = offsets
        self.in_flight = in_flight
        self.timeouts = timeouts
        self.looks_up = looks_up
        """Whether leaders may move, so that one that does not answer, or is none, is looked up."""
        self.initial = ClientState()

    def transaction(self, local: ClientState) -> str:
        """Return the ghost of the present transaction."""
        return f"{self.name}.{local.transactions}"

    def step(self, local: ClientState) -> Iterable[Turn[ClientState]]:
        """The application's choices."""
        status = local.producer.status
        if local.operation:
            return
        if status is ProducerStatus.UNINITIALIZED:
            yield self.init(local)
        elif status is ProducerStatus.READY and local.transactions < self.transactions:
            yield self.begin(local)
        elif status is ProducerStatus.IN_TRANSACTION:
            if local.sends < self.records:
                for partition in self.placement.partitions:
                    yield self.send(local, partition)
            if local.commits < self.offsets:
                yield self.send_offsets(local)
            if local.sends or local.commits:
                yield self.commit(local)
                yield self.abort(local)
        elif status is ProducerStatus.ABORTABLE_ERROR:
            yield self.abort(local)

    def on_input(self, local: ClientState, value: Value) -> Iterable[Turn[ClientState]]:
        """Do what an application calls, at any time: what makes no sense is refused as Kafka's client refuses it."""
        assert isinstance(value, ApplicationCall)
        try:
            yield self.called(local, value)
        except (producers.KafkaError, producers.IllegalState) as error:
            refused = Op(self.name, REFUSED, "fail", f"{type(error).__name__}: {error}")
            yield Turn("Refuse", (self.name, value.name), local, kind=Kind.COMMAND, op=refused)

    def called(self, local: ClientState, call: ApplicationCall) -> Turn[ClientState]:
        """Return the turn of a call. Raises KafkaError and IllegalState."""
        if local.operation:
            raise producers.IllegalState(f"the producer's {local.operation} is under way; await it")
        if call.name == "send":
            return self.send(local, call.partition, call.text)
        return {
            "init_transactions": self.init, "begin_transaction": self.begin, "commit_transaction": self.commit,
            "abort_transaction": self.abort, "send_offsets_to_transaction": self.send_offsets,
        }[call.name](local)

    def init(self, local: ClientState) -> Turn[ClientState]:
        return self.command(local, "InitTransactions", "init", producers.init_transactions(local.producer))

    def begin(self, local: ClientState) -> Turn[ClientState]:
        begun = producers.begin_transaction(local.producer)
        after = attrs.evolve(local, producer=begun, transactions=local.transactions + 1, sends=0, commits=0)
        return Turn("BeginTransaction", (self.name,), after, kind=Kind.COMMAND)

    def commit(self, local: ClientState) -> Turn[ClientState]:
        return self.command(local, "CommitTransaction", "commit", producers.commit_transaction(local.producer))

    def abort(self, local: ClientState) -> Turn[ClientState]:
        return self.command(local, "AbortTransaction", "abort", producers.abort_transaction(local.producer))

    def send(self, local: ClientState, partition: str, text: str = "") -> Turn[ClientState]:
        if partition not in self.placement.partitions:
            raise producers.IllegalState(f"there is no partition {partition!r}; {', '.join(self.placement.partitions)} "
                                         "are there")
        written = record(self.transaction(local), local.sends + 1) + (f" {text}" if text else "")
        sending = producers.send(local.producer, partition, written, adds_partitions=self.family.adds_partitions)
        after, sent = self.advanced(attrs.evolve(local, producer=sending, sends=local.sends + 1))
        return Turn("Send", (self.name, partition), after, sent, kind=Kind.COMMAND)

    def send_offsets(self, local: ClientState) -> Turn[ClientState]:
        """Commit the group's next offset with the transaction."""
        if max(local.transactions, local.commits + 1) > MOST_NUMBERED:
            raise producers.IllegalState(f"there are {MOST_NUMBERED} transactions of {MOST_NUMBERED} offsets")
        to_commit = OffsetsToCommit(
            GROUP, self.placement.partitions[0], offset(self.transaction(local), local.commits + 1)
        )
        sending = producers.send_offsets_to_transaction(local.producer, to_commit)
        after, sent = self.advanced(attrs.evolve(local, producer=sending, commits=local.commits + 1))
        return Turn("SendOffsetsToTransaction", (self.name,), after, sent, kind=Kind.COMMAND)

    def command(self, local: ClientState, action: str, operation: str, producer: Producer) -> Turn[ClientState]:
        """Begin an operation; one for which nobody needs to be asked ends at once."""
        value = self.tid if operation == "init" else self.transaction(local)
        invoked = Op(self.name, operation, "invoke", value)
        after, sent = self.advanced(attrs.evolve(local, producer=producer, operation=operation))
        if after.producer.status is ProducerStatus.READY and not sent:
            return Turn(action, (self.name,), self.ended(after, operation), kind=Kind.COMMAND)
        return Turn(action, (self.name,), after, sent, kind=Kind.COMMAND, op=invoked)

    def timers(self, local: ClientState) -> tuple[str, ...]:
        return local.connections.timers(
            self.timeouts, backs_off=backs_off(local.producer),
            delivers=any(batch.was_sent for batch in local.producer.batches),
        )

    def timer_fired(self, local: ClientState, timer: str) -> Iterable[Turn[ClientState]]:
        kind, _, broker = timer.partition(" ")
        if kind == REQUEST_TIMEOUT:
            after, sent = self.advanced(self.reconnected(local, broker))
            yield Turn(kind, (self.name, broker), after, sent)
            return
        if kind == DELIVERY_TIMEOUT:
            expired = delivery_timed_out(self.family, local.producer)
            yield self.turn(attrs.evolve(local, producer=expired), kind, (self.name,))
            return
        after, sent = self.advanced(attrs.evolve(
            local, producer=rested(local.producer), connections=local.connections.rested()
        ))
        yield Turn(kind, (self.name,), after, sent)

    def reconnected(self, local: ClientState, broker: str) -> ClientState:
        """Give the connection to a broker up: what was in it may still arrive."""
        connections, given_up = local.connections.give_up(broker)
        lost = [sent.request for sent in given_up if not isinstance(sent.request, LookUp)]
        if self.looks_up:
            for request in lost:
                connections = connections.lost(about_of(request))
        partitions = [request.partition for request in lost if isinstance(request, ProduceRequest)]
        called = any(not isinstance(request, ProduceRequest) for request in lost)
        return attrs.evolve(
            local, producer=producers.broker_lost(local.producer, partitions, was_called=called),
            connections=connections,
        )

    def on_message(self, local: ClientState, message: Message) -> Iterable[Turn[ClientState]]:
        assert isinstance(message, Response)
        who = (self.name, message.source)
        asked = local.connections.about(message)
        if asked is None:
            yield Turn("IgnoreResponse", who, local)
            return
        connections = local.connections.answered(message)
        if isinstance(message.response, LeaderResponse):
            yield self.turn(attrs.evolve(local, connections=connections), f"Receive{message.type}", who)
            return
        found = producers.answered(self.family, local.producer, asked.request, message.response)
        acknowledged, request = local.acknowledged, asked.request
        if isinstance(request, ProduceRequest):
            acknowledged += tuple(Written(request.partition, text) for text in found.acknowledged)
        elif isinstance(request, TxnOffsetCommitRequest) and found.verdict is AnswerVerdict.DONE:
            committed = text_of(OffsetRecord(request.group_id, request.partition, request.offset))
            acknowledged += (Written(OFFSETS_PARTITION, committed),)
        if self.looks_up and found.verdict is AnswerVerdict.LOOK_UP:
            connections = connections.lost(about_of(request))
        after = attrs.evolve(
            local, producer=found.producer, connections=connections, acknowledged=acknowledged,
            verdicts=local.verdicts | {f"{asked_name(asked)} {found.verdict}"},
        )
        yield self.turn(after, f"Receive{message.type}", who)

    def turn(self, local: ClientState, action: str, who: tuple[str, ...]) -> Turn[ClientState]:
        """Return a turn that sends what may be sent, and ends the application's operation where it is over."""
        after, sent = self.advanced(local)
        status, operation = after.producer.status, after.operation
        if not operation or status in (*COMPLETING, ProducerStatus.INITIALIZING):
            return Turn(action, who, after, sent)
        value = self.tid if operation == "init" else self.transaction(after)
        if status is ProducerStatus.READY:
            return Turn(action, who, self.ended(after, operation), sent, op=Op(self.name, operation, "ok", value))
        failed = Op(self.name, operation, "info", after.producer.last_error.value)
        return Turn(action, who, attrs.evolve(after, operation=IDLE), sent, op=failed)

    def ended(self, local: ClientState, outcome: str) -> ClientState:
        """Note that an operation succeeded."""
        outcomes = local.outcomes
        if outcome != "init":
            outcomes = outcomes.set(self.transaction(local), outcome)
        return attrs.evolve(local, operation=IDLE, outcomes=outcomes)

    def advanced(self, local: ClientState) -> tuple[ClientState, tuple[Message, ...]]:
        """Send what may be sent: batches, the next transactional request, and look-ups of leaders that are unknown."""
        producer, connections, out = local.producer, local.connections, list[Message]()
        ghost = self.transaction(local)
        for place, produce in producers.next_produces(self.family, producer, self.tid, self.in_flight):
            leader = connections.leads(produce.partition, self.placement)
            if leader != UNKNOWN:
                producer = producers.sent_batch(producer, place, produce)
                connections, message = connections.ask(self.name, leader, produce, ghost)
                out.append(message)
        if ends_unasked(producer):
            producer = without_end(producer)
        call = producers.next_call(self.family, producer, self.tid)
        called = UNKNOWN if call is None else connections.leads(about_of(call), self.placement)
        if call is not None and called != UNKNOWN:
            producer = producers.sent_call(producer, call)
            connections, message = connections.ask(self.name, called, call, ghost)
            out.append(message)
        connections, look_ups = connections.look_up(self.name, self.placement, ghost)
        return attrs.evolve(local, producer=producer, connections=connections), (*out, *look_ups)


def asked_name(asked: Sent) -> str:
    """Return the name of a request."""
    return type(asked.request).__name__
