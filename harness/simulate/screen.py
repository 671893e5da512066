"""What the command line shows a person: progress, the scoreboard, results. Nothing is decided here.

All of it fits into 80 columns, but for paths and commands, which stay on one line so that they can be copied.
"""

from __future__ import annotations

import os
import shlex
import shutil
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.text import Text

from harness.record import Trail
from harness.record.words import counted, some_of
from harness.simulate.hunt import Row
from harness.simulate.strategies import NAMES

WIDEST = 120
"""Sentences are not longer than this, however wide the terminal is."""
NARROWEST = 60
PLAIN_WIDTH = 80
MARKS = {True: ("ok", "green"), False: ("NO", "red")}


class _Rate(ProgressColumn):
    """How many a second."""

    def render(self, task: Task) -> Text:
        return Text(f"{task.speed:,.0f}/s" if task.speed else "")


class Screen:
    """The terminal; a quiet one shows no results. Progress goes to stderr, where that is a terminal."""

    def __init__(self, quiet: bool = False) -> None:
        self.quiet = quiet
        columns = shutil.get_terminal_size((PLAIN_WIDTH, 24)).columns
        self.width = max(NARROWEST, min(columns, WIDEST))

    @contextmanager
    def progress(self, what: str, noun: str = "runs") -> Iterator[Callable[[int, int, str], None]]:
        """Show progress with rate and remaining time on stderr; yields `report(done, planned, message)`.

        Where nothing is planned, because nobody knows how much there is, only what is done and its rate are shown.
        """
        err = Console(stderr=True, highlight=False, markup=False, emoji=False)
        columns = (TextColumn(what), BarColumn(12), TextColumn("{task.fields[count]}"), _Rate(),
                   TimeRemainingColumn(), TextColumn("{task.fields[message]}"))
        with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as bar:
            task = bar.add_task(what, total=None, message="", count="")

            def report(done: int, planned: int, message: str) -> None:
                count = f"{done:,}/{planned:,} {noun}" if planned else f"{done:,} {noun}"
                bar.update(task, completed=done, total=planned or None, message=message, count=count)

            yield report

    def scoreboard(self, rows: Sequence[Row], planned: int, out: Path) -> None:
        """Print the scoreboard, what it comes to, and where it was written."""
        lines = scoreboard(rows, planned, self.width, _coloured)
        if any(row.trail for row in rows):
            lines.append("kafka-proto show TRAIL tells what was found step by step")
        self.print([*lines, f"written to {out / 'scoreboard.txt'} and {out / 'scoreboard.json'}"])

    def simulated(self, result: Mapping[str, Any], trail: Trail, interrupted: bool) -> None:
        """Print what `simulate` came to."""
        verdict, expected, runs = result["verdict"], result["expected"], counted(result["runs"], "run")
        if verdict["ok"]:
            said = f"no violation in {runs}" + (f" (expected is one of {expected})" if expected else "")
        else:
            said = f"violates {verdict['violated']}"
            if expected:
                said += ", as expected" if expected == verdict["violated"] else f", expected {expected}"
            if result["runs"] > 1:
                violating = some_of(result["violations"], result["runs"], "run", "violate")
                said += f" ({violating} something; this is seed {result['seed']})"
        lines = self._wrapped(f"{result['scenario'] or result['model']}: {said}")
        if interrupted:
            lines.append("  (interrupted: this is what was finished before)")
        lines += self._wrapped(f"{length(trail)}{': ' + verdict['reason'] if not verdict['ok'] else ''}", "  ")
        if result["witnessed"]:
            lines += self._wrapped(f"witnessed: {', '.join(result['witnessed'])}", "  ")
        lines += self._covered(result["coverage"]) if "coverage" in result else []
        path = shlex.quote(result["trail"])
        lines += [f"  trail    {result['trail']}", f"  history  {result['history']}"]
        self.print([*lines, f"  replay   kafka-proto replay {path}", f"  show     kafka-proto show {path}"])

    def _covered(self, told: Mapping[str, Any]) -> list[str]:
        """Return the lines that tell what the runs reached."""
        states, known = f"{counted(told['states'], 'state')} of {told['spec']}", told["reachable"]
        if known is not None:
            states += f", {known['percent']:g} % of the {known['states']:,} that can be reached"
        lines = self._wrapped(f"reached {states}, in {counted(told['steps'], 'step')}", "  ", "    ")
        never = f"; possible, but never taken: {', '.join(told['actions_never_taken'])}"
        taken = f"{counted(len(told['actions']), 'action')} taken"
        lines += self._wrapped(taken + (never if told["actions_never_taken"] else ""), "  ", "    ")
        guards = f"{told['guards_both_ways']} of {counted(told['guards'], 'guard')} came out both ways"
        guards += f", {len(told['guards_not_evaluated'])} beside them were not evaluated"
        lines += self._wrapped(guards, "  ", "    ")
        for one in told["guards_one_way"]:
            text = f"always {str(one['always']).lower()}: {one['file']}:{one['line']} {one['guard']}"
            lines += self._wrapped(text, "    ", "      ")
        return lines

    def replayed(self, result: Mapping[str, Any], trail: Trail) -> None:
        """Print what `replay` came to."""
        verdict = result["verdict"]
        said = "no violation" if verdict["ok"] else f"violates {verdict['violated']} at step {verdict['step']}"
        lines = self._wrapped(f"{result['model']} on {result['runtime']}, {length(trail)}: {said}")
        if not verdict["ok"]:
            lines += self._wrapped(verdict["reason"], "  ")
        others = [other["violated"] for other in result["violations"][1:]]
        if others:
            lines += self._wrapped(f"violates also {', '.join(others)}", "  ")
        if trail.violates not in (None, verdict.get("violated"), *others):
            lines += self._wrapped(f"the trail says that it violates {trail.violates}; this replay does not", "  ")
        self.print([*lines, f"  digest {result['digest']}"])

    def shrunk(self, result: Mapping[str, Any], trail: Trail) -> None:
        """Print what `shrink` came to."""
        proof = ", proved shortest at this size" if result["proved_shortest"] else ""
        said = f"{result['violates']}: {result['had']} -> {length(trail)}{proof} ({counted(result['tried'], 'try')})"
        self.print([*self._wrapped(said), f"  {result['replay']}"])

    def print(self, lines: Iterable[str]) -> None:
        """Print lines, unless nothing is to be shown."""
        if not self.quiet:
            click.echo("\n".join(lines), color=False if os.environ.get("NO_COLOR") else None)

    def _wrapped(self, text: str, indent: str = "", following: str | None = None) -> list[str]:
        return wrapped(text, self.width, indent, following)


