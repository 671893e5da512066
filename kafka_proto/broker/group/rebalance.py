"""The classic group protocol: members join, a leader assigns, all sync; members that are silent too long are dropped.

A group is a frozen value; a request goes in with the time and a token, what comes out are answers by token, some of
them to requests that came long before (`GroupCoordinator`, `GroupMetadata` of Kafka 3.x). What a leader assigns is told
once it is stored: `sync` waits for that, `assigned` goes on. The initial delay of a rebalance
(`group.initial.rebalance.delay.ms`) is 0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from enum import StrEnum

import attrs

from harness.model import FrozenMap, Value, absent_if_none
from kafka_proto.broker.group.settings import KAFKAS_GROUPS, GroupConfig
from kafka_proto.errors import Error
from kafka_proto.requests.groups import JoinGroupRequest, JoinGroupResponse, SyncGroupRequest, SyncGroupResponse


class GroupState(StrEnum):
    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"


@attrs.frozen
class Group:
    """The fields that fence commits to a group; a group made by commits, without members, has only these."""

    generation: int = 0
    members: FrozenMap[str, str | None] = FrozenMap()
    """The instance of each member, None of a dynamic one."""
    awaits_leader: bool = False
    """Whether a rebalance has ended and the leader has not assigned yet."""

    def member_of(self, instance: str) -> str | None:
        """Return the member that a static instance is now."""
        return next((member for member, known in self.members.items() if known == instance), None)


@attrs.frozen
class Member:
    """A member; `joining` and `syncing` are the tokens of requests of its that wait for an answer."""

    join: JoinGroupRequest
    silent_until: int
    """When its session ends, unless it waits for an answer."""
    assignment: bytes = b""
    joining: Value = None
    syncing: Value = None


@attrs.frozen
class ClassicGroup:
    """A group. `order` has its members as they came, the first of those that are there is the leader."""

    state: GroupState = GroupState.EMPTY
    generation: int = 0
    protocol_name: str | None = None
    leader: str = ""
    members: FrozenMap[str, Member] = FrozenMap()
    order: tuple[str, ...] = ()
    promised: FrozenMap[str, int] = FrozenMap()
    """Ids that were given out, each with the time until which its member may join."""
    rebalance_until: int = 0
    protocol_type: str | None = attrs.field(default=None, metadata=absent_if_none())
    """Of its members, also when all have left."""

    @property
    def awaits_leader(self) -> bool:
        """Whether a rebalance has ended and the leader has not assigned yet."""
        return self.state is GroupState.COMPLETING_REBALANCE

    def member_of(self, instance: str) -> str | None:
        """Return the member that a static instance is now."""
        return next((known for known, m in self.members.items() if m.join.group_instance_id == instance), None)


Assignments = tuple[tuple[str, bytes], ...]
"""Of members by id."""
Answers = tuple[tuple[Value, JoinGroupResponse | SyncGroupResponse], ...]
NO_ANSWERS: Answers = ()
Step = tuple[ClassicGroup, Answers]


def join(
    group: ClassicGroup, request: JoinGroupRequest, fresh: str, token: Value, now: int,
    config: GroupConfig = KAFKAS_GROUPS,
) -> Step:
    """Take a JoinGroup; its answer waits until all have joined. `fresh` is an id for a member without one."""
    instance = request.group_instance_id
    if instance is not None and request.member_id in group.promised:  # as a broker that runs into an exception
        return group, ((token, JoinGroupResponse(Error.UNKNOWN_SERVER_ERROR)),)
    refused = _refused_join(group, request, config)
    if refused is not None:
        return group, ((token, JoinGroupResponse(refused, request.member_id)),)
    if request.member_id:
        return _join_known(group, request, token, now)
    former = None if instance is None else group.member_of(instance)
    if former is not None:
        return _replace(group, former, request, fresh, token, now)
    if instance is None and request.version >= 4:
        promised = group.promised.set(fresh, now + request.session_timeout_ms)
        return attrs.evolve(group, promised=promised), ((token, JoinGroupResponse(Error.MEMBER_ID_REQUIRED, fresh)),)
    return _add(group, fresh, request, token, now)


def has_session(request: JoinGroupRequest, config: GroupConfig) -> bool:
    """Say whether a member's session is of a length that it may have."""
    return config.group_min_session_timeout_ms <= request.session_timeout_ms <= config.group_max_session_timeout_ms


def _refused_join(group: ClassicGroup, request: JoinGroupRequest, config: GroupConfig) -> Error | None:
    if not has_session(request, config):
        return Error.INVALID_SESSION_TIMEOUT
    if not _supports(group, request):
        return Error.INCONSISTENT_GROUP_PROTOCOL
    if not request.member_id or request.member_id in group.promised:
        return None
    error = check(group, request.member_id, request.group_instance_id, None)
    return None if error is Error.NONE else error


