"""The command `check`: an exhaustive search of a model, its verdict, and counterexamples as trails."""

from __future__ import annotations

import gc
import math
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.cli import OneOf, whole
from harness.cli.check_expected import missed, temporal_of, what_finds_it, why_missed
from harness.cli.check_limits import FREE_STATES, Report, Watch, ended_by
from harness.cli.check_options import (
    PLAIN,
    SPARK,
    beyond_specs,
    check_options,
    engine_for,
    on_spark,
    reductions_of,
    refuse_expressions,
    refuse_together,
)
from harness.cli.check_text import summary_lines
from harness.cli.check_what import FAULTS, TARGETS, asked_target
from harness.cli.group import AS_JSON, OUT, SETTINGS, SIZES, answer, check_folder, cli, pairs
from harness.explore.any_model import PlainSearch
from harness.explore.bounded import Bounded
from harness.explore.checkpoint import Checkpoint
from harness.explore.machine import cores, free, peak
from harness.explore.packed.result import Result, Violation
from harness.explore.packed.search import ENGINES, Search
from harness.explore.target import SearchTarget
from harness.model import Model, Refusal, unknown
from harness.record.expressions import expressions_of, with_expressions

if TYPE_CHECKING:
    from harness.campaign.search.spark_search import SparkSearch
    from harness.explore.liveness.check import Lasso
    from harness.record import Trail

SAVED_EVERY = 30.0
"""Seconds between checkpoints."""


@cli.command()
@click.argument("what", metavar="MODEL|SCENARIO")
@SIZES
@SETTINGS
@click.option("--network", metavar="NAME", help="The network's semantics (default: the model's or scenario's).")
@FAULTS
@TARGETS
@click.option("--timers", multiple=True, metavar="N|NAME=N",
              help="Most timers that fire in a run: of all names (N), of one (NAME=N), or of one at an actor "
                   "(ACTOR.NAME=N); may be repeated (default: the scenario's limit; for a model, no limit).")
@click.option("--states", type=whole(1), metavar="N",
              help=f"Stop after N states (default: {FREE_STATES:,} with actors or faults, else no limit).")
@click.option("--invariant", "invariants", multiple=True, metavar="NAME|EXPRESSION",
              help="Check this invariant instead of all claimed ones; may be repeated. It may be an expression over "
                   "the variables, such as 'client[\"c1\"].epoch < 2'.")
@click.option("--property", "temporal", multiple=True, metavar="NAME",
              help="Also check this temporal property; may be repeated.")
@click.option("--fairness", default="spec", show_default=True, metavar="spec|none|action|weak|next",
              help="Fairness that temporal properties assume. spec: the module's formula. none: no fairness. action: "
                   "its actions weakly fair, whatever their arguments. weak: weakly fair for each choice of arguments "
                   "(weak,ACTION: ACTION strongly). next: WF_vars(Next).")
@click.option("--symmetry", is_flag=True, help="Count states that are equal up to interchangeable names as one.")
@click.option("--reduce", "reductions", multiple=True, metavar="numbers,symmetry,order|all|none",
              help="Exact reductions: search fewer states, with the same verdict. all: those that keep lengths.")
@click.option("--view", is_flag=True,
              help="Apply the module's VIEW: states that differ only in hidden variables count as one.")
@click.option("--no-stop", is_flag=True, help="Continue after a violation; report the first of each invariant.")
@click.option("--deadlock", is_flag=True, help="Report a state without a possible step as a violation.")
@click.option("--engine", type=OneOf([*ENGINES, PLAIN, SPARK]), default="auto", show_default=True,
              help="How states are searched, with the same results. auto: the compiled kernel if possible, else "
                   "python. plain: state by state. spark: on Spark.")
@click.option("--master", metavar="URL", help="With --engine spark: the Spark master (default: local[*]).")
@click.option("--parts", type=whole(1), metavar="N",
              help="With --engine spark: partitions of the states (default: 4 per core).")
@click.option("--fingerprints", is_flag=True, help="Keep 64-bit fingerprints in memory, not whole states.")
@click.option("--memory", type=float, metavar="GB",
              help="Stop when the search needs more memory than this (default: nine tenths of what is free).")
@click.option("--threads", type=whole(1), metavar="N",
              help="Threads of the compiled kernel (default: one per core).")
@click.option("--checkpoint", type=click.Path(path_type=Path), metavar="DIR",
              help="Save the search here at intervals and when interrupted; resume from a checkpoint found here.")
