"""Several memos that are asked of every state: of the next state only those that may have read what was written."""

from __future__ import annotations

from collections.abc import Sequence

from harness.memo.interning import Ids
from harness.memo.read_memo import Leaf, ReadMemo


class ManyMemos:
    """Memos in an order, and what each of them has ever read, as a bit mask."""

    __slots__ = ("_read", "_touched", "memos")

    def __init__(self, memos: Sequence[ReadMemo]) -> None:
        self.memos = list(memos)
        self._read = [0] * len(self.memos)
        self._touched: dict[int, list[int]] = {}
        """The places of those that may have read some of what is in a bit mask."""

    def at(self, state: Ids) -> list[Leaf]:
        """Return what each memo says of a state."""
        leaves = [memo.at(state) for memo in self.memos]
        for n, leaf in enumerate(leaves):
            self._note(n, leaf)
        return leaves

    def after(self, before: list[Leaf], state: Ids, written: int) -> list[Leaf]:
        """Return the same, given what they say of a state that differs from this one in a bit mask only."""
        touched = self._touched.get(written)
        if touched is None:
            touched = self._touched[written] = [n for n, read in enumerate(self._read) if read & written]
        leaves = before.copy()
        for n in touched:
            if leaves[n].exact & written:
                leaf = leaves[n] = self.memos[n].at(state)
                self._note(n, leaf)
        return leaves

    def _note(self, n: int, leaf: Leaf) -> None:
        if leaf.exact & ~self._read[n]:
            self._read[n] |= leaf.exact
            self._touched.clear()
