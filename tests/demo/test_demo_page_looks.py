"""How the demo's page looks and is handled: texts that are legible and distinct, splitter, search, small
windows, the picture of the screen."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from support.demo.browser import Tab
from support.demo.page_hands import heads, nine, on_tour
from support.demo.page_scripts import OVERLAPS

pytestmark = pytest.mark.browser
FIRST = "rolling-restart"


def test_messages_of_one_type_can_be_told_apart(tab: Tab) -> None:
    """Two `LeaderAndIsrRequest` to one replica: chips, labels and the panel show the fields in which they differ."""
    # High enough for all five messages on one page of the panel.
    tab.page.set_viewport_size({"width": 1280, "height": 1000})
    on_tour(tab, "rp-01", 12)
    tab.page.wait_for_selector("#body .message >> nth=4")
    flying = tab.known("store.present.in_flight.filter(one => one.type === 'LeaderAndIsrRequest')")
    assert sorted(one["to"] for one in flying) == ["r1", "r1", "r2", "r2"]
    chips = [text for text in tab.page.locator(".chip-deliver").all_inner_texts() if "LeaderAndIsrRequest" in text]
    assert len(chips) == len(set(chips)) == 4
    labels = tab.page.locator(".flight.named .type").all_text_contents()
    for leader, epoch in (("r2", 1), ("r1", 2)):
        telling = f"leader={leader} leader_epoch={epoch}"
        assert sum(telling in " ".join(chip.split()) for chip in chips) == 2, (telling, chips)
        assert sum(label.startswith(f"LeaderAndIsrRequest{telling}") for label in labels) == 2, (telling, labels)
    for one in flying:
        row = tab.page.locator(f"#body [data-message='{one['id']}'] .message-fields")
        assert " ".join(row.inner_text().split()) == " ".join(f"{k}={v}" for k, v in one["fields"].items())
        assert row.bounding_box()["height"] >= 30 and row.evaluate("one => one.scrollWidth <= one.clientWidth")


TEXTS = """
() => {
  const found = [];
  for (const node of document.querySelectorAll('#canvas text')) {
    const scale = node.getScreenCTM().a;
    const sizes = [node, ...node.querySelectorAll('tspan')].map(one => parseFloat(getComputedStyle(one).fontSize));
    found.push([node.textContent, Math.min(...sizes) * scale]);
  }
  for (const node of document.querySelectorAll('#heads button, .chip, .now-label, .message-fields, .step-label'))
    found.push([node.textContent, parseFloat(getComputedStyle(node).fontSize)]);
  return found;
}
"""
NAMES = """
() => [
  ...[...document.querySelectorAll('#canvas .action, #canvas .type')].map(one => one.firstChild.data),
  ...[...document.querySelectorAll('.chip strong')].map(one => one.textContent),
]
"""
CUT = """
() => [...document.querySelectorAll('.lane-name, .chip strong, .chip-text span')]
  .filter(one => one.scrollWidth > one.clientWidth + 1 || one.offsetWidth > one.parentNode.clientWidth)
  .map(one => one.textContent)
