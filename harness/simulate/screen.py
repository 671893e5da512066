"""What the command line shows a person: progress, the scoreboard, results. Rich draws it; nothing is decided here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import StringIO
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from harness.model import ModelSpec, Scenario
from harness.simulate.hunt import Row


class _Rate(ProgressColumn):
    """Runs per second."""

    def render(self, task: Task) -> Text:
        return Text(f"{task.speed:,.0f} runs/s" if task.speed else "")


class Screen:
    """The terminal; a quiet one shows progress on stderr only where that is a terminal, and no results."""

    def __init__(self, quiet: bool = False) -> None:
        self.quiet = quiet
        self.out = Console(highlight=False, soft_wrap=False)
        self.err = Console(stderr=True, highlight=False)

    @contextmanager
    def progress(self, what: str) -> Iterator[Callable[[int, int, str], None]]:
        """Show progress with rate and remaining time on stderr; yields `report(done, planned, message)`."""
        columns = (TextColumn(what), BarColumn(20), TextColumn("{task.completed}/{task.total} runs"), _Rate(),
                   TimeRemainingColumn(), TextColumn("{task.fields[message]}"))
        with Progress(*columns, console=self.err, transient=True, disable=not self.err.is_terminal) as bar:
            task = bar.add_task(what, total=None, message="")

            def report(done: int, planned: int, message: str) -> None:
                bar.update(task, completed=done, total=planned, message=message)

            yield report

    def scoreboard(self, rows: Sequence[Row], planned: int) -> None:
        """Print the scoreboard and what it comes to."""
        self.out.print(_board(rows))
        found = [row for row in rows if row.trail]
        for row in found:
            steps = f"{row.steps_found} -> {row.steps_shrunk} steps"
            proof = ", proved shortest" if row.proved_shortest else ""
            self.out.print(f"{row.scenario}: {row.violated} ({steps}{proof})", soft_wrap=True)
            self.out.print(f"  {row.reason}", soft_wrap=True)
            self.out.print(f"  {row.replay}", soft_wrap=True)
        good = sum(row.as_expected for row in rows)
        left = f", {planned - len(rows)} not finished" if planned > len(rows) else ""
        self.out.print(f"{good} of {len(rows)} scenarios as expected{left}")

    def simulated(self, result: Mapping[str, Any]) -> None:
        """Print what `simulate` came to."""
        verdict = result["verdict"]
        if verdict["ok"]:
            said = f"no violation in {result['runs']} runs"
        else:
            said = f"{result['violations']} of {result['runs']} runs violate; the first violates {verdict['violated']}"
        if result["expected"]:
            said += f" (expected: {result['expected']})"
        self.out.print(f"{result['scenario'] or result['model']}: {said}", soft_wrap=True)
        if not verdict["ok"]:
            self.out.print(f"  {verdict['reason']}", soft_wrap=True)
        if result["witnessed"]:
            self.out.print(f"  witnessed: {', '.join(result['witnessed'])}", soft_wrap=True)
        self.out.print(f"  trail    {result['trail']}\n  history  {result['history']}", soft_wrap=True)
        self.out.print(f"  replay   kafka-proto replay {result['trail']}", soft_wrap=True)

    def replayed(self, result: Mapping[str, Any]) -> None:
        """Print what `replay` came to."""
        verdict = result["verdict"]
        said = "no violation" if verdict["ok"] else f"violates {verdict['violated']} at step {verdict['step']}"
        self.out.print(f"{result['model']}, {result['steps']} steps on {result['runtime']}: {said}", soft_wrap=True)
        if not verdict["ok"]:
            self.out.print(f"  {verdict['reason']}", soft_wrap=True)
        self.out.print(f"  digest {result['digest']}", soft_wrap=True)

    def shrunk(self, result: Mapping[str, Any]) -> None:
        """Print what `shrink` came to."""
        proof = ", proved shortest at this size" if result["proved_shortest"] else ""
        self.out.print(
            f"{result['violates']}: {result['had']} -> {result['has']} steps{proof} ({result['tried']} tries)\n"
            f"  {result['replay']}",
            soft_wrap=True,
        )

    def catalogue(self, models: Sequence[ModelSpec], rows: Sequence[Scenario]) -> None:
        """Print the models and scenarios."""
        table = Table("model", "sizes (default)", "settings", title="Models", title_justify="left")
        for spec in models:
            sizes = ", ".join(f"{name} ({size.default})" for name, size in spec.sizes.items())
            settings = ", ".join(f"{name}={'|'.join(s.values)}" for name, s in spec.settings.items())
            table.add_row(f"{spec.name}\n  {spec.title}", sizes, settings)
        self.out.print(table)
        table = Table("scenario", "model", "mode", "expected", title="Scenarios", title_justify="left")
        for row in rows:
            table.add_row(f"{row.name}\n  {row.title}", row.model, row.mode, row.expected or "no violation")
        self.out.print(table)


def scoreboard(rows: Sequence[Row]) -> str:
    """Return the scoreboard as plain text."""
    console = Console(file=StringIO(), width=110, highlight=False)
    screen = Screen()
    screen.out = console
    screen.scoreboard(rows, len(rows))
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


def _board(rows: Sequence[Row]) -> Table:
    columns = ("scenario", "outcome", "runs", "found after (runs)", "steps")
    table = Table(*columns, title="Scoreboard", title_justify="left")
    for row in rows:
        outcome = row.violated or ("silent" if not row.missing else f"never seen: {', '.join(row.missing)}")
        mark = "ok" if row.as_expected else "NOT AS EXPECTED"
        found = " ".join(f"{t.strategy} {t.found_at or '-'}" for t in row.tried) if row.expected or row.violated else ""
        steps = f"{row.steps_found} -> {row.steps_shrunk}" if row.steps_found is not None else ""
        table.add_row(row.scenario, f"{mark}: {outcome}", f"{row.runs}", found, steps)
    return table
