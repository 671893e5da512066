"""A history as a Mermaid sequence diagram: an arrow where a message is received, `-x` where one is lost, notes else."""

from __future__ import annotations

import re

from harness.history.changes import brief_message
from harness.history.story import UNDER_WAY, Flight, Row, Story, facts, verdict

RESERVED = frozenset((
    "accdescr", "acctitle", "activate", "actor", "alt", "and", "as", "autonumber", "box", "break", "create", "critical",
    "deactivate", "destroy", "details", "else", "end", "left", "link", "links", "loop", "note", "off", "opt", "option",
    "over", "par", "par_over", "participant", "properties", "rect", "right", "sequencediagram", "title",
))
ENTITIES = {"#": "#35;", ";": "#59;", "<": "#lt;", ">": "#gt;", "&": "#amp;", "%": "#37;", "$": "#36;", "\\": "#92;"}


def write(story: Story) -> str:
    """Return the diagram's source."""
    names = {column: _id(n, column) for n, column in enumerate(story.columns)}
    lines = ["sequenceDiagram"]
    for column, name in names.items():
        lines.append(f"  participant {name}" + (f" as {escape(column)}" if name != column else ""))
    across = ",".join(dict.fromkeys((names[story.columns[0]], names[story.columns[-1]])))
    told = ", ".join(f"{name} {value}" for name, value in facts(story))
    lines.append(f"  Note over {across}: {escape(told)}")
    for row in story.rows:
        if row.n and row.n - 1 == story.fair_from:
            lines.append(f"  Note over {across}: the fair ending begins")
        if row.n:
            lines += [f"  {line}" for line in _step(row, names)]
        for name in row.began:
            lines.append(f"  Note over {across}: {escape(f'step {row.n} FAILS {name}: {row.event.violated[name]}')}")
    for flight in story.flights:
        if flight.end == UNDER_WAY:
            lines.append(f"  {_arrow(flight, '--)', 'still under way', names)}")
    lines.append(f"  Note over {across}: {escape(verdict(story))}")
    return "\n".join(lines) + "\n"


def escape(text: str) -> str:
    """Return a text without anything that Mermaid would read as its own syntax or as HTML."""
    return "".join(ENTITIES.get(letter, letter) for letter in " ".join(text.split()))


def _id(n: int, column: str) -> str:
    plain = re.fullmatch(r"[A-Za-z][A-Za-z0-9]*", column) is not None
    return column if plain and column.lower() not in RESERVED else f"p{n}_"


def _step(row: Row, names: dict[str, str]) -> list[str]:
    """The lines of one step: its arrow or note, then the messages that are lost in it."""
    label = f"{row.n} {row.label}"
    waits = [flight for flight in row.sent if flight.ended_at != row.n]
    sends = "".join(f", sends {brief_message(flight.message, 'to ' + flight.dest)}" for flight in waits)
    if row.received is None:
        lines = [f"Note over {names[row.column]}: {escape(label + sends)}"]
    else:
        sign = "-->>" if row.received.message.reliable else "->>"
        lines = [_arrow(row.received, sign, label, names)]
        if sends:
            lines.append(f"Note over {names[row.column]}: {escape(f'{row.n}' + sends.removeprefix(','))}")
    for flight in (*row.taken, *row.sent):
        if flight.ended_at == row.n and flight is not row.received:
            lines.append(_arrow(flight, "-x", f"{row.n} {flight.end}", names))
    return lines


def _arrow(flight: Flight, sign: str, text: str, names: dict[str, str]) -> str:
    message = brief_message(flight.message)
    source = names.get(flight.source, names.get(flight.message.source, names[flight.dest]))
    return f"{source}{sign} {names[flight.dest]}: {escape(f'{text}: {message}')}"
