"""The inner loop of the search: the states seen so far, level by level, and how the next level is made.

`Loop` is what the search needs of it: `python_loop` has the one in pure Python, `kernel_loop` the one in C.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Protocol

import attrs

from harness.explore.packed.footprints import Answer, PackedEdge
from harness.explore.reduction.symmetry import Symmetry

ASKED = 2_000
"""What the protocol is asked for before it is looked how much memory there is: each may take some 100 kB."""
Answered = Callable[[Sequence[Answer], Sequence[int]], None]
"""Called with answers of checks and the states in which they were given."""
DEADLOCK: Sequence[Answer] = (("Deadlock", "no step is possible"),)


@attrs.frozen
class LoopOptions:
    """How a loop treats states: by class, by what a view shows, by fingerprint; whether it watches for deadlocks."""

    symmetry: Symmetry | None = None
    hidden: int = 0
    """The mask of the fields that the view hides."""
    fingerprints: bool = False
    deadlocks: bool = False
    threads: int = 1
    """How many threads of the kernel expand states."""
    is_full: Callable[[], bool] = lambda: False
    """Says whether there is no more memory."""

    def key(self, state: int) -> int:
        """Return what tells a state from others: its class under renaming, of what the view shows."""
        state &= ~self.hidden
        return state if self.symmetry is None else self.symmetry.least(state)


@attrs.frozen
class Arrows:
    """The edges between the states that a loop keeps, as flat lists; `labels` index into `edges`."""

    sources: Sequence[int]
    targets: Sequence[int]
    labels: Sequence[int]
    edges: Sequence[PackedEdge]


class LevelSizes(Protocol):
    """How many states each level has."""

    ends: list[int]
    """Where each level ends among all states."""

    @property
    def distinct(self) -> int:
        """The states seen so far, within bounds."""
        return self.ends[-1]

    @property
    def depth(self) -> int:
        """The levels so far, including the level that is being made."""
        return len(self.ends)

    def size(self, number: int) -> int:
        """Return how many states a level has; -1 is the last one."""
        number %= len(self.ends)
        return self.ends[number] - (self.ends[number - 1] if number else 0)

    def sizes(self) -> list[int]:
        """Return how many states each level has."""
        return [end - begin for begin, end in zip([0, *self.ends], self.ends, strict=False)]


class Loop(LevelSizes, Protocol):
    """The states seen so far, level by level, and how the next level is made."""

    name: str
    contexts: Mapping[int, int]
    """States seen, and how many entries a context may have from then on beyond what its look-ups have anyway."""
    position: int
    """How many states of the level before the last are expanded, 0 if it is done."""
    settled: set[str]
    """Properties whose answers are not needed any more."""

    @property
    def generated(self) -> int:
        """The successors so far, one for every way, and the initial states."""

    def close(self) -> None:
        """Let go of the states at once: the loop is of no use afterwards."""

    def start(self, states: Sequence[int]) -> None:
        """Begin with the initial states."""

    def restore(self, levels: Iterable[Sequence[int]], position: int, generated: int) -> None:
        """Go on where another search stopped, with its levels."""

    def expand(self, answered: Answered) -> Iterator[int]:
        """Expand the last level into the next, piece by piece; yield how many states are done. Raises Overflow."""

    def level(self, number: int) -> Sequence[int]:
        """Return the states of a level (0 is the initial one)."""

    @property
    def width(self) -> int:
        """The 64-bit words of a state."""

    def words(self, number: int) -> array[int]:
        """Return the states of a level as words."""

    def sample(self, number: int, most: int) -> Sequence[int]:
        """Return about so many states of a level, evenly spread."""

    def sources(self, level: int, targets: set[int]) -> list[int]:
        """Return the states of a level from which a step leads to one of the targets (given as keys)."""

    def outside(self) -> list[int]:
        """Return the states out of bounds that were met since this was asked last."""

    def arrows(self) -> Arrows:
        """Return all edges; states are numbered level by level. For models without a constraint."""

    def rearranged(self) -> None:
        """Take note that the space has other roots."""

    def count(self) -> None:
        """Add the counts of steps to those of the space."""

    def soon(self) -> int:
        """Return the bytes that it will soon take at once, as its tables grow."""
