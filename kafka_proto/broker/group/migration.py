"""Groups whose members speak both protocols, and how a group gets from one to the other while it goes on (KIP-848).

The first member that speaks the protocol of consumer groups makes a classic group one (upgrade); classic members stay,
and their JoinGroup, SyncGroup, Heartbeat and LeaveGroup are answered from it. When the last of the others has gone, it
is classic again (downgrade). `group.consumer.migration.policy` says which of both there is (`GroupMetadataManager`);
groups without members go both ways with each policy.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import attrs

from harness.model import FrozenMap
from kafka_proto.broker.group import assignors, consumer_group
from kafka_proto.broker.group.assignors import Partitions
from kafka_proto.broker.group.consumer_group import (
    JOINS,
    ClassicMember,
    ConsumerGroup,
    ConsumerMember,
    MemberState,
)
from kafka_proto.broker.group.deletion import CONSUMER
from kafka_proto.broker.group.rebalance import ClassicGroup, GroupState, Member, has_session, voted
from kafka_proto.broker.group.settings import GroupConfig, MigrationPolicy
from kafka_proto.errors import Error
from kafka_proto.requests import partition_index, partition_name, topic_of
from kafka_proto.requests.groups import (
    ConsumerGroupHeartbeatRequest,
    JoinGroupRequest,
    JoinGroupResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)

NO_USER_DATA = b"\xff\xff\xff\xff"


class MalformedProtocol(ValueError):
    """What a member said for the protocol `consumer` cannot be read."""


class _Said:
    """Bytes of `ConsumerProtocolSubscription` or `ConsumerProtocolAssignment`, from front to back."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "big", signed=True)

    def take(self, size: int) -> bytes:
        if not 0 <= size <= len(self.data) - self.at:
            raise MalformedProtocol(f"{size} bytes expected, {len(self.data) - self.at} left")
        self.at += size
        return self.data[self.at - size : self.at]

    def name(self) -> str:
        return self.take(self.number(2)).decode(errors="replace")

    def partitions(self) -> Iterator[str]:
        for _ in range(self.number(4)):
            topic = self.name()
            yield from [partition_name(topic, self.number(4)) for _ in range(self.number(4))]


def subscription(metadata: bytes) -> tuple[tuple[str, ...], Partitions]:
    """Return the topics that a member subscribes to, and the partitions that it has. Raises MalformedProtocol."""
    said = _Said(metadata)
    version = said.number(2)
    topics = tuple(said.name() for _ in range(said.number(4)))
    said.take(max(0, said.number(4)))
    return topics, tuple(said.partitions()) if version >= 1 else ()


def assignment(data: bytes) -> tuple[Partitions, bytes]:
    """Return the partitions that a member was assigned, and what its assignor said besides. Raises MalformedProtocol.
    """
    said = _Said(data)
    if not data or said.number(2) < 0:
        return (), b""
    return tuple(said.partitions()), said.take(max(0, said.number(4)))


def written(partitions: Iterable[str], metadata: bytes) -> bytes:
    """Return an assignment in the version in which a member said its subscription."""
    topics: dict[str, list[int]] = {}
    for p in partitions:
        topics.setdefault(topic_of(p), []).append(partition_index(p))
    out = metadata[:2] + len(topics).to_bytes(4, "big")
    for topic, indexes in topics.items():
        name = topic.encode()
        out += len(name).to_bytes(2, "big") + name + len(indexes).to_bytes(4, "big")
        out += b"".join(index.to_bytes(4, "big") for index in indexes)
    return out + NO_USER_DATA


