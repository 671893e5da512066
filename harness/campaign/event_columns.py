"""A history event as columns that compress well, and back to the very same bytes.

The `turn` is the event's JSON with, in place of the values written, the names of their slots: there are few different
ones. The values are texts of their own. Step number, time and failing properties are columns already.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Protocol

import attrs

from harness.record.events import INITIAL

MOST_KNOWN = 100_000
"""Turns that are remembered."""
json_text = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode


class EventColumns(Protocol):
    """What the columns of an event are made from; as a key it stands for itself or for all that are equal."""

    @property
    def process(self) -> str | None:
        """Who took the step; None for event 0."""

    @property
    def kind(self) -> str:
        """The step's kind, or `initial`."""

    @property
    def action(self) -> str | None: ...

    @property
    def turn(self) -> str: ...

    @property
    def writes(self) -> tuple[tuple[str, str], ...]:
        """Names of slots and canonical texts of the values written, by name."""


@attrs.frozen
class ReadColumns:
    """The columns of an event that was read as text."""

    process: str | None
    kind: str
    action: str | None
    turn: str
    writes: tuple[tuple[str, str], ...]


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


def slots_of(turn: str) -> list[str]:
    """Return the names of the slots that a turn writes."""
    event = json.loads(turn)
    names: list[str] = event[INITIAL] if INITIAL in event else event["writes"]
    return names


class Joiner:
    """Joins the columns of events again, and remembers the parts of each turn."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[str, list[str]]] = {}

    def part(self, turn: str, values: Sequence[str]) -> str:
        """Return the inside of an event's JSON object. Raises ValueError where the values are not the turn's."""
        if turn not in self._known:
            if len(self._known) >= MOST_KNOWN:
                self._known.clear()
            names = slots_of(turn)
            self._known[turn] = turn[1 : -1 - len(json_text(names))], [f"{json_text(name)}:" for name in names]
        head, names = self._known[turn]
        inside = ",".join([name + value for name, value in zip(names, values, strict=True)])
        return f"{head}{{{inside}}}"

    def line(self, n: int, at_us: int | None, turn: str, values: Sequence[str], violated: str | None) -> str:
        """Return the line of a history that an event is."""
        at = "" if at_us is None else f'"at_us":{at_us},'
        failing = "" if violated is None else f',"violated":{violated}'
        return f'{{"n":{n},{at}{self.part(turn, values)}{failing}}}'
