"""A session without a server, as a worker of the page holds it: the same answers, and it goes on by itself."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.demo.session import questions
from harness.demo.session.live_session import of_tour, of_trail
from harness.demo.web.in_worker import SessionInWorker, begin
from harness.demo.web.one_file import recording_in
from harness.demo.web.site import write_site
from harness.model import Refusal, find_tour
from harness.record import Recorder
from harness.simulate.trails.replay import replay_plain


class Page:
    """What the page of a session hears, and asks."""

    def __init__(self, what: str) -> None:
        self.heard: list[tuple[str, dict[str, Any]]] = []
        self.session: SessionInWorker = begin(what, lambda event, news: self.heard.append((event, json.loads(news))))

    def ask(self, said: str) -> Any:
        """Return an answer, or the sentence of an error."""
        found = json.loads(said)
        return found["answer"] if "answer" in found else found["error"]

    def post(self, verb: str, **body: object) -> Any:
        return self.ask(self.session.post(verb, json.dumps(body)))

    def get(self, name: str, **asked: str) -> Any:
        return self.ask(self.session.get(name, json.dumps(asked)))

    def file(self, name: str, **asked: str) -> Any:
        return self.ask(self.session.file(name, json.dumps(asked)))

    def wait(self) -> None:
        """Let it go on until it has nothing to do."""
        while self.session.tick() >= 0:
            pass

    def last(self, event: str) -> dict[str, Any]:
        return next(news for name, news in reversed(self.heard) if name == event)


@pytest.fixture
def page() -> Iterator[Page]:
    yield Page("commit")


def test_a_tour_is_shown_and_stepped(page: Page) -> None:
    """The first picture is whole; a step sends what is new, and its digest is that of any session."""
    name, first = page.heard[0]
    assert name == "session" and first["tour"]["name"] == "commit" and first["catalogue"]["tours"]
    version = page.post("forward", to=3)["version"]
    page.wait()
    other = of_tour(find_tour("commit"))
    other.forward(3)
    shown = [news for event, news in page.heard if event == "change"]
    assert shown[-1]["version"] >= version and shown[-1]["present"]["digest"] == other.digest()
    assert [step["n"] for news in shown[:1] for step in news["steps"]] == [1, 2, 3]
    assert page.post("take", index=0)["version"] > version
    assert page.post("rewind", to=1)["version"] > version
    assert page.last("change")["present"]["step"] == 1


def test_readings_and_files_are_those_of_the_server(page: Page) -> None:
    """State, logs, a step, why not, ranges, a link; the trail, and other forms of the run."""
    page.post("forward", to=20)
    page.wait()
    session = page.session.session
    assert set(page.get("state", step="20")["actors"]) == set(session.lanes)
    assert page.get("logs")["logs"] and page.get("step", n="2") == questions.about(session, 2)()
    assert page.get("why", action="CommitTransaction") == questions.why(session, "CommitTransaction")()
    assert page.get("properties") == questions.ranges(session)
    link = page.get("link")["link"]
    assert of_trail(questions.trail_of(link)).digest() == session.digest()
    trail = page.file("trail")
    assert trail == {"name": "kafka-4.0.trail.jsonl", "text": session.trail().text()}
    assert page.file("export", **{"as": "mermaid"})["text"].startswith("sequenceDiagram")
    assert json.loads(recording_in(page.file("export", **{"as": "html"})["text"]))["branches"]
    page.post("rewind", to=0)
    assert json.loads(page.session.post("load", link))["answer"]
    assert page.session.session.at == 20


def test_a_run_goes_on_by_itself_and_stops(page: Page) -> None:
    """As fast as it is to go: in frames of a few steps, or of as many as a slice of time holds."""
    page.post("open", what="exactly-once-zombie")
    page.post("run", until="end", steps=40, speed=0)
    page.wait()
    assert page.session.session.at == 40
    assert page.last("change")["present"]["running"] is False
    page.post("run", until="end", steps=4, speed=10)
    assert (page.session.tick(), page.session.session.at) == (pytest.approx(0.1), 41)
    page.post("pause")
    assert page.session.tick() == -1


def test_a_violation_is_found_shown_and_shrunk() -> None:
    """The search says how far it is; what it finds is shown with a replay's digest, and shrinks."""
    page = Page("late-end")
    page.post("find", runs=3_000)
    assert "stop it first" in page.post("find")
    page.wait()
    found, session = page.last("finding"), page.session.session
    assert found["found"] and "violates" in found["outcome"] and not found["on"]
    run = replay_plain(session.trail(), Recorder())
    assert session.violation is not None
    assert (run.digest, run.verdict.violated) == (session.digest(), session.violation.violated)
    before = session.at
    assert "version" in page.post("shrink")
    assert session.at <= before and session.violation is not None


def test_a_search_is_stopped(page: Page) -> None:
    page.post("open", what="exactly-once-zombie")
    page.post("find", runs=100_000)
    page.session.tick()
    page.post("stop")
    page.wait()
    assert "stopped" in page.last("finding")["outcome"]


def test_what_is_wrong_is_said_in_a_sentence(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing changes; a protocol that fails breaks off a run, and says why."""
    before = page.session.session.version
    assert page.post("rewind", to=7) == "expected a step from 0 to 0 to go back to, found 7"
    assert "there is no field 'x'" in page.post("pause", x=1)
    assert "either" in page.post("take")
    assert page.get("why", action="") == "expected the name of an action, as in ?action=NAME"
    assert "there is no form" in page.file("export", **{"as": "pdf"})
    assert "neither a trail nor a link" in page.ask(page.session.post("load", "no trail"))
    assert page.session.session.version == before

    def failing(*_: object) -> bool:
        raise ZeroDivisionError("of a protocol")

    page.post("run", until="end")
    monkeypatch.setattr(page.session.session, "run", failing)
    page.session.tick()
    assert "ZeroDivisionError" in (page.session.session.runner.trouble or "")
    with pytest.raises(Refusal, match="there is no model 'nothing-of-this-name'"):
        begin("nothing-of-this-name", lambda *_: None)


def test_a_site_needs_its_parts(tmp_path: Path) -> None:
    with pytest.raises(Refusal, match="has no Pyodide; make site puts all that is needed there"):
        write_site(tmp_path, tmp_path / "site")


def test_nothing_is_imported_that_a_browser_lacks() -> None:
    """The wheel of attrs is all that a worker gets: no trio, no library of the server, terminal or command line."""
    code = "import sys, harness.demo.web.in_worker as w; w.begin('commit', lambda *_: None); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    beyond = set(done.stdout.split()) & {"trio", "structlog", "click", "rich", "starlette", "numpy", "subprocess"}
    assert not beyond
