"""The demo's server: one session for every tab, JSON errors, nothing for strangers, an end in order."""

from __future__ import annotations

import socket
import threading
import time
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette")
pytest.importorskip("hypercorn")

import trio
from support.commands.command_line import PATIENCE_S, call
from support.demo.served_site import Json, Site, Tab, tabs
from support.demo.sessions import opened

from harness.demo.web import pace, server, shared_session
from harness.model import live


def test_two_tabs_are_in_step_and_one_that_comes_late_sees_the_same(site: Site) -> None:
    """What one of them does, the other shows; changes are sent as changes."""
    with tabs(site, 2) as (one, other):
        for n in range(6):
            version = site.post("/api/take", {"index": 0, "at": n})
            assert one.until(version)["steps"] == other.until(version)["steps"]
        version = site.post("/api/rewind", {"to": 2})
        assert len(one.until(version)["steps"]) == 2 and one.picture["ahead"] == 4
        version = site.post("/api/take", {"index": 1, "at": 2})
        for tab in (one, other):
            assert [branch["name"] for branch in tab.until(version)["branches"]] == ["main", "branch 2"]
        assert one.kinds[0] == "session" and set(one.kinds[1:]) == {"change"}
        assert one.longest == 1
        late = Tab(site)
        late.event()
        assert late.picture["steps"] == one.picture["steps"] == other.picture["steps"]
        assert late.picture["present"] == one.picture["present"]
        late.close()


def test_trail_of_a_run_on_the_tasks_replays_with_its_digest(site: Site, tmp_path: Path) -> None:
    """Crashes and restarts included: what the tasks hold goes the way of the tables, forwards and back."""
    with tabs(site) as (tab,):
        site.post("/api/strategy", {"strategy": "random", "seed": 7, "inject_faults": True})
        for until in ("action:Crash", "action:Restart", "action:Pause", "end"):
            tab.until(site.post("/api/run", {"until": until, "steps": 150}))
            tab.until_paused()
            site.post("/api/rewind", {"to": max(0, site.session.at - 3)})
            tab.until(site.post("/api/forward", {"to": site.session.branch.length}))
            tab.until(site.post("/api/take", {"index": 0}))
        actions = {step["action"] for step in tab.picture["steps"]}
        assert {"Crash", "Restart", "Pause"} <= actions
        path = tmp_path / "it.trail.jsonl"
        status, body, headers = site.ask("GET", "/api/trail")
        path.write_bytes(body)
        assert (status, headers["Content-Disposition"]) == (
            200, 'attachment; filename="kafka-4.0.trail.jsonl"'
        )
        assert call("replay", path, "--json").json["digest"] == tab.picture["present"]["digest"]
        version = site.post("/api/load", body.decode())
        loaded = tab.until(version)
        assert (loaded["branches"][0]["name"], loaded["present"]["step"]) == ("trail", len(loaded["steps"]))
        assert call("replay", path, "--json").json["digest"] == loaded["present"]["digest"]


def test_each_verb_is_told_to_who_watches(site: Site) -> None:
    """With the step that the session is at then; nothing without a watcher, and nothing of a verb that is refused."""
    told: list[tuple[str, str, dict[str, object]]] = []
    with tabs(site) as (tab,):
        with live.watched(lambda *event: told.append(event)):
            tab.until(site.post("/api/take", {"index": 0}))
            assert site.ask("POST", "/api/rewind", '{"to": -1}')[0] == 400
        tab.until(site.post("/api/rewind", {"to": 0}))
    assert told == [("info", "verb", {"verb": "take", "at": 1})]


