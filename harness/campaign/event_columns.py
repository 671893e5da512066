"""A history event as columns that compress well, and back to the very same bytes.

The `turn` is the event's JSON with, in place of the values written, the names of their slots: there are few different
ones. The values are texts of their own. Step number, time and failing properties are columns already.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import attrs

from harness.record.events import INITIAL, Happening

MOST_KNOWN = 100_000
"""Turns that are remembered."""
json_text = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode


@attrs.frozen
class ReadColumns:
    """The columns of an event that was read as text."""

    process: str | None
    """The process that took the step; None for event 0."""
    kind: str
    """The step's kind, or `initial`."""
    action: str | None
    turn: str
    writes: tuple[tuple[str, str], ...]
    """Names of slots and canonical texts of the values written, by name."""


EventColumns = Happening | ReadColumns
"""What the columns of an event are made from; as a key it stands for itself or for all that are equal."""


def columns_of(text: str) -> ReadColumns:
    """Return the columns of the inside of an event's JSON object. Raises ValueError if it is no canonical text."""
    event = json.loads(f"{{{text}}}")
    field = INITIAL if INITIAL in event else "writes"
    writes = tuple((name, json_text(value)) for name, value in event[field].items())
    event[field] = [name for name, _ in writes]
    turn = json_text(event)
    if Joiner().part(turn, [value for _, value in writes]) != text:
        raise ValueError(f"this is no canonical text of an event: {text[:200]}")
    return ReadColumns(event.get("process"), event.get("kind", INITIAL), event.get("action"), turn, writes)


class Joiner:
    """Joins the columns of events again, and remembers the parts of each turn."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[str, list[str]]] = {}

    def part(self, turn: str, values: Sequence[str]) -> str:
        """Return the inside of an event's JSON object. Raises ValueError if the values are not the turn's."""
        if turn not in self._known:
            if len(self._known) >= MOST_KNOWN:
                self._known.clear()
            event = json.loads(turn)
            names = event[INITIAL] if INITIAL in event else event["writes"]
            self._known[turn] = turn[1 : -1 - len(json_text(names))], [f"{json_text(name)}:" for name in names]
        head, names = self._known[turn]
        inside = ",".join([name + value for name, value in zip(names, values, strict=True)])
        return f"{head}{{{inside}}}"
