"""Faults with a moment of their own: when they happen, when they are mended, and that a budget may be there besides."""

from __future__ import annotations

import pytest
from support.toys.faulty_world import note, world

from harness.model import (
    Faults,
    Message,
    Rule,
    Timed,
)
from harness.simulate.runs.plan import Plan
from harness.simulate.runs.session import run_plain
from harness.simulate.states.tables import Tables
from harness.simulate.strategies.strategy import RandomStrategy


def times(faults: Faults, seed: int, *sent: Message) -> dict[str, list[float]]:
    """Return when (in milliseconds) the steps of a timed run happened, by the beginning of their labels."""
    sent = sent or tuple(note(n, *ends) for n, ends in enumerate(["az", "za", "bz", "yz"] * 3))
    plan = Plan((), steps=400, mode="timed")
    run = run_plain(Tables(world(*sent, faults=faults).model), plan, RandomStrategy(seed))
    found: dict[str, list[float]] = {}
    for chosen in run.trail.choices:
        assert chosen.at_us is not None
        found.setdefault(chosen.label.split(" ")[0], []).append(chosen.at_us / 1000)
    return found


TIMED = {
    "Partition(a,z) Heal(a,z)": Timed("partition", ("z", "a"), 5, 12),
    "Cut(z,a) Heal(a,z)": Timed("one_way", ("z", "a"), 5, 12),
    "Pause(z) Resume(z)": Timed("pause", ("z",), 5, 12),
    "Crash(z) Restart(z)": Timed("crash", ("z",), 5, 12),
    "SkewClock(z) SetClock(z)": Timed("skew", ("z",), 5, 12),
}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("steps", TIMED)
def test_timed_fault_happens_and_is_mended_at_its_moments(steps: str, seed: int) -> None:
    """A timed fault of any kind begins and ends when it says, though nobody is a target of the budget."""
    begin, end = steps.split()
    found = times(Faults(timed=(TIMED[steps],)), seed)
    assert (found[begin], found[end]) == ([5], [12])


def test_timed_fault_without_an_end_is_mended_some_time() -> None:
    """Without `until_ms` a timed fault is mended all the same, later."""
    found = times(Faults(timed=(Timed("crash", ("z",), 5),)), 0)
    assert found["Crash(z)"] == [5] and found["Restart(z)"][0] > 5


def test_timed_faults_of_one_kind_happen_in_turn() -> None:
    """Two timed crashes of one actor happen each at its moment."""
    found = times(Faults(timed=(Timed("crash", ("z",), 15, 20), Timed("crash", ("z",), 3, 7))), 0)
    assert (found["Crash(z)"], found["Restart(z)"]) == ([3, 15], [7, 20])


def test_timed_fault_that_is_not_possible_at_its_moment_happens_as_soon_as_it_is() -> None:
    """An actor that is down when it should be paused is paused when it is up again, and resumed as it is late."""
    found = times(Faults(timed=(Timed("crash", ("z",), 5, 12), Timed("pause", ("z",), 7, 9))), 0)
    assert (found["Restart(z)"], found["Pause(z)"], found["Resume(z)"]) == ([12], [12], [12])


@pytest.mark.parametrize("seed", range(5))
def test_timed_fault_keeps_its_moment_beside_a_budget(seed: int) -> None:
    """Faults of the budget neither pay for a timed fault nor move it, and affect their own targets only."""
    faults = Faults(crash=1, one_way=1, targets=("a",), timed=(Timed("crash", ("z",), 5, 12),))
    found = times(faults, seed)
    assert (found["Crash(z)"], found["Restart(z)"]) == ([5], [12])
    assert len(found["Crash(a)"]) == len(found["Restart(a)"]) == 1


def test_timed_rule_delays_by_its_delay() -> None:
    """In timed mode a message that a delay rule holds is released after the rule's delay."""
    found = times(Faults(rules=(Rule("delay", delay_ms=70),)), 0, note(1))
    assert found["Release"][0] == found["Send(a)"][0] + 70
