"""The commands `kafka-proto hunt | simulate | replay | shrink | show`; the others have their own files.

Exit codes: 0 the outcome is as expected (or nothing is violated), 1 a violation, and those of `harness.cli`: 2 wrong
use or bad input, 130 interrupted. With `--json`, stdout carries one JSON object and nothing else.
"""

from __future__ import annotations

import json
import shlex
import shutil
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import attrs
import click

from harness.cli import OneOf, after_the_run, interrupt_handled, whole
from harness.cli.check_what import FAULTS, TARGETS, asked_runs
from harness.cli.covering import COVERAGE, WITHIN, collecting
from harness.cli.group import AS_JSON, OUT, SETTINGS, SIZES, answer, check_file, check_folder, cli, emit, pairs
from harness.cli.live_log import logged
from harness.cli.screen import TerminalOutput
from harness.explore.flaw import fewest_steps
from harness.explore.short_search import look_ahead
from harness.model import Refusal, find_runnable, unknown
from harness.record import Recorder, Trail, model_of_history, read_history, read_trail
from harness.record.files import write_atomically
from harness.record.trail import is_trail
from harness.record.wording import counted, some_of
from harness.render import FORMS, render, tla
from harness.simulate.hunting.hunt import SILENCE, Hunt, chosen_scenarios, record_run, write_run
from harness.simulate.hunting.rows import ScoreboardRow
from harness.simulate.hunting.scoreboard import scoreboard
from harness.simulate.runs.plan import Plan
from harness.simulate.runs.run import Run
from harness.simulate.runs.session import Session, drive, run_plain
from harness.simulate.states.tables import Tables
from harness.simulate.strategies import by_name
from harness.simulate.strategies.strategy import Strategy
from harness.simulate.trails.replay import DEADLOCK, replay_plain, replayed_history
from harness.simulate.trails.shrink import shrink as shrink_trail
from harness.verify.spec_holding import held

TEXT_WIDTH = 100
"""Columns of a timeline that does not go to a terminal."""
RUNTIMES = OneOf(["plain", "trio"])


@logged
@cli.command()
@click.argument("scenario", nargs=-1)
@click.option("--seeds", type=whole(1), metavar="N",
              help="Runs per strategy (default: the scenario's; more if a repaired scenario's flaw is rare).")
@click.option("--strategy", type=OneOf(by_name.NAMES), multiple=True,
              help="How steps are chosen; may be repeated (default: portfolio, and all others for what it misses).")
@click.option("--thorough", is_flag=True,
              help=f"Make all runs: for a repaired scenario, {SILENCE} times those that found its flaw.")
@click.option("--all", "every", is_flag=True, help="Show a row for each scenario, even without a finding.")
@OUT
@AS_JSON
def hunt(
    scenario: tuple[str, ...], seeds: int | None, strategy: tuple[str, ...], thorough: bool, every: bool, out: Path,
    as_json: bool,
) -> int:
    """Hunt for violations in scenarios.

    Without SCENARIO, all are hunted. A repaired scenario is hunted together with its flawed one. Flawed scenarios come
    first. Scenarios without a finding share one line per group, unless some are named or --all is given. Violations
    are shrunk. Trails, histories and the scoreboard (text and JSON) are written to --out.

    If no violation is expected, only part of the runs are made; --thorough makes all. Some runs are checked against
    the spec step by step. The row shows how rare a violation would have been found.
    """
    screen = TerminalOutput(quiet=as_json)
    chosen = chosen_scenarios(scenario)
    check_folder(out)
    fold = not scenario and not every
    with screen.board(chosen, strategy, fold) as (progress, finished):
        hunting = Hunt(chosen, out, seeds, progress=progress, check=fewest_steps, hold=held, look_ahead=look_ahead,
                       thorough=thorough, finished=finished, on_trio=replayed_on_trio, strategies=strategy)
        rows = hunting.run()
        interrupt_handled()
    complete = not hunting.interrupted and hunting.failure is None
    board = {"scenarios": [row.to_json() for row in rows], "interrupted": hunting.interrupted,
             "failure": hunting.failure}
    if rows or complete:
        _write_board(out, board, rows, len(chosen))
    if as_json:
        emit(board)
    elif rows or complete:
        screen.summary(rows, len(chosen), out, fold)
    if complete:
        return 0 if all(row.as_expected for row in rows) else 1
    kept = f"{some_of(len(rows), len(chosen), 'scenario', 'were')} finished"
    kept += f" and are kept in {out / 'scoreboard.json'}" if rows else ""
    if hunting.failure is not None:
        raise Refusal(f"{hunting.failure} ({kept})")
    raise KeyboardInterrupt(f"interrupted; {kept}")