"""


@pytest.mark.parametrize("faults", [False, True], ids=["no faults", "faults"])
def test_nine_actors_and_250_steps_can_be_read(tab: Tab, faults: bool) -> None:
    """At 1280x800 nothing is smaller than ten pixels or overlaps; names of steps, messages and actors are whole."""
    nine(tab, 250, faults)
    assert tab.page.evaluate("[innerWidth, innerHeight]") == [1280, 800] and len(heads(tab)) == 10
    for part in (0, 0.3, 0.6, 1):
        tab.page.evaluate(
            "part => { const s = document.querySelector('#stage'); s.scrollTop = part * s.scrollHeight; }", part
        )
        tab.page.wait_for_timeout(60)
        texts, names = tab.page.evaluate(TEXTS), tab.page.evaluate(NAMES)
        assert len(texts) > 60 and [one for one in texts if one[1] < 10] == []
        assert len(names) > 15 and [name for name in names if "…" in name] == []
        assert tab.page.evaluate(CUT) == []
        measured = tab.page.evaluate(OVERLAPS)
        assert measured["count"] > 30 and measured["found"] == []


def test_splitter_is_dragged_and_moved_by_keys(tab: Tab) -> None:
    """The panel gets as wide as it is pulled, within limits; the page keeps it."""
    page = tab.page

    def panel() -> float:
        return float(page.locator("#panel").bounding_box()["width"])

    begun = panel()
    box = page.locator("#splitter").bounding_box()
    page.mouse.move(box["x"] + 4, 400)
    page.mouse.down()
    page.mouse.move(box["x"] + 4 - 120, 400, steps=4)
    page.mouse.up()
    tab.drawn()
    dragged = panel()
    assert begun + 100 < dragged < begun + 140
    assert page.locator("#stage").bounding_box()["width"] == 1280 - dragged
    page.locator("#splitter").focus()
    page.keyboard.press("ArrowRight")
    assert panel() == dragged - 24 == float(page.get_attribute("#splitter", "aria-valuenow"))
    tab.go()
    assert panel() == dragged - 24
    page.locator("#splitter").focus()
    page.keyboard.press("End")
    assert panel() == float(page.get_attribute("#splitter", "aria-valuemin"))
    page.keyboard.press("Home")
    assert panel() == float(page.get_attribute("#splitter", "aria-valuemax")) == 1280 - 380
    page.keyboard.press("Enter")
    assert panel() == begun


def test_steps_are_searched(tab: Tab) -> None:
    """Actions, actors and values of fields are found; Enter and Shift+Enter go round; Escape gives the keys back."""
    on_tour(tab, "rp-01", 16)
    page, press = tab.page, tab.page.keyboard.press
    for words, expected in (
        ("controllerelect", "store.steps.filter(one => one.action === 'ControllerElectLeader')"),
        (
            "leader_epoch=3",
            "store.steps.filter(one => [...one.sent, store.layout.byId.get(one.received)?.message]"
            ".some(message => message?.fields.leader_epoch === '3'))",
        ),
        ("p1 produce", "store.steps.filter(one => JSON.stringify(one).toLowerCase().includes('produce'))"),
    ):
        page.locator("#stage").focus()
        press("g")
        press("/")
        page.wait_for_selector("#find-text:focus")
        page.fill("#find-text", words)
        tab.drawn()
        wanted = tab.known(f"{expected}.map(one => one.n)")
        assert wanted and tab.known("[...store.found]") == wanted, words
        assert page.locator(".row.hit").count() == len(wanted)
        assert page.inner_text(".find-count") == f"{len(wanted)} of {len(wanted)}"
        assert tab.known("store.selected") == wanted[-1]
        press("Enter")
        tab.drawn()
        assert tab.known("store.selected") == wanted[0]
        press("Shift+Enter")
        tab.drawn()
        assert tab.known("store.selected") == wanted[-1]
        page.click("#find-back")
        tab.drawn()
        assert tab.known("store.selected") == wanted[-2]
    page.fill("#find-text", "no such thing")
    page.wait_for_selector(".find-count >> text=none")
    assert page.is_disabled("#find-next")
    press("Escape")
    page.wait_for_selector("#stage:focus")
    assert page.locator(".row.hit").count() == 0
    press("[")
    tab.at(15)


REACH = """
() => {
  const shown = (node) => node.getClientRects().length && getComputedStyle(node).visibility !== 'hidden';
  const all = [...document.querySelectorAll('button, select, input, .line, .number, #present .now-label')]
    .filter((node) => shown(node) && !node.closest('.apart, dialog:not([open])'));
  const missed = [];
  for (const node of all) {
    // What sticks to the top of the stage comes with the stage.
    if (node.closest('#heads')) {
      document.querySelector('#stage').scrollIntoView({ block: 'start' });
      document.querySelector('#stage').scrollLeft = node.offsetLeft - 60;
    } else node.scrollIntoView({ block: 'center', inline: 'center' });
    const box = node.getBoundingClientRect();
    const [x, y] = [box.left + box.width / 2, box.top + box.height / 2];
    const seen = x >= 0 && y >= 0 && x <= innerWidth && y <= innerHeight && document.elementFromPoint(x, y);
    if (!seen || !(node.contains(seen) || seen.contains(node) || seen.closest('label')?.contains(node)))
      missed.push(`${node.id || node.className?.baseVal || node.className} ${node.textContent.slice(0, 30)} at ${
        x.toFixed(0)},${y.toFixed(0)}`);
  }
  scrollTo(0, 0);
  return { count: all.length, missed, sideways: document.documentElement.scrollWidth - innerWidth };
}
"""


@pytest.mark.parametrize("size", [(999, 700), (900, 700), (600, 900), (360, 640), (360, 360), (1280, 380), (1000, 480)])
def test_small_windows_leave_nothing_out_of_reach(tab: Tab, size: tuple[int, int]) -> None:
    """Whatever can be pressed can be scrolled to and lies bare there, in every view; the page is not wider than it."""
    nine(tab, 60)
    page = tab.page
    page.set_viewport_size({"width": size[0], "height": size[1]})
    for view in ("now", "actors", "topics", "properties", "branches"):
        page.evaluate("view => document.querySelector(`#tab-${view}`).click()", view)
        page.wait_for_timeout(120)
        found = page.evaluate(REACH)
        assert found["count"] > 50 and found["missed"] == [] and found["sideways"] <= 0, view
    page.keyboard.press("?")
    page.wait_for_selector("dialog.help[open]")
    box = page.locator("#dialog").bounding_box()
    assert box["x"] >= 0 and box["x"] + box["width"] <= size[0] and box["height"] <= size[1]
    assert page.evaluate(
        "() => { const one = document.querySelector('#dialog'); one.scrollTop = 1e6; "
        "return one.querySelector('.help-signs:last-child').getBoundingClientRect().bottom "
        "<= one.getBoundingClientRect().bottom; }"
    )


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_picture_is_the_one_on_the_screen(tab: Tab, scheme: str, tmp_path: Path) -> None:
    """The file has the lifelines that are shown in their order, the steps that are seen, and the page's colours."""
    page = tab.page
    page.emulate_media(color_scheme=scheme)
    nine(tab, 120)
    for key in ("Delete", "Shift+ArrowRight"):
        page.locator("[data-lane=b1]" if key == "Delete" else "[data-lane=c1]").focus()
        page.keyboard.press(key)
        page.wait_for_timeout(100)
    page.evaluate("() => { document.querySelector('#stage').scrollTop = 1200; }")
    page.wait_for_timeout(100)
    seen = page.evaluate(
        """() => {
          const [box, top] = ['#stage', '#heads'].map((one) => document.querySelector(one).getBoundingClientRect());
          return [...document.querySelectorAll('#canvas .row')].filter((row) => {
            const { y, bottom } = row.querySelector('.ground').getBoundingClientRect();
            return bottom > top.bottom + 1 && y < box.bottom - 1;
          }).map((row) => Number(row.dataset.n));
        }"""
    )
    colour = page.evaluate("getComputedStyle(document.querySelector('#stage')).backgroundColor")
    ink = page.evaluate("getComputedStyle(document.querySelector('#canvas .action')).fill")
    files = {}
    for item in ("Picture", "All steps"):
        with page.expect_download() as download:
            page.click("#top-export")
            page.get_by_role("menuitem", name=item).click()
        download.value.save_as(tmp_path / "one.svg")
        files[item] = ET.parse(tmp_path / "one.svg").getroot()
    for item, root in files.items():
        texts = root.findall(".//{*}text")
        names = [one.text for one in texts if one.get("data-head")]
        numbers = [int(one.get("data-n", 0)) for one in root.iter() if one.get("data-n")]
        assert names == ["c2", "c1", "c3", "b2", "b3", "b4", "b5", "controller", "env"]
        assert numbers == (seen if item == "Picture" else list(range(1, 121)))
        paper = root.find("{*}rect")
        assert paper is not None and paper.get("fill") == colour
        actions = [one for one in texts if one.get("font-weight") == "600" and (one.text or "").startswith("Receive")]
        assert actions and {one.get("fill") for one in actions} == {ink}
        assert not any(one.get("class") or one.get("style") for one in root.iter())
    assert 3 < len(seen) < 60


