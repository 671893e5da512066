"""The command `check`: an exhaustive search of a spec composition, its verdict, and counterexamples as trails."""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from harness.cli.commands import AS_JSON, OUT, _check_folder, _pairs, cli, emit
from harness.explore.search import Result, Search, Violation
from harness.history import render
from harness.model import NO_FAULTS, Model, Refusal, find_model
from harness.record import Chosen, Trail, header_of, history_of
from harness.simulate.hunt import write_run
from harness.simulate.screen import Screen, counted
from harness.simulate.session import Run


@cli.command()
@click.argument("model")
@click.option("--size", "sizes", multiple=True, metavar="NAME=N", help="A size of the model; may be repeated.")
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="A setting of the model.")
@click.option("--invariant", "invariants", multiple=True, metavar="NAME", help="Check these invariants only.")
@click.option("--symmetry", is_flag=True, help="Count states that differ by a renaming as one.")
@click.option("--no-stop", is_flag=True, help="Go on after a violation; report the first of each invariant.")
@click.option("--deadlock", is_flag=True, help="A state without any possible step is a violation.")
@OUT
@AS_JSON
def check(
    model: str, sizes: tuple[str, ...], settings: tuple[str, ...], invariants: tuple[str, ...], symmetry: bool,
    no_stop: bool, deadlock: bool, out: Path, as_json: bool,
) -> int:
    """Search a spec model completely; without --invariant every invariant that the model claims is checked."""
    spec = find_model(model)
    given = (_pairs(sizes, int), _pairs(settings, str))
    built = spec.make(*given, history_variables=True)
    names = _invariants(built, invariants)
    _check_folder(out)
    screen = Screen(quiet=as_json)
    start, cpu = time.perf_counter(), time.process_time()
    with screen.progress("searching", noun="states") as progress:
        search = Search(built, names, stop=not no_stop, deadlock=deadlock, symmetry=symmetry)
        search.progress = lambda distinct, generated, depth, queue: progress(
            distinct, 0, f"depth {depth}, {queue:,} in the next level"
        )
        result = search.run()
    seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - cpu
    paths, timelines = {}, {}
    for violation in result.violations:
        seen = spec.make(*given)
        path = paths[violation.name] = out / f"{model.replace('/', '-')}-{violation.name}.trail.jsonl"
        timelines[violation.name] = _timeline(seen, write_run(_trail(seen, violation, names), path)[1])
    told = _told(built, result, search.interrupted, paths, seconds, cpu_seconds)
    if as_json:
        emit(told)
    else:
        _print(told, timelines)
    if search.interrupted:
        raise KeyboardInterrupt("interrupted; the counts above are of the part that was searched")
    return 1 if result.violations else 0


def _invariants(model: Model, chosen: tuple[str, ...]) -> tuple[str, ...]:
    known = [prop.name for prop in model.properties if prop.is_safety]
    for name in chosen:
        if name not in known:
            raise Refusal(f"{model.name} has no invariant {name!r}; its invariants are {', '.join(known)}")
    claimed = model.claimed if model.claimed is not None else tuple(known)
    return chosen or tuple(name for name in known if name in claimed)


def _trail(model: Model, violation: Violation, names: tuple[str, ...]) -> Trail:
    """Return a counterexample as a trail of the model without its history variables."""
    return Trail(
        model.name, model.sizes, model.settings, model.network.name, NO_FAULTS, names,
        tuple(Chosen(label) for label in violation.labels), strategy="check", initial=violation.initial,
        violates=violation.name if violation.kind == "invariant" else None,
    )


def _told(
    model: Model, result: Result, interrupted: bool, paths: Mapping[str, Path], seconds: float, cpu_seconds: float
) -> dict[str, Any]:
    verdict = "interrupted" if interrupted else "violated" if result.violations else "ok"
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return {
        "model": model.name, "sizes": dict(model.sizes), "settings": dict(model.settings),
        "initial": result.initial, "distinct": result.distinct, "generated": result.generated, "depth": result.depth,
        "verdict": verdict, "complete": result.complete, "deadlocks": result.deadlocks,
        "violated": [
            {"property": v.name, "kind": v.kind, "length": v.length, "reason": v.reason, "trail": str(paths[v.name])}
            for v in result.violations
        ],
        "actions": dict(result.actions), "seconds": round(seconds, 3), "cpu_seconds": round(cpu_seconds, 3),
        "distinct_per_second": round(result.distinct / max(cpu_seconds, 1e-9)), "peak_memory_bytes": peak,
        "engine": "python",
    }


def _print(told: Mapping[str, Any], timelines: Mapping[str, str]) -> None:
    counts = (
        f"{counted(told['distinct'], 'distinct state')}, {told['generated']:,} generated, depth {told['depth']}, "
        f"{told['cpu_seconds']:.1f} s of CPU"
    )
    if not told["violated"]:
        said = "searched in part, no violation so far" if told["verdict"] == "interrupted" else "no violation"
        click.echo(f"{told['model']}: {said} in {counts}")
    for violated in told["violated"]:
        click.echo(
            f"{told['model']}: {violated['property']} is violated after {counted(violated['length'] - 1, 'step')}, "
            f"the fewest possible\n  {violated['reason']}\n  {counts}"
        )
        click.echo(timelines[violated["property"]])
        click.echo(f"  trail   {violated['trail']}\n  replay  kafka-proto replay {violated['trail']}")


def _timeline(model: Model, run: Run) -> str:
    """Return a counterexample as a column-per-actor table."""
    assert run.recorder is not None
    history = history_of(header_of(run.trail, model, "plain"), run.recorder, run.verdict.to_json(), model)
    return render(history, model, "text", width=100)
