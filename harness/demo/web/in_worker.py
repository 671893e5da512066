"""A session in a worker of the page itself, for a page without a server: Python runs in the browser (Pyodide).

The worker calls `get`, `file` and `post` for the page, and `tick` again and again, as long as that says to. Everything
goes in and out as text; what changes is sent as the server's events are. There are neither threads nor trio here: an
actor's turn is taken by the tables, which the runtimes are tested to agree with.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import attrs

from harness.demo.session import as_json, questions
from harness.demo.session.live_session import LiveSession, of_tour, of_trail
from harness.demo.session.opened_model import catalogue, open_what
from harness.demo.session.search_beside import SearchBeside
from harness.demo.session.snapshot import change_text, snapshot_text
from harness.demo.session.violation_search import ViolationSearch
from harness.demo.web import answers, pace
from harness.model import Refusal, find_tour, tours

Send = Callable[[str, str], None]
"""Takes the name of an event and its JSON text: `session`, `change` or `finding`."""
REPORT_S = 0.25
"""Seconds between two reports of how far a search is."""


class SessionInWorker:
    """A session and its one page."""

    def __init__(self, session: LiveSession, send: Send) -> None:
        self.session = session
        self._send = send
        self._catalogue = as_json.text_of(catalogue())
        self._search = SearchBeside(session)
        self._searching: tuple[ViolationSearch, Iterator[None]] | None = None
        self._reported = 0.0
        self.show()

    def show(self) -> None:
        """Send the page all there is."""
        pace.refine(self.session, time.monotonic)
        self.session.news()
        self._send("session", snapshot_text(self.session, self._catalogue))

    def get(self, name: str, asked: str) -> str:
        """Return a reading as JSON text, or the error of it; what is asked is a JSON object of texts."""
        return _said(lambda: answers.READINGS[name](self.session, json.loads(asked))())

    def file(self, name: str, asked: str) -> str:
        """Return a file's name and text as JSON text, or the error of it; what is asked is as for `get`."""
        return _said(lambda: attrs.asdict(answers.FILES[name](self.session, json.loads(asked))()))

    def post(self, verb: str, data: str) -> str:
        """Carry out a verb; return the version of the session as JSON text, or the error of it."""

        def done() -> answers.Body:
            self._carry_out(verb, data)
            return {"version": self.session.version}

        said = _said(done)
        self._search.follow()
        self._publish()
        return said

    def _carry_out(self, verb: str, data: str) -> None:
        session = self.session
        if verb == "load":
            session.become(of_trail(questions.trail_of(data)))
            return
        body = answers.body_of(verb, data)
        if verb in answers.CHANGES:
            answers.CHANGES[verb][0](session, **body)
        elif verb == "take":
            session.take(**body)
        elif verb == "forward":
            session.forward(**body)
        elif verb == "shrink":
            session.add_shrunk(*questions.shrunk(session.trail()), session.branch)
            session.forward(session.branch.length)
        elif verb == "find":
            search = self._search.begin(**body)
            self._searching = search, search.each_run()
        else:
            self._search.stop()

    def tick(self) -> float:
        """Do what is to be done by itself; return the seconds until it is to be called again, -1 for never."""
        if self.session.runner.running:
            self._run()
        if self._searching is not None:
            self._look(*self._searching)
        more = pace.refine(self.session, time.monotonic)
        self._publish()
        wait = pace.wait(self.session, more)
        if self._searching is not None:
            return 0
        return -1 if wait is None else wait

    def _run(self) -> None:
        """Take the steps of a frame of the run; where that fails, the run breaks off and says why."""
        try:
            most, until = pace.steps_of_frame(self.session), time.monotonic() + pace.SLICE
            if most:
                self.session.run(most)
            while not most and self.session.run(1) and time.monotonic() < until:
                pass
        except Exception as error:  # of the protocol: the session is where it was before the step
            self.session.runner.trouble = answers.broken_off(error)
            self.session.pause()

    def _look(self, search: ViolationSearch, runs: Iterator[None]) -> None:
        """Make the search's next runs, for the time of a slice."""
        failed: Exception | None = None
        until = time.monotonic() + pace.SLICE
        try:
            is_over = False
            while not is_over and time.monotonic() < until:
                is_over = next(runs, runs) is runs
            if is_over and search.found is not None and self._search.is_of_what_is_shown:
                self.session.become(of_trail(search.found))
        except Exception as error:  # of the protocol: the session is as it was
            failed, is_over = error, True
        if is_over:
            self._searching = None
            self._search.end(search, failed)
        if is_over or time.monotonic() >= self._reported + REPORT_S:
            self._reported = time.monotonic()
            shown = {"version": self.session.version, **(self._search.to_json() or {})}
            self._send("finding", as_json.text_of(shown))

    def _publish(self) -> None:
        """Send the page what is new."""
        session = self.session
        if session.is_published:
            return
        keep = session.news()
        if keep is None:
            self._send("session", snapshot_text(session, self._catalogue))
        else:
            self._send("change", change_text(session, keep))


def begin(what: str, send: Send) -> SessionInWorker:
    """Show a tour, scenario or model in the page. Raises Refusal."""
    is_tour = any(tour.name == what for tour in tours())
    return SessionInWorker(of_tour(find_tour(what)) if is_tour else LiveSession(open_what(what)), send)


def _said(work: Callable[[], Any]) -> str:
    """Return the result of some work as JSON text: `answer`, or `error` with one sentence."""
    try:
        return as_json.text_of({"answer": work()})
    except Refusal as error:
        return as_json.text_of({"error": str(error)})
    except Exception as error:
        return as_json.text_of({"error": answers.broken_off(error)})
