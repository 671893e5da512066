"""The scoreboard of a hunt as lines of text: a table of the scenarios, what was found, and what that proves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import attrs

from harness.model import Checked, find_scenario
from harness.record.search_results import Searched
from harness.record.wording import counted, in_steps, wrapped
from harness.simulate.hunting.rows import ScoreboardRow
from harness.simulate.hunting.tasks import REFINEMENT
from harness.simulate.runs.protocol_errors import RAISED

PLAIN_WIDTH = 80
MARKS = {True: "ok", False: "NO"}
Mark = Callable[[bool], str]
FOUND_BY = 17
"""Columns of a strategy's name, and the run that found something."""
WITHOUT_SPEC = "no spec to follow"
SILENT = (
    "Runs without a violation are no proof. If one of N/3 runs violated something, N runs would have found it with a "
    "probability of 95 %. A repaired scenario's runs would have found its flaw as often as its row says. Runs that "
    "follow a spec were checked against it step by step, the others against the properties only."
)
SEARCHED = (
    "searched: kafka-proto check visited every state with this version of the code. No order of steps violates a "
    "claim at the scenario's size, faults and timers. Larger sizes are not covered."
)
MORE = "--thorough makes 20 times the runs that each finding took; kafka-proto check visits every state."


def _mark(as_expected: bool) -> str:
    return MARKS[as_expected]


@attrs.frozen
class Shape:
    """How wide the table's columns are, which depends on the scenarios that are hunted."""

    name: int
    spec: bool
    """Whether there is a column for the length of a flaw in its spec."""
    strategies: tuple[str, ...]
    """A column each has the run that found it; without any, one column has the strategy, too."""

    @classmethod
    def of(cls, found: Mapping[str, Checked | None], strategies: Iterable[str]) -> Shape:
        """Return the shape of a table of these scenarios, with the flaw that each names in a spec."""
        width, has_spec = max(map(len, ("scenario", *found))), any(checked is not None for checked in found.values())
        return cls(width, has_spec, tuple(strategies))

    def head(self) -> list[str]:
        """Return the lines above the table."""
        if not self.strategies:
            return [f"    {'scenario':{self.name}}   runs{'found by run':>{FOUND_BY}}      steps{'  spec' * self.spec}"]
        over = "found after (runs)".center(sum(map(_column, self.strategies)))
        heads = "".join(strategy.rjust(_column(strategy)) for strategy in self.strategies)
        return [f"{'':{self.name + 11}}{over}".rstrip(),
                f"    {'scenario':{self.name}}   runs{heads}      steps{'  spec' * self.spec}"]

    def row(self, row: ScoreboardRow, width: int = PLAIN_WIDTH, mark: Mark = _mark) -> list[str]:
        """Return the lines of a row."""
        line = f"{mark(row.as_expected)}  {row.scenario:{self.name}} {row.runs:6}{_found(row)} {_steps(row):>10}"
        shortest = "-" if row.checked_steps is None else row.checked_steps  # way to the flaw in the spec that has it
        lines = [f"{line}{shortest:>6}" if row.checked is not None else line]
        if row.violated or not row.as_expected:
            lines += wrapped(_outcome(row), width, "      ")
        if row.violated and row.missed:
            missed = ", ".join(f"{tried.strategy} ({counted(tried.runs, 'run')})" for tried in row.missed)
            lines += wrapped(f"missed by {missed}", width, "      ", "        ")
        if not row.violated and not row.expected:
            lines += wrapped(_silence(row), width, "      ")
        return lines


def scoreboard(rows: Sequence[ScoreboardRow], planned: int, width: int = PLAIN_WIDTH, mark: Mark = _mark) -> list[str]:
    """Return the lines of the scoreboard: a table of the scenarios, what was found, and a sentence that sums it up."""
    one_column = any(row.in_turn for row in rows)
    strategies = dict.fromkeys(tried.strategy for row in rows for tried in row.tried if not one_column)
    shape = Shape.of({row.scenario: row.checked for row in rows}, strategies)
    lines = shape.head()
    for row in rows:
        lines += shape.row(row, width, mark)
    return [*lines, *summary(rows, planned, width)]


def folded(rows: Sequence[ScoreboardRow], width: int = PLAIN_WIDTH, mark: Mark = _mark) -> list[str]:
    """Return a line for each group of models: how many scenarios have no finding, as expected, and in how many runs."""
    groups: dict[str, list[ScoreboardRow]] = {}
    for row in rows:
        scenario = find_scenario(row.scenario)
        if row.is_quiet and scenario is not None:
            groups.setdefault(scenario.model.partition("/")[0], []).append(row)
    lines = []
    for name, quiet in sorted(groups.items()):
        covered = sum(row.is_covered for row in quiet)
        searched = f", {covered} searched completely" if covered else ""
        runs = counted(sum(row.runs for row in quiet), "run")
        text = f"{counted(len(quiet), 'scenario')} of {name}: no violation in {runs}{searched}"
        lines += wrapped(text, width, f"{mark(True)}  ", "      ")
    return [*lines, "    --all shows a row for each"] if lines else []


