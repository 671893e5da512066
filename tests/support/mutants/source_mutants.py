"""Wrong edits of the protocols' source: applied to a copy, run in a process of its own, judged by the right source.

They are in tables, one a line, with what catches each: `tests/data/source_mutants.jsonl` has what a tired author could
have written, `tests/data/transaction_mutants.jsonl` edits of every decision of the transaction roles.

Spec and actors share their decisions, so a wrong decision would refine itself. Therefore the mutant only records: its
histories are judged here, by the packages as they are, as `kafka-proto verify` judges files from anywhere. No protocol
code knows of this.
"""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

from harness.verify.judge import FileJudge, JudgedFile
from support.mutants.campaigns import SEARCHES
from support.paths import DATA, ROOT, SUPPORT

PACKAGES = ("kafka_proto", "compaction")
REFINEMENT = "refinement"
PATIENCE_S = 300
COUNTED = ("verdict", "complete", "initial", "distinct", "generated", "depth", "actions")
HISTORY = """
import sys
from pathlib import Path
from harness.record import read_trail
from harness.simulate.hunting.hunt import write_run
path = Path(sys.argv[1])
print(write_run(read_trail(path), path)[0])
"""
"""Writes the history of a trail beside it."""
COMMAND = """
import sys, compaction, kafka_proto
from harness.cli import main
root = sys.argv.pop(1)
assert all(package.__file__.startswith(root) for package in (compaction, kafka_proto)), root
main()
"""
"""The command line, with the packages below the folder that is its first argument."""


@attrs.frozen
class Mutant:
    """A wrong edit, and what catches it: a row of a table."""

    name: str
    file: str
    """Path below the root of the source."""
    old: str
    """Text that the file has exactly once."""
    new: str
    by: str = ""
    """What catches it: a property that is violated, `refinement`, `conformance`, `test`, `campaign`; `hunted` if a row
    of the hunt's board turns red though no property fails; `redundant` if nothing can."""
    where: str = ""
    """The campaign, search, situation, test, scenario or row of the board that shows it; or the reason why none can."""
    runs: int = 0
    """Runs within which it is caught."""
    search: str = ""
    """A search of the spec in which the redundant guard is asked. No runs are made where the spec alone has it."""


