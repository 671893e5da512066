"""A third party's protocol in one file, docs/examples/lock_service.py: searched, simulated, shrunk and replayed."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio
from support.searches.plain_search import search
from support.toys import own_protocols
from support.toys.own_protocols import LOCK_SERVICE

import harness
from harness.model import NO_FAULTS, Faults, Scenario, find_model, find_scenario, model_of
from harness.record import Recorder, read_trail
from harness.simulate.runs.plan import Plan, plan_of
from harness.simulate.runs.run import Run
from harness.simulate.runs.session import run_plain
from harness.simulate.runtimes.trio_runtime import replay_on_trio
from harness.simulate.states.tables import Tables
from harness.simulate.strategies.by_name import NAMES, Strategies
from harness.simulate.trails.replay import replay_plain, spelled_out
from harness.simulate.trails.shrink import shrink

FLAWED, REPAIRED = "double-release", "double-release-repaired"
ALL_CLAIMS = ("MutualExclusion", "EveryRequestIsGranted")
ONE_DUPLICATE = Faults(duplicate=1)
SHORTEST = 13
"""Steps of a shortest schedule in which the hasty server's lock is held twice."""


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    """The lock service is registered during a test, and forgotten after it."""
    with own_protocols.registered("lock_service"):
        yield


def scenario(name: str) -> Scenario:
    found = find_scenario(name)
    assert found is not None
    return found


def runs(tables: Tables, plan: Plan, strategy: str, most: int) -> Iterator[Run]:
    """Yield the runs of a strategy until it has nothing more to try."""
    strategies = Strategies(strategy)
    for seed in range(most):
        chosen = strategies.run(seed)
        if chosen is None:
            return
        yield run_plain(tables, plan, chosen)


def first_violation(name: str, strategy: str) -> tuple[Run, Tables]:
    """Return the first run of a scenario that violates a claim, within the scenario's own number of runs."""
    row = scenario(name)
    tables = Tables(model_of(row))
    return next(run for run in runs(tables, plan_of(row), strategy, row.runs) if not run.verdict.ok), tables


def test_lock_service_is_one_short_file_that_imports_the_vocabulary_only() -> None:
    """The whole protocol takes fewer than 100 lines, and of the harness it imports nothing but `harness.model`."""
    text = LOCK_SERVICE.read_text(encoding="utf-8")
    assert len(text.splitlines()) < 100
    imported = {
        f"{node.module}.{name.name}" if isinstance(node, ast.ImportFrom) else name.name
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in node.names
    }
    assert {name for name in imported if name.startswith("harness")} == {"harness.model"}


@pytest.mark.parametrize(("network", "variants", "faults", "counts"), [
    ("bag", ("fifo", "hasty"), NO_FAULTS, (104, 169, 16)), ("fifo", ("fifo", "hasty"), NO_FAULTS, (96, 151, 16)),
    ("bag", ("fifo",), ONE_DUPLICATE, (764, 1709, 18)), ("fifo", ("fifo",), ONE_DUPLICATE, (588, 1227, 18)),
])
def test_lock_service_holds_mutual_exclusion(
    network: str, variants: tuple[str, ...], faults: Faults, counts: tuple[int, int, int]
) -> None:
    """A complete search finds no violation without faults, nor of the repaired variant with any one message doubled.

    A client that waited is granted the lock.
    """
    for variant in variants:
        model = find_model("lock-service").make({}, {"variant": variant}, network, faults)
        found = search(model, ("MutualExclusion",))
        assert (found.violated, found.witnessed) == (None, {"GrantedAfterWaiting"})
        assert (found.distinct, found.generated, found.depth) == counts


@pytest.mark.parametrize("network", ["bag", "fifo"])
def test_lock_service_hasty_breaks_mutual_exclusion_with_a_duplicate(network: str) -> None:
    """One duplicated message is enough for the hasty variant: the shortest schedule doubles a Release."""
    hasty = find_model("lock-service").make({}, {"variant": "hasty"}, network, ONE_DUPLICATE)
    found = search(hasty, ("MutualExclusion",))
    assert (found.violated, found.reason, len(found.path)) == ("MutualExclusion", "c1, c2 hold the lock", SHORTEST)
    assert [c.step.detail for c in found.path if c.step.action == "Duplicate"] == ["Release c1->server lease=1"]


@pytest.mark.parametrize("strategy", ["random", "systematic"])
def test_lock_service_flaw_is_found_shrunk_and_replayed(strategy: str, tmp_path: Path) -> None:
    """Simulation finds the flaw, shrinking makes it as short as can be, and the trail replays to one digest."""
    run, tables = first_violation(FLAWED, strategy)
    assert run.verdict.violated == scenario(FLAWED).expected
    short = shrink(run.trail, tables=tables)
    assert short.has == SHORTEST < short.had
    short.trail.write(tmp_path / "short.trail.jsonl")

    trail = read_trail(tmp_path / "short.trail.jsonl")
    assert spelled_out(trail, Tables(trail.build())) == short.trail
    replays = [replay_plain(trail, Recorder()), replay_plain(trail, Recorder()), replay_on_trio(trail, Recorder())]
    assert len({replay.digest for replay in replays}) == 1
    assert [(replay.verdict.violated, replay.verdict.step) for replay in replays] == [("MutualExclusion", SHORTEST)] * 3