def summary(rows: Sequence[ScoreboardRow], planned: int, width: int = PLAIN_WIDTH) -> list[str]:
    """Return the lines below the table: what was found, what silence proves, and a sentence that sums it up."""
    lines = []
    for row in rows:
        lines += _finding(row, width)
    silent = [row for row in rows if not row.violated and not row.expected]
    if any(row.is_covered for row in silent):
        lines += ["", *wrapped(SEARCHED, width)]
    if not all(row.is_covered for row in silent):
        lines += ["", *wrapped(SILENT, width), *wrapped(MORE, width)]
    good = sum(row.as_expected for row in rows)
    left = f", {planned - len(rows)} not finished" if planned > len(rows) else ""
    return [*lines, "", f"{good} of {counted(len(rows), 'scenario')} as expected{left}"]


def _silence(row: ScoreboardRow) -> str:
    """Say what the silence of a row's runs is worth, or what proves more: a search of all that they may do."""
    if row.searched is not None and row.is_covered:
        seen = "" if row.visited is None else f"; these runs visited {_share(row.visited, row.searched.states)}"
        return f"{_searched(row.searched)}{seen}; {_follows(row)}"
    if row.due is not None:
        said = f"the flaw of {row.flawed} would have been found about {counted(round(row.due), 'time')}"
    else:
        said = f"a violation in 1 of {row.shows_from:,} runs would have shown"
    silence = f"no violation: {said}; {_follows(row)}"
    if row.searched is None or row.searched.violated or not row.searched.is_of_this_code:
        return silence
    return f"{silence}; {_searched(row.searched)}"


def _searched(found: Searched) -> str:
    """Say what a search proved of a row in which nothing is found: of how many states, at which size and budget."""
    if not found.complete:
        steps = counted(found.steps, "step")
        return f"searched in part: none within {steps}, in {found.states:,} states at {found.within}"
    return f"searched completely: {found.states:,} states at {found.within}"


def _share(visited: int, states: int) -> str:
    """Say how much of a space was seen."""
    return f"{visited:,} of them ({100 * visited / states:.2g} %)"


def _follows(row: ScoreboardRow) -> str:
    follows = "follows" if row.held == 1 else "follow"
    return f"{counted(row.held, 'run')} {follows} {row.spec}" if row.spec else WITHOUT_SPEC


def _column(strategy: str) -> int:
    return max(len(strategy) + 1, 6)


def _found(row: ScoreboardRow) -> str:
    """After how many runs each strategy, or the first one, found what there was to find; a miss is a dash."""
    shown = bool(row.expected or row.violated)
    if row.in_turn:
        found = "" if not shown else "-" if row.first is None else f"{row.first.strategy} {row.first.found_at:,}"
        return found.rjust(FOUND_BY)
    return "".join((str(t.found_at or "-") if shown else "").rjust(_column(t.strategy)) for t in row.tried)


def _steps(row: ScoreboardRow) -> str:
    if row.steps_found is not None:
        return f"{row.steps_found} -> {row.steps_shrunk}"
    return "not found" if row.expected else "searched" if row.is_covered else "none"


def _outcome(row: ScoreboardRow) -> str:
    """The outcome of a scenario that is not just silent."""
    if row.as_expected:
        return f"violates {row.violated}"
    if row.checked is not None and row.checked_steps is None and row.violated == row.expected:
        said = f"violates {row.violated}, but a search of {row.checked.model} does not find {row.checked.violates}"
    elif row.same_on_trio is False:
        said = f"violates {row.violated}, but replays with another digest on trio"
    elif row.violated == RAISED:
        said = "protocol code raises an exception"
    elif row.violated == REFINEMENT:
        said = f"a step is not allowed by {row.spec}"
    elif row.violated:
        said = f"violates {row.violated}, expected {row.expected or 'no violation'}"
    elif row.expected:
        said = f"no run violates {row.expected}"
    elif row.ahead is not None and row.ahead.is_bad:
        said = "no run shows it, but a search finds a violation, see below"
    elif row.missing:
        said = f"no run reached {', '.join(row.missing)}"
    else:
        said = f"only {counted(row.runs, 'run')}, {row.runs_needed:,} are needed"
    return f"NOT AS EXPECTED: {said}"


def _finding(row: ScoreboardRow, width: int) -> list[str]:
    """Return the lines that say what was found and how to replay it."""
    if row.trail is None:
        if row.reason:
            return ["", f"{row.scenario}: {row.violated}", *wrapped(row.reason, width, "  ")]
        ahead = row.ahead
        return [] if ahead is None else ["", f"{row.scenario}: no run found anything",
                                         *wrapped(ahead.sentence, width, "  "), f"    {ahead.command}"]
    proof = ", proved shortest" if row.proved_shortest else ""
    trio = ", same digest on trio" if row.same_on_trio else ""
    shrunk = in_steps(row.steps_shrunk or 0, row.fair_steps, row.fair_cycle)
    spec = []
    found, scenario = row.searched, find_scenario(row.scenario)
    if found is not None and found.is_shortest and found.violated == row.violated and found.is_of_this_code:
        at = "at" if scenario is not None and found.is_at_size_of(scenario) else "at another size,"
        said = f"a search finds it after {counted(found.steps, 'step')}, the fewest possible {at} {found.within}"
        spec += wrapped(said, width, "  ")
    if row.checked is not None and row.checked_steps is not None:
        steps = counted(row.checked_steps, "step")
        spec += [f"  in {row.checked.model} {row.checked.violates} is violated after {steps}, the fewest possible"]
    return [
        "", f"{row.scenario}: {row.violated}", f"  {row.steps_found} -> {shrunk}{proof}{trio}", *spec,
        *wrapped(row.reason or "", width, "  "), f"  trail   {row.trail}", f"  replay  {row.replay}",
    ]
