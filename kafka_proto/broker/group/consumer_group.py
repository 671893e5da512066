"""Consumer groups (KIP-848): the coordinator assigns, and each member moves to the target at its own pace.

A group is a frozen value, as a classic one. A partition is given to its next member when the one before has given it
up. Each heartbeat does in this order what `GroupMetadataManager.consumerGroupHeartbeat` does: the member's subscription
changes, the group's epoch with it; a new target is made for a new epoch; the member is reconciled with its target.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import attrs

from harness.model import FrozenMap, absent_if_none
from kafka_proto.broker.group import assignors
from kafka_proto.broker.group.assignors import Assignment, Partitions
from kafka_proto.errors import Error
from kafka_proto.requests.groups import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    OffsetCommitRequest,
    TxnOffsetCommitRequest,
)

SESSION_MS, HEARTBEAT_MS = 45_000, 5_000
"""Kafka's `group.consumer.session.timeout.ms` and `group.consumer.heartbeat.interval.ms`."""
JOINS, LEAVES, COMES_BACK = 0, -1, -2
"""What a member says in place of its epoch."""
CommitRequest = OffsetCommitRequest | TxnOffsetCommitRequest


class MemberState(StrEnum):
    STABLE = "Stable"
    UNREVOKED_PARTITIONS = "UnrevokedPartitions"
    UNRELEASED_PARTITIONS = "UnreleasedPartitions"


@attrs.frozen
class ClassicMember:
    """What a member that speaks the classic protocol said when it joined."""

    session_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]


@attrs.frozen
class ConsumerMember:
    """A member: what it subscribes to, what it may have, and what it is to give up."""

    silent_until: int = 0
    epoch: int = JOINS
    previous_epoch: int = -1
    state: MemberState = MemberState.STABLE
    instance_id: str | None = None
    client_id: str = ""
    rebalance_timeout_ms: int = -1
    names: tuple[str, ...] = ()
    regex: str | None = None
    assignor: str | None = None
    assigned: Partitions = ()
    revoking: Partitions = ()
    revoked_until: int | None = None
    """When it has to have given them up, or to have joined again."""
    classic: ClassicMember | None = attrs.field(default=None, metadata=absent_if_none())
    """Set for a member that speaks the classic protocol (`migration`)."""

    @property
    def session_ms(self) -> int:
        return SESSION_MS if self.classic is None else self.classic.session_timeout_ms

    def topics(self, there: Mapping[str, int]) -> tuple[str, ...]:
        """Return the topics that it subscribes to, of those that there are."""
        found = {name for name in self.names if name in there}
        if self.regex:
            found |= {name for name in there if re.fullmatch(self.regex, name)}
        return tuple(sorted(found))


@attrs.frozen
class ConsumerGroup:
    """A group; the target of each member is for `assignment_epoch`, made for `topics` with their partitions."""

    epoch: int = 0
    assignment_epoch: int = 0
    members: FrozenMap[str, ConsumerMember] = FrozenMap()
    targets: FrozenMap[str, Partitions] = FrozenMap()
    topics: FrozenMap[str, int] = FrozenMap()

    @property
    def state(self) -> str:
        """Return the group's state by Kafka's name (`ConsumerGroup.maybeUpdateGroupState`)."""
        if not self.members:
            return "Empty"
        if self.epoch > self.assignment_epoch:
            return "Assigning"
        is_reconciled = all(m.state is MemberState.STABLE and m.epoch == self.assignment_epoch
                            for m in self.members.values())
        return "Stable" if is_reconciled else "Reconciling"

    @property
    def assignor(self) -> str:
        """Return the assignor that most members ask for, the uniform one if they ask for none."""
        asked = Counter(m.assignor for m in self.members.values() if m.assignor is not None)
        return max(sorted(asked), key=lambda name: asked[name]) if asked else assignors.UNIFORM

    def instance(self, instance_id: str) -> str | None:
        """Return the member that a static instance is now."""
        return next((known for known, m in self.members.items() if m.instance_id == instance_id), None)

    def is_subscribed(self, topic: str) -> bool:
        """Say whether a member subscribes to a topic."""
        return topic in self.topics


