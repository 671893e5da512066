"""The page of what the trial found, written from stored trails, figures and decisions.

tests/data/findings/ has a trail of each release, client, property and error code, `trial.json` the figures that
`trial.py` writes, and `decided.toml` what was decided by looking at the trails: which finding each of them is, who
published it, and what mends it.
"""

from __future__ import annotations

import json
import textwrap
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from harness.record import Trail, read_trail
from harness.record.files import write_atomically
from kafka_proto.cluster.models import LEVEL

ROOT = Path(__file__).resolve().parents[1]
FINDINGS, PAGE = ROOT / "tests" / "data" / "findings", ROOT / "docs" / "models" / "findings.md"
RELEASES = ("3.5", "3.6", "3.7", "3.9", "4.0", "4.1", "4.2", "4.4")
"""3.5 stands for 2.5 to 3.5; 3.8 is 3.9 and 4.3 is 4.4, as far as transactions go."""
LEVEL_1 = {"client": "java39", LEVEL: "1"}
"""The settings of the column `tv1`: what Java speaks on clusters of that level of `transaction.version`."""
UNDECIDED = "Not decided"


@attrs.frozen
class Finding:
    """What is wrong in some releases with some clients: the same in each of its trails."""

    title: str
    what: str
    """What happens, in sentences."""
    mend: str
    """What ends it, in words."""
    mended: Mapping[str, str]
    """The same as settings of a model, and its `release`."""
    trails: tuple[str, ...]

    def repaired(self, trail: Trail) -> Trail:
        """Return a trail on the model in which this is mended."""
        changes = dict(self.mended)
        release = changes.pop("release", None)
        model = trail.model if release is None else f"kafka/{release}"
        return attrs.evolve(trail, model=model, settings={**trail.settings, **changes})


@attrs.frozen
class FindingStore:
    """The folder of trails, figures and decisions."""

    folder: Path = FINDINGS

    def decided(self) -> list[Finding]:
        """Return the findings, in their order."""
        path = self.folder / "decided.toml"
        read = tomllib.loads(path.read_text(encoding="utf-8"))["finding"] if path.exists() else []
        return [Finding(**{**one, "trails": tuple(one["trails"])}) for one in read]

    def figures(self) -> dict[str, Any]:
        """Return what the trial measured: `rows` and `trails`, by name."""
        path = self.folder / "trial.json"
        found: dict[str, Any] = {"rows": {}, "trails": {}}
        return json.loads(path.read_text(encoding="utf-8")) if path.exists() else found

    def save(self, figures: Mapping[str, Any]) -> None:
        """Write the figures."""
        self.folder.mkdir(parents=True, exist_ok=True)
        text = json.dumps(figures, ensure_ascii=False, sort_keys=True, indent=1)
        write_atomically(self.folder / "trial.json", text.split("\n"))

    def path(self, name: str) -> Path:
        return self.folder / f"{name}.trail.jsonl"

    def trail(self, name: str) -> Trail:
        return read_trail(self.path(name))

    def page(self) -> str:
        """Return the page."""
        findings, measured = self.decided(), self.figures()
        rows, known = measured["rows"], measured["trails"]
        parts = [INTRODUCTION.format(
            runs=f"{sum(row.get('runs', 0) for row in rows.values()):,}",
            states=f"{sum(one['states'] for row in rows.values() for one in row.get('searches', {}).values()):,}",
        )]
        parts += [part(finding, {name: (self.trail(name), known[name]) for name in finding.trails})
                  for finding in findings if finding.trails]
        if left := sorted(known.keys() - {name for finding in findings for name in finding.trails}):
            parts.append(f"## {UNDECIDED}\n\n" + "\n".join(f"- `{name}`" for name in left))
        return "\n\n".join([*parts, measures(rows)]) + "\n"


INTRODUCTION = """# Findings

What releases violate as they are: {runs} runs under all faults, and {states} states searched.
`python benchmarks/trial.py` makes this page. 3.5 stands for 2.5 to 3.5, 3.9 for 3.8, 4.4 for 4.3; clients are
[families](../reference/conformance.md#the-versions); tv1 is java39 at `transaction.version` 1.

Tests replay each [trail](../reference/glossary.md#trail); the mend makes its schedule harmless. An asterisk: the
fewest steps, by search."""


Known = tuple[Trail, Mapping[str, Any]]
"""A trail and its figures."""


