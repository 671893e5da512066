"""The command `kafka-proto verify`: checks recorded runs, or runs made for the purpose, against properties and spec.

Exit codes: 0 all is as it should be, 1 a claimed property is violated, a step is not allowed, or a file is not what
happened; 2 and 130 as everywhere.
"""

from __future__ import annotations

import textwrap
from collections.abc import Container, Sequence
from pathlib import Path

import attrs
import click

from harness.cli import OneOf, interrupt_handled, whole
from harness.cli.check_what import FAULTS, TARGETS, asked_runs
from harness.cli.group import AS_JSON, SETTINGS, SIZES, answer, cli, emit, pairs
from harness.cli.screen import TerminalOutput
from harness.model import Model, Refusal, find_runnable
from harness.record.wording import counted, some_of
from harness.simulate.runs.plan import Plan
from harness.simulate.strategies import by_name
from harness.verify.judge import FileJudge, JudgedFile
from harness.verify.simulated_runs import Totals, refine_runs

SUFFIXES = (".history.jsonl", ".trail.jsonl")
WIDTH = 100
"""Columns of an explanation."""


@cli.command()
@click.argument("what", nargs=-1, required=True, metavar="HISTORY|TRAIL|DIR...")
@click.option("--seeds", type=whole(1), metavar="N", help="Simulate N runs of each argument, a MODEL or SCENARIO.")
@click.option("--strategy", type=OneOf(by_name.NAMES), default="random", show_default=True,
              help="With --seeds: how steps are chosen.")
@click.option("--steps", type=whole(1), metavar="N", help="With --seeds: most steps of a run.")
@click.option("--mode", type=OneOf(["free", "timed"]), help="With --seeds: as for simulate.")
@SIZES
@SETTINGS
@FAULTS
@TARGETS
@AS_JSON
def verify(
    what: tuple[str, ...], seeds: int | None, strategy: str, steps: int | None, mode: str | None,
    sizes: tuple[str, ...], settings: tuple[str, ...], faults: tuple[str, ...], targets: tuple[str, ...], as_json: bool,
) -> int:
    """Judge recorded runs from their files alone.

    Evaluates the invariants in every recorded state. If the model has a refinement, also checks each step against the
    spec, and explains the first step that the spec does not allow. A folder stands for all trails and histories in it;
    a history and its trail are judged once.

    With --seeds, give models or scenarios instead of files: their runs are simulated and checked against the spec.
    """
    if seeds is not None:
        asked = [asked_runs(name, pairs(sizes, int), pairs(settings, str), faults, targets) for name in what]
        runs = [(model, attrs.evolve(plan, steps=steps or plan.steps, mode=mode or plan.mode)) for model, plan in asked]
        return _simulate(what, runs, seeds, strategy, as_json)
    if steps or mode or sizes or settings or faults or targets:
        raise Refusal("sizes, settings, faults, targets, steps and modes are for simulated runs; give --seeds N and a "
                      "model or scenario")
    return _files([path for name in what for path in _found(name)], as_json)


def _found(name: str) -> list[Path]:
    """Return the files that an argument stands for. Raises Refusal."""
    path = Path(name)
    if path.is_dir():
        files = dict.fromkeys(sorted(f for suffix in SUFFIXES for f in path.rglob(f"*{suffix}") if f.is_file()))
        if not files:
            kinds = " and no *".join(SUFFIXES)
            raise Refusal(f"there is no *{kinds} in {path}; give a folder of recorded runs")
        return [file for file in files if not _is_beside(file, files)]
    if not path.exists() and _is_model(name):
        raise Refusal(f"{name} is not a file but can be simulated; give --seeds N to judge N runs of it")
    return [path]


def _is_beside(file: Path, files: Container[Path]) -> bool:
    """Say if a file is the trail that belongs to a history."""
    stem = file.name.removesuffix(SUFFIXES[1])
    return stem != file.name and file.with_name(stem + SUFFIXES[0]) in files


def _is_model(name: str) -> bool:
    try:
        return bool(find_runnable(name))
    except Refusal:
        return False


def _files(paths: list[Path], as_json: bool) -> int:
    judge, judged, refused = FileJudge(), list[JudgedFile](), list[str]()
    interrupted = False
    with TerminalOutput(quiet=as_json).progress("verifying", "files") as progress:
        try:
            for path in paths:
                try:
                    judged.append(judge.file(path))
                except Refusal as error:
                    if len(paths) == 1:
                        raise
                    refused.append(str(error))
                wrong = sum(not one.ok for one in judged)
                progress(len(judged) + len(refused), len(paths), f"{wrong:,} with findings")
        except KeyboardInterrupt:
            interrupt_handled()
            interrupted = True
    answer(as_json, {"files": [one.to_json() for one in judged], "refused": refused, "interrupted": interrupted},
           (line for one in judged for line in _verdict_lines(one)))
    if interrupted:
        raise KeyboardInterrupt(f"interrupted; {some_of(len(judged), len(paths), 'file', 'were')} judged")
    if refused:
        more = f" ({len(refused):,} of {counted(len(paths), 'file')} cannot be read)" if refused[1:] else ""
        raise Refusal(refused[0] + more)
    return 0 if all(one.ok for one in judged) else 1


