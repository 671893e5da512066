"""The process in which a wrong edit lives: hunt, recordings, unit tests, up to the first that tells it from the source.

    python survey_process.py ROOT < ASKED

ASKED is a JSON object: `learn` names scenarios that the right source is to be learned from; else `known` has what was
learned, and `situations` and `tests` are what comes after the hunt. Prints lines of JSON: each stage as it begins, then
what was found. A stage that takes more than `STAGE_S` seconds of processor time ends the process.
"""

from __future__ import annotations

import json
import resource
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from time import process_time
from typing import Any

import attrs

from harness.memo.interning import long_lived
from harness.model import find_scenario, model_of
from harness.simulate.hunting.tasks import finding
from harness.simulate.runs.plan import plan_of
from harness.simulate.runs.protocol_errors import RAISED, sentence
from harness.simulate.runs.session import run_plain
from harness.simulate.states.tables import Tables
from harness.simulate.strategies.strategy import PctStrategy, RandomStrategy
from harness.verify.spec_holding import held

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # run as a program

from support.mutants import transaction_catchers

BUDGET: Mapping[str, int] = {"runs": 8, "replicated": 3, "first": 2, "flawed": 300}
"""Runs of a row that expects no violation, of one on replicated logs, of each before any has more; and the most runs of
a flawed row."""
FOUND = 16
"""A flawed row counts if so many of its runs find the flaw; a mutant that hides it is given as many runs."""
WITNESSED = 8
"""A witness counts if so many of the right source's runs reach it."""
STAGE_S = 90
MEMORY = 4_000_000_000
FILES = {"kafka": 1, "more": 1, "messages": 1, "clusters": 1, "own_clusters": 1, "drawn": 4, "held": 4,
         "produce": 8, "releases": 8}
"""Files of recordings, with how many records there are for one that is played."""
WIRE = ("test_situations_are_equal_over_the_wire", "gateway/test_situations.py")


@attrs.frozen
class Known:
    """What the right source shows in the runs of a scenario."""

    runs: int
    """Runs that none violates; of a flawed row, as many as find its flaw `FOUND` times, or 0 if it does not count."""
    witnesses: tuple[str, ...] = ()
    """What many of the runs reach."""


@attrs.frozen
class Red:
    """A finding that the right source does not have."""

    where: str
    what: str