def _write_board(out: Path, board: dict[str, Any], rows: Sequence[ScoreboardRow], planned: int) -> None:
    write_atomically(out / "scoreboard.json", [json.dumps(board, ensure_ascii=False, sort_keys=True, indent=1)])
    write_atomically(out / "scoreboard.txt", scoreboard(rows, planned))


@cli.command()
@click.argument("what", metavar="MODEL|SCENARIO")
@click.option("--seed", type=whole(0), metavar="S", help="One run with this seed (default: 0).")
@click.option("--seeds", type=whole(1), metavar="N", help="Runs with the seeds 0 to N - 1.")
@click.option("--strategy", type=OneOf(by_name.NAMES), default="random", show_default=True,
              help="How steps are chosen.")
@click.option("--steps", type=whole(1), metavar="N", help="Most steps of a run, before its fair ending.")
@SIZES
@SETTINGS
@FAULTS
@TARGETS
@click.option("--mode", type=OneOf(["free", "timed"]), help="Whether the scheduler chooses each step freely, or time "
              "passes (default: the scenario's, else free).")
@click.option("--runtime", type=RUNTIMES, default="plain", show_default=True)
@COVERAGE
@WITHIN
@OUT
@AS_JSON
def simulate(
    what: str, seed: int | None, seeds: int | None, strategy: str, steps: int | None, sizes: tuple[str, ...],
    settings: tuple[str, ...], faults: tuple[str, ...], targets: tuple[str, ...], mode: str | None, runtime: str,
    coverage: bool, within: tuple[str, ...], out: Path, as_json: bool,
) -> int:
    """Simulate a model or a scenario.

    Writes one run to --out, as a trail and a history: the first with the expected violation, else the first with any
    violation, else the first. A single run is written as it goes, so it may have any length.
    """
    if seed is not None and seeds is not None:
        raise Refusal("give either --seed S for one run or --seeds N for many, not both")
    if seed and strategy in by_name.IN_ORDER:
        first = "give --seeds N for the first N"
        raise Refusal(f"{strategy} runs have an order and no seeds; {first}")
    scenario, _ = find_runnable(what)
    expected = scenario.expected if scenario is not None else None
    given = pairs(sizes, int), pairs(settings, str)
    model, plan = asked_runs(what, *given, faults, targets)
    plan = attrs.evolve(plan, steps=steps or plan.steps, mode=mode or plan.mode)
    check_folder(out)
    screen, source = TerminalOutput(quiet=as_json), by_name.Strategies(strategy)
    tables, covered = collecting(model, coverage, within, source)
    numbers = range(seeds) if seeds is not None else range(seed or 0, (seed or 0) + 1)
    made = _Made(expected)
    alone = len(numbers) == 1

    def path_of(seed: int) -> Path:
        return out / f"{what.replace('/', '-')}-{strategy}-{seed}.trail.jsonl"

    with screen.progress("simulating", "steps" if alone else "runs") as progress:
        try:
            if alone:
                _record(tables, plan, source, numbers[0], runtime, made, path_of, progress)
            else:
                _simulate(tables, plan, source, numbers, runtime, made, progress)
        except KeyboardInterrupt:
            interrupt_handled()
            made.interrupted = True
    if made.kept is None:
        raise KeyboardInterrupt("interrupted before the first run ended; nothing was written")
    trail = made.kept.trail
    path, digest = path_of(trail.seed), made.kept.digest
    if made.history is None:
        made.history, again = write_run(trail, path, runtime)
        digest = digest or again.digest
    ahead = None if made.violations or made.interrupted or faults or targets else look_ahead(what, *given)
    result = {
        "model": model.name, "scenario": scenario.name if scenario else None, "runs": made.runs, "steps": made.steps,
        "ahead": None if ahead is None else ahead.to_json(),
        "violations": made.violations, "violations_as_expected": made.as_expected, "expected": expected,
        "verdict": made.kept.verdict.to_json(), "witnessed": sorted(made.witnessed),
        "trail": str(path), "history": str(made.history), "digest": digest,
        "seed": trail.seed, "strategy": strategy, "runtime": runtime,
        "interrupted": made.interrupted, **({} if covered is None else {"coverage": covered.to_json()}),
    }
    answer(as_json, result, screen.simulated(result, trail, made.interrupted, ahead))
    if made.interrupted and alone:
        raise KeyboardInterrupt(f"interrupted; the run is written up to here, {counted(made.steps, 'step')}")
    if made.interrupted:
        raise KeyboardInterrupt(f"interrupted; {some_of(made.runs, len(numbers), 'run', 'were')} finished")
    return 1 if made.violations and not made.as_expected else 0


