"""The actor of somebody who deletes records, now and then, up to the high watermark (KIP-107)."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from harness.model import Actor, Kind, Message, Turn
from kafka_proto.exactly_once.messages import Request, Response
from kafka_proto.exactly_once.placement import Placement
from kafka_proto.requests import DeleteRecordsRequest

NAME = "admin"
VERSION = 1
HIGH_WATERMARK = -1


@attrs.frozen
class AdministratorState:
    deletions: int = 0
    """How many it asked for; each has a connection of its own."""


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
        number = local.deletions + 1
        for partition in self.placement.partitions:
            request = DeleteRecordsRequest(VERSION, partition, HIGH_WATERMARK)
            sent = Request(request, number, number, source=NAME, dest=self.placement.leader(partition))
            yield Turn(
                "DeleteRecords", (NAME, partition), AdministratorState(number), (sent,), kind=Kind.COMMAND
            )

    def on_message(
        self, local: AdministratorState, message: Message
    ) -> Iterable[Turn[AdministratorState]]:
        assert isinstance(message, Response)
        yield Turn(f"Receive{message.type}", (NAME, message.source), local)
