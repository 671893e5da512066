"""What the offsets log holds of a group besides its offsets, so that its members outlive their coordinator.

`GroupMetadataManager.storeGroup` and `loadGroup`: generation, protocol and leader, and of each member what it said for
the protocol and what it was assigned. Who waits for what, and until when, is not in the log.
"""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from harness.model import FrozenMap
from kafka_proto.broker.group.rebalance import ClassicGroup, GroupState, Member
from kafka_proto.log import RecordBatch


@attrs.frozen
class GroupMetadata:
    """A record of the offsets log; a group of None is a tombstone."""

    group_id: str
    group: ClassicGroup | None

    def __str__(self) -> str:
        told = "gone" if self.group is None else f"generation {self.group.generation}"
        return f"{self.group_id} {told}"


def stored(group: ClassicGroup) -> ClassicGroup:
    """Return what is stored of a group that is stable or empty."""
    state = GroupState.STABLE if group.members else GroupState.EMPTY
    members = FrozenMap((known, _stored(member, group.protocol_name)) for known, member in group.members.items())
    return ClassicGroup(state, group.generation, group.protocol_name, group.leader, members, group.order)


def _stored(member: Member, protocol: str | None) -> Member:
    chosen = tuple(each for each in member.join.protocols if each[0] == protocol)
    return Member(attrs.evolve(member.join, protocols=chosen), 0, member.assignment)


def changed(before: ClassicGroup, after: ClassicGroup) -> bool:
    """Say whether a group has come to rest as another one than is stored."""
    at_rest = after.state in (GroupState.EMPTY, GroupState.STABLE)
    return at_rest and stored(after) != stored(before)


def loaded(records: Iterable[RecordBatch], now: int) -> dict[str, ClassicGroup | None]:
    """Return the groups that a log holds, None for one that is gone; all sessions begin anew."""
    found: dict[str, ClassicGroup | None] = {}
    for batch in records:
        for record in batch.records:
            if isinstance(record, GroupMetadata):
                found[record.group_id] = None if record.group is None else _loaded(record.group, now)
    return found


def _loaded(group: ClassicGroup, now: int) -> ClassicGroup:
    members = FrozenMap((known, attrs.evolve(member, silent_until=now + member.join.session_timeout_ms))
                        for known, member in group.members.items())
    return attrs.evolve(group, members=members)