def test_why_not_leaves_the_keys_alive(tab: Tab) -> None:
    """After W the answer has the focus: arrows read it, and the keys of the page go on."""
    on_tour(tab, "rp-01", 9)
    page, press = tab.page, tab.page.keyboard.press
    page.locator("#stage").focus()
    press("w")
    page.wait_for_selector("[data-list=why] :focus")
    page.wait_for_function("() => document.querySelectorAll('.view-why .line').length > 2")
    first = page.evaluate("document.activeElement.dataset.cell")
    press("ArrowDown")
    assert page.evaluate("document.activeElement.dataset.cell") != first
    press("[")
    tab.at(8)
    press("s")
    page.wait_for_selector("#tab-step[aria-selected=true]")


CLICKED = """
() => new Promise((done) => {
  const root = document.documentElement;
  const chip = document.querySelector('#present .chip:not(.more)');
  const step = Number(root.dataset.step) + 1;
  const before = new Set(document.querySelectorAll('#canvas *'));
  let touched = 0;
  const canvas = new MutationObserver((records) => { touched += records.length; });
  canvas.observe(document.querySelector('#canvas'),
    { subtree: true, childList: true, attributes: true, characterData: true });
  const seen = new MutationObserver(() => {
    if (!root.dataset.drawn || Number(root.dataset.step) !== step) return;
    seen.disconnect();
    touched += canvas.takeRecords().length;
    const after = [...document.querySelectorAll('#canvas *')];
    done({ all: after.length, made: after.filter((one) => !before.has(one)).length, touched });
  });
  seen.observe(root, { attributes: true });
  chip.click();
})
"""


