"""What states of actors stand for in their spec, remembered by the slots that the mapping reads and by the ghost.

A ghost is what a mapping remembers of a run (see `harness.model.refinement`); here each has a number.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from harness.memo.interning import SlotValues
from harness.memo.union_memo import UnionMemo
from harness.model import Refinement, Value, View

T = TypeVar("T")


class Abstraction(UnionMemo[tuple[T, int]]):
    """The mapping of a refinement: what is kept of the spec's state that a state stands for, and the ghost after it.

    `keep` turns the slots that the mapping gives into what is kept. Whatever the mapping or `keep` raises is passed on
    and not remembered.
    """

    def __init__(
        self, of: SlotValues, refinement: Refinement, keep: Callable[[Mapping[str, Value]], T], most: int
    ) -> None:
        self._map = refinement.abstract
        self._first = refinement.ghost
        self._keep = keep
        self.ghosts: list[Value] = []
        self._ghost_ids: dict[tuple[type, Value], int] = {}
        super().__init__(of, self._kept, most)

    def first_ghost(self) -> int:
        """Return the ghost before the first state."""
        return self._ghost(self._first)

    def mapped(self, view: View, ghost: int) -> tuple[Mapping[str, Value], Value]:
        """Ask the mapping itself: the spec's slots, and the ghost after them."""
        return self._map(view, self.ghosts[ghost])

    def forget_ghosts(self) -> None:
        """Forget every result and every ghost: numbers of ghosts that were given before mean nothing any more."""
        self.clear()
        self.ghosts.clear()
        self._ghost_ids.clear()

    def _kept(self, view: View, ghost: int) -> tuple[T, int]:
        slots, after = self.mapped(view, ghost)
        return self._keep(slots), self._ghost(after)

    def _ghost(self, value: Value) -> int:
        key = (value.__class__, value)
        found = self._ghost_ids.get(key)
        if found is None:
            found = self._ghost_ids[key] = len(self.ghosts)
            self.ghosts.append(value)
        return found
