"""The classic group protocol: members join, a leader assigns, all of them sync; who is silent for too long is dropped.

A group is a frozen value; a request goes in with the time and a token, what comes out are answers by token, some of
them to requests that came long before (`GroupCoordinator`, `GroupMetadata` of Kafka 3.x). The initial delay of a
rebalance (`group.initial.rebalance.delay.ms`) is 0.
"""

from __future__ import annotations

from collections import Counter
from enum import StrEnum

import attrs

from harness.model import FrozenMap, Value
from kafka_proto.broker.group.membership import Group, unknown_member
from kafka_proto.requests.error import Error

SHORTEST_SESSION_MS, LONGEST_SESSION_MS = 6_000, 1_800_000
"""Kafka's `group.min.session.timeout.ms` and `group.max.session.timeout.ms`."""


class GroupState(StrEnum):
    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"


@attrs.frozen
class Join:
    """A JoinGroup request. Protocols are names with what the member says for each, the preferred one first."""

    version: int
    member_id: str
    group_instance_id: str | None
    client_id: str
    protocol_type: str
    protocols: tuple[tuple[str, bytes], ...]
    session_timeout_ms: int
    rebalance_timeout_ms: int


@attrs.frozen
class Sync:
    """A SyncGroup request; the leader's has everybody's assignment."""

    generation_id: int
    member_id: str
    group_instance_id: str | None
    protocol_type: str | None
    protocol_name: str | None
    assignments: tuple[tuple[str, bytes], ...]


@attrs.frozen
class Joined:
    error: str
    member_id: str = ""
    generation_id: int = -1
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader: str = ""
    members: tuple[tuple[str, str | None, bytes], ...] = ()
    """Of the leader's answer: id, instance and what each said for the chosen protocol."""
    skip_assignment: bool = False
    """Whether a leader that has come back is to assign nothing (KIP-814)."""


@attrs.frozen
class Synced:
    error: str
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignment: bytes = b""


@attrs.frozen
class Member:
    """A member; `joining` and `syncing` are the tokens of requests of its that wait for an answer."""

    join: Join
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
    """Ids that were given out, and until when whoever got one may join with it."""
    rebalance_until: int = 0

    @property
    def protocol_type(self) -> str | None:
        return next((member.join.protocol_type for member in self.members.values()), None)

    def member_of(self, instance: str) -> str | None:
        """Return the member that a static instance is now."""
        return next((known for known, m in self.members.items() if m.join.group_instance_id == instance), None)


Answers = tuple[tuple[Value, Joined | Synced], ...]
Step = tuple[ClassicGroup, Answers]
REBALANCE_IN_PROGRESS = "REBALANCE_IN_PROGRESS"


def as_fenced(group: ClassicGroup) -> Group:
    """Return what a commit of offsets is fenced by."""
    members = FrozenMap((known, m.join.group_instance_id) for known, m in group.members.items())
    return Group(group.generation, members, group.state is GroupState.COMPLETING_REBALANCE)


def join(group: ClassicGroup, request: Join, fresh: str, token: Value, now: int) -> Step:
    """Take a JoinGroup; its answer waits until everybody has joined. `fresh` is an id for who has none."""
    instance = request.group_instance_id
    if instance is not None and request.member_id in group.promised:  # as a broker that runs into an exception
        return group, ((token, Joined("UNKNOWN_SERVER_ERROR")),)
    refused = _refused_join(group, request)
    if refused is not None:
        return group, ((token, Joined(refused, request.member_id)),)
    if request.member_id:
        return _join_known(group, request, token, now)
    former = None if instance is None else group.member_of(instance)
    if former is not None:
        return _replace(group, former, request, fresh, token, now)
    if instance is None and request.version >= 4:
        promised = group.promised.set(fresh, now + request.session_timeout_ms)
        return attrs.evolve(group, promised=promised), ((token, Joined("MEMBER_ID_REQUIRED", fresh)),)
    return _add(group, fresh, request, token, now)


def _refused_join(group: ClassicGroup, request: Join) -> str | None:
    if not SHORTEST_SESSION_MS <= request.session_timeout_ms <= LONGEST_SESSION_MS:
        return "INVALID_SESSION_TIMEOUT"
    if not _supports(group, request):
        return "INCONSISTENT_GROUP_PROTOCOL"
    if not request.member_id or request.member_id in group.promised:
        return None
    error = check(group, request.member_id, request.group_instance_id, None)
    return None if error == "NONE" else error


def _supports(group: ClassicGroup, request: Join) -> bool:
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