def test_step_changes_little_of_the_picture(tab: Tab) -> None:
    """What a click draws anew is the step, not the screen: a tenth of its elements at most."""
    nine(tab, 250)
    for _ in range(5):
        at = tab.known("store.present.step")
        found = tab.page.evaluate(CLICKED)
        assert found["all"] > 350 and found["made"] < found["all"] / 10 and found["touched"] < 130, found
        tab.post("undo")
        tab.at(at)


SEEN = """
() => Object.fromEntries(['#tour-back', '#tour-next', '.tour-text', '.tour-head'].map(find => {
  const box = document.querySelector(find).getBoundingClientRect();
  const at = document.elementFromPoint(box.left + box.width / 2, box.top + box.height / 2);
  const isWhole = box.top >= 0 && box.left >= 0 && box.bottom <= innerHeight && box.right <= innerWidth;
  return [find, isWhole && Boolean(at?.closest('#tour'))];
}))
"""


@pytest.mark.parametrize(("wide", "high"), [(900, 700), (640, 400), (1280, 600)])
@pytest.mark.parametrize("name", ["tx-01", "zombie"])
def test_the_card_of_a_tour_is_whole_in_a_small_window(tab: Tab, name: str, wide: int, high: int) -> None:
    """At each step the caption and its buttons are on the screen, and nothing covers them, from Next to the end."""
    tab.page.set_viewport_size({"width": wide, "height": high})
    tab.post("tour", name=name)
    stops = tab.known("store.tour.captions.map(one => one.at)")
    assert len(stops) > 10
    for at in (stop for stop in stops if stop):
        assert set(tab.page.evaluate(SEEN).values()) == {True}, (at, tab.page.evaluate(SEEN))
        tab.page.mouse.click(*tab.page.evaluate(MIDDLE, "#tour-next"))
        tab.at(at)
    assert set(tab.page.evaluate(SEEN).values()) == {True}
    assert tab.page.inner_text("#tour-next") == "The end"


