"""Versions on trial: each release with each client, on each kind of log, under every kind of fault, on Spark.

A row is a release, a client and a log; its runs are of several workloads, half in free and half in timed mode. All
properties are claimed, also those that the models do not claim. Of each property that a row violates, its shortest
violating run is shrunk; what is shorter than the trail known of the release, client, property and error code is kept in
tests/data/findings/. Then every state of a row is searched, at each bound of a ladder until time is up.
Figures go to tests/data/findings/trial.json, and docs/models/findings.md is written from them.

    python benchmarks/trial.py                                           # the page alone, from what is stored
    python benchmarks/trial.py --runs 1000                               # of each row; the same command resumes
    python benchmarks/trial.py "4.4 tv2" --runs 100 --seconds 600 --memory 4    # rows whose names contain this
    python benchmarks/trial.py --add out/found.trail.jsonl               # a violating trail from elsewhere
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import attrs
from findings_page import FINDINGS, LEVEL_1, PAGE, RELEASES, FindingStore, client_of

from harness.campaign.cells import Cell, cells
from harness.campaign.spark_campaign import SparkCampaign
from harness.campaign.spark_session import spark_session
from harness.campaign.store import LOG, CampaignStore, CommittedBlock, Manifest, read
from harness.cli.check_what import asked_faults
from harness.cli.screen import TerminalOutput
from harness.model import Refusal, find_model
from harness.model.faults import FAULT_KINDS
from harness.record import Recorder, Trail, read_trail, trail_of_text
from harness.record.files import write_atomically
from harness.simulate.states.tables import Tables
from harness.simulate.trails.replay import replay_plain, try_choices
from harness.simulate.trails.shrink import perturbing_part, shrink, shrink_while
from kafka_proto.clients.producer import PROPOSED
from kafka_proto.cluster.models import LEVEL

LOGS = ("at-once", "replicated")
TIMEOUTS = {"timeouts": "request,delivery,transaction"}
WORKLOADS: Mapping[str, Mapping[str, Any]] = {
    "alone": {"partitions": 1, "transactions": 3, "records": 1, "offsets": 1, "consumers": 1},
    "fencing": {"producers": 2, "transactions": 2, "records": 1, "consumers": 1},
    "apart": {"producers": 2, "transactional-ids": 2, "consumers": 1},
    "epochs": {"partitions": 1, "transactions": 3, "records": 1, "epochs": 2},
}
"""Sizes; the last is for logs that are not replicated, the others have two elections where they are."""
MODES = ("free", "timed")
STEPS = 300
BLOCK = 100
"""Runs that are committed together."""
MOST_STEPS = 400_000
"""The steps that tries to shrink a run may take."""
SEARCHED: Mapping[str, Mapping[str, int]] = {
    "at-once": {"brokers": 1, "partitions": 1, "transactions": 2, "records": 1},
    "replicated": {"brokers": 2, "partitions": 1, "transactions": 1, "records": 1, "elections": 1},
}
LADDERS: Mapping[str, Sequence[str]] = {
    "at-once": ("timers=1", "timers=1 epochs=1", "timers=2", "timers=1 offsets=1", "timers=2 delay=1", "timers=3",
                "timers=3 delay=1", "timers=4"),
    "replicated": ("timers=0", "timers=1", "timers=1 delay=1", "timers=2"),
}
"""Bounds of searches, one after the other."""
FENCE, CODE_OF_A_FENCE = "FencedForAReason", "FatalForAReason"
"""Without a reason for a fence, its code has none: only the first is kept then."""
CODE = re.compile(r" by ([A-Z_]+)[ ,]")
"""In a reason: the code that made a producer unusable."""


@attrs.frozen
class TrialRow:
    """A release with a client, on a kind of log."""

    release: str
    client: str
    """By its column of the page."""
    log: str

    @property
    def name(self) -> str:
        return f"{self.release} {self.client} {self.log}"

    @property
    def settings(self) -> dict[str, str]:
        client = LEVEL_1 if self.client == "tv1" else {"client": self.client}
        return {**client, "log": self.log, **TIMEOUTS}

    def cells(self) -> Iterator[Cell]:
        """Yield what its runs are made of, but for their seeds."""
        for workload, sizes in WORKLOADS.items():
            if self.log == "replicated":
                if workload == "epochs":
                    continue
                sizes = {**sizes, "elections": 2}
            every = partial(asked_faults, given=("all",), targets=())
            (cell,) = cells([f"kafka/{self.release}"], ("random",), (), sizes, self.settings, STEPS, every)
            claims = tuple(p.name for p in cell.build().properties if p.is_safety or p.is_temporal)
            for mode in MODES:
                yield attrs.evolve(cell, mode=mode, claims=claims)


def rows() -> Iterator[TrialRow]:
    """Yield every row: proposals for clients are not on trial."""
    proposed = {family.name for family in PROPOSED}
    for log in LOGS:
        for release in RELEASES:
            settings = find_model(f"kafka/{release}").settings
            known = (*settings["client"].values, *(["tv1"] if LEVEL in settings else []))
            yield from (TrialRow(release, client, log) for client in known if client not in proposed)


def main() -> int:
    """Make the runs and searches that are asked for, keep what they find, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="parts of the names of rows, such as 4.4 or replicated (default: all)")
    parser.add_argument("--runs", type=int, default=0, help="runs of each row, at least (default: none)")
    parser.add_argument("--seconds", type=float, default=0, help="for the searches of each row (default: none)")
    parser.add_argument("--memory", type=float, default=2, metavar="GB", help="of a search's states (default: 2)")
    parser.add_argument("--bounds", type=int, default=9, metavar="N", help="searches of a row, at most (default: all)")
    parser.add_argument("--master", default="local[2]", help="the Spark master (default: local[2])")
    parser.add_argument("--out", type=Path, default=Path("out/trial"), help="folder of the runs (default: out/trial)")
    parser.add_argument("--store", type=Path, default=FINDINGS, help="folder of trails, figures and decisions")
    parser.add_argument("--page", type=Path, default=PAGE, help="the page to write")
    parser.add_argument("--add", type=Path, action="append", default=[], metavar="TRAIL",
                        help="a violating trail to keep, too; that of a scenario has a name of its own")
    given = parser.parse_args()
    chosen = [row for row in rows() if not given.names or any(name in row.name for name in given.names)]
    if not chosen or given.runs < 0 or given.seconds < 0:
        raise Refusal(f"name parts of {', '.join(row.name for row in rows())}, and numbers from 0 on, not "
                      f"{given.names}, {given.runs} and {given.seconds}")
    trial = Trial(FindingStore(given.store))
    for path in given.add:
        trial.keep(read_trail(path))
    for row in chosen if given.seconds else ():
        trial.search(row, LADDERS[row.log][: given.bounds], given.seconds, given.memory, given.out / "searches")
    if given.runs:
        make(chosen, given.runs, given.master, given.out / "runs")
        trial.judge(chosen, given.out / "runs")
    trial.store.save(trial.figures)
    write_atomically(given.page, trial.store.page().rstrip("\n").split("\n"))
    return 0


