"""The command line: `kafka-proto list | hunt | simulate | replay | shrink | show`.

Exit codes: 0 the outcome is as expected (or nothing is violated), 1 a violation, 2 wrong use or bad input; 130 when
interrupted. With `--json`, stdout carries one JSON object and nothing else. Bad input is one sentence on stderr.
"""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path
from typing import Any, NoReturn

import click

from harness.model import ModelSpec, Refusal, Scenario, find_model, find_scenario, model_specs, scenarios
from harness.record import Recorder, Trail, header_of, read_history, read_trail, write_history
from harness.record.files import read_lines
from harness.record.history import FORMAT as HISTORY_FORMAT
from harness.record.history import history_of
from harness.simulate import strategies
from harness.simulate.hunt import Hunt, chosen_scenarios, write_run
from harness.simulate.replay import replay_plain
from harness.simulate.screen import Screen, scoreboard
from harness.simulate.session import Plan, Run, everything, plan_of, run_plain
from harness.simulate.shrink import shrink as shrink_trail
from harness.simulate.tables import Tables

RUNTIMES = click.Choice(["plain", "trio"])
OUT = click.option("--out", type=click.Path(path_type=Path), default=Path("out"), show_default=True,
                   help="Folder for trails and histories.")
AS_JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")


def main() -> None:
    """Run the command line; the only place where errors become exit codes."""
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        code = cli.main(standalone_mode=False)
    except Refusal as error:
        _fail(str(error))
    except click.exceptions.Abort:
        _interrupted()
    except click.ClickException as error:
        _fail(error.format_message())
    except KeyboardInterrupt:
        _interrupted()
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(141)
    sys.exit(code if isinstance(code, int) else 0)


def _interrupt(*_: Any) -> NoReturn:
    raise KeyboardInterrupt


def _interrupted() -> NoReturn:
    click.echo("interrupted; what was finished before is kept", err=True)
    sys.exit(130)


def _fail(sentence: str) -> NoReturn:
    click.echo(f"kafka-proto: {' '.join(sentence.split())}", err=True)
    sys.exit(2)


def emit(data: dict[str, Any]) -> None:
    """Print one JSON object on stdout."""
    click.echo(json.dumps(data, ensure_ascii=False, sort_keys=True))


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="kafka-proto", prog_name="kafka-proto")
def cli() -> None:
    """Simulate, break, replay and check executable prototypes of Kafka's protocols."""


@cli.command("list")
@AS_JSON
def list_(as_json: bool) -> None:
    """List models (with sizes and settings) and scenarios."""
    if as_json:
        emit({"models": [_model_json(m) for m in model_specs()], "scenarios": [_scenario_json(s) for s in scenarios()]})
        return
    Screen().catalogue(tuple(model_specs()), tuple(scenarios()))


@cli.command()
@click.argument("scenario", nargs=-1)
@click.option("--seeds", type=click.IntRange(min=1), help="Runs per strategy (default: each scenario's own).")
@OUT
@AS_JSON
def hunt(scenario: tuple[str, ...], seeds: int | None, out: Path, as_json: bool) -> int:
    """Hunt through scenarios (default: all) with every strategy; write shrunk trails; print a scoreboard."""
    screen = Screen(quiet=as_json)
    chosen = chosen_scenarios(scenario)
    _writable(out)
    with screen.progress("hunting") as progress:
        hunting = Hunt(chosen, out, seeds, progress=progress)
        rows = hunting.run()
    board = {"scenarios": [row.to_json() for row in rows], "interrupted": hunting.interrupted}
    _write_board(out, board, rows)
    if as_json:
        emit(board)
    else:
        screen.scoreboard(rows, len(chosen))
    if hunting.interrupted:
        raise KeyboardInterrupt
    return 0 if all(row.as_expected for row in rows) else 1


def _write_board(out: Path, board: dict[str, Any], rows: list[Any]) -> None:
    from harness.record.files import write_atomically

    write_atomically(out / "scoreboard.json", [json.dumps(board, ensure_ascii=False, sort_keys=True, indent=1)])
    write_atomically(out / "scoreboard.txt", scoreboard(rows).splitlines())


def _writable(out: Path) -> None:
    """Refuse a folder that nothing can be written to, before any work is done."""
    from harness.record.files import write_atomically

    probe = out / ".probe"
    write_atomically(probe, [])
    probe.unlink()


