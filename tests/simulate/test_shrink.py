"""Shrinking: failing trails become short ones that violate the same property, some of them proved shortest."""

from __future__ import annotations

from functools import cache
from itertools import islice
from pathlib import Path

import attrs
import pytest
from support.runs.made_runs import runs_of
from support.runs.named_runs import run_of, scenario_of
from support.searches.plain_search import search

from harness.model import Faults, Refusal, Rule, find_model, model_of
from harness.record import Recorder, Trail, read_trail
from harness.simulate.runs.plan import Plan, plan_of
from harness.simulate.runs.run import Run
from harness.simulate.runtimes.trio_runtime import replay_on_trio
from harness.simulate.states.tables import Tables
from harness.simulate.trails import shrink as shrinking
from harness.simulate.trails.replay import replay_plain, spelled_out, try_choices
from harness.simulate.trails.shrink import Shrunk, perturbing_part, shrink, shrink_while

SAFETY = {
    "s1-reused-pid": ("ClientsHaveDifferentProducerEpochs", 17, 13),
    "s3-wiped-metadata": ("OnePidPerTid", 8, 6),
    "s4-copied-tail": ("LogsAgreeUpToHwm", 10, 8),
}
"""The invariant that breaks, the steps that a shrunk trail may have, and those of a shortest one."""

LIVENESS = {"s2-stuck-replica": 1, "s5-stuck-abort": 11, "s6-stuck-transition": 3}
"""The steps before the fair ending that a shrunk trail may have."""
FOUND = 3
"""How many failing runs of each strategy are shrunk."""

FAULTY = Faults(
    drop=2, duplicate=2, delay=1, partition=1, pause=1, targets=("r1",), rules=(Rule("duplicate", dest="r2", nth=2),)
)


@cache
def tables_of(name: str) -> Tables:
    return Tables(model_of(scenario_of(name)))


@cache
def failing(name: str, strategy: str) -> tuple[Run, ...]:
    """Return the first runs of a scenario under a strategy that violate what the scenario expects."""
    scenario = scenario_of(name)
    runs = runs_of(tables_of(name), plan_of(scenario), strategy)
    return tuple(islice((run for run in runs if run.verdict.violated == scenario.expected), FOUND))


@cache
def shrunk(name: str, strategy: str) -> tuple[Shrunk, ...]:
    return tuple(shrink(run.trail, tables=tables_of(name)) for run in failing(name, strategy))


strategies = pytest.mark.parametrize("strategy", ["random", "pct"])
safety = pytest.mark.parametrize("name", SAFETY)
liveness = pytest.mark.parametrize("name", LIVENESS)


@strategies
@safety
def test_shrunk_trail_is_short_and_violates_the_same_property(name: str, strategy: str) -> None:
    """The first failing runs shrink to few steps, never below what is possible, and say how many they had. Short trails
    replay strictly, in both runtimes, and violate at their last step what the long ones violated."""
    violated, most, least = SAFETY[name]
    for run, short in zip(failing(name, strategy), shrunk(name, strategy), strict=True):
        assert least <= short.has <= most
        assert (short.had, short.has) == (len(run.trail.choices), len(short.trail.choices))
        assert short.tried > 0
        again = replay_plain(short.trail, Recorder())
        assert run.verdict.violated == again.verdict.violated == short.trail.violates == violated
        assert (again.verdict.kind, again.verdict.step) == ("safety", short.has)
        assert again.trail.choices == short.trail.choices
        assert replay_on_trio(short.trail, Recorder()).digest == again.digest


@strategies
@safety
def test_shrunk_trail_is_minimal(name: str, strategy: str) -> None:
    """Without any one of its choices a shrunk trail violates the property no more."""
    violated, _, _ = SAFETY[name]
    for short in shrunk(name, strategy):
        tables, choices = Tables(short.trail.build()), short.trail.choices
        trail = attrs.evolve(short.trail, claims=(violated,))
        assert try_choices(tables, trail, choices).verdict.violated == violated
        for n in range(len(choices)):
            assert try_choices(tables, trail, choices[:n] + choices[n + 1 :]).verdict.ok


@strategies
@pytest.mark.parametrize("name", ["s3-wiped-metadata", "s4-copied-tail"])
def test_shrunk_trail_is_proved_shortest_only_when_it_is(name: str, strategy: str) -> None:
    """Where a trail is said to be proved shortest, the plain breadth-first search finds none with fewer steps."""
    proved = [short for short in shrunk(name, strategy) if short.proved]
    assert proved
    for short in proved:
        assert short.trail.violates is not None
        assert plain_length(short.trail) == short.has


@cache
def length(model: str, sizes: tuple[tuple[str, int], ...], violates: str) -> int:
    return len(search(find_model(model).make(dict(sizes)), (violates,)).path)


def plain_length(trail: Trail) -> int:
    """Return how many steps the plain search takes to the violation that a trail ends with."""
    assert trail.violates is not None and not any(trail.settings.values())
    return length(trail.model, tuple(sorted(trail.sizes.items())), trail.violates)


def test_shrunk_trail_is_not_proved_where_the_search_gives_up() -> None:
    """S1 takes more states than the search looks at, so its trails are short but not proved to be the shortest."""
    assert not any(short.proved for strategy in ("random", "pct") for short in shrunk("s1-reused-pid", strategy))


