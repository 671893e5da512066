"""The clients of the actor composition: producers that send records, and consumers that poll.

They ask any replica, or the one that an answer named, and keep the answers: durability and stable reads are about
these. A refusal that is definite is retried. If it is not known whether a record is in the log, the operation ends with
the outcome `info`, and is not repeated.
"""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from harness.model import Actor, FrozenMap, Kind, Message, Op, Turn, Value, fresh
from kafka_proto.errors import Error
from kafka_proto.replication.messages import Poll, PollResponse, ProduceRequest, ProduceResponse

AT_ONCE = 3
"""How often a record that is refused is sent again at once, before the producer backs off."""


@attrs.frozen
class AcknowledgedRecord:
    """A record that was acknowledged by all in-sync replicas."""

    offset: int
    value: Value


@attrs.frozen
class Sending:
    """The record that a producer is sending."""

    value: Value
    acks: str


@attrs.frozen
class ReplicaClientState:
    """The local state of a producer."""

    sent: int = 0
    sending: Sending | None = None
    awaits: bool = False
    correlation: int = attrs.field(default=0, metadata=fresh("produce", "self"))
    leader: str | None = None
    """The leader, as the last answer had it."""
    tries: int = 0
    """How often the record was refused since it was begun, or since the producer last backed off."""
    acknowledged: tuple[AcknowledgedRecord, ...] = ()


class PartitionProducer(Actor[ReplicaClientState]):
    """The actor of one producer. It sends its records one after the other."""

    def __init__(self, name: str, replicas: tuple[str, ...], records: int, acks: tuple[str, ...]) -> None:
        self.name = name
        self.replicas = replicas
        self.records = records
        self.acks = acks
        self.initial = ReplicaClientState()

    def step(self, local: ReplicaClientState) -> Iterable[Turn[ReplicaClientState]]:
        if local.sending is None and local.sent < self.records:
            value = f"{self.name}-{local.sent + 1}"
            for acks in self.acks:
                begun = attrs.evolve(local, sent=local.sent + 1, sending=Sending(value, acks))
                op = Op(self.name, "send", "invoke", FrozenMap({"value": value, "acks": acks}))
                for replica in self.asked(local):
                    turn = self.request(begun, replica, "Send", (self.name, replica, f"acks={acks}"))
                    yield attrs.evolve(turn, kind=Kind.COMMAND, op=op)
        if local.sending is not None and not local.awaits and local.tries <= AT_ONCE:
            for replica in self.asked(local):
                yield self.request(local, replica, "SendAgain", (self.name, replica))

    def asked(self, local: ReplicaClientState) -> tuple[str, ...]:
        """Return the replicas that the producer may ask."""
        return self.replicas if local.leader is None else (local.leader,)

    def request(
        self, local: ReplicaClientState, replica: str, action: str, args: tuple[str, ...]
    ) -> Turn[ReplicaClientState]:
        assert local.sending is not None
        number = local.correlation + 1
        produce = ProduceRequest(local.sending.value, local.sending.acks, number, source=self.name, dest=replica)
        return Turn(action, args, attrs.evolve(local, awaits=True, correlation=number), (produce,))

    def on_message(self, local: ReplicaClientState, message: Message) -> Iterable[Turn[ReplicaClientState]]:
        action, who = "ReceiveProduceResponse", (self.name, message.source)
        if not isinstance(message, ProduceResponse):
            return
        if not local.awaits or message.correlation != local.correlation:
            yield Turn("IgnoreProduceResponse", who, local)
            return
        refused = message.error is Error.NOT_LEADER_OR_FOLLOWER
        leader = message.current_leader if refused else message.source
        after = attrs.evolve(local, awaits=False, leader=None if refused and leader == message.source else leader)
        if message.error is Error.NONE:
            if local.sending is not None and local.sending.acks == "all":
                kept = AcknowledgedRecord(message.base_offset, local.sending.value)
                after = attrs.evolve(after, acknowledged=(*local.acknowledged, kept))
            yield self.ended(after, action, who, "ok", offset=message.base_offset)
        elif message.error.is_definite or refused:
            yield Turn(action, who, attrs.evolve(after, tries=local.tries + 1))
        else:
            yield self.ended(after, action, who, "info", error=str(message.error))

    def ended(
        self, local: ReplicaClientState, action: str, who: tuple[str, ...], outcome: str, **said: Value
    ) -> Turn[ReplicaClientState]:
        """End the operation; with the outcome `info` it is not known whether the record is in the log."""
        assert local.sending is not None
        value = FrozenMap({"value": local.sending.value, "acks": local.sending.acks, **said})
        after = attrs.evolve(local, awaits=False, sending=None, tries=0)
        return Turn(action, who, after, op=Op(self.name, "send", outcome, value))

    def timers(self, local: ReplicaClientState) -> tuple[str, ...]:
        if local.awaits:
            return ("RequestTimeout",)
        return ("RetryBackoff",) if local.tries > AT_ONCE else ()

    def timer_fired(self, local: ReplicaClientState, timer: str) -> Iterable[Turn[ReplicaClientState]]:
        if timer == "RetryBackoff":
            yield Turn(timer, (self.name,), attrs.evolve(local, tries=0, leader=None))
            return
        after = attrs.evolve(local, leader=None)
        yield self.ended(after, timer, (self.name,), "info", error=str(Error.REQUEST_TIMED_OUT))


