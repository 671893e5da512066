"""A history as a Mermaid sequence diagram: an arrow where a message is received, `-x` where one is lost, notes else."""

from __future__ import annotations

import re
from collections.abc import Iterable

from harness.render.changes import brief_message
from harness.render.text import wrap
from harness.render.timeline import UNDER_WAY, Flight, Folded, Row, Timeline, facts, verdict

LINE = 60
"""Characters of a line of a note or label."""

RESERVED = frozenset((
    "accdescr", "acctitle", "activate", "actor", "alt", "and", "as", "autonumber", "box", "break", "create", "critical",
    "deactivate", "destroy", "details", "else", "end", "left", "link", "links", "loop", "note", "off", "opt", "option",
    "over", "par", "par_over", "participant", "properties", "rect", "right", "sequencediagram", "title",
))
ENTITIES = {"#": "#35;", ";": "#59;", "<": "#lt;", ">": "#gt;", "&": "#amp;", "%": "#37;", "$": "#36;", "\\": "#92;"}


def write(timeline: Timeline) -> str:
    """Return the diagram's source."""
    names = {column: _id(n, column) for n, column in enumerate(timeline.columns)}
    lines = ["sequenceDiagram"]
    for column, name in names.items():
        lines.append(f"  participant {name}" + (f" as {escape(column)}" if name != column else ""))
    across = ",".join(dict.fromkeys((names[timeline.columns[0]], names[timeline.columns[-1]])))
    lines.append(f"  Note over {across}: {_lines(f'{name} {value}' for name, value in facts(timeline))}")
    for row in timeline.shown():
        if isinstance(row, Folded):
            lines.append(f"  Note over {across}: {_lines([f'{row.rows[0].n} {row.label}'])}")
            continue
        if row.n and row.n - 1 == timeline.fair_from:
            lines.append(f"  Note over {across}: {timeline.ending}")
        if row.n:
            lines += [f"  {line}" for line in _step(row, names)]
        for name in row.began:
            why = f"step {row.n} FAILS {name}: {row.event.violated[name]}"
            lines.append(f"  Note over {across}: {_lines([why])}")
    if timeline.fair_from == timeline.rows[-1].n:
        lines.append(f"  Note over {across}: {timeline.ending}")
    for flight in timeline.flights:
        if flight.end == UNDER_WAY:
            lines.append(f"  {_arrow(flight, '--)', 'still under way', names)}")
    lines.append(f"  Note over {across}: {_lines([verdict(timeline)])}")
    return "\n".join(lines) + "\n"


def escape(text: str) -> str:
    """Return a text without anything that Mermaid would read as its own syntax or as HTML."""
    return "".join(ENTITIES.get(letter, letter) for letter in " ".join(text.split()))


def _lines(texts: Iterable[str]) -> str:
    """Escape texts, each on lines of its own that Mermaid keeps narrow."""
    return "<br/>".join(escape(line) for text in texts for line in wrap(text, LINE, "", most=99))


def _id(n: int, column: str) -> str:
    plain = re.fullmatch(r"[A-Za-z][A-Za-z0-9]*", column) is not None
    return column if plain and column.lower() not in RESERVED else f"p{n}_"


def _step(row: Row, names: dict[str, str]) -> list[str]:
    """The lines of one step: its arrow or note, then the messages that are lost in it."""
    label = f"{row.n} {row.label}"
    told = row.telling is not None
    sends = [f"{'holds' if told and f.held_at == row.n else 'sends'} {brief_message(f.message, f'to {f.dest}')}"
             for f in row.sent if f.ended_at != row.n]
    sends += [f"holds {brief_message(f.message, f'to {f.dest}')}" for f in row.taken if f.ended_at != row.n]
    if row.telling is not None:
        lines = [_arrow(flight, "->>", f"{row.n}", names) for flight in (*row.arrived, *row.drawn)]
        said = [*([row.telling.label] if row.telling.label else []), *sends, *row.changes]
        if said or not lines:
            first = f"{row.n} {said[0] if said else label}"
            lines.append(f"Note over {names[row.column]}: {_lines([first, *said[1:]])}")
    elif row.received is None:
        lines = [f"Note over {names[row.column]}: {_lines([label, *sends])}"]
    else:
        sign = "-->>" if row.received.reliable else "->>"
        lines = [_arrow(row.received, sign, label, names)]
        if sends:
            lines.append(f"Note over {names[row.column]}: {_lines([f'{row.n} {sends[0]}', *sends[1:]])}")
    for flight in (*row.taken, *row.sent):
        if flight.ended_at == row.n and flight is not row.received and not flight.is_at_once:
            lines.append(_arrow(flight, "-x", f"{row.n} {flight.end}", names))
    return lines


def _arrow(flight: Flight, sign: str, text: str, names: dict[str, str]) -> str:
    source = names.get(flight.source, names.get(flight.message.source, names[flight.dest]))
    return f"{source}{sign} {names[flight.dest]}: {_lines([text, brief_message(flight.message)])}"
