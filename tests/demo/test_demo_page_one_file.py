"""The page in one file, opened from disk: stepped, rewound, pointed at, its violation shown."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.demo.browser import FileTab

from harness.demo.session.live_session import of_trail
from harness.demo.web.one_file import page_of_trail
from harness.model import find_tour
from harness.record import tour_trail

pytestmark = pytest.mark.browser


@pytest.fixture
def open_file(chromium: Any, tmp_path: Path) -> Iterator[Any]:
    """Opens a text as a page from disk; what it asks the network for, or complains of, is a failure."""
    context = chromium.new_context(viewport={"width": 1280, "height": 800}, accept_downloads=True)
    asked: list[str] = []
    context.on("request", lambda request: asked.append(request.url))
    tabs: list[FileTab] = []

    def open_page(text: str) -> FileTab:
        path = tmp_path / "page.html"
        path.write_text(text, encoding="utf-8")
        tabs.append(FileTab(context.new_page(), path.as_uri()))
        return tabs[-1]

    yield open_page
    context.close()
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []
    assert [tab.troubles for tab in tabs if tab.troubles] == []


def test_a_violation_is_shown_stepped_and_rewound(open_file: Any) -> None:
    """It opens at the end, with the digest of a replay; keys and clicks go back and forth."""
    trail = tour_trail(find_tour("rp-01"))
    session, tab = of_trail(trail), open_file(page_of_trail(trail))
    page, end = tab.page, len(trail.choices)
    tab.at(end)
    assert tab.known("store.present.digest") == session.digest()
    assert session.violation is not None and str(session.violation.violated) in page.inner_text(".violation")
    page.locator("#stage").focus()
    page.keyboard.press("[")
    tab.at(end - 1)
    session.rewind(end - 1)
    assert tab.known("store.present.digest") == session.digest() and page.locator(".violation").count() == 0
    page.keyboard.press("{")
    tab.at(0)
    page.keyboard.press("]")
    tab.at(1)
    page.click("#go-end")
    tab.at(end)
    page.keyboard.press("u")
    tab.at(1)
    assert page.locator("#top-find, #set-strategy, #tab-why").count() == 0
    page.select_option("#set-speed", "0")
    page.click("#go-run")
    tab.at(end)
    page.click("#tab-step")
    page.wait_for_selector("text=Guards of the spec's action")
    with page.expect_download() as saved:
        page.click("#top-save")
    assert saved.value.suggested_filename == "replication-truncate-to-high-watermark-actors.trail.jsonl"
