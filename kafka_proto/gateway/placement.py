"""Who leads what: partitions and coordinated names are spread over the brokers in turn, and move on when one is down.

One election moves all that a broker has, and every role loads anew, as after `kafka_proto.gateway.node.elect`.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

import attrs

from kafka_proto.gateway.node import elect
from kafka_proto.requests import partition_index, topic_of

if TYPE_CHECKING:
    from kafka_proto.gateway.broker import Broker


def leader_of(broker: Broker, partition: str) -> int:
    """Return the broker that leads a partition: the first one that is there, from its own place on."""
    spread = zlib.crc32(topic_of(partition).encode()) + partition_index(partition)
    return _from(broker, spread + broker.moved.get(partition, 0))


def coordinator_of(broker: Broker, key: str) -> int:
    """Return the broker that coordinates a group or a transactional id."""
    return _from(broker, zlib.crc32(key.encode()))


def _from(broker: Broker, place: int) -> int:
    ids = broker.settings.brokers
    turn = [ids[(place + n) % len(ids)] for n in range(len(ids))]
    return next((each for each in turn if each not in broker.absent), turn[0])


def without(broker: Broker, absent: int) -> Broker:
    """Return a cluster that a broker is missing in: others are elected in its place."""
    return _elected(attrs.evolve(broker, absent=broker.absent | {absent}))


def again_with(broker: Broker, back: int) -> Broker:
    """Return a cluster that a broker is back in, as the leader of what it led."""
    return _elected(attrs.evolve(broker, absent=broker.absent - {back}))


def moved_on(broker: Broker, partition: str) -> Broker:
    """Return a cluster in which the next broker leads a partition, or where none is named each of them."""
    names = [partition] if partition else list(broker.node.leaders)
    moved = broker.moved.update({name: broker.moved.get(name, 0) + 1 for name in names})
    return _elected(attrs.evolve(broker, moved=moved))


def _elected(broker: Broker) -> Broker:
    node = attrs.evolve(elect(broker.node), now=broker.now)
    return attrs.evolve(broker, node=node, leader_epoch=broker.leader_epoch + 1)