@attrs.define
class _Made:
    """What the runs of a simulation found, so far."""

    expected: str | None
    runs: int = 0
    steps: int = 0
    violations: int = 0
    as_expected: int = 0
    """Runs that violate what is expected."""
    witnessed: frozenset[str] = frozenset()
    kept: Run | None = None
    history: Path | None = None
    """Where the history of the kept run was written, if it was."""
    interrupted: bool = False
    _worth: int = -1

    def add(self, run: Run) -> None:
        """Count a run, and keep it if it is worth more than the kept one."""
        as_expected = self.expected in {verdict.violated for verdict in run.violations}
        worth = 2 if as_expected else 0 if run.verdict.ok else 1
        if worth > self._worth:
            self.kept, self._worth = run, worth
        self.runs += 1
        self.steps += len(run.trail.choices)
        self.violations += not run.verdict.ok
        self.as_expected += as_expected
        self.witnessed |= run.witnessed


def _record(
    tables: Tables, plan: Plan, source: by_name.Strategies, number: int, runtime: str, made: _Made,
    path_of: Callable[[int], Path], progress: Callable[[int, int, str], None],
) -> None:
    """Make one run and write it down while it goes on; an interrupt ends it between two steps."""
    strategy = source.run(number)
    assert strategy is not None
    with after_the_run() as interrupted:

        def watch(steps: int) -> bool:
            progress(steps, max(steps, plan.steps), "")
            return not interrupted()

        made.history, run = record_run(tables, plan, strategy, path_of(strategy.seed), runtime, watch, _driver(runtime))
        made.add(run)


def _simulate(
    tables: Tables, plan: Plan, source: by_name.Strategies, numbers: range, runtime: str, made: _Made,
    progress: Callable[[int, int, str], None],
) -> None:
    for number in numbers:
        strategy = source.run(number)
        if strategy is None:
            return
        made.add(_run(tables, plan, strategy, runtime))
        progress(made.runs, len(numbers), f"{made.violations:,} violating")


def _run(tables: Tables, plan: Plan, strategy: Strategy, runtime: str) -> Run:
    if runtime == "plain":
        return run_plain(tables, plan, strategy)
    with after_the_run():
        return _driver(runtime)(Session(tables, plan, strategy, Recorder(keep=False)))


def _driver(runtime: str) -> Callable[[Session], Run]:
    """Return what takes a session to its end on a runtime."""
    if runtime == "plain":
        return drive
    from harness.simulate.runtimes.trio_runtime import drive_on_trio

    return drive_on_trio


def replayed_on_trio(trail: Trail) -> Run:
    """Replay a trail on trio."""
    from harness.simulate.runtimes.trio_runtime import replay_on_trio

    with after_the_run():
        return replay_on_trio(trail, Recorder(keep=False))


@cli.command()
@click.argument("trail", type=click.Path(path_type=Path))
@click.option("--runtime", type=RUNTIMES, default="plain", show_default=True)
@AS_JSON
def replay(trail: Path, runtime: str, as_json: bool) -> int:
    """Replay a trail and judge it again."""
    read = read_trail(trail)
    run = replay_plain(read, Recorder(keep=False)) if runtime == "plain" else replayed_on_trio(read)
    result = {
        "trail": str(trail), "model": read.model, "steps": len(read.choices), "runtime": runtime,
        "digest": run.digest, "verdict": run.verdict.to_json(), "recorded_as": read.violates,
        "violations": [verdict.to_json() for verdict in run.violations],
    }
    answer(as_json, result, TerminalOutput().replayed(result, read))
    return 0 if run.verdict.ok else 1