def table(name: str) -> dict[str, Mutant]:
    """Return the wrong edits of a table of `tests/data` by name. Raises ValueError for a name that is there twice."""
    lines = (DATA / f"{name}_mutants.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [Mutant(**json.loads(line)) for line in lines]
    if len(found := {row.name: row for row in rows}) != len(rows):
        raise ValueError(f"a name is there twice in {name}")
    return found


def assert_possible(rows: Iterable[Mutant]) -> None:
    """Each edit can be made today, and leaves right Python."""
    for row in rows:
        text = (ROOT / row.file).read_text(encoding="utf-8")
        assert text.count(row.old) == 1, row.name
        assert row.old != row.new, row.name
        assert not row.file.endswith(".py") or ast.parse(text.replace(row.old, row.new)), row.name


def sampled(names: Iterable[str], sample: Iterable[str]) -> list[Any]:
    """Return names as parameters of a test: those of the sample are run always, all others by the large tests."""
    return [pytest.param(name, marks=() if name in sample else pytest.mark.large) for name in names]


@attrs.frozen
class Finding:
    """What shows that a mutant is wrong."""

    by: str
    """The property, or `refinement`, or `exception` where the mutant's code failed."""
    what: str
    """The reason of the property; or the step, the nearest action of the spec and the guard that fails."""
    campaign: str
    seed: int


class Moved(Exception):
    """The text to be edited is not in the source exactly once: the source has moved on, and the mutant should too."""


def mutated(mutant: Mutant, folder: Path) -> Path:
    """Copy the protocols' packages into a folder, with the wrong edit. Raises Moved."""
    for package in PACKAGES:
        shutil.copytree(ROOT / package, folder / package, ignore=shutil.ignore_patterns("__pycache__", "recorded"))
    (folder / mutant.file).write_text(edited(mutant), encoding="utf-8")
    return folder


def edited(mutant: Mutant) -> str:
    """Return the text of a mutant's file with the wrong edit. Raises Moved."""
    text = (ROOT / mutant.file).read_text(encoding="utf-8")
    if text.count(mutant.old) != 1:
        raise Moved(f"{mutant.name}: {mutant.file} holds the text to edit {text.count(mutant.old)} times, not once: "
                    f"{mutant.old!r}; say in the table what stands there now")
    return text.replace(mutant.old, mutant.new)


def environment(root: Path) -> dict[str, str]:
    """Return the environment in which Python finds the packages below `root` first."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join((str(root), str(ROOT / "tests"), str(ROOT))),
            "PYTHONDONTWRITEBYTECODE": "1"}


def python(root: Path, *arguments: object) -> str:
    """Run Python with the packages below `root` and return what it prints."""
    done = subprocess.run([sys.executable, *map(str, arguments)], cwd=root, env=environment(root), capture_output=True,
                          text=True, timeout=PATIENCE_S, check=False)
    if done.returncode not in (0, 1) or not done.stdout:
        raise RuntimeError(done.stderr[-2000:])
    return done.stdout


def record(root: Path, out: Path, campaigns: Iterable[str], seeds: int) -> dict[str, Any]:
    """Record runs of campaigns with the packages below `root`, and make sure that it was those."""
    seen = json.loads(python(root, SUPPORT / "mutants" / "record_runs.py", out, seeds, *campaigns))
    assert seen["sources"] == [str(root)] * len(PACKAGES), seen["sources"]
    campaigns_seen: dict[str, Any] = seen["campaigns"]
    return campaigns_seen


def findings(judge: FileJudge, folder: Path, seen: dict[str, Any], campaign: str) -> Iterator[Finding]:
    """Judge the recorded runs of a campaign by the right source, in order, and yield what is wrong with them."""
    for seed in range(seen["runs"]):
        run = judge.file(folder / campaign / f"{seed:04}.history.jsonl")
        yield from (Finding(by, what, campaign, seed) for by, what in wrong_with(run))
    for name in seen["lasting"]:  # about how a run ends, which a history does not show
        yield Finding(name, seen["violated"][name], campaign, seen["runs"] - 1)
    if seen["raised"]:
        yield Finding("exception", seen["raised"], campaign, seen["runs"])


def wrong_with(run: JudgedFile) -> list[tuple[str, str]]:
    """Return the claimed properties that fail and the step that the spec does not allow, the earliest first."""
    wrong = [(broken.step, 0, broken.name, broken.reason) for broken in run.broken if broken.claimed]
    if (why := run.explanation) is not None:
        said = f"{why.label}; nearest in the spec: {why.nearest}; {' '.join(why.why)}"
        wrong.append((why.step, 1, REFINEMENT, said))
    return [(by, what) for _, _, by, what in sorted(wrong)]


def searched(root: Path, search: str) -> dict[str, Any]:
    """Search a model with the packages below `root`; return what TLC would count, and the trails of violations."""
    model, sizes = SEARCHES[search]
    given = [f"--size={name}={n}" for name, n in sizes.items()]
    said = json.loads(python(root, "-c", COMMAND, root, "check", model, "--json", *given))
    return {**{name: said[name] for name in COUNTED}, "trails": [one["trail"] for one in said["violated"]]}


def findings_of_search(judge: FileJudge, root: Path, trails: Iterable[str]) -> Iterator[Finding]:
    """Record what a search has found and judge that by the right source: the properties may share what is wrong."""
    for trail in trails:
        python(root, "-c", HISTORY, trail)
        run = judge.file(root / trail.replace(".trail.", ".history."))
        yield from (Finding(by, what, run.model, 0) for by, what in wrong_with(run))
