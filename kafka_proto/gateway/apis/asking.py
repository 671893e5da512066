"""What all APIs share: a request of one partition asked of the node, and partitions of a message one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import attrs

from kafka_proto.gateway.broker import Answer, Broker, Token, Turn, code, has_partition
from kafka_proto.gateway.codec import Fields
from kafka_proto.gateway.links import can_verify, delivered
from kafka_proto.gateway.node import handle
from kafka_proto.gateway.placement import coordinator_of, leader_of
from kafka_proto.requests import Error, partition_index, partition_name, topic_of

NO_ERROR = 0


def ask(broker: Broker, request: object) -> tuple[Broker, Any]:
    """Let the node answer a request. What it adds to its time with each is put back: here a clock counts."""
    if not broker.cut:
        node, response = handle(broker.node, request)
        return attrs.evolve(broker, node=attrs.evolve(node, now=broker.now)), response
    node, response = handle(attrs.evolve(broker.node, reaches_coordinator=can_verify(broker, request)), request)
    node = attrs.evolve(node, now=broker.now, reaches_coordinator=True)
    return delivered(attrs.evolve(broker, node=node)), response


def wrong_place(broker: Broker, topic: str, index: int) -> int:
    """Return the error code for a partition that is not there, or that another broker leads; 0 where there is none."""
    if not has_partition(broker, topic, index):
        return code("UNKNOWN_TOPIC_OR_PARTITION")
    is_here = leader_of(broker, partition_name(topic, index)) == broker.asked
    return NO_ERROR if is_here else code("NOT_LEADER_OR_FOLLOWER")


def not_coordinator(broker: Broker, key: str | None) -> int:
    """Return the error code for a group or a transactional id that another broker coordinates; 0 where none does."""
    is_here = key is None or coordinator_of(broker, key) == broker.asked
    return NO_ERROR if is_here else code("NOT_COORDINATOR")


def number(error: Error) -> int:
    """Return the number of an error code."""
    return code(error.value)


def answered(broker: Broker, token: Token, response: Fields | None) -> Turn:
    """Return the answer to one request as what came of it."""
    return broker, (Answer(token, response),)


def each(
    broker: Broker, topics: Iterable[Fields], inner: str, one: Callable[[Broker, str, Any], tuple[Broker, Fields]],
    name: str = "name",
) -> tuple[Broker, list[tuple[str, tuple[Fields, ...]]]]:
    """Ask for each partition of each topic in its order, and return what came of them by topic."""
    found = []
    for topic in topics:
        results = []
        for partition in topic[inner]:
            broker, result = one(broker, topic[name], partition)
            results.append(result)
        found.append((topic[name], tuple(results)))
    return broker, found


def named(topic: str, index: int) -> str:
    """Return the name of a partition that a client speaks of; a number below 0 is in no name that a partition has.

    `t` at -1 would be called as `t-` at 1.
    """
    return partition_name(topic, index) if index >= 0 else f"{topic}/{index}"


def by_topic(names: Iterable[str]) -> list[tuple[str, tuple[int, ...]]]:
    """Return partitions by topic, both sorted."""
    found: dict[str, list[int]] = {}
    for name in names:
        found.setdefault(topic_of(name), []).append(partition_index(name))
    return [(topic, tuple(sorted(indexes))) for topic, indexes in sorted(found.items())]
