"""How fast the exhaustive search is: CPU and wall seconds, distinct states per CPU second and memory, with the goals.

Every case is a whole process `kafka-proto check MODEL ... --json`, start-up included, and its counts must be exactly
those expected. With TLC's class path and a folder of the modules (see model_checker.py), TLC checks the four models
beside it; with the folder of its built examples, stateright checks the models of docs/examples (see stateright.py).
Nothing is asserted of speed: machines differ, ratios travel better than rates.

    python benchmarks/search.py [--engine python|kernel|both] [--only NAME] [--large] [--repeat N] [--json]
                                [--tlc CLASSPATH --modules FOLDER] [--stateright FOLDER]

- `states/s`: the search's own distinct states per CPU second; `CPU`, `wall` and `memory` are the process's.
- A goal in states/s is held against the search's own rate, a goal in seconds against the process's CPU seconds, the
  large one's against its wall seconds. Ratios are of whole processes.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs
from measure import Cost, check, fail, sizes
from model_checker import Checker
from stateright import Stateright, examples_found

DIARY_01 = {"clients": 2, "brokers": 3, "txn-log-partitions": 2, "transactional-ids": 2}
DIARY_02 = {
    "clients": 2, "brokers": 2, "txn-log-partitions": 1, "topic-partitions": 1, "transactional-ids": 1, "elections": 2
}
KIP_320 = {"replicas": 3, "log-size": 2, "max-records": 2, "max-leader-epoch": 2}
KIP_ACTORS = {"replicas": 3, "producers": 1, "records": 1, "elections": 2, "fencings": 0, "consumers": 0}
PULSAR = {"messages": 3, "compactions": 3, "keys": 2, "values": 2, "crashes": 1, "consumptions": 2}

PID_INVARIANTS = ("TypeOK", "NoBadStateResponse")
EPOCH_INVARIANTS = (*PID_INVARIANTS, "ClientsHaveDifferentProducerEpochs", "TCsHaveDifferentEpochs")
ISR_INVARIANTS = ("MCTypeOk", "WeakIsr", "StrongIsr", "LeaderInIsrOrNone")
HORIZON_INVARIANTS = ("TypeSafe", "CompactionHorizonCorrectness")
"""The invariants that each module's cfg checks (TestInv, which is TRUE, aside); TLC checks the same."""

MANY = 1_000_000
GIGABYTE = 1_000_000_000
TLC_GOALS = {"python": 30, "kernel": 60}
TLC_GOAL_OF_MANY = {"python": 30, "kernel": 100}
"""How many times TLC's CPU seconds we want to save, and from `MANY` states on."""
STATERIGHT_GOALS = {"python": 1, "kernel": 3}
"""How many times less than stateright's CPU seconds we want to need."""
TLC, STATERIGHT = "TLC", "stateright"


@attrs.frozen
class Goal:
    """What a case should reach: the figure of what is measured, `states/s`, `CPU s`, `wall s` or `memory`."""

    figure: float
    of: str = "states/s"

    def is_reached(self, row: Row) -> bool:
        if self.of == "states/s":
            return row.states_per_second >= self.figure
        measured = {"CPU s": row.cost.cpu_seconds, "wall s": row.cost.wall_seconds, "memory": row.cost.memory_bytes}
        return measured[self.of] <= self.figure

    def reported(self) -> str:
        if self.of == "memory":
            return f"{self.figure / GIGABYTE:g} GB"
        return f"{self.figure:,.0f} {self.of}"


@attrs.frozen
class Case:
    """One model at one size, what it must count, and its goals by engine."""

    name: str
    model: str
    sizes: Mapping[str, int]
    invariants: tuple[str, ...]
    counts: tuple[int, int, int]
    """Distinct states, generated states and depth."""
    goals: Mapping[str, tuple[Goal, ...]]
    more: tuple[str, ...] = ()
    """More arguments of `check`."""
    module: str | None = None
    """The folder of its module, where TLC checks it too."""
    example: tuple[str, ...] = ()
    """Of stateright, which checks it too: the example, and its arguments."""
    verdict: str = "ok"
    """`limited` where the model has no end, and so many states are enough."""
    large: bool = False

    def arguments(self, engine: str) -> list[str]:
        named = [part for name in self.invariants for part in ("--invariant", name)]
        return [self.model, *sizes(dict(self.sizes)), *named, *self.more, "--engine", engine]


