"""Assignors of the coordinator (KIP-848): which partitions each member of a consumer group is to have.

Pure functions of the members in their order, the topics that each subscribes to, partitions by topic, and what was
assigned before; Kafka's order of members is that of a hash table for `uniform`, and is sorted here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from kafka_proto.requests import partition_index, partition_name, topic_of

Partitions = tuple[str, ...]
Assignment = Mapping[str, Partitions]
"""By member."""
Assignor = Callable[[Sequence[str], Mapping[str, Sequence[str]], Mapping[str, int], Assignment], Assignment]
UNIFORM, RANGE = "uniform", "range"


def in_order(partitions: Iterable[str]) -> Partitions:
    """Return partitions by topic and number."""
    return tuple(sorted(partitions, key=lambda p: (topic_of(p), partition_index(p))))


def ranges(
    members: Sequence[str], wanted: Mapping[str, Sequence[str]], topics: Mapping[str, int], before: Assignment
) -> Assignment:
    """Assign each topic's partitions in ranges, the first members one more (`RangeAssignor`)."""
    found: dict[str, list[str]] = {member: [] for member in members}
    for topic, count in topics.items():
        subscribed = [member for member in members if topic in wanted[member]]
        start = 0
        for place, member in enumerate(subscribed):
            end = start + count // len(subscribed) + (place < count % len(subscribed))
            found[member] += [partition_name(topic, index) for index in range(start, end)]
            start = end
    return {member: in_order(partitions) for member, partitions in found.items()}


def uniform(
    members: Sequence[str], wanted: Mapping[str, Sequence[str]], topics: Mapping[str, int], before: Assignment
) -> Assignment:
    """Assign as evenly as subscriptions allow, and let members keep as much as that allows (`UniformAssignor`)."""
    free = {p for topic, count in topics.items() for p in (partition_name(topic, index) for index in range(count))}
    found: dict[str, list[str]] = {}
    for member in members:
        kept = [p for p in before.get(member, ()) if p in free and topic_of(p) in wanted[member]]
        free -= {*kept}
        found[member] = kept
    for p in in_order(free):
        able = [member for member in members if topic_of(p) in wanted[member]]
        if able:
            found[min(able, key=lambda member: len(found[member]))].append(p)
    while (move := _better(members, wanted, found)) is not None:
        giver, taker, p = move
        found[giver].remove(p)
        found[taker].append(p)
    return {member: in_order(partitions) for member, partitions in found.items()}


def _better(
    members: Sequence[str], wanted: Mapping[str, Sequence[str]], found: Mapping[str, Sequence[str]]
) -> tuple[str, str, str] | None:
    """Return a move from a member to one that has at least two fewer, None if there is none."""
    for giver in sorted(members, key=lambda member: -len(found[member])):
        for taker in sorted(members, key=lambda member: len(found[member])):
            if len(found[giver]) - len(found[taker]) < 2:
                break
            p = next((p for p in reversed(found[giver]) if topic_of(p) in wanted[taker]), None)
            if p is not None:
                return giver, taker, p
    return None


BY_NAME: Mapping[str, Assignor] = {UNIFORM: uniform, RANGE: ranges}
"""The first one is used where no member asks for one."""
