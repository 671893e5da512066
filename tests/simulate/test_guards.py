"""Guards: which conditions were evaluated and how they came out, seen by lines, exactly."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from harness.model import find_model
from harness.simulate.states.guards import NOT_PROTOCOL, Guards, guards_of, parse, trace


def signs(numbers: list[int]) -> Iterator[str]:
    for number in numbers:
        if number > 0:
            yield "positive"
        elif number < 0:
            yield "negative"


def first_even(numbers: list[int]) -> int | None:
    at = 0
    while at < len(numbers) and (
        numbers[at] % 2
    ):
        at += 1
    if at == len(numbers):
        return None
    return numbers[at]


def is_small(number: int) -> bool:
    if number is None:
        return False
    return (
        number >= 0
        and number < 10
    )


def taken(message: Any) -> str:
    match message:
        case int() if message > 5:
            return "large"
        case int():
            return "small"
    return "none"


def divides(one: int, other: int) -> str:
    try:
        if one / other > 1:
            return "more"
    except ZeroDivisionError:
        return "never"
    return "less"


def swallows(one: int) -> None:
    if one:
        raise ValueError(one)


def last_thing(one: int) -> None:
    if one:
        sorted([one])


def conditions_met(call: Callable[[], Any]) -> list[tuple[str, bool]]:
    """Return the guards that a call evaluates, in order, by their text."""
    return [(guard.text, outcome) for guard, outcome in trace(call)[1]]


def test_generator_tells_its_guards_each_time_that_it_is_resumed() -> None:
    """Each number is asked about in turn, `elif` too; a false condition at the loop's end is not forgotten."""
    positive, negative = "number > 0", "number < 0"
    result, found = trace(lambda: list(signs([1, -1, 0])))
    assert result == ["positive", "negative"]
    assert [(guard.text, outcome) for guard, outcome in found] == [
        (positive, True), (positive, False), (negative, True), (positive, False), (negative, False),
    ]
    assert [guard.line for guard, _ in found][:2] == [signs.__code__.co_firstlineno + 2] * 2
    assert {guard.file for guard, _ in found} == {"test_guards.py"}


def test_generator_that_two_calls_resume_is_seen_by_both() -> None:
    """What is left suspended by one traced call goes on under the next one."""
    going = signs([1, -1])
    assert conditions_met(lambda: next(going)) == [("number > 0", True)]
    assert conditions_met(lambda: next(going)) == [("number > 0", False), ("number < 0", True)]


LOOP, LAST, CASE = "at < len(numbers) and numbers[at] % 2", "number >= 0 and number < 10", "case int() if message > 5"


@pytest.mark.parametrize(("call", "met"), [
    (lambda: first_even([1, 3, 4]), [(LOOP, True), (LOOP, True), (LOOP, False), ("at == len(numbers)", False)]),
    (lambda: first_even([1]), [(LOOP, True), (LOOP, False), ("at == len(numbers)", True)]),
    (lambda: [is_small(n) for n in (3, 12, -1, None)],  # type: ignore[arg-type]
     [("number is None", False), (LAST, True), ("number is None", False), (LAST, False), ("number is None", False),
      (LAST, False), ("number is None", True)]),
    (lambda: [taken(6), taken(1), taken("")], [(CASE, True), (CASE, False), (CASE, False)]),
    (lambda: divides(1, 0), []),
    (lambda: divides(1, 2), [("one / other > 1", False)]),
    (lambda: last_thing(0), [("one", False)]),
    (lambda: last_thing(1), [("one", True)]),
], ids=["loop", "loop-to-its-end", "returned", "case", "raises", "raises-not", "nothing-follows", "body-at-the-end"])
def test_conditions_come_out_as_they_were_evaluated(call: Callable[[], Any], met: list[tuple[str, bool]]) -> None:
    """A loop condition over several lines is one guard: true once per round, false once at the end. What a boolean
    function returns is a guard, a constant is none. A case with a condition is false where another pattern comes next,
    and a condition at the end of a function where nothing follows. A condition that raises has no outcome."""
    assert conditions_met(call) == met


def test_condition_that_leaves_its_function_has_no_outcome() -> None:
    """One that only caused a later exception has."""
    with pytest.raises(TypeError):
        trace(lambda: first_even([1, "?"]))  # type: ignore[list-item]
    seen = Guards()
    with pytest.raises(ValueError, match="3"):
        seen.watch(lambda: swallows(3))
    assert [(guard.text, outcome) for guard, outcome in seen.seen] == [("one", True)]


def test_trace_function_that_was_there_is_put_back() -> None:
    """A debugger or a coverage tool goes on, also where the call fails."""
    lines = []

    def other(frame: Any, event: str, value: Any) -> Any:
        if frame.f_code is last_thing.__code__:
            lines.append(event)
        return other

    before = sys.gettrace()
    sys.settrace(other)
    try:
        trace(lambda: last_thing(0))
        assert sys.gettrace() is other
        with pytest.raises(ValueError, match="1"):
            trace(lambda: swallows(1))
        assert sys.gettrace() is other
        last_thing(0)
    finally:
        sys.settrace(before)
    assert lines == ["call", "line", "return"]


def test_collector_lists_what_was_seen_one_way_only() -> None:
    """A guard that came out both ways is off the list; one that was never evaluated is not on it."""
    seen = Guards()
    assert seen.watch(lambda: first_even([2])) == 2
    one_way = [(guard.text, outcome) for guard, outcome in seen.one_way()]
    assert one_way == [("at < len(numbers) and numbers[at] % 2", False), ("at == len(numbers)", False)]
    seen.watch(lambda: first_even([1]))
    assert seen.one_way() == ()


def test_bodies_on_the_line_of_their_condition_are_no_guards() -> None:
    """They cannot be distinguished by lines, so nothing is claimed about them, nor about what is in no function."""
    text = "if TOP:\n  x = 1\ndef f(x):\n  if x: return 1\n  if not x:\n    return 2\n  return 3\n"
    found = parse(text, "f.py")
    assert [guard.text for guard in found.guards()] == ["not x"]


def test_protocol_files_have_guards_and_the_harness_has_none() -> None:
    """A step of the protocol goes through the harness, whose own conditions are not reported."""
    model = find_model("kafka/4.0").make()
    state = model.initial_states()[0]
    model.choices(state)  # who hashes the first id loads a codec, whose import is not what is traced
    _, found = trace(lambda: model.choices(state))
    files = {guard.file for guard, _ in found}
    assert files and all(file.startswith(("kafka_proto/broker/", "kafka_proto/clients/")) for file in files)
    assert {guard for guard, _ in found} <= set(guards_of({guard.module for guard, _ in found}))
    assert "harness" in NOT_PROTOCOL and guards_of(["harness.model.model", "attr", "not.loaded"]) == ()


class Finalized:
    """Garbage that only the collector finds, with a condition in its finalizer."""

    def __init__(self) -> None:
        self.itself = self

    def __del__(self) -> None:
        if self.itself is not None:
            self.itself = self


def allocate() -> int:
    """Make so much that the collector would run."""
    return len([[n] for n in range(2 * gc.get_threshold()[0])])


def test_a_finalizer_that_the_collector_runs_is_no_guard() -> None:
    """Whose garbage is found during a call depends on what ran before, and coverage must not."""
    often, *later = gc.get_threshold()
    was_on = gc.isenabled()
    gc.set_threshold(10_000, *later)
    gc.enable()
    try:
        Finalized()
        assert trace(allocate)[1] == []
        assert gc.isenabled()
    finally:
        gc.set_threshold(often, *later)
        if not was_on:
            gc.disable()