def scoreboard(
    rows: Sequence[Row], planned: int, width: int = PLAIN_WIDTH,
    mark: Callable[[bool], str] = lambda as_expected: MARKS[as_expected][0],
) -> list[str]:
    """Return the lines of the scoreboard: a table of the scenarios, what was found, and a sentence that sums it up."""
    name = max((len(row.scenario) for row in rows), default=0)
    name = max(name, len("scenario"))
    over = "found after (runs)".center(sum(map(_column, NAMES)))
    heads = "".join(strategy.rjust(_column(strategy)) for strategy in NAMES)
    spec = any(row.checked is not None for row in rows)
    lines = [f"{'':{name + 11}}{over}".rstrip(), f"    {'scenario':{name}}   runs{heads}      steps{'  spec' * spec}"]
    for row in rows:
        line = f"{mark(row.as_expected)}  {row.scenario:{name}} {row.runs:6}{_found(row)} {_steps(row):>10}"
        lines.append(f"{line}{_spec(row):>6}" if row.checked is not None else line)
        lines += wrapped(_outcome(row), width, "      ") if row.violated or not row.as_expected else []
        lines += wrapped(_missed(row), width, "      ", "        ") if row.violated and row.missed else []
    for row in rows:
        lines += _finding(row, width)
    good = sum(row.as_expected for row in rows)
    left = f", {planned - len(rows)} not finished" if planned > len(rows) else ""
    return [*lines, "", f"{good} of {counted(len(rows), 'scenario')} as expected{left}"]


