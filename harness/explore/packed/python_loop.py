"""The inner loop in pure Python: a level at a time, tables outside, states inside.

All states that agree on a look-up's fields share what is found there, so that a difference is added to many states by
one comprehension.
"""

from __future__ import annotations

import sys
from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import repeat
from types import MappingProxyType

from harness.explore.packed.footprints import PackedEdge
from harness.explore.packed.look_ups import LookUp, TableEntry
from harness.explore.packed.loop import ASKED, DEADLOCK, Answered, Arrows, LevelSizes, LoopOptions
from harness.explore.packed.space import Space
from harness.explore.packed.spool import Spool, from_words, to_words
from harness.model import canonical_text

CHUNK, LEAST = 50_000, 500
"""States that are expanded at once: fewer where the protocol is asked much for them."""
PRIME = 18446744073709551557
"""The greatest prime below 2**64: a state's fingerprint is what it leaves when divided by it."""
BYTES_PER_ENTRY = 16
"""Of a set, which grows where three in five of its entries are taken."""


def expand(
    space: Space, states: Sequence[int], answered: Answered | None
) -> Iterator[tuple[list[int], list[int], PackedEdge]]:
    """Yield successors of some states, the states that they come from, and the edge, in batches.

    Without `answered` nothing is counted.
    """
    for found, key, mask, bucket in look_up(space, states, answered):
        for edge in found.edges:
            yield follow(edge, key, mask, bucket), bucket, edge


def look_up(
    space: Space, states: Sequence[int], answered: Answered | None
) -> Iterator[tuple[TableEntry, int, int, list[int]]]:
    """Yield the entries with edges that are found for some states: each with the bits that it was looked up by, their
    mask, and the states that have these bits."""
    work: list[tuple[LookUp, Sequence[int]]] = [(root, states) for root in space.roots]
    while work:
        pending: dict[LookUp, list[int]] = {}
        for table_of, several in work:
            mask, table = table_of.mask, table_of.table
            buckets: defaultdict[int, list[int]] = defaultdict(list)
            for state in several:
                buckets[state & mask].append(state)
            for key, bucket in buckets.items():
                found = table.get(key)
                if found is None:
                    found = table_of.fill(bucket[0])
                    space.filled += 1
                if answered is not None:
                    found.hits += len(bucket)
                    if found.answers:
                        answered(found.answers, bucket)
                if found.edges:
                    yield found, key, mask, bucket
                for child in found.children:
                    if child in pending:
                        pending[child] += bucket
                    else:
                        pending[child] = bucket.copy()
        work = list(pending.items())


def follow(edge: PackedEdge, key: int, mask: int, states: Sequence[int]) -> list[int]:
    """Return what an edge makes of states that agree on the bits of a mask, which are `key` in all of them."""
    delta = edge.delta
    varying = []
    for channel in edge.channels:
        bits = channel.field.mask
        if bits & mask:
            delta += channel[key & bits]
        else:
            varying.append((channel, bits))
    if not varying:
        return [state + delta for state in states]
    (channel, bits), *others = varying
    after = [state + delta + channel[state & bits] for state in states]
    for channel, bits in others:
        after = [a + channel[state & bits] for a, state in zip(after, states, strict=True)]
    return after


