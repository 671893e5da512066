"""Functions of a view that are remembered by the values of the slots that they read, in the order in which they do.

`ReadTree` is the memory. Its users look up the ids themselves, as states differ: a tuple of ids here, one packed
integer in `explore/packed`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from harness.memo.interning import Derived, Ids, SlotValues
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


class DerivedBranch(ReadBranch):
    """An inner node at which not all of a slot's value is read, but what a function makes of it."""

    __slots__ = ()


class ReadTree:
    """Results by the ids of what was read: a branch per reading, in the order of reading, and results as leaves."""

    __slots__ = ("root",)

    def __init__(self) -> None:
        self.root: Any = None
        """None if nothing is remembered yet, a result if nothing is read."""

    def insert(self, path: Sequence[Any], ids: Sequence[int], leaf: Any) -> int:
        """Remember a leaf by the ids of what was read on the way to it; return how many branches that took."""
        if not path:
            self.root = leaf
            return 0
        new, at, node = 0, 0, self.root
        children: dict[int, Any] | None = None
        for read, number in zip(path, ids, strict=True):
            if node is None:
                node = DerivedBranch(read) if read.__class__ is Derived else ReadBranch(read)
                if children is None:
                    self.root = node
                else:
                    children[at] = node
                    new += 1
            elif not isinstance(node, ReadBranch) or node.read != read:
                raise AssertionError(IMPURE)
            children, at = node.children, number
            node = children.get(number)
        assert children is not None
        children[at] = leaf
        return new


class Leaf:
    """A memo's result, and the slots (as a bit mask) that it depends on."""

    __slots__ = ("exact", "mask", "result")

    def __init__(self, result: Any, mask: int, exact: int) -> None:
        self.result = result
        self.mask = mask
        self.exact = exact
        """The same, but with the bit of what was made of a slot's value where only that was read."""


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
        while True:
            if node.__class__ is ReadBranch:
                node = node.children.get(state[node.read])
            elif node.__class__ is DerivedBranch:
                read = node.read
                value = state[read.slot]
                number = read.ids.get(value)
                node = node.children.get(read.number(value) if number is None else number)
            elif node is None:
                return self._miss(state)
            else:
                return node  # type: ignore[no-any-return]

    def _miss(self, state: Ids) -> Leaf:
        of = self._of
        view = of.view(state)
        result = self._compute(view)
        if view.beyond:  # something that is no slot was asked for: nothing to remember it by
            everything = (1 << len(of.slots)) - 1
            return Leaf(result, everything, everything)
        path = list(view.numbers)
        mask = exact = 0
        for read in path:
            mask |= 1 << (read if isinstance(read, int) else read.slot)
            exact |= 1 << read if isinstance(read, int) else read.bit
        leaf = Leaf(result, mask, exact)
        of.leaves += 1
        ids = [state[read] if isinstance(read, int) else read.number(state[read.slot]) for read in path]
        of.used += BYTES_PER_LEAF + BYTES_PER_BRANCH * self.insert(path, ids, leaf)
        return leaf