def upgraded(
    group_id: str, group: ClassicGroup, topics: Mapping[str, int], policy: MigrationPolicy
) -> ConsumerGroup | str:
    """Return a classic group as one of consumers, where all have what they were assigned; or why it is none.

    It may have another type of protocol, an assignor that says more than partitions, or members whose bytes cannot be
    read (`validateOnlineUpgrade`, `convertToConsumerGroup`).
    """
    def member(each: Member) -> ConsumerMember:
        names, _ = subscription(each.join.protocols[0][1])
        given, _ = assignment(each.assignment)
        has = (p for p in given if partition_index(p) < topics.get(topic_of(p), 0))
        return ConsumerMember(
            each.silent_until, group.generation, group.generation, MemberState.STABLE, each.join.group_instance_id,
            each.join.client_id, each.join.rebalance_timeout_ms, tuple(sorted({*names})),
            assigned=assignors.in_order(has), classic=ClassicMember(each.join.session_timeout_ms, each.join.protocols))

    refused = f"Cannot upgrade classic group {group_id} to consumer group because "
    if not policy.upgrades:
        return f"{refused}online upgrade is disabled."
    if group.protocol_type != CONSUMER:
        return f"{refused}the group does not use the consumer embedded protocol."
    try:
        members = FrozenMap((known, member(each)) for known, each in group.members.items())
    except MalformedProtocol:
        return f"{refused}the embedded consumer protocol is malformed."
    if any(assignment(each.assignment)[1] for each in group.members.values()):
        return f"{refused}an unsupported custom assignor is in use."
    seen = FrozenMap((name, topics[name]) for each in members.values() for name in each.topics(topics))
    return ConsumerGroup(group.generation, group.generation, members,
                         FrozenMap((known, each.assigned) for known, each in members.items()), seen)


def is_classic_again(before: ConsumerGroup | None, after: ConsumerGroup, policy: MigrationPolicy) -> bool:
    """Say whether the last member that spoke the protocol of consumer groups has gone, and others are there."""
    return bool(before is not None and after.members and policy.downgrades
                and any(each.classic is None for each in before.members.values())
                and all(each.classic is not None for each in after.members.values()))


def downgraded(group_id: str, group: ConsumerGroup) -> ClassicGroup:
    """Return a group of classic members as a classic one that is stable with what each was to have."""
    members = {}
    for known, each in group.members.items():
        assert each.classic is not None
        join = JoinGroupRequest(9, group_id, each.classic.session_timeout_ms, each.rebalance_timeout_ms, known,
                                each.instance_id, CONSUMER, each.classic.protocols, each.client_id)
        members[known] = Member(join, each.silent_until, written(
            group.targets.get(known, ()), each.classic.protocols[0][1]))
    found = FrozenMap(members)
    return ClassicGroup(GroupState.STABLE, group.epoch, voted(found), next(iter(found)), found, tuple(found),
                        protocol_type=CONSUMER)


def check_join(group: ConsumerGroup, request: JoinGroupRequest, config: GroupConfig, by_policy: bool) -> Error:
    """Say whether a classic member may join a consumer group (`throwIfClassicMemberCannotJoinConsumerGroup`, 4.3)."""
    if not has_session(request, config):
        return Error.INVALID_SESSION_TIMEOUT
    is_refused = by_policy and config.group_consumer_migration_policy is MigrationPolicy.DISABLED
    return Error.INCONSISTENT_GROUP_PROTOCOL if group.members and is_refused else Error.NONE


def join(
    group: ConsumerGroup, request: JoinGroupRequest, fresh: str, topics: Mapping[str, int], now: int
) -> tuple[ConsumerGroup, JoinGroupResponse]:
    """Take a JoinGroup of a classic member: it is told its epoch as its generation, and that it does not assign."""
    def refused(error: Error, member_id: str = request.member_id) -> tuple[ConsumerGroup, JoinGroupResponse]:
        return group, JoinGroupResponse(error, member_id)

    if request.protocol_type != CONSUMER or not request.protocols or not _knows_all(group, request):
        return refused(Error.INCONSISTENT_GROUP_PROTOCOL)
    instance, member_id = request.group_instance_id, request.member_id or fresh
    if not request.member_id and instance is None and request.version >= 4:
        return refused(Error.MEMBER_ID_REQUIRED, fresh)
    if request.member_id and instance is not None:
        error = _refused(group, request.member_id, instance)
        if error is not Error.NONE:
            return refused(error)
    try:
        names, owned = subscription(request.protocols[0][1])
    except MalformedProtocol:
        return refused(Error.UNKNOWN_SERVER_ERROR)
    is_replaced = instance is not None and not request.member_id and group.instance(instance) is not None
    known = group.members.get(member_id)
    said = ConsumerGroupHeartbeatRequest(
        0, request.group_id, member_id, JOINS if known is None or is_replaced else known.epoch, instance,
        request.rebalance_timeout_ms, names, None, None, owned, request.client_id)
    after, member = consumer_group.subscribed(group, said, topics, now)
    member = attrs.evolve(member, revoked_until=None, silent_until=now + request.session_timeout_ms,
                          classic=ClassicMember(request.session_timeout_ms, request.protocols))
    member = consumer_group.reconciled(after, member_id, member, owned, now)
    return attrs.evolve(after, members=after.members.set(member_id, member)), JoinGroupResponse(
        Error.NONE, member_id, member.epoch, CONSUMER, request.protocols[0][0])