def _supports(group: ClassicGroup, request: JoinGroupRequest) -> bool:
    """Say whether a member's protocols are of the group's type, and all members know one (`supportsProtocols`)."""
    if not request.protocols or not request.protocol_type:
        return False
    known = _common(group.members)
    return not group.members or (
        request.protocol_type == group.protocol_type and any(name in known for name, _ in request.protocols))


def _common(members: FrozenMap[str, Member]) -> list[str]:
    """Return the protocols that all members know, sorted."""
    known = [{name for name, _ in member.join.protocols} for member in members.values()]
    return sorted(set.intersection(*known)) if known else []


def _join_known(group: ClassicGroup, request: JoinGroupRequest, token: Value, now: int) -> Step:
    known = group.members.get(request.member_id)
    if known is None:
        return _add(group, request.member_id, request, token, now)
    is_same = known.join.protocols == request.protocols
    is_leader = request.member_id == group.leader
    if group.awaits_leader and is_same:
        return group, ((token, _joined(group, request.member_id)),)
    if group.state is GroupState.STABLE and is_same and not is_leader:
        return heard(group, request.member_id, now), ((token, _joined(group, request.member_id)),)
    request = attrs.evolve(request, group_instance_id=known.join.group_instance_id)
    left: Answers = ()
    if known.joining is not None:
        left = ((known.joining, JoinGroupResponse(Error.UNKNOWN_MEMBER_ID, request.member_id)),)
    member = attrs.evolve(known, join=request, joining=token)
    group = attrs.evolve(group, members=group.members.set(request.member_id, member))
    group, answers = begin(group, now)
    return group, left + answers


def _replace(group: ClassicGroup, former: str, request: JoinGroupRequest, fresh: str, token: Value, now: int) -> Step:
    """Let a static instance take the place of its former self (KIP-345).

    Where the group is stable and goes on with its protocol there is no rebalance. A leader shall not assign anew then:
    from version 9 on it is told so, before that it takes its former self for the leader (KAFKA-7728).
    """
    known = group.members[former]
    fenced: Answers = ()
    if known.joining is not None:
        fenced += ((known.joining, JoinGroupResponse(Error.FENCED_INSTANCE_ID, former)),)
    if known.syncing is not None:
        fenced += ((known.syncing, SyncGroupResponse(Error.FENCED_INSTANCE_ID)),)
    member = Member(request, now + request.session_timeout_ms, known.assignment)
    members = group.members.without(former).set(fresh, member)
    goes_on = group.state is GroupState.STABLE and voted(members) == group.protocol_name
    if not goes_on:
        members = members.set(fresh, attrs.evolve(member, joining=token))
    order = tuple(fresh if each == former else each for each in group.order)
    former_leader, leader = group.leader, fresh if group.leader == former else group.leader
    group = attrs.evolve(group, members=members, order=order, leader=leader)
    if goes_on:
        joined = _joined(group, fresh)
        joined = (attrs.evolve(joined, skip_assignment=leader == fresh) if request.version >= 9
                  else attrs.evolve(joined, leader=former_leader, members=()))
        return group, (*fenced, (token, joined))
    group, answers = begin(group, now)
    return group, fenced + answers


def _add(group: ClassicGroup, member_id: str, request: JoinGroupRequest, token: Value, now: int) -> Step:
    member = Member(request, now + request.session_timeout_ms, joining=token)
    promised = group.promised.without(member_id) if member_id in group.promised else group.promised
    group = attrs.evolve(group, members=group.members.set(member_id, member), order=(*group.order, member_id),
                         leader=group.leader or member_id, promised=promised, protocol_type=request.protocol_type)
    return begin(group, now)


def begin(group: ClassicGroup, now: int) -> Step:
    """Begin a rebalance unless one is under way, and complete it if no member is missing (`maybePrepareRebalance`)."""
    answers: Answers = ()
    if group.state is not GroupState.PREPARING_REBALANCE:
        group, answers = _answer_syncs(group, lambda _: SyncGroupResponse(Error.REBALANCE_IN_PROGRESS), now)
        longest = max((member.join.rebalance_timeout_ms for member in group.members.values()), default=0)
        group = attrs.evolve(group, state=GroupState.PREPARING_REBALANCE, rebalance_until=now + longest)
    group, more = _complete_join(group, now)
    return group, answers + more


def _renewed(member: Member, now: int) -> int:
    return now + member.join.session_timeout_ms


