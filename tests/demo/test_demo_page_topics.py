"""The topics in the demo's page: records by what became of them, marks where they belong, tips, keys, small windows."""

from __future__ import annotations

from typing import Any

import pytest
from support.demo.browser import Tab

pytestmark = pytest.mark.browser
FIRST = "exactly-once-interleaved"
LOGS = """
() => [...document.querySelectorAll('.log-head')].map((head) => ({
  name: head.dataset.log,
  entries: [...document.querySelectorAll(`[data-of="${head.dataset.log}"]`)].map((one) => {
    const record = one.querySelector('.record');
    const style = getComputedStyle(record);
    return {
      offset: Number(record.dataset.offset), kind: record.dataset.kind,
      text: record.querySelector('.record-text').textContent,
      sign: record.querySelector('.record-sign')?.textContent || '', below: one.querySelector('.log-below').textContent,
      border: style.borderStyle, colour: style.color, round: style.borderRadius, line: style.boxShadow !== 'none',
      marks: [...one.querySelectorAll('.log-mark')].map((mark) => mark.textContent),
      bar: getComputedStyle(one).borderLeftColor, wide: one.scrollWidth <= one.clientWidth + 1,
    };
  }),
}))
"""


def shown(tab: Tab) -> list[dict[str, Any]]:
    """Return the logs as they stand in the page, once they are those of the step that is looked at."""
    tab.page.wait_for_selector(".log-head")
    tab.page.wait_for_timeout(150)
    found: list[dict[str, Any]] = tab.page.evaluate(LOGS)
    return found


def at_mixed_state(tab: Tab) -> list[dict[str, Any]]:
    """Go to a state with an open, a committed and an aborted record; return its logs as the server has them."""
    tab.post("open", what=FIRST)
    for seed in range(60):
        tab.post("rewind", to=0)
        tab.post("strategy", strategy="random", seed=seed, inject_faults=False, speed=0)
        tab.post("run", steps=90)
        tab.until("!store.present.running")
        for step in range(int(tab.known("store.present.step")), 5, -5):
            logs = tab.page.request.get(f"{tab.address}api/logs?step={step}").json()["logs"]
            kinds = {entry["kind"] for log in logs for entry in log["entries"]}
            if kinds >= {"open", "committed", "aborted"} and any(e["seen_by"] for log in logs for e in log["entries"]):
                tab.post("rewind", to=step)
                found: list[dict[str, Any]] = logs
                return found
    raise AssertionError("no run has such a state")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_topics_show_records_marks_and_consumers(tab: Tab, scheme: str) -> None:
    """Each kind differs in colour and in sign or border; a mark stands before the record at its offset."""
    tab.page.emulate_media(color_scheme=scheme)
    tab.page.set_viewport_size({"width": 1280, "height": 1800})
    logs = at_mixed_state(tab)
    tab.page.keyboard.press("Shift+T")
    tab.page.wait_for_selector("#tab-topics[aria-selected=true]")
    looks: dict[str, tuple[str, ...]] = {}
    for log, there in zip(logs, shown(tab), strict=True):
        assert there["name"] == f"{log['partition']} at {log['holder']}"
        *cells, end = there["entries"]
        assert [(c["offset"], c["text"], c["kind"]) for c in cells] == [
            (entry["offset"], entry["text"], entry["kind"]) for entry in log["entries"]
        ]
        assert (end["kind"], end["offset"]) == ("end", log["end"]) and all(cell["wide"] for cell in there["entries"])
        for cell, entry in zip(cells, log["entries"], strict=True):
            assert cell["line"] is bool(entry["seen_by"]) and all(who in cell["below"] for who in entry["seen_by"])
            looks[cell["kind"]] = (cell["sign"], cell["border"], cell["round"], cell["colour"])
        marks = {mark: cell["offset"] for cell in there["entries"] for mark in cell["marks"]}
        assert marks == {mark["label"]: mark["offset"] for mark in log["marks"]}
    records = [looks[kind] for kind in ("open", "committed", "aborted")]
    assert len({look[0] for look in records}) == len({look[3] for look in records}) == 3
    assert looks["open"][1] == "dashed" and looks["committed"][1] == "solid"
    assert looks["commit marker"][2] != looks["committed"][2] and looks["commit marker"][0] != looks["abort marker"][0]


