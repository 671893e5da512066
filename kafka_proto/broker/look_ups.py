"""Looking up leaders: a broker answers from its metadata cache, stale or not; a client asks one broker after another.

What a client looks up is a partition or a transactional id. Where leaders stay for good there are no look-ups.
"""

from __future__ import annotations

from typing import Any

import attrs

from harness.model import FrozenMap, Local, Message
from kafka_proto.broker.messages import FindCoordinatorRequest, LeaderResponse, LookUp, MetadataRequest, Request
from kafka_proto.broker.parts import known
from kafka_proto.broker.placement import Placement
from kafka_proto.broker.roles import Role, RoleStep
from kafka_proto.requests import OFFSETS_PARTITION

UNKNOWN = ""


class LookUps(Role):
    """What a broker answers to a client that looks up a leader."""

    parts = ()

    def __init__(self, name: str, placement: Placement) -> None:
        self.name = name
        self.placement = placement

    def receive(self, local: Local, message: Message) -> RoleStep | None:
        match message:
            case Request(request=MetadataRequest(partition=str(about))):
                p = about
            case Request(request=FindCoordinatorRequest(transactional_id=str(about))):
                p = self.placement.transaction_partition(about)
            case _:
                return None
        sent = self.reply(local, message, LeaderResponse(about, known(local, p).leader)).sent
        return RoleStep(local, sent, action=f"Receive{message.type}", who=(self.name, message.source))


@attrs.frozen
class Leaders:
    """The brokers that a client takes for the leaders; what is not here has its first leader."""

    found: FrozenMap[str, str] = FrozenMap()
    """`UNKNOWN` until the look-up is answered."""
    resting: frozenset[str] = frozenset()
    """What is looked up after a pause."""
    asked: int = 0
    """How many look-ups were sent: each goes to the next broker."""

    def of(self, about: str, placement: Placement) -> str:
        """Return the leader of a partition or the coordinator of a transactional id, or `UNKNOWN`."""
        first = placement.coordinator if about in placement.transactional_ids else placement.leader
        return self.found[about] if about in self.found else first(about)

    def lost(self, about: str, *, rests: bool = False) -> Leaders:
        """Return the leaders as they are known after one answered that it is none, or did not answer."""
        resting = self.resting | {about} if rests else self.resting
        return attrs.evolve(self, found=self.found.set(about, UNKNOWN), resting=resting)

    def learned(self, response: LeaderResponse) -> Leaders:
        """Take an answer; if no leader is known, the next look-up comes after a pause."""
        if response.leader == UNKNOWN:
            return self.lost(response.about, rests=True)
        return attrs.evolve(self, found=self.found.set(response.about, response.leader))

    def rested(self) -> Leaders:
        """Return the leaders after the pause."""
        return attrs.evolve(self, resting=frozenset())

    @property
    def unknown(self) -> tuple[str, ...]:
        """What is to be looked up now."""
        return tuple(about for about, leader in self.found.items() if leader == UNKNOWN and about not in self.resting)


def look_up(about: str, placement: Placement) -> LookUp:
    """Return the request for the leader of a partition or the coordinator of a transactional id."""
    return FindCoordinatorRequest(about) if about in placement.transactional_ids else MetadataRequest(about)


def about_of(request: Any) -> str:
    """Return what the receiver of a producer's request has to lead: a partition, or its transactional id."""
    if hasattr(request, "batch"):
        return str(request.partition)
    return OFFSETS_PARTITION if hasattr(request, "group_id") else str(request.transactional_id)
