"""A history as a text timeline: a lifeline per actor, each step written from its actor's lifeline to the right.

No line is longer than the width: text wraps where it stands, moves left where its lifeline leaves too little room, and
is cut off with `...` after a few lines.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence

from harness.model import OPEN, EntryKind, Refusal, parts
from harness.render.changes import SILENT, brief, brief_message
from harness.render.timeline import (
    DROPPED,
    ENVIRONMENT,
    LOST,
    MERGED,
    RECEIVED,
    UNDER_WAY,
    Flight,
    Folded,
    Row,
    Timeline,
    facts,
    folded,
    verdict,
)

NARROWEST = 40
ROOM = 44
"""Characters that the last lifeline should leave for text."""
LEAST_ROOM = 24
PITCH = 22
"""Characters between two lifelines at most."""
MOST_LINES = 4
"""Lines of one message or change, before it is cut off."""
MOST_ENTRIES = 12
"""Records of a log that are shown."""
REPEAT = 25
"""Steps after which the names of the lifelines are written again."""
GLUE = "\xa0"
"""A space at which no line is broken."""
LIFELINE = {"up": "|", "paused": ":", "down": " "}


def write(timeline: Timeline, width: int) -> str:
    """Return the timeline. Raises Refusal for a width below 40."""
    if width < NARROWEST:
        raise Refusal(f"a timeline needs a width of at least {NARROWEST} characters, not {width}")
    times = [_time(row) for row in timeline.rows if row.event.at_us is not None]
    page = Page(timeline.columns, timeline.properties, width, len(timeline.rows), max(map(len, times), default=0))
    is_told = any(row.telling is not None for row in timeline.rows)
    lines = [*_head(timeline, width), "", *(() if is_told else (*_initial(timeline, width), "")), *page.names({})]
    named = 0
    for row in timeline.shown():
        if isinstance(row, Folded):
            lines += page.minor(row)
            continue
        if row.n and row.n - 1 == timeline.fair_from:
            lines.append(_rule(timeline.ending, width))
        if row.n // REPEAT > named:
            named = row.n // REPEAT
            lines += page.names(row.status)
        if row.n:
            lines += page.step(row)
        lines += failing(timeline.properties, row, width)
    if timeline.fair_from == timeline.rows[-1].n:
        lines.append(_rule(timeline.ending, width))
    lines += ["", *_logs(timeline, width), *_foot(timeline, width)]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def last_steps(
    rows: Sequence[Row], lanes: Sequence[str], width: int, most: int, properties: Sequence[str] = ()
) -> str:
    """Return the last of some told steps as a timeline, `most` of those that matter, with what begins to fail."""
    shown = [*folded(rows)]
    matter = [n for n, row in enumerate(shown) if not isinstance(row, Folded)]
    shown = shown[matter[-most] if len(matter) > most else 0 :]
    acted = any(row.column == ENVIRONMENT for row in shown if isinstance(row, Row))
    columns = tuple(dict.fromkeys((*lanes, *((ENVIRONMENT,) if acted else ()))))
    page = Page(columns, (), width, max((row.n for row in rows), default=0), 0)
    lines = page.names({})
    for row in shown:
        lines += page.minor(row) if isinstance(row, Folded) else page.step(row)
        if isinstance(row, Row) and row.began:
            lines += failing(properties, row, width)
    return "\n".join(line.rstrip() for line in lines)


class Page:
    """Where the lifelines stand on a page of a width, and what the lines of a step are there.

    `steps` is how many there may be, `time` how many characters a moment of virtual time takes, 0 without times.
    """

    def __init__(self, columns: Sequence[str], properties: Sequence[str], width: int, steps: int, time: int) -> None:
        self.properties = properties
        self.width = width
        self.digits = max(4, len(str(steps)))
        count = len(properties)
        self.all_hold = f"ok {count}/{count}" if count else ""
        self.gutter = max(self.digits + 1 + len(self.all_hold), time) + 2
        self.pitch = max(1, min(PITCH, (width - self.gutter - ROOM) // max(len(columns) - 1, 1)))
        self.lanes = {name: self.gutter + n * self.pitch for n, name in enumerate(columns)}

    def names(self, status: Mapping[str, str]) -> list[str]:
        """Return the names of the lifelines, each where its own lifeline goes down without crossing another name."""
        level: dict[str, int] = {}
        for name, at in self.lanes.items():
            crossing = [level[other] + 1 for other in level if self.lanes[other] + len(other) + 1 > at]
            level[name] = max(crossing, default=0)
        lines = []
        for depth in range(max(level.values(), default=-1) + 1):
            line = self._lifelines(status, [name for name in self.lanes if level[name] < depth])
            for name, at in self.lanes.items():
                if level[name] == depth:
                    shown = shorten(name, self.width - at)
                    line[at : at + len(shown)] = list(shown)
            lines.append("".join(line))
        return lines

    def step(self, row: Row) -> list[str]:
        """Return the lines of one step."""
        lane = self.lanes[row.column]
        start = min(lane, self.width - LEAST_ROOM)
        shown = details(row)
        told = shown.pop(0) if row.telling is not None and not row.telling.label and shown else row.label
        body = wrap(told, self.width - start, "    ")
        for detail in shown:
            body += [f"| {line}" for line in wrap(detail, self.width - start - 2, "   ")]
        beside = [f"{row.n:>{self.digits}} {self._holding(row)}"]
        if row.event.at_us is not None:
            beside.append(_time(row).rjust(self.gutter - 2))
        body += [""] * (len(beside) - len(body))
        beside += [""] * (len(body) - len(beside))
        return [self._line(row.status, left, start, text) for left, text in zip(beside, body, strict=True)]

    def minor(self, steps: Folded) -> list[str]:
        """Return the lines of minor steps."""
        first = steps.rows[0]
        body = wrap(steps.label, self.width - self.gutter, "    ")
        return [self._line(steps.rows[-1].status, f"{first.n:>{self.digits}}" if line is body[0] else "", self.gutter,
                           line) for line in body]

    def _holding(self, row: Row) -> str:
        count = len(self.properties)
        if not row.event.violated or not count:
            return self.all_hold
        return f"{count - len(row.event.violated)}/{count}".rjust(len(self.all_hold))

    def _line(self, status: Mapping[str, str], left: str, start: int, text: str) -> str:
        line = self._lifelines(status, self.lanes)
        line[: len(left)] = list(left)
        if text:
            line[start - 1] = " "
            line[start : start + len(text) + 1] = [*text, " "]
        return "".join(line[: self.width])

    def _lifelines(self, status: Mapping[str, str], names: Iterable[str]) -> list[str]:
        line = [" "] * (self.width + 1)
        for name in names:
            line[self.lanes[name]] = LIFELINE[status.get(name, "up")]
        return line


def wrap(text: str, room: int, indent: str, most: int = MOST_LINES) -> list[str]:
    """Return a text in lines of at most `room` characters, cut off after `most` lines."""
    lines = textwrap.wrap(
        text, room, subsequent_indent=indent, break_on_hyphens=False, max_lines=most, placeholder=" ..."
    )
    return [shorten(line, room) for line in lines] or [""]


def shorten(text: str, room: int) -> str:
    """Return a text of at most `room` characters."""
    return text if len(text) <= room else text[: max(room - 3, 0)] + "..."[:room]


def details(row: Row, drawn: bool = False) -> list[str]:
    """Return what a step received, what was taken, what it sent, what it changed.

    Where messages are `drawn`, only those with an unusual fate are listed.
    """
    received = [f"<- {brief_message(row.received.message, row.received.message.source)}"] if row.received else []
    taken = [_arrow(row, flight, f"{flight.message.source}->{flight.dest}") for flight in row.taken]
    sent = [_arrow(row, flight, flight.dest) for flight in row.sent if not drawn or flight.copy_of is not None]
    if row.telling is not None:
        arrived = [] if drawn else [_arrow(row, flight, flight.dest) for flight in row.arrived]
        return [*arrived, *sent, *taken, *row.changes]
    return [*([] if drawn else received), *taken, *sent, *row.changes]


def _arrow(row: Row, flight: Flight, who: str) -> str:
    if row.telling is not None and flight.message.source != row.column:
        if flight.dest == row.column and flight.end == RECEIVED:
            return f"<- {brief_message(flight.message, flight.message.source)}"
        who = f"{flight.message.source}->{flight.dest}"
        if flight.end == RECEIVED and flight.copy_of is None and flight.held_at is None:
            return brief_message(flight.message, who)
    text = brief_message(flight.message, who)
    if flight.held_at == row.n:
        return f"~> {text} (held)"
    if flight.end in (LOST, DROPPED) and flight.ended_at == row.n:
        return f"x> {text} ({flight.end})"
    if flight.held_at is not None and flight.ended_at == row.n and flight.held_at < row.n:
        return f"-> {text} (was held since step {flight.held_at})"
    if flight.end == MERGED and flight.ended_at == row.n:
        return f"-> {text} (the same is already under way)"
    return f"-> {text}" + (" (a copy)" if flight.copy_of is not None else "")


def _head(timeline: Timeline, width: int) -> list[str]:
    lines = []
    for name, value in facts(timeline):
        lines += wrap(f"{name + ':':<11} {value}", width, " " * 12)
    if timeline.properties:
        legend = " ".join(f"{n}{GLUE}{name}" for n, name in enumerate(timeline.properties, 1))
        lines += [line.replace(GLUE, " ") for line in wrap(f"invariants: {legend}", width, " " * 12, most=99)]
    return lines


def _initial(timeline: Timeline, width: int) -> list[str]:
    """The initial state, slots of equal value together."""
    groups: dict[str, list[str]] = {}
    for name, value in sorted(timeline.rows[0].event.writes.items()):
        if parts(name)[0] not in SILENT and value != OPEN:
            groups.setdefault(brief(value), []).append(name)
    lines = ["initial state"]
    for value, names in groups.items():
        lines += wrap(f"{' '.join(names)} = {value}", width - 2, "    ")
    return [lines[0], *(f"  {line}" for line in lines[1:])]


def failing(properties: Sequence[str], row: Row, width: int) -> list[str]:
    """Return one mark per invariant where some fail, and the reason where a failure begins."""
    violated = row.event.violated
    if not violated:
        return []
    numbers = {name: n for n, name in enumerate(properties, 1)}
    marks = "".join("x" if name in violated else "+" for name in properties)
    held = [f"{numbers.get(name, '')} {name}" for name in violated if name not in row.began]
    lines = wrap(f"     {marks} still FAILS {', '.join(held)}", width, " " * 8) if held else []
    for name in row.began:
        words = filter(None, (marks, "FAILS", str(numbers.get(name, "")), f"{name}: {violated[name]}"))
        lines += wrap(f"     {' '.join(words)}", width, " " * 8)
    return lines


def _logs(timeline: Timeline, width: int) -> list[str]:
    """The logs at the end: their marks, and the last records with what became of them and who read them."""
    lines = []
    for log in timeline.logs:
        facts = [f"{name} {value}" for name, value in log.facts] + [f"{mark.label} {mark.offset}" for mark in log.marks]
        lines += wrap(f"{log.partition}: {', '.join(facts)}" if facts else log.partition, width, " " * 12)
        for entry in log.entries[-MOST_ENTRIES:]:
            kind = "" if entry.kind is EntryKind.PLAIN else str(entry.kind)
            readers = f"read by {' '.join(entry.seen_by)}" if entry.seen_by else ""
            said = entry.text, kind, entry.note, readers
            lines += wrap(f"  {entry.offset:>6}  {'  '.join(filter(None, said))}", width, " " * 12)
    return [*lines, ""] if lines else []


def _foot(timeline: Timeline, width: int) -> list[str]:
    under_way = [flight for flight in timeline.flights if flight.end == UNDER_WAY]
    lines = []
    for flight in under_way:
        text = brief_message(flight.message, f"{flight.message.source}->{flight.dest}")
        lines += wrap(f"{'held' if flight.held_at is not None else 'under way'}: {text}", width, " " * 12)
    lines += wrap(f"verdict:    {verdict(timeline)}", width, " " * 12, most=99)
    digest: Sequence[str] = textwrap.wrap(timeline.history.digest, width - 12)
    return [*lines, f"digest:     {digest[0]}", *(" " * 12 + part for part in digest[1:])]


def _rule(text: str, width: int) -> str:
    return shorten(f"---- {text} ".ljust(width, "-"), width)


def _time(row: Row) -> str:
    return "" if row.event.at_us is None else f"{row.event.at_us / 1000:.3f} ms"