def test_lock_service_shrunk_trail_is_proved_shortest_at_the_smallest_size() -> None:
    """With two clients the search behind the shrinking is complete, so it says that nothing shorter exists."""
    row = attrs.evolve(scenario(FLAWED), sizes={"clients": 2})
    tables = Tables(model_of(row))
    run = next(run for run in runs(tables, plan_of(row), "random", row.runs) if not run.verdict.ok)
    short = shrink(run.trail, tables=tables)
    assert (short.has, short.proved) == (SHORTEST, True)


def test_lock_service_repaired_scenario_differs_in_the_variant_only() -> None:
    """The flawed row and its repaired twin are the same but for name, setting and what is expected."""
    flawed = scenario(FLAWED)
    assert flawed.repaired == REPAIRED
    changed = {
        field.name
        for field in attrs.fields(Scenario)
        if getattr(flawed, field.name) != getattr(scenario(REPAIRED), field.name)
    }
    assert changed == {"name", "settings", "expected", "repaired"}


@pytest.mark.parametrize("strategy", NAMES)
def test_lock_service_repaired_stays_silent(strategy: str) -> None:
    """In the scenario that breaks the hasty variant, hundreds of runs break nothing and reach the witness."""
    row = scenario(REPAIRED)
    made = list(runs(Tables(model_of(row)), plan_of(row), strategy, row.runs))
    assert len(made) == row.runs
    assert [run.verdict for run in made if not run.verdict.ok] == []
    assert frozenset().union(*(run.witnessed for run in made)) == set(row.witnesses)


@pytest.mark.parametrize("network", ["bag", "fifo"])
@pytest.mark.parametrize("mode", ["free", "timed"])
def test_lock_service_repaired_is_safe_under_every_fault(network: str, mode: str) -> None:
    """No loss, copy, delay, reconnection, partition, pause or skewed clock lets two clients hold the lock."""
    faults = Faults(
        drop=2, duplicate=2, delay=2, reorder=2, partition=1, one_way=1, pause=1, skew=1, targets=("server", "c1")
    )
    tables = Tables(find_model("lock-service").make({"clients": 3, "leases": 4}, {}, network, faults))
    made = list(runs(tables, Plan(("MutualExclusion",), mode=mode), "random", 200))
    assert [run.verdict for run in made if not run.verdict.ok] == []
    assert any(run.witnessed for run in made)


@pytest.mark.parametrize(
    ("faults", "fails"),
    [
        pytest.param(NO_FAULTS, False, id="none"),
        pytest.param(Faults(duplicate=3, delay=3, reorder=3), False, id="no-loss"),
        pytest.param(Faults(drop=1), True, id="a-lost-message"),
    ],
)
@pytest.mark.parametrize("network", ["bag", "fifo"])
def test_lock_service_grants_every_request_unless_a_message_is_lost(network: str, faults: Faults, fails: bool) -> None:
    """Nothing is sent twice, so one lost message leaves a client without the lock; copies and delays do not."""
    tables = Tables(find_model("lock-service").make({}, {}, network, faults))
    failed = [run for run in runs(tables, Plan(ALL_CLAIMS), "random", 200) if not run.verdict.ok]
    assert bool(failed) is fails
    assert {run.verdict.violated for run in failed} <= {"EveryRequestIsGranted"}
    for run in failed[:1]:
        assert run.verdict.reason is not None and run.verdict.reason.startswith("no lock for c")
        assert replay_plain(run.trail).verdict == run.verdict


@harness.simulated(REPAIRED, seeds=50)
def test_lock_service_simulated_test_gets_the_run(run: Run) -> None:
    """As a decorated test: leases are taken in the order in which they were granted, none twice."""
    taken = [chosen.label for chosen in run.trail.choices if chosen.label.startswith("TakeLock")]
    leases = [int(label.rpartition("lease=")[2]) for label in taken]
    assert leases == sorted(set(leases)) != []


@harness.simulated(REPAIRED, seeds=50)
async def test_lock_service_simulated_test_gets_a_cluster(cluster: Any) -> None:
    """As a decorated async test: three clients that ask for the lock at the same time get different leases."""
    leases: list[int] = []

    async def work(name: str) -> None:
        client = cluster.client(name)
        leases.append(await client.lock())
        await client.unlock()

    async with trio.open_nursery() as nursery:
        for name in ("c1", "c2", "c3"):
            nursery.start_soon(work, name)
    assert sorted(leases) == [1, 2, 3]
