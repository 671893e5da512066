"""Make the pictures of the demo that README and docs show: the main page, a violation, a tour, sessions with records.

    python docs/screenshots.py [FOLDER]            # into docs/pictures, or another folder
    python docs/screenshots.py --looks FOLDER      # all of them, and the first page, in three sizes, light and dark

Each comes from a session of its own, stepped by the same choices
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


def acks(tab: Tab) -> None:
    """A session of real clients: with acks=1 the leader alone has a record, and crashes."""
    tab.until("store.present.step >= 60")
    tab.post("rewind", to=13)
    tab.page.keyboard.press("Shift+T")
    tab.page.keyboard.press("Escape")
    tab.page.locator("#splitter").focus()
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


PICTURES: dict[str, tuple[Callable[[Tab], None], str, int]] = {
    "demo.png": (main_page, "light", 800),
    "demo-violation.png": (violation, "light", 800),
    "demo-tour.png": (tour, "dark", 800),
    "demo-late-end.png": (late_end, "light", 900),
    "demo-acks.png": (acks, "light", 560),
}
"""The scene of each, its theme and its height."""
OPENED = {"demo-acks.png": HERE / "examples" / "gateway" / "acks-1.trail.jsonl"}
"""What is opened for a scene, if it is not chosen in it."""


SIZES = ((900, 700), (1280, 800), (1920, 1080))


def looks(folder: Path) -> None:
    """Write every scene and the first page in all sizes and themes, for somebody to look at."""
    scenes = {"demo-first.png": lambda tab: tab.post("tour", name="commit"),
              **{name: scene for name, (scene, *_) in PICTURES.items()}}
    for name, scene in scenes.items():
        for width, height in SIZES:
            for scheme in ("light", "dark"):
                path = folder / f"{name.removesuffix('.png')}-{width}x{height}-{scheme}.png"
                take(path, scene, scheme, height, width)


def take(path: Path, scene: Callable[[Tab], Any], scheme: str, height: int, width: int = 1280) -> None:
    """Write one picture, of a session of its own."""
    opened = [file for name, file in OPENED.items() if path.stem.startswith(name.removesuffix(".png"))]
    with served(*opened) as (address, _), browser() as started:
        context: Any = started.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
        tab = Tab(context.new_page(), address)
        scene(tab)
        tab.page.wait_for_timeout(400)
        tab.page.screenshot(path=path)
        print(f"{path}: {path.stat().st_size // 1024} KB")
        context.close()


if __name__ == "__main__":
    why_not = lacking()
    if why_not is not None:
        print(why_not, file=sys.stderr)
        sys.exit(2)
    if sys.argv[1:2] == ["--looks"]:
        looks(Path(sys.argv[2]))
    else:
        for name, (scene, scheme, height) in PICTURES.items():
            take(Path(sys.argv[1] if len(sys.argv) > 1 else HERE / "pictures", name), scene, scheme, height)
