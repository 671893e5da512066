"""The witnesses of a report: trails written beside the page, and their sequence diagrams for the page itself."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import attrs

from harness.campaign.clusters import ViolationCluster, trail_of
from harness.campaign.report.summary import Poisoned, Summary
from harness.model import Refusal
from harness.record.files import write_atomically
from harness.render import svg
from harness.render.timeline import timeline_of
from harness.simulate.trails.replay import replayed_history

MOST_DRAWN = 150
"""Steps of a run that is drawn on the page; `kafka-proto show` draws longer ones."""
MOST_DIAGRAMS = 24
"""Diagrams on a page."""


@attrs.frozen
class Witness:
    """A trail beside the page, and what the page shows of it."""

    trail: str
    """Where the trail is, as seen from the page's folder; empty, as are the commands, if there is no trail."""
    replay: str
    show: str
    diagram: str | None
    """SVG, or None if the run is too long, or does not fit this code any more."""


def write_witnesses(summary: Summary, page: Path) -> tuple[list[Witness], list[Witness]]:
    """Write the trails of clusters and of errors into a folder beside a page, and return them in order. Refusal."""
    folder = f"{page.stem}-witnesses"
    numbers: dict[str, int] = {}
    found: tuple[list[Witness], list[Witness]] = ([], [])
    items: tuple[ViolationCluster | Poisoned, ...] = (*summary.clusters, *summary.poisoned)
    for item in items:
        is_cluster = isinstance(item, ViolationCluster)
        violated = item.property if isinstance(item, ViolationCluster) else "error"
        numbers[item.what] = numbers.get(item.what, 0) + 1
        name = re.sub(r"[^A-Za-z0-9._-]", "-", f"{item.what}-{numbers[item.what]}-{violated}")
        if not item.trail:
            found[0 if is_cluster else 1].append(Witness("", "", "", None))
            continue
        inside = f"{folder}/{name}.trail.jsonl"
        write_atomically(page.parent / inside, item.trail.splitlines())
        drawn = _diagram(item) if isinstance(item, ViolationCluster) and len(found[0]) < MOST_DIAGRAMS else None
        path = shlex.quote(inside)
        witness = Witness(inside, f"kafka-proto replay {path}", f"kafka-proto show {path}", drawn)
        found[0 if is_cluster else 1].append(witness)
    return found


def _diagram(cluster: ViolationCluster) -> str | None:
    """Return the sequence diagram of a witness for a page."""
    if not cluster.replays:
        return None
    trail = trail_of(cluster.trail)
    if len(trail.choices) > MOST_DRAWN:
        return None
    try:
        model, history = replayed_history(trail)
    except Refusal:  # the clusters were found by the code that made the runs, which this one is not
        return None
    drawn = svg.write(timeline_of(history, model, trail.fair_from), inside=True)
    return drawn.replace(' xmlns="http://www.w3.org/2000/svg"', "", 1)
