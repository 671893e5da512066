"""Who may commit an offset, by members and generations of its group (KIP-447)."""

from __future__ import annotations

from kafka_proto.broker.group.rebalance import AnyGroup, Group, check
from kafka_proto.errors import Error
from kafka_proto.requests.groups import OffsetCommitRequest, TxnOffsetCommitRequest

CommitRequest = OffsetCommitRequest | TxnOffsetCommitRequest


def check_group(group: AnyGroup | None, request: CommitRequest) -> Error:
    """Say whether a commit may be made: by a member of this generation (3.x: `GroupCoordinator.validateOffsetCommit`).

    Transactions are let in to a group that is not there, and those of requests without member to any group.
    """
    transactional = isinstance(request, TxnOffsetCommitRequest)
    if group is None and not transactional and request.generation_id >= 0:
        return Error.ILLEGAL_GENERATION
    return check_member(group or Group(), request, transactional)


def check_known_group(group: AnyGroup | None, request: CommitRequest) -> Error:
    """As `check_group`, but a generation of a group that is not there is refused in transactions, too (4.0)."""
    transactional = isinstance(request, TxnOffsetCommitRequest)
    if group is None and request.generation_id >= 0:
        newer = not transactional and request.version >= 9
        return Error.GROUP_ID_NOT_FOUND if newer else Error.ILLEGAL_GENERATION
    return check_member(group or Group(), request, transactional)


def check_member(group: AnyGroup, request: CommitRequest, transactional: bool) -> Error:
    """Say whether a member, generation and instance are those of a group (`ClassicGroup.validateOffsetCommit`)."""
    if request.generation_id < 0 and not group.members:
        return Error.NONE
    if request.generation_id >= 0 or request.member_id or request.group_instance_id is not None:
        error = check(group, request.member_id, request.group_instance_id, request.generation_id)
        if error is not Error.NONE:
            return error
    elif not transactional:
        return Error.UNKNOWN_MEMBER_ID
    return Error.REBALANCE_IN_PROGRESS if group.awaits_leader and not transactional else Error.NONE
