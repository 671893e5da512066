"""Where everything of an SVG sequence diagram stands: rows, lifelines, and the tracks of messages under way.

A message leaves its sender's lifeline, runs down a track beside it while it is under way, and crosses to its receiver
in the row that receives it. As only one actor acts per row, such a crossing meets no other one, and labels stand
between the tracks of two neighbouring lifelines, where nothing else is drawn.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping

import attrs

from harness.render.changes import message_fields
from harness.render.timeline import DROPPED, LOST, MERGED, RECEIVED, Flight, Folded, Row, Timeline, verdict

ROW = 48.0
"""Height of a row."""
LEG = 26.0
"""Height of a message that is received at once, below its row."""
LONGEST_LEG = 44
FOLDED = 24.0
"""Height of minor steps, all together."""
CAPTION = 17.0
"""Height of a line of a caption below a row."""
DIVIDER = 26.0
LABEL_CHAR = 6.05
"""Width of a character of a message label: 10 px of a monospaced font."""
ACTION_CHAR = 6.7
HEADING_CHAR = 7.9
TEXT_CHARS = 50
"""Characters of the text beside the rows."""
LONGEST_LABEL = 34
FIELDS = 22
"""Characters of a message's fields that always have room; more are shown if there is more."""
NODE = 11.0
"""Radius of the mark of a step."""
FIRST_TRACK = 16.0
NEXT_TRACK = 5.0
MARGIN = 14.0
NARROWEST = 720.0


@attrs.frozen
class DiagramLayout:
    """Positions in pixels: `lanes` by column, `rows` by step (the middle of the row), `tracks` by flight."""

    width: float
    height: float
    top: float
    """Where the lifelines begin."""
    bottom: float
    lanes: Mapping[str, float]
    rows: tuple[float, ...]
    dividers: tuple[float, ...]
    captions: tuple[tuple[str, ...], ...]
    """Per row, the lines of text below it."""
    tracks: tuple[float, ...]
    """Per flight, where its track runs."""
    head: tuple[str, ...]
    foot: tuple[str, ...]
    text_left: float
    room: Mapping[str, tuple[int, int]]
    """Per column, how many characters a label to its left and to its right may have."""
    edges: Mapping[str, tuple[float, float]]
    """Per column, where the tracks to its left and to its right end."""
    folded: Mapping[int, Folded]
    """By the first of them: minor steps."""


def lay_out(timeline: Timeline, head: list[str], foot: list[str]) -> DiagramLayout:
    """Return where everything stands."""
    number = {name: n for n, name in enumerate(timeline.columns)}
    sides = [_side(number, flight) for flight in timeline.flights]
    slots = _track_numbers(timeline, number, sides)
    text_left = MARGIN + (78 if timeline.timed else 0)
    text_right = text_left + TEXT_CHARS * ACTION_CHAR
    band = _bands(timeline, number, sides, slots)
    lanes, right = _lanes(timeline, number, band, text_right + 16)
    edges = {name: (lanes[name] - band[name, -1], lanes[name] + band[name, 1]) for name in timeline.columns}
    bounds = [text_right + 8, *(x for name in timeline.columns for x in edges[name]), right - 4]
    gaps = [int((bounds[2 * n + 1] - bounds[2 * n]) / LABEL_CHAR) for n in range(len(timeline.columns) + 1)]
    room = {name: (gaps[n], gaps[n + 1]) for name, n in number.items()}
    width = max(right, NARROWEST)
    wide = int((width - 2 * MARGIN) / ACTION_CHAR)
    head_lines = tuple(line for text in head for line in textwrap.wrap(text, wide))
    foot_lines = tuple(line for text in foot for line in textwrap.wrap(text, wide))
    top = MARGIN + 20 + len(head_lines) * CAPTION + 44
    folded = {shown.rows[0].n: shown for shown in timeline.shown() if isinstance(shown, Folded)}
    rows, dividers, captions, bottom = _rows(timeline, top, wide, folded)
    tracks = tuple(
        lanes[_source(number, flight)] + side * (FIRST_TRACK + NEXT_TRACK * track)
        for flight, side, track in zip(timeline.flights, sides, slots, strict=True)
    )
    height = bottom + 86 + len(foot_lines) * CAPTION + MARGIN
    return DiagramLayout(
        width, height, top, bottom, lanes, rows, dividers, captions, tracks, head_lines, foot_lines, text_left, room,
        edges, folded,
    )


def _bands(
    timeline: Timeline, number: Mapping[str, int], sides: list[int], slots: list[int]
) -> dict[tuple[str, int], float]:
    """How far the tracks beside each lifeline reach, to the left (-1) and to the right (1)."""
    bands = {(name, side): NODE + 4 for name in timeline.columns for side in (-1, 1)}
    for flight, side, track in zip(timeline.flights, sides, slots, strict=True):
        if flight.is_at_once:
            continue
        at = (_source(number, flight), side)
        bands[at] = max(bands[at], FIRST_TRACK + NEXT_TRACK * (track + 1))
    return bands


