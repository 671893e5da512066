"""Numbers in sentences."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: `1 run`, `2 runs`, `3 tries`."""
    plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{number:,} {noun if number == 1 else plural}"
