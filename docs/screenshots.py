"""Make the pictures of the demo that the README shows: the main page, a violation, a tour, a late end with its records.

    python docs/screenshots.py [FOLDER]

They are written into this folder, or another one. Each comes from a session of its own, stepped by the same choices
every time, in a Chromium without a window.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests"))

from support.demo.browser import Tab, browser, lacking, served  # noqa: E402


def main_page(tab: Tab) -> None:
    """A cluster after some faults: held and copied messages, a crash, a cut link; what can happen next."""
    tab.post("open", what="rolling-restart", budget="generous")
    tab.post("strategy", strategy="random", seed=7, inject_faults=False, speed=0)
    run(tab, 12)
    inject(tab, "one.verb === 'duplicate'")
    run(tab, 3)
    inject(tab, "one.verb === 'delay'")
    run(tab, 2)
    inject(tab, "one.verb === 'partition' && one.args.join() === 'b1,controller'")
    inject(tab, "one.verb === 'crash' && one.args.join() === 'b2'")
    run(tab, 3)
    inject(tab, "one.verb === 'drop'")
    run(tab, 2)
    tab.page.click("[data-lane=b1]")
    tab.page.click("[data-lane=controller]")
    tab.page.mouse.move(460, 770)


def violation(tab: Tab) -> None:
    """The end of the published bug RP-01, the step that breaks it looked at."""
    tab.post("tour", name="rp-01")
    tab.post("forward", to=16)
    tab.page.get_by_role("button", name="Leave the tour").click()
    tab.page.mouse.move(460, 20)
    tab.page.keyboard.press("v")
    tab.page.wait_for_timeout(1500)


def tour(tab: Tab) -> None:
    """A tour in its middle."""
    tab.post("tour", name="zombie")
    tab.post("forward", to=20)
    tab.page.wait_for_timeout(300)


def late_end(tab: Tab) -> None:
    """The end of TX-01: the arrow of the late EndTxn, and what it did to the partition's records."""
    tab.page.set_viewport_size({"width": 1280, "height": 900})
    tab.post("tour", name="tx-01")
    tab.post("forward", to=23)
    tab.page.get_by_role("button", name="Leave the tour").click()
    tab.page.keyboard.press("Shift+T")
    tab.page.keyboard.press("Escape")
    tab.page.locator("#splitter").focus()
    for _ in range(4):
        tab.page.keyboard.press("ArrowLeft")
    tab.page.evaluate("document.activeElement.blur()")
    tab.page.mouse.move(460, 20)
    tab.page.wait_for_timeout(500)


def run(tab: Tab, steps: int) -> None:
    """Let the strategy choose so many steps."""
    at = int(tab.known("store.present.step"))
    tab.post("run", steps=steps)
    tab.until("!store.present.running")
    assert int(tab.known("store.present.step")) > at, "nothing more was possible"


def inject(tab: Tab, test: str) -> None:
    """Take the first enabled step that a test over `one` accepts."""
    found = tab.known(f"store.present.enabled.find(one => {test})?.index ?? null")
    if found is not None:
        tab.post("take", index=found)


PICTURES: dict[str, tuple[Callable[[Tab], None], str]] = {
    "demo.png": (main_page, "light"),
    "demo-violation.png": (violation, "light"),
    "demo-tour.png": (tour, "dark"),
    "demo-late-end.png": (late_end, "light"),
}


def make(folder: Path) -> None:
    """Write the pictures."""
    with served() as (address, _), browser() as started:
        for name, (scene, scheme) in PICTURES.items():
            context: Any = started.new_context(viewport={"width": 1280, "height": 800}, color_scheme=scheme)
            tab = Tab(context.new_page(), address)
            scene(tab)
            tab.page.wait_for_timeout(400)
            tab.page.screenshot(path=folder / name)
            print(f"{folder / name}: {(folder / name).stat().st_size // 1024} KB")
            context.close()


if __name__ == "__main__":
    why_not = lacking()
    if why_not is not None:
        print(why_not, file=sys.stderr)
        sys.exit(2)
    make(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE)
