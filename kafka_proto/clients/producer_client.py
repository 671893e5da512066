"""The producer's actor: it carries out an application's commands, keeps connections, says which timers are armed.

One without transactions writes records and nothing else; any broker gives it a producer id: it asks one after another.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from harness.model import Actor, FrozenMap, Kind, Message, Op, Turn, Value
from kafka_proto.broker.ghosts import MOST_NUMBERED, offset, record, text_of
from kafka_proto.broker.group.coordinator import OffsetRecord
from kafka_proto.broker.look_ups import UNKNOWN, about_of
from kafka_proto.broker.messages import LeaderResponse, LookUp, Response
from kafka_proto.broker.placement import Placement
from kafka_proto.clients import producer as producers
from kafka_proto.clients.client_connections import DELIVERY_TIMEOUT, REQUEST_TIMEOUT, ClientConnections, Sent
from kafka_proto.clients.producer import COMPLETING, Family, OffsetsToCommit, Producer, ProducerStatus, answers, sending
from kafka_proto.clients.producer.answers import AnswerVerdict, backs_off, delivery_timed_out, rested, without_end
from kafka_proto.clients.producer.sending import ends_unasked
from kafka_proto.requests import OFFSETS_PARTITION, ProduceRequest, TxnOffsetCommitRequest

IDLE = ""
REFUSED = "refused"
"""The operation of a call that is refused."""
GROUP = "G"
"""The group whose offsets of the first partition an application commits with its transactions."""


@attrs.frozen
class ApplicationCall:
    """What an application asks of its producer, by the name of the method: input from outside."""

    name: str
    partition: str = ""
    text: str = ""
    """What is written, beside what the record says of its transaction."""


@attrs.frozen
class Written:
    """A ghost: a record that a leader acknowledged, and the partition where it is.

    Where it has no transaction, also the offset at which its leader said that it is; -1 where it did not say.
    """

    partition: str
    record: str
    offset: int = -1


@attrs.frozen
class ClientState:
    """A producer with its connections; and, as ghosts, what the application did and was told."""

    producer: Producer = Producer()
    connections: ClientConnections = ClientConnections()
    inits: int = 0
    """How many InitProducerId were sent without a transactional id: each goes to the next broker."""
    operation: str = IDLE
    """What the application waits for: `init`, `commit`, `abort`, or nothing."""
    transactions: int = 0
    """How many the application began."""
    sends: int = 0
    """How many records it wrote in the present one, or in all without transactions."""
    commits: int = 0
    """How many offsets it committed with the present one."""
    acknowledged: tuple[Written, ...] = ()
    outcomes: FrozenMap[str, str] = FrozenMap()
    """By transaction: `commit` or `abort`, once that was acknowledged."""
    verdicts: frozenset[str] = frozenset()
    """The verdicts that it took."""


class ProducerClient(Actor[ClientState]):
    """The actor of one producer."""

    def __init__(
        self, name: str, family: Family, placement: Placement, sizes: Mapping[str, int], timeouts: frozenset[str], *,
        looks_up: bool = False,
    ) -> None:
        self.name = name
        self.family = family
        self.placement = placement
        self.tid = placement.tid_of(name) if name in placement.producers else None
        self.sizes = sizes
        """Those of the model: how many transactions, records and offsets, and how many batches may be in flight."""
        self.timeouts = timeouts
        self.looks_up = looks_up
        """Whether leaders may move, so that a broker that does not answer, or is no leader, leads to a look-up."""
        self.initial = ClientState(Producer(self.tid))

    def transaction(self, local: ClientState) -> str:
        """Return the ghost of the present transaction; records without one are their producer's."""
        return self.name if self.tid is None else f"{self.name}.{local.transactions}"

    def step(self, local: ClientState) -> Iterable[Turn[ClientState]]:
        """The application's choices."""
        status, begun = local.producer.status, local.transactions
        if local.operation:
            return
        if self.tid is None:
            yield from self.sends(local)
        elif status is ProducerStatus.UNINITIALIZED:
            yield self.init(local)
        elif status is ProducerStatus.READY and begun < self.sizes["transactions"] and not local.producer.is_in_doubt:
            yield self.begin(local)
        elif status is ProducerStatus.IN_TRANSACTION:
            yield from self.sends(local)
            if local.commits < self.sizes["offsets"]:
                yield self.send_offsets(local)
            if local.sends or local.commits:
                yield self.commit(local)
                yield self.abort(local)
        elif status is ProducerStatus.ABORTABLE_ERROR:
            yield self.abort(local)

    def sends(self, local: ClientState) -> Iterable[Turn[ClientState]]:
        """The choices of where to write."""
        if local.sends < self.sizes["records"]:
            for partition in self.placement.partitions:
                yield self.send(local, partition)

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
        """Begin an operation; if no broker needs to be asked, it ends at once."""
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
        who: tuple[str, ...] = (self.name,)
        if kind == REQUEST_TIMEOUT:
            local, who = self.reconnected(local, broker), (self.name, broker)
        elif kind == DELIVERY_TIMEOUT:
            local = attrs.evolve(local, producer=delivery_timed_out(self.family, local.producer))
        else:
            local = attrs.evolve(
                local, producer=rested(local.producer), connections=local.connections.rested()
            )
        yield self.turn(local, kind, who)

    def reconnected(self, local: ClientState, broker: str) -> ClientState:
        """Give the connection to a broker up: what was in it may still arrive."""
        connections, given_up = local.connections.give_up(broker)
        lost = [sent for sent in given_up if not isinstance(sent.request, LookUp)]
        for sent in lost:
            connections = self.lost(connections, sent.request)
        called = any(not isinstance(sent.request, ProduceRequest) for sent in lost)
        producer = answers.broker_lost(self.family, local.producer, [sent.number for sent in lost], was_called=called)
        return attrs.evolve(local, producer=producer, connections=connections)

    def lost(self, connections: ClientConnections, request: Value) -> ClientConnections:
        """Return the connections once a request went to a former leader, if leaders move and it needs one."""
        needs_leader = self.tid is not None or isinstance(request, ProduceRequest)
        if not (self.looks_up and needs_leader):
            return connections
        return attrs.evolve(connections, leaders=connections.leaders.lost(about_of(request)))

    def on_message(self, local: ClientState, message: Message) -> Iterable[Turn[ClientState]]:
        assert isinstance(message, Response)
        who = (self.name, message.source)
        asked = local.connections.about(message)
        if asked is None:
            yield Turn("IgnoreResponse", who, local)
            return
        local = attrs.evolve(local, connections=local.connections.answered(message))
        if not isinstance(message.response, LeaderResponse):
            local = self.answered(local, asked, message.response)
        yield self.turn(local, f"Receive{message.type}", who)

    def answered(self, local: ClientState, asked: Sent, response: Any) -> ClientState:
        """Take the answer to a request, and note what its application is told."""
        acknowledged, request, connections = local.acknowledged, asked.request, local.connections
        if isinstance(request, ProduceRequest):
            found = answers.produced(self.family, local.producer, asked.number, response.error)
            told = self.tid is None and response.base_offset >= 0
            acknowledged += tuple(
                Written(request.partition, text, response.base_offset + n if told else -1)
                for n, text in enumerate(found.acknowledged)
            )
        else:
            found = answers.answered(self.family, local.producer, request, response)
        if isinstance(request, TxnOffsetCommitRequest) and found.verdict is AnswerVerdict.DONE:
            committed = text_of(OffsetRecord(request.group_id, request.partition, request.offset))
            acknowledged += (Written(OFFSETS_PARTITION, committed),)
        if found.verdict is AnswerVerdict.LOOK_UP:
            connections = self.lost(connections, request)
        return attrs.evolve(
            local, producer=found.producer, connections=connections, acknowledged=acknowledged,
            verdicts=local.verdicts | {f"{type(request).__name__} {found.verdict}"},
        )

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
        producer, connections, inits, out = local.producer, local.connections, local.inits, list[Message]()
        ghost = self.transaction(local)
        for number, produce in sending.next_produces(self.family, producer, self.sizes["in-flight"]):
            leader = connections.leaders.of(produce.partition, self.placement)
            if leader != UNKNOWN:
                producer = sending.sent_batch(producer, number, produce)
                connections, message = connections.ask(self.name, leader, produce, ghost, number)
                out.append(message)
        if ends_unasked(producer):
            producer = without_end(producer)
        call, called = sending.next_call(self.family, producer), UNKNOWN
        if call is not None and self.tid is None:
            called, inits = self.placement.brokers[inits % len(self.placement.brokers)], inits + 1
        elif call is not None:
            called = connections.leaders.of(about_of(call), self.placement)
        if call is not None and called != UNKNOWN:
            producer = sending.sent_call(producer, call)
            connections, message = connections.ask(self.name, called, call, ghost)
            out.append(message)
        connections, look_ups = connections.look_up(self.name, self.placement, ghost)
        after = attrs.evolve(local, producer=producer, connections=connections, inits=inits)
        return after, (*out, *look_ups)
