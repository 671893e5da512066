"""The versions of the protocol and the single repairs of the base module, as values."""

from __future__ import annotations

from enum import StrEnum

import attrs


class Truncation(StrEnum):
    """By what a new follower truncates its log."""

    HIGH_WATERMARK = "high-watermark"
    """Its own high watermark (before KIP-101)."""
    LEADER_EPOCH = "leader-epoch"
    """One look-up of the epoch of its last record (KIP-101)."""
    MATCHING = "matching"
    """Look-ups until the logs are known to match (KIP-279)."""


@attrs.frozen
class Version:
    """What tells the versions of the protocol apart, for actors; the spec has a module for each."""

    truncation: Truncation
    lazily: bool = False
    """Whether a follower truncates when a fetch fails, rather than before it follows."""
    fenced: bool = False
    """Whether fetches and look-ups are for one leader epoch only."""
    waits_for_epoch: bool = False
    """Whether nobody enters the ISR before the high watermark has reached the leader's epoch."""
    counts_pending_isr: bool = True
    """KIP-497: whether the high watermark is about proposed members too."""


VERSIONS: dict[str, Version] = {
    "truncate-to-high-watermark": Version(Truncation.HIGH_WATERMARK),
    "kip-101": Version(Truncation.LEADER_EPOCH),
    "kip-279": Version(Truncation.MATCHING),
    "kip-320-first-try": Version(Truncation.MATCHING, lazily=True, waits_for_epoch=True),
    "kip-320": Version(Truncation.MATCHING, fenced=True, waits_for_epoch=True),
    "async-isr": Version(Truncation.MATCHING, fenced=True, waits_for_epoch=True),
}
"""The versions by the names of their models. AsyncIsr's module says nothing of truncation; ours is KIP-320's."""


@attrs.frozen
class Rules:
    """Where the base module as written and its repairs differ."""

    keeps_last_isr_member: bool = False
    """S8: whether the controller keeps the last member of the ISR when nobody leads."""
    applies_none_requests: bool = False
    """S10: whether a replica obeys a LeaderAndIsr request that names no leader."""


REPAIRS = {"S8": "keeps_last_isr_member", "S10": "applies_none_requests"}


def rules(repairs: str) -> Rules:
    """Return the rules with a comma-separated list of flaws repaired."""
    return Rules(**{REPAIRS[flaw]: True for flaw in repairs.split(",") if flaw})
