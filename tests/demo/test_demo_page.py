"""The demo's page in a browser: tours, verbs by pointer and by keyboard, files in and out, tabs, room for all texts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.commands.command_line import call
from support.demo.browser import Tab, served
from support.demo.page_hands import NINE, nine
from support.demo.page_scripts import OVERLAPS

from harness.model import find_tour, tours
from harness.record import tour_trail
from harness.simulate.states.tables import Tables
from harness.simulate.trails.replay import spelled_out

pytestmark = pytest.mark.browser
RP_01 = "replication/truncate-to-high-watermark/actors"
FIRST = "kafka/4.0"


@pytest.mark.parametrize("name", [tour.name for tour in tours()])
def test_tour_is_started_and_finished(tab: Tab, name: str) -> None:
    """Each caption comes in its turn, the last one ends the tour, and what it claims to break is broken."""
    tour = find_tour(name)
    page = tab.page
    page.keyboard.press("t")
    page.get_by_role("menuitem", name=tour.title).click()
    page.wait_for_selector("#tour-next")
    captions = dict(tour.captions)
    shown = []
    for at in sorted(captions):
        if at:
            page.click("#tour-next")
        tab.at(at)
        shown.append(" ".join(page.inner_text(".tour-text").split()))
    assert shown == [captions[at] for at in sorted(captions)]
    assert page.is_disabled("#tour-next") and tab.known("store.steps.length") == len(tour.steps)
    assert [line.split("\n")[0] for line in page.locator(".violation strong").all_inner_texts()] == (
        [f"✕ {tour.violates}"] if tour.violates else []
    )


def test_violation_is_stepped_to_by_hand_and_replayed_on_the_command_line(tab: Tab, tmp_path: Path) -> None:
    """The trail that the page saves leads to the same violation with the same digest."""
    tour = find_tour("rp-01")
    tab.post("open", what=RP_01, sizes=dict(tour.sizes), settings=dict(tour.settings), budget="generous")
    trail = tour_trail(tour)
    for label in [chosen.label for chosen in spelled_out(trail, Tables(trail.build())).choices]:
        tab.take(label)
    page = tab.page
    assert page.get_attribute("[data-property=AckDurability]", "data-how") == "fails"
    broken = page.inner_text(".violation strong").removeprefix("✕ ")
    with page.expect_download() as download:
        page.click("#top-save")
    path = tmp_path / download.value.suggested_filename
    download.value.save_as(path)
    done = call("replay", path)
    assert f"violates {broken} at step 13" in " ".join(done.out.split())
    assert tab.known("store.present.digest") in done.out


def chosen(tab: Tab, path: Path) -> None:
    """Load a file as a person does, and wait until it is shown: what stood there before may have the same buttons."""
    tab.page.keyboard.press("l")
    with tab.page.expect_response(lambda answer: answer.url.endswith("api/load")) as loaded:
        tab.page.set_input_files("#file", path)
    tab.shows(loaded.value.json()["version"])


def test_shrinking_is_done_on_request(tab: Tab, tmp_path: Path) -> None:
    """The card tells how long the schedule was and is; the short run is a branch; the command to replay is copied."""
    call("simulate", "s4-copied-tail", "--seed", 44, "--out", tmp_path)
    (trail,) = tmp_path.glob("*.trail.jsonl")
    chosen(tab, trail)
    page = tab.page
    page.click("[data-verb=shrink]")
    page.wait_for_selector(".shrink >> text=18 steps → 8, proved shortest")
    tab.at(8)
    page.get_by_role("button", name="Copy").click()
    assert page.evaluate("navigator.clipboard.readText()").startswith("kafka-proto replay s4-copied-tail")
    page.keyboard.press("b")
    page.wait_for_selector("[data-branch]:not([aria-current])")
    assert sorted(branch["length"] for branch in tab.known("store.branches")) == [8, 18]


def test_rewind_and_another_choice_make_a_branch(tab: Tab) -> None:
    """The old branch is kept, can be named and gone back to; undo takes the last deed back."""
    tab.post("open", what=FIRST, budget="generous")
    tab.post("run", steps=8)
    tab.at(8)
    page = tab.page
    kept = tab.known("store.steps[5].label")
    page.click("[data-rewind='5']")
    tab.at(5)
    other = tab.known(f"store.present.enabled.find(one => one.label !== {kept!r}).index")
    tab.post("take", index=other, at=5)
    tab.at(6)
    page.keyboard.press("b")
    page.wait_for_selector("[data-branch]")
    assert page.locator("[data-branch]").count() == 2
    page.fill("#branch-name", "another way")
    page.get_by_role("button", name="Name it").click()
    page.wait_for_selector("[data-branch='another way'][aria-current]")
    page.click("[data-branch]:not([aria-current])")
    page.wait_for_selector("[data-branch='another way']:not([aria-current])")
    assert tab.known("store.steps.slice(0, 5).length") == 5
    assert tab.known("store.steps[5]?.label ?? null") in (kept, None)
    page.keyboard.press("u")
    page.wait_for_selector("[data-branch='another way'][aria-current]")


def test_partition_is_made_between_two_heads_and_healed(tab: Tab) -> None:
    """Both heads say whom they are partitioned from, until the link is healed."""
    tab.post("open", what=FIRST, budget="generous")
    page = tab.page
    page.click("[data-lane=b1]")
    page.click("[data-lane=c1]")
    page.click("#deed [data-verb=partition]")
    tab.at(1)
    assert "partitioned from c1" in page.get_attribute("[data-lane=b1]", "aria-label")
    assert "partitioned from b1" in page.get_attribute("[data-lane=c1]", "aria-label")
    assert page.locator("path.torn").count() == 1
    page.click("#deed [data-verb=heal]")
    tab.at(2)
    assert "partitioned from" not in page.get_attribute("[data-lane=b1]", "aria-label")


def test_message_is_held_released_copied_and_dropped(tab: Tab) -> None:
    """Each deed of a message in flight does what it says, and the diagram has a sign for it."""
    tab.post("open", what=FIRST, budget="generous")
    page = tab.page
    while not tab.known("store.present.in_flight.length"):
        own = "store.present.enabled.find(one => ['act', 'command'].includes(one.verb)).index"
        tab.post("take", index=tab.known(own))
    begun = tab.known("store.present.step")
    for n, verb in enumerate(("delay", "release", "duplicate", "drop"), 1):
        page.click(f".message [data-verb={verb}]:not(:disabled)")
        tab.at(begun + n)
    for sort in ("delay", "release", "duplicate", "drop"):
        assert page.locator(f"g.sort-{sort}").count() == 1, sort
    assert page.locator(".flight.dropped").count() == 1 and page.locator(".flight .copy").count() >= 1


def test_two_tabs_are_in_step(tab: Tab, chromium: Any, address: str) -> None:
    """What one tab does, the other shows; both show the same rows."""
    tab.post("open", what=FIRST)
    with chromium.new_context() as context:
        other = Tab(context.new_page(), address)
        other.page.keyboard.press(".")
        tab.at(1)
        tab.page.keyboard.press(".")
        other.at(2)
        assert tab.known("store.steps.map(step => step.label)") == other.known("store.steps.map(step => step.label)")
        assert tab.page.inner_text("#canvas") == other.page.inner_text("#canvas")
        assert other.troubles == []


def test_counterexample_of_check_is_loaded_and_looked_at(tab: Tab, tmp_path: Path) -> None:
    """A trail that an exhaustive search wrote opens at its violation."""
    done = call("check", "compaction/pulsar", "--set", "repair=S11", "--invariant", "DuplicateNullKeyMessage",
                "--out", tmp_path)
    assert done.code == 1
    (trail,) = tmp_path.glob("*.trail.jsonl")
    chosen(tab, trail)
    tab.page.wait_for_selector(".violation >> text=DuplicateNullKeyMessage")
    assert tab.known("store.steps.length") == tab.known("store.present.violation.step")


def test_link_carries_the_session(tab: Tab) -> None:
    """Opened elsewhere, after something else was done, it brings model and steps back."""
    tab.post("open", what=FIRST)
    tab.post("run", steps=5)
    tab.at(5)
    labels = tab.known("store.steps.map(step => step.label)")
    page = tab.page
    page.keyboard.press("k")
    link = page.input_value("#share-link")
    page.keyboard.press("Escape")
    tab.post("open", what=RP_01)
    page.goto("about:blank")
    page.goto(link)
    page.wait_for_selector("#heads [data-lane]")
    tab.at(5)
    assert tab.known("store.steps.map(step => step.label)") == labels and page.evaluate("location.hash") == ""


def test_reload_in_the_middle_comes_back_to_the_same(tab: Tab) -> None:
    """The state is the server's: a tab that starts again shows what it showed."""
    tab.post("open", what=FIRST)
    tab.post("run", steps=12)
    tab.at(12)
    before = tab.page.inner_text("#canvas")
    tab.go()
    tab.at(12)
    assert tab.page.inner_text("#canvas") == before


