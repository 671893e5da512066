"""What the command line shows a person: progress, the scoreboard, results. Nothing is decided here.

All of it fits into 80 columns, but for paths and commands, which stay on one line so that they can be copied.
"""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.text import Text

from harness.model import Scenario
from harness.record import Trail
from harness.record.short_search import Ahead
from harness.record.wording import counted, length, some_of, wrapped
from harness.simulate.hunting.rows import ScoreboardRow
from harness.simulate.hunting.scoreboard import MARKS, PLAIN_WIDTH, Shape, folded, summary

WIDEST = 120
"""Sentences are not longer than this, however wide the terminal is."""
NARROWEST = 60
Report = Callable[[int, int, str], None]
COLOURS = {True: "green", False: "red"}


class _Rate(ProgressColumn):
    """How many a second."""

    def render(self, task: Task) -> Text:
        return Text(f"{task.speed:,.0f}/s" if task.speed else "")


class TerminalOutput:
    """The terminal; a quiet one shows no results. Progress goes to stderr, if that is a terminal."""

    def __init__(self, quiet: bool = False) -> None:
        self.quiet = quiet
        columns = shutil.get_terminal_size((PLAIN_WIDTH, 24)).columns
        self.width = max(NARROWEST, min(columns, WIDEST))

    @contextmanager
    def progress(self, what: str, noun: str = "runs") -> Iterator[Report]:
        """Show progress with rate and remaining time on stderr; yields `report(done, planned, message)`.

        If the total is not known, only what is done and its rate are shown.
        """
        with self._bar(what, noun) as (_, report):
            yield report

    @contextmanager
    def _bar(self, what: str, noun: str) -> Iterator[tuple[Progress, Report]]:
        err = Console(stderr=True, highlight=False, markup=False, emoji=False)
        columns = (TextColumn(what), BarColumn(12), TextColumn("{task.fields[count]}"), _Rate(),
                   TimeRemainingColumn(), TextColumn("{task.fields[message]}"))
        with Progress(*columns, console=err, transient=True, disable=not err.is_terminal, redirect_stdout=False,
                      redirect_stderr=False) as bar:
            task = bar.add_task(what, total=None, message="", count="")

            def report(done: int, planned: int, message: str) -> None:
                count = f"{done:,}/{planned:,} {noun}" if planned else f"{done:,} {noun}"
                bar.update(task, completed=done, total=planned or None, message=message, count=count)

            yield bar, report

    @contextmanager
    def board(
        self, chosen: Sequence[Scenario], strategies: Sequence[str], fold: bool = False
    ) -> Iterator[tuple[Report, Callable[[ScoreboardRow], None]]]:
        """Show progress, and each row of the scoreboard as soon as it is done, below the table's head.

        Yields `report` as `progress` does, and `finished(row)`, which writes to a terminal, a file or a pipe at once.
        With `fold`, rows without a finding are left for the summary.
        """
        shape = Shape.of({scenario.name: scenario.checked for scenario in chosen}, strategies)
        with self._bar("hunting", "runs") as (bar, report):
            head = shape.head()

            def finished(row: ScoreboardRow) -> None:
                if fold and row.is_quiet:
                    return
                lines = [*head, *shape.row(row, self.width, _coloured)]
                head.clear()
                if bar.disable:
                    self.print(lines)
                    return
                bar.stop()  # it may be on the same terminal
                self.print(lines)
                bar.start()

            yield report, finished

    def summary(self, rows: Sequence[ScoreboardRow], planned: int, out: Path, fold: bool = False) -> None:
        """Print the groups of rows that were not shown, the findings, and where the scoreboard was written."""
        lines = folded(rows, self.width, _coloured) if fold else []
        lines += summary(rows, planned, self.width)
        if any(row.trail for row in rows):
            lines.append("kafka-proto show TRAIL prints what was found step by step")
        self.print([*lines, f"written to {out / 'scoreboard.txt'} and {out / 'scoreboard.json'}"])

    def simulated(
        self, result: Mapping[str, Any], trail: Trail, interrupted: bool, ahead: Ahead | None
    ) -> list[str]:
        """Return the lines with the result of `simulate`, and what a search comes to if nothing was found."""
        verdict, expected, runs = result["verdict"], result["expected"], counted(result["runs"], "run")
        if verdict["ok"]:
            said = f"no violation in {runs}" + (f" (expected: a violation of {expected})" if expected else "")
        else:
            said = f"violates {verdict['violated']}"
            if expected:
                said += ", as expected" if expected == verdict["violated"] else f", expected {expected}"
            if result["runs"] > 1:
                violating = some_of(result["violations"], result["runs"], "run", "violate")
                said += f" ({violating} something; this is seed {result['seed']})"
        lines = self._wrapped(f"{result['scenario'] or result['model']}: {said}")
        if interrupted:
            lines.append("  (interrupted: these are the finished runs)")
        lines += self._wrapped(f"{length(trail)}{': ' + verdict['reason'] if not verdict['ok'] else ''}", "  ")
        if result["witnessed"]:
            lines += self._wrapped(f"witnessed: {', '.join(result['witnessed'])}", "  ")
        lines += self._covered(result["coverage"]) if "coverage" in result else []
        path = shlex.quote(result["trail"])
        lines += [f"  trail    {result['trail']}", f"  history  {result['history']}"]
        lines += [f"  replay   kafka-proto replay {path}", f"  show     kafka-proto show {path}"]
        return lines if ahead is None else [*lines, *self._wrapped(ahead.sentence), f"  {ahead.command}"]

    def _covered(self, coverage: Mapping[str, Any]) -> list[str]:
        """Return the lines that say what the runs reached."""
        states, known = f"{counted(coverage['states'], 'state')} of {coverage['spec']}", coverage["reachable"]
        if known is not None:
            states += f", {known['percent']:g} % of the {known['states']:,} reachable"
        lines = self._wrapped(f"reached {states}, in {counted(coverage['steps'], 'step')}", "  ", "    ")
        never = f"; possible, but never taken: {', '.join(coverage['actions_never_taken'])}"
        taken = f"{counted(len(coverage['actions']), 'action')} taken"
        lines += self._wrapped(taken + (never if coverage["actions_never_taken"] else ""), "  ", "    ")
        guards = f"{coverage['guards_both_ways']} of {counted(coverage['guards'], 'guard')} came out both ways"
        guards += f", {len(coverage['guards_not_evaluated'])} others were not evaluated"
        lines += self._wrapped(guards, "  ", "    ")
        for one in coverage["guards_one_way"]:
            text = f"always {str(one['always']).lower()}: {one['file']}:{one['line']} {one['guard']}"
            lines += self._wrapped(text, "    ", "      ")
        return lines

    def replayed(self, result: Mapping[str, Any], trail: Trail) -> list[str]:
        """Return the lines with the result of `replay`."""
        verdict = result["verdict"]
        said = "no violation" if verdict["ok"] else f"violates {verdict['violated']} at step {verdict['step']}"
        lines = self._wrapped(f"{result['model']} on {result['runtime']}, {length(trail)}: {said}")
        if not verdict["ok"]:
            lines += self._wrapped(verdict["reason"], "  ")
        others = [other["violated"] for other in result["violations"][1:]]
        if others:
            lines += self._wrapped(f"also violates {', '.join(others)}", "  ")
        if trail.violates not in (None, verdict.get("violated"), *others):
            lines += self._wrapped(f"the trail says that it violates {trail.violates}; this replay does not", "  ")
        return [*lines, f"  digest {result['digest']}"]

    def shrunk(self, result: Mapping[str, Any], trail: Trail) -> list[str]:
        """Return the lines with the result of `shrink`."""
        proof = ", proved shortest at this size" if result["proved_shortest"] else ""
        said = f"{result['violates']}: {result['had']} -> {length(trail)}{proof} ({counted(result['tried'], 'try')})"
        return [*self._wrapped(said), f"  {result['replay']}"]

    def print(self, lines: Iterable[str]) -> None:
        """Print lines, unless output is quiet."""
        if not self.quiet:
            click.echo("\n".join(lines), color=False if os.environ.get("NO_COLOR") else None)

    def _wrapped(self, text: str, indent: str = "", following: str | None = None) -> list[str]:
        return wrapped(text, self.width, indent, following)


def _coloured(as_expected: bool) -> str:
    return click.style(MARKS[as_expected], fg=COLOURS[as_expected])
