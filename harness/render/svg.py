"""A history as a standalone SVG sequence diagram: nothing fetched, readable in light, in dark and without colour.

Every kind of step has its own shape, every fate of a message its own line end or dash; colours only repeat them.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from harness.model import Kind
from harness.render.changes import brief_message, message_fields
from harness.render.svg_layout import (
    ACTION_CHAR,
    CAPTION,
    HEADING_CHAR,
    LABEL_CHAR,
    LEG,
    MARGIN,
    NODE,
    ROW,
    TEXT_CHARS,
    DiagramLayout,
    label_column,
    lay_out,
)
from harness.render.svg_style import STYLE
from harness.render.text import details, shorten, wrap
from harness.render.timeline import DROPPED, LOST, MERGED, RECEIVED, UNDER_WAY, Flight, Row, Timeline, facts, verdict

KINDS = {
    Kind.STEP: "protocol step", Kind.COMMAND: "command", Kind.TIMER: "timer", Kind.PERTURBATION: "perturbation",
    Kind.FAULT: "fault", Kind.HEAL: "heal", Kind.INPUT: "input from outside",
}


def write(timeline: Timeline, inside: bool = False) -> str:
    """Return the diagram as an XML document; or for a place `inside` a page, which has the style sheet for all."""
    about = facts(timeline)
    title = f"{about[0][1]}: {verdict(timeline)}"
    head = [f"{name} {value}" for name, value in about[1:]]
    layout = lay_out(timeline, head, [f"verdict: {verdict(timeline)}", f"digest: {timeline.history.digest}"])
    parts = [
        *(() if inside else ('<?xml version="1.0" encoding="UTF-8"?>',)),
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{layout.width:.0f}" height="{layout.height:.0f}" '
        f'viewBox="0 0 {layout.width:.0f} {layout.height:.0f}" role="img">',
        f"<title>{escape(title, quote=False)}</title>",
        *(() if inside else (f"<style>{STYLE}</style>",)),
        f'<rect class="page" width="{layout.width:.0f}" height="{layout.height:.0f}"/>',
        *_head(timeline, layout, about[0][1]),
    ]
    rows = [row for row in timeline.rows if not row.is_minor]
    for row in rows:
        parts += _ground(layout, row)
    for y in layout.dividers:
        parts += _divider(layout, y)
    for column in timeline.columns:
        parts += _lifeline(timeline, layout, column)
    for flight, track in zip(timeline.flights, layout.tracks, strict=True):
        parts += _flight(timeline, layout, flight, track) if not flight.is_at_once else ()
    for row in rows:
        parts += [*_step(layout, row), *_caption(layout, row), *_legs(layout, row)]
    for n, folded in layout.folded.items():
        parts.append(_text(layout.text_left, layout.rows[n] + 4, f"{n} {folded.label}", "quiet"))
    return "\n".join([*parts, *_foot(timeline, layout), "</svg>"]) + "\n"


def _text(x: float, y: float, text: str, css: str = "", full: str = "", anchor: str = "") -> str:
    style = f' class="{css}"' if css else ""
    place = f' text-anchor="{anchor}"' if anchor else ""
    title = f"<title>{escape(full, quote=False)}</title>" if full else ""
    return f'<text x="{x:.1f}" y="{y:.1f}"{style}{place}>{title}{escape(text, quote=False)}</text>'


def _path(d: str, css: str, full: str = "") -> str:
    title = f"<title>{escape(full, quote=False)}</title>" if full else ""
    return f'<path class="{css}" d="{d}">{title}</path>' if title else f'<path class="{css}" d="{d}"/>'


def _head(timeline: Timeline, layout: DiagramLayout, title: str) -> list[str]:
    y = MARGIN + 14
    found = [_text(MARGIN, y, title, "title")]
    for n, line in enumerate(layout.head, 1):
        found.append(_text(MARGIN, y + n * CAPTION, line, "quiet"))
    if timeline.timed:
        found.append(_text(layout.text_left - 12, layout.top - 6, "ms", "quiet", anchor="end"))
    return found + _names(layout, layout.top - 32)


def _names(layout: DiagramLayout, y: float) -> list[str]:
    found = []
    for name, x in layout.lanes.items():
        half = len(name) * HEADING_CHAR / 2 + 7
        found.append(f'<rect class="box" x="{x - half:.1f}" y="{y:.1f}" width="{2 * half:.1f}" height="24" rx="3"/>')
        found.append(_text(x, y + 16.5, name, "heading"))
    return found


def _ground(layout: DiagramLayout, row: Row) -> list[str]:
    """The background of a row: a band for every other one, a framed box where an invariant begins to fail."""
    y = layout.rows[row.n] - ROW / 2
    lines = layout.captions[row.n]
    if not lines:
        if row.n % 2 or row.telling is not None:
            return []
        return [f'<rect class="band" x="0" y="{y:.1f}" width="{layout.width:.0f}" height="{ROW:.0f}"/>']
    height = ROW + LEG * len(row.drawn) + len(lines) * CAPTION + 2
    return [f'<rect class="bad" x="3" y="{y + 1:.1f}" width="{layout.width - 6:.0f}" height="{height:.1f}" rx="4"/>']


def _caption(layout: DiagramLayout, row: Row) -> list[str]:
    """Why the row is framed, on a ground of its own so that no line runs through it."""
    found = []
    for n, line in enumerate(layout.captions[row.n]):
        y = layout.rows[row.n] + ROW / 2 + LEG * len(row.drawn) + 10 + n * CAPTION
        wide = len(line) * ACTION_CHAR + 8
        found.append(f'<rect class="ground" x="{MARGIN - 4:.1f}" y="{y - 11:.1f}" width="{wide:.1f}" height="15"/>')
        found.append(_text(MARGIN, y, line, "why"))
    return found


def _divider(layout: DiagramLayout, y: float) -> list[str]:
    text = "fair ending: no more faults, everyone gets their turn"
    start = MARGIN + len(text) * ACTION_CHAR + 12
    return [
        _text(MARGIN, y + 4, text, "bold"),
        _path(f"M{start:.1f},{y:.1f}H{layout.width - MARGIN:.1f}", "rule"),
    ]


def _lifeline(timeline: Timeline, layout: DiagramLayout, column: str) -> list[str]:
    """A lifeline: dotted while its actor is paused, a gap with closed ends while it is down."""
    x = layout.lanes[column]
    found = []
    since, status = layout.top - 8, "up"
    for row in timeline.rows:
        now = row.status.get(column, "up")
        if now != status:
            y = layout.rows[row.n]
            found += _segment(x, since, y, status)
            if "down" in (now, status):
                found.append(_path(f"M{x - 21:.1f},{y:.1f}h42", "life"))
            since, status = y, now
    return found + _segment(x, since, layout.bottom + 16, status)


def _segment(x: float, start: float, end: float, status: str) -> list[str]:
    if status == "down":
        return []
    css = "life paused" if status == "paused" else "life"
    return [_path(f"M{x:.1f},{start:.1f}V{end:.1f}", css)]


def _legs(layout: DiagramLayout, row: Row) -> list[str]:
    """The messages that were received at once, one below the other, each named above its line."""
    found = []
    for n, flight in enumerate(row.drawn):
        y = layout.rows[row.n] + ROW / 2 + LEG * (n + 0.5)
        x, to = layout.lanes[flight.source], layout.lanes[flight.dest]
        full = brief_message(flight.message, f"{flight.message.source}->{flight.dest}")
        way = 1 if to > x else -1
        path = f"M{x:.1f},{y:.1f}H{to - way * 8:.1f}" if to != x else f"M{x:.1f},{y - 8:.1f}h24v8H{x + 8:.1f}"
        way = -1 if to == x else way
        room = layout.width - MARGIN - min(x, to) - 8
        said = shorten(f"{flight.message.type} {message_fields(flight.message)}".strip(), int(room / LABEL_CHAR))
        left = min(x, to) + 6 + (24 if to == x else 0)
        ground = "ground" if row.began else "page"
        found.append(f'<rect class="{ground}" x="{left - 1:.1f}" y="{y - 12:.1f}" '
                     f'width="{len(said) * LABEL_CHAR + 2:.1f}" height="11"/>')
        found += [_path(path, "flight", full), _path(f"M{to:.1f},{y:.1f}l{-way * 8},-4v8z", "head"),
                  _text(left, y - 3, said, "label", full)]
    return found


def _flight(timeline: Timeline, layout: DiagramLayout, flight: Flight, track: float) -> list[str]:
    """A message: out to its track, down while it is under way, across to its receiver, or to a cross."""
    source = flight.source if flight.source in layout.lanes else flight.dest
    x, start = layout.lanes[source], layout.rows[flight.sent_at]
    side = 1 if track > x else -1
    full = f"{brief_message(flight.message, f'{flight.message.source}->{flight.dest}')}, sent in step {flight.sent_at}"
    full += f", {flight.end}" + (f" in step {flight.ended_at}" if flight.ended_at is not None else "")
    css = "flight" + (" reliable" if flight.reliable else "") + (" held" if flight.held_at is not None else "")
    out = f"M{x + side * NODE * 0.8:.1f},{start + 5:.1f}L{track:.1f},{start + 14:.1f}"
    if flight.end == RECEIVED and flight.ended_at is not None:
        y, dest = layout.rows[flight.ended_at], layout.lanes[flight.dest]
        into = 1 if dest > track else -1
        tip = dest - into * (NODE + 2)
        path = f"{out}V{y - 6:.1f}L{track + into * 5:.1f},{y:.1f}H{tip - into * 5:.1f}"
        head = f"M{tip:.1f},{y:.1f}l{-into * 8},-4v8z"
        return [_path(path, css, full), _path(head, "head"), *_label(timeline, layout, flight, full)]
    if flight.end == UNDER_WAY:
        y = layout.bottom + 4
        mark = f'<circle class="open" cx="{track:.1f}" cy="{y + 3:.1f}" r="3"/>'
        return [_path(f"{out}V{y:.1f}", css, full), mark]
    at_once = flight.ended_at == flight.sent_at
    y = start + 17 if at_once or flight.ended_at is None else layout.rows[flight.ended_at]
    path = out if at_once else f"{out}V{y - 5:.1f}"
    css = css if flight.end == MERGED else css.replace("flight", "gone", 1)
    return [_path(path, css, full), _end(track, y, flight), *_label(timeline, layout, flight, full)]


def _end(x: float, y: float, flight: Flight) -> str:
    """A cross where a message was lost, two bars where it merged with one already under way."""
    if flight.end == MERGED:
        return _path(f"M{x - 4:.1f},{y - 2:.1f}h8m-8,4h8", "flight")
    return _path(f"M{x - 4:.1f},{y - 4:.1f}l8,8m0,-8l-8,8", "cross")


def _label(timeline: Timeline, layout: DiagramLayout, flight: Flight, full: str) -> list[str]:
    """The label of a message that ended: type above the line, fields below; what was lost names its fate."""
    column, side = label_column(timeline, flight)
    room = layout.room[column][0 if side < 0 else 1]
    x = layout.edges[column][0 if side < 0 else 1] + 3 * side
    anchor = "end" if side < 0 else "start"
    if flight.ended_at is None or room < 4:
        return []
    y = layout.rows[flight.ended_at]
    if flight.end == RECEIVED:
        kind = shorten(flight.message.type, room)
        fields = shorten(message_fields(flight.message), room)
        found = [_text(x, y - 4, kind, "label bold", full, anchor)]
        return [*found, _text(x, y + 10, fields, "label quiet", full, anchor)] if fields else found
    if flight.end == DROPPED:
        return [_text(x + 4 * side, y - 4, shorten(f"dropped {flight.message.type}", room), "label", full, anchor)]
    same = [
        other for other in timeline.flights
        if other.end == flight.end and other.ended_at == flight.ended_at == other.sent_at
        and label_column(timeline, other) == (column, side)
    ]
    if flight.end in (LOST, MERGED) and flight.sent_at == flight.ended_at and same[0] is flight:
        what = flight.message.type if len(same) == 1 else f"{len(same)} messages"
        return [_text(x + 4 * side, y + 20, shorten(f"{flight.end} {what}", room), "label", full, anchor)]
    return []


def _step(layout: DiagramLayout, row: Row) -> list[str]:
    """What stands beside a row, and the mark on its actor's lifeline."""
    y = layout.rows[row.n]
    found = []
    if row.event.at_us is not None:
        x = layout.text_left - 12
        found.append(_text(x, y - 9, f"{row.event.at_us / 1000:.3f}", "quiet", "virtual time in ms", "end"))
    name = f"{row.n} {row.label}"
    found.append(_text(layout.text_left, y - 9, shorten(name, TEXT_CHARS), "bold", name))
    shown = "; ".join(details(row, drawn=True))
    for n, line in enumerate(wrap(shown, TEXT_CHARS, "", most=2) if shown else ()):
        found.append(_text(layout.text_left, y + 4 + 12.5 * n, line, "quiet", shown))
    return found + (_node(layout.lanes[row.column], y, row.event.kind, str(row.n), name) if row.n else [])


