"""The coordinator of groups as a role of a broker: the leader of the offsets partition, which takes commits itself.

Offsets and groups at rest are in the offsets log: it is loaded when it is committed, and a commit counts when it is. A
member that waits for a rebalance asks the next coordinator again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import attrs

from harness.model import FrozenMap, Local, Message, Value
from kafka_proto.broker.group import consumer_group, deletion, migration, rebalance
from kafka_proto.broker.group import coordinator as group
from kafka_proto.broker.group.commits import OffsetsRole, with_groups
from kafka_proto.broker.group.consumer_group import ConsumerGroup
from kafka_proto.broker.group.coordinator import AnyGroup, GroupCoordinator, GroupMetadata
from kafka_proto.broker.group.rebalance import Assignments, ClassicGroup
from kafka_proto.broker.group.settings import KAFKAS_GROUPS, GroupConfig
from kafka_proto.broker.leader.role import MarkerAnswers
from kafka_proto.broker.leader.verification import NO_GUARD, Origin
from kafka_proto.broker.messages import PartitionsDeleted, Request, asker_of
from kafka_proto.broker.other_brokers import OtherBrokers
from kafka_proto.broker.parts import GROUPS, LEADER, GroupCoordinatorState, exists, known, now
from kafka_proto.broker.roles import Append, Effect, RoleStep
from kafka_proto.broker.versions import BrokerVersion
from kafka_proto.log import PartitionLog, RecordBatch
from kafka_proto.requests import (
    OFFSETS_PARTITION,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    DeleteGroupRequest,
    DeleteGroupResponse,
    Error,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberResponse,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    SyncGroupRequest,
    SyncGroupResponse,
    is_internal,
    topic_of,
)

GroupRequest = (JoinGroupRequest | SyncGroupRequest | HeartbeatRequest | LeaveGroupRequest | DeleteGroupRequest
                | OffsetDeleteRequest | ConsumerGroupHeartbeatRequest)
Response = JoinGroupResponse | SyncGroupResponse | ConsumerGroupHeartbeatResponse
Answers = Sequence[tuple[Value, Response]]
"""To members, by who asked."""
GROUP_TIMEOUT = "GroupTimeout"
MOST_GROUPS = 10_000
COMMIT_TIMEOUT_MS = 5_000
"""How long what is stored may wait for replicas (`offsets.commit.timeout.ms`)."""
STORE_ERRORS = {**group.COMMIT_ERRORS, Error.REQUEST_TIMED_OUT: Error.REBALANCE_IN_PROGRESS}
"""What members are told of a group that could not be stored (`storeGroup`)."""


@attrs.frozen
class GroupStored:
    """What is done once a group is in the offsets log: members are told what is assigned, or that they are in it."""

    group_id: str
    generation: int
    assignments: Assignments | None = None
    answers: Answers = ()


class GroupRole(OffsetsRole):
    """The coordinator of one broker, for the groups whose partition it leads."""

    loads_at_once = False
    role = "group"

    def __init__(
        self, name: str, version: BrokerVersion, topic_partitions: tuple[str, ...], others: OtherBrokers,
        marker_answers: MarkerAnswers, most_groups: int = MOST_GROUPS,
        config: GroupConfig = KAFKAS_GROUPS,
    ) -> None:
        super().__init__(name, version, topic_partitions, others, marker_answers)
        self.config = config
        self.most_groups = most_groups
        """Nobody makes another one by joining it."""
        self.topics = Counter(topic_of(p) for p in sorted(self.topic_partitions) if not is_internal(p))
        self.of_groups |= {
            JoinGroupRequest: self.join_group, SyncGroupRequest: self.sync_group, HeartbeatRequest: self.heartbeat,
            LeaveGroupRequest: self.leave_group, PartitionsDeleted: self.partitions_deleted,
            DeleteGroupRequest: self.delete_group, OffsetDeleteRequest: self.offset_delete,
            ConsumerGroupHeartbeatRequest: self.consumer_group_heartbeat,
        }

    def loaded_from(self, local: Local, p: str, start: PartitionLog, records: Iterable[RecordBatch]) -> Local:
        """Return the state with the offsets and groups that the log makes, all of it committed."""
        records = tuple(records)
        local = super().loaded_from(local, p, start, records)
        for record in records:
            local = super().committed(local, p, record)
        return with_groups(local, group.loaded(records, now(local)))

    def resigned(self, local: Local, p: str) -> Local:
        """Return the state without groups; members that wait are to look for another coordinator."""
        mine = local[GROUPS]
        waiting = (rebalance.unloaded(each) for each in mine.groups.groups.values() if isinstance(each, ClassicGroup))
        unsent = (*(mine.unsent or ()), *(message for answers in waiting for message in self.answers(answers)))
        return super().resigned(local, p).put(GROUPS, GroupCoordinatorState(unsent=unsent or None))

    def response(self, request: Any, error: Error, offset: int, start: int | None = None) -> Value:
        if isinstance(request, DeleteGroupRequest):
            return DeleteGroupResponse(group.refused_commit(error))
        if isinstance(request, OffsetDeleteRequest):
            return OffsetDeleteResponse(group.refused_commit(error))
        return super().response(request, error, offset, start)

    def refused(self, local: Local, request: GroupRequest, makes_one: bool = False) -> Error:
        """Say whether a group has a name, and its coordinator is here, with room for it if the request makes one."""
        if not request.group_id:
            return Error.INVALID_GROUP_ID
        if not local[LEADER[OFFSETS_PARTITION]].serves:
            return Error.NOT_COORDINATOR
        groups = local[GROUPS].groups.groups
        is_new = makes_one and request.group_id not in groups
        return Error.INVALID_GROUP_ID if is_new and len(groups) >= self.most_groups else Error.NONE

    def join_group(self, local: Local, message: Request, request: JoinGroupRequest) -> Effect:
        """Let a member join; it is answered once the generation is complete."""
        groups, group_id = local[GROUPS].groups, request.group_id
        error = self.refused(local, request, makes_one=True)
        consumers = groups.consumer(group_id)
        if error is Error.NONE and consumers is not None:
            error = migration.check_join(consumers, request, self.config, self.version.group.joins_by_policy)
        if error is not Error.NONE:
            told = "" if error is Error.INCONSISTENT_GROUP_PROTOCOL else request.member_id
            return self.reply(local, message, JoinGroupResponse(error, told))
        epoch, number = known(local, OFFSETS_PARTITION).leader_epoch, groups.members + 1
        fresh = f"{request.group_instance_id or request.client_id}-{epoch}-{number:08d}"
        if consumers is not None and consumers.members:
            mixed, response = migration.join(consumers, request, fresh, self.topics, now(local))
            if not request.member_id:
                local = with_groups(local, attrs.evolve(groups, members=number))
            return self.consumers(local, group_id, mixed, ((asker_of(message), response),))
        after, answers = rebalance.join(
            groups.classic(group_id), request, fresh, asker_of(message), now(local), self.config
        )
        new = Effect(local)
        if not request.member_id and rebalance.has_session(request, self.config):  # not for an unknown member
            new = Effect(with_groups(local, attrs.evolve(group.with_group(groups, group_id), members=number)))
            is_new = group_id not in groups.groups or consumers is not None
            if is_new and self.version.group.stores_new:
                new = new.then(self.store(new.local, ClassicGroup(), GroupStored(group_id, 0), groups))
        return new.then(self.moved(new.local, group_id, after, answers))

    def sync_group(self, local: Local, message: Request, request: SyncGroupRequest) -> Effect:
        """Store what the leader assigns, and tell all members then."""
        error = self.refused(local, request)
        if request.version >= 5 and None in (request.protocol_type, request.protocol_name):
            error = Error.INCONSISTENT_GROUP_PROTOCOL
        if error is not Error.NONE:
            return self.reply(local, message, SyncGroupResponse(error))
        token, consumers = asker_of(message), local[GROUPS].groups.consumer(request.group_id)
        if consumers is not None and consumers.members:
            mixed, response = migration.sync(consumers, request, now(local))
            return self.consumers(local, request.group_id, mixed, ((token, response),))
        after, answers = rebalance.sync(local[GROUPS].groups.classic(request.group_id), request, token, now(local))
        effect = self.moved(local, request.group_id, after, answers)
        if not rebalance.assigns(after, request, token):
            return effect
        stable, _ = rebalance.assigned(after, request.assignments, now(local))
        callback = GroupStored(request.group_id, stable.generation, request.assignments)
        return effect.then(self.store(effect.local, group.stored(stable), callback))

    def consumer_group_heartbeat(
        self, local: Local, message: Request, request: ConsumerGroupHeartbeatRequest
    ) -> Effect:
        """Let a member of a consumer group join, go on or leave; it is answered once what changes is stored."""
        groups, group_id = local[GROUPS].groups, request.group_id
        error, before, reason = self.refused(local, request, makes_one=True), groups.consumer(group_id), None
        policy, waiting = self.config.group_consumer_migration_policy, rebalance.NO_ANSWERS
        if error is Error.NONE and (classic := groups.classic(group_id)).members:
            waiting = rebalance.unloaded(classic, Error.REBALANCE_IN_PROGRESS)
            found = (migration.upgraded(group_id, classic, self.topics, policy)
                     if request.member_epoch == consumer_group.JOINS else f"Group {group_id} is not a consumer group.")
            before, reason = (None, found) if isinstance(found, str) else (found, None)
            error = Error.NONE if reason is None else Error.GROUP_ID_NOT_FOUND
        if error is not Error.NONE:
            return self.reply(local, message, ConsumerGroupHeartbeatResponse(error, reason))
        if not request.member_id and request.version == 0 and request.member_epoch == consumer_group.JOINS:
            local = with_groups(local, attrs.evolve(groups, members=groups.members + 1))
            epoch = known(local, OFFSETS_PARTITION).leader_epoch
            request = attrs.evolve(request, member_id=f"{request.client_id}-{epoch}-{groups.members + 1:08d}")
        after, response = consumer_group.heartbeat(before, request, self.topics, now(local))
        if response.error is not Error.NONE:
            return self.reply(local, message, response)
        return self.consumers(local, group_id, after, ((asker_of(message), response), *waiting))

    def consumers(self, local: Local, group_id: str, after: ConsumerGroup, answers: Answers = ()) -> Effect:
        """Return the state with another consumer group; where more than times has changed it is stored first."""
        groups = local[GROUPS].groups
        before = groups.consumer(group_id)
        if migration.is_classic_again(before, after, self.config.group_consumer_migration_policy):
            classic = migration.downgraded(group_id, after)
            again, more = rebalance.begin(classic, now(local))
            local = with_groups(local, groups.with_members(group_id, again))
            callback = GroupStored(group_id, classic.generation, answers=(*answers, *more))
            return self.store(local, group.stored(classic), callback, groups)
        local = with_groups(local, groups.with_members(group_id, after))
        record = consumer_group.stored(after)
        if before is not None and consumer_group.stored(before) == record:
            return Effect(local, self.answers(answers))
        return self.store(local, record, GroupStored(group_id, after.epoch, answers=answers), groups)

    def heartbeat(self, local: Local, message: Request, request: HeartbeatRequest) -> Effect:
        error = self.refused(local, request)
        if error is not Error.NONE:
            return self.reply(local, message, HeartbeatResponse(error))
        groups, who = local[GROUPS].groups, (request.member_id, request.group_instance_id)
        if (consumers := groups.consumer(request.group_id)) is not None:
            mixed, error = migration.heartbeat(consumers, *who, request.generation_id, now(local))
            local = with_groups(local, groups.with_members(request.group_id, mixed))
            return self.reply(local, message, HeartbeatResponse(error))
        after, error = rebalance.heartbeat(
            local[GROUPS].groups.classic(request.group_id), request.member_id, request.group_instance_id,
            request.generation_id, now(local),
        )
        return self.reply(self.with_classic(local, request.group_id, after), message, HeartbeatResponse(error))

    def leave_group(self, local: Local, message: Request, request: LeaveGroupRequest) -> Effect:
        """Let members go, each with its own error."""
        error = self.refused(local, request)
        if error is not Error.NONE:
            return self.reply(local, message, LeaveGroupResponse(error))
        after, answers, left = local[GROUPS].groups.classic(request.group_id), rebalance.NO_ANSWERS, []
        consumers = local[GROUPS].groups.consumer(request.group_id)
        for who in request.members:
            if consumers is not None:
                consumers, error = migration.leave(consumers, who.member_id, who.group_instance_id)
            else:
                after, error, more = rebalance.leave(after, who.member_id, who.group_instance_id, now(local))
                answers += more
            left.append(MemberResponse(who.member_id, who.group_instance_id, error))
        response = LeaveGroupResponse(Error.NONE, tuple(left)) if request.version >= 3 else LeaveGroupResponse(error)
        effect = (self.moved(local, request.group_id, after, answers) if consumers is None
                  else self.consumers(local, request.group_id, consumers))
        return effect.then(self.reply(effect.local, message, response))

    def moved(self, local: Local, group_id: str, after: ClassicGroup, answers: Answers) -> Effect:
        """Return the state with another group, and its answers; what its next coordinator has to know is stored."""
        before = local[GROUPS].groups.classic(group_id)
        local = self.with_classic(local, group_id, after)
        if not group.changed(before, after):
            return Effect(local, self.answers(answers))
        if after.members:
            return self.store(local, group.stored(after), GroupStored(group_id, after.generation, answers=answers))
        effect = self.store(local, group.stored(after), GroupStored(group_id, after.generation))
        return attrs.evolve(effect, sent=self.answers(answers))

    def with_classic(self, local: Local, group_id: str, after: ClassicGroup) -> Local:
        """Return the state with another group; one that is as before does not come into being."""
        groups = local[GROUPS].groups
        return local if after == groups.classic(group_id) else with_groups(local, groups.with_members(group_id, after))

    def answers(self, answers: Answers) -> tuple[Message, ...]:
        """Return the responses to members, each to the one that asked."""
        return tuple(asker.answered(self.name, response) for asker, response in answers)

    def store(
        self, local: Local, stored: ClassicGroup | ConsumerGroup, callback: GroupStored,
        before: GroupCoordinator | None = None,
    ) -> Effect:
        """Append a group to the offsets log (`storeGroup`); with a tombstone of that of the other kind `before`."""
        record, group_id = GroupMetadata(callback.group_id, stored), callback.group_id
        former = None if before is None else before.groups.get(group_id)
        changes = former is not None and isinstance(former, ConsumerGroup) != isinstance(stored, ConsumerGroup)
        gone = (group.tombstone(before, group_id),) if before is not None and changes else ()
        end_offset = local[LEADER[OFFSETS_PARTITION]].log.log_end_offset
        batch = RecordBatch((*gone, record), base_offset=end_offset, timestamp=now(local))
        return Effect(local, appends=(Append(OFFSETS_PARTITION, batch, callback, timeout_ms=COMMIT_TIMEOUT_MS),))

    def stored(self, local: Local, callback: GroupStored, error: Error) -> Effect:
        """Go on once a group is stored, or is not: answer the members that waited for that."""
        after = local[GROUPS].groups.classic(callback.group_id)
        if callback.assignments is None:
            refused = ((asker, type(answer)(error)) for asker, answer in callback.answers)
            return Effect(local, self.answers(callback.answers if error is Error.NONE else tuple(refused)))
        if not after.awaits_leader or after.generation != callback.generation:  # a member has joined meanwhile
            return Effect(local)
        if error is not Error.NONE:
            return self.moved(local, callback.group_id, *rebalance.not_assigned(after, error, now(local)))
        after, answers = rebalance.assigned(after, callback.assignments, now(local))
        return Effect(self.with_classic(local, callback.group_id, after), self.answers(answers))

    def timers(self, local: Local) -> dict[str, int | None]:
        """The first session of a group ends, or the rebalance that a member is late for."""
        groups = local[GROUPS].groups.groups
        return {f"{GROUP_TIMEOUT} {group_id}": due for group_id, members in groups.items()
                if (due := next_deadline(members)) is not None}

    def timer_fired(self, local: Local, timer: str) -> Iterable[RoleStep]:
        """Let a group's time pass up to its deadline, or up to now if there is a clock that is beyond it."""
        kind, _, group_id = timer.partition(" ")
        members = local[GROUPS].groups.groups.get(group_id) if kind == GROUP_TIMEOUT else None
        due = next_deadline(members)
        if due is None:
            return
        at = max(due, now(local))
        effect = (self.consumers(local, group_id, consumer_group.pass_time(members, at))
                  if isinstance(members, ConsumerGroup) else
                  self.moved(local, group_id, *rebalance.pass_time(local[GROUPS].groups.classic(group_id), at)))
        yield self.outcome(effect, kind, group_id)

    def step(self, local: Local, may_append: Callable[[str], bool]) -> Iterable[RoleStep]:
        """Tell members that waited when the broker resigned."""
        mine = local[GROUPS]
        if mine.unsent is not None:
            effect = Effect(local.put(GROUPS, attrs.evolve(mine, unsent=None)), mine.unsent)
            yield self.outcome(effect, "UnloadGroups")

    def partitions_deleted(self, local: Local, message: Request, request: PartitionsDeleted) -> Effect:
        """Append a tombstone for each offset of partitions that are gone (`onPartitionsDeleted`)."""
        before = local[GROUPS].groups
        if not local[LEADER[OFFSETS_PARTITION]].serves:
            return Effect(local)
        keys = before.offsets.of_partitions(request.partitions)
        batch = group.deletion_batch(keys, now(local))
        after = group.replayed(before, batch)
        kept = self.version.group.after_deletion(before, after).groups
        unused = tuple(group_id for group_id in after.groups if group_id not in kept)
        joined = (group.tombstone(before, group_id) for group_id in unused if isinstance(
            before.groups.get(group_id), ClassicGroup | ConsumerGroup))
        batch = group.deletion_batch(keys, now(local), joined)
        if not batch.records:
            return Effect(without_groups(local, unused))
        told = attrs.evolve(message, request=attrs.evolve(request, unused=unused))
        return self.append(local, told, OFFSETS_PARTITION, batch, Origin.COORDINATOR, NO_GUARD)

    def delete_group(self, local: Local, message: Request, request: DeleteGroupRequest) -> Effect:
        """Append a tombstone for a group and for each of its offsets; then it is gone."""
        error, groups = self.refused(local, request), local[GROUPS].groups
        if error is Error.NONE:
            error = deletion.check_group_deletion(groups, request.group_id)
        if error is not Error.NONE:
            return self.reply(local, message, DeleteGroupResponse(error))
        batch = group.deletion_batch(
            deletion.keys_of(groups, request.group_id), now(local), (group.tombstone(groups, request.group_id),))
        return self.append(local, message, OFFSETS_PARTITION, batch, Origin.COORDINATOR, NO_GUARD)

    def offset_delete(self, local: Local, message: Request, request: OffsetDeleteRequest) -> Effect:
        """Append a tombstone for an offset, if there is one."""
        error, groups = self.refused(local, request), local[GROUPS].groups
        if error is Error.NONE:
            error = deletion.check_offset_deletion(groups, request.group_id, topic_of(request.partition))
        if error is Error.NONE and not (
                request.partition in self.topic_partitions and exists(local, request.partition)):
            error = Error.UNKNOWN_TOPIC_OR_PARTITION
        key = (request.group_id, request.partition)
        if error is not Error.NONE or key not in deletion.keys_of(groups, request.group_id):
            return self.reply(local, message, OffsetDeleteResponse(error))
        batch = group.deletion_batch((key,), now(local))
        return self.append(local, message, OFFSETS_PARTITION, batch, Origin.COORDINATOR, NO_GUARD)

    def completed(self, local: Local, p: str, record: RecordBatch, callback: Request | GroupStored) -> Effect:
        if isinstance(callback, GroupStored):
            return self.stored(local, callback, Error.NONE)
        if isinstance(callback.request, DeleteGroupRequest):
            local = without_groups(local, (callback.request.group_id,))
        if isinstance(callback.request, PartitionsDeleted):
            return Effect(without_groups(local, callback.request.unused))
        return super().completed(local, p, record, callback)

    def failed(
        self, local: Local, p: str, callback: Request | GroupStored, error: Error, record: Value = None
    ) -> Effect:
        if isinstance(callback, GroupStored):
            return self.stored(local, callback, STORE_ERRORS.get(error, error))
        if isinstance(callback.request, PartitionsDeleted):
            return Effect(local)
        return super().failed(local, p, callback, error)


def next_deadline(members: AnyGroup | None) -> int | None:
    """Return when something is due in a group."""
    if isinstance(members, ClassicGroup):
        return rebalance.next_deadline(members)
    return consumer_group.next_deadline(members) if isinstance(members, ConsumerGroup) else None


def without_groups(local: Local, names: Iterable[str]) -> Local:
    """Return the state without groups that have no members."""
    groups = local[GROUPS].groups
    gone = frozenset(names)
    left = FrozenMap(item for item in groups.groups.items() if item[0] not in gone or item[1].members)
    return with_groups(local, attrs.evolve(groups, groups=left))