def _verdict_lines(one: JudgedFile) -> list[str]:
    """Return the outcome of a file: a line with the verdict, then lines for what is wrong and what is not judged."""
    claimed = [broken for broken in one.broken if broken.claimed]
    said = [f"violates {broken.name} at step {broken.step}" for broken in claimed]
    if one.explanation is not None:
        said.append(f"step {one.explanation.step} is not a step of the spec")
    if one.differs:
        said.append("its recorded verdict contradicts its states")
    if one.odd:
        said.append("no run of the model can have this record")
    if one.departed is not None and not one.odd:
        said.append(_departed(one, bool(said)))
    if one.isolation and not claimed:
        said.append("clients saw what they must not see")
    counts = [counted(one.steps, "step"), f"{counted(one.properties, 'invariant')} evaluated in each state"]
    if one.refined is not None:
        used = [f"{name} {count:,}" for name, count in one.refined.extensions.items() if count]
        counts += [counted(one.refined.stutters, "stutter"), f"extensions: {', '.join(used) or 'none'}"]
    lines = [f"{one.path}: {'; '.join(said) or 'ok'} ({', '.join(counts)})"]
    lines += [f"  {broken.name}: {broken.reason}" for broken in claimed]
    lines += [f"  {line}" for breach in one.isolation for line in breach.lines()]
    if one.explanation is not None:
        lines += [f"  {line}" for line in one.explanation.lines(WIDTH - 2)]
    said = [*one.differs, *(f"step {oddity.step}: {oddity.sentence} ({oddity.rule})" for oddity in one.odd)]
    if one.departed is not None:
        said.append(f"step {one.departed.step}: {one.departed.sentence}")
    others = [broken for broken in one.broken if not broken.claimed]
    said += [f"{other.name} (not claimed) fails at step {other.step}: {other.reason}" for other in others]
    if one.unjudged:
        said.append(f"not judged without the trail next to it: {', '.join(one.unjudged)}")
    said += [f"{what} is not judged by what clients saw: {why}" for what, why in one.left_out.items()]
    for sentence in said:
        lines += textwrap.wrap(sentence, WIDTH, initial_indent="  ", subsequent_indent="      ", break_on_hyphens=False)
    if one.refined is None:
        lines.append(f"  {one.model} has no refinement: its steps are not checked against a spec")
    return lines


def _departed(one: JudgedFile, is_wrong: bool) -> str:
    """Say what follows if the model's own actors do not do what is recorded."""
    if is_wrong:
        return "the model's actors would not do this"
    if one.refined is None:
        return "no property fails, but the model's actors would not do this"
    return "legal in the spec, but the model's actors would not do this"


def _simulate(
    what: tuple[str, ...], runs: Sequence[tuple[Model, Plan]], seeds: int, strategy: str, as_json: bool
) -> int:
    results = []
    for name, (model, plan) in zip(what, runs, strict=True):
        with TerminalOutput(quiet=as_json).progress("refining") as progress:
            totals = refine_runs(model, plan, range(seeds), strategy, progress=progress)
        if totals.interrupted:
            interrupt_handled()
        results.append({"what": name, **totals.to_json()})
        if not as_json:
            click.echo("\n".join(_summary(name, totals)))
        if totals.interrupted:
            break
    if as_json:
        emit({"simulated": results})
    if totals.interrupted:
        raise KeyboardInterrupt(f"interrupted; of {name} {some_of(totals.runs, seeds, 'run', 'were')} finished")
    return 1 if any(result["failed"] or result["violated"] for result in results) else 0


def _summary(name: str, totals: Totals) -> list[str]:
    """Return the outcome of simulated runs, as lines."""
    moved = sum(totals.actions.values()) + sum(totals.extensions.values())
    said = f"all of {counted(totals.runs, 'run')} follow the spec"
    if totals.runs == 1:
        said = "the one run follows the spec"
    if totals.failed:
        said = f"{some_of(totals.failed, totals.runs, 'run', 'leave')} the spec"
    share = f" ({100 * totals.stutters / totals.steps:.1f} %)" if totals.steps else ""
    lines = [
        f"{name}: {said}",
        f"  {counted(totals.steps, 'step')}, {counted(totals.stutters, 'stutter')}{share}, "
        f"{counted(len(totals.reached), 'state')} of the spec",
    ]
    for action, count in sorted({**totals.actions, **totals.extensions}.items()):
        kind = "  (extension)" if action in totals.extensions else ""
        lines.append(f"  {count:>11,}  {100 * count / moved if moved else 0:5.1f} %  {action}{kind}")
    lines.append("  Actions of the actors: count, share of stutters, steps of the spec:")
    for action, counts in totals.by_action().items():
        every = sum(counts.values())
        known = ", ".join(f"{name} {count:,}" for name, count in counts.items() if name != "stutter")
        stutters = f"{100 * counts.get('stutter', 0) / every:5.1f} %"
        said = f"  {every:>11,}  {stutters}  {action}{f': {known}' if known else ''}"
        lines += textwrap.wrap(said, WIDTH, subsequent_indent=" " * 25, break_on_hyphens=False)
    if totals.untaken:
        lines.append(f"  possible, but never taken: {', '.join(totals.untaken)}")
    if totals.violated:
        lines.append("  properties violated: " + ", ".join(f"{p} in {n:,}" for p, n in sorted(totals.violated.items())))
    if totals.explanation is not None:
        lines += [f"  seed {totals.seed}:", *(f"  {line}" for line in totals.explanation.lines(WIDTH - 2))]
    return lines
