"""A sequence that grows at its end: appending to a long one copies little.

A tuple is copied whole by each append. Here full chunks are shared between the old and the new sequence, so that an
append copies at most a chunk, and once per chunk the list of chunks: some hundred words an append at a million items.
Equal items make equal sequences, because the chunks are a function of them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from operator import is_
from typing import Any, Generic, TypeVar

import attrs

T = TypeVar("T")
WIDTH = 128


@attrs.frozen
class Chunks(Generic[T]):
    """Items in full chunks of `WIDTH`, and the rest in a shorter one."""

    full: tuple[tuple[T, ...], ...] = ()
    rest: tuple[T, ...] = ()

    def __len__(self) -> int:
        return len(self.full) * WIDTH + len(self.rest)

    def __iter__(self) -> Iterator[T]:
        return chain(chain.from_iterable(self.full), self.rest)

    def __getitem__(self, index: int) -> T:
        """Return the item at an index that is not negative."""
        chunk, place = divmod(index, WIDTH)
        return self.rest[place] if chunk == len(self.full) else self.full[chunk][place]

    def add(self, item: T) -> Chunks[T]:
        """Return this sequence with an item at its end."""
        rest = (*self.rest, item)
        return Chunks(self.full, rest) if len(rest) < WIDTH else Chunks((*self.full, rest), ())

    def first_after(self, bound: int, key: Callable[[T], int]) -> int:
        """Return the index of the first item whose key is above a bound; keys grow with the index."""
        chunk = bisect_right(self.full, bound, key=lambda items: key(items[-1]))
        place = bisect_right(self.rest if chunk == len(self.full) else self.full[chunk], bound, key=key)
        return chunk * WIDTH + place

    def begins_with(self, other: Chunks[T], count: int) -> bool:
        """Say whether the first items of another sequence, at most all, are the first of this one, by identity."""
        if self is other:
            return True
        whole, part = divmod(count, WIDTH)
        if count > len(self) or not (self.full is other.full or all(map(is_, self.full[:whole], other.full))):
            return False
        mine, others = (each.full[whole] if whole < len(each.full) else each.rest for each in (self, other))
        return mine is others or all(map(is_, mine[:part], others))

    def between(self, start: int, stop: int) -> Iterator[T]:
        """Yield the items from one index to another."""
        return (self[index] for index in range(start, min(stop, len(self))))


NOTHING: Chunks[Any] = Chunks()


def chunks(items: Iterable[T]) -> Chunks[T]:
    """Return items as a sequence that grows cheaply."""
    whole = tuple(items)
    full = tuple(whole[at : at + WIDTH] for at in range(0, len(whole) - WIDTH + 1, WIDTH))
    return Chunks(full, whole[len(full) * WIDTH :])