@OUT
@AS_JSON
def check(
    what: str, sizes: tuple[str, ...], settings: tuple[str, ...], network: str | None, faults: tuple[str, ...],
    targets: tuple[str, ...], timers: tuple[str, ...], states: int | None, invariants: tuple[str, ...],
    temporal: tuple[str, ...], fairness: str, symmetry: bool, reductions: tuple[str, ...], view: bool, no_stop: bool,
    deadlock: bool, engine: str, master: str | None, parts: int | None, fingerprints: bool, memory: float | None,
    threads: int | None, checkpoint: Path | None, out: Path, as_json: bool,
) -> int:
    """Check every reachable state of a model or a scenario.

    Without --invariant, all claimed invariants are checked. A search of actors stops at a limit. A scenario is searched
    with its own faults and timers. If its expected violation is not found, the exit code is 2.
    """
    asked = asked_target(what, pairs(sizes, int), pairs(settings, str), network, faults, targets, timers)
    built = with_expressions(asked.searched(view), invariants)
    names = _invariants(built, asked, invariants)
    reduce = reductions_of(built, reductions, symmetry)
    given = {"--reduce": bool(reduce) and not symmetry, "--symmetry": symmetry, "--view": view,
             "--fingerprints": fingerprints}
    check_options(built, temporal, memory, given)
    refuse_expressions(built, {**given, "--engine spark": engine == SPARK})
    refuse_together(engine, checkpoint, {"--master": master, "--parts": parts}, {
        "--property": temporal, **given, "--memory": memory, "--threads": threads, "--states": states,
    })
    engine = engine_for(built, engine, reduce, {
        "--property": temporal, "--view": view, "--fingerprints": fingerprints, "--checkpoint": checkpoint,
        "--threads": threads,
    })
    spoiling = {**given, "--invariant": invariants}
    temporal = temporal or temporal_of(asked, built, engine, spoiling)
    if temporal or fairness != "spec":
        from harness.explore.liveness.fairness import fairness_of

        fairness_of(built, fairness)  # refuses impossible options before anything is searched
    check_folder(out)
    start, cpu = time.perf_counter(), time.process_time()
    most = states or (FREE_STATES if engine == PLAIN or beyond_specs(built) else 0)
    most_bytes = round(memory * 1e9) if memory else free()
    search: Search | PlainSearch | SparkSearch
    if engine == SPARK:
        search = on_spark(built, names, checkpoint, master, parts, not no_stop, deadlock)
    elif engine == PLAIN:
        search = PlainSearch(built, names, stop=not no_stop, deadlock=deadlock, witnesses=True, states=most,
                             memory=most_bytes, reduce=reduce)
    else:
        search = Search(
            built, names, stop=not no_stop, deadlock=deadlock, symmetry=bool(reduce), view=view, witnesses=True,
            fingerprints=fingerprints, engine=engine, threads=threads or cores(), states=most, memory=most_bytes,
            checkpoint=Checkpoint(checkpoint) if checkpoint is not None else None, due=_timer(),
        )
    with _progress(not as_json, most) as report, _stopping(search):
        watch = Watch(search, report, looks=not most)
        search.progress = watch.progress
        result = search.run()
        search_cpu = time.process_time() - cpu
        watch.look_back()
    lassos = _lassos(search, temporal, fairness) if isinstance(search, Search) and temporal and result.complete else {}
    seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - cpu
    summary = _summary(asked, built, result, search.interrupted, seconds, cpu_seconds + search.worker_cpu,
                       search_cpu + search.worker_cpu)
    summary["reductions"] = list(reduce)
    summary |= watch.summary({"states": most, "memory": most_bytes / 1e9})
    if result.keys:
        summary["collision_probability"] = result.distinct * (result.generated - result.distinct) / result.keys
    summary["properties"] = {name: lassos[name] is None if name in lassos else None for name in temporal}
    summary["checked"] = [*names, *lassos]
    summary["unchecked"] = [name for name in asked.temporal_claims(built) if name not in temporal]
    tables = _counterexamples(asked, names, result, lassos, fairness, out, summary)
    if summary["violated"] and summary["verdict"] in ("ok", "limited"):
        summary["verdict"] = "violated"
    summary["missed"] = missed(summary, invariants)
    is_missed = summary["missed"] is not None and summary["missed"]["why"] != "asked"
    if is_missed and summary["verdict"] == "ok":
        summary["verdict"] = "missed"
    answer(as_json, summary, summary_lines(summary, tables))
    if search.interrupted:
        kept = f"; the checkpoint is in {checkpoint}, the same command resumes" if checkpoint is not None else ""
        raise KeyboardInterrupt(f"interrupted; the counts above are of a part of the states{kept}")
    if isinstance(search, Search):
        search.close()
    gc.freeze()
    bounds = {"--size": sizes, "--set": settings, "--network": network, "--faults": faults, "--target": targets,
              "--timers": timers, **given}
    if summary["verdict"] == "limited":
        more = f"; {what_finds_it(asked, summary, bounds)}" if is_missed else ""
        raise Refusal(ended_by(summary, checkpoint) + more)
    if is_missed:
        raise Refusal(why_missed(asked, summary, bounds))
    return 1 if summary["violated"] else 0


