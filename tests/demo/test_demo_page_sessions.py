"""The demo's page in a browser: sessions that are left, searches, what runs come to, reasons, a server that is gone."""

from __future__ import annotations

import re
import signal
from pathlib import Path
from typing import Any

import pytest
from support.demo.browser import Tab, served

from harness.model import find_tour

pytestmark = pytest.mark.browser
FIRST = "kafka/4.0"
KIP_320 = "replication/kip-320/actors"
FLAWED = "s4-copied-tail"


def labels(tab: Tab) -> list[str]:
    """Return the labels of the steps that the tab shows."""
    found: list[str] = tab.known("store.steps.map(step => step.label)")
    return found


def test_run_made_by_hand_is_reopened_after_another_was_opened(tab: Tab) -> None:
    """Open searches, lists the session that was left, and brings it back; Undo leads back, too."""
    tab.post("open", what=FIRST, budget="generous")
    tab.take("InitTransactions(c1)")
    tab.post("take", label="Crash(b2)")
    tab.at(2)
    made, page = labels(tab), tab.page
    page.keyboard.press("o")
    page.wait_for_selector("#open-search:focus")
    page.keyboard.type("rolling crash")
    page.wait_for_selector("#open-what option >> nth=0")
    assert [one.split(" · ")[0] for one in page.locator("#open-what option").all_inner_texts()] == [
        "replication-rolling-crash"
    ]
    page.keyboard.press("Enter")
    tab.until("store.session.scenario === 'replication-rolling-crash'")
    # What was opened may be drawn before its own answer closes the dialog, and an open dialog takes the keys.
    page.wait_for_selector("#dialog:not([open])", state="attached")
    page.keyboard.press("u")
    tab.until(f"store.session.model === '{FIRST}'")
    assert labels(tab) == made
    tab.post("open", what="happy-path")
    page.keyboard.press("o")
    row = page.locator(".open-session", has_text=FIRST).first
    assert "step 2 of 2" in row.inner_text()
    row.get_by_role("button", name="Reopen").click()
    page.wait_for_selector("#dialog:not([open])", state="attached")
    tab.until("store.steps.length === 2")
    assert labels(tab) == made
    tab.post("take", label="Restart(b2)")
    assert labels(tab) == [*made, "Restart(b2)"]


def test_search_in_open_says_where_nothing_fits_and_finds_tours(tab: Tab) -> None:
    """Nothing can be opened then; a tour is found by its words and begins."""
    page = tab.page
    page.keyboard.press("o")
    page.wait_for_selector("#open-search:focus")
    page.keyboard.type("no such thing")
    page.wait_for_selector("#open-none")
    assert page.is_disabled("#open-go")
    tour = find_tour("zombie")
    page.fill("#open-search", f"{tour.title} tour")
    page.wait_for_selector("#open-what")
    assert page.input_value("#open-what") == "zombie"
    page.click("#open-go")
    page.wait_for_selector("#tour-next")
    assert tab.known("store.tour.name") == "zombie"


def test_violation_is_found_in_the_background_and_shrunk(tab: Tab) -> None:
    """The hit takes the place of the run, which is kept; the card of the violation shrinks it."""
    tab.post("open", what=FLAWED)
    tab.post("take", index=0)
    page = tab.page
    page.keyboard.press("f")
    page.wait_for_selector("#find-runs:focus")
    page.fill("#find-runs", "900")
    page.click("#find-go")
    page.wait_for_selector(".violation", timeout=60_000)
    page.wait_for_selector("#finding-over")
    assert re.fullmatch(r"Run \d+ violates LogsAgreeUpToHwm: (random|pct|guided), seed \d+\.",
                        page.inner_text("#finding-over .outcome-text"))
    assert tab.known("store.session.sessions.map(one => one.steps)")[0] == 1
    long = tab.known("store.steps.length")
    page.click("[data-verb=shrink]")
    page.wait_for_selector(f".shrink >> text={long} steps →", timeout=60_000)
    assert tab.known("store.steps.length") <= long
    page.get_by_label("Put away").first.click()
    page.wait_for_selector("#finding-over", state="detached")


def test_search_shows_how_far_it_is_and_is_stopped(tab: Tab) -> None:
    """With a rate and the time left at most; steps are taken meanwhile."""
    tab.post("open", what=FIRST, budget="own")
    page = tab.page
    page.click("#top-find")
    page.fill("#find-runs", "1000000")
    page.click("#find-go")
    page.wait_for_selector("#finding progress")
    page.wait_for_function("() => /[1-9]\\d* of 1,000,000 runs, .* a second, at most .* left/"
                           ".test(document.querySelector('#finding').innerText)")
    tab.post("take", index=0)
    page.click("#find-stop")
    page.wait_for_selector("#finding-over >> text=The search was stopped; no violation in")
    assert len(labels(tab)) == 1