def test_topics_are_walked_by_keyboard_and_pointer(tab: Tab) -> None:
    """Producer state at a partition's head, fields at a record; Escape puts the tip away; no tip outlives its view."""
    logs = at_mixed_state(tab)
    page, press = tab.page, tab.page.keyboard.press
    press("Shift+T")
    page.wait_for_selector(".log-head:focus")
    page.wait_for_selector("#tip.shown")
    for name, value in logs[0]["details"].items():
        assert name in page.inner_text("#tip") and value in page.inner_text("#tip")
    press("ArrowDown")
    page.wait_for_selector("[data-offset='0']:focus")
    assert "offset 0 of" in page.inner_text("#tip") and "sequence" in page.inner_text("#tip")
    assert "offset 0 of" in page.evaluate("document.activeElement.getAttribute('aria-label')")
    press("ArrowRight")
    page.wait_for_selector("[data-offset='1']:focus")
    press("Escape")
    page.wait_for_selector("#tip:not(.shown)", state="attached")
    page.locator(".log-head").nth(1).hover()
    page.wait_for_selector("#tip.shown")
    assert all(name in page.inner_text("#tip") for name in logs[1]["details"])
    page.evaluate("document.querySelector('#tab-now').click()")
    page.wait_for_selector("#tip:not(.shown)", state="attached")
    tab.post("open", what="transactions/diary-02")
    assert page.locator("#tab-topics").count() == 0


def test_topics_are_those_of_the_step_that_is_looked_at(tab: Tab) -> None:
    """On a tour of transactions the topics are open; a step before is looked at, and the record is open again."""
    page = tab.page
    tab.post("tour", name="tx-01")
    page.wait_for_selector("#tab-topics[aria-selected=true]")
    assert shown(tab)[0]["entries"][0]["kind"] == "end"
    tab.post("forward", to=23)
    tab.at(23)
    kinds = ["aborted", "abort marker", "aborted", "abort marker", "end"]
    assert [cell["kind"] for cell in shown(tab)[0]["entries"]] == kinds
    page.locator("#stage").focus()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowUp")
    page.wait_for_selector(".view-note >> text=after step 22")
    assert [cell["kind"] for cell in shown(tab)[0]["entries"]] == [*kinds[:2], "open", "end"]


@pytest.mark.parametrize("size", [(1280, 800), (900, 700), (1920, 1080)])
def test_topics_fit_into_the_window(tab: Tab, size: tuple[int, int]) -> None:
    """All views are in one row, nothing is wider than the panel, and each record can be scrolled to and lies bare."""
    tab.page.set_viewport_size({"width": size[0], "height": size[1]})
    at_mixed_state(tab)
    tab.page.keyboard.press("Shift+T")
    shown(tab)
    found = tab.page.evaluate("""() => {
      const tabs = [...document.querySelectorAll('#tabs button')].map((one) => one.getBoundingClientRect());
      const missed = [...document.querySelectorAll('.record[data-offset], .log-head')].filter((one) => {
        one.scrollIntoView({ block: 'center' });
        const { left, right, top, bottom } = one.getBoundingClientRect();
        const seen = document.elementFromPoint((left + right) / 2, (top + bottom) / 2);
        return right > innerWidth || !(one === seen || one.contains(seen));
      });
      return { rows: new Set(tabs.map((one) => one.top)).size, tabs: tabs.length, missed: missed.length,
               sideways: document.documentElement.scrollWidth - innerWidth };
    }""")
    assert found == {"rows": 1, "tabs": 7, "missed": 0, "sideways": 0}