def _column(strategy: str) -> int:
    return max(len(strategy) + 1, 6)


def _found(row: Row) -> str:
    """After how many runs each strategy found what there was to find; a miss is a dash."""
    tried = {t.strategy: t for t in row.tried}
    shown = bool(row.expected or row.violated)
    cells = [str(tried[name].found_at or "-") if shown and name in tried else "" for name in NAMES]
    return "".join(cell.rjust(_column(name)) for name, cell in zip(NAMES, cells, strict=True))


def _steps(row: Row) -> str:
    if row.steps_found is not None:
        return f"{row.steps_found} -> {row.steps_shrunk}"
    return "not found" if row.expected else "silent"


def _spec(row: Row) -> str:
    """The length of the shortest way to the flaw in the spec that has it, too."""
    return "-" if row.checked_steps is None else str(row.checked_steps)


def _missed(row: Row) -> str:
    """Which strategies did not find what was found, in how many runs."""
    missed = (f"{tried.strategy} ({counted(tried.runs, 'run')})" for tried in row.missed)
    return f"missed by {', '.join(missed)}"


def _outcome(row: Row) -> str:
    """What a scenario that is not just silent came to."""
    if row.as_expected:
        return f"violates {row.violated}"
    if row.checked is not None and row.checked_steps is None and row.violated == row.expected:
        said = f"violates {row.violated}, but a search of {row.checked.model} does not find {row.checked.violates}"
    elif row.violated:
        said = f"violates {row.violated}, expected {row.expected or 'no violation'}"
    elif row.expected:
        said = f"no run violates {row.expected}"
    elif row.missing:
        said = f"no run reached {', '.join(row.missing)}"
    else:
        said = f"only {counted(row.runs, 'silent run')}, {row.runs_needed} are needed"
    return f"NOT AS EXPECTED: {said}"


def _finding(row: Row, width: int) -> list[str]:
    """Return the lines that tell what was found and how to replay it."""
    if row.trail is None:
        return []
    proof = ", proved shortest" if row.proved_shortest else ""
    shrunk = _length(row.steps_shrunk or 0, row.fair_steps, row.fair_cycle)
    spec = []
    if row.checked is not None and row.checked_steps is not None:
        steps = counted(row.checked_steps, "step")
        spec = [f"  in {row.checked.model} {row.checked.violates} is violated after {steps}, the fewest possible"]
    return [
        "", f"{row.scenario}: {row.violated}", f"  {row.steps_found} -> {shrunk}{proof}", *spec,
        *wrapped(row.reason or "", width, "  "), f"  trail   {row.trail}", f"  replay  {row.replay}",
    ]


def length(trail: Trail) -> str:
    """Return how long a trail is in words: `11 steps, then a fair cycle`."""
    steps = len(trail.choices) if trail.fair_from is None else trail.fair_from
    return _length(steps, len(trail.choices) - steps, trail.back_to is not None)


def _length(steps: int, fair_steps: int, cycle: bool) -> str:
    if cycle:
        return f"{counted(steps, 'step')}, then a fair cycle"
    return counted(steps, "step") + (f", then {counted(fair_steps, 'fair step')}" if fair_steps else "")


def wrapped(text: str, width: int, indent: str = "", following: str | None = None) -> list[str]:
    """Return a text as lines of at most `width` characters where its words allow it."""
    following = indent if following is None else following
    return textwrap.wrap(text, width, initial_indent=indent, subsequent_indent=following, break_long_words=False,
                         break_on_hyphens=False)


def _coloured(as_expected: bool) -> str:
    mark, colour = MARKS[as_expected]
    return click.style(mark, fg=colour)
