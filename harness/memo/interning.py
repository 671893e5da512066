"""The values of a state's slots as small numbers, and states of such numbers looked at as values again.

Identity is by canonical text, so that `1`, `1.0` and `True` stay apart. Numbers are local to one table of one process.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from harness.model import State, Value, View, canonical_text

BYTES_PER_CHARACTER = 4
"""A canonical text and the value that it stands for; values share parts with each other."""
BYTES_PER_VALUE = 400
"""What else is kept for a value, on CPython 3.11 and rounded up."""

Ids = tuple[int, ...]
"""A state: the id of each slot's value, in the order of the slots."""


class SlotValues:
    """The values that each slot has had, numbered from 0 in the order in which they were met."""

    def __init__(self, slots: Sequence[str]) -> None:
        self.slots: tuple[str, ...] = tuple(sorted(slots))
        self.index = {name: n for n, name in enumerate(self.slots)}
        self.values: list[list[Value]] = [[] for _ in self.slots]
        self.texts: list[list[str]] = [[] for _ in self.slots]
        self._ids: list[dict[str, int]] = [{} for _ in self.slots]
        self._equal: list[dict[tuple[type, Value], int]] = [{} for _ in self.slots]
        self.used = 0
        """An estimate of the bytes that everything here, and every memo over it, takes."""
        self.leaves = 0
        """Results that all memos over it hold."""

    def intern(self, state: State) -> Ids:
        """Return a state as ids."""
        return tuple(self.intern_value(slot, state[name]) for slot, name in enumerate(self.slots))

    def intern_value(self, slot: int, value: Value) -> int:
        """Return the id of a value in a slot."""
        text = canonical_text(value)
        ids = self._ids[slot]
        found = ids.get(text)
        if found is None:
            self.used += BYTES_PER_VALUE + BYTES_PER_CHARACTER * len(text)
            found = ids[text] = len(self.values[slot])
            self.values[slot].append(value)
            self.texts[slot].append(text)
        return found

    def number(self, slot: int, value: Value) -> int:
        """Return the same, looked up by equality: faster, for values that are equal only where their texts are."""
        key = (value.__class__, value)
        found = self._equal[slot].get(key)
        if found is None:
            found = self._equal[slot][key] = self.intern_value(slot, value)
        return found

    def known(self, slot: int, text: str) -> int | None:
        """Return the id of the value in a slot that has this canonical text, if there is one."""
        return self._ids[slot].get(text)

    def view(self, state: Ids) -> View:
        """Return a read-tracking view of a state."""
        return View(IdView(self, state))

    def forget_values(self) -> None:
        """Forget every value: ids that were given before mean nothing any more."""
        for kept in (*self.values, *self.texts):
            kept.clear()
        for ids, equal in zip(self._ids, self._equal, strict=True):
            ids.clear()
            equal.clear()
        self.used = 0


def written(state: Ids, writes: Iterable[tuple[int, int]]) -> Ids:
    """Return a state with other ids in some slots, given as pairs of place and id."""
    after = list(state)
    for slot, value in writes:
        after[slot] = value
    return tuple(after)


class IdView(Mapping[str, Value]):
    """A state of ids, looked at as a mapping of values."""

    __slots__ = ("_of", "_state")

    def __init__(self, of: SlotValues, state: Ids) -> None:
        self._of = of
        self._state = state

    def __getitem__(self, name: str) -> Value:
        slot = self._of.index[name]
        return self._of.values[slot][self._state[slot]]

    def __iter__(self) -> Iterator[str]:
        return iter(self._of.slots)

    def __len__(self) -> int:
        return len(self._of.slots)