def test_run_is_slowed_down_paused_and_goes_on(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """A slow run comes step by step and ends when it is stopped; a fast one in frames of many steps."""
    monkeypatch.setattr(pace, "SLICE", 0.5)  # many steps fit into it on the slowest machine
    site.post("/api/open", {"what": "replication/kip-320/actors"})
    with tabs(site) as (tab,):
        site.post("/api/run", {"until": "end", "speed": 100})
        while not tab.picture or len(tab.picture["steps"]) < 4:
            tab.event()
        assert tab.picture["present"]["running"]
        tab.until(site.post("/api/pause"))
        assert not tab.until_paused()["present"]["running"]
        before = len(tab.picture["steps"])
        tab.until(site.post("/api/run", {"until": "step:1200", "speed": 0}))
        assert before < 1000 and len(tab.until_paused()["steps"]) == 1200
        assert tab.longest > 20


def test_requests_are_answered_while_a_long_one_is_worked_on(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """An explanation that takes long is given in a thread; steps are taken meanwhile."""
    begun, over = threading.Event(), threading.Event()

    def slow(*_: object) -> Any:
        def answer() -> Json:
            begun.set()
            assert over.wait(PATIENCE_S)
            return {"slow": True}

        return answer

    monkeypatch.setattr(server.questions, "why", slow)
    found: list[Json] = []
    asking = threading.Thread(target=lambda: found.append(site.get("/api/why?action=Init")))
    asking.start()
    assert begun.wait(PATIENCE_S)
    assert site.post("/api/take", {"index": 0}) > 0 and found == []
    over.set()
    asking.join()
    assert found == [{"slow": True}]


def test_everything_that_can_be_asked_is_answered(site: Site) -> None:
    """State, step, reasons, ranges, exports, a link that opens again, the catalogue, the page."""
    site.post("/api/tour", {"name": "rp-01"})
    site.post("/api/forward", {"to": 16})
    assert site.get("/api/state?step=16&actor=r1")["actors"]["r1"]
    assert site.get("/api/state")["step"] == 16
    assert site.get("/api/step?n=3")["step"]["n"] == 3
    assert site.get("/api/why?action=ControllerElectLeader")["model"]["seen"]
    assert site.get("/api/properties")["failing"]["AckDurability"] == [[16, 16]]
    status, body, headers = site.ask("GET", "/api/export?as=svg")
    assert (status, headers["Content-Type"], body[:4]) == (200, "image/svg+xml", b"<?xm")
    link = site.get("/api/link")["link"]
    digest = site.session.digest()
    site.post("/api/open", {"what": "happy-path"})
    site.post("/api/load", link)
    assert site.session.digest() == digest
    site.post("/api/branch", {"name": "mine"})
    site.post("/api/rewind", {"to": 3})
    site.post("/api/undo")
    assert (site.session.branch.name, site.session.at) == ("mine", 16)
    assert {"models", "scenarios", "tours"} == set(site.get("/api/catalogue"))
    status, body, headers = site.ask("GET", "/")
    assert status == 200 and b"<" in body and headers["Content-Type"].startswith("text/html")
    assert "default-src 'self'" in headers["Content-Security-Policy"]


@pytest.mark.parametrize(
    ("status", "path", "body", "said"),
    [
        (400, "/api/take", "x", "not JSON"), (400, "/api/take", "[1]", "one JSON object"),
        (400, "/api/take", "[" * 50_000, "not JSON"), (400, "/api/take", "{}", 'either "index" or "label"'),
        (400, "/api/take", '{"index": 0, "label": "x"}', 'either "index" or "label"'),
        (400, "/api/take", '{"index": -1}', "at least 0"), (400, "/api/take", '{"index": true}', "at least 0"),
        (400, "/api/take", '{"index": 1e9}', "at least 0"), (400, "/api/take", '{"index": 15}', "expected an index"),
        (400, "/api/take", '{"label": "Nope"}', "possible are"), (409, "/api/take", '{"index": 0, "at": 7}', "step 0"),
        (400, "/api/take", '{"index": 0, "when": 1}', "no field 'when' here"), (400, "/api/rewind", "{}", "is missing"),
        (400, "/api/rewind", '{"to": 4}', "expected a step from 0 to 0"), (400, "/api/undo", "", "nothing to undo"),
        (400, "/api/forward", '{"to": 1}', "to go on to"), (400, "/api/run", '{"until": "never"}', "until violation"),
        (400, "/api/run", '{"until": "step:x"}', "until violation"), (400, "/api/run", '{"steps": 0}', "at least 1"),
        (400, "/api/run", '{"speed": 99999}', "a speed of 0"), (400, "/api/branch", '{"name": "  "}', "a new name"),
        (400, "/api/branch", f'{{"name": "{"x" * 61}"}}', "a new name of 1"),
        (400, "/api/switch", '{"name": "x"}', "there is no branch 'x'; the branches are main"),
        (400, "/api/strategy", '{"strategy": "x"}', "no strategy 'x' here; the strategies are random, pct, guided"),
        (400, "/api/open", '{"what": "transactions/diary-01", "initial": 9}', "an initial state from 0 to 1"),
        (400, "/api/open", '{"what": "kafka/4.0", "budget": "x"}', "or generous"),
        (400, "/api/open", '{"what": "nope"}', "no model 'nope'"), (400, "/api/open", '{"what": 7}', "should be text"),
        (400, "/api/open", '{"what": "transactions/gist", "sizes": {"brokers": 99}}', "size brokers"),
        (400, "/api/tour", '{"name": "x"}', "no tour 'x'"), (400, "/api/load", "what", "neither a trail nor a link"),
        (400, "/api/load", "{}", "names no format"), (400, "/api/load", b"\xff\xfe", "neither a trail nor a link"),
        (400, "/api/shrink", "", "nothing to shrink"), (413, "/api/take", " " * 70_000, "at most 65,536 bytes"),
        (404, "/api/frobnicate", "{}", "nothing at /api/frobnicate"), (405, "/api/state", "{}", "POST is not for"),
        (405, "/", "{}", "POST is not for"),
    ],
)
def test_bad_request_gets_one_sentence(site: Site, status: int, path: str, body: bytes | str, said: str) -> None:
    """And changes nothing."""
    def seen() -> tuple[object, ...]:
        return site.session.at, site.session.digest(), site.session.branch.name, list(site.session.branches)

    before = seen()
    assert said in site.refused(status, "POST", path, body)
    assert seen() == before


@pytest.mark.parametrize(("path", "said"), [
    ("state?step=5", "expected a step from 0 to 0, found 5"), ("state?step=1", "expected a step from 0 to 0, found 1"),
    ("state?step=x", "expected a whole number for step, found 'x'"),
    ("state?step=-1", "expected a whole number for step, found '-1'"),
    ("state?step=", "expected a whole number for step, found ''"), ("step?n=0", "expected a step from 1 to 0, found 0"),
    ("step?n=99999999999999999999", "expected a whole number for n, found '99999999999999999999'"),
    ("why", "expected the name of an action, as in ?action=NAME"),
    ("export?as=pdf",
     "there is no form 'pdf' of a run; the forms are svg, text, mermaid, itf, shiviz, log, tla, history"),
    ("export?as=tla", "kafka/4.0 follows no known TLA+ module; export the run in another form"),
])
def test_bad_question_gets_one_sentence(site: Site, path: str, said: str) -> None:
    """A step that is not there is named, a form that there is not."""
    assert site.refused(400, "GET", f"/api/{path}") == said


@pytest.mark.parametrize("path", ["/nope", "/static/nope.js", "/static/../server.py", "/static/%2e%2e/server.py",
                                  "/static/", "/static//etc/passwd", "/docs", "/openapi.json", "/static/%00",
                                  "/static/%00/x.js", "/static/a%00.js", "/static/%0a"])
def test_nothing_but_the_page_is_served(site: Site, path: str) -> None:
    """No file from elsewhere, and a null byte is no file."""
    assert "nothing at" in site.refused(404, "GET", path)


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"}, {"Host": "evil.example:{port}"}, {"Host": "127.0.0.1.evil.example"},
        {"Host": "10.1.2.3:{port}"}, {"Host": ""}, {"Host": "[::1"}, {"Origin": "http://evil.example"},
        {"Origin": "null"}, {"Origin": "https://127.0.0.1:{port}"}, {"Origin": "http://127.0.0.1:1"},
        {"Origin": "http://localhost:{port}"},
    ],
)
def test_request_with_a_foreign_host_or_origin_is_refused(site: Site, headers: dict[str, str]) -> None:
    """A name that somebody makes point here, a page from elsewhere; the same for what is only looked at."""
    foreign = {name: value.format(port=site.port) for name, value in headers.items()}
    for method, path in (("POST", "/api/undo"), ("GET", "/api/trail"), ("GET", "/api/events"), ("GET", "/")):
        status, body, _ = site.ask(method, path, None, foreign)
        assert status in (400, 403) and (not body or b"error" in body)
    own = {"Host": f"localhost:{site.port}", "Origin": f"http://localhost:{site.port}"}
    assert site.ask("POST", "/api/take", '{"index": 0}', own)[0] == 200