class Row:
    """The runs of a scenario, one after the other, by both strategies in turn."""

    def __init__(self, name: str) -> None:
        scenario = find_scenario(name)
        assert scenario is not None, name
        self.name, self.scenario, self.done = name, scenario, 0
        self.reached: Counter[str] = Counter()
        self.plan = plan_of(scenario)
        self.tables = Tables(model_of(scenario))
        self.holding = held(self.tables) if scenario.expected is None else None

    def runs(self, upto: int) -> Iterator[tuple[str | None, str | None]]:
        """Make further runs, up to so many in all; yield what each violates, if anything, and why."""
        while self.done < upto:
            strategy = (RandomStrategy, PctStrategy)[self.done % 2](self.done // 2)
            self.done += 1
            if self.holding is None:
                run, departs = run_plain(self.tables, self.plan, strategy), None
            else:
                self.holding.make_room()
                run, departs = self.holding.run(self.plan, strategy)
            self.reached.update(run.witnessed)
            yield finding(run, self.scenario, departs)


def share(name: str, budget: Mapping[str, int] = BUDGET) -> int:
    """Return how many runs a row gets."""
    scenario = find_scenario(name)
    assert scenario is not None, name
    if scenario.expected is not None:
        return budget["flawed"]
    return budget["replicated" if scenario.settings.get("log") == "replicated" else "runs"]


def learned(name: str, budget: Mapping[str, int] = BUDGET) -> Known:
    """Make a row's runs with the right source. AssertionError if one violates what it should not."""
    row, found = Row(name), 0
    for violated, reason in row.runs(share(name, budget)):
        assert violated in (None, row.scenario.expected), (name, violated, reason)
        found += violated is not None
        if found == FOUND:
            return Known(row.done)
    if row.scenario.expected is not None:
        return Known(0)
    often = (witness for witness, times in row.reached.items() if times >= WITNESSED)
    return Known(row.done, tuple(sorted(set(often) & set(row.scenario.witnesses))))


def hunted(known: Mapping[str, Known], budget: Mapping[str, int] = BUDGET) -> Red | None:
    """Return the first row in which something else is found than with the right source.

    Each row has a few runs before any has all, those on replicated logs last.
    """
    rows: dict[str, Row] = {}
    names = sorted(known, key=lambda name: (share(name, budget) == budget["replicated"], name))
    for most in (budget["first"], max(budget.values())):
        for name in names:
            try:
                row = rows[name] = rows.get(name) or Row(name)
                red = _flaw_gone(row, known[name]) if row.scenario.expected else _broken(row, known[name], most)
            except Exception as error:  # not even a run could be made, or the spec's code raised
                red = f"{RAISED}: {sentence(error)}"
            if red:
                return Red(name, red)
    for name, row in rows.items():
        if lost := set(known[name].witnesses) - set(row.reached):
            return Red(name, f"no run reaches {min(lost)}")
    return None


def _broken(row: Row, known: Known, most: int) -> str:
    for violated, reason in row.runs(min(most, known.runs)):
        if violated is not None:
            return f"{violated}: {reason}"
    return ""


def _flaw_gone(row: Row, known: Known) -> str:
    if row.done or not known.runs:
        return ""
    for violated, reason in row.runs(known.runs):
        if violated is not None:
            return "" if violated == row.scenario.expected else f"{violated}: {reason}"
    return f"{row.scenario.expected} is violated no more"


def recorded(situations: str) -> Red | None:
    """Return the first recorded situation that is answered otherwise, in process or over the `wire`."""
    if situations == "wire":
        found = transaction_catchers.tested(WIRE[0], [WIRE[1]])
        return Red(found, "over the wire") if found else None
    for file, each in FILES.items():
        if found := transaction_catchers.conformance("", f"{file}.json.gz", each):
            where, _, what = found.partition(": ")
            return Red(where, what)
    return None


def unit_tested(tests: Iterable[str], first: str = "") -> Red | None:
    """Return the first unit test that fails; the one that a table names comes first."""
    found = transaction_catchers.tested(first) if first else ""
    found = found or transaction_catchers.tested("", tests)
    return Red(found, "") if found else None


def stages(asked: Mapping[str, Any]) -> dict[str, Callable[[], Red | None]]:
    """Return what judges a mutant, in order."""
    known = {name: Known(each["runs"], tuple(each["witnesses"])) for name, each in asked["known"].items()}
    found: dict[str, Callable[[], Red | None]] = {}
    if known:
        found["hunt"] = lambda: hunted(known, asked["budget"])
    if asked["situations"]:
        found["conformance"] = lambda: recorded(asked["situations"])
    found["test"] = lambda: unit_tested(asked["tests"], asked["first"])
    return found


def judged(by: Mapping[str, Callable[[], Red | None]]) -> dict[str, Any] | None:
    """Return what the first stage finds that finds something; say which one it is as it begins."""
    for stage, judge in by.items():
        print(json.dumps({"stage": stage}), flush=True)
        resource.setrlimit(resource.RLIMIT_CPU, (int(process_time()) + STAGE_S, resource.RLIM_INFINITY))
        try:
            red = judge()
        except Exception as error:
            red = Red("", f"{RAISED}: {sentence(error)}")
        if red is not None:
            return attrs.asdict(red)
    return None


def main(root: str) -> None:
    """Judge the packages below a folder, or learn from them."""
    import compaction
    import kafka_proto

    assert all(str(package.__file__).startswith(root) for package in (compaction, kafka_proto)), root
    asked = json.load(sys.stdin)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    with long_lived():
        for name in asked.get("learn", ()):
            print(json.dumps({"row": name, **attrs.asdict(learned(name, asked["budget"]))}), flush=True)
        if "known" in asked:
            print(json.dumps({"found": judged(stages(asked)), "cpu_s": round(process_time(), 1)}))


if __name__ == "__main__":
    main(*sys.argv[1:])
