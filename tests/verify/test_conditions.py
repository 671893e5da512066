"""Where a protocol's function stops: conditions of loops and comprehensions, in the turn that was asked about."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import attrs
import pytest
from support.demo.sessions import opened

from harness.demo.session import questions
from harness.demo.session.snapshot import present
from harness.model import Step
from harness.verify.conditions import guard_of
from harness.verify.guard_trace import watch


@attrs.frozen
class Local:
    """What the functions below decide on."""

    leader: str | None = "r1"
    elections: int = 0
    isr: tuple[str, ...] = ("r1", "r2")
    replicas: tuple[str, ...] = ("r1", "r2", "r3")


def by_budget(local: Local) -> Iterable[Step]:
    """Elects where nobody leads, or while the budget lasts."""
    for replica in local.replicas:
        if local.leader is None and replica in local.isr:
            yield Step("Elect", (replica,), ())
    if local.leader is None:
        return
    for replica in local.replicas if local.elections else ():
        if replica in local.isr:
            yield Step("Elect", (replica,), ())
    for replica in local.isr:
        if len(local.isr) > 2:
            yield Step("Shrink", (replica,), ())


def by_comprehension(local: Local) -> Iterable[Step]:
    """Elects those in the ISR that do not lead."""
    yield from (Step("Elect", (r,), ()) for r in local.replicas if r in local.isr if r != local.leader)


def by_continue(local: Local) -> Iterable[Step]:
    """Leaves out who is in the ISR."""
    for replica in local.replicas:
        if replica in local.isr:
            continue
        yield Step("Elect", (replica,), ())


def by_all(local: Local) -> Iterable[Step]:
    """Elects the leader where all replicas are in the ISR."""
    if all(member in local.isr for member in local.replicas):
        yield Step("Elect", (local.leader or "",), ())


def by_while(local: Local) -> Iterable[Step]:
    """Elects as long as the budget lasts."""
    while local.elections > 0:
        yield Step("Elect", ("r1",), ())
        return


def stopped(function: Callable[[Local], Iterable[Step]], local: Local, *args: str) -> tuple[str, tuple[str, ...]]:
    """Return the text and values of the condition at which a function stops short of electing somebody."""
    (call,) = [call for call in watch(lambda: function(local)) if call.code is function.__code__]
    guard, _ = guard_of(call, True, ("Elect",), args)
    return guard.text, guard.values


def test_spent_budget_of_a_loop_is_blamed_and_not_an_earlier_guard() -> None:
    """The loop has nothing to go through; with some budget left it is the guard inside, in the turn of that replica."""
    assert stopped(by_budget, Local(), "r3") == (
        "for replica in local.replicas if local.elections else ()",
        ("local.elections = 0", "local.replicas = <r1,r2,r3>"),
    )
    text, values = stopped(by_budget, Local(elections=1, isr=("r2",)), "r1")
    assert text == "if replica in local.isr" and "replica = r1" in values
    text, values = stopped(by_budget, Local(leader=None, isr=("r2",)), "r1")
    assert text == "if local.leader is None and replica in local.isr" and "replica = r1" in values


@pytest.mark.parametrize(("args", "expected"), [
    (("r1",), ("if r != local.leader", ("r = r1",))), (("r3",), ("if r in local.isr", ("r = r3",))),
])
def test_condition_of_a_comprehension_is_told_for_the_item_that_is_meant(
    args: tuple[str, ...], expected: tuple[str, tuple[str, ...]]
) -> None:
    """Whichever of its conditions is false for it; where it could be taken, there is nothing to blame there."""
    local = Local(isr=("r1",))
    assert stopped(by_comprehension, local, *args) == expected


def test_comprehension_over_nothing_is_reported() -> None:
    """What it goes through is empty."""
    text, values = stopped(by_comprehension, Local(replicas=()), "r1")
    assert (text, values) == ("for r in local.replicas", ())


def test_turn_of_a_loop_that_is_skipped_is_reported() -> None:
    """The condition that leads to `continue`, in the turn of the one that is meant, though a later turn gave a step."""
    text, values = stopped(by_continue, Local(), "r1")
    assert text == "if replica in local.isr" and "replica = r1" in values
    text, values = stopped(by_continue, Local(), "r2")
    assert "replica = r2" in values


def test_item_that_decides_an_all_is_reported() -> None:
    """The first one for which it is false."""
    text, values = stopped(by_all, Local())
    assert text == "if all(member in local.isr for member in local.replicas)" and "member = r3" in values


def test_condition_of_a_while_is_reported() -> None:
    """As that of an `if`."""
    assert stopped(by_while, Local()) == ("while local.elections > 0", ("local.elections = 0",))


def spent(what: str) -> Any:
    """Return why a controller elects nobody after it did as often as it may."""
    session = opened(what)
    while options := [one for one in present(session)["enabled"] if one["action"] == "ControllerElectLeader"]:
        session.take(index=options[0]["index"])
    return questions.why(session, "ControllerElectLeader")()["model"]


def test_why_not_tells_the_turn_of_one_where_others_are_possible() -> None:
    """The leader cannot be elected again, while the other replica can: the guard is shown with the leader's turn."""
    session = opened("replication/kip-320/actors")
    session.take(label="ControllerElectLeader(r2)")
    answer = questions.why(session, "ControllerElectLeader")()["model"]
    assert answer["enabled"] == ["ControllerElectLeader(r1)"]
    (one,) = answer["not"]
    assert one["instance"] == "ControllerElectLeader(r2)"
    assert "if elected := quorum.elect(q, replica), with" in one["why"] and "replica = r2" in one["why"]


def test_why_not_blames_the_spent_elections() -> None:
    """And no guard that a step past it would not have helped."""
    answer = spent("replication/kip-320/actors")
    assert [one["instance"] for one in answer["not"]] == ["ControllerElectLeader(r2)", "ControllerElectLeader(r1)"]
    for one in answer["not"]:
        assert "local.elections = 0" in one["why"] and "q.leader is None" not in one["why"]