@pytest.mark.parametrize(("host", "asked", "ok"), [
    ("0.0.0.0", "192.168.1.7:8642", True), ("0.0.0.0", "evil.example", False), ("192.168.1.7", "192.168.1.7:1", True),
    ("127.0.0.1", "192.168.1.7:8642", False), ("::1", "[::1]:8642", True), ("box.example", "box.example:80", True),
    ("localhost", "LOCALHOST:8642", True), ("127.0.0.1", "127.0.0.1:8642@evil.example", False),
])
def test_host_is_the_one_that_was_asked_to_listen_on(host: str, asked: str, ok: bool) -> None:
    """Whoever lets others in lets them in by address or by the given name, never by any name."""
    assert (server.guard_of(host)({"host": asked}) is None) is ok


def test_browser_that_vanishes_in_the_middle_is_forgotten(site: Site) -> None:
    """A tab that is closed while a run goes on; the others see it through, and nobody is left behind."""
    site.post("/api/open", {"what": "replication/kip-320/actors"})
    gone, stays = Tab(site), Tab(site)
    for tab in (gone, stays):
        tab.event()
    version = site.post("/api/run", {"until": "step:600"})
    gone.close()
    half = socket.create_connection(("127.0.0.1", site.port))
    half.sendall(b"POST /api/take HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{")
    half.close()
    stays.until(version)
    assert len(stays.until_paused()["steps"]) == 600
    stays.close()
    assert site.post("/api/undo") > 0


