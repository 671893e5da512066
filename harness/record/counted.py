"""Numbers in sentences."""

from __future__ import annotations

SINGULAR = {"are": "is", "were": "was", "have": "has", "do": "does"}
"""Verbs that have a singular of their own."""


def counted(number: int, noun: str, verb: str = "") -> str:
    """Return a number with its noun, and the verb in its number: `1 run`, `2 runs`, `1 try fails`, `3 tries fail`."""
    plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    said = f"{number:,} {noun if number == 1 else plural}"
    return f"{said} {agreeing(number, verb)}" if verb else said


def agreeing(number: int, verb: str) -> str:
    """Return a verb, which is given as of many, in the number of what does it: `violate`, or `violates` of one."""
    return verb if number != 1 else SINGULAR.get(verb, f"{verb}s")


def some_of(some: int, whole: int, noun: str, verb: str) -> str:
    """Return how many of a number do something: `1 of 200 runs violates`, `2 of 200 runs violate`."""
    return f"{some:,} of {counted(whole, noun)} {agreeing(some, verb)}"
