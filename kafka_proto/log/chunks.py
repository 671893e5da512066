"""A sequence that grows at its end: appending to a long one copies little. It can forget its beginning.

A tuple is copied whole by each append. Here full chunks are shared between the old and the new sequence, so that an
append copies at most a chunk, and once per chunk the list of chunks: some hundred words an append at a million items.
Equal items make equal sequences, because the chunks are a function of them. What is forgotten keeps its place.
"""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from operator import is_
from typing import Any, TypeVar, overload

import attrs

from harness.model import absent_if_none

T = TypeVar("T")
WIDTH = 128


@attrs.frozen
class LogStart:
    """The first items of a log are gone: how many, the offset with which it begins since, and what they had made.

    If the log was compacted that is what all items up to there have made, `clean` of them, below `clean_to`.
    """

    place: int
    offset: int
    log: Any
    clean: int = 0
    clean_to: int = 0


UNTOLD = -1
"""The offset with which a log begins that was cut below its start, until its leader has told it."""


@attrs.frozen
class EpochStart:
    """In place of the first batch of a leader epoch that compaction has removed: where the epoch begins."""

    base_offset: int


@attrs.frozen
class Chunks(Sequence[T]):
    """Items in full chunks of `WIDTH`, and the rest in a shorter one."""

    full: tuple[tuple[T, ...], ...] = ()
    rest: tuple[T, ...] = ()
    start: LogStart | None = attrs.field(default=None, metadata=absent_if_none())

    def __len__(self) -> int:
        return len(self.full) * WIDTH + len(self.rest)

    def __iter__(self) -> Iterator[T]:
        return chain(chain.from_iterable(self.full), self.rest)

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> Chunks[T]: ...
    def __getitem__(self, index: int | slice) -> T | Chunks[T]:
        """Return an item, or the sequence cut at an index: a slice begins at the beginning."""
        if isinstance(index, slice):
            return self._cut(index)
        chunk, place = divmod(index + len(self) if index < 0 else index, WIDTH)
        return self.rest[place] if chunk == len(self.full) else self.full[chunk][place]

    def _cut(self, index: slice) -> Chunks[T]:
        start, stop, step = index.indices(len(self))
        if start or step != 1:
            raise IndexError("a slice of a long sequence begins at its beginning; see `between`")
        whole, part = divmod(stop, WIDTH)
        rest = self.rest if whole == len(self.full) else self.full[whole]
        return attrs.evolve(self, full=self.full[:whole], rest=rest[:part])

    def add(self, item: T) -> Chunks[T]:
        """Return this sequence with an item at its end."""
        rest = (*self.rest, item)
        return Chunks(*((self.full, rest) if len(rest) < WIDTH else ((*self.full, rest), ())), self.start)

    def extended(self, items: tuple[T, ...]) -> Chunks[T]:
        """Return this sequence with items at its end."""
        if not items:
            return self
        tail = chunks((*self.rest, *items))
        return Chunks(self.full + tail.full, tail.rest, self.start)

    @property
    def gone(self) -> int:
        """Return how many items are forgotten."""
        return 0 if self.start is None else min(self.start.place, len(self))

    def forget(self, start: LogStart, instead: Callable[[T], T]) -> Chunks[T]:
        """Return this sequence without its first items: each has something small in its place, equal ones the same."""
        return self._with(start, start.place, lambda item, place: instead(item))

    def _with(self, start: LogStart, count: int, instead: Callable[[T, int], T]) -> Chunks[T]:
        """Return this sequence with other items, by item and place, for the first ones that are not forgotten."""
        first, (whole, part) = self.gone // WIDTH, divmod(count, WIDTH)
        full = [*self.full[:first]]
        for at, chunk in enumerate(self.full[first:whole], first):
            other = tuple(map(instead, chunk, itertools.count(at * WIDTH)))
            full.append(full[-1] if full and full[-1] == other else other)
        rest = self.rest
        if whole < len(self.full):
            partly = self.full[whole]
            full += [(*map(instead, partly[:part], itertools.count(whole * WIDTH)), *partly[part:]),
                     *self.full[whole + 1:]]
        else:
            rest = (*map(instead, rest[:part], itertools.count(whole * WIDTH)), *rest[part:])
        return Chunks(tuple(full), rest, start)

    @property
    def rewritten(self) -> int:
        """Return how many items need not be as they were: they are forgotten, or compacted."""
        return 0 if self.start is None else min(max(self.start.place, self.start.clean), len(self))

    def begun(self, gone: Chunks[T]) -> Chunks[T]:
        """Return this sequence after what another one has forgotten; if it is not longer than that, only that."""
        clean, clean_to = (0, 0) if self.start is None else (self.start.clean, self.start.clean_to)
        start = gone.start and attrs.evolve(gone.start, clean=clean, clean_to=clean_to)
        return attrs.evolve(gone.extended(tuple(self.between(len(gone), len(self)))), start=start)

    def replaced(self, start: LogStart, other: Callable[[T, int], T]) -> Chunks[T]:
        """Return this sequence with other items, by item and place, for those that are compacted."""
        return self._with(start, start.clean, other)

    def first_after(self, bound: int, key: Callable[[T], int]) -> int:
        """Return the index of the first item whose key is above a bound; keys grow with the index."""
        first, part = divmod(self.gone, WIDTH)
        chunk = bisect_right(self.full, bound, first, key=lambda items: key(items[-1]))
        items = self.rest if chunk == len(self.full) else self.full[chunk]
        return chunk * WIDTH + bisect_right(items, bound, part if chunk == first else 0, key=key)

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
        chunk, place = divmod(start, WIDTH)
        ahead = chain.from_iterable(map(self.full.__getitem__, range(chunk, len(self.full))))
        return islice(chain(ahead, self.rest), place, place + max(0, min(stop, len(self)) - start))


NOTHING: Chunks[Any] = Chunks()


def chunks(items: Iterable[T]) -> Chunks[T]:
    """Return items as a sequence that grows cheaply."""
    whole = tuple(items)
    full = tuple(whole[at : at + WIDTH] for at in range(0, len(whole) - WIDTH + 1, WIDTH))
    return Chunks(full, whole[len(full) * WIDTH :])


def longer(items: tuple[T, ...] | Chunks[T], item: T) -> tuple[T, ...] | Chunks[T]:
    """Return a sequence of either kind with an item at its end."""
    return items.add(item) if isinstance(items, Chunks) else (*items, item)


def gone(items: Sequence[Any]) -> int:
    """Return how many items of a sequence are forgotten."""
    return items.gone if isinstance(items, Chunks) else 0


def rewritten(items: Sequence[Any]) -> int:
    """Return how many items of a sequence need not be as they were."""
    return items.rewritten if isinstance(items, Chunks) else 0


def same(one: Sequence[T], other: Sequence[T], start: int, stop: int) -> bool:
    """Say whether two sequences have the same items from one index to another; whole chunks are compared as they are.
    """
    if isinstance(one, Chunks) and isinstance(other, Chunks):
        first, last = -(-start // WIDTH), min(stop, len(one), len(other)) // WIDTH
        if first < last:
            return one.full[first:last] == other.full[first:last] and all(
                section(one, *edge) == section(other, *edge) for edge in ((start, first * WIDTH), (last * WIDTH, stop)))
    return section(one, start, stop) == section(other, start, stop)


def section(items: Sequence[T], start: int, stop: int) -> Sequence[T]:
    """Return the items of a sequence from one index to another."""
    return tuple(items.between(start, stop)) if isinstance(items, Chunks) else items[start:stop]