@strategies
@liveness
def test_shrunk_trail_of_a_liveness_failure_still_fails(name: str, strategy: str) -> None:
    """The part before the fair ending, of up to two hundred steps, shrinks to what it takes to get stuck; the trail
    replays strictly and fails for want of the same thing."""
    for run, short in zip(failing(name, strategy), shrunk(name, strategy), strict=True):
        assert run.trail.fair_from is not None
        assert short.had == run.trail.fair_from
        assert short.has == short.trail.fair_from == len(perturbing_part(short.trail)) <= short.had
        assert short.has <= LIVENESS[name]
        assert not short.proved
        for replay in (replay_plain, replay_on_trio):
            again = replay(short.trail, Recorder())
            assert (again.verdict.violated, again.verdict.kind) == (run.verdict.violated, "liveness")
            assert again.trail.choices == short.trail.choices


def test_shrinking_drops_faults_and_actors_and_reduces_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a run with more clients, polls and faults than the flaw (RP-01) needs, those that it needs are left."""
    monkeypatch.setattr(shrinking, "SEARCHED", 2_000)
    sizes = {"replicas": 3, "producers": 2, "consumers": 2, "records": 2, "elections": 3}
    tables = Tables(find_model("replication/truncate-to-high-watermark/actors").make(sizes, faults=FAULTY))
    runs = runs_of(tables, Plan(("StrongIsr",)), "random")
    found = islice((run for run in runs if not run.verdict.ok), 2)
    short, failed = min(((shrink(run.trail, tables=tables), run) for run in found), key=lambda pair: pair[0].has)
    faults = ("Drop", "Duplicate", "Delay", "Partition", "Pause", "Release", "Heal", "Resume")
    assert any(chosen.label.startswith(faults) for chosen in failed.trail.choices)
    assert not any(chosen.label.startswith(faults) for chosen in short.trail.choices)
    assert all(short.trail.sizes[name] <= sizes[name] for name in sizes)
    assert (short.trail.sizes["consumers"], short.trail.sizes["polls"]) == (0, 1)
    assert replay_plain(short.trail).verdict.violated == "StrongIsr"


def test_shrinking_a_short_trail_changes_nothing() -> None:
    """What is shrunk is as short as it gets."""
    for name in ("s3-wiped-metadata", "s5-stuck-abort"):
        first = shrunk(name, "random")[0]
        again = shrink(first.trail)
        assert (again.had, again.has) == (first.has, first.has)
        assert len(perturbing_part(again.trail)) == len(perturbing_part(first.trail))


def test_shrunk_trail_survives_writing_and_reading(tmp_path: Path) -> None:
    """A shrunk trail read back from its file replays to the same digest."""
    for short in (shrunk("s4-copied-tail", "pct")[0], shrunk("s2-stuck-replica", "random")[0]):
        short.trail.write(tmp_path / "short.trail.jsonl")
        read = read_trail(tmp_path / "short.trail.jsonl")
        assert spelled_out(read, Tables(read.build())) == short.trail
        assert replay_plain(read, Recorder()).digest == replay_plain(short.trail, Recorder()).digest


def test_shrinking_keeps_the_claims_of_the_trail() -> None:
    """The short trail claims what the long one claimed, so that its replay judges the same."""
    run, short = failing("s4-copied-tail", "random")[0], shrunk("s4-copied-tail", "random")[0]
    assert short.trail.claims == run.trail.claims
    asked = shrink(run.trail, violates="FollowersHoldNoUncommitted")
    assert asked.trail.claims == (*run.trail.claims, "FollowersHoldNoUncommitted")
    assert (asked.trail.violates, asked.has) == ("FollowersHoldNoUncommitted", 4)


@pytest.mark.parametrize(("violates", "said"), [
    (None, "the trail violates nothing, so there is nothing to shrink"),
    *((name, f"does not violate {name} when it is replayed, so it cannot be shrunk") for name in (
        "OnePidPerTid", "EventuallyAllClientsGetPid")),
])
def test_trail_that_does_not_violate_what_it_says_is_refused(violates: str | None, said: str) -> None:
    """There is nothing to shrink in a run that went well, whatever the trail says of it."""
    trail = run_of("happy-path", tables=tables_of("happy-path")).trail
    with pytest.raises(Refusal, match=said):
        shrink(attrs.evolve(trail, violates=violates))


def test_shrink_while_keeps_what_holds() -> None:
    """A trail shrinks as long as a condition on it holds; what never held is left alone."""
    tables = tables_of("exactly-once-zombie")
    trail = run_of("exactly-once-zombie", tables=tables).trail

    def fenced(candidate: Trail) -> Trail | None:
        run = try_choices(tables, candidate, candidate.choices)
        return run.trail if "ProducerIsFenced" in run.witnessed else None

    short = shrink_while(tables, trail, fenced)
    assert len(short.choices) < len(trail.choices)
    assert "ProducerIsFenced" in replay_plain(short).witnessed
    assert short.claims == trail.claims
    assert shrink_while(tables, trail, lambda candidate: None) == trail
