"""Several memos that are asked of one state after the other."""

from __future__ import annotations

from collections.abc import Callable

from harness.memo.interning import SlotValues
from harness.memo.memo_group import ManyMemos
from harness.memo.read_memo import ReadMemo
from harness.model import View


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
