"""A cluster of one broker as a frozen value: a request goes in, the node at rest and the response come out.

Its logs are atomic: what is appended is committed. Internal messages (entries of the transaction log, markers,
verification) are carried until nothing is left to do, except markers while they are held.
"""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from harness.model import FrozenMap
from kafka_proto.broker.coordinator import coordinator
from kafka_proto.broker.coordinator.coordinator import CoordinatorConfig
from kafka_proto.broker.coordinator.loading import load
from kafka_proto.broker.coordinator.producer_ids import ProducerIds
from kafka_proto.broker.coordinator.transaction import TxnState
from kafka_proto.broker.group.offsets import load as load_offsets
from kafka_proto.broker.leader.state import Leader
from kafka_proto.broker.versions import BrokerVersion
from kafka_proto.gateway.node.requests import answer_of
from kafka_proto.gateway.node.state import Node
from kafka_proto.gateway.node.work import carry, refill, settle
from kafka_proto.log import rebuild
from kafka_proto.requests import OFFSETS_PARTITION, Error


def new_node(version: BrokerVersion, partitions: Iterable[str], config: CoordinatorConfig | None = None) -> Node:
    """Return a node with empty partitions of these names, and one of the offsets topic."""
    leaders = FrozenMap((name, Leader()) for name in (*partitions, OFFSETS_PARTITION))
    node = Node(leaders, version=version)
    if config is not None:
        node = attrs.evolve(node, coordinator=attrs.evolve(node.coordinator, config=config))
    return refill(node)


def handle(node: Node, request: object) -> tuple[Node, object]:
    """Answer a request, and carry on until the node is at rest. Raises TypeError for one that it does not know."""
    node, response = answer_of(refill(node), request)
    return settle(node), response


def deliver_held(node: Node) -> tuple[Node, tuple[tuple[str, Error], ...]]:
    """Deliver the markers that were held, and return the answers of their partitions."""
    held, node = node.held, attrs.evolve(node, held=(), holds_markers=False)
    answers: tuple[tuple[str, Error], ...] = ()
    for markers in held:
        node, errors = carry(node, markers)
        answers += tuple(errors.items())
    return settle(node), answers


def elect(node: Node) -> Node:
    """Elect the node anew: caches and guards are lost, logs are read again, the coordinator epoch grows."""
    old = node.coordinator
    step = load(node.version.coordinator, node.transaction_log, old.coordinator_epoch + 1, ProducerIds(), old.config,
                now=node.now)
    leaders = FrozenMap((name, Leader(rebuild(leader.log), guards=leader.guards))
                        for name, leader in node.leaders.items())
    offsets = load_offsets(leaders[OFFSETS_PARTITION].log.batches)
    groups = attrs.evolve(node.groups, offsets=offsets)
    return settle(refill(settle(attrs.evolve(node, leaders=leaders, groups=groups, held=()), step)))


def next_deadline(node: Node) -> int | None:
    """Return when the first open transaction will be older than its time-out."""
    open_ = (cached.metadata for cached in node.coordinator.transactions.values()
             if cached.metadata.state is TxnState.ONGOING and cached.pending_state is None)
    return min((known.start_timestamp + known.timeout_ms + 1 for known in open_), default=None)


def pass_time(node: Node, until: int) -> Node:
    """Let time pass, and do what is due: open transactions that are too old are aborted, idle ids forgotten."""
    node = refill(attrs.evolve(node, now=max(node.now, until)))
    for tid in node.coordinator.transactions:
        if coordinator.is_timed_out(node.coordinator, tid, node.now):
            step = coordinator.time_out(node.version.coordinator, node.coordinator, tid, now=node.now)
        else:
            step = coordinator.expire(node.coordinator, tid, now=node.now)
        node = settle(node, step)
    return node
