"""Functions of a view that are remembered by what they read."""

from __future__ import annotations

import pytest

from harness.memo.interning import SlotValues
from harness.memo.read_memo import ReadMemo
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
