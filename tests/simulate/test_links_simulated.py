"""A model whose links differ is simulated as any other: tables, tasks on trio and replays agree."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.runs.trio_runs import run_on_trio
from support.toys.mixed_links import SYSTEM, WRITERS

from harness.explore.model_memo import Remembered
from harness.model import Faults, find_model, register, unregister
from harness.record import Recorder
from harness.simulate.runs.plan import Plan
from harness.simulate.runs.session import run_plain
from harness.simulate.runtimes.trio_runtime import replay_on_trio
from harness.simulate.states.tables import Tables
from harness.simulate.strategies.strategy import RandomStrategy
from harness.simulate.trails.replay import replay_plain

FAULTS = Faults(drop=1, duplicate=1, delay=1, partition=2, one_way=1, crash=1, targets=("hub", "queue"))


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    register(SYSTEM)
    yield
    unregister(SYSTEM.name)


@pytest.mark.parametrize("mode", ["free", "timed"])
def test_runs_over_mixed_links_replay_everywhere(mode: str) -> None:
    """A run has one digest on both runtimes, and so have its replays; the queue stays in order."""
    model = find_model("mixed-links").make({"notes": 3}, faults=FAULTS)
    tables, plan, cut = Tables(model), Plan(("Small", "QueueInOrder"), mode=mode), 0
    for seed in range(20):
        run = run_plain(tables, plan, RandomStrategy(seed), Recorder())
        assert run.verdict.ok
        on_trio = run_on_trio(tables, plan, RandomStrategy(seed), Recorder())
        replays = (replay_plain(run.trail, Recorder()), replay_on_trio(run.trail, Recorder()))
        assert {run.digest} == {on_trio.digest, *(again.digest for again in replays)}
        labels = [chosen.label for chosen in run.trail.choices]
        cut += any(label.startswith("Partition(hub,queue)") for label in labels)
    assert cut


def test_simulation_and_search_know_the_same_steps() -> None:
    """Every state of a run offers the steps that the search finds there, in the same order."""
    model = find_model("mixed-links").make({"notes": 2})
    tables, known = Tables(model), Remembered(model)
    run = run_plain(tables, Plan(()), RandomStrategy(1), Recorder())
    node = tables.start()
    for chosen in run.trail.choices:
        labels = [option.label for option in node.options]
        assert labels == [way.step.label for way in known.ways(known.intern(tables.state(node)))]
        node = tables.follow(node, labels.index(chosen.label))
    assert [len(tables.value(node, "hub")[writer]) for writer in WRITERS] == [2, 2, 2]
