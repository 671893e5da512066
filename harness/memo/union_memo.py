"""A function of a view and a number, remembered by the values of all slots that any call of it has read so far.

One look-up however much is read: for functions that nearly always read the same slots, as the mapping of a refinement
does. A call that reads a slot that none has read before makes the memo start over with one slot more.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import itemgetter
from typing import Generic, TypeVar

from harness.memo.interning import Ids, SlotValues
from harness.model import View

T = TypeVar("T")


class UnionMemo(Generic[T]):
    """Remembers at most `most` results; beyond, it starts over."""

    __slots__ = ("_compute", "_key", "_known", "_most", "_of", "_read")

    def __init__(self, of: SlotValues, compute: Callable[[View, int], T], most: int) -> None:
        self._of = of
        self._compute = compute
        self._most = most
        self._read: dict[int, None] = {}
        self._key: Callable[[Ids], object] = lambda state: ()
        self._known: dict[object, T] = {}

    def at(self, state: Ids, number: int = 0) -> T:
        """Return the result for a state and a number; what the function raises is not remembered."""
        key = (number, self._key(state))
        found = self._known.get(key)
        if found is None:
            found = self._miss(state, number)
        return found

    def key(self, state: Ids, number: int = 0) -> object:
        """Return what tells states and numbers apart, as far as the function has read by now."""
        return (number, self._key(state))

    @property
    def footprint(self) -> tuple[int, ...]:
        """The slots that were read so far, in the order of their first reading."""
        return tuple(self._read)

    def clear(self) -> None:
        """Forget every result, but not which slots are read."""
        self._known.clear()

    def _miss(self, state: Ids, number: int) -> T:
        view = self._of.view(state)
        result = self._compute(view, number)
        new = [slot for slot in view.slots_read() if slot not in self._read]
        if new:
            self._read.update(dict.fromkeys(new))
            self._key = itemgetter(*self._read)
            self._known.clear()
        elif len(self._known) >= self._most:
            self._known.clear()
        self._known[number, self._key(state)] = result
        return result
