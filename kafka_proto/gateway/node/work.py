"""What a node does besides answering: entries of the transaction log, markers, blocks of producer ids."""

from __future__ import annotations

import attrs

from harness.model import FrozenMap
from kafka_proto.broker.coordinator import coordinator
from kafka_proto.broker.coordinator.answers import response
from kafka_proto.broker.coordinator.coordinator import Answered, Effect, Logged, Markers
from kafka_proto.broker.coordinator.producer_ids import ProducerIds, allocate
from kafka_proto.broker.group.coordinator import replayed
from kafka_proto.broker.leader.admission import append_batch, append_marker, replicated
from kafka_proto.broker.leader.marking import marker_of
from kafka_proto.broker.leader.state import Leader, Origin
from kafka_proto.gateway.node.state import Node
from kafka_proto.log import RecordBatch
from kafka_proto.requests import (
    GROUP_TOPIC,
    CoordinatorRequest,
    CoordinatorResponse,
    Error,
    WriteTxnMarkersRequest,
    topic_of,
)


def refill(node: Node) -> Node:
    """Have a block of producer ids before one is needed: here the controller answers at once."""
    if node.coordinator.ids.next_id is not None:
        return node
    allocator, block = allocate(node.allocator)
    ids = attrs.evolve(node.coordinator, ids=ProducerIds(block))
    return attrs.evolve(node, allocator=allocator, coordinator=ids)


def ask_coordinator(node: Node, request: CoordinatorRequest) -> tuple[Node, CoordinatorResponse]:
    """Let the coordinator answer a request, with all the appends that it wants for it; markers wait for `settle`."""
    step = coordinator.receive(node.version.coordinator, node.coordinator, request, now=node.now)
    node, answers = _work(node, *step)
    return node, response(request, answers[0].answer)


def settle(node: Node, step: coordinator.Step | None = None) -> Node:
    """Carry everything that is on its way until nothing is, but what is held."""
    if step is not None:
        node, _ = _work(node, *step)
    while node.held and not node.holds_markers:
        node, _ = carry(attrs.evolve(node, held=node.held[1:]), node.held[0])
    return node


def _work(node: Node, state: coordinator.Coordinator, effects: tuple[Effect, ...]) -> tuple[Node, list[Answered]]:
    """Do what the coordinator wants: append entries, keep markers for the way, collect answers."""
    node, ahead, answers = attrs.evolve(node, coordinator=state), list(effects), []
    while ahead:
        effect = ahead.pop(0)
        if isinstance(effect, Answered):
            answers.append(effect)
        elif isinstance(effect, Markers):
            node, more = _sent(node, effect)
            ahead += more
        else:
            node = _logged(node, effect)
            state, more = coordinator.appended(
                node.version.coordinator, node.coordinator, effect.transactional_id, now=node.now
            )
            node, ahead = attrs.evolve(node, coordinator=state), [*ahead, *more]
    return node, answers


def _sent(node: Node, markers: Markers) -> tuple[Node, tuple[Effect, ...]]:
    """Send markers to the partitions that are there; the coordinator goes on without the others."""
    request = markers.request
    there = tuple(name for name in request.partitions if name in node.leaders)
    if there:
        sent = attrs.evolve(markers, request=attrs.evolve(request, partitions=there))
        node = attrs.evolve(node, held=(*node.held, sent))
    if len(there) == len(request.partitions):
        return node, ()
    gone = (name for name in request.partitions if name not in node.leaders)
    state, more = coordinator.without_leader(node.coordinator, markers.transactional_id, request, gone, now=node.now)
    return attrs.evolve(node, coordinator=state), more


def _logged(node: Node, effect: Logged) -> Node:
    log, tid = node.transaction_log, effect.transactional_id
    return attrs.evolve(node, transaction_log=log.without(tid) if effect.entry is None else log.set(tid, effect.entry))


def carry(node: Node, markers: Markers) -> tuple[Node, FrozenMap[str, Error]]:
    """Deliver markers to their partitions, and the answers to the coordinator."""
    request = markers.request
    node, errors = write_markers(node, request)
    step = coordinator.marked(node.coordinator, markers.transactional_id, request, errors, now=node.now)
    node, _ = _work(node, *step)
    return node, errors


def write_markers(node: Node, request: WriteTxnMarkersRequest) -> tuple[Node, FrozenMap[str, Error]]:
    """Append a marker to each of the partitions, and say which took it."""
    errors, marker, version = {}, marker_of(request, node.now), request.transaction_version
    for name in request.partitions:
        if name not in node.leaders:
            errors[name] = Error.UNKNOWN_TOPIC_OR_PARTITION
            continue
        leader, errors[name] = append_marker(node.version.leader, node.leaders[name], marker, version)
        if errors[name] is Error.NONE:
            node = committed(node, name, leader)
    return node, FrozenMap(errors)


def append_to(node: Node, name: str, batch: RecordBatch, origin: Origin, guard: int) -> tuple[Node, Error, int]:
    """Append a batch to a partition: its error, or the offset that it has."""
    before = node.leaders[name]
    leader, checked = append_batch(node.version.leader, before, batch, origin, guard)
    return (committed(node, name, leader) if checked.appends else node), *checked.answer(before.log)


def committed(node: Node, name: str, leader: Leader) -> Node:
    """Replicate what was appended to a partition; the group coordinator replays what is in the offsets log."""
    node = attrs.evolve(node, leaders=node.leaders.set(name, replicated(leader)))
    if topic_of(name) != GROUP_TOPIC:
        return node
    return attrs.evolve(node, groups=replayed(node.groups, leader.log.batches[len(leader.log.batches) - 1]))
