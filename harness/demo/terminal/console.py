"""A session that is driven by words: what a verb is, how a line is read, what may follow a word.

`Console.do` carries out a line, typed or written. The verbs are in `verbs`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol

import attrs

from harness.demo.session.as_json import Json
from harness.demo.session.live_session import LiveSession
from harness.demo.session.snapshot import present
from harness.demo.terminal.timeline_lines import TimelineLines
from harness.model import Refusal

MOST_SHOWN = 6
"""Possibilities that a refusal names."""


@attrs.frozen(eq=False)
class Verb:
    """A verb: how it is said, what it does, and what may follow it."""

    usage: str
    says: str
    group: str
    do: Callable[[Console, list[str]], None]
    follows: Callable[[Console, list[str]], Iterable[str]] = lambda console, words: ()
    """The words that may come after the words given so far, the verb not among them."""

    @property
    def name(self) -> str:
        return self.usage.split()[0]


@attrs.frozen(eq=False)
class LongJob:
    """Work that takes a while: what it is, the work, which touches no session, and what is done with its result."""

    says: str
    work: Callable[[], Any]
    then: Callable[[Any], None]
    progress: Callable[[], str] | None = None
    """Returns how far it is, in words, while it is worked on."""
    stop: Callable[[], None] | None = None
    """Ends the work before its time."""

    def do(self) -> None:
        """Do it at once. Raises Refusal."""
        self.then(self.work())


class Stepper(Protocol):
    """What takes the steps of a session: itself, or tasks that hold its present state."""

    def take(self, index: int) -> None: ...

    def forward(self, to: int) -> None: ...

    def run(self, most: int) -> bool: ...


class Console:
    """A session that is driven by words. `said` is the answer to the last line."""

    def __init__(self, session: LiveSession, verbs: Iterable[Verb], stepper: Stepper | None = None) -> None:
        self.session = session
        self.stepper: Stepper = stepper if stepper is not None else session
        self.verbs = {verb.name: verb for verb in verbs}
        self.timeline = TimelineLines(session)
        self.said: list[str] = []
        self.is_left = False
        self.job: LongJob | None = None
        """What takes a while, and the last line asked for: the console's host does it, in a thread or not."""
        self._saved = -1
        self._present: tuple[int, Json] = (-1, {})

    def present(self) -> Json:
        """Return the present of the session as JSON, made once for each version."""
        if self._present[0] != self.session.version:
            self._present = (self.session.version, present(self.session))
        return self._present[1]

    @property
    def is_saved(self) -> bool:
        """Whether the run was written as it is now."""
        return self._saved == self.session.version

    def note_saved(self) -> None:
        """Note that the run was written."""
        self._saved = self.session.version

    def caption(self) -> str | None:
        """Return what a tour has to say about the present step, where the run is still the tour's."""
        tour, branch, at = self.session.toured, self.session.toured_on, self.session.at
        if tour is None or branch is None or at >= len(branch.records) or branch.records[at] is not self.session.record:
            return None
        return dict(tour.captions).get(at)

    def why_it_stopped(self) -> str:
        """Return why a run stopped, and the outcome of it."""
        session = self.session
        over, found, outcome = session.over(), session.violation, session.runner.outcome
        if outcome is not None:
            saves = "; save FILE keeps it" if found is not None and found.step == session.at else ""
            return f"stopped at step {session.at}: {outcome}{saves}"
        began = [name for name, since in session.record.since.items() if since == session.at]
        if began:
            why = f", {', '.join(began)} fails"
        else:
            why = f": {over}" if over else ""
        more = f"; {found.violated} is violated, save FILE keeps it" if began and found is not None else ""
        return f"stopped at step {session.at}{why}{more}"

    def completions(self, before: list[str], last: str) -> list[str]:
        """Return the words that may stand where `last` begins one, after the words before it."""
        if not before:
            labels = [option["label"] for option in self.present()["enabled"]] if last else []
            found: Iterable[str] = (*self.verbs, *labels)
        elif before[0] in self.verbs:
            try:
                found = list(self.verbs[before[0]].follows(self, before[1:]))
            except Refusal:
                found = ()
        else:
            found = ()
        return [word for word in dict.fromkeys(found) if word.startswith(last)]

    def do(self, line: str) -> None:
        """Carry out what a line says. Raises Refusal, and then nothing has changed."""
        self.said, self.job = [], None
        words = line.split()
        if not words:
            return
        verb = self.verbs.get(words[0])
        if verb is not None:
            if verb.usage == verb.name:
                nothing(words[1:], verb.name)
            verb.do(self, words[1:])
        elif words[0].isdecimal() and len(words) == 1:
            self.take(int(words[0]))
        else:
            self.take_named(" ".join(words))

    def take(self, number: int) -> None:
        """Take the step of a number, as they are shown from 1. Raises Refusal."""
        count = len(self.session.node.options)
        if not count:
            raise Refusal("no step is possible any more; rewind N goes back to step N")
        if not 1 <= number <= count:
            raise Refusal(f"expected a step from 1 to {count}, found {number}; steps all lists them")
        self.stepper.take(number - 1)

    def take_named(self, text: str) -> None:
        """Take the step whose label equals, or begins with, a text. Raises Refusal."""
        options = self.present()["enabled"]
        fits = [e for e in options if e["label"] == text] or [e for e in options if e["label"].startswith(text)]
        if not fits:
            raise Refusal(f"{text!r} is not a verb or a step; help lists the verbs, steps the possible steps")
        self.take_one(fits, text)

    def take_one(self, fits: list[Json], what: str) -> None:
        """Take the only step that fits. Raises Refusal if there are several."""
        if len(fits) > 1:
            raise Refusal(f"{what!r} is several steps: {shown_steps(fits)}; give the number of one")
        self.stepper.take(fits[0]["index"])

    def message(self, text: str) -> Json:
        """Return the message under way that a text names: its number, or `m` with the number. Raises Refusal."""
        flights: list[Json] = self.present()["in_flight"]
        number = text.removeprefix("m")
        if not flights:
            raise Refusal("no message is under way")
        if not number.isdecimal() or not 1 <= int(number) <= len(flights):
            raise Refusal(f"expected a message from m1 to m{len(flights)}, found {text!r}; messages lists them")
        return flights[int(number) - 1]

    def possible(self, verb: str) -> list[Json]:
        """Return the steps of a kind that are possible now."""
        return [option for option in self.present()["enabled"] if option["verb"] == verb]


