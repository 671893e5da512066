"""A third party's protocol in one file, docs/examples/lock_service.py: searched, simulated, shrunk and replayed."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio
from support.runs.made_runs import first_bad, model_runs, scenario_runs
from support.runs.named_runs import scenario_of
from support.searches.plain_search import search
from support.toys import own_protocols
from support.toys.own_protocols import LOCK_SERVICE

import harness
from harness.model import NO_FAULTS, Faults, Scenario, find_model, model_of
from harness.record import Recorder, read_trail
from harness.simulate.runs.plan import Plan
from harness.simulate.runs.run import Run
from harness.simulate.runtimes.trio_runtime import replay_on_trio
from harness.simulate.states.tables import Tables
from harness.simulate.strategies.by_name import NAMES
from harness.simulate.trails.replay import replay_plain, spelled_out
from harness.simulate.trails.shrink import Shrunk, shrink

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


def shrunk(row: Scenario, strategy: str) -> Shrunk:
    """Shrink the first run that violates what a scenario expects, within its own number of runs."""
    run = first_bad(scenario_runs(row, strategy, row.runs))
    assert run is not None and run.verdict.violated == row.expected
    with closing(Tables(model_of(row))) as tables:
        return shrink(run.trail, tables=tables)


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
    short = shrunk(scenario_of(FLAWED), strategy)
    assert short.has == SHORTEST < short.had
    short.trail.write(tmp_path / "short.trail.jsonl")

    trail = read_trail(tmp_path / "short.trail.jsonl")
    assert spelled_out(trail, Tables(trail.build())) == short.trail
    replays = [replay_plain(trail, Recorder()), replay_plain(trail, Recorder()), replay_on_trio(trail, Recorder())]
    assert len({replay.digest for replay in replays}) == 1
    assert [(replay.verdict.violated, replay.verdict.step) for replay in replays] == [("MutualExclusion", SHORTEST)] * 3


def test_lock_service_shrunk_trail_is_proved_shortest_at_the_smallest_size() -> None:
    """With two clients the search behind the shrinking is complete, so it says that nothing shorter exists."""
    short = shrunk(attrs.evolve(scenario_of(FLAWED), sizes={"clients": 2}), "random")
    assert (short.has, short.proved) == (SHORTEST, True)


def test_lock_service_repaired_scenario_differs_in_the_variant_only() -> None:
    """The flawed row and its repaired twin are the same but for name, setting and what is expected."""
    flawed, repaired = (attrs.asdict(scenario_of(name), recurse=False) for name in (FLAWED, REPAIRED))
    assert flawed["repaired"] == REPAIRED
    changed = {name for name, value in flawed.items() if value != repaired[name]}
    assert changed == {"name", "settings", "expected", "repaired"}


@pytest.mark.parametrize("strategy", NAMES)
def test_lock_service_repaired_stays_silent(strategy: str) -> None:
    """In the scenario that breaks the hasty variant, hundreds of runs break nothing and reach the witness."""
    row = scenario_of(REPAIRED)
    made = list(scenario_runs(row, strategy, row.runs))
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
    model = find_model("lock-service").make({"clients": 3, "leases": 4}, {}, network, faults)
    made = list(model_runs(model, Plan(("MutualExclusion",), mode=mode), "random", 200))
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
    model = find_model("lock-service").make({}, {}, network, faults)
    failed = [run for run in model_runs(model, Plan(ALL_CLAIMS), "random", 200) if not run.verdict.ok]
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