@attrs.frozen
class Read:
    """What a consumer was served: the value at an offset, None if there was none, under which high watermark."""

    offset: int
    value: Value
    high_watermark: int
    leader_epoch: int


@attrs.frozen
class ConsumerState:
    """The local state of a consumer."""

    polls: int = 0
    awaits: bool = False
    asked: int = 0
    """The offset that was asked for last."""
    position: int = 0
    """The offset below which everything was read."""
    leader: str | None = None
    reads: tuple[Read, ...] = ()


class PartitionConsumer(Actor[ConsumerState]):
    """The actor of one consumer: it reads on, or the last record again. A poll that fails is not repeated."""

    def __init__(self, name: str, replicas: tuple[str, ...], polls: int) -> None:
        self.name = name
        self.replicas = replicas
        self.polls = polls
        self.initial = ConsumerState()

    def step(self, local: ConsumerState) -> Iterable[Turn[ConsumerState]]:
        if local.awaits or local.polls >= self.polls:
            return
        for offset in sorted({local.position, max(local.position - 1, 0)}):
            for replica in self.replicas if local.leader is None else (local.leader,):
                number = local.polls + 1
                poll = Poll(offset, number, source=self.name, dest=replica)
                yield Turn(
                    "Poll", (self.name, replica, f"offset={offset}"),
                    attrs.evolve(local, polls=number, awaits=True, asked=offset), (poll,), kind=Kind.COMMAND,
                    op=Op(self.name, "poll", "invoke", FrozenMap({"offset": offset})),
                )

    def on_message(self, local: ConsumerState, message: Message) -> Iterable[Turn[ConsumerState]]:
        action, who = "ReceivePollResponse", (self.name, message.source)
        if not isinstance(message, PollResponse):
            return
        if not local.awaits or message.correlation != local.polls:
            yield Turn("IgnorePollResponse", who, local)
        elif message.error is not Error.NONE:
            leader = None if message.leader == message.source else message.leader
            value = FrozenMap({"offset": local.asked, "error": str(message.error)})
            after = attrs.evolve(local, awaits=False, leader=leader)
            yield Turn(action, who, after, op=Op(self.name, "poll", "fail", value))
        else:
            found = None if message.entry is None else message.entry.value
            read = Read(local.asked, found, message.high_watermark, message.leader_epoch)
            position = max(local.position, local.asked + (message.entry is not None))
            after = attrs.evolve(
                local, awaits=False, leader=message.source, position=position, reads=(*local.reads, read)
            )
            yield Turn(action, who, after, op=Op(self.name, "poll", "ok", FrozenMap(attrs.asdict(read))))

    def timers(self, local: ConsumerState) -> tuple[str, ...]:
        return ("RequestTimeout",) if local.awaits else ()

    def timer_fired(self, local: ConsumerState, timer: str) -> Iterable[Turn[ConsumerState]]:
        value = FrozenMap({"offset": local.asked, "error": str(Error.REQUEST_TIMED_OUT)})
        after = attrs.evolve(local, awaits=False, leader=None)
        yield Turn(timer, (self.name,), after, op=Op(self.name, "poll", "info", value))


TYPES: tuple[type, ...] = (AcknowledgedRecord, Sending, ReplicaClientState, Read, ConsumerState)
