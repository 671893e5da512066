"""The guided strategy: repeatable, its trails replay alone, and it reaches more than chance does."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from functools import cache

import pytest
from support.runs.named_runs import scenario_of, strategy_of

from harness.model import Faults, Model, find_scenario
from harness.record import Recorder, Trail
from harness.simulate.hunting.tasks import Task, carry_out
from harness.simulate.runs.plan import Plan, resolve
from harness.simulate.runs.run import Run
from harness.simulate.runs.session import run_plain
from harness.simulate.states.guards import Guards
from harness.simulate.states.tables import Tables
from harness.simulate.strategies.by_name import Strategies
from harness.simulate.strategies.chance import Led, Seeded, weighed
from harness.simulate.strategies.coverage import Coverage
from harness.simulate.strategies.guided import BEGINNINGS, WAYS, drawn, weights
from harness.simulate.trails.replay import replay_plain

FAULTY = ("exactly-once-crashes", "fencing-battle")
LONG = "s1-reused-pid"
"""The scenario with the shortest runs, for campaigns of many."""


def campaign(name: str, runs: int) -> tuple[Strategies, list[Run]]:
    """Return the runs of a guided campaign on fresh tables."""
    model, plan = resolve(name)
    source = Strategies("guided")
    with closing(Tables(model, Guards())) as tables:
        return source, [run_plain(tables, plan, strategy_of(source, number), Recorder()) for number in range(runs)]


@cache
def made_once(name: str) -> tuple[Strategies, list[Run]]:
    """Return a campaign that several tests look at."""
    return campaign(name, 60 if name == LONG else 25)


@pytest.mark.parametrize("name", ["exactly-once-zombie", "leaders-crash", pytest.param(LONG, marks=pytest.mark.large)])
def test_campaign_made_again_makes_the_same_runs(name: str) -> None:
    """Run n is known by its number in the campaign; in free and in timed mode, with one initial state or several."""
    first, again = made_once(name)[1][:25], campaign(name, 25)[1]
    assert [run.trail for run in again] == [run.trail for run in first]
    assert [run.digest for run in again] == [run.digest for run in first]
    assert [(run.trail.strategy, run.trail.seed) for run in first] == [("guided", n) for n in range(25)]


@pytest.mark.parametrize("name", ["exactly-once-zombie", "leaders-crash"])
def test_guided_trail_replays_without_its_campaign(name: str) -> None:
    """Strictly, with the same digest and verdict: the corpus is no part of what a trail needs."""
    for run in made_once(name)[1][:20]:
        again = replay_plain(run.trail, Recorder())
        assert (again.digest, again.verdict) == (run.digest, run.verdict)


def test_runs_build_upon_kept_trails_in_every_way() -> None:
    """Each beginning and each way is tried; later runs share long beginnings with earlier ones."""
    source, runs = made_once(LONG)
    assert source.campaign is not None
    assert all(source.campaign.beginnings[name].steps for name in BEGINNINGS)
    assert all(source.campaign.ways[name].steps for name in WAYS)
    trails = [run.trail for run in runs]
    assert max(shared(trail, other) for n, trail in enumerate(trails) for other in trails[:n]) >= 20


def shared(one: Trail, other: Trail) -> int:
    """Return how many first steps two trails share."""
    return next(
        (n for n, (a, b) in enumerate(zip(one.choices, other.choices, strict=False)) if a != b),
        min(len(one.choices), len(other.choices)),
    )


def test_corpus_holds_trails_that_reached_something_and_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it is full, the trail of least energy goes."""
    monkeypatch.setattr("harness.simulate.strategies.guided.KEPT", 10)
    source, _ = campaign(LONG, 40)
    assert source.campaign is not None and len(source.campaign.kept) == 10
    assert all(kept.worth > 0 and kept.news for kept in source.campaign.kept)


def everywhere(name: str) -> tuple[Model, Plan]:
    """Return a scenario, or a model at its default sizes with every kind of fault on."""
    if find_scenario(name) is not None:
        return resolve(name)
    crashing = tuple(name for name, actor in sorted(resolve(name)[0].actors.items()) if actor.may_crash)
    return resolve(name, Faults(drop=2, duplicate=2, delay=2, crash=1, partition=1, pause=1, targets=crashing))


