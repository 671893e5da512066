"""The commands `kafka-proto report` and `compare`: the results of a campaign, and how those of another one differ."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import click

from harness.campaign.requirements import require_packages
from harness.cli import interrupt_handled, whole
from harness.cli.group import AS_JSON, answer, check_file, cli
from harness.cli.screen import TerminalOutput
from harness.record.wording import agreeing, counted, some_of, wrapped

if TYPE_CHECKING:
    from harness.campaign.judging import Rejudged
    from harness.campaign.report.compare import Comparison, ViolationChange
    from harness.campaign.report.summary import ScenarioVerdict, Summary
    from harness.campaign.report.write_report import Report

WIDTH = 80
MOST = 12
"""Clusters, changes or runs that the terminal shows; the page and the JSON object have all."""
MASTER = click.option("--master", default="local[*]", show_default=True, metavar="URL", help="The Spark master.")
SHRINK = click.option("--shrink", "most", type=whole(0), default=8, show_default=True, metavar="N",
                      help="Clusters of violations to shrink per scenario, the largest first.")


@cli.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--since", type=click.Path(path_type=Path), metavar="DIR", help="A previous campaign to compare with.")
@click.option("--out", type=click.Path(path_type=Path), metavar="FILE",
              help="The page (default: report.html in the campaign's folder).")
@click.option("--check", is_flag=True, help="Exit with 1 unless every scenario is as expected and every stored history "
              "agrees with its record.")
@click.option("--no-rejudge", "quick", is_flag=True,
              help="Do not judge the stored histories again: faster if many are kept.")
@SHRINK
@MASTER
@AS_JSON
def report(
    folder: Path, since: Path | None, out: Path | None, check: bool, quick: bool, most: int, master: str, as_json: bool
) -> int:
    """Write the results of a campaign as one HTML page.

    Prints a summary, too. Judges every stored history again, from its events alone. A witness of each cluster of
    violations is written next to the page as a trail to replay.
    """
    require_packages("matplotlib")
    from harness.campaign.judging import rejudge
    from harness.campaign.report import summary
    from harness.campaign.report.write_report import write_report
    from harness.campaign.spark_session import checked_master, spark_session
    from harness.campaign.store import CampaignStore

    stores = [CampaignStore(place) for place in (folder, since) if place is not None]
    for store in stores:
        summary.check(store)
    checked_master(master)
    page = out or folder / "report.html"
    check_file(page)
    with spark_session(master) as spark, TerminalOutput(quiet=as_json).progress("judging again", "events") as progress:
        again = None if quick else partial(rejudge, progress=progress, heard=interrupt_handled)
        made = write_report(spark, stores[0], page, stores[1] if since is not None else None, most, again)
    answer(as_json, _json(made), [*_summary(made), f"the report is in {page}"])
    disagree = any(not one.ok for one in made.again or ())
    return int(check and (disagree or any(one.as_expected is False for one in made.summary.verdicts)))


@cli.command()
@click.argument("before", metavar="DIR", type=click.Path(path_type=Path))
@click.argument("after", metavar="DIR", type=click.Path(path_type=Path))
@SHRINK
@MASTER
@AS_JSON
def compare(before: Path, after: Path, most: int, master: str, as_json: bool) -> int:
    """Compare the violations of two campaigns.

    Lists violations that are new or gone in the second one, and rates that changed.
    """
    require_packages()
    from harness.campaign.report import compare as comparing
    from harness.campaign.report import summary
    from harness.campaign.spark_session import checked_master, spark_session
    from harness.campaign.store import CampaignStore
    from harness.campaign.tables import CampaignTables

    stores = [CampaignStore(place) for place in (before, after)]
    for store in stores:
        summary.check(store)
    checked_master(master)
    with spark_session(master) as spark:
        found = comparing.compare(*(summary.summarize(CampaignTables(spark, store), most) for store in stores))
    answer(as_json, {"before": str(before), "after": str(after), **found.to_json()}, _compared(found))
    return 0


def _json(made: Report) -> dict[str, Any]:
    summary = made.summary
    return {
        "page": str(made.page), "runs": summary.runs, "failing": summary.failing, "errors": summary.errors,
        "verdicts": [
            {"what": one.what, "as_expected": one.as_expected, "expected": one.expected, "runs": one.runs,
             "failing": one.failing, "errors": one.errors, "low": one.low, "high": one.high,
             "properties": dict(one.properties), "missing_witnesses": list(one.missing)} for one in summary.verdicts
        ],
        "clusters": [
            {"what": one.what, "property": one.property, "runs": one.runs, "actions": list(one.actions),
             "faults": list(one.faults), "had": one.had, "has": one.has, "proved_shortest": one.proved,
             "shrunk": one.shrunk, "reason": one.reason,
             "trail": str(made.page.parent / witness.trail) if witness.trail else None,
             "replay": _replay(made, witness.trail) if witness.trail else None}
            for one, witness in zip(summary.clusters, made.witnesses, strict=True)
        ],
        "clients": [attrs.asdict(one) for one in summary.clients],
        "anomalies": [attrs.asdict(one) for one in summary.anomalies],
        "judged_again": None if made.again is None else [_again(one) for one in made.again],
        "since": None if made.since is None else made.since.to_json(),
    }


def _again(one: Rejudged) -> dict[str, Any]:
    return {
        "cell": one.cell, "what": one.what, "histories": one.runs, "events": one.events,
        "agree": one.runs - one.disagreeing, "held_to_spec": one.refined, "kinds": dict(one.kinds),
        "disagreeing": [{"seed": found.seed, "kinds": list(found.kinds), "reason": found.sentence}
                        for found in one.findings],
    }


def _replay(made: Report, trail: str) -> str:
    return f"kafka-proto replay {shlex.quote(str(made.page.parent / trail))}"


def _summary(made: Report) -> Iterator[str]:
    """Yield the lines that the terminal shows."""
    summary = made.summary
    failing = summary.failing
    yield f"{counted(summary.runs, 'run')}, {failing:,} {agreeing(failing, 'violate')} something"
    for verdict in summary.verdicts:
        yield from _verdict(verdict)
    yield from _clusters(made)
    yield from _clients(summary)
    for one in summary.reached:
        if one.curve:
            yield from wrapped(f"{one.what}: {counted(one.states, 'state')} in {counted(one.covered, 'covered run')}, "
                               f"{one.curve[-1].per_thousand:,.0f} new per thousand runs at the end", WIDTH, "", "  ")
    yield from _extremes(summary)
    for poisoned in summary.poisoned:
        yield from wrapped(f"error in {counted(poisoned.runs, 'run')} of {poisoned.what}, first with seed "
                           f"{poisoned.seed}: {poisoned.error}", WIDTH, "", "  ")
    yield from _rejudged(made)
    if made.since is not None:
        yield "since the other campaign:"
        yield from (f"  {line}" for line in _compared(made.since, WIDTH - 2))
    judged = [one for one in summary.verdicts if one.as_expected is not None]
    yield f"{sum(bool(one.as_expected) for one in judged)} of {counted(len(judged), 'scenario')} as expected"


def _clients(summary: Summary) -> Iterator[str]:
    """Yield what clients saw, a scenario or model and anomaly a line."""
    from harness.campaign.report.page import said_ended

    for one in summary.clients:
        name = ", ".join(part for part in (one.what, one.strategy, one.sweep) if part)
        yield from wrapped(f"{name}: clients ended {said_ended(one)}; anomalies in {counted(one.anomalous, 'run')}",
                           WIDTH, "", "  ")
    for (what, anomaly, property_), group in groupby(
            sorted(summary.anomalies, key=lambda one: (one.what, one.anomaly, one.property)),
            key=lambda one: (one.what, one.anomaly, one.property)):
        rows = list(group)
        runs, silent = sum(one.runs for one in rows), sum(one.silent for one in rows)
        first = min(rows, key=lambda one: one.seed)
        more = f", {silent:,} of which violate nothing claimed" if silent else ""
        yield from wrapped(f"{what}: {anomaly} ({property_}) in {counted(runs, 'run')}{more}; seed {first.seed}: "
                           f"{first.reason}", WIDTH, "  ", "    ")


def _rejudged(made: Report) -> Iterator[str]:
    from harness.campaign.report.page import said_again

    if made.again is None:
        return
    yield from wrapped(said_again(made.again), WIDTH, "", "  ")
    for one in made.again:
        for found in one.findings:
            yield from wrapped(f"{one.what}, seed {found.seed}, {' and '.join(found.kinds)}: {found.sentence}", WIDTH,
                               "  NO  ", "      ")


def _verdict(one: ScenarioVerdict) -> Iterator[str]:
    from harness.campaign.report.markup import interval, percent
    from harness.campaign.report.page import said_of

    yield f"{ {True: 'ok', False: 'NO', None: '  '}[one.as_expected]}  {one.what}"
    yield from wrapped(f"{some_of(one.failing, one.runs, 'run', 'violate')} something: {percent(one.rate)} "
                       f"({interval(one.low, one.high)})", WIDTH, "      ")
    if one.properties or one.as_expected is False:
        yield from wrapped(f"violated: {said_of(one)}", WIDTH, "      ")


def _clusters(made: Report) -> Iterator[str]:
    found = made.summary.clusters
    for one, witness in [*zip(found, made.witnesses, strict=True)][:MOST]:
        length = counted(one.had, "step")
        if one.shrunk:
            length = f"{one.had} -> {counted(one.has, 'step')}{', proved shortest' * one.proved}"
        yield from wrapped(f"{one.what}: {one.property} in {counted(one.runs, 'run')}, {length}", WIDTH, "", "  ")
        yield from wrapped(one.reason, WIDTH, "  ")
        yield f"  {_replay(made, witness.trail)}" if witness.trail else "  recorded elsewhere, without a trail"
    if len(found) > MOST:
        yield f"{len(found) - MOST} more clusters are on the page"


def _extremes(summary: Summary) -> Iterator[str]:
    for word, some in (("slowest", summary.slowest), ("longest", summary.longest)):
        for one in some[:1]:
            yield from wrapped(f"{word} run: seed {one.seed} of {one.cell.what}, {one.cell.strategy}, "
                               f"{one.wall_us / 1e3:,.1f} ms, {counted(one.steps, 'step')}", WIDTH, "", "  ")


def _compared(found: Comparison, width: int = WIDTH) -> Iterator[str]:
    """Yield the lines that describe a comparison."""
    changes = [*found.cells, *found.clusters]
    for one in changes[:MOST]:
        yield from wrapped(_changed(one), width, "", "  ")
    if len(changes) > MOST:
        yield f"{len(changes) - MOST} more changes; --json and the page have all"
    for what, (new, gone) in found.actions.items():
        sides = (("taken only now:", new), ("taken only before:", gone))
        both = "; ".join(f"{word} {', '.join(names)}" for word, names in sides if names)
        yield from wrapped(f"actions of {what}, {both}", width, "", "  ")
    for word, names in (("first", found.only_before), ("second", found.only_after)):
        for name in names:
            yield from wrapped(f"only in the {word} campaign: {name}", width, "", "  ")
    for name, said in found.different.items():
        yield from wrapped(f"different about {name}: {said}", width, "", "  ")
    nothing = ", nothing is new, gone or changed" if found.is_empty else ""
    yield f"{counted(found.compared, 'cell')} compared{nothing}"


def _changed(one: ViolationChange) -> str:
    sides = [f"{side.failing:,} of {side.runs:,}" for side in (one.before, one.after)]
    what = f"cluster of {one.name}" if one.actions else one.name
    under = f" ({' + '.join(one.faults) or 'no fault'}; {counted(len(one.actions), 'action')})" if one.actions else ""
    likely = "" if one.is_apart else ", perhaps by chance"
    return f"{one.change} in {what}: {one.violated}{under}, {sides[0]} before, {sides[1]} now{likely}"
