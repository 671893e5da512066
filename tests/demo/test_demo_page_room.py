"""Everything in the demo's page has its room: choices, sentences, lights, marks; small and large windows, resizing."""

from __future__ import annotations

import pytest
from support.demo.browser import Tab
from support.demo.page_hands import nine, on_tour

pytestmark = pytest.mark.browser
FIRST = "commit"
WITHIN = """
(finds) => finds.filter((find) => {
  const box = document.querySelector(find).getBoundingClientRect();
  return box.top < 0 || box.left < 0 || box.bottom > innerHeight + 0.5 || box.right > innerWidth + 0.5;
})
"""
PARTS = ("#heads", "#present .now-line", ".tour-text", "#tour-play", "#tour-next", "#top-help", "#go-run", "#set-until",
         "#set-faults", "#run-state")


@pytest.mark.parametrize(("wide", "high"), [(900, 700), (1280, 800), (1920, 1080)])
@pytest.mark.parametrize(("name", "step"), [("commit", 12), ("tx-01", 23)])
def test_a_tour_and_its_bars_are_on_the_screen(tab: Tab, name: str, step: int, wide: int, high: int) -> None:
    """Heads, present, caption, its buttons and the bar at the bottom: nothing is off the screen."""
    tab.page.set_viewport_size({"width": wide, "height": high})
    on_tour(tab, name, step)
    tab.page.wait_for_timeout(200)
    assert tab.page.evaluate(WITHIN, list(PARTS)) == []


CUT = """
() => {
  const pen = document.createElement('canvas').getContext('2d');
  const selects = [...document.querySelectorAll('#transport select')].filter((one) => {
    pen.font = getComputedStyle(one).font;
    return pen.measureText(one.selectedOptions[0].textContent).width > one.clientWidth - 18;
  });
  const texts = [...document.querySelectorAll('#run-state, #transport label, .lamp-button span, .violation-reason')]
    .filter((one) => one.scrollWidth > one.clientWidth + 1 || one.scrollHeight > one.clientHeight + 2);
  return [...selects, ...texts].map((one) => one.id || one.textContent);
}
"""


@pytest.mark.parametrize(("wide", "high"), [(1280, 800), (1920, 1080)])
def test_choices_and_lights_are_not_cut(tab: Tab, wide: int, high: int) -> None:
    """What is chosen in the bar at the bottom can be read, and so can the lights and why a property fails."""
    tab.page.set_viewport_size({"width": wide, "height": high})
    for until in ("violation", "end"):
        on_tour(tab, "rp-01", 16)
        tab.page.select_option("#set-until", until)
        assert tab.page.evaluate(CUT) == []


def test_lights_have_names_or_numbers(tab: Tab) -> None:
    """The properties that fail are named, the others counted; each leads to the view of all of them."""
    on_tour(tab, "rp-01", 16)
    page = tab.page
    names = tab.known("store.session.properties.map((one) => one.name)")
    states = tab.known("store.session.properties.map((await import('/static/view_properties.js')).howIs)")
    how = dict(zip(names, states, strict=True))
    named = [one.inner_text() for one in page.locator("#lamps [data-property]").all()]
    assert sorted(named) == sorted(name for name, is_so in how.items() if is_so in ("fails", "failed"))
    counted = {one.get_attribute("data-lit"): one.inner_text() for one in page.locator("#lamps [data-lit]").all()}
    assert {is_so: int(text.split()[0]) for is_so, text in counted.items()} == {
        is_so: sum(one == is_so for one in how.values()) for is_so in ("holds", "reached", "waiting")
    }
    page.click("#lamps [data-lit=holds]")
    page.wait_for_selector("#tab-properties[aria-selected=true]")


BANNERS = """
() => [...document.querySelectorAll('#canvas .banner')].map((one) => {
  const frame = one.querySelector('rect').getBoundingClientRect();
  const lines = [...one.querySelectorAll('text')];
  const within = lines.every((line) => {
    const box = line.getBoundingClientRect();
    return box.right <= frame.right && box.bottom <= frame.bottom + 1 && box.top >= frame.top - 1;
  });
  return [lines.map((line) => line.textContent).join(' '), within];
})
"""