def test_run_that_breaks_nothing_says_so(tab: Tab) -> None:
    """On a card that stays until something else is done."""
    tab.post("open", what="happy-path")
    tab.post("strategy", speed=0)
    page = tab.page
    page.click("#go-run")
    page.wait_for_selector("#outcome")
    steps = tab.known("store.present.step")
    assert page.inner_text("#outcome .outcome-text") == (
        f"No property broke in {steps} steps: no step is possible any more."
    )
    page.keyboard.press("[")
    page.wait_for_selector("#outcome", state="detached")


def test_run_leaves_my_faults_alone(tab: Tab) -> None:
    """With the box ticked nobody restarts or heals what was crashed and cut by hand; without it, somebody does."""
    tab.post("open", what=FIRST, budget="generous")
    tab.post("strategy", speed=0, seed=2)
    page = tab.page
    for label in ("Crash(b2)", "Partition(b1,c1)"):
        tab.post("take", label=label)
    page.check("#set-spares")
    tab.until("store.present.spares")
    mended = {"Restart(b2)", "Heal(b1,c1)"}
    tab.post("run", until="step:60")
    tab.until("!store.present.running")
    assert not mended & set(labels(tab))
    tab.post("rewind", to=2)
    page.uncheck("#set-spares")
    tab.until("!store.present.spares")
    tab.post("run", until="step:60")
    tab.until("!store.present.running")
    assert mended & set(labels(tab))


def test_why_not_is_asked_anew_in_another_session(tab: Tab) -> None:
    """Neither the action that was asked about nor its answer stays when something else is opened."""
    tab.post("open", what=FIRST)
    page = tab.page
    page.keyboard.press("w")
    page.wait_for_selector("#why-action")
    page.select_option("#why-action", "ReceiveInitProducerIdRequest")
    page.wait_for_function("() => document.querySelector('.view-why').innerText.includes('✕')")
    tab.post("open", what=KIP_320)
    assert tab.known("store.why") is None
    assert page.input_value("#why-action") != "ReceiveInitProducerIdRequest"
    page.wait_for_function("() => !document.querySelector('.view-why').innerText.includes('Looking')")
    assert "ReceiveInitProducerIdRequest" not in page.inner_text("#body")


def test_disabled_verb_says_why_in_its_tooltip(tab: Tab) -> None:
    """For messages, actors and the bar below."""
    tab.post("open", what=FIRST, budget="generous")
    page = tab.page
    assert page.get_attribute("#go-back", "title") == "Rewind one step ([): this is the start"
    assert page.get_attribute("#go-forward", "title").endswith(": no step is kept ahead")
    tab.post("take", label="InitTransactions(c1)")
    tab.post("take", label="Partition(b1,c1)")
    assert page.get_attribute(".message [data-verb=deliver]:disabled", "title") == (
        "Deliver: b1 is partitioned from c1; heal them first"
    )
    tab.post("take", label="Pause(b1)")
    page.keyboard.press("a")
    page.wait_for_selector("[data-list=actors]")
    row = page.locator(".actor", has=page.get_by_title("State of b1"))
    assert row.locator("[data-deed=Crash]").is_enabled()
    assert row.locator("[data-deed=Timer]").get_attribute("title") == "Timer: b1 is paused"
    tab.post("open", what="happy-path")
    row = page.locator(".actor", has=page.get_by_title("State of b1"))
    assert row.locator("[data-deed=Crash]").get_attribute("title") == (
        "Crash: this run takes no faults; open the model itself to inject some"
    )


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_dead_server_is_told_on_a_banner_and_found_again(chromium: Any, tmp_path: Path, how: signal.Signals) -> None:
    """Whether it ended in order or not: the page says so, verbs say so, and it goes on when there is one again."""
    with served(FIRST) as (where, process):
        context = chromium.new_context(viewport={"width": 1280, "height": 800})
        alone = Tab(context.new_page(), where)
        page = alone.page
        alone.post("take", index=0)
        process.send_signal(how)
        said = "The server has ended." if how == signal.SIGINT else "The server does not answer."
        page.wait_for_selector(f"#banner [role=alert] >> text={said}")
        process.wait(30)
        page.keyboard.press(".")
        page.wait_for_selector(".note.bad >> text=The server does not answer, so nothing was done")
        assert len(labels(alone)) == 1
        page.click("#retry")
        assert page.locator("#banner [role=alert]").count() == 1
        with served(FIRST, port=where.rstrip("/").rpartition(":")[2]):
            page.wait_for_selector("#banner [role=alert]", state="detached", timeout=20_000)
            alone.until("store.steps.length === 0")
        context.close()
