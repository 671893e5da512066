"""The notes of a record: what happened between its requests, as players of any kind read it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

HELD = "the coordinator's WriteTxnMarkers is held on its way to the partition"
NO_MARKER = "no marker came"
"""In place of it, where the step before ended nothing."""
DELIVERED = "the held WriteTxnMarkers is delivered"
WAITED = re.compile(r"waited until the coordinator's state is one of \[(.*)\]")
PASSED = re.compile(r"(\d+) ms pass")
REPEATED_UNTIL = "InitProducerId without producer id repeated until the epoch is "
REPEATED = re.compile(REPEATED_UNTIL + r"(\d+)")


def with_holds(steps: list[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], bool]]:
    """Yield each step, and whether the markers that it causes are held: the next note says so."""
    for step, following in zip(steps, [*steps[1:], {}], strict=True):
        yield step, following.get("note") in (HELD, NO_MARKER)


def awaited(note: str) -> list[str]:
    """Return the states that a note says was waited for; of another note none."""
    waited = WAITED.fullmatch(note)
    return [] if waited is None else [state.strip(" '\"") for state in waited[1].split(",")]