@attrs.frozen
class Row:
    """A case as one engine, or TLC or stateright, ran it."""

    case: str
    engine: str
    counts: tuple[int, int, int]
    states_per_second: float
    cost: Cost

    def to_json(self) -> dict[str, Any]:
        names = ("distinct", "generated", "depth")
        cost = {name: round(value, 3) for name, value in attrs.asdict(self.cost).items()}
        rate = round(self.states_per_second)
        return {"case": self.case, "engine": self.engine, **dict(zip(names, self.counts, strict=True)),
                "distinct_per_second": rate, **cost}


def rates(python: float, kernel: float) -> dict[str, tuple[Goal, ...]]:
    return {"python": (Goal(python),), "kernel": (Goal(kernel),)}


def seconds(figure: float) -> dict[str, tuple[Goal, ...]]:
    return {"python": (Goal(figure, "CPU s"),), "kernel": (Goal(figure, "CPU s"),)}


CASES = (
    Case("diary-01", "transactions/diary-01", DIARY_01, PID_INVARIANTS, (322_596, 641_700, 24),
         rates(450_000, 1_500_000), module="diary-01"),
    Case("diary-02", "transactions/diary-02", DIARY_02, EPOCH_INVARIANTS, (145_725, 272_691, 47),
         rates(450_000, 1_500_000), module="diary-02"),
    Case("kip-320", "replication/kip-320", KIP_320, ISR_INVARIANTS, (737_794, 1_967_560, 26),
         rates(450_000, 1_200_000), module="replication"),
    Case("compaction", "compaction/pulsar", PULSAR, HORIZON_INVARIANTS, (276_608, 479_747, 23),
         rates(750_000, 1_500_000), ("--set", "producer=true"), module="compaction"),
    Case("liveness", "transactions/diary-01", DIARY_01, PID_INVARIANTS, (322_596, 641_700, 24),
         seconds(2), ("--property", "EventuallyAllClientsGetPid")),
    Case("symmetry", "transactions/diary-01", {**DIARY_01, "clients": 3}, PID_INVARIANTS, (492_040, 1_371_380, 37),
         seconds(6), ("--symmetry",)),
    Case("four-brokers", "transactions/diary-01", {**DIARY_01, "brokers": 4}, PID_INVARIANTS,
         (3_203_136, 6_811_712, 30), rates(450_000, 1_500_000), module="diary-01", large=True),
    Case("three-clients", "transactions/diary-01", {**DIARY_01, "clients": 3}, PID_INVARIANTS,
         (69_360_156, 192_810_276, 37), {"kernel": (Goal(120, "wall s"), Goal(6 * GIGABYTE, "memory"))}, large=True),
    Case("kip-actors", "replication/kip-320/actors", {"replicas": 2}, (), (344_742, 1_368_048, 41),
         rates(250_000, 1_000_000), ("--timers", "1")),
    Case("kip-actors-3", "replication/kip-320/actors", {"replicas": 3}, (), (506_558, 1_847_329, 39),
         rates(250_000, 1_000_000), ("--timers", "0", "--states", "1000000")),
    Case("kip-actors-fifo", "replication/kip-320/actors", KIP_ACTORS, (), (9_652_502, 37_526_575, 50),
         rates(250_000, 1_000_000), ("--set", "acks=1", "--network", "fifo", "--timers", "0", "--states", "12000000"),
         large=True),
    Case("txn-actors", "kafka/4.0", {"producers": 2, "brokers": 1, "partitions": 1, "records": 1}, (),
         (44_932, 116_733, 51), rates(250_000, 1_000_000), ("--timers", "0")),
    Case("2pc-7", "two-phase-commit", {"resource-managers": 7}, ("TCConsistent",), (296_448, 2_744_706, 23),
         {"python": (), "kernel": ()}, example=("2pc", "check", "7")),
    Case("2pc-9", "two-phase-commit", {"resource-managers": 9}, ("TCConsistent",), (10_340_352, 123_558_402, 29),
         {"python": (), "kernel": ()}, example=("2pc", "check", "9"), large=True),
    Case("paxos-3", "paxos", {"clients": 3, "servers": 3}, ("Linearizable",), (1_194_428, 2_420_477, 28),
         {"python": (), "kernel": ()}, ("--states", "2000000"), example=("paxos", "check", "3"), large=True),
)
"""The cases in the order of the table. A case without goals for an engine is not run by it."""


