"""Members and generations of a group: who may commit an offset (KIP-447), and a rebalance as one event."""

from __future__ import annotations

from typing import Any, Protocol

import attrs

from harness.model import FrozenMap
from kafka_proto.requests.error import Error
from kafka_proto.requests.offsets import (
    JoinGroupRequest,
    JoinGroupResponse,
    OffsetCommitRequest,
    TxnOffsetCommitRequest,
)

CommitRequest = OffsetCommitRequest | TxnOffsetCommitRequest


@attrs.frozen
class Group:
    """A group's generation and members; without members it is Empty."""

    generation: int = 0
    members: FrozenMap[str, str | None] = FrozenMap()
    """The instance of each member, None of a dynamic one."""
    awaits_leader: bool = False
    """Whether a rebalance has ended and the leader has not assigned yet; a join here assigns at once."""

    def member_of(self, instance: str) -> str | None:
        """Return the member that a static instance is now."""
        return next((member for member, known in self.members.items() if known == instance), None)


class Membership(Protocol):
    """What knows the members of a group by id, and by instance."""

    @property
    def members(self) -> FrozenMap[str, Any]: ...

    def member_of(self, instance: str) -> str | None: ...


def refused_join(request: JoinGroupRequest, error: Error) -> JoinGroupResponse:
    """Refuse a member by its own name; the sync that follows is refused alike."""
    return JoinGroupResponse(error, member_id=request.member_id, sync_error=error)


def join(group: Group, request: JoinGroupRequest, fresh_member: str) -> tuple[Group, JoinGroupResponse]:
    """Let a member join, and complete the rebalance at once: a new generation with everybody in it.

    A static instance that joins again takes the place of its former self, without a rebalance (KIP-345).
    """
    instance = request.group_instance_id
    former = None if instance is None else group.member_of(instance)
    error = unknown_member(group, request.member_id, instance) if request.member_id else Error.NONE
    if error is not Error.NONE:
        return group, refused_join(request, error)
    member = request.member_id or fresh_member
    if former is not None and not request.member_id:
        replaced = attrs.evolve(group, members=group.members.without(former).set(member, instance))
        return replaced, JoinGroupResponse(Error.NONE, group.generation, member)
    joined = Group(group.generation + 1, group.members.set(member, group.members.get(member, instance)))
    return joined, JoinGroupResponse(Error.NONE, joined.generation, member)


def leave(group: Group, member: str) -> tuple[Group, Error]:
    """Let a member go; those that stay rebalance, which is a generation, too."""
    if member not in group.members:
        return group, Error.UNKNOWN_MEMBER_ID
    return Group(group.generation + 1, group.members.without(member)), Error.NONE


def unknown_member(group: Membership, member: str, instance: str | None) -> Error:
    """Say what is wrong with a member id and an instance, which has to be that member's (`validateMember`)."""
    current = member if instance is None else group.member_of(instance)
    if current is None:
        return Error.UNKNOWN_MEMBER_ID
    if current != member:
        return Error.FENCED_INSTANCE_ID
    return Error.NONE if member in group.members else Error.UNKNOWN_MEMBER_ID


def check_group(group: Group | None, request: CommitRequest) -> Error:
    """Say whether a commit may be made: by a member of this generation (3.x: `GroupCoordinator.validateOffsetCommit`).

    Transactions are let in to a group that is not there, and those of requests without member to any group.
    """
    transactional = isinstance(request, TxnOffsetCommitRequest)
    if group is None and not transactional and request.generation_id >= 0:
        return Error.ILLEGAL_GENERATION
    return check_member(group or Group(), request, transactional)


def check_known_group(group: Group | None, request: CommitRequest) -> Error:
    """As `check_group`, but a generation of a group that is not there is refused in transactions, too (4.0)."""
    transactional = isinstance(request, TxnOffsetCommitRequest)
    if group is None and request.generation_id >= 0:
        newer = not transactional and request.version >= 9
        return Error.GROUP_ID_NOT_FOUND if newer else Error.ILLEGAL_GENERATION
    return check_member(group or Group(), request, transactional)


def check_member(group: Group, request: CommitRequest, transactional: bool) -> Error:
    """Say whether a member, generation and instance are those of a group (`ClassicGroup.validateOffsetCommit`)."""
    if request.generation_id < 0 and not group.members:
        return Error.NONE
    if request.generation_id >= 0 or request.member_id or request.group_instance_id is not None:
        error = unknown_member(group, request.member_id, request.group_instance_id)
        if error is not Error.NONE:
            return error
        if request.generation_id != group.generation:
            return Error.ILLEGAL_GENERATION
    elif not transactional:
        return Error.UNKNOWN_MEMBER_ID
    return Error.REBALANCE_IN_PROGRESS if group.awaits_leader and not transactional else Error.NONE
