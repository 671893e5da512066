"""The screen of a demo in a terminal as styled lines for any width and height: what is where, and what it looks like.

From above: where the session is; the timeline, a column per actor; what can happen, with numbers; the caption of a
tour; what fails; the answer to the last line. On a wide screen what can happen stands beside the timeline. A longer
answer, such as help, takes the place of both until it is put away.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable, Sequence

from harness.demo.session.as_json import Json
from harness.demo.terminal.console import Console
from harness.demo.terminal.verbs.looking import listed, message_line
from harness.render.text import shorten, wrap

Fragment = tuple[str, str]
Line = list[Fragment]

STYLE = {
    "head": "reverse bold", "names": "bold ansicyan", "number": "bold", "dim": "ansibrightblack", "fault": "ansiyellow",
    "fails": "bold ansired", "good": "ansigreen", "caption": "bold", "title": "underline", "sent": "ansicyan",
    "refused": "ansired",
}
WIDE = 130
"""Columns from which on what can happen stands beside the timeline."""
SIDE = 62
LEAST_LIST = 6
ROOMY = 28
"""Lines from which on the last step's action in the spec is shown."""
MOST_CAPTION = 5
SIGNS = {"<- ": "dim", "-> ": "sent", "x> ": "fault", "~> ": "fault"}
"""How lines within a step begin, and what they look like."""


MARKS = {"[fault]": "fault", "[perturbation]": "fault", "[heal]": "good"}
FAILS = " FAILS "
INDENT = "  "
"""What lines within a step that go on with the one before are indented by, at least."""