def _complete_join(group: ClassicGroup, now: int) -> Step:
    """Answer all joins as a new generation once no member is missing, or it is too late (`onCompleteJoin`)."""
    missing = [known for known, member in group.members.items() if member.joining is None]
    if (missing or group.promised) and now < group.rebalance_until:
        return group, ()
    gone = {known for known in missing if group.members[known].join.group_instance_id is None}
    members = FrozenMap((known, m) for known, m in group.members.items() if known not in gone)
    order = tuple(known for known in group.order if known not in gone)
    generation = group.generation + 1
    if not members:
        return ClassicGroup(
            generation=generation, promised=group.promised, protocol_type=group.protocol_type), ()
    leader = group.leader if group.leader in members and members[group.leader].joining is not None else next(
        (known for known in order if members[known].joining is not None), order[0])
    new = attrs.evolve(group, state=GroupState.COMPLETING_REBALANCE, generation=generation, order=order, leader=leader,
                       members=members, protocol_name=voted(members))
    answers = tuple((m.joining, _joined(new, known)) for known, m in members.items() if m.joining is not None)
    rested = FrozenMap((known, attrs.evolve(m, joining=None, assignment=b"", silent_until=_renewed(m, now)))
                       for known, m in members.items())
    return attrs.evolve(new, members=rested), answers


def voted(members: FrozenMap[str, Member]) -> str:
    """Return the protocol that most members prefer, of those that all know."""
    common = _common(members)
    votes = Counter(next(name for name, _ in m.join.protocols if name in common) for m in members.values())
    return max(sorted(votes), key=lambda name: votes[name])


def _joined(group: ClassicGroup, member_id: str) -> JoinGroupResponse:
    """Return a member's answer to its join; the leader's has what everybody said."""
    everybody: tuple[tuple[str, str | None, bytes], ...] = ()
    if member_id == group.leader:
        everybody = tuple(
            (known, group.members[known].join.group_instance_id,
             dict(group.members[known].join.protocols)[group.protocol_name or ""]) for known in group.order)
    kind, name = group.protocol_type, group.protocol_name
    return JoinGroupResponse(Error.NONE, member_id, group.generation, kind, name, group.leader, everybody)


def check(group: Group | ClassicGroup, member_id: str, instance: str | None, generation_id: int | None) -> Error:
    """Say whether a request comes from a member, and of this generation; an instance is to be that member's."""
    current = member_id if instance is None else group.member_of(instance)
    if current is None:
        return Error.UNKNOWN_MEMBER_ID
    if current != member_id:
        return Error.FENCED_INSTANCE_ID
    if member_id not in group.members:
        return Error.UNKNOWN_MEMBER_ID
    if generation_id is not None and generation_id != group.generation:
        return Error.ILLEGAL_GENERATION
    return Error.NONE


def sync(group: ClassicGroup, request: SyncGroupRequest, token: Value, now: int) -> Step:
    """Take a SyncGroup; the answers of all wait until what the leader assigns is stored (`doSyncGroup`)."""
    error = check(group, request.member_id, request.group_instance_id, request.generation_id)
    if error is Error.NONE and (request.protocol_type not in (None, group.protocol_type)
                            or request.protocol_name not in (None, group.protocol_name)):
        error = Error.INCONSISTENT_GROUP_PROTOCOL
    if error is Error.NONE and group.state is GroupState.PREPARING_REBALANCE:
        error = Error.REBALANCE_IN_PROGRESS
    if error is not Error.NONE:
        return group, ((token, SyncGroupResponse(error)),)
    group = heard(group, request.member_id, now)
    if group.state is GroupState.STABLE:
        return group, ((token, _synced(group, group.members[request.member_id])),)
    member = attrs.evolve(group.members[request.member_id], syncing=token)
    return attrs.evolve(group, members=group.members.set(request.member_id, member)), ()


def assigns(group: ClassicGroup, request: SyncGroupRequest, token: Value) -> bool:
    """Say whether a SyncGroup that waits now is the leader's, whose assignments are to be stored."""
    leader = group.members.get(group.leader)
    return request.member_id == group.leader and leader is not None and leader.syncing == token


def assigned(group: ClassicGroup, assignments: Assignments, now: int) -> Step:
    """Tell all members that wait what they are assigned (`setAndPropagateAssignment`)."""
    given = dict(assignments)
    members = {known: attrs.evolve(m, assignment=given.get(known, b"")) for known, m in group.members.items()}
    group = attrs.evolve(group, state=GroupState.STABLE, members=FrozenMap(members))
    return _answer_syncs(group, lambda member: _synced(group, member), now)


def not_assigned(group: ClassicGroup, error: Error, now: int) -> Step:
    """Tell all members that wait why nothing could be stored, and rebalance (`resetAndPropagateAssignmentError`)."""
    group, answers = _answer_syncs(group, lambda _: SyncGroupResponse(error), now)
    group, more = begin(group, now)
    return group, answers + more


