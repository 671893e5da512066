"""Words for people: numbers with their nouns, how long a trail is, paragraphs as lines."""

from __future__ import annotations

import textwrap

from harness.record.trail import Trail

SINGULAR = {"are": "is", "were": "was", "have": "has", "do": "does"}
"""Verbs that have a singular of their own."""


def counted(number: int, noun: str, verb: str = "") -> str:
    """Return a number with its noun, and the verb in its number: `1 run`, `2 runs`, `1 try fails`, `3 tries fail`."""
    plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    said = f"{number:,} {noun if number == 1 else plural}"
    return f"{said} {agreeing(number, verb)}" if verb else said


def agreeing(number: int, verb: str) -> str:
    """Return a verb, given in the plural, to agree with a number: `violate`, or `violates` for one."""
    return verb if number != 1 else SINGULAR.get(verb, f"{verb}s")


def some_of(some: int, whole: int, noun: str, verb: str) -> str:
    """Return how many of a number do something: `1 of 200 runs violates`, `2 of 200 runs violate`."""
    return f"{some:,} of {counted(whole, noun)} {agreeing(some, verb)}"


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
