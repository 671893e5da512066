"""Linearizability of calls: Wing and Gong's search against all orders one by one, and what it says."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model import Answered, Call, Called, Calls, FrozenMap, Operation, Value, calls_of, linearize

READ = Operation("Read")
CLIENTS = ("c1", "c2", "c3")


def noted(*events: Called | Answered) -> Calls:
    """Return the calls after some events, one step each, as they are noted whatever the messages are."""
    variable, value = calls_of(lambda message: None, lambda message: None), FrozenMap[str, Any]()
    for event in events:
        value = variable.after(value, (event,))
    return value


def write(value: str) -> Operation:
    return Operation("Write", value)


def register(value: Value, operation: Operation) -> tuple[Value, Value]:
    """A register that answers a write with nothing."""
    return (operation.argument, None) if operation.name == "Write" else (value, value)


@st.composite
def histories(draw: st.DrawFn) -> list[Called | Answered]:
    """Histories of two or three clients with up to six calls, some not answered, with any answers."""
    events: list[Called | Answered] = []
    under_way: dict[str, Operation] = {}
    calls = 0
    for client in draw(st.lists(st.sampled_from(CLIENTS), max_size=12)):
        if client in under_way:
            operation = under_way.pop(client)
            answer = None if operation.name == "Write" else draw(st.sampled_from((None, "A", "B")))
            events.append(Answered(client, answer))
        elif calls < 6:
            calls += 1
            operation = under_way[client] = draw(st.sampled_from((READ, write("A"), write("B"))))
            events.append(Called(client, operation))
    return events


def by_all_orders(events: list[Called | Answered]) -> bool:
    """Say whether some order of the answered calls and some of the others explains the answers, by trying them all."""
    begin: list[tuple[int, Called, int, Answered | None]] = []
    for n, event in enumerate(events):
        if isinstance(event, Called):
            ends = ((at, e) for at, e in enumerate(events) if at > n and e.client == event.client)
            end = next(((at, e) for at, e in ends if isinstance(e, Answered)), (len(events), None))
            begin.append((n, event, *end))  # type: ignore[arg-type]
    answered = [call for call in begin if call[3] is not None]
    pending = [call for call in begin if call[3] is None]
    for mask in range(1 << len(pending)):
        chosen = [*answered, *(call for n, call in enumerate(pending) if mask >> n & 1)]
        for order in permutations(chosen):
            if any(later[2] < earlier[0] for n, earlier in enumerate(order) for later in order[n + 1 :]):
                continue
            value: Value = None
            for _, called, _, answer in order:
                value, expected = register(value, called.operation)
                if answer is not None and answer.answer != expected:
                    break
            else:
                return True
    return False


@given(histories())
def test_search_says_what_trying_all_orders_says(events: list[Called | Answered]) -> None:
    """On any small history; the order that it returns explains every answer and respects time."""
    calls = noted(*events)
    found = linearize(calls, None, register)
    assert (found.reason is None) is by_all_orders(events)
    value: Value = None
    taken: set[tuple[str, int]] = set()
    for client, call in found.order:
        at = next(n for n, mine in enumerate(calls[client]) if mine is call)
        before = [*((client, n) for n in range(at)), *((c, n) for c, most in call.after.items() for n in range(most))]
        assert {(c, n) for c, n in before if calls[c][n].answer} <= taken
        value, answer = register(value, call.operation)
        assert call.answer in ((), (answer,))
        taken.add((client, at))
    if found.reason is None:
        assert {(c, n) for c, mine in calls.items() for n, call in enumerate(mine) if call.answer} <= taken


def test_reason_names_the_order_that_gets_furthest() -> None:
    """A stale read: what went before it, what it answered, and what it should have answered."""
    events = (Called("c1", write("A")), Answered("c1", None), Called("c2", write("B")), Answered("c2", None))
    stale = (*events, Called("c1", READ), Answered("c1", "A"))
    assert linearize(noted(*stale), None, register).reason == (
        "no order of the calls explains all 3 answers; the one that gets furthest ends where after "
        "Write(A) of c1, Write(B) of c2, Read() of c1 was answered A, not B"
    )
    fresh = (*events, Called("c1", READ), Answered("c1", "B"))
    found = linearize(noted(*fresh), None, register)
    assert found.reason is None
    assert [f"{call.operation} of {client}" for client, call in found.order] == [
        "Write(A) of c1", "Write(B) of c2", "Read() of c1",
    ]


def test_call_without_an_answer_may_have_had_its_effect_or_none() -> None:
    """A write that nobody confirmed is read by one, and not by another one before."""
    events = (Called("c1", write("A")), Called("c2", READ), Answered("c2", None), Called("c2", READ))
    assert linearize(noted(*events, Answered("c2", "A")), None, register).reason is None
    assert linearize(noted(*events, Answered("c2", None)), None, register).reason is None
    assert linearize(noted(*events, Answered("c2", "B")), None, register).reason is not None


@pytest.mark.parametrize("late", [Answered("c1", "A", 1), Answered("c1", "A", 3), Answered("c3", "A")])
def test_answer_to_no_open_call_says_nothing(late: Answered) -> None:
    """One that was answered before, one that was never made, and a client that made none."""
    events = (Called("c1", READ, 1), Answered("c1", None, 1), Called("c1", READ, 2))
    assert noted(*events, late) == noted(*events)
    assert noted(*events)["c1"] == (Call(READ, None, FrozenMap(), (None,)), Call(READ, 2, FrozenMap()))