Step = tuple[ConsumerGroup, ConsumerGroupHeartbeatResponse]


def heartbeat(
    group: ConsumerGroup | None, request: ConsumerGroupHeartbeatRequest, topics: Mapping[str, int], now: int
) -> Step:
    """Take a heartbeat: a member joins, goes on or leaves; `topics` are those that there are, with their partitions."""
    before = group or ConsumerGroup()
    wrong = _wrong(request) or (None if group is not None or request.member_epoch == JOINS else (
        Error.GROUP_ID_NOT_FOUND, f"Consumer group {request.group_id} not found."))
    wrong = wrong or _refused(before, request)
    if wrong is not None:
        return before, ConsumerGroupHeartbeatResponse(*wrong)
    if request.member_epoch in (LEAVES, COMES_BACK):
        return _leave(before, request)
    after, member = subscribed(before, request, topics, now)
    member = reconciled(after, request.member_id, member, request.owned, now)
    was = before.members.get(request.member_id)
    is_full = request.member_epoch == JOINS or (
        request.rebalance_timeout_ms != -1 and request.owned is not None
        and (request.subscribed_topic_names, request.subscribed_topic_regex) != (None, None))
    tells = is_full or was is None or was.assigned != member.assigned
    return attrs.evolve(after, members=after.members.set(request.member_id, member)), ConsumerGroupHeartbeatResponse(
        Error.NONE, None, request.member_id, member.epoch, HEARTBEAT_MS, member.assigned if tells else None)


Refusal = tuple[Error, str] | None


def _wrong(request: ConsumerGroupHeartbeatRequest) -> Refusal:
    """Return what is wrong with a request by itself (`throwIfConsumerGroupHeartbeatRequestIsInvalid`)."""
    reason = None
    if not request.group_id:
        reason = "GroupId can't be empty."
    elif request.instance_id == "":
        reason = "InstanceId can't be empty."
    elif not request.member_id:
        reason = "MemberId can't be empty."
    elif request.member_epoch == JOINS:
        if request.rebalance_timeout_ms == -1:
            reason = "RebalanceTimeoutMs must be provided in first request."
        elif request.owned != ():
            reason = "TopicPartitions must be empty when (re-)joining."
        elif request.subscribed_topic_names is None and not request.subscribed_topic_regex:
            reason = "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining."
    elif request.member_epoch == COMES_BACK and request.instance_id is None:
        reason = "InstanceId can't be null."
    elif request.member_epoch < COMES_BACK:
        reason = "MemberEpoch is invalid."
    if reason is not None:
        return Error.INVALID_REQUEST, reason
    if request.server_assignor is not None and request.server_assignor not in assignors.BY_NAME:
        return Error.UNSUPPORTED_ASSIGNOR, (
            f"ServerAssignor {request.server_assignor} is not supported. "
            f"Supported assignors: {', '.join(assignors.BY_NAME)}.")
    try:
        re.compile(request.subscribed_topic_regex or "")
    except re.error as error:
        return Error.INVALID_REGULAR_EXPRESSION, (
            f"SubscribedTopicRegex `{request.subscribed_topic_regex}` is not a valid regular expression: {error}.")
    return None


