"""Logs of brokers that run become shorter as time passes: old records are deleted, others compacted (`LogManager`)."""

from __future__ import annotations

from collections.abc import Iterator

from kafka_proto.cluster.running import RunningCluster
from kafka_proto.log.cleaning import BatchFormat, Compaction, cleanable_to, compacted
from kafka_proto.log.segments import COMPACT, may_be_shorter, retained_from, segments

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


def dirty(cluster: RunningCluster, form: BatchFormat, at: int) -> Iterator[tuple[str, str, Compaction]]:
    """Yield what compaction makes of the logs that need it, by partition and broker: each has a cleaner of its own."""
    for p in cluster.partitions:
        config = cluster.log_config(p)
        for broker in cluster.replicas(p) if COMPACT in config.cleanup_policy else ():
            if broker in cluster.down or broker in cluster.paused:
                continue
            log, clean_to = cluster.log_on(p, broker), _clean_to(cluster, p, broker)
            found = segments(log.batches, config, form.size_of, clean_to)
            end = cleanable_to(log, found, config, clean_to, at)
            if end is not None:
                yield p, broker, compacted(log, end, clean_to, config, form, at)
