"""The values of a state's slots as small numbers, and states of such numbers looked at as values again.

Identity is by canonical text, so that `1`, `1.0` and `True` stay apart; of values that only grow, by object. Numbers
are local to one table of one process.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from harness.model import State, Value, View, canonical_text
from harness.model.improper import blamed

BYTES_PER_CHARACTER = 4
"""A canonical text and the value that it stands for; values share parts with each other."""
BYTES_PER_VALUE = 400
"""What else is kept for a value, on CPython 3.11 and rounded up."""

T = TypeVar("T")
Ids = tuple[int, ...]
"""A state: the id of each slot's value, in the order of the slots."""


@contextmanager
def long_lived() -> Iterator[None]:
    """Keep the garbage collector from walking through tables again and again; they collect when they start over."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.freeze()
            gc.unfreeze()  # all of it is old now: the next look at new objects need not walk through it
            gc.enable()


class Derived:
    """What a function makes of the values of a slot, numbered from 0 like these."""

    __slots__ = ("_last", "_numbers", "_of", "bit", "function", "ids", "slot", "values")

    def __init__(self, of: SlotValues, slot: int, function: Callable[[Value], Value]) -> None:
        self.slot = slot
        self.bit = 1 << len(of.slots) + sum(map(len, of.derived_of.values()))
        """What stands for it in a mask, beside the bits of the slots."""
        self.values: list[Value] = []
        self._last: tuple[Value, int] = (None, -1)
        self._of = of
        self.function = function
        self.ids: dict[int, int] = {}
        """Of each value of the slot that was met, by id: the number of what the function makes of it."""
        self._numbers: dict[str, int] = {}

    def number(self, value: int) -> int:
        """Return the number of what the function makes of a value of the slot, given by its id."""
        found = self.ids.get(value)
        if found is None:
            made = self.function(self._of.values[self.slot][value])
            if self._last[1] < 0 or made is not self._last[0]:  # most changes leave it alone
                self._last = (made, self._make(made))
            found = self.ids[value] = self._last[1]
        return found

    def _make(self, made: Value) -> int:
        try:
            text = canonical_text(made)
        except TypeError as error:
            of = getattr(self.function, "__name__", "a function")
            raise blamed(error, [(f"what {of} makes of {self._of.slots[self.slot]}", made)]) from None
        found = self._numbers.get(text)
        if found is None:
            self._of.used += BYTES_PER_VALUE + BYTES_PER_CHARACTER * len(text)
            found = self._numbers[text] = len(self.values)
            self.values.append(made)
        return found


class SlotValues:
    """The values that each slot has had, numbered from 0 in the order in which they were met."""

    def __init__(self, slots: Sequence[str], tells: bool = False) -> None:
        self.slots: tuple[str, ...] = tuple(sorted(slots))
        self.tells = tells
        """Whether values only grow, as those of `Model.tells`: then each object is another value, and has no text."""
        self.index = {name: n for n, name in enumerate(self.slots)}
        self.values: list[list[Value]] = [[] for _ in self.slots]
        self.texts: list[list[str]] = [[] for _ in self.slots]
        self._ids: list[dict[str, int]] = [{} for _ in self.slots]
        self._objects: list[dict[int, int]] = [{} for _ in self.slots]
        self._equal: list[dict[tuple[type, Value], int]] = [{} for _ in self.slots]
        self.derived_of: dict[int, dict[Callable[[Any], Any], Derived]] = {}
        """What is read of the values of a slot, by function."""
        self.used = 0
        """An estimate of the bytes that everything here, and every memo over it, takes."""
        self.leaves = 0
        """Results that all memos over it hold."""

    def intern(self, state: State) -> Ids:
        """Return a state as ids."""
        return tuple(self.intern_value(slot, state[name]) for slot, name in enumerate(self.slots))

    def intern_value(self, slot: int, value: Value) -> int:
        """Return the id of a value in a slot. Raises NotAValue."""
        if self.tells:
            return self._number_of(slot, value)
        try:
            text = canonical_text(value)
        except TypeError as error:
            raise blamed(error, [(self.slots[slot], value)]) from None
        ids = self._ids[slot]
        found = ids.get(text)
        if found is None:
            self.used += BYTES_PER_VALUE + BYTES_PER_CHARACTER * len(text)
            found = ids[text] = len(self.values[slot])
            self.values[slot].append(value)
            self.texts[slot].append(text)
        return found

    def _number_of(self, slot: int, value: Value) -> int:
        """Return the id of an object in a slot, which is kept as long as its id."""
        found = self._objects[slot].get(id(value))
        if found is None:
            self.used += BYTES_PER_VALUE
            found = self._objects[slot][id(value)] = len(self.values[slot])
            self.values[slot].append(value)
        return found

    def number(self, slot: int, value: Value) -> int:
        """Return the same, looked up by equality: faster, for values that are equal only where their texts are."""
        key = (value.__class__, value)
        try:
            found = self._equal[slot].get(key)
        except TypeError as error:
            raise blamed(error, [(self.slots[slot], value)]) from None
        if found is None:
            found = self._equal[slot][key] = self.intern_value(slot, value)
        return found

    def known(self, slot: int, text: str) -> int | None:
        """Return the id of the value in a slot that has this canonical text, if there is one."""
        return self._ids[slot].get(text)

    def derived(self, slot: int, function: Callable[[Any], Any]) -> Derived:
        """Return what a function makes of the values of a slot."""
        known = self.derived_of.setdefault(slot, {})
        found = known.get(function)
        if found is None:
            found = known[function] = Derived(self, slot, function)
        return found

    def view(self, state: Ids) -> SlotView:
        """Return a read-tracking view of a state."""
        return SlotView(self, state)

    def forget_values(self) -> None:
        """Forget every value: ids that were given before mean nothing any more."""
        for kept in (*self.values, *self.texts):
            kept.clear()
        for ids, equal, objects in zip(self._ids, self._equal, self._objects, strict=True):
            ids.clear()
            equal.clear()
            objects.clear()
        self.derived_of.clear()
        self.used = 0


def written(state: Ids, writes: Iterable[tuple[int, int]]) -> Ids:
    """Return a state with other ids in some slots, given as pairs of place and id."""
    after = list(state)
    for slot, value in writes:
        after[slot] = value
    return tuple(after)


def differences(one: Ids, other: Ids) -> frozenset[int]:
    """Return the slots in which two states differ."""
    return frozenset([slot for slot, (a, b) in enumerate(zip(one, other, strict=True)) if a != b])


class SlotView(View):
    """A read-tracking view of a state of ids."""

    __slots__ = ("_index", "_of", "beyond", "numbers", "state")

    def __init__(self, of: SlotValues, state: Ids) -> None:
        self._of = of
        self._index = of.index
        self.state = state
        self.numbers: dict[int | Derived, None] = {}
        """The slots that were read, and what was read of slots, in the order of their first reading."""
        self.beyond = False
        """Whether something that is no slot was asked for."""

    def __getitem__(self, name: str) -> Value:
        try:
            slot = self._index[name]
        except KeyError:
            self.beyond = True
            raise
        self.numbers[slot] = None
        return self._of.values[slot][self.state[slot]]

    def derived(self, name: str, function: Callable[[Value], T]) -> T:
        if name not in self._index:
            return function(self[name])
        found = self._of.derived(self._index[name], function)
        number = found.number(self.state[found.slot])
        self.numbers[found] = None
        return found.values[number]  # type: ignore[no-any-return]

    def slots_read(self) -> list[int]:
        """Return the slots that were read, or something of them, each once, in the order of their first reading."""
        return list(dict.fromkeys([read if isinstance(read, int) else read.slot for read in self.numbers]))

    def reads(self) -> tuple[str, ...]:
        return tuple([self._of.slots[slot] for slot in self.slots_read()])


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
