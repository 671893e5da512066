"""How high watermarks move: the leader's by one record at a time, a follower's with what it fetches and truncates."""

from __future__ import annotations

from collections.abc import Iterable

from kafka_proto.replication.records import Isr


def after_fetch(leader_high_watermark: int, end_offset: int) -> int:
    """Return the high watermark of a follower that has fetched up to `end_offset`."""
    return min(leader_high_watermark, end_offset)


def after_truncation(high_watermark: int, end_offset: int) -> int:
    """Return the high watermark of a follower that has truncated its log to `end_offset`."""
    return min(high_watermark, end_offset)


def may_pass(offset: int, end_offsets: Iterable[int | None]) -> bool:
    """Say whether a leader's high watermark may pass the record at an offset: all members that count hold it.

    `end_offsets` are those of the members that count, None for a member that does not follow or was not heard of. They
    are looked at one by one, up to the first that says no.
    """
    return all(end is not None and offset < end for end in end_offsets)


def counted(isr: Isr, pending_isr: Isr) -> Isr:
    """KIP-497: the replicas whose offsets limit the high watermark: the ISR, and those that may be in it by now."""
    return isr | pending_isr


def counted_without_pending(isr: Isr, pending_isr: Isr) -> Isr:
    """RP-10: the high watermark passes what a new member does not hold."""
    return isr