@cli.command()
@click.argument("trail", type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), required=True, metavar="FILE", help="File for the short trail.")
@AS_JSON
def shrink(trail: Path, out: Path, as_json: bool) -> int:
    """Shrink a violating trail to a short one.

    The short trail violates the same property. Prints the number of steps before and after.
    """
    read = read_trail(trail)
    check_file(out)
    shrunk = shrink_trail(_violating(read))
    shrunk.trail.write(out)
    result = {"trail": str(out), "violates": shrunk.trail.violates, "had": shrunk.had, "has": shrunk.has,
              "tried": shrunk.tried, "proved_shortest": shrunk.proved,
              "replay": f"kafka-proto replay {shlex.quote(str(out))}"}
    answer(as_json, result, TerminalOutput().shrunk(result, shrunk.trail))
    return 0


def _violating(trail: Trail) -> Trail:
    """Return a trail with the property that its replay violates. Raises Refusal for a trail that does not fit."""
    run = replay_plain(trail)
    if trail.fairness is not None or trail.violates == DEADLOCK:
        raise Refusal(
            f"{trail.violates or 'this'} was found by a search, which found no shorter run; there is nothing to shrink"
        )
    if trail.violates in {verdict.violated for verdict in run.violations}:
        return trail
    return attrs.evolve(trail, violates=run.verdict.violated)


SHOWN = (*FORMS, "html")
"""The forms of a run: those of a history, and a page, which needs the trail."""


@cli.command()
@click.argument("file", metavar="TRAIL|HISTORY", type=click.Path(path_type=Path))
@click.option("--as", "form", default="text", show_default=True, metavar="|".join(SHOWN))
@click.option("--out", type=click.Path(path_type=Path), metavar="FILE", help="File to write instead of stdout.")
@click.option("--width", type=whole(60), metavar="COLUMNS",
              help=f"Columns of the text form (default: the terminal's, else {TEXT_WIDTH}).")
@click.option("--module", metavar="NAME", help="For tla: the module to extend (default: the model's own).")
@click.option("--all", "whole", is_flag=True, help="For a session of real clients: uneventful requests, too.")
def show(file: Path, form: str, out: Path | None, width: int | None, module: str | None, whole: bool) -> int:
    """Show a run as a timeline, or export it.

    --as tla --out NAME.tla also writes NAME.cfg, the configuration for TLC. --as html writes a trail as one HTML file,
    to step through in a browser.
    """
    if form not in SHOWN:
        raise Refusal(unknown(f"there is no form {form!r} of a run", form, SHOWN, "give one of") + " with --as")
    if module is not None and form != "tla":
        raise Refusal(f"--module is for --as tla, but the form is {form}; give --as tla as well")
    if out is not None:
        check_file(out)
    if form == "html":
        _write_texts({out: _page(file)})
        return 0
    if is_trail(file):
        trail = read_trail(file)
        model, history = replayed_history(trail)
        fair_from = trail.fair_from
    else:
        model = model_of_history(file)
        history, fair_from = read_history(file, model), None
    if form == "tla":
        files = tla.files(history, model, out, module)
    else:
        files = {out: render(history, model, form, width or _columns(out), fair_from, whole)}
    _write_texts(files)
    return 0


def _page(file: Path) -> str:
    """Return the run of a trail as a page. Raises Refusal for a history, and for a trail that does not fit."""
    if not is_trail(file):
        raise Refusal(f"{file} is a history, without the steps that were possible but not taken; a page needs the "
                      "trail of the run")
    page: str = import_module("harness.demo.web.one_file").page_of_trail(read_trail(file))
    return page


def _write_texts(files: Mapping[Path | None, str]) -> None:
    """Write texts to their files, and the one without a file to stdout."""
    for path, text in files.items():
        if path is None:
            click.echo(text.removesuffix("\n"))
        else:
            write_atomically(path, text.removesuffix("\n").split("\n"))


def _columns(out: Path | None) -> int:
    """Return the width of the terminal that a timeline goes to."""
    return max(60, shutil.get_terminal_size((TEXT_WIDTH, 24)).columns) if out is None else TEXT_WIDTH