def make(chosen: list[TrialRow], runs: int, master: str, out: Path) -> None:
    """Have the runs made that are missing."""
    every = [list(row.cells()) for row in chosen]
    each = -(-runs // min(len(some) for some in every))
    manifest = Manifest(tuple(cell for some in every for cell in some), "failing", 0.0, BLOCK)
    with TerminalOutput().progress("trial") as progress:
        going = SparkCampaign(out, manifest, each, progress)
        with going.alone():
            if going.open():
                with spark_session(master, out / LOG, is_lean=True) as spark:
                    if going.run(spark, time.strftime("%Y-%m-%d", time.gmtime())).interrupted:
                        raise Refusal(f"interrupted; the runs so far are kept in {out}, the same command resumes")


@attrs.define
class Trial:
    """What is known so far, and what adds to it."""

    store: FindingStore
    figures: dict[str, Any] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.figures = self.store.figures()

    def judge(self, chosen: list[TrialRow], out: Path) -> None:
        """Count the runs of each row and what they violate, and keep the shortest of each kind, shrunk."""
        self.figures = self.store.figures()  # the runs took long
        store = CampaignStore(out)
        names = {cell.key: row.name for row in chosen for cell in row.cells()}
        counts: dict[str, Counter[str]] = {row.name: Counter() for row in chosen}
        violated: dict[str, Counter[str]] = {row.name: Counter() for row in chosen}
        shortest: dict[tuple[str, str], tuple[int, str, int]] = {}
        texts: dict[tuple[str, int], str] = {}
        for block in (block for block in store.committed().values() if block.cell in names):
            name = names[block.cell]
            counts[name].update(runs=block.runs, steps=block.steps, errors=block.errors)
            for row in of_table(store, "runs", block) if block.failing else ():
                texts[row["cell"], row["seed"]] = row["trail"]
            found = list(of_table(store, "violations", block))
            fenced = {row["seed"] for row in found if row["property"] == FENCE}
            for row in found:
                violated[name][row["property"]] += 1
                if row["property"] == CODE_OF_A_FENCE and row["seed"] in fenced:
                    continue
                mine, kind = (row["step"], row["cell"], row["seed"]), (name, kind_of(row["property"], row["reason"]))
                shortest[kind] = min(shortest.get(kind, mine), mine)
        for name, made in counts.items():
            self.figures["rows"].setdefault(name, {}).update(**made, violated=dict(sorted(violated[name].items())))
        for n, ((name, kind), (_, cell, seed)) in enumerate(sorted(shortest.items()), 1):
            print(f"{n} of {len(shortest)}: {name}, {kind}", file=sys.stderr, flush=True)
            trail = trail_of_text("row.trail.jsonl", texts[cell, seed])
            if not self.figures["trails"].get(called(trail, kind), {"proved": False})["proved"]:
                self.keep(attrs.evolve(trail, violates=kind.partition("-")[0]), kind)

    def keep(self, trail: Trail, kind: str | None = None, *, proved: bool = False) -> None:
        """Shrink a trail, and store it if none as short is known of its release, client, property and error code.

        Without its `kind` a trail may become one with another code. One that a search found is `proved` the shortest.
        """
        assert trail.violates is not None
        if not proved:
            shrunk = shrink(trail, most_steps=MOST_STEPS)
            short, proved = attrs.evolve(shrunk.trail, scenario=trail.scenario), shrunk.proved
            if kind is not None and of_kind(Tables(short.build()), short, kind) is None:
                short, proved = shrunk_as(trail, kind), False
            trail = short
        short = with_least_faults(attrs.evolve(trail, claims=(str(trail.violates),), scenario=None))
        steps = len(perturbing_part(short))
        run = replay_plain(short, Recorder(keep=False))
        if run.verdict.violated != trail.violates:
            raise RuntimeError(f"{trail.violates} of {trail.model} is not violated when its short trail is replayed")
        if trail.violates == CODE_OF_A_FENCE and not replay_plain(attrs.evolve(short, claims=(FENCE,))).verdict.ok:
            return
        name = called(trail, kind_of(trail.violates, run.verdict.reason))
        if trail.scenario is not None:
            name = f"{name}-{trail.scenario}"
        known = self.figures["trails"].setdefault(name, {"steps": sys.maxsize, "proved": False})
        if steps < known["steps"]:
            short.write(self.store.path(name))
            known.update(digest=run.digest, steps=steps, proved=False)
        if steps == known["steps"]:
            known["proved"] |= proved
        self.store.save(self.figures)

    def search(self, row: TrialRow, ladder: Sequence[str], seconds: float, memory: float, out: Path) -> None:
        """Search every state of a row at bounds that grow, and keep the shortest violation of each invariant."""
        sizes = SEARCHED[row.log]
        model = find_model(f"kafka/{row.release}").make(sizes, row.settings)
        given = [word for name, size in sizes.items() for word in ("--size", f"{name}={size}")]
        given += [word for name, value in row.settings.items() for word in ("--set", f"{name}={value}")]
        given += [word for p in model.properties if p.is_safety for word in ("--invariant", p.name)]
        until = time.monotonic() + seconds
        for bounds in ladder:
            asked = [word for bound in bounds.split() for word in (option(bound), bound.removeprefix("timers="))]
            command = ["check", model.name, *given, *asked, "--memory", f"{memory}", "--states", f"{10**9}",
                       "--no-stop", "--out", str(out), "--json"]
            ended = answer_of(command, until - time.monotonic())
            if ended is None or not ended["complete"]:
                break
            shortest = {one["property"]: one["length"] - 1 for one in ended["violated"]}
            print(f"{row.name}: {bounds}: {ended['distinct']:,} states, {shortest}", file=sys.stderr, flush=True)
            for one in ended["violated"]:
                self.keep(read_trail(Path(one["trail"])), proved=one["shortest"])
            found = self.figures["rows"].setdefault(row.name, {}).setdefault("searches", {})
            found[bounds] = {"states": ended["distinct"], "shortest": shortest}
            self.store.save(self.figures)


def option(bound: str) -> str:
    """Return the option of `kafka-proto check` that sets a bound."""
    name = bound.partition("=")[0]
    return "--timers" if name == "timers" else "--faults" if name in FAULT_KINDS else "--size"


def of_kind(tables: Tables, trail: Trail, kind: str) -> Trail | None:
    """Return a trail without the choices that do not fit, if what it violates is of a kind."""
    name = str(trail.violates)
    claims = (name, FENCE) if name == CODE_OF_A_FENCE else (name,)
    run = try_choices(tables, attrs.evolve(trail, claims=claims), perturbing_part(trail))
    found = {verdict.violated: kind_of(str(verdict.violated), verdict.reason) for verdict in run.violations}
    return attrs.evolve(run.trail, claims=trail.claims, violates=name) if found == {name: kind} else None


def shrunk_as(trail: Trail, kind: str) -> Trail:
    """Return a short trail of the same kind."""
    tables = Tables(trail.build())
    return shrink_while(tables, attrs.evolve(trail, claims=(str(trail.violates),)),
                        lambda candidate: of_kind(tables, candidate, kind))


def with_least_faults(trail: Trail) -> Trail:
    """Return a trail with no budget for kinds of faults that it does without."""
    for kind in FAULT_KINDS:
        less = attrs.evolve(trail, faults=attrs.evolve(trail.faults, **{kind: 0}))
        if getattr(trail.faults, kind) and fits(less):
            trail = less
    bare = attrs.evolve(trail, faults=attrs.evolve(trail.faults, targets=()))
    return bare if fits(bare) else trail


def fits(trail: Trail) -> bool:
    """Say whether a trail replays and violates what it says."""
    try:
        return replay_plain(trail).verdict.violated == trail.violates
    except Refusal:
        return False


def of_table(store: CampaignStore, table: str, block: CommittedBlock) -> Iterator[dict[str, Any]]:
    """Yield the rows of a table in a block."""
    for path in store.files(table, [block]):
        for batch in read(path, table):
            yield from batch.to_pylist()


def kind_of(name: str, reason: str | None) -> str:
    """Return a property with the error code that the reason names, if it does."""
    code = CODE.search(reason or "")
    return f"{name}-{code[1]}" if code else name


def called(trail: Trail, kind: str) -> str:
    """Return the name under which a trail is stored."""
    return f"{trail.model.partition('/')[2]}-{client_of(trail)}-{kind}"


def answer_of(command: list[str], seconds: float) -> dict[str, Any] | None:
    """Return what a command of kafka-proto answers as JSON; None if it takes longer than that, or is refused."""
    if seconds <= 0:
        return None
    code = "from harness.cli import main; main()"
    with subprocess.Popen([sys.executable, "-c", code, *command], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          text=True, start_new_session=True) as process:
        try:
            out, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return None
    found: dict[str, Any] = json.loads(out) if out else {}
    return found or None


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Refusal as error:
        print(error, file=sys.stderr)
        sys.exit(2)
