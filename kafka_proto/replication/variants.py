"""The single repairs of the base module, as values: what is written, and what S8 and S10 put in its place."""

from __future__ import annotations

import attrs


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
