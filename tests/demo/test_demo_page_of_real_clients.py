"""A session of real clients in the demo's page: arrows at once, folded steps, and what cannot be chosen."""

from __future__ import annotations

import pytest
from support.demo.browser import Tab
from support.paths import ROOT

pytest.importorskip("kio", reason="needs the extra `gateway`")

pytestmark = pytest.mark.browser
FIRST = str(ROOT / "docs" / "examples" / "gateway" / "late-end.trail.jsonl")


@pytest.mark.parametrize("size", [(1280, 800), (900, 700)])
def test_requests_and_answers_are_arrows(tab: Tab, size: tuple[int, int]) -> None:
    """Between the lifelines of their client and broker, named; what is held waits until it is taken late."""
    tab.page.set_viewport_size({"width": size[0], "height": size[1]})
    tab.post("forward", to=22)
    tab.until("store.steps.length === 22")
    heads = tab.page.eval_on_selector_all("#heads [data-lane]", "all => all.map((one) => one.dataset.lane)")
    assert heads == ["test", "b1", "environment"]
    tab.post("rewind", to=18)
    names = tab.page.eval_on_selector_all(".named text", "all => all.map((one) => one.textContent)")
    assert any(name.startswith("Producet-0=[x]") for name in names) and "Produce: okt-0=offset 2" in names
    assert "late: EndTxn commit of step 10" in tab.page.eval_on_selector_all(
        ".arrival text", "all => all.map((one) => one.textContent)")
    assert tab.page.locator("#recorded").text_content() == (
        "real clients: the steps are recorded, no others can be chosen")
    assert tab.page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def test_uneventful_steps_are_folded_until_all_are_shown(tab: Tab) -> None:
    """The fold says how many there are; a click on it rewinds to its end."""
    tab.post("forward", to=22)
    tab.page.evaluate("document.getElementById('stage').scrollTop = 0")
    fold = tab.page.locator(".row.folded").first
    assert fold.locator(".wording title").text_content() == "3 uneventful steps: connect, FindCoordinator, Metadata"
    before = tab.known("store.layout.height")
    tab.page.locator("#set-whole").check()
    tab.drawn()
    names = tab.page.eval_on_selector_all(
        ".row .number text", "all => all.map((one) => [one.textContent, one.getAttribute('y')])")
    heights = [float(y) for _, y in sorted(names, key=lambda one: int(one[0]))]
    assert heights == sorted(set(heights)), "each row stands below the one before"
    assert tab.page.locator(".row.folded").count() == 0 and tab.known("store.layout.height") > before
    tab.page.locator("#set-whole").uncheck()
    tab.page.locator(".row.folded [data-rewind]").first.click()
    tab.at(5)
    tab.page.keyboard.press("]")
    tab.at(6)
    tab.page.keyboard.press("Shift+T")
    tab.page.wait_for_selector(".log-head")
