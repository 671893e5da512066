"""Members and generations of a group: who may commit an offset (KIP-447)."""

from __future__ import annotations

from typing import Any, Protocol

import attrs

from harness.model import FrozenMap
from kafka_proto.requests.error import Error
from kafka_proto.requests.offsets import OffsetCommitRequest, TxnOffsetCommitRequest

CommitRequest = OffsetCommitRequest | TxnOffsetCommitRequest


@attrs.frozen
class Group:
    """What commits to a group are fenced by; all that there is of a group that commits have made and nobody joined."""

    generation: int = 0
    members: FrozenMap[str, str | None] = FrozenMap()
    """The instance of each member, None of a dynamic one."""
    awaits_leader: bool = False
    """Whether a rebalance has ended and the leader has not assigned yet."""

    def member_of(self, instance: str) -> str | None:
        """Return the member that a static instance is now."""
        return next((member for member, known in self.members.items() if known == instance), None)


class Membership(Protocol):
    """What a commit is fenced by, whatever kind a group is of."""

    @property
    def generation(self) -> int: ...

    @property
    def awaits_leader(self) -> bool: ...

    @property
    def members(self) -> FrozenMap[str, Any]: ...

    def member_of(self, instance: str) -> str | None: ...


def unknown_member(group: Membership, member: str, instance: str | None) -> Error:
    """Say what is wrong with a member id and an instance, which has to be that member's (`validateMember`)."""
    current = member if instance is None else group.member_of(instance)
    if current is None:
        return Error.UNKNOWN_MEMBER_ID
    if current != member:
        return Error.FENCED_INSTANCE_ID
    return Error.NONE if member in group.members else Error.UNKNOWN_MEMBER_ID


def check_group(group: Membership | None, request: CommitRequest) -> Error:
    """Say whether a commit may be made: by a member of this generation (3.x: `GroupCoordinator.validateOffsetCommit`).

    Transactions are let in to a group that is not there, and those of requests without member to any group.
    """
    transactional = isinstance(request, TxnOffsetCommitRequest)
    if group is None and not transactional and request.generation_id >= 0:
        return Error.ILLEGAL_GENERATION
    return check_member(group or Group(), request, transactional)


def check_known_group(group: Membership | None, request: CommitRequest) -> Error:
    """As `check_group`, but a generation of a group that is not there is refused in transactions, too (4.0)."""
    transactional = isinstance(request, TxnOffsetCommitRequest)
    if group is None and request.generation_id >= 0:
        newer = not transactional and request.version >= 9
        return Error.GROUP_ID_NOT_FOUND if newer else Error.ILLEGAL_GENERATION
    return check_member(group or Group(), request, transactional)


def check_member(group: Membership, request: CommitRequest, transactional: bool) -> Error:
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