def shown_steps(options: list[Json]) -> str:
    """Return steps with their numbers, as far as there is room in a sentence."""
    rest = f", and {len(options) - MOST_SHOWN} more" if len(options) > MOST_SHOWN else ""
    return ", ".join(f"{option['index'] + 1} {option['label']}" for option in options[:MOST_SHOWN]) + rest


def number(words: list[str], what: str) -> int:
    """Return the only word as a whole number. Raises Refusal."""
    if len(words) != 1 or not words[0].isdecimal():
        raise Refusal(f"expected {what}, found {' '.join(words) or 'nothing'!r}")
    return int(words[0])


def one(words: list[str], what: str) -> str:
    """Return the only word. Raises Refusal."""
    if len(words) != 1:
        raise Refusal(f"expected {what}, found {' '.join(words) or 'nothing'!r}")
    return words[0]


def nothing(words: list[str], verb: str) -> None:
    """Refuse words after a verb that takes none."""
    if words:
        raise Refusal(f"{verb} takes no arguments, found {' '.join(words)!r}")


def either(*words: str) -> Callable[[Console, list[str]], Iterable[str]]:
    """Return what gives the same words always, as the first ones."""
    return lambda console, given: () if given else words


def first(words: Callable[[Console], Iterable[str]]) -> Callable[[Console, list[str]], Iterable[str]]:
    """Return what gives the words that a console has for the first place."""
    return lambda console, given: () if given else words(console)