def reached(name: str, strategy: str, steps: int) -> Coverage:
    """Return what a strategy reaches in so many steps, up to the end of the run."""
    model, plan = everywhere(name)
    source, seed = Strategies(strategy), 0
    with closing(Tables(model, Guards())) as tables:
        coverage = source.cover(tables)
        while coverage.steps < steps:
            run_plain(tables, plan, strategy_of(source, seed))
            seed += 1
    return coverage


@pytest.mark.parametrize(("name", "steps", "count", "more"), [
    *(pytest.param(name, 10_000, lambda found: len(found.turns), 1.25, marks=pytest.mark.large) for name in FAULTY),
    ("compaction/pulsar/actors", 6_000, lambda found: found.states, 1.1),
    pytest.param("replication/kip-320/actors", 6_000, lambda found: found.states, 1.1, marks=pytest.mark.large),
])
def test_guided_reaches_more_than_random_in_as_many_steps(
    name: str, steps: int, count: Callable[[Coverage], int], more: float
) -> None:
    """A quarter more turns, at least: actions, and what is possible after them. A tenth more states: of the spec where
    the model names a refinement, else its own."""
    guided, random = reached(name, "guided", steps), reached(name, "random", steps)
    assert count(guided) > more * count(random)
    assert abs(guided.steps - random.steps) <= 400


def counts(coverage: Coverage) -> tuple[int, ...]:
    """Return how much was reached of everything."""
    assert coverage.tables.guards is not None
    return coverage.states, coverage.steps, coverage.unmapped, len(coverage.offered), len(coverage.tables.guards.seen)


def test_state_ahead_is_looked_at_without_going_there() -> None:
    """Nothing is counted, and no guard evaluated; the step then leads to what was said."""
    tables = Tables(resolve("exactly-once-zombie")[0], Guards())
    coverage, node, said, chance = Coverage(tables), tables.start(), set(), Seeded(0)
    coverage.begin(node)
    for _ in range(60):
        before = counts(coverage)
        news = [coverage.is_new_ahead(node, option) for option in node.options]
        assert counts(coverage) == before
        n = news.index(True) if True in news else chance.index(len(news), "step")
        states, option, node = coverage.states, node.options[n], tables.follow(node, n)
        coverage.took(option, node)
        assert coverage.states - states == news[n]
        said.add(news[n])
        if not node.options:
            break
    assert said == {True, False}


@pytest.mark.parametrize("name", ["s1-reused-pid", "s2-stuck-replica", "s3-wiped-metadata", "s4-copied-tail"])
def test_guided_finds_the_flaws(name: str) -> None:
    """Within the runs that the scenario has for a strategy."""
    scenario = scenario_of(name)
    tried = carry_out((Task(name, "guided", scenario.runs),))[0]
    assert tried.found_at is not None and tried.trail is not None
    assert replay_plain(tried.trail).verdict.violated == scenario.expected


def test_led_chance_gives_the_answers_that_are_possible_then_its_own() -> None:
    """An answer out of range is asked for anew; first answers are noted, so that they can lead another run."""
    chance = Led((2, 5, 1), Seeded(3), most=4)
    answers = [chance.index(n, "?") for n in (3, 4, 2, 100, 100)]
    rest = Seeded(3)
    assert answers == [2, rest.index(4, "?"), 1, rest.index(100, "?"), rest.index(100, "?")]
    assert chance.drawn == answers[:4]


def test_high_rates_are_drawn_more_often_and_none_never() -> None:
    """What is not known yet comes first; a rate of nothing keeps a small chance."""
    assert weights([0.0, 1.0, 2.0], 8, 2) == [1, 3, 9]
    assert drawn(Seeded(0), [1.0, float("inf"), float("inf")], 8, 2) == 1
    chance = Seeded(1)
    counts = [0, 0, 0]
    for _ in range(1_300):
        counts[weighed(chance, [1, 3, 9])] += 1
    assert 50 < counts[0] < 150 < 200 < counts[1] < 400 < 800 < counts[2]
