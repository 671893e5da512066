"""Virtual time: the earliest event comes next, clocks run at their own speed, and a trail carries the times."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from contextlib import closing
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.runs.made_runs import model_runs, scenario_runs
from support.runs.named_runs import each_kind, run_of, scenario_of

from harness import model as m
from harness.record import Recorder, Trail, read_trail
from harness.simulate.runs.plan import Plan, plan_of
from harness.simulate.runs.session import run_plain
from harness.simulate.runs.timing import MS, Spread, Timing
from harness.simulate.runtimes.trio_runtime import replay_on_trio
from harness.simulate.states.tables import Tables
from harness.simulate.strategies.chance import Seeded
from harness.simulate.strategies.strategy import RandomStrategy
from harness.simulate.trails.replay import replay_plain, spelled_out

TIMED = [scenario for scenario in m.scenarios() if scenario.mode == "timed"]
FREE = [scenario for scenario in m.scenarios() if scenario.mode == "free"]


@attrs.frozen
class Ping(m.Message):
    n: int


@attrs.frozen
class Count:
    ticks: int = 0
    done: frozenset[str] = frozenset()


class Clock(m.Actor[Count]):
    """Ticks a number of times, and does a few other things once; may send a message at each tick."""

    def __init__(self, name: str, ticks: int, *once: m.Kind, sends: bool = False) -> None:
        self.name = name
        self.limit = ticks
        self.once = once
        self.sends = sends
        self.initial = Count()

    def step(self, local: Count) -> Iterable[m.Turn[Count]]:
        for kind in self.once:
            if kind.value not in local.done:
                after = attrs.evolve(local, done=local.done | {kind.value})
                yield m.Turn(kind.value, (self.name,), after, kind=kind)

    def timers(self, local: Count) -> tuple[str, ...]:
        return ("Tick",) if local.ticks < self.limit else ()

    def timer_fired(self, local: Count, timer: str) -> Iterable[m.Turn[Count]]:
        sent = (Ping(local.ticks, source=self.name, dest="z"),) if self.sends else ()
        yield m.Turn(timer, (self.name,), attrs.evolve(local, ticks=local.ticks + 1), sent)

    def on_message(self, local: Count, message: m.Message) -> Iterable[m.Turn[Count]]:
        yield m.Turn("Hear", (self.name,), local)


def ms(milliseconds: float) -> Spread:
    """Return the distribution that always gives the same."""
    return Spread(int(milliseconds * MS), int(milliseconds * MS))


Schedule = list[tuple[str, float]]
EVERY_CLOCK_TRUE: Mapping[str, m.Gate] = {}
EXACT = Timing(latency=ms(5), local=ms(1), timeout=ms(60), think=ms(3), perturb=ms(20), heal=ms(7))


def schedule(
    *clocks: Clock, faults: m.Faults = m.NO_FAULTS, gates: Mapping[str, m.Gate] = EVERY_CLOCK_TRUE,
    links: tuple[m.Link, ...] = (),
) -> Schedule:
    """Return the names of the steps of a run with exact durations, and when they happened, in milliseconds."""
    initial = {f"gate[{name}]": gate for name, gate in gates.items()}
    model = m.Model("clocks", clocks, (initial,), m.BAG, faults, links=links)
    run = run_plain(Tables(model), Plan((), mode="timed", timing=EXACT), RandomStrategy(0))
    return [(chosen.label.split(" ")[0], (chosen.at_us or 0) / MS) for chosen in run.trail.choices]


def times(trail: Trail) -> list[int | None]:
    return [chosen.at_us for chosen in trail.choices]


def event_times(recorder: Recorder | None) -> list[int | None]:
    """Return the times of the events of a history, the initial one left out."""
    assert recorder is not None
    return [json.loads(line).get("at_us") for line in recorder.lines[1:]]


SKEWED = m.Faults(timed=(m.Timed("skew", ("a",), 100, 150),))


@pytest.mark.parametrize(("clocks", "model", "expected"), [
    ((Clock("a", 1, m.Kind.PERTURBATION, m.Kind.COMMAND, m.Kind.STEP),), {},
     [("step(a)", 1), ("command(a)", 3), ("perturbation(a)", 20), ("Tick(a)", 60)]),
    ((Clock("a", 2, sends=True), Clock("z", 0)), {},
     [("Tick(a)", 60), ("Hear(z)", 65), ("Tick(a)", 120), ("Hear(z)", 125)]),
    ((Clock("a", 1, sends=True), Clock("z", 0)), {"links": (m.Link("a", "z", m.RELIABLE),)},
     [("Tick(a)", 60), ("Hear(z)", 61)]),
    ((Clock("a", 1),), {"faults": m.Faults(pause=1, targets=("a",))},
     [("Pause(a)", 20), ("Resume(a)", 27), ("Tick(a)", 87)]),
    ((Clock("a", 5),), {"faults": SKEWED},
     [("Tick(a)", 60), ("SkewClock(a)", 100), ("Tick(a)", 120), ("Tick(a)", 140), ("SetClock(a)", 150),
      ("Tick(a)", 160), ("Tick(a)", 220)]),
    ((Clock("a", 1, sends=True), Clock("z", 0)), {"faults": m.Faults(targets=("z",)), "gates": {"z": m.Gate(skew=300)}},
     [("Tick(a)", 60), ("Hear(z)", 65)]),
], ids=["kinds", "timers", "reliable links", "mending", "skew while it lasts", "skew and messages"])
def test_steps_happen_at_their_times(clocks: tuple[Clock, ...], model: dict[str, Any], expected: Schedule) -> None:
    """Each kind of step takes its own time, the earliest first. Timers are armed again when they have fired, and what
    is sent arrives one latency later, on reliable links as fast as a local step. Mending takes its own time. A clock
    that is skewed measures timeouts at its speed in between, and only timers go by an actor's clock."""
    assert schedule(*clocks, **model) == expected