@pytest.mark.parametrize("wide", [900, 1280])
def test_the_sentence_of_a_property_that_fails_is_whole(tab: Tab, wide: int) -> None:
    """It takes as many lines as it needs, also when the window gets another width."""
    tab.page.set_viewport_size({"width": 1920, "height": 1000})
    on_tour(tab, "rp-01", 16)
    tab.page.set_viewport_size({"width": wide, "height": 1000})
    tab.page.wait_for_timeout(300)
    claimed = set(tab.known("store.session.properties.filter(one => one.claimed).map(one => one.name)"))
    wanted = []
    before: set[str] = set()
    for failing in tab.known("store.steps.map(one => one.failing)"):
        wanted += [f"{name}{'' if name in claimed else ' (not claimed)'}: {why}"
                   for name, why in failing.items() if name not in before]
        before = set(failing)
    found = tab.page.evaluate(BANNERS)
    assert len(wanted) == 3 and sorted(text for text, _ in found) == sorted(wanted)
    assert all(within for _, within in found)


def test_marks_stand_beside_their_records(tab: Tab) -> None:
    """The end of a log, with its marks, is in the line of its last record; leader, ISR and marks are named above."""
    page = tab.page
    on_tour(tab, "tx-01", 23)
    page.wait_for_selector(".log-head")
    page.wait_for_timeout(300)
    logs = page.request.get(f"{tab.address}api/logs?step=23").json()["logs"]
    heads = page.locator(".log-head")
    for n, log in enumerate(logs[: heads.count()]):
        said = heads.nth(n).locator(".log-facts").inner_text()
        assert all(f"{name} {value}" in said for name, value in log["facts"].items()) and "ISR" in log["facts"]
        assert all(f"{mark['label']} {mark['offset']}" in said for mark in log["marks"])
        cells = page.locator(f'[data-of="{log["partition"]} at {log["holder"]}"]')
        tops = [cell.bounding_box()["y"] for cell in cells.all()]
        if len(tops) == len(log["entries"]) + 1:
            assert tops[-1] == tops[-2]
    assert heads.count() >= 1


def test_resizing_keeps_the_present(tab: Tab) -> None:
    """Whatever the window becomes, the present is in the diagram, until somebody scrolls away."""
    nine(tab, 60)
    page = tab.page
    for wide, high in ((900, 700), (1280, 800), (1920, 1080), (1000, 480), (1280, 800)):
        page.set_viewport_size({"width": wide, "height": high})
        page.wait_for_timeout(300)
        place = page.evaluate("""() => {
          const [stage, line] = ['#stage', '#present .now-line'].map(
            (find) => document.querySelector(find).getBoundingClientRect());
          return [line.top >= stage.top, line.bottom <= stage.bottom];
        }""")
        assert place == [True, True], (wide, high)
        assert page.locator("#to-present").is_hidden()
    page.evaluate("document.querySelector('#stage').scrollTop = 100")
    page.wait_for_selector("#to-present:not([hidden])")


def test_a_large_screen_has_large_type(tab: Tab) -> None:
    """At 1920x1080 no text of the diagram is smaller than 12 pixels, and the pointer still finds its lane and row."""
    page = tab.page
    page.set_viewport_size({"width": 1920, "height": 1080})
    on_tour(tab, "tx-01", 20)
    page.wait_for_timeout(300)
    sizes = page.locator("#canvas text").evaluate_all(
        "all => all.map((one) => parseFloat(getComputedStyle(one).fontSize) * one.getScreenCTM().a)")
    assert len(sizes) > 20 and min(sizes) >= 12
    row, head = page.locator(".row[data-n='19'] .ground").bounding_box(), page.locator("[data-lane=b1]").bounding_box()
    page.mouse.move(head["x"] + head["width"] / 2, row["y"] + 12)
    page.wait_for_selector("#tip.shown >> text=after step 19")
    page.mouse.click(head["x"] + head["width"] / 2, row["y"] + 12)
    tab.drawn()
    assert tab.known("[store.selected, store.lane]") == [19, "b1"]
