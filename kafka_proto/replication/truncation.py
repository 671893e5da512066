"""To which offset a new follower truncates its log: one rule per generation of the protocol.

The oldest needs no function: the follower's own high watermark, which is behind the leader's, so that committed records
are lost.
"""

from __future__ import annotations

import attrs

from kafka_proto.replication.isr import has_epoch_below
from kafka_proto.replication.records import NIL, AnyLog, last_epoch, record_at


def by_leader_epoch(leader_log: AnyLog, follower_log: AnyLog, high_watermark: int) -> int:
    """KIP-101: where the leader's log leaves the epoch of the follower's last record (`LookupOffsetForEpoch`).

    The answer may lie beyond the follower's end offset.
    """
    if not follower_log:
        return 0
    return or_high_watermark(end_of_epoch(leader_log, follower_log[-1].epoch), high_watermark)


def end_of_epoch(leader_log: AnyLog, epoch: int) -> EpochEnd | None:
    """KIP-101, what the leader answers: where its log leaves an epoch, or None if its log cannot tell."""
    if not leader_log:
        return None
    if leader_log[-1].epoch == epoch:
        return EpochEnd(epoch, len(leader_log))
    larger = [offset for offset, record in enumerate(leader_log) if record.epoch > epoch]
    return EpochEnd(epoch, larger[0]) if larger else None


def or_high_watermark(answer: EpochEnd | None, high_watermark: int) -> int:
    """KIP-101, what the follower makes of the answer: without one it falls back to its own high watermark."""
    return high_watermark if answer is None else answer.end_offset


def by_matching_records(leader_log: AnyLog, follower_log: AnyLog) -> int:
    """KIP-279: just above the last record that both logs hold (`FirstNonMatchingOffsetFromTail`)."""
    for offset in reversed(range(len(follower_log))):
        if record_at(leader_log, offset) == follower_log[offset]:
            return offset + 1
    return 0


@attrs.frozen
class EpochEnd:
    """KIP-279, what the leader answers: the largest epoch in its log that is not above the one asked for, and its end.

    `NIL` and 0 if its log has no such epoch.
    """

    epoch: int
    end_offset: int


def largest_epoch(leader_log: AnyLog, epoch: int) -> EpochEnd:
    """KIP-279: answer a look-up of an epoch."""
    for offset in reversed(range(len(leader_log))):
        if leader_log[offset].epoch <= epoch:
            return EpochEnd(leader_log[offset].epoch, offset + 1)
    return EpochEnd(NIL, 0)


def narrowed(follower_log: AnyLog, answer: EpochEnd) -> tuple[int, bool]:
    """KIP-279: where a follower cuts its log by an answer, and whether the logs are known to match there.

    Where they are not, it asks again, for the epoch of the last record that it keeps. In the end it has cut where
    `by_matching_records` says.
    """
    end = largest_epoch(follower_log, answer.epoch)
    if end.epoch != answer.epoch:
        return end.end_offset, end.end_offset == 0
    return min(end.end_offset, answer.end_offset), True


def is_needed(leader_log: AnyLog, follower_log: AnyLog) -> bool:
    """The first try at KIP-320: whether a fetch is answered with a truncation error (`FollowerNeedsTruncation`)."""
    return diverges(leader_log, len(follower_log), last_epoch(follower_log))


def diverges(leader_log: AnyLog, end_offset: int, epoch: int) -> bool:
    """Say whether a log of this length, whose last record is of this epoch, is not the beginning of the leader's.

    It is longer, or the leader's record at its last offset has another epoch.
    """
    if end_offset > len(leader_log):
        return True
    return not has_epoch_below(leader_log, end_offset, epoch)
