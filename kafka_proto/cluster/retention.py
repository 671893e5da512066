"""Logs of brokers that run become shorter as time passes: old records are deleted, others compacted (`LogManager`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import attrs

from kafka_proto.broker.roles import batch_at, batch_of
from kafka_proto.cluster.running import RunningCluster
from kafka_proto.log.cleaning import BatchFormat, Compaction, cleanable_to, compacted
from kafka_proto.log.grown import Grown
from kafka_proto.log.segments import COMPACT, may_be_shorter, retained_from, segments
from kafka_proto.replication.records import ReplicaEntry

CHECK_INTERVAL_MS = 300_000
"""How often old records are looked for (`log.retention.check.interval.ms`)."""
CLEANER_BACKOFF_MS = 15_000
"""How often logs are looked for that are to be compacted (`log.cleaner.backoff.ms`)."""


def last_check(cluster: RunningCluster, since: int, interval_ms: int) -> int | None:
    """Return when logs were to be looked at last, up to now, if that was after a time."""
    at = cluster.now - (cluster.now - cluster.began) % interval_ms
    return at if at > since else None


def old(cluster: RunningCluster, form: BatchFormat, at: int) -> dict[str, int]:
    """Return where logs are to begin, by partition, if retention is looked at now: those that become shorter."""
    found: dict[str, int] = {}
    for p in cluster.partitions:
        log, config = cluster.served_log(p), cluster.log_config(p)
        if log is None or cluster.leader(p) in cluster.paused or not may_be_shorter(log, config, at):
            continue
        clean_to = _clean_to(cluster, p, cluster.leader(p))
        start = retained_from(log, segments(log.batches, config, form.size_of, clean_to), config, at)
        if start > log.log_start_offset:
            found[p] = start
    return found


def _clean_to(cluster: RunningCluster, p: str, broker: str) -> int:
    start = cluster.items(p, broker).start
    return 0 if start is None else start.clean_to


@attrs.define
class LogSize:
    """Of a log: its bytes, and between which times its batches are."""

    total: int = 0
    first: int | None = None
    last: int = 0


class Sizes:
    """Sizes of logs, each batch measured once."""

    def __init__(self, form: BatchFormat) -> None:
        self._form = form
        self._grown = Grown[Any, LogSize, None](lambda seed: LogSize(), self._note)

    def has_one_segment(self, cluster: RunningCluster, p: str, broker: str) -> bool:
        """Say whether a log that was never compacted is all in its active segment."""
        size, _ = self._grown.noted(f"{p} {broker}", cluster.items(p, broker))
        config = cluster.log_config(p)
        span = 0 if size.first is None else size.last - size.first
        return size.total <= config.segment_bytes and span <= config.max_segment_ms

    def _note(self, name: str, items: Iterable[Any], known: LogSize) -> None:
        for item in items:
            if (record := batch_of(item.value if isinstance(item, ReplicaEntry) else item)) is None:
                continue
            batch = batch_at(record, 0)
            known.first = batch.timestamp if known.first is None else known.first
            known.last = max(known.last, batch.timestamp)
            known.total += self._form.size_of(batch)


def dirty(
    cluster: RunningCluster, form: BatchFormat, at: int, sizes: Sizes
) -> Iterator[tuple[str, str, Compaction]]:
    """Yield what compaction makes of the logs that need it, by partition and broker: each has a cleaner of its own."""
    for p in cluster.placement.all_partitions:
        config = cluster.log_config(p)
        for broker in cluster.replicas(p) if COMPACT in config.cleanup_policy else ():
            if broker in cluster.down or broker in cluster.paused:
                continue
            clean_to = _clean_to(cluster, p, broker)
            if not clean_to and sizes.has_one_segment(cluster, p, broker):
                continue
            log = cluster.log_on(p, broker)
            found = segments(log.batches, config, form.size_of, clean_to)
            end = cleanable_to(log, found, config, clean_to, at)
            if end is not None:
                yield p, broker, compacted(log, end, clean_to, config, form, at)
