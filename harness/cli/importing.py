"""The command `kafka-proto import`: histories that were recorded elsewhere, into the tables of a campaign."""

from __future__ import annotations

import time
from pathlib import Path

import click

from harness.campaign.requirements import require_packages
from harness.cli import OneOf
from harness.cli.group import AS_JSON, check_folder, cli, emit
from harness.cli.screen import TerminalOutput
from harness.model import Refusal
from harness.record.wording import counted
from harness.verify.isolation.anomalies import LEVELS

KINDS = {"kafka-proto": "*.history.jsonl", "jepsen": "*.edn"}
"""The formats, and the files of a folder that have them."""
MOST_TOLD = 20
"""Files with violations that are named."""
MOST_PROVED = 10
"""Anomalies of a file that are told with their proof."""


@cli.command("import")
@click.argument("files", nargs=-1, required=True, metavar="FILE|DIR...", type=click.Path(path_type=Path))
@click.option("--as", "kind", type=OneOf(sorted(KINDS)), required=True, help="The format of the files.")
@click.option("--out", type=click.Path(path_type=Path), required=True, metavar="DIR",
              help="New folder for the tables.")
@click.option("--name", default="jepsen", show_default=True, metavar="NAME",
              help="Name, in the tables, of the system that Jepsen tested.")
@click.option("--level", type=OneOf(LEVELS), default="read_committed", show_default=True,
              help="What that system promises to the readers of its transactions.")
@click.option("--check", is_flag=True, help="Exit with 1 if a history violates something.")
@AS_JSON
def import_(files: tuple[Path, ...], kind: str, out: Path, name: str, level: str, check: bool, as_json: bool) -> int:
    """Make tables of histories recorded elsewhere.

    Histories of this program keep their verdict. Jepsen's histories of logs (operations send, poll and txn) are judged
    from what clients saw: lost, skipped, doubled, torn and aborted records, order, circles of transactions. Each
    anomaly comes with its proof. Violations are data: the exit code is 0 once all files are read, unless --check is
    given.
    """
    require_packages()
    from harness.campaign.importing import check_free, import_files

    paths = [path for given in files for path in _found(given, KINDS[kind])]
    if not name.strip():
        raise Refusal("expected a name with --name, found none")
    check_free(out)
    check_folder(out.resolve().parent)
    with TerminalOutput(quiet=as_json).progress("importing", "files") as progress:
        found = import_files(paths, kind, out, name, level, time.strftime("%Y-%m-%d", time.gmtime()), progress)
    violating = [one for one in found if one.violated is not None]
    if as_json:
        emit({"out": str(out), "files": [one.to_json() for one in found], "violating": len(violating)})
        return 1 if check and violating else 0
    events = sum(one.events for one in found)
    click.echo(f"{counted(len(found), 'history')}, {counted(events, 'event')}: "
               f"{counted(len(violating), 'history', 'violate')} something; the tables are in {out}")
    for one in violating[:MOST_TOLD]:
        click.echo(f"{one.file}: {one.violated} at step {one.step}: {one.reason}")
        for anomaly in one.anomalies[:MOST_PROVED]:
            click.echo("\n".join(f"  {line}" for line in anomaly.lines()))
        if one.anomalies[MOST_PROVED:]:
            click.echo(f"  and {counted(len(one.anomalies) - MOST_PROVED, 'anomaly')} more, with --json")
    if violating[MOST_TOLD:]:
        click.echo(f"and {len(violating) - MOST_TOLD:,} more")
    return 1 if check and violating else 0


def _found(given: Path, pattern: str) -> list[Path]:
    """Return the files that an argument stands for. Raises Refusal."""
    if not given.is_dir():
        return [given]
    files = sorted(path for path in given.rglob(pattern) if path.is_file())
    if not files:
        raise Refusal(f"there is no {pattern} in {given}; give the folder that the histories are in")
    return files
