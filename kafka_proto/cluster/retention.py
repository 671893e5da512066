"""Logs of brokers that run become shorter as time passes: what topics do not keep is deleted (`LogManager`)."""

from __future__ import annotations

from kafka_proto.cluster.running import RunningCluster
from kafka_proto.log.segments import may_be_shorter, retained_from, segments

CHECK_INTERVAL_MS = 300_000
"""How often that is looked for (`log.retention.check.interval.ms`)."""


def last_check(cluster: RunningCluster, since: int, interval_ms: int) -> int | None:
    """Return when logs were to be looked at last, up to now, if that was after a time."""
    at = cluster.now - (cluster.now - cluster.began) % interval_ms
    return at if at > since else None


def old(cluster: RunningCluster, at: int) -> dict[str, int]:
    """Return where logs are to begin, by partition, if retention is looked at now: those that become shorter."""
    found: dict[str, int] = {}
    for p in cluster.partitions:
        log, config = cluster.served_log(p), cluster.log_config(p)
        if log is None or cluster.leader(p) in cluster.paused or not may_be_shorter(log, config, at):
            continue
        start = retained_from(log, segments(log.batches, config, cluster.size_of), config, at)
        if start > log.log_start_offset:
            found[p] = start
    return found
