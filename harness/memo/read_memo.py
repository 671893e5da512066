"""Functions of a view that are remembered by the values of the slots that they read, in the order in which they do."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import Any, Protocol

from harness.model.values import Value
from harness.model.view import View

BYTES_PER_LEAF, BYTES_PER_BRANCH = 250, 350
"""What is kept, on CPython 3.11 and rounded up."""


class Numbered(Protocol):
    """Whoever numbers the values of a model's slots: a state is a tuple of such numbers, one per slot."""

    slots: tuple[str, ...]
    index: dict[str, int]
    """The place of each slot in a state."""
    values: list[list[Value]]
    """Of each slot what its numbers stand for."""
    leaves: int
    """How many results are remembered."""
    used: int
    """An estimate of the bytes that all of it takes."""


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


class Memo:
    """Remembers a function of a view by the values of the slots that it read, in the order it read them."""

    __slots__ = ("_compute", "_root", "_tables")

    def __init__(self, tables: Numbered, compute: Callable[[View], Any]) -> None:
        self._tables = tables
        self._compute = compute
        self._root: Any = None

    def at(self, state: tuple[int, ...]) -> Leaf:
        """Return the leaf for a state given as slot value ids."""
        node = self._root
        while node.__class__ is Branch:
            node = node.children.get(state[node.slot])
        if node is None:
            node = self._miss(state)
        return node  # type: ignore[no-any-return]

    def _miss(self, state: tuple[int, ...]) -> Leaf:
        tables = self._tables
        view = View(IdView(tables, state))
        result = self._compute(view)
        path = [tables.index[name] for name in view.reads()]
        mask = 0
        for slot in path:
            mask |= 1 << slot
        leaf = Leaf(result, mask)
        tables.leaves += 1
        tables.used += BYTES_PER_LEAF
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
                tables.used += BYTES_PER_BRANCH
            node = known
        node.children[state[path[-1]]] = leaf
        return leaf


class IdView(Mapping[str, Value]):
    """A state of ids, looked at as a mapping of values."""

    __slots__ = ("_state", "_tables")

    def __init__(self, tables: Numbered, state: tuple[int, ...]) -> None:
        self._tables = tables
        self._state = state

    def __getitem__(self, name: str) -> Value:
        slot = self._tables.index[name]
        return self._tables.values[slot][self._state[slot]]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tables.slots)

    def __len__(self) -> int:
        return len(self._tables.slots)