def _node(x: float, y: float, kind: str, number: str, full: str) -> list[str]:
    """The mark of a step: its kind is its shape."""
    r = NODE
    title = f"<title>{escape(full, quote=False)}</title>"
    if kind == Kind.PERTURBATION:
        r += 3
        shape = f'<path class="node perturbation" d="M{x:.1f},{y - r:.1f}l{r},{r}l{-r},{r}l{-r},{-r}z">{title}</path>'
    elif kind in (Kind.FAULT, Kind.HEAL):
        round_ = 2 * r if kind == Kind.HEAL else 0
        shape = (
            f'<rect class="node {kind}" x="{x - r:.1f}" y="{y - r + 1:.1f}" width="{2 * r}" height="{2 * r - 2}" '
            f'rx="{round_ / 4}">{title}</rect>'
        )
    else:
        css = "node timer" if kind == Kind.TIMER else "node"
        shape = f'<circle class="{css}" cx="{x:.1f}" cy="{y:.1f}" r="{r}">{title}</circle>'
    found = [shape]
    if kind == Kind.COMMAND:
        found.append(f'<circle class="inner" cx="{x:.1f}" cy="{y:.1f}" r="{r - 2.5}"/>')
    return [*found, _text(x, y + 3.5, number, "number")]


def _foot(timeline: Timeline, layout: DiagramLayout) -> list[str]:
    found = _names(layout, layout.bottom + 16)
    y = layout.bottom + 66
    kinds = [kind for kind in KINDS if any(row.event.kind == kind for row in timeline.rows)]
    x = MARGIN + NODE
    for kind in kinds:
        found += [*_node(x, y, kind, "n", KINDS[kind]), _text(x + NODE + 7, y + 4, KINDS[kind], "quiet")]
        x += 2 * NODE + 20 + len(KINDS[kind]) * ACTION_CHAR
    for css, name in _lines(timeline):
        if css == "cross":
            found.append(_path(f"M{x},{y - 4:.1f}l8,8m0,-8l-8,8", css))
        elif css == "open":
            found.append(f'<circle class="open" cx="{x + 4:.1f}" cy="{y:.1f}" r="3"/>')
        else:
            found.append(_path(f"M{x - 4:.1f},{y:.1f}h26", css))
        found.append(_text(x + 28, y + 4, name, "quiet"))
        x += 44 + len(name) * ACTION_CHAR
    for n, line in enumerate(layout.foot):
        found.append(_text(MARGIN, y + 28 + n * CAPTION, line, "quiet" if line.startswith("digest") else "bold"))
    return found


def _lines(timeline: Timeline) -> Iterable[tuple[str, str]]:
    """The kinds of lines that occur, for the legend."""
    flights = timeline.flights
    if any(flight.reliable for flight in flights):
        yield "flight reliable", "reliable link"
    if any(flight.held_at is not None for flight in flights):
        yield "flight held", "was delayed"
    if any(flight.end in (LOST, DROPPED) for flight in flights):
        yield "cross", "lost"
    if any(flight.end == UNDER_WAY for flight in flights):
        yield "open", "under way"