def _join_known(group: ClassicGroup, request: Join, token: Value, now: int) -> Step:
    known = group.members.get(request.member_id)
    if known is None:
        return _add(group, request.member_id, request, token, now)
    is_same = known.join.protocols == request.protocols
    is_leader = request.member_id == group.leader
    if group.state is GroupState.COMPLETING_REBALANCE and is_same:
        return group, ((token, _joined(group, request.member_id)),)
    if group.state is GroupState.STABLE and is_same and not is_leader:
        return _heard(group, request.member_id, now), ((token, _joined(group, request.member_id)),)
    request = attrs.evolve(request, group_instance_id=known.join.group_instance_id)
    left = () if known.joining is None else ((known.joining, Joined("UNKNOWN_MEMBER_ID", request.member_id)),)
    member = attrs.evolve(known, join=request, joining=token)
    group = attrs.evolve(group, members=group.members.set(request.member_id, member))
    group, answers = _rebalance(group, now)
    return group, left + answers


def _replace(group: ClassicGroup, former: str, request: Join, fresh: str, token: Value, now: int) -> Step:
    """Let a static instance take the place of its former self (KIP-345).

    Where the group is stable and goes on with its protocol there is no rebalance. A leader shall not assign anew then:
    from version 9 on it is told so, before that it takes its former self for the leader (KAFKA-7728).
    """
    known = group.members[former]
    fenced: Answers = ()
    if known.joining is not None:
        fenced += ((known.joining, Joined("FENCED_INSTANCE_ID", former)),)
    if known.syncing is not None:
        fenced += ((known.syncing, Synced("FENCED_INSTANCE_ID")),)
    member = Member(request, now + request.session_timeout_ms, known.assignment)
    members = group.members.without(former).set(fresh, member)
    goes_on = group.state is GroupState.STABLE and _voted(members) == group.protocol_name
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
    group, answers = _rebalance(group, now)
    return group, fenced + answers


def _add(group: ClassicGroup, member_id: str, request: Join, token: Value, now: int) -> Step:
    member = Member(request, now + request.session_timeout_ms, joining=token)
    promised = group.promised.without(member_id) if member_id in group.promised else group.promised
    group = attrs.evolve(group, members=group.members.set(member_id, member), order=(*group.order, member_id),
                         leader=group.leader or member_id, promised=promised)
    return _rebalance(group, now)


def _rebalance(group: ClassicGroup, now: int) -> Step:
    """Begin a rebalance unless one is under way, and complete it if nobody is missing (`maybePrepareRebalance`)."""
    answers: Answers = ()
    if group.state is not GroupState.PREPARING_REBALANCE:
        waiting = tuple(member.syncing for member in group.members.values() if member.syncing is not None)
        answers = tuple((token, Synced(REBALANCE_IN_PROGRESS)) for token in waiting)
        members = FrozenMap(
            (known, attrs.evolve(member, syncing=None, silent_until=_renewed(member, now) if member.syncing is not None
                                 else member.silent_until)) for known, member in group.members.items())
        longest = max((member.join.rebalance_timeout_ms for member in group.members.values()), default=0)
        group = attrs.evolve(group, state=GroupState.PREPARING_REBALANCE, members=members,
                             rebalance_until=now + longest)
    group, more = _complete_join(group, now)
    return group, answers + more


def _renewed(member: Member, now: int) -> int:
    return now + member.join.session_timeout_ms


def _complete_join(group: ClassicGroup, now: int) -> Step:
    """Answer all joins as a new generation once nobody is missing, or it is too late (`onCompleteJoin`)."""
    missing = [known for known, member in group.members.items() if member.joining is None]
    if (missing or group.promised) and now < group.rebalance_until:
        return group, ()
    gone = {known for known in missing if group.members[known].join.group_instance_id is None}
    members = FrozenMap((known, m) for known, m in group.members.items() if known not in gone)
    order = tuple(known for known in group.order if known not in gone)
    generation = group.generation + 1
    if not members:
        return ClassicGroup(generation=generation, promised=group.promised), ()
    leader = group.leader if group.leader in members and members[group.leader].joining is not None else next(
        (known for known in order if members[known].joining is not None), order[0])
    new = attrs.evolve(group, state=GroupState.COMPLETING_REBALANCE, generation=generation, order=order, leader=leader,
                       members=members, protocol_name=_voted(members))
    answers = tuple((m.joining, _joined(new, known)) for known, m in members.items() if m.joining is not None)
    rested = FrozenMap((known, attrs.evolve(m, joining=None, assignment=b"", silent_until=_renewed(m, now)))
                       for known, m in members.items())
    return attrs.evolve(new, members=rested), answers


def _voted(members: FrozenMap[str, Member]) -> str:
    """Return the protocol that most members prefer, of those that all know."""
    common = _common(members)
    votes = Counter(next(name for name, _ in m.join.protocols if name in common) for m in members.values())
    return max(sorted(votes), key=lambda name: votes[name])


def _joined(group: ClassicGroup, member_id: str) -> Joined:
    """Return a member's answer to its join; the leader's has what everybody said."""
    everybody: tuple[tuple[str, str | None, bytes], ...] = ()
    if member_id == group.leader:
        everybody = tuple(
            (known, group.members[known].join.group_instance_id,
             dict(group.members[known].join.protocols)[group.protocol_name or ""]) for known in group.order)
    kind, name = group.protocol_type, group.protocol_name
    return Joined("NONE", member_id, group.generation, kind, name, group.leader, everybody)