def _invariants(model: Model, asked: SearchTarget, chosen: tuple[str, ...]) -> tuple[str, ...]:
    known = [prop.name for prop in model.properties if prop.is_safety]
    for name in chosen:
        if name not in known:
            temporal = any(prop.name == name and prop.is_temporal for prop in model.properties)
            hint = f"; {name} is a temporal property, give it with --property" if temporal else ""
            raise Refusal(unknown(f"{model.name} has no invariant {name!r}", name, known, "its invariants are") + hint)
    return chosen or asked.invariants(model)


def _timer() -> Callable[[], bool]:
    """Return a function that says, again and again, when it is time to save."""
    last = time.monotonic()

    def due() -> bool:
        nonlocal last
        if time.monotonic() - last < SAVED_EVERY:
            return False
        last = time.monotonic()
        return True

    return due


@contextmanager
def _stopping(search: Search | PlainSearch | SparkSearch) -> Iterator[None]:
    """Let the first interrupt end the search where it can go on later, and the second one at once.

    What follows the second one is short, so that further interrupts are not listened to.
    """
    def note(*given: Any) -> None:
        if not search.wants_stop:
            search.wants_stop = True
            return
        for number, *_ in before:
            signal.signal(number, signal.SIG_IGN)
        lost = "nothing was written"
        if search.checkpoint is not None:
            lost = "the search since the last checkpoint is lost"
        raise KeyboardInterrupt(f"interrupted; {lost}")

    before = [(number, signal.signal(number, note)) for number in (signal.SIGINT, signal.SIGTERM)]
    try:
        yield
    finally:
        for number, handler in before:
            if signal.getsignal(number) is note:
                signal.signal(number, handler)


@contextmanager
def _progress(wanted: bool, most: int) -> Iterator[Report]:
    """Show progress on a terminal: states, rate, what is queued, and the time that remains where the levels tell.

    `most` is the number of states after which the search ends, or 0.
    """
    if not (wanted and sys.stderr.isatty()):
        yield lambda distinct, generated, depth, queue: None
        return
    from harness.cli.screen import TerminalOutput

    queues: dict[int, int] = {}
    begin: list[float] = []
    with TerminalOutput().progress("searching", noun="states") as progress:
        def report(distinct: int, generated: int, depth: int, queue: int) -> None:
            queues[depth] = queue
            now, expanded = time.monotonic(), distinct - queue
            begin[:] = begin or [now, expanded]
            rate = (expanded - begin[1]) / max(now - begin[0], 1e-9)
            left = remaining(list(queues.values()))
            minutes, seconds = divmod(math.ceil(left / rate), 60) if rate else (0, 0)
            soon = f", about {minutes}:{seconds:02} left" if left else ""
            progress(distinct, most, f"depth {depth}, {queue:,} queued{soon}")

        yield report


def remaining(queues: list[int]) -> int:
    """Estimate how many states are to be expanded yet, from how the queue shrank over the last levels; else return 0.

    Behind the widest level, levels of these models shrink faster and faster, so that a geometric series is an upper
    bound that gets better; before it no estimate is possible.
    """
    last = [size for size in queues[-4:-1] if size]
    if len(last) < 3 or not last[0] > last[1] > last[2]:
        return 0
    ratio = last[2] / last[1]
    return round(queues[-1] / (1 - ratio))