def test_everything_is_done_by_keyboard(tab: Tab) -> None:
    """Open, deliver, choose among steps, part two, heal, crash, rewind, look at a state: no pointer."""
    tab.post("open", what=FIRST, budget="generous")
    page, press = tab.page, tab.page.keyboard.press
    press("o")
    page.wait_for_selector("dialog[open] #open-search:focus")
    press("Escape")
    page.wait_for_selector("#dialog:not([open])", state="attached")
    press("e")
    page.wait_for_selector("[data-list=enabled] :focus")
    press("ArrowDown")
    press("Enter")
    tab.at(1)
    page.wait_for_selector("[data-list=enabled] :focus")
    press(".")
    tab.at(2)
    press("m")
    page.wait_for_selector("[data-list=messages] :focus, #tab-now")
    press("h")
    page.wait_for_selector("#heads :focus")
    press("Enter")
    press("ArrowRight")
    press("ArrowRight")
    press("Enter")
    press("c")
    page.wait_for_selector("#deed :focus")
    press("Enter")
    tab.at(3)
    assert tab.known("store.steps[2].action") == "Partition"
    page.wait_for_selector("#deed :focus")
    press("[")
    tab.at(2)
    press("]")
    tab.at(3)
    press("u")
    tab.at(2)
    press("d")
    press("ArrowUp")
    press("ArrowRight")
    page.wait_for_selector("#tip.shown")
    assert "after step 2" in page.inner_text("#tip")
    press("ArrowUp")
    press("Enter")
    tab.at(1)
    press("?")
    page.wait_for_selector("dialog.help[open]")
    press("Escape")
    for key, view in zip("aspbw", ("actors", "step", "properties", "branches", "why"), strict=True):
        press("Escape")
        page.locator("#stage").focus()
        press(key)
        page.wait_for_selector(f"#tab-{view}[aria-selected=true]")


