"""Texts as lines, and how long a trail is in words."""

from __future__ import annotations

import textwrap

from harness.record import Trail
from harness.record.counted import counted


def length(trail: Trail) -> str:
    """Return how long a trail is in words: `11 steps, then a fair cycle`."""
    steps = len(trail.choices) if trail.fair_from is None else trail.fair_from
    return in_steps(steps, len(trail.choices) - steps, trail.back_to is not None)


def in_steps(steps: int, fair_steps: int, cycle: bool) -> str:
    """Return the length of a trail in words, its fair ending apart."""
    if cycle:
        return f"{counted(steps, 'step')}, then a fair cycle"
    return counted(steps, "step") + (f", then {counted(fair_steps, 'fair step')}" if fair_steps else "")


def wrapped(text: str, width: int, indent: str = "", following: str | None = None) -> list[str]:
    """Return a text as lines of at most `width` characters where its words allow it."""
    following = indent if following is None else following
    return textwrap.wrap(text, width, initial_indent=indent, subsequent_indent=following, break_long_words=False,
                         break_on_hyphens=False)
