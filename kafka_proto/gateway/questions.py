"""What a proxy asks another cluster for itself: what there is before the session, and what came of it at the end.

Each answer is an input, from which the next question follows; a replay has the answers and asks nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Any

import attrs

from kafka_proto.broker.coordinator.transaction import PREPARED
from kafka_proto.gateway import offer as apis
from kafka_proto.gateway.codec import Fields
from kafka_proto.gateway.proxy import ProxyHost
from kafka_proto.requests import partition_index, topic_of

TELLS_GROUP = 8
"""From this version on OffsetFetch says of which group an answer is."""
NEWEST_ASKED: Mapping[int, int] = {
    apis.API_VERSIONS: 4, apis.METADATA: 12, apis.LIST_OFFSETS: 6, apis.FETCH: 12, apis.FIND_COORDINATOR: 4,
    apis.DESCRIBE_TRANSACTIONS: 0, apis.OFFSET_FETCH: TELLS_GROUP,
}
"""Topics go by name in these versions."""
LATEST, READ_COMMITTED, READ_UNCOMMITTED, OF_TRANSACTIONS = -1, 1, 0, 1
SOFTWARE = {"client_software_name": "kafka-proto", "client_software_version": "1"}
MOST_PAUSES = 50
"""As long as markers may be on their way when a session ends."""
READ_AT_ONCE = 16 * 1024 * 1024


@attrs.frozen
class Question:
    """A request of the proxy's own to a node; without one, to any."""

    api_key: int
    version: int
    message: Fields
    node: int | None = None


@attrs.frozen
class Pause:
    """A little time is to pass."""


def before(proxy: ProxyHost) -> Iterator[Question]:
    """Yield what is asked before clients come."""
    yield Question(apis.API_VERSIONS, 0, {})
    yield _question(proxy, apis.API_VERSIONS, SOFTWARE)
    yield _question(proxy, apis.METADATA, {"topics": None})
    led = sorted((leader, name) for name, leader in proxy.outside.leaders.items() if leader >= 0)
    for leader, rows in groupby(led, key=lambda row: row[0]):
        topics = _by_topic([name for _, name in rows], "partition_index", name="name", timestamp=LATEST)
        yield _question(proxy, apis.LIST_OFFSETS, {
            "replica_id": -1, "isolation_level": READ_COMMITTED, "topics": topics}, leader)


def after(proxy: ProxyHost) -> Iterator[Question | Pause]:
    """Yield what is asked when clients have gone: coordinators until they have completed all, then partitions."""
    outside, left = proxy.outside, MOST_PAUSES
    if apis.DESCRIBE_TRANSACTIONS in proxy.offer.ranges:
        for tid in sorted(outside.owners):
            yield from _looked_up(proxy, tid)
            while tid in outside.coordinators:
                yield _question(proxy, apis.DESCRIBE_TRANSACTIONS, {"transactional_ids": (tid,)},
                                outside.coordinators[tid])
                if tid not in outside.entries or outside.entries[tid].state not in PREPARED or left == 0:
                    break
                left -= 1
                yield Pause()
    if outside.touched or outside.groups:
        yield _question(proxy, apis.METADATA, {"topics": None})
    if proxy.offer.ranges.get(apis.OFFSET_FETCH, (0, 0))[1] >= TELLS_GROUP:
        yield from _offsets(proxy)
    of_groups = outside.of_groups if outside.offsets else ()
    for name in sorted({*outside.touched, *of_groups}):
        at, end = outside.starts.get(name, 0), -1
        while name not in outside.unread and at != end and outside.leaders.get(name, -1) >= 0:
            yield _question(proxy, apis.FETCH, {
                "replica_id": -1, "max_wait": 0, "min_bytes": 0, "max_bytes": READ_AT_ONCE, "session_epoch": -1,
                "isolation_level": READ_UNCOMMITTED, "topics": _by_topic(
                    [name], "partition", name="topic", fetch_offset=at, partition_max_bytes=READ_AT_ONCE,
                    current_leader_epoch=-1, last_fetched_epoch=-1, log_start_offset=-1)}, outside.leaders[name])
            before_, (at, end) = at, outside.ends.get(name, (at, -1))
            if at == before_:
                break


def _offsets(proxy: ProxyHost) -> Iterator[Question]:
    """Ask for the offsets of groups, one broker after the other until the group's coordinator is found."""
    for group in sorted(proxy.outside.groups):
        for node in sorted(proxy.outside.nodes):
            if group not in proxy.outside.offsets:
                yield _question(proxy, apis.OFFSET_FETCH, {
                    "groups": ({"group_id": group, "topics": None},), "require_stable": False}, node)


def _looked_up(proxy: ProxyHost, tid: str) -> Iterator[Question]:
    yield _question(proxy, apis.FIND_COORDINATOR, {
        "key_type": OF_TRANSACTIONS, "coordinator_keys": (tid,), "key": tid})


def _question(proxy: ProxyHost, api: int, message: Fields, node: int | None = None) -> Question:
    return Question(api, min(NEWEST_ASKED[api], proxy.offer.ranges[api][1]), message, node)


def _by_topic(names: list[str], index: str, name: str, **more: Any) -> tuple[Fields, ...]:
    """Return partitions as a request has them."""
    return tuple({name: topic, "partitions": tuple({index: partition_index(each), **more} for each in rows)}
                 for topic, rows in groupby(sorted(names, key=topic_of), key=topic_of))