def _answer_syncs(group: ClassicGroup, answer: Callable[[Member], SyncGroupResponse], now: int) -> Step:
    waiting = {known: member for known, member in group.members.items() if member.syncing is not None}
    rested = {known: attrs.evolve(m, syncing=None, silent_until=_renewed(m, now)) for known, m in waiting.items()}
    answers = tuple((member.syncing, answer(member)) for member in waiting.values())
    return attrs.evolve(group, members=group.members.update(rested)), answers


def unloaded(group: ClassicGroup, error: Error = Error.NOT_COORDINATOR) -> Answers:
    """Return what members are told that wait, at a coordinator which is none any more (`onGroupUnloaded`)."""
    answers: Answers = ()
    for known, member in group.members.items():
        if member.joining is not None:
            answers += ((member.joining, JoinGroupResponse(error, known)),)
        if member.syncing is not None:
            answers += ((member.syncing, SyncGroupResponse(error)),)
    return answers


def _synced(group: ClassicGroup, member: Member) -> SyncGroupResponse:
    return SyncGroupResponse(Error.NONE, group.protocol_type, group.protocol_name, member.assignment)


def heard(group: ClassicGroup, member_id: str, now: int) -> ClassicGroup:
    """Return a group in which a member's session begins anew."""
    member = group.members[member_id]
    return attrs.evolve(group, members=group.members.set(member_id, attrs.evolve(
        member, silent_until=_renewed(member, now))))


def heartbeat(group: ClassicGroup, member_id: str, instance: str | None, generation_id: int,
              now: int) -> tuple[ClassicGroup, Error]:
    """Take a Heartbeat, and say whether the member has to join again (`handleHeartbeat`)."""
    error = check(group, member_id, instance, generation_id)
    if error is not Error.NONE:
        return group, error
    group = heard(group, member_id, now)
    return group, Error.REBALANCE_IN_PROGRESS if group.state is GroupState.PREPARING_REBALANCE else Error.NONE


def leave(group: ClassicGroup, member_id: str, instance: str | None, now: int) -> tuple[ClassicGroup, Error, Answers]:
    """Let a member go, by its id or by its instance alone; the others rebalance (`handleLeaveGroup`)."""
    if member_id in group.promised:
        left = attrs.evolve(group, promised=group.promised.without(member_id))
        left, answers = _complete_join(left, now) if left.state is GroupState.PREPARING_REBALANCE else (left, ())
        return left, Error.NONE, answers
    if not member_id and instance is not None:
        member_id = group.member_of(instance) or ""
    error = check(group, member_id, instance, None)
    if error is not Error.NONE:
        return group, error, ()
    group, answers = _without(group, member_id, now)
    return group, Error.NONE, answers


def _without(group: ClassicGroup, member_id: str, now: int) -> Step:
    member = group.members[member_id]
    answers: Answers = ()
    if member.joining is not None:
        answers += ((member.joining, JoinGroupResponse(Error.UNKNOWN_MEMBER_ID, member_id)),)
    if member.syncing is not None:
        answers += ((member.syncing, SyncGroupResponse(Error.UNKNOWN_MEMBER_ID)),)
    order = tuple(known for known in group.order if known != member_id)
    leader = (order[0] if order else "") if group.leader == member_id else group.leader
    group = attrs.evolve(group, members=group.members.without(member_id), order=order, leader=leader)
    group, more = begin(group, now)
    return group, answers + more


def pass_time(group: ClassicGroup, now: int) -> Step:
    """Drop members that are silent and ids that no member came back with; end a rebalance that is too old."""
    answers: Answers = ()
    promised = FrozenMap((known, until) for known, until in group.promised.items() if until > now)
    lapsed = len(promised) != len(group.promised)
    group = attrs.evolve(group, promised=promised)
    for known in group.members:
        member = group.members.get(known)  # a dropped member may end a rebalance, which drops others
        if member is not None and member.joining is None and member.syncing is None and member.silent_until <= now:
            group, more = _without(group, known, now)
            answers += more
    if group.state is GroupState.PREPARING_REBALANCE and (lapsed or group.rebalance_until <= now):
        group, more = _complete_join(group, now)
        answers += more
    return group, answers


def next_deadline(group: ClassicGroup) -> int | None:
    """Return when `pass_time` will have something to do."""
    silent = [m.silent_until for m in group.members.values() if m.joining is None and m.syncing is None]
    rebalance = [group.rebalance_until] if group.state is GroupState.PREPARING_REBALANCE else []
    return min([*silent, *group.promised.values(), *rebalance], default=None)
