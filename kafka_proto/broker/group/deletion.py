"""What may be deleted of a group: all of it while it has no members, an offset while nobody is subscribed to its topic.

`GroupMetadata.isSubscribedToTopic`, `GroupCoordinator.handleDeleteGroups` and `handleDeleteOffsets` (KIP-229, KIP-496).
"""

from __future__ import annotations

from collections.abc import Iterator

from kafka_proto.broker.group.coordinator import GroupCoordinator, Key
from kafka_proto.broker.group.rebalance import ClassicGroup
from kafka_proto.errors import Error

CONSUMER = "consumer"
"""The type of the protocol whose metadata says what a member is subscribed to."""


def keys_of(state: GroupCoordinator, group_id: str) -> tuple[Key, ...]:
    """Return the offsets that a group has, committed or staged, sorted."""
    return tuple(key for key in state.offsets.keys if key[0] == group_id)


def check_group_deletion(state: GroupCoordinator, group_id: str) -> Error:
    """Say whether a group may be deleted."""
    if group_id not in state.groups:
        return Error.GROUP_ID_NOT_FOUND
    return Error.NON_EMPTY_GROUP if state.groups[group_id].members else Error.NONE


def check_offset_deletion(state: GroupCoordinator, group_id: str, topic: str) -> Error:
    """Say whether a group's offsets of a topic may be deleted."""
    if group_id not in state.groups:
        return Error.GROUP_ID_NOT_FOUND
    consumers, group = state.consumer(group_id), state.classic(group_id)
    if consumers is not None and consumers.is_subscribed(topic):
        return Error.GROUP_SUBSCRIBED_TO_TOPIC
    if not group.members:
        return Error.NONE
    if group.protocol_type != CONSUMER:
        return Error.NON_EMPTY_GROUP
    return Error.GROUP_SUBSCRIBED_TO_TOPIC if topic in subscriptions(group) else Error.NONE


def subscriptions(group: ClassicGroup) -> frozenset[str]:
    """Return the topics that members of a group have subscribed to."""
    return frozenset(topic for member in group.members.values() for _, said in member.join.protocols
                     for topic in _topics(said))


def _topics(metadata: bytes) -> Iterator[str]:
    """Yield the topics of a member's metadata (`ConsumerProtocolSubscription`): a version, then an array of names."""
    count, at = int.from_bytes(metadata[2:6], "big"), 6
    for _ in range(count):
        if at + 2 > len(metadata):
            return
        start = at + 2
        at = start + int.from_bytes(metadata[at:start], "big")
        yield metadata[start:at].decode(errors="replace")