def measured(case: Case, engine: str) -> Row:
    """Run a case by our search once; end the program where its counts are not those expected."""
    reported, cost = check(case.arguments(engine))
    counts = (reported["distinct"], reported["generated"], reported["depth"])
    if reported["verdict"] != case.verdict:
        fail(f"{case.name} by {engine} should be {case.verdict}; it is {reported['verdict']}: {reported['violated']}")
    expect(case, engine, counts)
    if reported["engine"] != engine:
        fail(f"{case.name} was to be run by {engine}, but {reported['engine']} ran it")
    return Row(case.name, engine, counts, reported["distinct_per_second"], cost)


def checked(case: Case, module: str, tlc: Checker) -> Row:
    """Run a case by TLC once; its rate is of the whole process, which is all that TLC lets us measure."""
    counts, cost = tlc.check(module, case.sizes, case.invariants)
    expect(case, TLC, counts)
    return Row(case.name, TLC, counts, counts[0] / cost.cpu_seconds, cost)


def checked_by_stateright(case: Case, stateright: Stateright) -> Row:
    """Run a case by stateright once; it counts successors and depth otherwise, so only its states are compared."""
    (distinct, generated, depth), cost = stateright.check(case.example)
    expect(case, STATERIGHT, (distinct, *case.counts[1:]))
    return Row(case.name, STATERIGHT, (distinct, generated, depth), distinct / cost.cpu_seconds, cost)


def expect(case: Case, engine: str, counts: tuple[int, int, int]) -> None:
    if counts != case.counts:
        expected, found = (" / ".join(f"{count:,}" for count in each) for each in (case.counts, counts))
        print(f"{case.name}: expected {expected} (distinct / generated / depth), {engine} found {found}",
              file=sys.stderr)
        sys.exit(1)


def best(runs: list[Row]) -> Row:
    """Return the run with the least CPU seconds."""
    return min(runs, key=lambda row: row.cost.cpu_seconds)


def ratios(row: Row, theirs: Row) -> tuple[float, float]:
    """Return how many times the CPU seconds and the wall seconds of a row another tool needs."""
    return theirs.cost.cpu_seconds / row.cost.cpu_seconds, theirs.cost.wall_seconds / row.cost.wall_seconds


def mark(reached: bool) -> str:
    return "reached" if reached else "not reached"


def show(row: Row, goals: tuple[Goal, ...]) -> None:
    """Print a row of the table, with a line for each goal."""
    cost = row.cost
    reported = [f"{goal.reported()}  {mark(goal.is_reached(row))}" for goal in goals] or [""]
    print(
        f"{row.case:13} {row.engine:10} {row.counts[0]:>10,} {cost.cpu_seconds:8.2f} {cost.wall_seconds:8.2f} "
        f"{row.states_per_second:>10,.0f} {cost.memory_bytes / 1e6:>7,.0f}  {reported[0]}".rstrip()
    )
    for goal in reported[1:]:
        print(f"{'':73}{goal}")
    sys.stdout.flush()


def reached(row: Row, goals: tuple[Goal, ...]) -> dict[str, bool]:
    return {goal.reported(): goal.is_reached(row) for goal in goals}


def show_ratios(row: Row, theirs: Row) -> None:
    goal = goal_beside(row, theirs.engine)
    cpu, wall = ratios(row, theirs)
    print(f"{'':13} {theirs.engine} / {row.engine}: {cpu:.1f} times the CPU, {wall:.1f} times the wall seconds; "
          f"goal {goal} times the CPU  {mark(cpu >= goal)}", flush=True)


