"""The shortest fair cycle through a state, within a strongly connected part of a graph: pure Python over small parts.

A cycle has duties. A weakly fair duty takes the step or has a state that does not enable it; a strongly fair one takes
it or has no state that enables it; and where a property needs a state of some kind, it has one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence

import attrs

MOST_STATES = 300_000
"""Pairs of a state and duties done that the search for a shortest cycle visits at most, for one part."""


@attrs.frozen
class Component:
    """A strongly connected part: for each state the edges that stay inside, and the bits that they and it stand for.

    Bits say what has happened on the way: a duty that is done (all of `duties` must be), a strongly fair step that was
    enabled (`enabled`, in the same order as `taken`: its step was taken).
    """

    edges: Mapping[int, Sequence[tuple[int, int, int]]]
    """For each state: target, number of the edge, bits of the edge. One edge per target, with the bits of all."""
    bits: Mapping[int, int]
    duties: int
    enabled: int
    taken_shift: int

    def is_fair(self, seen: int) -> bool:
        """Say whether a cycle with these bits does all that it has to."""
        return seen & self.duties == self.duties and not (seen & self.enabled) & ~(seen >> self.taken_shift)


class Budget:
    """How many more pairs of state and duties may be visited."""

    def __init__(self, left: int = MOST_STATES) -> None:
        self.left = left


def shortest_cycle(part: Component, start: int, limit: int, budget: Budget) -> list[int] | None:
    """Return the edges of a shortest fair cycle of at least two edges through a state, or None.

    None also where it would have more than `limit` edges, or where the budget is used up before one is found.
    """
    first = (start, part.bits[start])
    came: dict[tuple[int, int], tuple[tuple[int, int], int]] = {}
    seen = {first}
    level = deque([first])
    for length in range(1, limit + 1):
        following: deque[tuple[int, int]] = deque()
        for node in level:
            state, bits = node
            for target, edge, more in part.edges[state]:
                after = bits | more
                if target == start and part.is_fair(after):
                    return _way_back(came, first, node, edge)
                reached = (target, after | part.bits[target])
                if reached not in seen and length < limit:
                    seen.add(reached)
                    came[reached] = (node, edge)
                    following.append(reached)
                    budget.left -= 1
                    if budget.left < 0:
                        return None
        level = following
    return None


def _way_back(
    came: Mapping[tuple[int, int], tuple[tuple[int, int], int]], first: tuple[int, int], node: tuple[int, int],
    last: int,
) -> list[int]:
    edges = [last]
    while node != first:
        node, edge = came[node]
        edges.append(edge)
    return edges[::-1]


def some_cycle(part: Component, start: int) -> list[int]:
    """Return the edges of a fair cycle through a state that need not be shortest: one duty after the other.

    Strongly fair steps that the part enables are all taken. The part must be fair, as those of `Components` are.
    """
    edges: list[int] = []
    state, bits = start, part.bits[start]
    wanted = part.duties | part.enabled << part.taken_shift
    while missing := wanted & ~bits:
        way = _nearest(part, state, missing)
        assert way is not None, "a duty that no state or edge of a fair part does"
        for target, edge, more in way:
            edges.append(edge)
            bits |= more | part.bits[target]
            state = target
    if state != start or not edges:
        back = _nearest(part, state, 0, start)
        assert back is not None, "a part that is not strongly connected"
        edges += [edge for _, edge, _ in back]
    return edges


def _nearest(part: Component, start: int, missing: int, goal: int | None = None) -> list[tuple[int, int, int]] | None:
    """Return a shortest way of one edge or more to a state or edge with a missing bit, or to a goal."""
    came: dict[int, tuple[int, tuple[int, int, int]]] = {}
    level = deque([start])
    while level:
        state = level.popleft()
        for step in part.edges[state]:
            target, _, more = step
            if (more | part.bits[target]) & missing or target == goal:
                way = [step]
                while state != start:
                    state, step = came[state]
                    way.append(step)
                return way[::-1]
            if target not in came and target != start:
                came[target] = (state, step)
                level.append(target)
    return None