def test_subscriber_that_does_not_keep_up_gets_the_whole_picture(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Events that wait are few; after them comes the present as a whole."""
    monkeypatch.setattr(shared_session, "MOST_WAITING", 3)
    cluster = shared_session.SharedSession(opened())

    async def main() -> list[str]:
        heard = []
        async with trio.open_nursery() as nursery:
            await nursery.start(cluster.run)
            events = cluster.events()
            heard.append(await anext(events))
            for _ in range(9):
                await cluster.take(0, None, None)
            heard.append(await anext(events))
            await cluster.take(0, None, None)
            heard.append(await anext(events))
            cluster.close()
            heard.append(await anext(events))
            await events.aclose()
            nursery.cancel_scope.cancel()
        return heard

    heard = trio.run(main)
    assert [text.split("\n")[1][7:] for text in heard] == ["session", "session", "change", "bye"]
    assert cluster.subscribers == set()


def test_protocol_that_fails_is_told_and_the_session_goes_on(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error in a step is one sentence with status 500, and the next verb works."""
    monkeypatch.setattr(site.session, "chosen", lambda *_: 1 / 0)
    said = site.refused(500, "POST", "/api/take", '{"index": 0}')
    assert said == "the protocol or the demo failed with ZeroDivisionError: division by zero"
    monkeypatch.undo()
    assert site.post("/api/take", {"index": 0}) > 0


def test_run_in_which_the_protocol_fails_breaks_off_and_says_why(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The session is where it was, and goes on."""
    with tabs(site) as (tab,):
        monkeypatch.setattr(site.session.runner, "decide", lambda *_: 1 / 0)
        tab.until(site.post("/api/run", {"until": "end"}))
        said = tab.until_paused()["present"]["over"]
        assert said == "the protocol or the demo failed with ZeroDivisionError: division by zero"
        monkeypatch.undo()
        tab.until(site.post("/api/run", {"steps": 3}))
        assert len(tab.until_paused()["steps"]) == 3 and tab.picture["present"]["over"] is None


def test_task_that_goes_another_way_than_the_tables_is_told_and_put_right(site: Site) -> None:
    """The step is not taken; after going somewhere else and back the tasks hold the state of the session again."""
    cluster = shared_session.SharedSession(site.session)

    async def main() -> list[str]:
        said = []
        async with trio.open_nursery() as nursery:
            await nursery.start(cluster.run)
            await cluster.take(None, "InitTransactions(c1)", 0)
            task = cluster._host.tasks["c1"]
            task.local = task.actor.initial
            mine = [option for option in site.session.node.options if option.process == "c1"]
            label = next(option.label for option in mine if option.action != "InitTransactions")
            try:
                await cluster.take(None, label, 1)
            except AssertionError as error:
                said.append(str(error))
            await cluster.change(site.session.rewind, 0)
            await cluster.forward(1)
            await cluster.take(None, label, 1)
            nursery.cancel_scope.cancel()
        return said

    (said,) = trio.run(main)
    assert said.startswith("c1 was asked for ") and said.endswith("which its own state does not offer")
    assert site.session.at == 2


def test_tabs_are_told_when_the_server_ends(site: Site) -> None:
    """The last event says so, and the server does not wait for those who stay."""
    with tabs(site, 3) as opened:
        for tab in opened:
            tab.event()
        site.stop()
        assert [tab.event() for tab in opened] == ["bye"] * 3


def test_nobody_waits_longer_for_an_idle_connection_than_the_server_says() -> None:
    """A connection that says nothing does not hold up the end."""
    with Site(opened("transactions/gist")) as found:
        with socket.create_connection(("127.0.0.1", found.port)):
            began = time.monotonic()
            found.stop()
            assert time.monotonic() - began < PATIENCE_S