def goal_beside(row: Row, tool: str) -> int:
    """Return how many times the CPU seconds of a row we want another tool to need."""
    if tool == STATERIGHT:
        return STATERIGHT_GOALS[row.engine]
    return (TLC_GOAL_OF_MANY if row.counts[0] >= MANY else TLC_GOALS)[row.engine]


def run_case(
    case: Case, engines: tuple[str, ...], tlc: Checker | None, stateright: Stateright | None, repeat: int, quiet: bool
) -> list[dict[str, Any]]:
    """Run a case by every engine and by the tools that check it too, show it, and return its rows for JSON."""
    rows = []
    for engine in engines:
        if engine in case.goals:
            rows.append(best([measured(case, engine) for _ in range(repeat)]))
            if not quiet:
                show(rows[-1], case.goals[engine])
    reported = [row.to_json() | {"goals": reached(row, case.goals[row.engine])} for row in rows]
    if not rows:
        return reported
    for theirs in beside(case, tlc, stateright, repeat):
        if not quiet:
            show(theirs, ())
        tool = theirs.engine.lower()
        for row, object_ in zip(rows, reported, strict=False):
            cpu, wall = ratios(row, theirs)
            goal = goal_beside(row, theirs.engine)
            object_ |= {f"{tool}_cpu_ratio": round(cpu, 1), f"{tool}_wall_ratio": round(wall, 1), f"{tool}_goal": goal}
            if not quiet:
                show_ratios(row, theirs)
        reported.append(theirs.to_json())
    return reported


def beside(case: Case, tlc: Checker | None, stateright: Stateright | None, repeat: int) -> Iterator[Row]:
    """Yield the best run of each other tool that checks a case."""
    if tlc is not None and case.module is not None:
        yield best([checked(case, case.module, tlc) for _ in range(repeat)])
    if stateright is not None and case.example:
        yield best([checked_by_stateright(case, stateright) for _ in range(repeat)])


def chosen(only: list[str] | None, large: bool) -> list[Case]:
    """Return the cases to run; a case named by --only needs no --large."""
    names = [case.name for case in CASES]
    for name in only or []:
        if name not in names:
            fail(f"there is no case {name!r}; the cases are {', '.join(names)}")
    return [case for case in CASES if (case.name in only if only else large or not case.large)]


def positive(text: str) -> int:
    if not (text.isdecimal() and int(text)):
        raise argparse.ArgumentTypeError(f"expected a number from 1 on, got {text!r}")
    return int(text)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--engine", choices=("python", "kernel", "both"), default="both")
    parser.add_argument("--only", action="append", metavar="NAME", help="this case only; may be repeated")
    parser.add_argument("--large", action="store_true", help="the cases of millions of states too")
    parser.add_argument("--repeat", type=positive, default=1, metavar="N", help="the best of N runs")
    parser.add_argument("--json", action="store_true", help="one JSON array instead of the table")
    parser.add_argument("--tlc", metavar="CLASSPATH", help="run TLC beside ours, from this class path")
    parser.add_argument("--modules", type=Path, metavar="FOLDER", help="where TLC's modules are, see model_checker.py")
    parser.add_argument("--stateright", type=Path, metavar="FOLDER",
                        help="run stateright beside ours, from the folder of its built examples, see stateright.py")
    given = parser.parse_args()
    cases = chosen(given.only, given.large)
    tlc = Checker.make(given.tlc, given.modules)
    stateright = Stateright.make(given.stateright, {case.example[0] for case in cases if case.example})
    engines = ("python", "kernel") if given.engine == "both" else (given.engine,)
    if not any(engine in case.goals for case in cases for engine in engines):
        fail(f"{cases[0].name} is too large for --engine {given.engine}; use --engine kernel")
    if not given.json:
        print(f"whole processes with start-up, the modules' invariants on, best of {given.repeat}")
        print(f"{'case':13} {'engine':10} {'distinct':>10} {'CPU s':>8} {'wall s':>8} {'states/s':>10} {'MB':>7}  goal")
    with examples_found():
        reported = [row for case in cases for row in run_case(case, engines, tlc, stateright, given.repeat, given.json)]
    if given.json:
        print(json.dumps(reported, indent=1))


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
