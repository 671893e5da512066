"""Searches: every model of `list` at a small size, without reductions and with each, and every exhibit with its twin.

    python tests/support/searches/check_table.py [--write] [--large] [MODEL|SCENARIO ...]

Prints both tables. With --write they go into docs/use/check-a-model.md, results of the exhibits into `searched.json` of
their packages, which the hunt's board reads. Rows that take long are searched with --large only; what is not searched
stays as it was written. Ends with code 1 where a search finds what is not expected, or does not end as expected.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import re
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import groupby
from pathlib import Path
from typing import Any

import attrs

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from harness.explore.any_model import ORDER, REDUCTIONS
from harness.model import find_scenario, model_specs, systems
from harness.record.search_results import Searched, code_digest, entries_of, write
from support.commands.command_line import call, run
from support.paths import ROOT
from support.searches.check_rows import BOUND, EXHIBITS, ROWS, Exhibit, Row

PAGE = ROOT / "docs" / "use" / "check-a-model.md"
MODELS, PROVED = "### Every model, and what a reduction saves", "### What it proves of the published bugs"
NOTHING, NAMES = "-", ", "
"""A cell without a search, and what stands between the names of a line."""
SEARCHES = {"none": "none", **{name: name for name in (*REDUCTIONS, ORDER)}, "all": "all", "all, order": "all,order"}
"""What `--reduce` is given, by the column of the states."""
COLUMNS = {
    MODELS: ("model", "size and budget", *SEARCHES, "verdict"),
    PROVED: ("bug", "size and budget", "fewest steps", "states of the repaired version"),
}


@attrs.frozen
class Line:
    """A line of a table, and why it is not as expected, if it is not."""

    cells: tuple[str, ...]
    wrong: str = ""

    def __str__(self) -> str:
        return f"| {' | '.join(self.cells)} |"


def check(*arguments: str, apart: bool) -> Mapping[str, Any]:
    """Return what `kafka-proto check` tells of a search in JSON, or why it refuses.

    What takes long takes memory, and is searched in a process of its own, which gives all of it back.
    """
    with tempfile.TemporaryDirectory() as out:
        done = (run if apart else call)("check", *arguments, "--json", "--out", out)
    return done.json if done.out else {"refused": done.err}


def model_line(row: Row) -> Line:
    """Search a row without reductions, with each that the model has something for, and with several of them."""
    found = {name: result for name, chosen in SEARCHES.items() if (result := search(row, chosen))}
    ended = [result for result in found.values() if result["complete"]]
    verdicts = {tuple(sorted(each["property"] for each in result["violated"])) for result in ended}
    states = [states_of(found[name]) if name in found else NOTHING for name in SEARCHES]
    verdict = ", ".join(row.violates) or "ok" if ended else f"not ended by {BOUND:,} states"
    wrong = f"finds {sorted(verdicts)}, expected {row.violates}" if verdicts - {tuple(sorted(row.violates))} else ""
    return Line((f"`{row.model}`", row.within, *states, verdict), wrong)


def search(row: Row, reduce: str) -> Mapping[str, Any]:
    """Search a row up to the bound; nothing where the model has nothing for the reduction, or it is refused."""
    bounded = ("--no-stop", "--states", str(BOUND), "--reduce", reduce)
    result = check(*row.arguments, *bounded, apart=row.is_large)
    return result if reduce == "none" or result.get("reductions") else {}


def states_of(result: Mapping[str, Any]) -> str:
    return f"{result['distinct']:,}" if result["complete"] else f"over {BOUND:,}"


def proved(exhibit: Exhibit) -> tuple[Line, tuple[Searched, ...]]:
    """Search an exhibit and its repaired twin at one size and within one budget."""
    twin_name = twin_of(exhibit)
    names = (exhibit.row, twin_name)
    entries = tuple(entry(name, check(name, *exhibit.arguments, apart=exhibit.is_large)) for name in names)
    bad, good = entries
    wrong = [] if (bad.violated, bad.steps) == (exhibit.violates, exhibit.steps) else [
        f"{exhibit.row}: {bad.violated} after {bad.steps} steps, expected {exhibit.violates} after {exhibit.steps}"
    ]
    if good.violated or (good.complete, good.states) != (True, exhibit.states):
        found = f"{good.violated or 'no violation'} in {'all' if good.complete else 'the first'} {good.states:,} states"
        wrong.append(f"{twin_name}: {found}, expected no violation in all {exhibit.states:,}")
    cells = (f"`{exhibit.row}`", exhibit.within, f"{bad.steps}", f"{good.states:,}")
    return Line(cells, "; ".join(wrong)), entries


def entry(scenario: str, result: Mapping[str, Any]) -> Searched:
    """Return what a search of a scenario found as the board reads it."""
    assert "refused" not in result, result
    violated = result["violated"][0] if result["violated"] else None
    whole = result["complete"] or violated is not None
    if violated is None:
        steps = result["depth"] - (1 if whole else 2)
    else:
        steps = violated["length"] - (violated.get("back_to") is None)  # a lasso has the step back, too
    model = result["model"]
    package = next(system.package for system in systems() if any(spec.name == model for spec in system.models))
    return Searched(
        scenario, model, result["sizes"], result["settings"], result["network"], result["faults"], result["timers"],
        tuple(result["reductions"]), tuple(result["checked"]), whole, result["distinct"], steps,
        violated and violated["property"], violated is not None and violated["kind"] != "temporal",
        code_digest(package),
    )


def tables(names: Sequence[str] = (), large: bool = False, processes: int = 1) -> tuple[
    list[Line], list[tuple[Line, tuple[Searched, ...]]]
]:
    """Return both tables, or the rows of some models and scenarios."""
    rows = [row for row in ROWS if (not names or row.model in names) and (large or names or not row.is_large)]
    exhibits = [row for row in EXHIBITS if (not names or row.row in names) and (large or names or not row.is_large)]
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, context, max_tasks_per_child=1) as pool:
        models, found = pool.map(model_line, rows), pool.map(proved, exhibits)
        return [said(line) for line in models], [(said(line), entries) for line, entries in found]


def said(line: Line) -> Line:
    """Print a line, as soon as it is known."""
    print(line, f"NOT EXPECTED: {line.wrong}" if line.wrong else "", flush=True)
    return line


def renewed(page: str, heading: str, lines: Iterable[Line], keys: Sequence[tuple[str, ...]]) -> str:
    """Return a page whose table below a heading has these lines, and of the others those that it had.

    Models in a row with equal cells share a line.
    """
    before, found, after = page.partition(heading)
    head, _, rest = re.split(r"((?:^\|.*\n)+)", after, maxsplit=1, flags=re.MULTILINE)
    columns = COLUMNS[heading]
    known = {key: tuple(cells.get(name, "") for name in columns) for key, cells in cells_of(page, heading).items()}
    known |= {line.cells[:2]: line.cells for line in lines}
    rows = groupby((known[key] for key in keys if key in known), key=lambda cells: cells[1:])
    body = [Line((NAMES.join(name for name, *_ in same), *cells)) for cells, same in rows]
    table = [Line(columns), Line(("---",) * len(columns)), *body]
    return before + found + head + "\n".join(map(str, table)) + "\n" + rest


def cells_of(page: str, heading: str) -> dict[tuple[str, ...], dict[str, str]]:
    """Return the lines of the table below a heading, by name and size, each as its cells by column."""
    (table,) = re.findall(r"((?:^\|.*\n)+)", page.partition(heading)[2].partition("\n#")[0], flags=re.MULTILINE)
    top, _, *lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
    return {
        (name, cells[0]): dict(zip(top, (name, *cells), strict=True))
        for names, *cells in lines for name in names.split(NAMES)
    }


def keep(models: list[Line], found: list[tuple[Line, tuple[Searched, ...]]]) -> None:
    """Write what was searched into the page and the packages' files."""
    page = PAGE.read_text(encoding="utf-8")
    page = renewed(page, MODELS, models, [(f"`{row.model}`", row.within) for row in ROWS])
    page = renewed(page, PROVED, [line for line, _ in found], [(f"`{row.row}`", row.within) for row in EXHIBITS])
    PAGE.write_text(page, encoding="utf-8")
    made = {entry.scenario: entry for _, entries in found for entry in entries}
    rows = [scenario for row in EXHIBITS for scenario in (row.row, twin_of(row))]
    for system in systems():
        if system.package:
            mine = {row.name for row in system.scenarios}
            known = {**entries_of(system.package), **made}
            write(system.package, [known[name] for name in rows if name in known and name in mine])


def twin_of(exhibit: Exhibit) -> str:
    scenario = find_scenario(exhibit.row)
    assert scenario is not None and scenario.repaired is not None, exhibit.row
    return scenario.repaired


def main() -> int:
    """Search, print the tables, and write them where that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="models and scenarios (default: all)")
    parser.add_argument("--write", action="store_true", help="into the page and the packages' files")
    parser.add_argument("--large", action="store_true", help="what takes long as well")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    given = parser.parse_args()
    missing = {spec.name for spec in model_specs()} - {row.model for row in ROWS}
    models, found = tables(given.names, given.large, given.processes)
    for name in sorted(missing):
        print(f"no row for {name}", file=sys.stderr)
    if given.write:
        keep(models, found)
    return 1 if missing or any(line.wrong for line in (*models, *(line for line, _ in found))) else 0


if __name__ == "__main__":
    sys.exit(main())