def _lassos(search: Search, names: tuple[str, ...], mode: str) -> dict[str, Lasso | None]:
    """Check temporal properties on the graph of a search; each lasso is checked against the reference semantics."""
    from harness.explore.liveness.check import check_temporal, fairness_of
    from harness.explore.liveness.lasso import why_no_counterexample
    from harness.explore.liveness.packed_graph import graph_of

    graph, model, ordered = graph_of(search), search.model, False
    assumed = fairness_of(model, mode)
    found: dict[str, Lasso | None] = {}
    for name in names:
        lasso = found[name] = check_temporal(graph, model, name, assumed)
        if lasso is not None:
            if not ordered:  # which of the shortest lassos is reported must not depend on the order of the search
                graph, ordered = graph_of(search, in_order=True), True
                lasso = found[name] = check_temporal(graph, model, name, assumed)
            assert lasso is not None
            why = why_no_counterexample(model, lasso.initial, lasso.prefix, lasso.cycle, name, mode)
            if why is not None:
                raise AssertionError(f"the lasso found for {name} is none: {why}")
    return found


def _trail(
    model: Model, names: tuple[str, ...], found: Violation | Lasso, fairness: str, scenario: str | None
) -> Trail:
    """Return a counterexample as a trail of the model without its history variables and bounds."""
    from harness.record import Chosen, Trail

    if isinstance(found, Violation):
        labels, violates = found.labels, found.name
        claims = names if found.kind == "deadlock" else (found.name,)
        ending: dict[str, Any] = {}
    else:
        labels, claims, violates = (*found.prefix, *found.cycle), (found.name,), found.name
        begin = len(found.prefix)
        ending = {"fair_from": begin, "back_to": begin if found.cycle else None, "fairness": fairness}
    return Trail(
        model.name, model.sizes, model.settings, model.network.name, model.faults, claims,
        tuple(Chosen(label) for label in labels), strategy="check", scenario=scenario, initial=found.initial,
        violates=violates, **ending,
    )


def _summary(
    asked: SearchTarget, model: Model, result: Result, interrupted: bool, seconds: float, cpu_seconds: float,
    search_cpu: float,
) -> dict[str, Any]:
    from harness.record.trail import faults_to_json

    verdict = "interrupted" if interrupted else "violated" if result.violations else "ok"
    met = {witness.name: witness for witness in result.witnesses}
    return {
        "model": model.name, "scenario": None if asked.scenario is None else asked.scenario.name,
        "expected": None if asked.scenario is None else asked.scenario.expected,
        "sizes": dict(model.sizes), "settings": dict(model.settings), "network": model.network.name,
        "actors": list(model.actors),
        "faults": faults_to_json(model.faults), "timers": dict(model.timers) if isinstance(model, Bounded) else None,
        "initial": result.initial, "distinct": result.distinct, "generated": result.generated, "depth": result.depth,
        "verdict": verdict, "complete": result.complete, "violated": [],
        "witnesses": {
            prop.name: {"length": met[prop.name].length, "steps": list(met[prop.name].labels),
                        "shortest": prop.name not in result.longer}
            if prop.name in met else None
            for prop in model.properties if prop.form == "sometimes"
        },
        "actions": dict(result.actions), "seconds": round(seconds, 3), "cpu_seconds": round(cpu_seconds, 3),
        "distinct_per_second": round(result.distinct / max(search_cpu, 1e-9)), "peak_memory_bytes": peak(),
        "engine": result.engine,
    }


def _counterexamples(
    asked: SearchTarget, names: tuple[str, ...], result: Result,
    lassos: Mapping[str, Lasso | None], fairness: str, out: Path, summary: dict[str, Any],
) -> dict[str, str]:
    """Write the counterexamples as trails and histories, and report them; return their tables by property."""
    found: list[Violation | Lasso] = [*result.violations, *(lasso for lasso in lassos.values() if lasso is not None)]
    if not found:
        return {}
    from harness.record import read_history
    from harness.render import render
    from harness.simulate.hunting.hunt import write_run

    tables = {}
    for violation in found:
        seen = with_expressions(asked.make(), names)
        own = expressions_of(seen)
        called = f"expression-{own.index(violation.name) + 1}" if violation.name in own else violation.name
        path = out / f"{asked.name.replace('/', '-')}-{called}.trail.jsonl"
        scenario = None if asked.scenario is None else asked.scenario.name
        written, run = write_run(_trail(seen, names, violation, fairness, scenario), path)
        history = read_history(written, seen)
        tables[violation.name] = render(history, seen, "text", width=100, fair_from=run.trail.fair_from)
        entry = {"property": violation.name, "length": violation.length, "reason": violation.reason, "trail": str(path)}
        if isinstance(violation, Violation):
            entry |= {"kind": violation.kind, "shortest": violation.name not in result.longer}
        else:
            entry |= {"kind": "temporal", "back_to": violation.back_to,
                      "fairness": [str(note) for note in violation.fairness]}
        summary["violated"].append(entry)
    return tables
