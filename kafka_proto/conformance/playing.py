"""Playing a record: each request of it to a node of its release, each note of it as what happened between requests."""

from __future__ import annotations

from typing import Any

import attrs

from kafka_proto.broker.versions import BrokerVersion, version_of
from kafka_proto.conformance.cluster import PlayedCluster
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
from kafka_proto.requests import (
    ConsumerFetchRequest,
    Error,
    InitProducerIdRequest,
    JoinGroupRequest,
    SyncGroupRequest,
    partition_index,
)

PARTITIONS = (0, 1)
"""Of the topic `T`; a record means one that does not exist where it names another."""
MOST_WAITS = 10
OF_JOIN_AND_SYNC = 3
"""The version of the SyncGroup."""
OF_BYTES = frozenset(("bytes", "also"))
"""Fields of a record's Produce: what is odd about a batch, and more batches in the same request."""


def play(record: dict[str, Any], version: BrokerVersion | None = None, brokers: int = 1) -> list[dict[str, Any]]:
    """Return the steps of a record as our brokers answer them: the same keys, other values where it differs.

    Raises ValueError for a release without version, or a note that means nothing here.
    """
    chosen = version or version_of(record["broker_version"], record["transaction_version"])
    if is_of_the_wire(record):
        from kafka_proto.gateway.in_process import play_here

        return play_here(record, chosen)
    cluster, symbols = PlayedCluster(chosen, tuple(map(name, PARTITIONS)), brokers), Symbols()
    played = []
    for step, holds in with_holds(record["steps"]):
        if holds:
            cluster.holds_markers = True
        ours = dict(step)
        if "request" in step:
            ours["response"] = answered(cluster, step["request"], symbols)
        else:
            _happened(cluster, step, ours)
        if "after" in step:
            ours["after"] = _after(cluster, step["after"], symbols)
        played.append(ours)
    return played


def answered(cluster: PlayedCluster, asked: dict[str, Any], symbols: Symbols) -> dict[str, Any]:
    """Return what brokers answer to a request of a record, as a record writes both."""
    request = request_of(asked["api"], asked["version"], asked["fields"], symbols)
    if isinstance(request, JoinGroupRequest):
        return _join_and_sync(cluster, request, symbols)
    if isinstance(request, ConsumerFetchRequest):
        request = attrs.evolve(request, min_bytes=0)
    return response_fields(asked["api"], request, cluster.ask(request), symbols)


def _join_and_sync(cluster: PlayedCluster, request: JoinGroupRequest, symbols: Symbols) -> dict[str, Any]:
    """Join, with the id that is given where one is asked for, and sync as the leader, who assigns nothing."""
    joined = cluster.wait_for(request)
    if joined.error is Error.MEMBER_ID_REQUIRED:
        joined = cluster.wait_for(attrs.evolve(request, member_id=joined.member_id))
    synced = cluster.wait_for(SyncGroupRequest(
        OF_JOIN_AND_SYNC, request.group_id, joined.generation_id, joined.member_id, request.group_instance_id
    ))
    return {"error": joined.error.value, "generation": joined.generation_id,
            "member_id": symbols.member_name(joined.member_id), "sync_error": synced.error.value}


def is_of_the_wire(record: dict[str, Any]) -> bool:
    """Say whether a record has whole messages, or is about the bytes of a batch: it is played by frames."""
    requests = [step.get("request", {}) for step in record["steps"]]
    return any("message" in asked or not OF_BYTES.isdisjoint(asked.get("fields", ())) for asked in requests)


def _happened(cluster: PlayedCluster, step: dict[str, Any], ours: dict[str, Any]) -> None:
    """Do what a note says."""
    note = step["note"]
    if note in (HELD, NO_MARKER):
        ours["note"] = HELD if cluster.held else NO_MARKER
        return
    if note == "state":
        return
    if note == DELIVERED:
        ours["marker_version"] = max(cluster.held_versions, default=None)
        ours["marker_answer"] = {
            str(partition_index(where)): error.value for where, error in cluster.deliver_held()
        }
    elif states := awaited(note):
        _wait(cluster, states)
    elif passed := PASSED.fullmatch(note):
        cluster.pass_time(cluster.now + int(passed[1]))
    elif until := REPEATED.fullmatch(note):
        repeat(cluster, int(until[1]))
    else:
        raise ValueError(f"this player does not know what happens at the note {note!r}")


def _wait(cluster: PlayedCluster, states: list[str]) -> None:
    """Let transactions time out until that of `tid-A` is in one of the states."""
    for _ in range(MOST_WAITS):
        waiting = cluster.coordinator("tid-A").transactions.get("tid-A")
        if (waiting is not None and waiting.metadata.state in states) or not cluster.time_out():
            return


def repeat(cluster: PlayedCluster, epoch: int) -> None:
    """Bump the epoch of the only transactional id to a number: all but the last bump at once, for they are alike."""
    ((tid, cached),) = cluster.transactions.items()
    cluster.with_epoch(tid, epoch - 1)
    cluster.ask(InitProducerIdRequest(4, tid, cached.metadata.timeout_ms))


def _after(cluster: PlayedCluster, recorded: dict[str, Any], symbols: Symbols) -> dict[str, Any]:
    """Return what is left behind, of the transactional ids and partitions that the record looks at."""
    seen: dict[str, Any] = dict(recorded)
    if "coordinator" in recorded:
        seen["coordinator"] = {
            tid: transaction(cluster.coordinator(tid), tid, symbols) for tid in recorded["coordinator"]
        }
    if "partitions" in recorded:
        seen["partitions"] = {index: partition(cluster.log(name(int(index))), symbols)
                              for index in recorded["partitions"]}
    return seen