def _lanes(
    timeline: Timeline, number: Mapping[str, int], band: Mapping[tuple[str, int], float], left: float
) -> tuple[dict[str, float], float]:
    """Where each lifeline stands, and where the last one's surroundings end."""
    zones = _zones(timeline, number)
    lanes: dict[str, float] = {}
    at, last, reach, half = left, "", 0.0, -16.0
    for n, name in enumerate(timeline.columns):
        heading = len(name) * HEADING_CHAR / 2 + 8
        at += max(reach + zones[n] + band[name, -1], half + heading + 16)
        lanes[name] = at
        last, reach, half = name, band[name, 1], heading
    return lanes, at + max(reach + zones[number[last] + 1], half + 2) + MARGIN


def label_column(timeline: Timeline, flight: Flight) -> tuple[str, int]:
    """Return beside which lifeline the label of a flight stands, and on which side of it."""
    number = {name: n for n, name in enumerate(timeline.columns)}
    side = _side(number, flight)
    if flight.end != RECEIVED:
        return _source(number, flight), side
    if _source(number, flight) == flight.dest:
        return flight.dest, side
    return flight.dest, -side


def caption_of(timeline: Timeline, row: Row) -> list[str]:
    """Return what to write below a row: the invariants that fail from it on; at the end, a violation of liveness."""
    lines = [f"! step {row.n} FAILS {name}: {row.event.violated[name]}" for name in row.began]
    if row is timeline.rows[-1] and timeline.history.end["verdict"].get("kind") == "liveness":
        lines.append(f"! {verdict(timeline)}")
    return lines


def _rows(
    timeline: Timeline, top: float, wide: int, folded: Mapping[int, Folded]
) -> tuple[tuple[float, ...], tuple[float, ...], tuple[tuple[str, ...], ...], float]:
    rows, dividers, captions = [], [], []
    at = top
    for row in timeline.rows:
        if row.n and row.n - 1 == timeline.fair_from:
            dividers.append(at + DIVIDER / 2)
            at += DIVIDER
        if row.is_minor:
            rows.append(at + FOLDED / 2)
            at += FOLDED if row.n in folded else 0
            captions.append(tuple[str, ...]())
            continue
        rows.append(at + ROW / 2)
        at += ROW + LEG * len(row.drawn)
        lines = tuple(line for text in caption_of(timeline, row) for line in textwrap.wrap(text, wide - 4))
        captions.append(lines)
        at += len(lines) * CAPTION + (6 if lines else 0)
    if timeline.fair_from == timeline.rows[-1].n:
        dividers.append(at + DIVIDER / 2)
        at += DIVIDER
    return tuple(rows), tuple(dividers), tuple(captions), at + 12


def _source(number: Mapping[str, int], flight: Flight) -> str:
    """The column a flight leaves: its sender's, or its destination's if its sender is not in the picture."""
    return flight.source if flight.source in number else flight.dest


def _side(number: Mapping[str, int], flight: Flight) -> int:
    """On which side of its sender a flight leaves: -1 to the left, 1 to the right."""
    source = _source(number, flight)
    if source == flight.dest:
        return 1 if number[source] + 1 < len(number) else -1
    return 1 if number[flight.dest] > number[source] else -1


def _track_numbers(timeline: Timeline, number: Mapping[str, int], sides: list[int]) -> list[int]:
    """Give each flight the innermost track that is free from its send to its end."""
    free_from: dict[tuple[str, int], list[int]] = {}
    found = []
    for flight, side in zip(timeline.flights, sides, strict=True):
        if flight.is_at_once:
            found.append(0)
            continue
        taken = free_from.setdefault((_source(number, flight), side), [])
        until = len(timeline.rows) if flight.ended_at is None else max(flight.ended_at, flight.sent_at + 1)
        track = next((n for n, free in enumerate(taken) if free <= flight.sent_at), len(taken))
        taken[track : track + 1] = [until]
        found.append(track)
    return found


def _zones(timeline: Timeline, number: Mapping[str, int]) -> list[float]:
    """The widths that labels need before the first lifeline, between each two, and after the last."""
    zones = [0.0] * (len(number) + 1)
    for flight in timeline.flights:
        if flight.is_at_once:
            ends = sorted((number[flight.source], number[flight.dest]))
            if ends[1] - ends[0] < 2:
                longest = len(f"{flight.message.type} {message_fields(flight.message)}")
                zones[ends[0] + 1] = max(zones[ends[0] + 1], min(longest, LONGEST_LEG) * LABEL_CHAR + 12)
            continue
        name, side = label_column(timeline, flight)
        gap = number[name] + (1 if side > 0 else 0)
        longest = max(len(flight.message.type), min(len(message_fields(flight.message)), FIELDS))
        if flight.end in (LOST, DROPPED, MERGED):
            longest = len(f"{flight.end} {flight.message.type}")
        zones[gap] = max(zones[gap], min(longest, LONGEST_LABEL) * LABEL_CHAR + 12)
    return zones
