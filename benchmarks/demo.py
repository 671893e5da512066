"""How quick the demo's page is: from a click to the drawn step, and what a long session costs the server.

    python benchmarks/demo.py [--model NAME] [--size NAME=N ...] [--clicks N]

Chromium without a window, 1280x800, shows nine actors and so many random steps, then clicks an enabled step again and
again. Each time is from the click until the frame that shows the new step is handed to the screen: request, step,
judgement of properties, event, drawing. The page's CPU is what its main thread does for a click and the undo after it.
Memory is the resident size of the server's process.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from support.demo.browser import Tab, browser, lacking, served

NINE = ("producers=3", "brokers=5")
"""With the controller these are nine actors of `rolling-restart`, whose logs are replicated."""
GOALS = {250: 50, 3_000: 100}
"""Steps of the session, and the milliseconds that a click may take there."""
LONGEST = 10_000
CLICK = """
() => new Promise((done, failed) => {
  const root = document.documentElement;
  const chip = document.querySelector('#present .chip:not(.more)');
  if (!chip) { failed(new Error('nothing is enabled')); return; }
  const step = Number(root.dataset.step) + 1;
  const begin = performance.now();
  const seen = new MutationObserver(() => {
    if (!root.dataset.drawn || Number(root.dataset.step) !== step) return;
    seen.disconnect();
    requestAnimationFrame(() => setTimeout(() => done(performance.now() - begin)));
  });
  seen.observe(root, { attributes: true });
  chip.click();
})
"""


def memory_mb(pid: int) -> float:
    """Return the resident size of a process in megabytes."""
    return int(subprocess.run(["ps", "-o", "rss=", "-p", str(pid)], capture_output=True, text=True).stdout) / 1024


def grown(tab: Tab, steps: int) -> None:
    """Let the session run at random until it has so many steps."""
    missing = steps - int(tab.known("store.present.step"))
    tab.page.set_default_timeout(600_000)
    tab.post("run", steps=missing)
    tab.at(steps)


def busy_ms(session: Any) -> float:
    """Return how long the page's main thread has worked so far, in milliseconds."""
    metrics = {one["name"]: one["value"] for one in session.send("Performance.getMetrics")["metrics"]}
    return float(metrics["TaskDuration"]) * 1000


def clicked(tab: Tab, clicks: int) -> list[float]:
    """Return the milliseconds of so many clicks; each begins at the same step, with something enabled there."""
    at = int(tab.known("store.present.step"))
    while not tab.page.locator("#present .chip").count():
        at -= 1
        tab.post("rewind", to=at)
    times = []
    for _ in range(clicks):
        times.append(float(tab.page.evaluate(CLICK)))
        tab.post("undo")
        tab.at(at)
    return times


def measure(model: str, sizes: Sequence[str], clicks: int) -> None:
    """Print a line for each length of the session."""
    arguments = [word for size in sizes for word in ("--size", size)]
    with served(model, *arguments, "--faults", "generous") as (address, process), browser() as started:
        tab = Tab(started.new_page(viewport={"width": 1280, "height": 800}), address)
        session = tab.page.context.new_cdp_session(tab.page)
        session.send("Performance.enable")
        tab.post("strategy", strategy="random", seed=1, inject_faults=True, speed=0)
        print(f"{model}: {memory_mb(process.pid):.0f} MB of server at the start")
        print(f"{'steps':>7}{'median ms':>11}{'p95 ms':>9}{'goal ms':>9}{'page CPU ms':>13}{'server MB':>11}")
        for steps in (*GOALS, LONGEST):
            grown(tab, steps)
            begun = busy_ms(session)
            times = sorted(clicked(tab, clicks))
            work = (busy_ms(session) - begun) / clicks
            worst = times[min(len(times) - 1, int(len(times) * 0.95))]
            goal = str(GOALS.get(steps, ""))
            print(f"{steps:>7,}{statistics.median(times):>11.1f}{worst:>9.1f}{goal:>9}{work:>13.1f}"
                  f"{memory_mb(process.pid):>11.0f}", flush=True)
        if tab.troubles:
            print("the page complained: " + "; ".join(tab.troubles), file=sys.stderr)
            sys.exit(1)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--model", default="rolling-restart", help="what takes faults (default: rolling-restart)")
    parser.add_argument("--size", action="append", help="a size of the model, NAME=N (default: nine actors)")
    parser.add_argument("--clicks", type=int, default=40, help="clicks per length (default: 40)")
    given = parser.parse_args()
    why_not = lacking()
    if why_not is not None:
        print(why_not, file=sys.stderr)
        sys.exit(2)
    sizes = given.size or (NINE if given.model == "rolling-restart" else ())
    measure(given.model, sizes, given.clicks)


if __name__ == "__main__":
    main()
