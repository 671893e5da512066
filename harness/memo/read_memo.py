"""Functions of a view that are remembered by the values of the slots that they read, in the order in which they do."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

from harness.memo.interning import Ids, SlotValues
from harness.model import View

BYTES_PER_LEAF, BYTES_PER_BRANCH = 250, 350
"""What is kept, on CPython 3.11 and rounded up."""


class Branch:
    """A memo's inner node: which slot is read next, and where each of its values leads."""

    __slots__ = ("children", "slot")

    def __init__(self, slot: int) -> None:
        self.slot = slot
        self.children: dict[int, Any] = {}


class Leaf:
    """A memo's result, and the slots (as a bit mask) that it depends on."""

    __slots__ = ("mask", "result")

    def __init__(self, result: Any, mask: int) -> None:
        self.result = result
        self.mask = mask


class ReadMemo:
    """Remembers a function of a view by the values of the slots that it read, in the order it read them."""

    __slots__ = ("_compute", "_of", "_root")

    def __init__(self, of: SlotValues, compute: Callable[[View], Any]) -> None:
        self._of = of
        self._compute = compute
        self._root: Any = None

    def at(self, state: Ids) -> Leaf:
        """Return the leaf for a state."""
        node = self._root
        while node.__class__ is Branch:
            node = node.children.get(state[node.slot])
        if node is None:
            node = self._miss(state)
        return node  # type: ignore[no-any-return]

    def _miss(self, state: Ids) -> Leaf:
        of = self._of
        view = of.view(state)
        result = self._compute(view)
        names = view.reads()
        path = [of.index[name] for name in names if name in of.index]
        mask = 0
        for slot in path:
            mask |= 1 << slot
        leaf = Leaf(result, mask)
        if len(path) < len(names):  # something that is no slot was asked for: there is nothing to remember it by
            return leaf
        of.leaves += 1
        of.used += BYTES_PER_LEAF
        if not path:
            self._root = leaf
            return leaf
        if self._root is None:
            self._root = Branch(path[0])
        node = self._root
        for slot, following in pairwise(path):
            known = node.children.get(state[slot])
            if known is None:
                known = node.children[state[slot]] = Branch(following)
                of.used += BYTES_PER_BRANCH
            node = known
        node.children[state[path[-1]]] = leaf
        return leaf
