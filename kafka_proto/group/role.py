"""The group coordinator as a role: commits become batches of its offsets log, markers of that log make them visible."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from harness.model import FrozenMap
from kafka_proto.group.membership import CommitRequest, Group, join, leave, refused_join
from kafka_proto.group.offsets import OffsetRecord, Offsets, replay
from kafka_proto.leader.verification import OF_COORDINATORS
from kafka_proto.log.records import RecordBatch
from kafka_proto.requests.error import Error
from kafka_proto.requests.offsets import (
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
    TxnOffsetCommitRequest,
)


@attrs.frozen
class GroupDecisions:
    """What a group coordinator decides. A version of a broker lists them."""

    check_group: Callable[[Group | None, CommitRequest], Error]
    refused_commit: Callable[[Error], Error]
    """What a client is told of offsets that could not be verified or appended."""
    before_check: Callable[[GroupCoordinator, str], GroupCoordinator]
    """What becomes of a group by offsets of a transaction, whether or not they are taken then."""


@attrs.frozen
class GroupCoordinator:
    """The leader of a partition of the offsets log: its groups, and the offsets that the log makes."""

    groups: FrozenMap[str, Group] = FrozenMap()
    offsets: Offsets = Offsets()
    members: int = 0
    """How many member ids were made."""


def check_commit(decisions: GroupDecisions, state: GroupCoordinator, request: CommitRequest) -> Error:
    """Say whether a group takes a commit."""
    if not request.group_id:
        return Error.INVALID_GROUP_ID
    return decisions.check_group(state.groups.get(request.group_id), request)


def commit_batch(request: CommitRequest, now: int) -> RecordBatch:
    """Return the batch of the offsets log that a commit is; a transaction's has its producer's id, and no sequence."""
    record = OffsetRecord(request.group_id, request.partition, request.offset)
    if not isinstance(request, TxnOffsetCommitRequest):
        return RecordBatch((record,), timestamp=now)
    return RecordBatch((record,), request.producer_id, request.producer_epoch, is_transactional=True, timestamp=now)


def with_group(state: GroupCoordinator, group_id: str) -> GroupCoordinator:
    """Return a coordinator that has a group, if only an empty one: a commit makes it."""
    if group_id in state.groups:
        return state
    return attrs.evolve(state, groups=state.groups.set(group_id, Group()))


def as_it_is(state: GroupCoordinator, group_id: str) -> GroupCoordinator:
    """Return the coordinator: only what is taken makes a group (4.0)."""
    return state


def replayed(state: GroupCoordinator, batch: RecordBatch) -> GroupCoordinator:
    """Return a coordinator after a batch of its offsets log; a group of which there is a commit exists."""
    for record in batch.records if batch.marker is None else ():
        state = with_group(state, record.group_id)
    return attrs.evolve(state, offsets=replay(state.offsets, batch))


def fetch_offset(state: GroupCoordinator, request: OffsetFetchRequest) -> OffsetFetchResponse:
    """Return a group's offset, or -1; who wants a stable one waits for the transaction (`fetchOffsets`, KIP-447)."""
    key = request.group_id, request.partition
    if request.require_stable and not state.offsets.is_stable(key):
        return OffsetFetchResponse(Error.NONE, Error.UNSTABLE_OFFSET_COMMIT)
    known = state.offsets.committed.get(key)
    return OffsetFetchResponse(Error.NONE, committed_offset=-1 if known is None else known.offset)


def join_group(state: GroupCoordinator, request: JoinGroupRequest) -> tuple[GroupCoordinator, JoinGroupResponse]:
    """Let a member join its group, under a new id if it has none."""
    if not request.group_id:
        return state, refused_join(request, Error.INVALID_GROUP_ID)
    fresh = f"member-{state.members + 1}"
    group, response = join(state.groups.get(request.group_id, Group()), request, fresh)
    if response.error is not Error.NONE:
        return state, response
    made = state.members + (response.member_id == fresh)
    return attrs.evolve(state, groups=state.groups.set(request.group_id, group), members=made), response


def leave_group(state: GroupCoordinator, request: LeaveGroupRequest) -> tuple[GroupCoordinator, LeaveGroupResponse]:
    """Let a member leave its group. Who does not know a group does not make it."""
    group, error = leave(state.groups.get(request.group_id, Group()), request.member_id)
    if error is not Error.NONE:
        return state, LeaveGroupResponse(error)
    return attrs.evolve(state, groups=state.groups.set(request.group_id, group)), LeaveGroupResponse(error)


COMMIT_ERRORS = {
    Error.NETWORK_EXCEPTION: Error.COORDINATOR_LOAD_IN_PROGRESS,
    Error.UNKNOWN_TOPIC_OR_PARTITION: Error.COORDINATOR_NOT_AVAILABLE,
    Error.NOT_ENOUGH_REPLICAS: Error.COORDINATOR_NOT_AVAILABLE,
    Error.NOT_ENOUGH_REPLICAS_AFTER_APPEND: Error.COORDINATOR_NOT_AVAILABLE,
    Error.REQUEST_TIMED_OUT: Error.COORDINATOR_NOT_AVAILABLE,
    Error.NOT_LEADER_OR_FOLLOWER: Error.NOT_COORDINATOR,
    Error.KAFKA_STORAGE_ERROR: Error.NOT_COORDINATOR,
}


def refused_commit(error: Error) -> Error:
    """Tell a client of a commit what it can act on: ask again, or look up again (`maybeConvertOffsetCommitError`)."""
    return COMMIT_ERRORS.get(error, error)


def refused_commit_as_few_replicas(error: Error) -> Error:
    """As `refused_commit`; what the coordinator of transactions says becomes NOT_ENOUGH_REPLICAS first (3.7).

    `ReplicaManager.maybeStartTransactionVerificationForPartitions`.
    """
    return refused_commit(Error.NOT_ENOUGH_REPLICAS if error in OF_COORDINATORS else error)
