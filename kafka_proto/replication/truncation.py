"""To which offset a new follower truncates its log: one rule per generation of the protocol."""

from __future__ import annotations

from kafka_proto.replication.log import record_at
from kafka_proto.replication.records import Log


def by_high_watermark(high_watermark: int) -> int:
    """The oldest rule: the follower's own high watermark, which is behind the leader's and loses committed records."""
    return high_watermark


def by_leader_epoch(leader_log: Log, follower_log: Log, high_watermark: int) -> int:
    """KIP-101: where the leader's log leaves the epoch of the follower's last record (`LookupOffsetForEpoch`).

    Where the leader's log cannot tell, the follower falls back to its own high watermark. The answer may lie beyond the
    follower's end offset.
    """
    if not follower_log:
        return 0
    if not leader_log:
        return high_watermark
    epoch = follower_log[-1].epoch
    if leader_log[-1].epoch == epoch:
        return len(leader_log)
    larger = [offset for offset, record in enumerate(leader_log) if record.epoch > epoch]
    return larger[0] if larger else high_watermark


def by_matching_records(leader_log: Log, follower_log: Log) -> int:
    """KIP-279: just above the last record that both logs hold (`FirstNonMatchingOffsetFromTail`)."""
    for offset in reversed(range(len(follower_log))):
        if record_at(leader_log, offset) == follower_log[offset]:
            return offset + 1
    return 0


def is_needed(leader_log: Log, follower_log: Log) -> bool:
    """The first try at KIP-320: whether the leader answers a fetch with a truncation error.

    It does where the follower's log is longer, or its last record has another epoch than the leader's at that offset
    (`FollowerNeedsTruncation`).
    """
    if len(follower_log) > len(leader_log):
        return True
    return bool(follower_log) and leader_log[len(follower_log) - 1].epoch != follower_log[-1].epoch
