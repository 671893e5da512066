"""The actor of an administrator, which deletes records, now and then, up to the high watermark (KIP-107)."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from harness.model import Actor, FrozenMap, Kind, Message, Turn, ordered
from kafka_proto.broker.messages import Request, Response
from kafka_proto.broker.placement import Placement
from kafka_proto.requests import DeleteRecordsRequest

NAME = "admin"
VERSION = 1
HIGH_WATERMARK = -1


@attrs.frozen
class AdministratorState:
    deletions: int = 0
    """How many it asked for."""
    correlation: int = attrs.field(default=0, metadata=ordered("correlation", "self"))
    opened: FrozenMap[str, int] = attrs.field(default=FrozenMap(), metadata=ordered("connection", "self", "key"))
    """By broker: the number of the last connection; each request has one of its own."""


class Administrator(Actor[AdministratorState]):
    """Asks the leader of a partition to delete what is committed. An answer changes nothing, and none is awaited."""

    name = NAME

    def __init__(self, placement: Placement, deletions: int) -> None:
        self.placement = placement
        self.deletions = deletions
        self.initial = AdministratorState()

    def step(self, local: AdministratorState) -> Iterable[Turn[AdministratorState]]:
        if local.deletions == self.deletions:
            return
        correlation = local.correlation + 1
        for partition in self.placement.partitions:
            leader = self.placement.leader(partition)
            connection = local.opened.get(leader, 0) + 1
            request = DeleteRecordsRequest(VERSION, partition, HIGH_WATERMARK)
            sent = Request(request, correlation, connection, source=NAME, dest=leader)
            after = AdministratorState(local.deletions + 1, correlation, local.opened.set(leader, connection))
            yield Turn("DeleteRecords", (NAME, partition), after, (sent,), kind=Kind.COMMAND)

    def on_message(
        self, local: AdministratorState, message: Message
    ) -> Iterable[Turn[AdministratorState]]:
        assert isinstance(message, Response)
        yield Turn(f"Receive{message.type}", (NAME, message.source), local)
