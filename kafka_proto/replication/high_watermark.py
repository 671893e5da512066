"""How high watermarks move: the leader's by one record at a time, a follower's with what it fetches and truncates."""

from __future__ import annotations


def after_fetch(leader_high_watermark: int, end_offset: int) -> int:
    """Return the high watermark of a follower that has fetched up to `end_offset`."""
    return min(leader_high_watermark, end_offset)


def after_truncation(high_watermark: int, end_offset: int) -> int:
    """Return the high watermark of a follower that has truncated its log to `end_offset`."""
    return min(high_watermark, end_offset)


def over_potential_isr(offsets: dict[str, int], isr: frozenset[str], pending_isr: frozenset[str]) -> int:
    """KIP-497: the lowest offset of all who are in the ISR or may be by now (`HighWatermark` of AsyncIsr)."""
    return min(offsets[replica] for replica in isr | pending_isr)
