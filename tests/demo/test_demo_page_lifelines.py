"""Lifelines of the demo's page are hidden and moved, by pointer and by keyboard."""

from __future__ import annotations

import pytest
from support.demo.browser import Tab
from support.demo.page_hands import HEADS, heads, nine, on_tour

pytestmark = pytest.mark.browser
FIRST = "rolling-restart"


def test_lifelines_are_hidden_and_moved_by_pointer(tab: Tab) -> None:
    """Dragged heads change places, hidden ones share a lane; both survive a reload, and can be taken back."""
    nine(tab, 40)
    page = tab.page
    usual = heads(tab)
    one, other = (page.locator(f"[data-lane={name}]").bounding_box() for name in ("b3", "c2"))
    page.mouse.move(one["x"] + 8, one["y"] + 8)
    page.mouse.down()
    page.mouse.move(other["x"] + 2, other["y"] + 8, steps=5)
    page.mouse.up()
    moved = ["c1", "b3", "c2", "c3", "b1", "b2", "b4", "b5", "controller", "environment"]
    page.wait_for_function(f"wanted => ({HEADS})().join() === wanted", arg=",".join(moved))
    assert heads(tab) == moved and tab.known("store.heads.length") == 0
    page.click("[data-lane=c3]")
    page.get_by_role("button", name="Hide c3").click()
    page.wait_for_selector("[data-lane=c3]", state="detached")
    assert heads(tab) == [name for name in moved if name != "c3"]
    own = tab.known("store.steps.filter(one => one.process === 'c3').length")
    assert own and page.locator(".row.away").count() <= own
    tab.go()
    assert heads(tab) == [name for name in moved if name != "c3"]
    assert page.inner_text("#lanes-hidden") == "+1"
    page.click("#lanes-hidden")
    page.locator("[data-name=c3] input").check()
    page.wait_for_function(f"wanted => ({HEADS})().join() === wanted", arg=",".join(moved))
    page.click("#lanes-usual")
    page.keyboard.press("Escape")
    assert heads(tab) == usual
    tab.go()
    assert heads(tab) == usual


def test_lifelines_are_hidden_and_moved_by_keyboard(tab: Tab) -> None:
    """On a head Shift with an arrow moves it and Delete hides it; Shift+H lists all and shows it again."""
    nine(tab, 10)
    page, press = tab.page, tab.page.keyboard.press
    press("h")
    page.wait_for_selector("[data-lane=c1]:focus")
    press("Shift+ArrowRight")
    page.wait_for_function(f"() => ({HEADS})().slice(0, 2).join() === 'c2,c1'")
    page.wait_for_selector("[data-lane=c1]:focus")
    press("ArrowRight")
    page.wait_for_selector("[data-lane=c3]:focus")
    press("Delete")
    page.wait_for_selector("[data-lane=c3]", state="detached")
    page.wait_for_selector("[data-lane=b1]:focus")
    press("Shift+H")
    page.wait_for_selector("dialog[open] input:focus")
    assert page.locator("[data-name=c3] input").is_checked() is False
    page.locator("[data-name=c3] input").focus()
    press("Space")
    page.locator("[data-name=c3] button").first.focus()
    press("Enter")
    press("Escape")
    page.wait_for_function(f"() => ({HEADS})().slice(0, 4).join() === 'c2,c3,c1,b1'")
    assert heads(tab)[:4] == ["c2", "c3", "c1", "b1"]


TWO_KEYS_IN_A_FRAME = """async () => {
    const press = (key, shiftKey) =>
        document.activeElement.dispatchEvent(new KeyboardEvent("keydown", {key, shiftKey, bubbles: true}));
    press("ArrowRight", true);
    press("ArrowRight", false);
    for (let n = 0; n < 6; n += 1) await new Promise(requestAnimationFrame);
    return document.activeElement.dataset.lane;
}"""


def test_focus_stays_where_the_last_key_put_it(tab: Tab) -> None:
    """A key that follows a move before the page has drawn it decides where the focus is; the drawing does not."""
    nine(tab, 10)
    tab.page.keyboard.press("h")
    tab.page.wait_for_selector("[data-lane=c1]:focus")
    assert tab.page.evaluate(TWO_KEYS_IN_A_FRAME) == "c3"
    assert heads(tab)[:3] == ["c2", "c1", "c3"]


def test_messages_to_hidden_lifelines_say_whom(tab: Tab) -> None:
    """A message between a shown and a hidden lifeline names the hidden one; between two hidden ones it is not drawn."""
    on_tour(tab, "rp-01", 12)
    page = tab.page
    all_of_them = page.locator(".flight.named").count()
    for name in ("r1", "p1"):
        page.locator(f"[data-lane={name}]").focus()
        page.keyboard.press("Delete")
        page.wait_for_selector(f"[data-lane={name}]", state="detached")
    texts = page.locator(".flight.named .type").all_text_contents()
    assert any(text.startswith("LeaderAndIsrRequest → r1") for text in texts)
    between = tab.known(
        "[...store.layout.byId.values()].filter(({ message }) => "
        "['r1', 'p1'].includes(message.from) && ['r1', 'p1'].includes(message.to)).length"
    )
    assert between and len(texts) == all_of_them - between
