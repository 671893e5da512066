"""How fast simulation is: steps per second of the plain and the trio runtime, and the price of a trio step.

Prints every figure from one run, with its goal. Nothing is asserted: machines differ, ratios travel better than rates.

    python benchmarks/simulation.py [--seconds N]
"""

from __future__ import annotations

import argparse
import gc
import statistics
import time
from collections.abc import Callable

import trio

from harness.model import find_model
from harness.record import Recorder
from harness.simulate.runs.plan import Plan
from harness.simulate.runs.session import Session, run_plain
from harness.simulate.runtimes.trio_runtime import TrioHost
from harness.simulate.states.tables import Tables
from harness.simulate.strategies.strategy import RandomStrategy
from kafka_proto.cluster import properties as cluster
from kafka_proto.transactions.properties import INVARIANTS

TWO_AND_TWO = {"producers": 2, "transactional-ids": 2, "consumers": 2}
"""Sizes of whole transactions."""
SEEDS = 400
"""Different runs that a measurement goes through again and again."""


def rate(run: Callable[[int], int], seconds: float, seeds: int = SEEDS) -> float:
    """Return steps per second of CPU-bound runs, the median of five windows after one pass over all seeds."""
    for seed in range(seeds):
        run(seed)
    rates = []
    for _ in range(5):
        steps, seed = 0, 0
        start = time.perf_counter()
        while time.perf_counter() - start < seconds / 5:
            steps += run(seed % seeds)
            seed += 1
        rates.append(steps / (time.perf_counter() - start))
    return statistics.median(rates)


def plain(tables: Tables, history: bool, claims: tuple[str, ...] = INVARIANTS) -> Callable[[int], int]:
    """Return a function that makes run `seed` on the plain runtime and says how many steps it had."""
    plan = Plan(claims)

    def run(seed: int) -> int:
        recorder = Recorder() if history else None
        return len(run_plain(tables, plan, RandomStrategy(seed), recorder).trail.choices)

    return run


def on_trio(tables: Tables, history: bool) -> Callable[[int], int]:
    """Return a function that makes ten runs from `seed` on in one trio program; each starts and ends all its tasks."""
    plan = Plan(INVARIANTS)

    async def runs(seed: int) -> int:
        steps = 0
        for number in range(seed, seed + 10):
            recorder = Recorder() if history else None
            host = TrioHost(Session(tables, plan, RandomStrategy(number % SEEDS), recorder))
            steps += len((await host.run()).trail.choices)
        return steps

    return lambda seed: trio.run(runs, seed * 10)


def trio_step(tables: Tables, seconds: float) -> tuple[float, float]:
    """Return the seconds of a trio step without history and of a bare hand-off, measured in turns: medians."""
    run = on_trio(tables, False)
    for seed in range(SEEDS // 10):
        run(seed)
    steps, bare = [], []
    start = time.perf_counter()
    while time.perf_counter() - start < seconds:
        bare.append(hand_off(5_000))
        began = time.perf_counter()
        taken = sum(run(seed) for seed in range(10))
        steps.append((time.perf_counter() - began) / taken)
    return statistics.median(steps), statistics.median(bare)


def hand_off(count: int) -> float:
    """Return the seconds of a bare hand-off: one task wakes a parked one and parks until that one wakes it."""

    def abort(_: object) -> trio.lowlevel.Abort:
        return trio.lowlevel.Abort.SUCCEEDED

    async def main() -> float:
        me = trio.lowlevel.current_task()
        other: list[trio.lowlevel.Task] = []

        async def partner() -> None:
            other.append(trio.lowlevel.current_task())
            while True:
                await trio.lowlevel.wait_task_rescheduled(abort)
                trio.lowlevel.reschedule(me)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(partner)
            while not other:
                await trio.lowlevel.checkpoint()
            await trio.lowlevel.checkpoint()
            start = time.perf_counter()
            for _ in range(count):
                trio.lowlevel.reschedule(other[0])
                await trio.lowlevel.wait_task_rescheduled(abort)
            took = time.perf_counter() - start
            nursery.cancel_scope.cancel()
        return took / count

    return trio.run(main)


def cold(tables: Tables, seconds: float, history: bool, claims: tuple[str, ...] = INVARIANTS) -> float:
    """Return steps per second when every run is a new one: no state is met twice but by chance."""
    run = plain(tables, history, claims)
    steps = seed = 0
    start = time.perf_counter()
    while time.perf_counter() - start < seconds:
        steps += run(seed)
        seed += 1
    return steps / (time.perf_counter() - start)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--seconds", type=float, default=5.0, help="seconds per figure")
    seconds = parser.parse_args().seconds
    spec = Tables(find_model("transactions/repaired").make())
    actors = Tables(find_model("kafka/4.0").make())

    def show(what: str, figure: float, goal: float) -> None:
        mark = "reached" if figure >= goal else "missed"
        print(f"{what:62} {figure:>10,.0f} steps/s   goal {goal:>8,.0f}  {mark}", flush=True)

    gc.disable()  # as the drivers do: the tables are long-lived
    print(f"every figure: {SEEDS} random runs again and again, all invariants on, {seconds:g} s each")
    show("plain, history, transactions/repaired", rate(plain(spec, True), seconds), 60_000)
    show("plain, no history, transactions/repaired", rate(plain(spec, False), seconds), 300_000)
    show("plain, history, kafka/4.0", rate(plain(actors, True), seconds), 60_000)
    show("plain, no history, kafka/4.0", rate(plain(actors, False), seconds), 300_000)
    show("trio, history, kafka/4.0", rate(on_trio(actors, True), seconds, SEEDS // 10), 20_000)
    step, bare = trio_step(actors, seconds)
    mark = "reached" if step <= 2.5 * bare else "missed"
    print(f"a trio step without history {step * 1e6:.1f} us, a bare hand-off {bare * 1e6:.1f} us: "
          f"ratio {step / bare:.2f}   goal at most 2.5  {mark}")
    for name in ("transactions/repaired", "kafka/4.0"):
        tables = Tables(find_model(name).make())
        print(f"{'never the same run twice, history, ' + name:62} {cold(tables, seconds, True):>10,.0f} steps/s")
    for log in ("at-once", "replicated"):
        whole = Tables(find_model("kafka/4.0").make(TWO_AND_TWO, {"log": log}))
        show(f"never the same run twice, no history, kafka/4.0, {log}",
             cold(whole, seconds, False, cluster.INVARIANTS), 20_000)


if __name__ == "__main__":
    main()