@pytest.mark.parametrize(("skew", "tick"), [(100, 60), (300, 20), (200, 30), (50, 120), (25, 240)])
def test_skewed_clock_fires_in_proportion_to_its_speed(skew: int, tick: int) -> None:
    """A clock at three times the speed fires after a third of the time, one at half the speed after twice the time."""
    gates = {"a": m.Gate(skew=skew)}
    happened = schedule(Clock("a", 3), Clock("z", 1), faults=m.Faults(targets=("a",)), gates=gates)
    assert [at for name, at in happened if name == "Tick(a)"] == [tick, 2 * tick, 3 * tick]
    assert ("Tick(z)", 60) in happened


@given(low=st.integers(0, 50), more=st.integers(0, 50), seed=st.integers(0, 99))
def test_spread_draws_between_its_bounds(low: int, more: int, seed: int) -> None:
    """A duration is between the bounds, both included."""
    chance = Seeded(seed)
    assert all(low <= Spread(low, low + more).draw(chance, "?") <= low + more for _ in range(20))


def test_spread_reaches_both_bounds_and_its_tail() -> None:
    """All durations occur, and as many percent of them as the tail says are ten times as long."""
    chance = Seeded(0)
    drawn = [Spread(10, 12, tail=20).draw(chance, "?") for _ in range(2_000)]
    assert set(drawn) == {10, 11, 12, 100, 110, 120}
    assert 300 < sum(at >= 100 for at in drawn) < 500


def test_scenarios_have_both_modes() -> None:
    """The table of scenarios runs in timed and in free mode, so that what follows speaks of both."""
    assert len(TIMED) >= 3 and len(FREE) >= 3


@pytest.mark.parametrize("scenario", each_kind(TIMED))
def test_time_never_goes_back(scenario: m.Scenario) -> None:
    """In timed mode no step is earlier than the one before it, fair endings and all: those come with liveness."""
    endings = 0
    model, plan = m.model_of(scenario), plan_of(scenario)
    for run in model_runs(model, plan, "random", 25):
        at = [time for time in times(run.trail) if time is not None]
        assert len(at) == len(run.trail.choices)
        assert at == sorted(at) and at[-1] > 0
        endings += run.trail.fair_from is not None
    assert (endings > 0) == any(prop.is_temporal for prop in model.properties if prop.name in plan.claims)


@pytest.mark.parametrize("scenario", each_kind(FREE))
def test_free_mode_has_no_times(scenario: m.Scenario) -> None:
    """In free mode neither the trail nor the history says when anything happened."""
    run = run_of(scenario.name, 1)
    assert set(times(run.trail)) == set(event_times(run.recorder)) == {None}
    assert not any("at_us" in line for line in run.trail.lines())


@pytest.mark.parametrize("scenario", each_kind(FREE[::3]))
def test_any_scenario_may_be_timed(scenario: m.Scenario) -> None:
    """A scenario made for free mode runs in timed mode as well, and its times replay."""
    plan = attrs.evolve(plan_of(scenario), mode="timed")
    tables = Tables(m.model_of(scenario))
    run = run_plain(tables, plan, RandomStrategy(3), Recorder())
    at = [time for time in times(run.trail) if time is not None]
    assert at == sorted(at) and len(at) == len(run.trail.choices)
    assert replay_plain(run.trail, Recorder(), tables).digest == run.digest


@pytest.mark.parametrize("runs", [2, pytest.param(6, marks=pytest.mark.large)])
@pytest.mark.parametrize("scenario", each_kind(TIMED))
def test_times_of_the_trail_are_those_of_the_history_in_every_replay(scenario: m.Scenario, runs: int) -> None:
    """A replay draws no time: in both runtimes the history gets the times of the trail, event by event."""
    with closing(Tables(m.model_of(scenario))) as tables:
        for seed in range(runs):
            run = run_of(scenario.name, seed, "pct" if seed % 2 else "random", tables)
            assert event_times(run.recorder) == times(run.trail)
            for replay in (replay_plain, replay_on_trio):
                again = replay(run.trail, Recorder(), tables)
                assert event_times(again.recorder) == times(run.trail)
                assert (again.digest, again.verdict) == (run.digest, run.verdict)
                assert again.trail.choices == run.trail.choices


def test_times_survive_writing_and_reading(tmp_path_factory: pytest.TempPathFactory) -> None:
    """A timed trail read back from its file is the same trail, once the references of its labels are spelled out."""
    path = tmp_path_factory.mktemp("trails") / "timed.trail.jsonl"
    trail = run_of("leaders-crash").trail
    trail.write(path)
    again = read_trail(path)
    assert times(again) == times(trail)
    assert spelled_out(again, Tables(trail.build())) == trail


def test_timed_faults_of_a_scenario_happen_at_their_moments() -> None:
    """A broker of the scenario `rolling-restart` is down from 15 ms to 55 ms in every run, unless that is over before.
    """
    seen = 0
    for run in scenario_runs(scenario_of("rolling-restart"), "random", 20):
        trail = run.trail
        main = trail.choices if trail.fair_from is None else trail.choices[: trail.fair_from]
        crashes = [chosen.at_us for chosen in main if chosen.label == "Crash(b1)"]
        restarts = [chosen.at_us for chosen in main if chosen.label == "Restart(b1)"]
        assert crashes == [15 * MS]
        if restarts:
            assert restarts == [55 * MS]
            seen += 1
    assert seen
