"""Links between brokers: what one cannot ask of another while they are cut, though clients reach both.

Markers wait, as their coordinator sends them again until they are acknowledged; a leader that cannot ask the
coordinator about a transaction goes on as where its connection is refused. Look-ups and metadata cross no link: each
broker has them from the controller.
"""

from __future__ import annotations

from collections.abc import Collection

import attrs

from kafka_proto.broker.coordinator.coordinator import Markers
from kafka_proto.gateway.broker import Broker, Pair
from kafka_proto.gateway.node import Node, carry, deliver_held
from kafka_proto.gateway.placement import coordinator_of, leader_of
from kafka_proto.requests import GROUP_TOPIC, ProduceRequest, TxnOffsetCommitRequest, topic_of


def pair(one: int, other: int) -> Pair:
    """Return two brokers in their order."""
    return min(one, other), max(one, other)


def with_cut(broker: Broker, cut: Collection[Pair]) -> Broker:
    """Return a cluster in which these brokers, and no others, do not hear each other."""
    node = attrs.evolve(broker.node, holds_markers=bool(cut))
    if not cut:
        node, _ = deliver_held(node)
    return delivered(attrs.evolve(broker, node=node, cut=frozenset(cut)))


def can_verify(broker: Broker, request: object) -> bool:
    """Say whether the broker that is asked reaches the coordinator of the transaction that a request is of."""
    if not isinstance(request, ProduceRequest | TxnOffsetCommitRequest) or request.transactional_id is None:
        return True
    return _reaches(broker, broker.asked, coordinator_of(broker, request.transactional_id))


def delivered(broker: Broker) -> Broker:
    """Deliver the markers that are on their way, but those between brokers that do not hear each other."""
    if not broker.cut:
        return broker
    node, waiting = broker.node, list[Markers]()
    while node.held:
        markers, node = node.held[0], attrs.evolve(node, held=node.held[1:])
        near = tuple(name for name in markers.request.partitions if _is_near(broker, node, markers, name))
        far = tuple(name for name in markers.request.partitions if name not in near)
        if far:
            waiting.append(_of(markers, far))
        if near:
            node, _ = carry(node, _of(markers, near))
    return attrs.evolve(broker, node=attrs.evolve(node, held=tuple(waiting)))


def _of(markers: Markers, partitions: tuple[str, ...]) -> Markers:
    return attrs.evolve(markers, request=attrs.evolve(markers.request, partitions=partitions))


def _is_near(broker: Broker, node: Node, markers: Markers, partition: str) -> bool:
    """Say whether a marker arrives, or finds out that its partition is deleted.

    A marker of the offsets topic goes to the coordinators of the groups whose offsets it makes visible.
    """
    if partition not in node.leaders:
        return True
    sender = coordinator_of(broker, markers.transactional_id)
    if topic_of(partition) != GROUP_TOPIC:
        return _reaches(broker, sender, leader_of(broker, partition))
    staged = node.groups.offsets.staged.get(markers.request.producer_id, ())
    return all(_reaches(broker, sender, coordinator_of(broker, group)) for group, _ in staged)


def _reaches(broker: Broker, one: int, other: int) -> bool:
    return pair(one, other) not in broker.cut
