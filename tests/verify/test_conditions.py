"""Where a protocol's function stops: conditions of loops and comprehensions, in the turn that was asked about."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import attrs
import pytest
from support.demo.sessions import opened

from harness.demo.session import questions
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


LOOP, MEMBER = "for replica in local.replicas if local.elections else ()", "if replica in local.isr"


@pytest.mark.parametrize(("function", "local", "args", "text", "values"), [
    (by_budget, Local(), ("r3",), LOOP, ["local.elections = 0", "local.replicas = <r1,r2,r3>"]),
    (by_budget, Local(elections=1, isr=("r2",)), ("r1",), MEMBER, ["replica = r1", ...]),
    (by_budget, Local(leader=None, isr=("r2",)), ("r1",), "if local.leader is None and replica in local.isr",
     ["replica = r1", ...]),
    (by_comprehension, Local(isr=("r1",)), ("r1",), "if r != local.leader", ["r = r1"]),
    (by_comprehension, Local(isr=("r1",)), ("r3",), "if r in local.isr", ["r = r3"]),
    (by_comprehension, Local(replicas=()), ("r1",), "for r in local.replicas", []),
    (by_continue, Local(), ("r1",), MEMBER, ["replica = r1", ...]),
    (by_continue, Local(), ("r2",), MEMBER, ["replica = r2", ...]),
    (by_all, Local(), (), "if all(member in local.isr for member in local.replicas)", ["member = r3", ...]),
    (by_while, Local(), (), "while local.elections > 0", ["local.elections = 0"]),
])
def test_condition_at_which_a_function_stops_is_told_for_the_turn_that_is_meant(
    function: Callable[[Local], Iterable[Step]], local: Local, args: tuple[str, ...], text: str, values: list[Any]
) -> None:
    """A spent budget is blamed where the loop has nothing to go through, else the guard inside, in the turn of that
    replica. Of a comprehension it is whichever condition is false for the item, or that it goes through nothing; the
    condition before a `continue`, though a later turn gave a step; of an `all` the first item for which it is false; a
    `while` is as an `if`. Where a row ends with `...` there are other values, too."""
    found, known = stopped(function, local, *args)
    wanted = [value for value in values if value is not ...]
    assert found == text and (set(wanted) <= set(known) if ... in values else tuple(wanted) == known)


def test_why_not_tells_the_turn_of_one_where_others_are_possible() -> None:
    """The leader cannot be elected again, while the other replica can: the guard is shown with the leader's turn."""
    session = opened("replication/kip-320/actors")
    session.take(label="ControllerElectLeader(r2)")
    answer = questions.why(session, "ControllerElectLeader")()["model"]
    assert answer["enabled"] == ["ControllerElectLeader(r1)"]
    (one,) = answer["not"]
    assert one["instance"] == "ControllerElectLeader(r2)"
    assert "if elected := quorum.elect(q, replica), with" in one["why"] and "replica = r2" in one["why"]