class DemoScreen:
    """What is seen of a console. `back` is how many lines the reader went back from the end."""

    def __init__(self, console: Console, rule: str = "|") -> None:
        self.console = console
        self.rule = rule
        self.back = 0
        self.text: list[str] | None = None
        """A text that is read in place of the run."""
        self.note: Fragment = ("good", "")
        self.room = 10

    def lines(self, width: int, height: int) -> list[Line]:
        """Return exactly `height` lines of at most `width` characters."""
        bottom = [*self._spec(width, height), *self._caption(width), *self._failing(width), *self._note(width)]
        room = height - 1 - len(bottom)
        if room < LEAST_LIST:
            bottom = bottom[-max(0, height - 1 - LEAST_LIST) :]
            room = height - 1 - len(bottom)
        if self.text is not None:
            middle = self._reading(width, room)
        elif width >= WIDE:
            middle = self._beside(width, room)
        else:
            below = self._possible(width, max(LEAST_LIST, room * 2 // 5))
            above = self._timeline(width, room - len(below))
            middle = [*above, *([] for _ in range(room - len(below) - len(above))), *below]
        middle += [[] for _ in range(room - len(middle))]
        return [self._head(width), *middle, *bottom][:height]

    def scroll(self, pages: int) -> None:
        """Move by so many pages: up is positive."""
        self.back = max(0, self.back + pages * max(1, self.room - 1))

    def read(self, lines: Sequence[str]) -> None:
        """Show a text in place of the run, from its beginning."""
        self.text, self.back = list(lines), 0

    def put_away(self) -> None:
        """Show the run again, at its end."""
        self.text, self.back = None, 0

    def _head(self, width: int) -> Line:
        session, present = self.console.session, self.console.present()
        failing = [name for name, found in present["properties"].items() if not found["ok"]]
        count = sum(prop.is_safety for prop in session.model.properties)
        where = f"step {session.at}" + (f" of {session.branch.length}" if session.branch.length > session.at else "")
        if present["at_us"] is not None:
            where += f", {present['at_us'] / 1000:.3f} ms"
        if len(session.branches) > 1:
            where += f", {session.branch.name}"
        where += f", {len(failing)} FAIL" if failing else f", {count} invariants hold"
        if present["running"]:
            where = f"running: {present['strategy']}, {where}"
        name = session.toured.name if session.toured is not None else session.plan.scenario
        what = f" {name}: {session.model.name}" if name else f" {session.model.name}"
        what = shorten(what, max(0, width - len(where) - 3))
        return [("head", f"{what}{where:>{max(0, width - len(what) - 1)}} "[:width])]

    def _timeline(self, width: int, room: int) -> list[Line]:
        """The names of the lifelines, and as much of the end of the run as there is room for."""
        timeline = self.console.timeline
        names = timeline.names(width)[: max(1, room - 2)]
        self.room = max(1, room - len(names))
        found: list[Line] = []
        gutter = timeline.page(width).gutter
        for record in reversed(self.console.session.branch.records[: self.console.session.at + 1]):
            found += reversed(styled(timeline.lines(record, width), gutter))
            if len(found) >= self.room + self.back:
                break
        self.back = max(0, min(self.back, len(found) - self.room))
        lines = found[self.back : self.back + self.room][::-1]
        if not self.console.session.at and not found:
            words = "Nothing has happened yet. Give the number of a step, or run."
            return [*([("names", name)] for name in names), [], [("dim", f"  {shorten(words, width - 2)}")]]
        if self.back:
            lines[-1] = [("dim", shorten(f"  ... {self.back} lines more, PageDown goes there", width))]
        return [*([("names", name)] for name in names), *lines]

    def _beside(self, width: int, room: int) -> list[Line]:
        """The timeline, and next to it what can happen."""
        side = min(SIDE, width * 2 // 5)
        left = self._timeline(width - side - 3, room)
        right = self._possible(side, room)
        lines = []
        for n in range(room):
            line = _cut(left[n], width - side - 3) if n < len(left) else []
            gap = width - side - 2 - sum(len(text) for _, text in line)
            lines.append([*line, ("", " " * gap), ("dim", f"{self.rule} "), *(right[n] if n < len(right) else [])])
        return lines

    def _possible(self, width: int, room: int) -> list[Line]:
        """What can happen, with numbers, and the messages that cannot arrive now."""
        steps, faults = listed(self.console)
        in_flight = self.console.present()["in_flight"]
        numbers = {message["id"]: n for n, message in enumerate(in_flight, 1)}
        shown = {step["message"] for step in steps}
        session = self.console.session
        kept = session.branch.choice(session.at + 1).label if session.at < session.branch.length else None
        lines = [self._option(step, in_flight, numbers, width, step["label"] == kept) for step in steps]
        lines += [
            [("dim", shorten(f"     m{n} {message_line(message)}", width))]
            for n, message in enumerate(in_flight, 1) if message["id"] not in shown
        ]
        lines += [[("fault", shorten(line, width))] for line in faults]
        over = session.over()
        if over and not lines:
            lines = [[("dim", shorten(f"  {over}", width))]]
        if len(lines) > room - 1:
            more = f"     ... {len(lines) - room + 2} more; steps lists all, messages those under way"
            lines = [*lines[: room - 2], [("dim", shorten(more, width))]]
        return [[("title", shorten(f"{'can happen':{width}}", width))], *lines]

    def _option(self, step: Json, in_flight: list[Json], numbers: dict[str, int], width: int, is_kept: bool) -> Line:
        """A step that is possible, marked where it is the next kept one."""
        name = f"{step['action']}({','.join(step['args'])})" if step["args"] else step["action"]
        head = f"{step['index'] + 1:>3}{'>' if is_kept else ' '} "
        style = "fault" if step["kind"] == "perturbation" else ""
        message = numbers.get(step["message"])
        if message is None:
            return [("number", head), (style, shorten(name + step["label"].removeprefix(name), width - len(head)))]
        shown = in_flight[message - 1]
        text = f"  <- m{message} {shown['type']} {shown['brief']}".rstrip()
        name = shorten(name, width - len(head))
        return [("number", head), (style, name), ("dim", shorten(text, max(0, width - len(head) - len(name))))]

    def _spec(self, width: int, height: int) -> list[Line]:
        """What the last step is in the spec, where the model has one and the screen a line to spare."""
        session = self.console.session
        if height < ROOMY or not session.at or session.judge() is None:
            return []
        session.refine()
        found = json.loads(session.spec_of(session.at))
        return [[("dim", shorten(f" step {session.at} {found['text']}", width))]] if found else []

    def _caption(self, width: int) -> list[Line]:
        """What the tour has to say about the present step."""
        text = self.console.caption()
        if text is None:
            return []
        lines = wrap(text, width - 4, "", MOST_CAPTION)
        return [[], *([("caption", f"  {line}")] for line in lines)]

    def _failing(self, width: int) -> list[Line]:
        present = self.console.present()
        failing = [f"{name} since step {found['since']}" for name, found in present["properties"].items()
                   if not found["ok"]]
        if not failing:
            return []
        found = present["violation"]
        text = f"violates {found['property']}: {found['reason']}" if found else f"FAILS {', '.join(failing)}"
        return [[("fails", line)] for line in wrap(f" {text}", width - 1, "   ", 2)]

    def _note(self, width: int) -> list[Line]:
        style, text = self.note
        return [[(style, line)] for line in wrap(f" {text}", width - 1, "   ", 3)] if text else [[]]

    def _reading(self, width: int, room: int) -> list[Line]:
        """A text in place of the run."""
        assert self.text is not None
        lines = [part for line in self.text for part in folded(line, width - 2)]
        self.room = room - 1
        most = max(0, len(lines) - self.room)
        start = max(0, min(most, -self.back if self.back < 0 else self.back))
        self.back = start
        shown = lines[start : start + self.room]
        rest = len(lines) - start - len(shown)
        foot = f"PageDown: {rest} lines more; Escape: back to the run" if rest else "Escape: back to the run"
        shown += [""] * (self.room - len(shown))
        return [*([("", f" {line}")] for line in shown), [("dim", shorten(f" {foot}", width))]]


def styled(lines: Iterable[str], gutter: int) -> list[Line]:
    """Return the lines of one step with their styles; a line that goes on with the one before looks like it."""
    found: list[Line] = []
    style = ""
    for text in lines:
        beside, body = text[:gutter], text[gutter:]
        if FAILS in text[: gutter + len(FAILS)] or (style == "fails" and text.startswith(" " * 8)):
            style = "fails"
            found.append([(style, text)])
            continue
        words = body.lstrip("|: ")
        lanes = body[: len(body) - len(words)]
        if beside.strip()[:1].isdigit():
            style = next((look for mark, look in MARKS.items() if mark in words), "number")
        elif not lanes.endswith(INDENT):
            style = SIGNS.get(words[:3], "")
        said = words.rstrip("| ")
        found.append([("dim", beside + lanes), (style, said), ("dim", words[len(said) :])])
    return found


def folded(line: str, width: int) -> list[str]:
    """Return a line in parts of at most a width, those after the first indented more."""
    indent = " " * min(len(line) - len(line.lstrip()) + 4, width // 2)
    return textwrap.wrap(line, width, subsequent_indent=indent, break_on_hyphens=False, drop_whitespace=True,
                         replace_whitespace=False) or [""]


def _cut(line: Line, width: int) -> Line:
    """Return a line that is not longer than a width."""
    found: Line = []
    for style, text in line:
        found.append((style, text[: max(0, width)]))
        width -= len(text)
    return found


def plain(lines: Iterable[Line]) -> list[str]:
    """Return lines without their styles."""
    return ["".join(text for _, text in line).rstrip() for line in lines]
