"""Playing a record: each request of it to a node of its release, each note of it as what happened between requests."""

from __future__ import annotations

from typing import Any

import attrs

from kafka_proto.broker import Node, deliver_held, handle, new_node, next_deadline, pass_time
from kafka_proto.conformance.notes import (
    DELIVERED,
    HELD,
    NO_MARKER,
    PASSED,
    REPEATED,
    awaited,
    with_holds,
)
from kafka_proto.conformance.observing import partition, transaction
from kafka_proto.conformance.requests import name, request_of, response_fields
from kafka_proto.conformance.symbols import Symbols
from kafka_proto.requests import InitProducerIdRequest, partition_index
from kafka_proto.versions import BrokerVersion, version_of

PARTITIONS = (0, 1)
"""Of the topic `T`; a record means one that does not exist where it names another."""
MOST_WAITS = 10
OF_BYTES = frozenset(("bytes", "also"))
"""Fields of a record's Produce: what is odd about a batch, and more batches in the same request."""


def play(record: dict[str, Any], version: BrokerVersion | None = None) -> list[dict[str, Any]]:
    """Return the steps of a record as our broker answers them: the same keys, other values where it differs.

    Raises ValueError for a release without version, or a note that means nothing here.
    """
    chosen = version or version_of(record["broker_version"], record["transaction_version"])
    if is_of_the_wire(record):
        from kafka_proto.gateway.in_process import play_here

        return play_here(record, chosen)
    node, symbols = new_node(chosen, map(name, PARTITIONS)), Symbols()
    played = []
    for step, holds in with_holds(record["steps"]):
        if holds:
            node = attrs.evolve(node, holds_markers=True)
        ours = dict(step)
        if "request" in step:
            asked = step["request"]
            request = request_of(asked["api"], asked["version"], asked["fields"], symbols)
            node, response = handle(node, request)
            ours["response"] = response_fields(asked["api"], request, response, symbols)
        else:
            node = _happened(node, step, ours, symbols)
        if "after" in step:
            ours["after"] = _after(node, step["after"], symbols)
        played.append(ours)
    return played


def is_of_the_wire(record: dict[str, Any]) -> bool:
    """Say whether a record has whole messages, or is about the bytes of a batch: it is played by frames."""
    requests = [step.get("request", {}) for step in record["steps"]]
    return any("message" in asked or not OF_BYTES.isdisjoint(asked.get("fields", ())) for asked in requests)


def _happened(node: Node, step: dict[str, Any], ours: dict[str, Any], symbols: Symbols) -> Node:
    """Do what a note says."""
    note = step["note"]
    if note in (HELD, NO_MARKER):
        ours["note"] = HELD if node.held else NO_MARKER
        return node
    if note == "state":
        return node
    if note == DELIVERED:
        return _delivered(node, ours)
    if states := awaited(note):
        return _waited(node, states)
    if passed := PASSED.fullmatch(note):
        return pass_time(node, node.now + int(passed[1]))
    if until := REPEATED.fullmatch(note):
        return repeated(node, int(until[1]))
    raise ValueError(f"this player does not know what happens at the note {note!r}")


def _delivered(node: Node, ours: dict[str, Any]) -> Node:
    version = {markers.request.version for markers in node.held}
    node, answers = deliver_held(node)
    ours["marker_version"] = max(version, default=None)
    ours["marker_answer"] = {str(partition_index(where)): error.value for where, error in answers}
    return node


def _waited(node: Node, states: list[str]) -> Node:
    """Let time pass, from deadline to deadline, until the transaction of `tid-A` is in one of the states."""
    for _ in range(MOST_WAITS):
        deadline, waiting = next_deadline(node), node.coordinator.transactions.get("tid-A")
        if deadline is None or (waiting is not None and waiting.metadata.state in states):
            break
        node = pass_time(node, deadline)
    return node


def repeated(node: Node, epoch: int) -> Node:
    """Bump the epoch of the only transactional id to a number: all but the last bump at once, for they are alike."""
    ((tid, cached),) = node.coordinator.transactions.items()
    metadata = attrs.evolve(cached.metadata, producer_epoch=epoch - 1)
    transactions = node.coordinator.transactions.set(tid, attrs.evolve(cached, metadata=metadata))
    node = attrs.evolve(node, coordinator=attrs.evolve(node.coordinator, transactions=transactions))
    return handle(node, InitProducerIdRequest(4, tid, metadata.timeout_ms))[0]


def _after(node: Node, recorded: dict[str, Any], symbols: Symbols) -> dict[str, Any]:
    """Return what is left behind, of the transactional ids and partitions that the record looks at."""
    seen: dict[str, Any] = dict(recorded)
    if "coordinator" in recorded:
        seen["coordinator"] = {tid: transaction(node, tid, symbols) for tid in recorded["coordinator"]}
    if "partitions" in recorded:
        seen["partitions"] = {index: partition(node.leaders[name(int(index))].log, symbols)
                              for index in recorded["partitions"]}
    return seen