class PythonLoop(LevelSizes):
    """States as Python integers in a set, levels as lists."""

    name = "python"
    contexts: Mapping[int, int] = MappingProxyType({2_000: 500, 20_000: 6_000, 100_000: 50_000})
    contexts_of_actors: Mapping[int, int] = MappingProxyType({2_000: 500})
    """The same where local states have so many values that few states would share an entry of a larger context."""

    def __init__(self, space: Space, options: LoopOptions) -> None:
        self.space = space
        if space.model.actors:
            self.contexts = self.contexts_of_actors
        self.options = options
        self.generated = 0
        self.position = 0
        self.piece = CHUNK
        self.seen: set[int] = set()
        self.levels: list[list[int]] = []
        self.ends = []
        self.spool = Spool() if options.fingerprints else None
        self.settled: set[str] = set()
        self.out: list[int] = []

    def close(self) -> None:
        self.seen.clear()
        self.levels.clear()

    def start(self, states: Sequence[int]) -> None:
        self.generated = len(states)
        self.levels = [self._new(dict.fromkeys(states))]
        self.ends = [len(self.levels[0])]
        self.out = []

    def restore(self, levels: Iterable[Sequence[int]], position: int, generated: int) -> None:
        for level in levels:
            self.seen.update(self._mark(state) for state in level)
            self.levels.append(list(level))
            self.ends.append(sum(self.ends[-1:]) + len(level))
        if self.spool is not None:
            for done in self.levels[: -2 if position else -1]:
                self.spool.put(to_words(done, self.width))
                done.clear()
        self.position = position
        self.generated = generated

    def expand(self, answered: Answered) -> Iterator[int]:
        if not self.position:
            self.levels.append([])
            self.ends.append(self.ends[-1])
        level, after = self.levels[-2], self.levels[-1]
        while self.position < len(level):
            piece = level[self.position : self.position + self.piece]
            filled = self.space.filled
            self.space.settle(piece)
            successors: set[int] = set()
            take = successors.update
            alive: set[int] = set()
            add = successors.add
            for found, key, mask, bucket in look_up(self.space, piece, answered):
                self.generated += found.ways * len(bucket)
                if len(bucket) == 1:
                    (state,) = bucket
                    for edge in found.edges:
                        after_edge = state + edge.delta
                        for channel in edge.channels:
                            after_edge += channel[state & channel.field.mask]
                        add(after_edge)
                else:
                    for edge in found.edges:
                        take(follow(edge, key, mask, bucket))
                if self.options.deadlocks:
                    alive.update(bucket)
            if self.options.deadlocks and (dead := [state for state in piece if state not in alive]):
                answered(DEADLOCK, dead)
            new = self._new(successors)
            after += new
            self.ends[-1] += len(new)
            self.position += len(piece)
            asked_much = self.space.filled - filled > ASKED
            self.piece = min(CHUNK, max(LEAST, self.piece // 2) if asked_much else 2 * self.piece)
            yield self.position
        self.position = 0
        if self.spool is not None:
            self.spool.put(to_words(level, self.width))
            level.clear()

    def _new(self, states: Iterable[int]) -> list[int]:
        """Return those of some states that are new and within bounds, and note that they are seen."""
        options = self.options
        if options.hidden or options.fingerprints:
            new = self._new_marks(states)
        else:
            new = states if isinstance(states, set) else set(states)
            new -= self.seen
            if options.symmetry is not None:
                least = options.symmetry.least
                new = {least(state) for state in new}
                new -= self.seen
        if self.space.bounds is not None:
            inside = {state for state in new if not self.space.is_outside(state)}
            self.out += new - inside
            new = inside
        if not (options.hidden or options.fingerprints):
            self.seen |= new
        return list(new)

    def _mark(self, state: int) -> int:
        mark = self.options.key(state)
        return mark % PRIME if self.options.fingerprints else mark

    def _new_marks(self, states: Iterable[int]) -> set[int]:
        """Return the states whose visible part, or whose fingerprint, is new; of several the one that sorts first."""
        hidden = self.options.hidden
        if not hidden:
            key = self.options.key
            by_mark = {key(state) % PRIME: state for state in states}
            fresh = by_mark.keys() - self.seen
            self.seen |= fresh
            return {key(by_mark[mark]) for mark in fresh}
        marks: dict[int, int] = {}
        for state in states:
            mark = self._mark(state)
            if mark in self.seen:
                continue
            other = marks.get(mark)
            if other is None or self._text(state) < self._text(other):
                marks[mark] = state
        self.seen |= marks.keys()
        return set(marks.values())

    def _text(self, state: int) -> str:
        """Return the hidden fields of a state as text, by which one of several states with one view is chosen."""
        layout = self.space.layout
        return canonical_text(tuple(layout.at(field, state) for field in self.space.fields_of(self.options.hidden)))

    def level(self, number: int) -> Sequence[int]:
        if self.spool is not None and number < self.spool.count:
            return from_words(self.spool.get(number), self.width)
        return self.levels[number]

    @property
    def width(self) -> int:
        return (self.space.layout.bits + 63) // 64

    def words(self, number: int) -> array[int]:
        return to_words(self.level(number), self.width)

    def sample(self, number: int, most: int) -> Sequence[int]:
        states = self.level(number)
        return states[:: max(1, len(states) // most)]

    def sources(self, level: int, targets: set[int]) -> list[int]:
        found: set[int] = set()
        states = self.level(level)
        options = self.options
        quotient = options.hidden or options.symmetry is not None
        for begin in range(0, len(states), CHUNK):
            for batch, bucket, _ in expand(self.space, states[begin : begin + CHUNK], None):
                keys = [options.key(after) for after in batch] if quotient else batch
                if not targets.isdisjoint(keys):
                    found.update([state for key, state in zip(keys, bucket, strict=True) if key in targets])
        return [state for state in states if state in found]

    def outside(self) -> list[int]:
        found, self.out = self.out, []
        return found

    def arrows(self) -> Arrows:
        number = {state: n for n, state in enumerate(state for level in self.levels for state in level)}.__getitem__
        sources, targets, labels = array("q"), array("q"), array("q")
        edges: dict[PackedEdge, int] = {}
        for level in self.levels:
            for begin in range(0, len(level), CHUNK):
                for batch, bucket, edge in expand(self.space, level[begin : begin + CHUNK], None):
                    sources.extend(map(number, bucket))
                    targets.extend(map(number, batch))
                    labels.extend(repeat(edges.setdefault(edge, len(edges)), len(batch)))
        return Arrows(sources, targets, labels, tuple(edges))

    def rearranged(self) -> None:
        """The roots are read from the space each time."""

    def count(self) -> None:
        self.space.count()

    def soon(self) -> int:
        table = sys.getsizeof(self.seen)
        is_full = len(self.seen) * BYTES_PER_ENTRY * 2 > table
        return 2 * table if is_full else 0
