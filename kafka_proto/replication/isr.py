"""Which replicas count as in sync: when the controller and the leader may take one out or let one in."""

from __future__ import annotations

from kafka_proto.replication.records import AnyLog, Isr, record_at


def shrink_by_controller(replica: str, leader: str | None, isr: Isr) -> tuple[str | None, Isr] | None:
    """Return the leader and ISR after the controller takes a failed replica out, or None if it does not.

    If a leader fails, no replica leads. The last member of the ISR stays in it.
    """
    if leader == replica:
        return None, (isr if isr == {replica} else isr - {replica})
    if replica not in isr or isr == {replica}:
        return None
    return leader, isr - {replica}


def shrink_to_nobody(replica: str, leader: str | None, isr: Isr) -> tuple[str | None, Isr] | None:
    """S8, as written: a last member that does not lead is taken out, too."""
    if leader != replica and isr == {replica}:
        return leader, frozenset()
    return shrink_by_controller(replica, leader, isr)


def may_expand(end_offset: int, high_watermark: int, leader_log: AnyLog, leader_epoch: int) -> bool:
    """Say whether a leader may let in a replica that holds its log up to an offset (`LeaderExpandIsr`)."""
    return is_caught_up(high_watermark, len(leader_log), end_offset)


def may_expand_in_epoch(end_offset: int, high_watermark: int, leader_log: AnyLog, leader_epoch: int) -> bool:
    """KIP-320: say the same; the high watermark has reached the leader's epoch, too (`FencedLeaderExpandIsr`)."""
    return end_offset >= high_watermark and is_in_current_epoch(high_watermark, leader_log, leader_epoch)


def may_expand_at_epoch_start(end_offset: int, high_watermark: int, leader_log: AnyLog, leader_epoch: int) -> bool:
    """Kafka since KAFKA-7128: say the same; the replica holds all records of earlier epochs."""
    return end_offset >= max(high_watermark, epoch_start(leader_log, leader_epoch))


def epoch_start(leader_log: AnyLog, leader_epoch: int) -> int:
    """Return the offset from which on a leader's log is of its own epoch."""
    return next((at for at, record in enumerate(leader_log) if record.epoch >= leader_epoch), len(leader_log))


def is_caught_up(end_offset: int, leader_end_offset: int, follower_end_offset: int) -> bool:
    """Say whether leader and follower both hold the record below `end_offset` (`IsFollowerCaughtUp`)."""
    return end_offset <= leader_end_offset and end_offset <= follower_end_offset


def has_epoch_below(leader_log: AnyLog, end_offset: int, epoch: int) -> bool:
    """Say whether the leader's record below `end_offset` is of this epoch: all that a leader can check of a fetch."""
    if end_offset == 0:
        return True
    leaders = record_at(leader_log, end_offset - 1)
    return leaders is not None and leaders.epoch == epoch


def is_in_current_epoch(high_watermark: int, leader_log: AnyLog, leader_epoch: int) -> bool:
    """Say whether a leader's high watermark is past all records of earlier epochs.

    Until then the leader does not know the true high watermark of its predecessor, and lets no replica in
    (`HasHighWatermarkReachedCurrentEpoch`).
    """
    if high_watermark == len(leader_log):
        return True
    record = record_at(leader_log, high_watermark)
    return record is not None and record.epoch == leader_epoch
