"""Functions of a view that are remembered by what they read, alone and several together."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from harness.memo.interning import SlotValues
from harness.memo.memo_group import ManyMemos
from harness.memo.read_memo import ReadMemo
from harness.memo.union_memo import UnionMemo
from harness.model import View


def test_a_function_is_asked_once_per_values_that_it_read() -> None:
    """What it read only for some values counts only for those."""
    of, calls = SlotValues(("a", "b", "c")), []

    def both(view: View) -> bool:
        calls.append(1)
        return bool(view["a"]) and bool(view["b"])

    memo = ReadMemo(of, both)
    states = [{"a": a, "b": b, "c": c} for a in (False, True) for b in (False, True) for c in (0, 1)]
    assert [memo.at(of.intern(state)).result for state in states] == [state["a"] and state["b"] for state in states]
    assert len(calls) == 3
    assert [memo.at(of.intern(state)).mask for state in (states[0], states[-1])] == [0b001, 0b011]


def test_what_depends_on_more_than_what_was_read_is_found_out() -> None:
    """A memory of such a function would answer for states that it was never asked about."""
    of, asked = SlotValues(("a", "b")), []

    def fickle(view: View) -> object:
        asked.append(1)
        return view["a" if len(asked) % 2 else "b"]

    memo = ReadMemo(of, fickle)
    memo.at(of.intern({"a": 0, "b": 0}))
    with pytest.raises(AssertionError, match="on nothing else"):
        memo.at(of.intern({"a": 1, "b": 0}))


def total(items: tuple[int, ...]) -> int:
    return sum(items)


def test_who_reads_what_is_made_of_a_slot_depends_on_that_alone() -> None:
    """Values of which a function makes the same are asked about once; the slot counts as read all the same."""
    of, calls = SlotValues(("a", "b")), []

    def check(view: View) -> str:
        calls.append(1)
        assert view.reads() == ()
        found = f"{view.derived('a', total)} {view['b']}"
        assert view.reads() == ("a", "b")
        return found

    memo = ReadMemo(of, check)
    states = [{"a": a, "b": b} for a in ((1, 2), (2, 1), (3,), (4,)) for b in (0, 1)]
    leaves = [memo.at(of.intern(state)) for state in states]
    assert [leaf.result for leaf in leaves] == [check(View(state)) for state in states]
    assert len(calls) == 4 + len(states)
    assert {leaf.mask for leaf in leaves} == {0b11} and {leaf.exact for leaf in leaves} == {0b110}
    of.forget_values()
    assert not of.derived_of


def test_function_that_makes_something_of_no_slot_is_not_remembered() -> None:
    """Who asks for what is no slot is asked again each time."""
    of, calls = SlotValues(("a",)), []

    def check(view: View) -> str:
        calls.append(1)
        try:
            return str(view.derived("z", total))
        except KeyError:
            return "none"

    memo = ReadMemo(of, check)
    state = of.intern({"a": 1})
    assert [memo.at(state).result, memo.at(state).result] == ["none", "none"] and len(calls) == 2


def test_union_memo_takes_what_is_made_of_a_slot_for_the_slot() -> None:
    """It is less exact, and never wrong."""
    of, calls = SlotValues(("a", "b")), []

    def both(view: View, number: int) -> int:
        calls.append(1)
        return view.derived("a", total) + number

    memo: UnionMemo[int] = UnionMemo(of, both, 100)
    ids = [of.intern({"a": a, "b": b}) for a in ((1, 2), (3,)) for b in (0, 1)]
    assert [memo.at(state, 1) for state in ids] == [4, 4, 4, 4] and len(calls) == 2
    assert memo.footprint == (0,)


def test_only_who_may_have_read_what_was_written_is_asked_again() -> None:
    """Also where a memo reads more after a state than it ever did before."""
    of, calls = SlotValues(("a", "b", "c")), []

    def reads(first: str, then: str) -> Callable[[View], int]:
        def function(view: View) -> int:
            calls.append(first)
            return int(view[first]) and 10 + int(view[then])

        return function

    many = ManyMemos([ReadMemo(of, reads("a", "b")), ReadMemo(of, reads("c", "a"))])

    def state(a: int, b: int, c: int) -> tuple[int, ...]:
        return of.intern({"a": a, "b": b, "c": c})

    leaves = many.at(state(0, 0, 0))
    calls.clear()
    leaves = many.after(leaves, state(0, 1, 0), 0b010)
    assert ([leaf.result for leaf in leaves], calls) == ([0, 0], [])
    leaves = many.after(leaves, state(1, 1, 0), 0b001)
    assert ([leaf.result for leaf in leaves], calls) == ([11, 0], ["a"])
    leaves = many.after(leaves, state(1, 2, 0), 0b010)
    assert ([leaf.result for leaf in leaves], calls) == ([12, 0], ["a", "a"])
    leaves = many.after(leaves, state(1, 2, 3), 0b100)
    assert ([leaf.result for leaf in leaves], calls) == ([12, 11], ["a", "a", "c"])