@cli.command()
@click.argument("what", metavar="MODEL|SCENARIO")
@click.option("--seed", type=int, help="One run with this seed.")
@click.option("--seeds", type=click.IntRange(min=1), help="Runs with the seeds 0 to N - 1.")
@click.option("--strategy", type=click.Choice(strategies.NAMES), default="random", show_default=True)
@click.option("--steps", type=click.IntRange(min=1), help="Bound on the steps of one run.")
@click.option("--size", "sizes", multiple=True, metavar="NAME=N", help="A size of the model; may be repeated.")
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="A setting of the model.")
@click.option("--runtime", type=RUNTIMES, default="plain", show_default=True)
@OUT
@AS_JSON
def simulate(
    what: str, seed: int | None, seeds: int | None, strategy: str, steps: int | None, sizes: tuple[str, ...],
    settings: tuple[str, ...], runtime: str, out: Path, as_json: bool,
) -> int:
    """Simulate a model or a scenario. Writes the first violating run, else the first run, under --out."""
    if seed is not None and seeds is not None:
        raise Refusal("give either --seed S for one run or --seeds N for many, not both")
    scenario = find_scenario(what)
    spec, plan = _plan(what, scenario, steps)
    base = scenario or Scenario(what, spec.title, what)
    model = spec.make({**base.sizes, **_pairs(sizes, int)}, {**base.settings, **_pairs(settings, str)},
                      base.network, base.faults)
    _writable(out)
    tables = Tables(model)
    source = strategies.Strategies(strategy)
    screen = Screen(quiet=as_json)
    numbers = [seed or 0] if seeds is None else range(seeds)
    kept: Run | None = None
    runs = taken = violations = 0
    witnessed: set[str] = set()
    with screen.progress("simulating") as progress:
        for number in numbers:
            chosen = source.run(number)
            if chosen is None:
                break
            run = _run(tables, plan, chosen, runtime)
            runs, taken, violations = runs + 1, taken + len(run.trail.choices), violations + (not run.verdict.ok)
            witnessed |= run.witnessed
            if kept is None or (kept.verdict.ok and not run.verdict.ok):
                kept = run
            progress(runs, len(numbers), f"{violations} violating")
    if kept is None:
        raise Refusal("no run was made: the strategy had nothing to try")
    recorded = kept if kept.recorder is not None else replay_plain(kept.trail, Recorder(), tables)
    name = f"{what.replace('/', '-')}-{strategy}-{kept.trail.seed}"
    trail_path, history_path = out / f"{name}.trail.jsonl", out / f"{name}.history.jsonl"
    kept.trail.write(trail_path)
    assert recorded.recorder is not None
    write_history(history_path, header_of(kept.trail, model, runtime), recorded.recorder, kept.verdict.to_json())
    expected = scenario.expected if scenario is not None else None
    result = {
        "model": model.name, "scenario": scenario.name if scenario else None, "runs": runs, "steps": taken,
        "violations": violations, "verdict": kept.verdict.to_json(), "expected": expected,
        "witnessed": sorted(witnessed), "trail": str(trail_path), "history": str(history_path),
        "digest": recorded.digest, "seed": kept.trail.seed, "strategy": strategy, "runtime": runtime,
    }
    if as_json:
        emit(result)
    else:
        screen.simulated(result)
    violated = {verdict.violated for verdict in kept.violations}
    return 0 if (expected in violated if violations and expected else not violations) else 1


def _plan(what: str, scenario: Scenario | None, steps: int | None) -> tuple[ModelSpec, Plan]:
    import attrs

    if scenario is not None:
        spec, plan = find_model(scenario.model), plan_of(scenario)
    else:
        try:
            spec = find_model(what)
        except Refusal as error:
            raise Refusal(f"{error}; nor is there such a scenario, see kafka-proto list") from None
        plan = everything(spec.make())
    return spec, attrs.evolve(plan, steps=steps) if steps else plan


def _run(tables: Tables, plan: Plan, strategy: strategies.Strategy, runtime: str) -> Run:
    if runtime == "plain":
        return run_plain(tables, plan, strategy)
    from harness.simulate.on_trio import run_on_trio

    return run_on_trio(tables, plan, strategy, Recorder())


def _pairs(given: tuple[str, ...], kind: type) -> dict[str, Any]:
    pairs: dict[str, Any] = {}
    for pair in given:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise Refusal(f"expected NAME=VALUE, found {pair!r}")
        try:
            pairs[name] = kind(value)
        except ValueError:
            raise Refusal(f"size {name} must be a whole number, not {value!r}") from None
    return pairs


