"""The demo's page as a show: a tour that plays, messages that move, the path that led to a violation."""

from __future__ import annotations

import pytest
from support.demo.browser import Tab

from harness.model import find_tour

pytestmark = pytest.mark.browser
FIRST = "commit"


@pytest.mark.parametrize(("wide", "high"), [(900, 700), (1280, 800), (1920, 1080)])
def test_the_first_screen_says_what_it_is_and_plays(tab: Tab, wide: int, high: int) -> None:
    """Title, a sentence in large type and Play are on the screen; Space plays, caption after caption, and stops."""
    page = tab.page
    page.set_viewport_size({"width": wide, "height": high})
    tab.post("tour", name="commit")
    tour = find_tour("commit")
    title = page.locator(".title-page .tour-head strong")
    assert title.inner_text().lower() == tour.title.lower()
    assert page.inner_text(".tour-lead") == tour.intro.split(". ")[0] + "."
    sizes = page.evaluate("""() => ['.tour-head strong', '.tour-lead'].map(
      (find) => parseFloat(getComputedStyle(document.querySelector(find)).fontSize))""")
    assert sizes[0] >= 22 and sizes[1] >= 17
    box = page.locator("#tour-play").bounding_box()
    assert box["y"] + box["height"] <= high and box["x"] + box["width"] <= wide
    page.locator("#stage").focus()
    page.keyboard.press("Space")
    tab.at(1)
    assert page.locator(".title-page").count() == 0 and page.inner_text("#tour-play") == "Stop"
    tab.page.wait_for_selector(".tour-bar", state="attached")
    page.wait_for_function("() => document.documentElement.dataset.step === '2'", timeout=15_000)
    page.keyboard.press("Space")
    tab.drawn()
    assert page.inner_text("#tour-play") == "Play" and tab.known("store.present.running") is False


def test_a_tour_that_has_ended_leads_to_the_next(tab: Tab) -> None:
    """The end of a commit leads to the late end, which plays on; going back by hand ends that."""
    page = tab.page
    tab.post("tour", name="commit")
    tab.post("forward", to=20)
    assert page.is_disabled("#tour-next") and page.inner_text("#tour-play") == "Play again"
    page.click("#tour-then")
    page.wait_for_selector(".title-page >> text=an EndTxn that comes late")
    assert page.inner_text("#tour-play") == "Stop"
    page.click("#tour-next")
    tab.at(1)
    page.click("#tour-next")
    tab.at(2)
    assert page.inner_text("#tour-play") == "Stop"
    page.keyboard.press("[")
    tab.at(1)
    page.wait_for_selector("#tour-play >> text=Play")


def test_the_title_page_leads_to_the_other_tours(tab: Tab) -> None:
    """Each of them is a button there."""
    page = tab.page
    tab.post("tour", name="commit")
    others = [tour["name"] for tour in tab.known("store.session.catalogue.tours") if tour["name"] != "commit"]
    shown = page.locator(".tour-others [data-tour]").evaluate_all("all => all.map(one => one.dataset.tour)")
    assert shown == others
    page.click("[data-tour=zombie]")
    page.wait_for_selector(".title-page >> text=taken for dead")


def test_the_path_to_a_violation_is_marked_from_its_first_cause(tab: Tab) -> None:
    """The late EndTxn of tx-01: marked as overtaken, named where it arrives, then the path from step 10 to the end."""
    page = tab.page
    tab.post("tour", name="tx-01")
    tab.post("forward", to=11)
    assert page.locator(".flight.overtaken").count() == 0
    tab.post("forward", to=12)
    late = tab.known("store.steps[9].sent[0].id")
    marked = page.locator(".flight.overtaken")
    assert [one.get_attribute("data-m") for one in marked.all()] == [late] and page.locator(".cause").count() == 0
    tab.post("forward", to=23)
    assert page.locator(f"[data-late='{late}'] text").text_content() == "late: EndTxnRequest of step 10"
    page.evaluate("document.querySelector('#stage').scrollTop = 0")
    page.wait_for_selector(".row[data-n='10']", state="attached")
    sent = [late, tab.known("store.steps[21].sent.find(one => one.type === 'WriteTxnMarkersRequest').id")]
    flights = page.locator(".flight.cause").evaluate_all("all => all.map(one => one.dataset.m)")
    assert sorted(flights) == sorted(sent)
    rows = page.locator(".row.cause").evaluate_all("all => all.map(one => one.dataset.n)")
    assert rows == ["10", "22", "23"] and page.locator(".halo.cause").count() == 3
    wide = page.locator(".flight.cause .leg").first.evaluate("one => parseFloat(getComputedStyle(one).strokeWidth)")
    assert wide >= 3
    named = page.locator("[data-path]").evaluate_all("all => all.map(one => one.textContent)")
    assert named == ["10 AbortTransaction", "22 ReceiveEndTxnRequest", "23 ReceiveWriteTxnMarkersRequest"]
    page.click("[data-path='10']")
    tab.drawn()
    assert tab.known("store.selected") == 10
    tab.post("rewind", to=11)
    assert page.locator(".cause, .flight.overtaken").count() == 0


BARE = """
() => {
  const all = [...document.querySelectorAll('#canvas .named')];
  const lines = [...document.querySelectorAll('#canvas .life, #canvas .wait')];
  const bad = all.filter((one) => {
    const [paper, text] = ['.paper', 'text'].map((find) => one.querySelector(find).getBoundingClientRect());
    const isBelow = lines.every((line) => line.compareDocumentPosition(one) & Node.DOCUMENT_POSITION_FOLLOWING);
    return !isBelow || paper.left > text.left || paper.right < text.right || paper.height < 12;
  });
  return [all.length, bad.map((one) => one.textContent)];
}
"""


def test_no_line_crosses_the_name_of_a_message(tab: Tab) -> None:
    """Each name stands on paper of its own, above lifelines and waiting messages."""
    tab.post("tour", name="tx-01")
    tab.post("forward", to=23)
    count, crossed = tab.page.evaluate(BARE)
    assert count > 8 and crossed == []


@pytest.mark.parametrize("motion", ["no-preference", "reduce"])
def test_messages_move(tab: Tab, motion: str) -> None:
    """A new step brings in what it takes and sends out what it sends, unless the system asks for less motion."""
    page = tab.page
    page.emulate_media(reduced_motion=motion)
    tab.post("tour", name="commit")
    tab.post("forward", to=1)
    page.evaluate("""() => {
      window.moved = [];
      new MutationObserver((news) => news.forEach(({ addedNodes }) => addedNodes.forEach((one) =>
        one.dataset?.moving && window.moved.push(one.dataset.moving)))).observe(
          document.querySelector('#roll'), { subtree: true, childList: true });
    }""")
    page.click("#tour-next")
    tab.at(2)
    taken, sent = tab.known("[store.steps[1].received, store.steps[1].sent.map(one => one.id)]")
    assert page.evaluate("window.moved") == ([taken, *sent] if motion == "no-preference" else [])
    page.wait_for_function("() => !document.querySelector('#moving .envelope')")