MIDDLE = """
find => {
  const box = document.querySelector(find).getBoundingClientRect();
  return [box.left + box.width / 2, box.top + box.height / 2];
}
"""


def test_a_cluster_without_faults_has_no_ticked_box_for_them(tab: Tab) -> None:
    """A tour says its sizes and that faults are off; so does the box, which can be ticked where there are faults."""
    tab.post("tour", name="tx-01")
    said = tab.page.inner_text(".tour-about")
    assert said.endswith("faults are off.")
    assert all(f"{name} {number}" in said for name, number in tab.known("store.session.sizes").items() if number)
    box = tab.page.locator("#set-faults")
    assert (box.is_checked(), box.is_enabled()) == (False, False)
    assert box.locator("xpath=..").get_attribute("title") == "Faults are off: there are none in this cluster."
    tab.post("open", what="cut-off-coordinator")
    assert (box.is_checked(), box.is_enabled()) == (True, True)


CUT_OFF = """
() => {
  const dialog = document.querySelector('#dialog');
  const right = dialog.getBoundingClientRect().left + dialog.clientLeft + dialog.clientWidth;
  const texts = [...dialog.querySelectorAll('dt, dd, li, h2, h3, .dialog-head button')];
  return {
    count: texts.length, beyond: texts.filter(one => one.getBoundingClientRect().right > right
      || one.scrollWidth > one.clientWidth + 1).map(one => one.textContent),
    sideways: dialog.scrollWidth - dialog.clientWidth, below: dialog.scrollHeight - dialog.clientHeight,
  };
}
"""


@pytest.mark.parametrize(("wide", "high"), [(1280, 800), (1920, 1080), (1024, 768), (999, 700), (640, 400)])
def test_the_help_is_not_cut_at_the_right(tab: Tab, wide: int, high: int) -> None:
    """Every key and sign is whole; at 1280x800 and above all of it is on the screen without scrolling."""
    tab.page.set_viewport_size({"width": wide, "height": high})
    tab.page.keyboard.press("?")
    tab.page.wait_for_selector("#dialog[open] .help-signs")
    found = tab.page.evaluate(CUT_OFF)
    assert found["count"] > 80 and found["beyond"] == [] and found["sideways"] == 0
    assert wide < 1280 or found["below"] == 0


@pytest.mark.parametrize("key", ["a", "Shift+T", "s", "p", "b", "w", "e"])
def test_digits_take_an_enabled_step_whatever_view_is_open(tab: Tab, key: str) -> None:
    """The number is that of the list of enabled steps; it stands in the list, and at the step below the present."""
    on_tour(tab, "tx-01", 8)
    page = tab.page
    page.keyboard.press("e")
    page.wait_for_selector("[data-list=enabled] :focus")
    listed = page.locator("[data-list=enabled] .step")
    labels = listed.evaluate_all("all => all.map(one => one.dataset.label)")
    assert listed.evaluate_all("all => all.map(one => one.dataset.digit)") == [str(n + 1) for n in range(len(labels))]
    chips = page.locator("#present .chip[data-digit]").evaluate_all(
        "all => all.map(one => [one.dataset.digit, one.title])")
    assert sorted(chips) == [[str(n + 1), label] for n, label in enumerate(labels)]
    page.keyboard.press(key)
    page.keyboard.press("9")
    page.keyboard.press("2")
    tab.at(9)
    assert tab.known("store.steps.at(-1).label") == labels[1]
