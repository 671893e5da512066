"""Functions of a view that are remembered by the values of the slots that they read, in the order in which they do.

`ReadTree` is the memory. Who walks down it looks up the ids himself, as states differ: a tuple of ids here, one packed
integer in `explore/packed`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

from harness.memo.interning import Ids, IdView, SlotValues
from harness.model import View

BYTES_PER_LEAF, BYTES_PER_BRANCH = 250, 350
"""What is kept, on CPython 3.11 and rounded up."""
IMPURE = "a result must depend on the values that were read, and on nothing else"


class ReadBranch:
    """An inner node of a tree: what is read next (a slot's number, or a field), and where each of its ids leads."""

    __slots__ = ("children", "read")

    def __init__(self, read: Any) -> None:
        self.read = read
        self.children: dict[int, Any] = {}


class ReadTree:
    """Results by the ids of what was read: a branch per reading, in the order of reading, and results as leaves."""

    __slots__ = ("root",)

    def __init__(self) -> None:
        self.root: Any = None
        """None where nothing is remembered yet, a result where nothing is read."""

    def insert(self, path: Sequence[Any], ids: Sequence[int], leaf: Any) -> int:
        """Remember a leaf by the ids of what was read on the way to it; return how many branches that took."""
        if not path:
            self.root = leaf
            return 0
        if self.root is None:
            self.root = ReadBranch(path[0])
        node, new = self.root, 0
        for (read, following), number in zip(pairwise(path), ids, strict=False):
            if node.__class__ is not ReadBranch or node.read != read:
                raise AssertionError(IMPURE)
            children = node.children
            if (node := children.get(number)) is None:
                node = children[number] = ReadBranch(following)
                new += 1
        if node.__class__ is not ReadBranch or node.read != path[-1]:
            raise AssertionError(IMPURE)
        node.children[ids[-1]] = leaf
        return new


class Leaf:
    """A memo's result, and the slots (as a bit mask) that it depends on."""

    __slots__ = ("mask", "result")

    def __init__(self, result: Any, mask: int) -> None:
        self.result = result
        self.mask = mask


class ReadMemo(ReadTree):
    """Remembers a function of a view by the values of the slots that it read, in the order it read them."""

    __slots__ = ("_compute", "_of")

    def __init__(self, of: SlotValues, compute: Callable[[View], Any]) -> None:
        super().__init__()
        self._of = of
        self._compute = compute

    def at(self, state: Ids) -> Leaf:
        """Return the leaf for a state."""
        node = self.root
        while node.__class__ is ReadBranch:
            node = node.children.get(state[node.read])
        if node is None:
            node = self._miss(state)
        return node  # type: ignore[no-any-return]

    def _miss(self, state: Ids) -> Leaf:
        of, mask = self._of, 0
        index, view = of.index, View(IdView(of, state))
        result = self._compute(view)
        try:
            path = [index[name] for name in view.reads()]
        except KeyError:  # something that is no slot was asked for: nothing to remember it by
            return Leaf(result, (1 << len(index)) - 1)
        for slot in path:
            mask |= 1 << slot
        leaf = Leaf(result, mask)
        of.leaves += 1
        of.used += BYTES_PER_LEAF + BYTES_PER_BRANCH * self.insert(path, [state[slot] for slot in path], leaf)
        return leaf
