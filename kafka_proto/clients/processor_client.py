"""The actor of an instance that consumes, transforms and produces: a member of a group with a transactional producer.

It joins the group by the classic protocol and reads the input partition from the group's offset. Each transaction has
what it makes of one record, and the offset after that, committed as its member and generation (KIP-447). It sends no
heartbeats: once it is silent for a session, the group goes on without it, and it hears of that by a refused commit.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import attrs

from harness.model import Kind, Message, Turn
from kafka_proto.broker.ghosts import offset
from kafka_proto.broker.messages import Response
from kafka_proto.clients import producer as producers
from kafka_proto.clients.client_connections import RETRY_BACKOFF, Sent
from kafka_proto.clients.consumer import Consumer, fetched, next_fetch
from kafka_proto.clients.producer import Family, OffsetsToCommit, ProducerStatus
from kafka_proto.clients.producer_client import GROUP, IDLE, ClientState, ProducerClient
from kafka_proto.requests import (
    OFFSETS_PARTITION,
    ConsumerFetchRequest,
    Error,
    IsolationLevel,
    JoinGroupRequest,
    OffsetFetchRequest,
    SyncGroupRequest,
)

JOIN = "join"
"""The operation that lasts until the instance knows which records are its."""
SESSION_MS, REBALANCE_MS = 10_000, 60_000
POSITIONS = 10
"""A committed offset is a number that says of which transaction it is, and the position as its last digit."""
OF_MEMBERS = (JoinGroupRequest, SyncGroupRequest, OffsetFetchRequest, ConsumerFetchRequest)
MemberRequest = JoinGroupRequest | SyncGroupRequest | OffsetFetchRequest | ConsumerFetchRequest


@attrs.frozen
class ProcessorFamily(Family):
    """A client whose consumer is in a group."""

    requires_stable: bool = True
    """Whether it asks for offsets that no open transaction has staged (OffsetFetch from 7, KIP-447)."""


@attrs.frozen
class ProcessorState(ClientState):
    """A producer, and its consumer as a member of the group."""

    member_id: str = ""
    generation_id: int = -1
    consumer: Consumer = Consumer(IsolationLevel.READ_COMMITTED)
    ahead: tuple[str, ...] = ()
    """What it has fetched, and not processed yet."""
    rests: bool = False
    """Whether it asks for the group's offset again after a pause."""