def test_run_until_an_action_and_pause(tab: Tab) -> None:
    """The run ends where the action has happened; a slow run can be paused."""
    tab.post("open", what=FIRST)
    page = tab.page
    page.select_option("#set-until", "action:ReceiveInitProducerIdRequest")
    page.click("#go-run")
    tab.until("!store.present.running && store.steps.at(-1)?.action === 'ReceiveInitProducerIdRequest'")
    page.select_option("#set-until", "end")
    page.select_option("#set-speed", "2")
    page.click("#go-run")
    page.wait_for_selector("#go-run[aria-pressed=true]")
    page.click("#go-run")
    page.wait_for_selector("#go-run[aria-pressed=false]")
    page.select_option("#set-speed", "0")


def test_step_tells_its_action_of_the_spec_and_why_not(tab: Tab) -> None:
    """The step view names the spec's action; for another action, why it is not enabled now."""
    tab.post("tour", name="rp-01")
    tab.post("forward", to=9)
    page = tab.page
    tab.until("store.steps.length === 9 && store.steps.every(one => one.spec)")
    page.keyboard.press("s")
    page.wait_for_selector(".view-step >> text=In the spec: a step of the spec")
    page.keyboard.press("w")
    page.wait_for_selector("#why-action")
    page.select_option("#why-action", index=0)
    page.wait_for_function("() => document.querySelectorAll('.view-why .line').length > 1")