def _knows_all(group: ConsumerGroup, request: JoinGroupRequest) -> bool:
    """Say whether all classic members know one of the protocols (`supportsClassicProtocols`)."""
    known = [{name for name, _ in each.classic.protocols} for each in group.members.values() if each.classic]
    return any(all(name in names for names in known) for name, _ in request.protocols)


def _refused(group: ConsumerGroup, member_id: str, instance: str | None, generation: int | None = None) -> Error:
    """Say whether a request is not of a classic member, or of another generation (`validateConsumerGroupMember`)."""
    current = member_id if instance is None else group.instance(instance)
    if current is None:
        return Error.UNKNOWN_MEMBER_ID
    if current != member_id:
        return Error.FENCED_INSTANCE_ID
    member = group.members.get(member_id)
    if member is None or (generation is not None and member.classic is None):
        return Error.UNKNOWN_MEMBER_ID
    return Error.NONE if generation in (None, member.epoch) else Error.ILLEGAL_GENERATION


def sync(group: ConsumerGroup, request: SyncGroupRequest, now: int) -> tuple[ConsumerGroup, SyncGroupResponse]:
    """Tell a classic member its assignment, unless it has to join again."""
    error = _refused(group, request.member_id, request.group_instance_id, request.generation_id)
    if error is not Error.NONE:
        return group, SyncGroupResponse(error)
    member = group.members[request.member_id]
    assert member.classic is not None
    name, metadata = member.classic.protocols[0]
    if request.protocol_type not in (None, CONSUMER) or request.protocol_name not in (None, name):
        return group, SyncGroupResponse(Error.INCONSISTENT_GROUP_PROTOCOL)
    if group.epoch > member.epoch and member.state is not MemberState.UNREVOKED_PARTITIONS:
        return _late(group, request.member_id, now), SyncGroupResponse(Error.REBALANCE_IN_PROGRESS)
    return _heard(group, request.member_id, now), SyncGroupResponse(
        Error.NONE, request.protocol_type, request.protocol_name, written(member.assigned, metadata))


def heartbeat(
    group: ConsumerGroup, member_id: str, instance: str | None, generation: int, now: int
) -> tuple[ConsumerGroup, Error]:
    """Take a Heartbeat of a classic member, and say whether it has to join again."""
    error = _refused(group, member_id, instance, generation)
    if error is not Error.NONE:
        return group, error
    group, member = _heard(group, member_id, now), group.members[member_id]
    held = {p for known, each in group.members.items() if known != member_id
            for p in (*each.assigned, *each.revoking)}
    waits = any(p in held for p in group.targets.get(member_id, ()) if p not in member.assigned)
    if (member.epoch == group.epoch and member.state is not MemberState.UNREVOKED_PARTITIONS
            and (member.state is MemberState.STABLE or waits)):
        return group, Error.NONE
    return _late(group, member_id, now), Error.REBALANCE_IN_PROGRESS


def leave(group: ConsumerGroup, member_id: str, instance: str | None) -> tuple[ConsumerGroup, Error]:
    """Let a classic member go, by its id or by its instance alone."""
    if instance is not None and not member_id:
        member_id = group.instance(instance) or ""
    member = group.members.get(member_id)
    error = _refused(group, member_id, instance, None if member is None else member.epoch)
    return (group, error) if error is not Error.NONE else (consumer_group.without(group, member_id), Error.NONE)


def _heard(group: ConsumerGroup, member_id: str, now: int) -> ConsumerGroup:
    member = group.members[member_id]
    assert member.classic is not None
    member = attrs.evolve(member, silent_until=now + member.classic.session_timeout_ms)
    return attrs.evolve(group, members=group.members.set(member_id, member))


def _late(group: ConsumerGroup, member_id: str, now: int) -> ConsumerGroup:
    """Return a group in which a member has to join again within its time for rebalances."""
    member = group.members[member_id]
    until = now + member.rebalance_timeout_ms if member.revoked_until is None else member.revoked_until
    return attrs.evolve(group, members=group.members.set(member_id, attrs.evolve(member, revoked_until=until)))
