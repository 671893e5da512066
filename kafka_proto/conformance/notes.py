"""The notes of a record: what happened between its requests, read by its words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

HELD = "the coordinator's WriteTxnMarkers is held on its way to the partition"
NO_MARKER = "no marker came"
"""In place of it, where the step before ended nothing."""
DELIVERED = "the held WriteTxnMarkers is delivered"
REPEATED_UNTIL = "InitProducerId without producer id repeated until the epoch is "
KINDS = {kind: re.compile(words, re.IGNORECASE) for kind, words in {
    "waited": r"waited until .*\bstate is (?:one of )?\[?([^\]]*)\]?",
    "passed": r"^(\d+) ms pass",
    "repeated": REPEATED_UNTIL + r"(\d+)",
    "timed_out": r"\btime[sd]?[- ]?out\b",
    "lost": r"\banswers?\b.*\blost\b",
    "twice": r"\b(?:marker|WriteTxnMarkers)\b.*\b(?:twice|again|second time|duplicate)\b",
    "delivered": r"\bmarkers?\b.*\bdelivered\b|WriteTxnMarkers is delivered",
    "held": rf"\b(?:markers?|WriteTxnMarkers)\b.*\bheld\b|^{NO_MARKER}$",
    "looked": r"^state$",
}.items()}
"""By the name of what a player does then; the first that fits is meant."""
OF_MARKERS = {"held", "delivered", "twice", "lost"}


def kind_of(step: Mapping[str, Any]) -> tuple[str, str]:
    """Return the kind of a step's note, and what it says of how long; "" where it has none or only names a request."""
    if "note" not in step or "request" in step:
        return "", ""
    for kind, words in KINDS.items():
        if found := words.search(str(step["note"])):
            return kind, next(iter(found.groups()), "")
    raise ValueError(f"this player does not know what happens at the note {step['note']!r}")


def with_holds(steps: list[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], bool]]:
    """Yield each step, and whether the markers that it causes are held: the next note says so."""
    for step, following in zip(steps, [*steps[1:], {}], strict=True):
        yield step, kind_of(following)[0] == "held" or (kind_of(step)[0] == "timed_out" and "held" in step["note"])
