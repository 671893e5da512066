"""What the browser tests do with a page before they look at it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from support.demo.browser import Tab

NINE: Mapping[str, Any] = {
    "what": "kafka/4.0", "sizes": {"producers": 3, "brokers": 5}, "settings": {"log": "replicated"},
    "budget": "generous",
}
HEADS = "() => [...document.querySelectorAll('#heads [data-lane]')].map(one => one.dataset.lane)"

STANDING = """() => {
  const all = [...document.querySelectorAll('#heads [data-lane]')];
  const places = all.map(one => one.getBoundingClientRect().x);
  return all.length && places.every((x, n) => !n || places[n - 1] <= x) ? all.map(one => one.dataset.lane) : null;
}"""


def nine(tab: Tab, steps: int, faults: bool = False, what: Mapping[str, Any] = NINE) -> None:
    """Open nine actors, or what is said, and let chance take steps."""
    tab.post("open", **what)
    tab.post("strategy", strategy="random", seed=1, inject_faults=faults, speed=0)
    tab.page.set_default_timeout(30_000)
    tab.post("run", steps=steps)
    tab.at(steps)


def on_tour(tab: Tab, name: str, step: int) -> None:
    tab.post("tour", name=name)
    tab.post("forward", to=step)
    tab.at(step)


def heads(tab: Tab) -> list[str]:
    """Return the lifelines from left to right, once they stand so: names and places are read at one moment."""
    found: list[str] = tab.page.wait_for_function(STANDING).json_value()
    return found