def replayed(trail: Trail, runtime: str, recorder: Recorder) -> Run:
    """Replay a trail on a runtime."""
    if runtime == "plain":
        return replay_plain(trail, recorder)
    from harness.simulate.on_trio import replay_on_trio

    return replay_on_trio(trail, recorder)


@cli.command()
@click.argument("trail", type=click.Path(path_type=Path))
@click.option("--runtime", type=RUNTIMES, default="plain", show_default=True)
@AS_JSON
def replay(trail: Path, runtime: str, as_json: bool) -> int:
    """Replay a trail and judge it again."""
    read = read_trail(trail)
    run = replayed(read, runtime, Recorder())
    result = {
        "trail": str(trail), "model": read.model, "steps": len(read.choices), "runtime": runtime,
        "digest": run.digest, "verdict": run.verdict.to_json(),
        "violations": [verdict.to_json() for verdict in run.violations],
    }
    if as_json:
        emit(result)
    else:
        Screen().replayed(result)
    return 0 if run.verdict.ok else 1


@cli.command()
@click.argument("trail", type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), required=True, help="File for the short trail.")
@AS_JSON
def shrink(trail: Path, out: Path, as_json: bool) -> int:
    """Shrink a violating trail to a short one that violates the same property."""
    shrunk = shrink_trail(_violating(read_trail(trail)))
    shrunk.trail.write(out)
    result = {"trail": str(out), "violates": shrunk.trail.violates, "had": shrunk.had, "has": shrunk.has,
              "tried": shrunk.tried, "proved_shortest": shrunk.proved, "replay": f"kafka-proto replay {out}"}
    if as_json:
        emit(result)
    else:
        Screen().shrunk(result)
    return 0


def _violating(trail: Trail) -> Trail:
    """Return a trail with the property that its replay violates."""
    import attrs

    if trail.violates is not None:
        return trail
    return attrs.evolve(trail, violates=replay_plain(trail).verdict.violated)


@cli.command()
@click.argument("file", metavar="TRAIL|HISTORY", type=click.Path(path_type=Path))
@click.option("--as", "form", default="text", show_default=True, metavar="text|mermaid|svg|itf|shiviz")
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="File to write instead of stdout.")
@click.option("--width", type=click.IntRange(min=60), default=100, show_default=True, help="Columns of the text form.")
def show(file: Path, form: str, out: Path | None, width: int) -> int:
    """Show a run as a timeline, or export it."""
    from harness.history import render

    first = read_lines(file, "trail or history")[0]
    if first.get("format") == HISTORY_FORMAT:
        header = read_history(file).header
        spec = find_model(str(header.get("model")))
        model = spec.make(header["sizes"], header["settings"], header["network"], _faults(header))
        history, fair_from = read_history(file, model), None
    else:
        trail = read_trail(file)
        model, recorder = trail.build(), Recorder()
        run = replay_plain(trail, recorder, Tables(model))
        history = history_of(header_of(trail, model, "plain"), recorder, run.verdict.to_json(), model)
        fair_from = trail.fair_from
    text = render(history, model, form, width=width, fair_from=fair_from)
    if out is None:
        click.echo(text)
    else:
        from harness.record.files import write_atomically

        write_atomically(out, text.splitlines())
    return 0


def _faults(header: Any) -> Any:
    from harness.record import faults_from_json

    try:
        return faults_from_json(header["faults"])
    except (KeyError, TypeError, ValueError) as error:
        raise Refusal(f"the history's header does not name its faults as expected ({error})") from None


def _model_json(spec: ModelSpec) -> dict[str, Any]:
    return {
        "name": spec.name, "title": spec.title, "networks": list(spec.networks), "faults": spec.may_fault,
        "sizes": {n: {"default": s.default, "minimum": s.minimum, "maximum": s.maximum} for n, s in spec.sizes.items()},
        "settings": {n: {"values": list(s.values), "default": s.default} for n, s in spec.settings.items()},
    }


def _scenario_json(scenario: Scenario) -> dict[str, Any]:
    return {
        "name": scenario.name, "title": scenario.title, "model": scenario.model, "sizes": dict(scenario.sizes),
        "settings": dict(scenario.settings), "claims": list(scenario.claims), "witnesses": list(scenario.witnesses),
        "expected": scenario.expected, "repaired": scenario.repaired, "mode": scenario.mode,
    }


__all__ = ["cli", "main", "write_run"]
