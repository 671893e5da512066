"""The site without a server, from its folder and from a static server: Python in a worker gives CPython's answers."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from support.demo.browser import FileTab

from harness.demo.session import questions
from harness.demo.session.live_session import of_tour, of_trail
from harness.demo.session.opened_model import open_what
from harness.demo.session.violation_search import ViolationSearch
from harness.model import find_tour

pytestmark = pytest.mark.browser
SITE = Path("out/site").resolve()
PATIENCE_MS = 120_000


class Quiet(SimpleHTTPRequestHandler):
    """Serves files, and says nothing."""

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(params=["file", "static server"])
def where(request: pytest.FixtureRequest) -> Iterator[str]:
    """The address of the site."""
    if not (SITE / "index.html").is_file():
        pytest.skip("there is no out/site; make site builds it")
    if request.param == "file":
        yield (SITE / "index.html").as_uri()
        return
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(SITE))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


@pytest.fixture
def tab(chromium: Any, where: str) -> Iterator[FileTab]:
    """A tab that shows the site, and asks for nothing else."""
    context = chromium.new_context(viewport={"width": 1280, "height": 800})
    asked: list[str] = []
    context.on("request", lambda request: asked.append(request.url))
    shown = FileTab(context.new_page(), where)
    yield shown
    context.close()
    folder = where.removesuffix("index.html")
    assert [url for url in asked if not url.startswith((folder, "data:", "blob:"))] == []
    assert shown.troubles == []


def loaded(tab: FileTab) -> None:
    """Wait until the models are there."""
    tab.page.wait_for_selector("#top-open", timeout=PATIENCE_MS)


def do(tab: FileTab, verb: str, body: object) -> None:
    """Have the worker do something, and wait until the tab shows it."""
    said = tab.page.evaluate(
        "async ([verb, body]) => (await import('page/api.js')).post(verb, body)", [verb, body])
    tab.shows(said["version"])


def test_the_tour_begins_before_the_models_are_there(tab: FileTab) -> None:
    """It is a recording until then; the worker goes on from where it is."""
    tab.page.wait_for_selector(".title-page >> text=A transaction is committed")
    tab.page.click("#tour-next")
    at = tab.known("store.present.step")
    assert at > 0
    loaded(tab)
    assert tab.known("store.present.step") == at
    session = of_tour(find_tour("commit"))
    session.forward(at)
    assert tab.known("store.present.digest") == session.digest()
    tab.page.click("#tour-next")
    tab.until(f"store.present.step > {at}")


def test_a_violation_is_found_stepped_and_rewound(tab: FileTab) -> None:
    """The same as a search here finds, with its digest; a link carries it."""
    loaded(tab)
    do(tab, "open", {"what": "late-end"})
    tab.page.click("#top-find")
    tab.page.click("dialog button.primary")
    tab.until("store.present.violation", PATIENCE_MS / 1000)
    search = ViolationSearch(open_what("late-end"), 3_000, 0, tab.known("store.present.inject_faults"))
    found = search.run()
    assert found is not None
    session = of_trail(found)
    assert tab.known("store.present.digest") == session.digest()
    assert session.violation is not None and session.violation.violated in tab.page.inner_text(".violation")
    tab.page.locator("#stage").focus()
    tab.page.keyboard.press("[")
    tab.at(session.at - 1)
    session.rewind(session.at - 1)
    assert tab.known("store.present.digest") == session.digest()
    link = tab.page.evaluate("async () => (await (await import('page/api.js')).get('link')).link")
    assert of_trail(questions.trail_of(link)).digest() == session.digest()
    tab.page.goto("about:blank")
    tab.page.goto(tab.address + link)
    loaded(tab)
    tab.at(session.at)
    assert tab.known("store.present.digest") == session.digest()
