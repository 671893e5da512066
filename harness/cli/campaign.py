"""The command `kafka-proto campaign`: many runs on Spark, into tables."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from typing import Any

import attrs
import click

from harness.campaign.requirements import require_java, require_packages
from harness.cli import OneOf, interrupt_handled, whole
from harness.cli.check_what import FAULTS, TARGETS, asked_faults
from harness.cli.group import AS_JSON, SETTINGS, SIZES, answer, check_folder, cli, pairs
from harness.cli.live_log import logged
from harness.cli.screen import TerminalOutput
from harness.model import Refusal
from harness.record.wording import counted, some_of
from harness.simulate.strategies import by_name


@logged
@cli.command()
@click.argument("what", nargs=-1, required=True, metavar="SCENARIO|MODEL...")
@click.option("--runs", type=whole(1), required=True, metavar="N",
              help="Runs of each scenario, strategy and swept value, with the seeds 0 to N - 1.")
@click.option("--strategy", "strategy", type=OneOf(by_name.NAMES), multiple=True, default=("random",),
              show_default=True, help="How steps are chosen; may be repeated.")
@click.option("--sweep", "sweeps", multiple=True, metavar="NAME=A,B,...",
              help="Values of a setting, a size or a fault budget (crash=0,1,2); may be repeated.")
@click.option("--steps", type=whole(1), metavar="N", help="Most steps of a run, before its fair ending.")
@SIZES
@SETTINGS
@FAULTS
@TARGETS
@click.option("--keep", default="sample=0.01", show_default=True, metavar="all|failing|sample=F",
              help="Runs whose events are kept: all; failing ones; or failing ones and the share F of the others.")
@click.option("--coverage", type=float, metavar="F",
              help="Share of the runs whose coverage is measured, from 0 to 1 (default: 0.02).")
@click.option("--block", type=whole(1), metavar="N", help="Runs per commit (default: 500, or a hundredth of --runs).")
@click.option("--master", default="local[*]", show_default=True, metavar="URL", help="The Spark master.")
@click.option("--out", type=click.Path(path_type=Path), default=Path("out/campaign"), show_default=True, metavar="DIR",
              help="Folder of the campaign; on a cluster, one shared by all machines.")
@AS_JSON
def campaign(
    what: tuple[str, ...], runs: int, strategy: tuple[str, ...], sweeps: tuple[str, ...], steps: int | None,
    sizes: tuple[str, ...], settings: tuple[str, ...], faults: tuple[str, ...], targets: tuple[str, ...], keep: str,
    coverage: float | None, block: int | None, master: str, out: Path, as_json: bool,
) -> int:
    """Make many runs on Spark, and write tables of their results.

    An interrupted campaign resumes: runs that are already in --out are not made again. Violations are data: the exit
    code is 0 once all runs are made.
    """
    require_packages()
    from harness.campaign.cells import cells
    from harness.campaign.missing_blocks import COVERAGE, usual_block
    from harness.campaign.spark_campaign import SparkCampaign
    from harness.campaign.spark_session import checked_master, spark_session
    from harness.campaign.store import LOG, CampaignStore, Manifest

    asked = partial(asked_faults, given=faults, targets=targets) if faults or targets else None
    chosen = cells(what, strategy, sweeps, pairs(sizes, int), pairs(settings, str), steps, asked)
    manifest = Manifest(chosen, _kept(keep), _part(coverage, COVERAGE), block or usual_block(runs))
    checked_master(master)
    require_java()
    check_folder(out)
    if block is None and (found := CampaignStore(out).found()) is not None:
        manifest = attrs.evolve(manifest, block=found.block)
    screen = TerminalOutput(quiet=as_json)
    with screen.progress("campaign") as progress:
        going = SparkCampaign(out, manifest, runs, progress, interrupt_handled)
        with going.alone():
            if going.open():
                going.begin("starting Spark")
                with spark_session(master, out / LOG, is_lean=True) as spark:
                    outcome = going.run(spark, time.strftime("%Y-%m-%d", time.gmtime()))
            else:
                outcome = going.nothing_missing()
    result: dict[str, Any] = {
        "out": str(out), "cells": len(chosen), "runs": outcome.runs, "planned": outcome.planned,
        "found": outcome.found, "failing": outcome.failing, "errors": outcome.errors, "steps": outcome.steps,
        "interrupted": outcome.interrupted,
    }
    answer(as_json, result, _summary_lines(result, [cell.what for cell in chosen]))
    if outcome.interrupted:
        kept = f"{some_of(outcome.runs, outcome.planned, 'run', 'are')} kept in {out}"
        raise KeyboardInterrupt(f"interrupted; {kept}, the same command resumes")
    return 0


def _summary_lines(result: dict[str, Any], whats: list[str]) -> list[str]:
    names = list(dict.fromkeys(whats))
    of = f"{len(names)} scenarios or models" if len(names) > 1 else names[0]
    made = result["runs"] - result["found"]
    lines = [f"{counted(result['runs'], 'run')} of {of}, {counted(result['steps'], 'step')}: "
             f"{counted(result['failing'], 'run', 'violate')} something"]
    if result["errors"]:
        lines.append(f"{counted(result['errors'], 'run')} ended in an error of the protocol code; see the table runs")
    lines.append(f"{made:,} made now, {result['found']:,} before; the tables are in {result['out']}")
    return lines


def _kept(keep: str) -> str:
    """Return which events are kept, in the one way to say it. Raises Refusal."""
    name, equals, part = keep.partition("=")
    if name in ("all", "failing") and not equals:
        return keep
    try:
        if name == "sample" and 0 <= float(part) <= 1:
            return f"sample={float(part):g}"
    except ValueError:
        pass
    raise Refusal(f"expected --keep all, failing or sample=F with F from 0 to 1, found {keep!r}")


def _part(given: float | None, default: float) -> float:
    if given is None:
        return default
    if not 0 <= given <= 1:
        raise Refusal(f"expected --coverage from 0 to 1, found {given:g}")
    return given