def part(finding: Finding, known: Mapping[str, Known]) -> str:
    """Return the part of the page about a finding."""
    best: dict[str, tuple[int, bool, str]] = {}
    for name, (trail, found) in known.items():
        mine = (found["steps"], not found["proved"], name)
        best[str(trail.violates)] = min(best.get(str(trail.violates), mine), mine)
    shortest = [f"`{violated}` in {steps}{'' if unproved else '*'}"
                for violated, (steps, unproved, _) in sorted(best.items())]
    where = FINDINGS.relative_to(ROOT).as_posix()
    return "\n".join([
        f"## {finding.title}", "", finding.what, "",
        wrapped(f"- {', '.join(shortest)} steps; {'; '.join(places([trail for trail, _ in known.values()]))}", "  "),
        wrapped(f"- Mended: {finding.mend}", "  "),
        f"- `kafka-proto replay {where}/{min(best.values())[-1]}.trail.jsonl`",
    ])


def wrapped(text: str, indent: str = "") -> str:
    """Return a paragraph in lines."""
    return textwrap.fill(text, 120, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def places(trails: Sequence[Trail]) -> Iterator[str]:
    """Yield the releases of some trails, those with the same clients together, with these."""
    releases: dict[str, set[str]] = {}
    for trail in trails:
        releases.setdefault(client_of(trail), set()).add(trail.model.partition("/")[2])
    clients: dict[tuple[str, ...], list[str]] = {}
    for client, found in sorted(releases.items()):
        clients.setdefault(tuple(sorted(found, key=order)), []).append(client)
    for some, those in sorted(clients.items(), key=lambda item: (-len(item[0]), item)):
        yield f"{spans(some)} ({', '.join(those)})"


def client_of(trail: Trail) -> str:
    """Return the column that a trail is of."""
    return "tv1" if LEVEL_1.items() <= trail.settings.items() else trail.settings["client"]


def spans(some: Sequence[str]) -> str:
    """Return releases, in their order, with those that follow one another as `3.5 to 3.9`."""
    parts: list[list[str]] = []
    for release in some:
        if parts and parts[-1][-1] in RELEASES[:-1] and RELEASES[RELEASES.index(parts[-1][-1]) + 1] == release:
            parts[-1].append(release)
        else:
            parts.append([release])
    return ", ".join(part[0] if len(part) == 1 else f"{part[0]} to {part[-1]}" for part in parts)


def order(release: str) -> tuple[int, ...]:
    return tuple(int(number) for number in release.split("."))


def measures(rows: Mapping[str, Any]) -> str:
    """Return the tables of what was run and searched: a line for each release, a column for each client."""
    cells: dict[tuple[str, str], list[tuple[str, Mapping[str, Any]]]] = {}
    for name, row in sorted(rows.items()):
        release, client, log = name.split(" ")
        cells.setdefault((release, client), []).append((log, row))
    clients = sorted({client for _, client in cells}, key=lambda client: (sum(c == client for _, c in cells), client))
    legend: dict[str, str] = {}
    alike: dict[str, list[str]] = {}
    for release in sorted({release for release, _ in cells}, key=order):
        found = [told(cells.get((release, client), []), legend) for client in clients]
        alike.setdefault(" | ".join(found), []).append(release)
    lines = [f"| {spans(some)} | {found} |" for found, some in alike.items()]
    known = "; ".join(f"{letter}: {bounds}" for bounds, letter in legend.items())
    made: dict[str, list[int]] = {}
    for log, row in (item for some in cells.values() for item in some):
        if "runs" in row:
            made.setdefault(log, []).append(row["runs"])
    if left := [name for name, row in sorted(rows.items()) if "runs" not in row]:
        known += f"; not run: {', '.join(left)}"
    runs = " + ".join(f"{min(made[log]):,}" for log in sorted(made))
    return "\n".join([
        "## Runs and searches", "", wrapped(TABLE.format(runs=runs, known=known)), "", f"| | {' | '.join(clients)} |",
        f"|{'---|' * (1 + len(clients))}", *lines,
    ])


TABLE = """At least {runs} runs each, on logs of one broker + replicated. The largest complete searches,
in states, with one producer, partition, record. {known}."""


def told(logs: Sequence[tuple[str, Mapping[str, Any]]], legend: dict[str, str]) -> str:
    """Return the largest search on each log, its bounds as a letter."""
    found = [max((one["states"], bounds) for bounds, one in row["searches"].items())
             for _, row in logs if "searches" in row]
    states = (f"{count:,}{legend.setdefault(bounds, chr(ord('a') + len(legend)))}" for count, bounds in found)
    return "+".join(states)