def _refused(group: ConsumerGroup, request: ConsumerGroupHeartbeatRequest) -> Refusal:
    """Say whether the member is not one of the group, or of another epoch."""
    member_id, epoch, joins = request.member_id, request.member_epoch, request.member_epoch == JOINS
    if request.instance_id is None:
        member = group.members.get(member_id)
        if member is None:
            return None if joins else (
                Error.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {request.group_id}.")
    else:
        known = group.instance(request.instance_id)
        if known is None:
            return None if joins else (Error.UNKNOWN_MEMBER_ID, f"Instance id {request.instance_id} is unknown.")
        member = group.members[known]
        if joins:
            return None if member.epoch == COMES_BACK else (
                Error.UNRELEASED_INSTANCE_ID, f"Static member {member_id} with instance id {request.instance_id} "
                f"cannot join the group because the instance id is owned by {known}.")
        if known != member_id:
            return Error.FENCED_INSTANCE_ID, (
                f"Static member {member_id} with instance id {request.instance_id} was fenced by member {known}.")
    if epoch in (LEAVES, COMES_BACK) or epoch == member.epoch:
        return None
    lost = (epoch == member.previous_epoch and request.owned is not None and {*request.owned} <= {*member.assigned})
    return None if epoch < member.epoch and lost else (
        Error.FENCED_MEMBER_EPOCH,
        f"The consumer group member has another epoch ({epoch}) than the one known by the group coordinator "
        f"({member.epoch}). The member must abandon all its partitions and rejoin.")


def _leave(group: ConsumerGroup, request: ConsumerGroupHeartbeatRequest) -> Step:
    """Let a member go, or keep the place of an instance that will come back."""
    response = ConsumerGroupHeartbeatResponse(Error.NONE, None, request.member_id, request.member_epoch)
    if request.member_epoch == LEAVES:
        return without(group, request.member_id), response
    member = attrs.evolve(group.members[request.member_id], epoch=COMES_BACK, revoking=(), revoked_until=None)
    return attrs.evolve(group, members=group.members.set(request.member_id, member)), response


def without(group: ConsumerGroup, member_id: str) -> ConsumerGroup:
    """Return a group without a member, in an epoch for which the next heartbeat makes a target."""
    targets = group.targets.without(member_id) if member_id in group.targets else group.targets
    return attrs.evolve(group, epoch=group.epoch + 1, members=group.members.without(member_id), targets=targets)


def subscribed(
    group: ConsumerGroup, request: ConsumerGroupHeartbeatRequest, topics: Mapping[str, int], now: int
) -> tuple[ConsumerGroup, ConsumerMember]:
    """Return the group and the member with what it says of itself, and with targets for the group's epoch."""
    former = None if request.instance_id is None else group.instance(request.instance_id)
    if former is not None and request.member_epoch == JOINS:
        known = attrs.evolve(group.members[former], epoch=JOINS, previous_epoch=0)
        targets = group.targets
        if former in targets:
            targets = targets.without(former).set(request.member_id, targets[former])
        group = attrs.evolve(group, targets=targets,
                             members=group.members.without(former).set(request.member_id, known))
    before = group.members.get(request.member_id, ConsumerMember())
    said: dict[str, Any] = {"names": _sorted(request.subscribed_topic_names),
            "regex": request.subscribed_topic_regex, "assignor": request.server_assignor,
            "instance_id": request.instance_id,
            "rebalance_timeout_ms": None if request.rebalance_timeout_ms == -1 else request.rebalance_timeout_ms}
    member = attrs.evolve(before, client_id=request.client_id, silent_until=now + SESSION_MS,
                          **{name: value for name, value in said.items() if value is not None})
    is_new = request.member_id not in group.members
    members = group.members.set(request.member_id, member)
    seen = FrozenMap((name, topics[name]) for each in members.values() for name in each.topics(topics))
    changed = is_new or (member.names, member.regex) != (before.names, before.regex) or seen != group.topics
    group = attrs.evolve(group, members=members, topics=seen, epoch=group.epoch + changed)
    if group.epoch > group.assignment_epoch:
        wanted = {known: each.topics(topics) for known, each in members.items()}
        group = attrs.evolve(group, assignment_epoch=group.epoch, targets=FrozenMap(_target(group, wanted)))
    return group, member


def _sorted(names: tuple[str, ...] | None) -> tuple[str, ...] | None:
    return None if names is None else tuple(sorted({*names}))


def _target(group: ConsumerGroup, wanted: Mapping[str, tuple[str, ...]]) -> Assignment:
    """Return what each member is to have, by the group's assignor."""
    order = sorted(wanted, key=lambda known: (
        (instance := group.members[known].instance_id) is None, instance or known))
    return assignors.BY_NAME[group.assignor](order, wanted, group.topics, group.targets)


def reconciled(
    group: ConsumerGroup, member_id: str, member: ConsumerMember, owned: Partitions | None, now: int
) -> ConsumerMember:
    """Move a member towards its target as far as it can go now (`CurrentAssignmentBuilder`)."""
    def owns(partitions: Partitions) -> bool:
        return owned is None or not {*partitions}.isdisjoint(owned)

    epoch = member.epoch
    if member.state is MemberState.STABLE and epoch == group.assignment_epoch:
        return member
    if member.state is MemberState.UNREVOKED_PARTITIONS:
        if owns(member.revoking):
            return member
        epoch += 1
    target = group.targets.get(member_id, ())
    held = {p for each in group.members.values() for p in (*each.assigned, *each.revoking)}
    kept = tuple(p for p in member.assigned if p in target)
    revoking = tuple(p for p in member.assigned if p not in target)
    pending = [p for p in target if p not in kept]
    free = [p for p in pending if p not in held]
    if revoking and owns(revoking):
        state, until = MemberState.UNREVOKED_PARTITIONS, now + member.rebalance_timeout_ms
        return _moved(member, epoch, state, kept, revoking, until)
    state = MemberState.UNRELEASED_PARTITIONS if len(free) < len(pending) else MemberState.STABLE
    return _moved(member, group.assignment_epoch, state, assignors.in_order((*kept, *free)))


def _moved(
    member: ConsumerMember, epoch: int, state: MemberState, assigned: Partitions, revoking: Partitions = (),
    until: int | None = None,
) -> ConsumerMember:
    previous = member.previous_epoch if epoch == member.epoch else member.epoch
    return attrs.evolve(member, epoch=epoch, previous_epoch=previous, state=state, assigned=assigned,
                        revoking=revoking, revoked_until=until)


def pass_time(group: ConsumerGroup, now: int) -> ConsumerGroup:
    """Drop members that are silent, or late to give up what they are to."""
    for known, member in group.members.items():
        if min(member.silent_until, _late(member)) <= now:
            group = without(group, known)
    return group


def next_deadline(group: ConsumerGroup) -> int | None:
    """Return when `pass_time` will have something to do."""
    return min((min(m.silent_until, _late(m)) for m in group.members.values()), default=None)


def _late(member: ConsumerMember) -> int:
    return member.silent_until if member.revoked_until is None else member.revoked_until


def stored(group: ConsumerGroup) -> ConsumerGroup:
    """Return what is stored of a group: times are not."""
    return attrs.evolve(group, members=FrozenMap(
        (known, attrs.evolve(m, silent_until=0, revoked_until=None)) for known, m in group.members.items()))


def loaded(group: ConsumerGroup, now: int) -> ConsumerGroup:
    """Return a stored group; all sessions begin anew, and so does the time of those that are to give something up."""
    return attrs.evolve(group, members=FrozenMap(
        (known, attrs.evolve(m, silent_until=now + m.session_ms,
                             revoked_until=now + m.rebalance_timeout_ms if m.revoking else None))
        for known, m in group.members.items()))


FIRST_COMMIT = 9
"""The first version of OffsetCommit that has a member's epoch."""


def check_commit(group: ConsumerGroup, request: CommitRequest, transactional: bool) -> Error:
    """Say whether a commit comes from a member of this epoch (`ConsumerGroup.validateOffsetCommit`)."""
    if request.generation_id < 0 and not group.members:
        return Error.NONE
    member = group.members.get(request.member_id)
    if member is None:
        return Error.UNKNOWN_MEMBER_ID
    if not transactional and member.classic is None and request.version < FIRST_COMMIT:
        return Error.UNSUPPORTED_VERSION
    if request.generation_id == member.epoch:
        return Error.NONE
    is_generation = transactional or member.classic is not None
    return Error.ILLEGAL_GENERATION if is_generation else Error.STALE_MEMBER_EPOCH


def check_fetch(group: ConsumerGroup, member_id: str | None, member_epoch: int) -> Error:
    """Say whether a member that names itself may fetch offsets (`ConsumerGroup.validateOffsetFetch`)."""
    if member_id is None and member_epoch < 0:
        return Error.NONE
    member = group.members.get(member_id or "")
    if member is None:
        return Error.UNKNOWN_MEMBER_ID
    stale = Error.STALE_MEMBER_EPOCH if member.classic is None else Error.ILLEGAL_GENERATION
    return Error.NONE if member.epoch == member_epoch else stale