def check(group: ClassicGroup, member_id: str, instance: str | None, generation_id: int | None) -> str:
    """Say whether a request comes from a member, and of this generation."""
    error = unknown_member(group, member_id, instance)
    if error is not Error.NONE:
        return error.value
    if generation_id is not None and generation_id != group.generation:
        return "ILLEGAL_GENERATION"
    return "NONE"


def sync(group: ClassicGroup, request: Sync, token: Value, now: int) -> Step:
    """Take a SyncGroup; the answers of all wait for the leader's (`doSyncGroup`)."""
    error = check(group, request.member_id, request.group_instance_id, request.generation_id)
    if error == "NONE" and (request.protocol_type not in (None, group.protocol_type)
                            or request.protocol_name not in (None, group.protocol_name)):
        error = "INCONSISTENT_GROUP_PROTOCOL"
    if error == "NONE" and group.state is GroupState.PREPARING_REBALANCE:
        error = REBALANCE_IN_PROGRESS
    if error != "NONE":
        return group, ((token, Synced(error)),)
    group = _heard(group, request.member_id, now)
    if group.state is GroupState.STABLE:
        return group, ((token, _synced(group, group.members[request.member_id])),)
    member = attrs.evolve(group.members[request.member_id], syncing=token)
    group = attrs.evolve(group, members=group.members.set(request.member_id, member))
    if request.member_id != group.leader:
        return group, ()
    given = dict(request.assignments)
    members = {known: attrs.evolve(m, assignment=given.get(known, b"")) for known, m in group.members.items()}
    answers = tuple((m.syncing, _synced(group, m)) for m in members.values() if m.syncing is not None)
    rested = FrozenMap((known, m if m.syncing is None else attrs.evolve(m, syncing=None, silent_until=_renewed(m, now)))
                       for known, m in members.items())
    return attrs.evolve(group, state=GroupState.STABLE, members=rested), answers


def _synced(group: ClassicGroup, member: Member) -> Synced:
    return Synced("NONE", group.protocol_type, group.protocol_name, member.assignment)


def _heard(group: ClassicGroup, member_id: str, now: int) -> ClassicGroup:
    member = group.members[member_id]
    return attrs.evolve(group, members=group.members.set(member_id, attrs.evolve(
        member, silent_until=_renewed(member, now))))


def heartbeat(group: ClassicGroup, member_id: str, instance: str | None, generation_id: int,
              now: int) -> tuple[ClassicGroup, str]:
    """Take a Heartbeat, and say whether the member has to join again (`handleHeartbeat`)."""
    error = check(group, member_id, instance, generation_id)
    if error != "NONE":
        return group, error
    group = _heard(group, member_id, now)
    return group, REBALANCE_IN_PROGRESS if group.state is GroupState.PREPARING_REBALANCE else "NONE"


def leave(group: ClassicGroup, member_id: str, instance: str | None, now: int) -> tuple[ClassicGroup, str, Answers]:
    """Let a member go, by its id or by its instance alone; the others rebalance (`handleLeaveGroup`)."""
    if member_id in group.promised:
        left = attrs.evolve(group, promised=group.promised.without(member_id))
        left, answers = _complete_join(left, now) if left.state is GroupState.PREPARING_REBALANCE else (left, ())
        return left, "NONE", answers
    if not member_id and instance is not None:
        member_id = group.member_of(instance) or ""
    error = check(group, member_id, instance, None)
    if error != "NONE":
        return group, error, ()
    group, answers = _without(group, member_id, now)
    return group, "NONE", answers


def _without(group: ClassicGroup, member_id: str, now: int) -> Step:
    member = group.members[member_id]
    answers: Answers = ()
    if member.joining is not None:
        answers += ((member.joining, Joined("UNKNOWN_MEMBER_ID", member_id)),)
    if member.syncing is not None:
        answers += ((member.syncing, Synced("UNKNOWN_MEMBER_ID")),)
    order = tuple(known for known in group.order if known != member_id)
    leader = (order[0] if order else "") if group.leader == member_id else group.leader
    group = attrs.evolve(group, members=group.members.without(member_id), order=order, leader=leader)
    group, more = _rebalance(group, now)
    return group, answers + more


def pass_time(group: ClassicGroup, now: int) -> Step:
    """Drop members that are silent and ids that nobody came back with; end a rebalance that is too old."""
    answers: Answers = ()
    promised = FrozenMap((known, until) for known, until in group.promised.items() if until > now)
    lapsed = len(promised) != len(group.promised)
    group = attrs.evolve(group, promised=promised)
    for known in group.members:
        member = group.members.get(known)  # who is dropped may end a rebalance, which drops others
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
