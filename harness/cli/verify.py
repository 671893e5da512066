"""The command `kafka-proto verify`: recorded runs, or runs made for the purpose, held against the spec."""

from __future__ import annotations

from typing import Any

import click

from harness.cli import heard, whole
from harness.cli.group import AS_JSON, SETTINGS, SIZES, cli, emit, pairs
from harness.history.campaign import Totals, refine_runs
from harness.history.refine import Refiner
from harness.history.why_not import Explanation, explain
from harness.model import Refusal, find_model, find_scenario
from harness.record.words import counted
from harness.simulate import strategies
from harness.simulate.screen import Screen
from harness.simulate.session import everything, plan_of


@cli.command()
@click.argument("what", nargs=-1, required=True, metavar="HISTORY|TRAIL|DIR...")
@click.option("--seeds", type=whole(1), metavar="N", help="Simulate: N runs of each MODEL or SCENARIO.")
@click.option("--strategy", type=click.Choice(strategies.NAMES), default="random", show_default=True)
@SIZES
@SETTINGS
@AS_JSON
def verify(
    what: tuple[str, ...], seeds: int | None, strategy: str, sizes: tuple[str, ...], settings: tuple[str, ...],
    as_json: bool,
) -> int:
    """Hold runs against the spec.

    With --seeds, models or scenarios are named instead of files; their runs are simulated.
    """
    if seeds is None:
        raise Refusal("give --seeds N and a model or scenario")
    results = [_simulated(name, seeds, strategy, sizes, settings, as_json) for name in what]
    if as_json:
        emit({"simulated": results})
    return 1 if any(result["failed"] for result in results) else 0


def _simulated(
    name: str, seeds: int, strategy: str, sizes: tuple[str, ...], settings: tuple[str, ...], as_json: bool
) -> dict[str, Any]:
    scenario = find_scenario(name)
    base = scenario
    spec = find_model(base.model if base is not None else name)
    own_sizes, own_settings = (base.sizes, base.settings) if base is not None else ({}, {})
    model = spec.make(
        {**own_sizes, **pairs(sizes, int)}, {**own_settings, **pairs(settings, str)},
        *((base.network, base.faults) if base is not None else ()),
    )
    plan = plan_of(base) if base is not None else everything(model)
    refiner = Refiner(model)
    with Screen(quiet=as_json).progress("refining") as progress:
        totals = refine_runs(model, plan, range(seeds), strategy, refiner, progress)
        if totals.interrupted:
            heard()
    why = explain(refiner, totals.failure) if totals.failure is not None else None
    result = {"what": name, **totals.to_json(), "explanation": why.to_json() if why else None}
    if not as_json:
        for line in _told(name, totals, why):
            click.echo(line)
    if totals.interrupted:
        raise KeyboardInterrupt(f"interrupted; {totals.runs:,} of {counted(seeds, 'run')} were finished")
    return result


def _told(name: str, totals: Totals, why: Explanation | None) -> list[str]:
    """Return what simulated runs came to, as lines."""
    moved = totals.steps - totals.stutters
    said = f"{totals.failed:,} of {counted(totals.runs, 'run')} leave the spec" if totals.failed else (
        f"all of {counted(totals.runs, 'run')} follow the spec")
    lines = [f"{name}: {said}"]
    share = f" ({100 * totals.stutters / totals.steps:.1f} %)" if totals.steps else ""
    lines.append(f"  {counted(totals.steps, 'step')}, {totals.stutters:,} of them stutters{share}; "
                 f"{counted(len(totals.reached), 'state')} of the spec")
    taken = totals.actions + totals.extensions
    for action, count in sorted({**taken, **{name: totals.extensions[name] for name in totals.extensions}}.items()):
        kind = "  (extension)" if action in totals.extensions else ""
        lines.append(f"  {count:>11,}  {100 * count / moved if moved else 0:5.1f} %  {action}{kind}")
    if totals.violated:
        lines.append("  properties violated: " + ", ".join(f"{p} in {n:,}" for p, n in sorted(totals.violated.items())))
    if why is not None:
        lines.append(f"seed {totals.seed}:")
        lines += why.lines()
    return lines