class ProcessorClient(ProducerClient):
    """One instance of the application: the first partition is its input, the last one its output."""

    initial: ProcessorState
    family: ProcessorFamily

    def __init__(self, *args: Any, **rest: Any) -> None:
        super().__init__(*args, **rest)
        self.initial = ProcessorState(self.initial.producer)
        self.source, self.sink = self.placement.partitions[0], self.placement.partitions[-1]

    def step(self, local: ClientState) -> Iterable[Turn[ClientState]]:
        """Join, then process a record in each transaction: write, commit the offset, commit."""
        assert isinstance(local, ProcessorState)
        status = local.producer.status
        if local.operation:
            return
        if status is ProducerStatus.READY and not local.member_id:
            join = JoinGroupRequest(
                3, GROUP, SESSION_MS, REBALANCE_MS, "", None, "consumer", (("range", b""),), self.name
            )
            yield self.asks(local, join, "JoinGroup", (self.name,), Kind.COMMAND)
        elif status is ProducerStatus.READY and not local.ahead:
            return
        elif status is not ProducerStatus.IN_TRANSACTION:
            yield from super().step(local)
        elif not local.sends:
            yield self.send(local, self.sink, local.ahead[0])
        elif not local.commits:
            yield self.send_offsets(local)
        else:
            yield self.commit(local)

    def asks(
        self, local: ProcessorState, request: MemberRequest, action: str, who: tuple[str, ...], kind: Kind = Kind.STEP
    ) -> Turn[ClientState]:
        """Return the turn in which it asks the leader of its input, or the coordinator of the group."""
        about = self.source if isinstance(request, ConsumerFetchRequest) else OFFSETS_PARTITION
        connections, message = local.connections.ask(
            self.name, self.placement.leader(about), request, self.transaction(local)
        )
        after = attrs.evolve(local, operation=JOIN, connections=connections, rests=False)
        return Turn(action, who, after, (message,), kind=kind)

    def send_offsets(self, local: ClientState) -> Turn[ClientState]:
        """Commit the offset after the record, as the member that it is."""
        assert isinstance(local, ProcessorState)
        position = local.consumer.positions[self.source] - len(local.ahead) + 1
        number = offset(self.transaction(local), local.commits + 1) * POSITIONS + position
        to_commit = OffsetsToCommit(GROUP, self.source, number, local.generation_id, local.member_id)
        sending = producers.send_offsets_to_transaction(local.producer, to_commit)
        after, sent = self.advanced(attrs.evolve(local, producer=sending, commits=local.commits + 1))
        return Turn("SendOffsetsToTransaction", (self.name,), after, sent, kind=Kind.COMMAND)

    def ended(self, local: ClientState, outcome: str) -> ClientState:
        """Go on with the next record; after an abort the group has another owner of the input."""
        after = super().ended(local, outcome)
        assert isinstance(after, ProcessorState)
        ahead = {"commit": after.ahead[1:], "abort": ()}.get(outcome, after.ahead)
        return attrs.evolve(after, ahead=ahead)

    def timers(self, local: ClientState) -> tuple[str, ...]:
        assert isinstance(local, ProcessorState)
        return (RETRY_BACKOFF,) if local.rests else super().timers(local)

    def timer_fired(self, local: ClientState, timer: str) -> Iterable[Turn[ClientState]]:
        assert isinstance(local, ProcessorState)
        if local.rests:
            yield self.asks(local, self.offset_fetch(), timer, (self.name,))
        else:
            yield from super().timer_fired(local, timer)

    def offset_fetch(self) -> OffsetFetchRequest:
        return OffsetFetchRequest(7, GROUP, self.source, self.family.requires_stable)

    def on_message(self, local: ClientState, message: Message) -> Iterable[Turn[ClientState]]:
        assert isinstance(message, Response) and isinstance(local, ProcessorState)
        asked = local.connections.about(message)
        if asked is None or not isinstance(asked.request, OF_MEMBERS):
            yield from super().on_message(local, message)
            return
        answered = attrs.evolve(local, connections=local.connections.answered(message))
        yield self.as_member(answered, asked, message)

    def as_member(self, local: ProcessorState, asked: Sent, message: Response) -> Turn[ClientState]:
        """Take an answer to what it asked as a member: then ask the next, or go on with what it got."""
        response: Any = message.response
        request, action, who = asked.request, f"Receive{message.type}", (self.name, message.source)
        if response.error is not Error.NONE:
            return Turn(action, who, attrs.evolve(local, operation=IDLE))
        if isinstance(request, JoinGroupRequest):
            joined = attrs.evolve(local, member_id=response.member_id, generation_id=response.generation_id)
            leads = response.leader == response.member_id
            first = ((response.member_id, self.source.encode()),) if leads else ()
            sync = SyncGroupRequest(3, GROUP, joined.generation_id, joined.member_id, assignments=first)
            return self.asks(joined, sync, action, who)
        if isinstance(request, SyncGroupRequest):
            if response.assignment == self.source.encode():
                return self.asks(local, self.offset_fetch(), action, who)
            return Turn(action, who, attrs.evolve(local, operation=IDLE))
        if isinstance(request, OffsetFetchRequest):
            if response.partition_error is not Error.NONE:
                return Turn(action, who, attrs.evolve(local, rests=True))
            position = max(response.committed_offset, 0) % POSITIONS
            positions = local.consumer.positions.set(self.source, position)
            at = attrs.evolve(local, consumer=attrs.evolve(local.consumer, positions=positions))
            return self.asks(at, attrs.evolve(next_fetch(at.consumer, self.source), min_bytes=0), action, who)
        polled = fetched(local.consumer, request, response)
        ahead = tuple(str(record) for record in polled.records)
        return Turn(action, who, attrs.evolve(local, consumer=polled.consumer, ahead=ahead, operation=IDLE))
