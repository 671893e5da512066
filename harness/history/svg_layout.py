"""Where everything of an SVG sequence diagram stands: rows, lifelines, and the tracks of messages under way.

A message leaves its sender's lifeline, runs down a track beside it while it is under way, and crosses to its receiver
in the row that receives it. As only one actor acts per row, such a crossing meets no other one, and labels stand
between the tracks of two neighbouring lifelines, where nothing else is drawn.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping

import attrs

from harness.history.changes import message_fields
from harness.history.story import DROPPED, LOST, MERGED, RECEIVED, Flight, Row, Story, verdict

ROW = 48.0
"""Height of a row."""
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
"""Characters of a message's fields that always have room; more are shown where there is more."""
NODE = 11.0
"""Radius of the mark of a step."""
FIRST_TRACK = 16.0
NEXT_TRACK = 5.0
MARGIN = 14.0


@attrs.frozen
class Layout:
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


def lay_out(story: Story, head: list[str], foot: list[str]) -> Layout:
    """Return where everything stands."""
    number = {name: n for n, name in enumerate(story.columns)}
    sides = [_side(number, flight) for flight in story.flights]
    slots = _track_numbers(story, sides)
    most: dict[tuple[str, int], int] = {}
    for flight, side, track in zip(story.flights, sides, slots, strict=True):
        source = _source(number, flight)
        most[source, side] = max(most.get((source, side), 0), track + 1)
    band = {
        (name, side): NODE + 4 if not most.get((name, side)) else FIRST_TRACK + NEXT_TRACK * most[name, side]
        for name in story.columns
        for side in (-1, 1)
    }
    zones = _zones(story, number, sides)
    text_left = MARGIN + (78 if story.timed else 0)
    at = text_left + TEXT_CHARS * ACTION_CHAR + 16
    lanes: dict[str, float] = {}
    room: dict[str, tuple[int, int]] = {}
    for n, name in enumerate(story.columns):
        half = len(name) * HEADING_CHAR / 2 + 10
        if n == 0:
            at += max(band[name, -1] + zones[0], half)
        else:
            before = story.columns[n - 1]
            needed = band[before, 1] + zones[n] + band[name, -1]
            at += max(needed, half + len(before) * HEADING_CHAR / 2 + 16)
        lanes[name] = at
    last = story.columns[-1]
    right = at + max(band[last, 1] + zones[-1], len(last) * HEADING_CHAR / 2 + 10) + MARGIN
    edges = {name: (lanes[name] - band[name, -1], lanes[name] + band[name, 1]) for name in story.columns}
    for n, name in enumerate(story.columns):
        left = edges[story.columns[n - 1]][1] if n else text_left + TEXT_CHARS * ACTION_CHAR + 8
        until = edges[story.columns[n + 1]][0] if n + 1 < len(story.columns) else right - 4
        room[name] = (int((edges[name][0] - left) / LABEL_CHAR), int((until - edges[name][1]) / LABEL_CHAR))
    width = max(right, 720.0)
    wide = int((width - 2 * MARGIN) / ACTION_CHAR)
    head_lines = tuple(line for text in head for line in textwrap.wrap(text, wide))
    foot_lines = tuple(line for text in foot for line in textwrap.wrap(text, wide))
    top = MARGIN + 20 + len(head_lines) * CAPTION + 44
    rows, dividers, captions, bottom = _rows(story, top, wide)
    tracks = tuple(
        lanes[_source(number, flight)] + side * (FIRST_TRACK + NEXT_TRACK * track)
        for flight, side, track in zip(story.flights, sides, slots, strict=True)
    )
    height = bottom + 56 + 30 + len(foot_lines) * CAPTION + MARGIN
    return Layout(
        width, height, top, bottom, lanes, rows, dividers, captions, tracks, head_lines, foot_lines, text_left, room,
        edges,
    )


def label_column(story: Story, flight: Flight) -> tuple[str, int]:
    """Return beside which lifeline the label of a flight stands, and on which side of it."""
    number = {name: n for n, name in enumerate(story.columns)}
    side = _side(number, flight)
    if flight.end != RECEIVED:
        return _source(number, flight), side
    if _source(number, flight) == flight.dest:
        return flight.dest, side
    return flight.dest, -side


def caption_of(story: Story, row: Row) -> list[str]:
    """Return what to write below a row: the invariants that fail from it on; at the end, a violation of liveness."""
    told = [f"! step {row.n} FAILS {name}: {row.event.violated[name]}" for name in row.began]
    if row is story.rows[-1] and story.history.end["verdict"].get("kind") == "liveness":
        told.append(f"! {verdict(story)}")
    return told


def _rows(
    story: Story, top: float, wide: int
) -> tuple[tuple[float, ...], tuple[float, ...], tuple[tuple[str, ...], ...], float]:
    rows, dividers, captions = [], [], []
    at = top
    for row in story.rows:
        if row.n and row.n - 1 == story.fair_from:
            dividers.append(at + DIVIDER / 2)
            at += DIVIDER
        rows.append(at + ROW / 2)
        at += ROW
        lines = tuple(line for text in caption_of(story, row) for line in textwrap.wrap(text, wide - 4))
        captions.append(lines)
        at += len(lines) * CAPTION + (6 if lines else 0)
    if story.fair_from == story.rows[-1].n:
        dividers.append(at + DIVIDER / 2)
        at += DIVIDER
    return tuple(rows), tuple(dividers), tuple(captions), at + 12


def _source(number: Mapping[str, int], flight: Flight) -> str:
    """The column a flight leaves: its sender's, or its destination's where nobody in the picture sent it."""
    return flight.source if flight.source in number else flight.dest


def _side(number: Mapping[str, int], flight: Flight) -> int:
    """On which side of its sender a flight leaves: -1 to the left, 1 to the right."""
    source = _source(number, flight)
    if source == flight.dest:
        return 1 if number[source] + 1 < len(number) else -1
    return 1 if number[flight.dest] > number[source] else -1


def _track_numbers(story: Story, sides: list[int]) -> list[int]:
    """Give each flight the innermost track that is free from its send to its end."""
    free_from: dict[tuple[str, int], list[int]] = {}
    found = []
    number = {name: n for n, name in enumerate(story.columns)}
    last = len(story.rows)
    for flight, side in zip(story.flights, sides, strict=True):
        taken = free_from.setdefault((_source(number, flight), side), [])
        until = last if flight.ended_at is None else max(flight.ended_at, flight.sent_at + 1)
        track = next((n for n, free in enumerate(taken) if free <= flight.sent_at), len(taken))
        taken[track : track + 1] = [until]
        found.append(track)
    return found


def _zones(story: Story, number: Mapping[str, int], sides: list[int]) -> list[float]:
    """The widths that labels need before the first lifeline, between each two, and after the last."""
    zones = [0.0] * (len(number) + 1)
    for flight in story.flights:
        name, side = label_column(story, flight)
        gap = number[name] + (1 if side > 0 else 0)
        longest = max(len(flight.message.type), min(len(message_fields(flight.message)), FIELDS))
        if flight.end in (LOST, DROPPED, MERGED):
            longest = len(f"{flight.end} {flight.message.type}")
        zones[gap] = max(zones[gap], min(longest, LONGEST_LABEL) * LABEL_CHAR + 12)
    return zones