def test_run_is_exported_or_refused_in_a_sentence(tab: Tab, tmp_path: Path) -> None:
    """The picture is saved under a name of its own; a form that this run cannot have is refused by a note."""
    tab.post("open", what=FIRST)
    tab.post("run", steps=5)
    tab.at(5)
    page = tab.page
    with page.expect_download() as download:
        page.click("#top-export")
        page.get_by_role("menuitem", name="Picture").click()
    download.value.save_as(tmp_path / "run.svg")
    assert download.value.suggested_filename.endswith(".svg")
    assert "<svg" in (tmp_path / "run.svg").read_text(encoding="utf-8")
    page.click("#top-export")
    page.get_by_role("menuitem", name="TLA+").click()
    page.wait_for_selector("#toast .note.bad")
    assert [trouble for trouble in tab.troubles if "400" not in trouble] == []
    tab.troubles.clear()


def test_pointer_is_told_of_messages_and_states(tab: Tab) -> None:
    """Over a message its fields, over a lifeline the state at that moment; the theme can be turned."""
    tab.post("tour", name="rp-01")
    tab.post("forward", to=4)
    page = tab.page
    tab.at(4)
    page.locator(".flight .type").last.hover()
    page.wait_for_selector("#tip.shown >> text=p1 → r1 · sent in step 4")
    head, row = page.locator("[data-lane=r1]").bounding_box(), page.locator(".row[data-n='3']").bounding_box()
    page.mouse.move(head["x"] + head["width"] / 2, row["y"] + row["height"] / 2)
    page.wait_for_selector("#tip.shown >> text=after step 3")
    before = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.keyboard.press("Shift+D")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != before


def test_server_that_ends_is_told_of(chromium: Any) -> None:
    """The page says that it stands alone, and keeps what it shows."""
    with chromium.new_context() as context:
        with served(FIRST) as (where, _):
            alone = Tab(context.new_page(), where)
        alone.page.wait_for_selector(".offline >> text=the server has ended")
        assert alone.page.locator("#heads [data-lane]").count() > 3


SCROLLERS = """
() => [...document.querySelectorAll('body, body *')].filter((node) => {
  const style = getComputedStyle(node);
  return [style.overflowX, style.overflowY].some((how) => how === 'auto' || how === 'scroll');
}).map((node) => node.id)
"""


@pytest.mark.parametrize("size", [(1280, 800), (1920, 1080)])
@pytest.mark.parametrize(
    "what", [{"what": RP_01, "sizes": {"replicas": 2}}, NINE], ids=["few lifelines", "nine lifelines"]
)
def test_no_texts_overlap(tab: Tab, size: tuple[int, int], what: dict[str, Any]) -> None:
    """At both sizes, few lifelines or nine: each text has its room, and one region alone scrolls."""
    page = tab.page
    page.set_viewport_size({"width": size[0], "height": size[1]})
    nine(tab, 60, faults=True, what=what)
    measured = page.evaluate(OVERLAPS)
    assert measured["count"] > 30 and measured["found"] == []
    assert page.evaluate(SCROLLERS) == ["stage"]


def test_long_run_draws_what_is_visible_only(tab: Tab) -> None:
    """A thousand steps are a hundred rows in the page at most, wherever it is scrolled to."""
    nine(tab, 1000, faults=True)
    page = tab.page
    for place in (0, 0.5, 1):
        page.evaluate(
            "part => { const s = document.querySelector('#stage'); s.scrollTop = part * s.scrollHeight; }", place
        )
        page.wait_for_function(
            "part => [...document.querySelectorAll('#canvas .row')]"
            ".some(row => Math.abs(row.dataset.n / 1000 - part) < .1)",
            arg=place,
        )
        assert 10 < page.locator("#canvas .row").count() < 100
