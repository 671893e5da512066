"""What a search found: counts, violations with shortest paths, witnesses; and which of all shortest paths it is.

Of all shortest paths the one is reported whose steps come first in the order of the model, whatever the engine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set

import attrs

from harness.explore.packed.look_ups import WITNESSED
from harness.explore.packed.space import Space
from harness.model import Property, View

Progress = Callable[[int, int, int, int], None]
"""Called with distinct, generated, depth and how many states are still to be expanded."""


@attrs.frozen
class Violation:
    """A violated property (or a witness), why, and the shortest way there: the steps' labels after an initial state."""

    name: str
    reason: str
    kind: str
    """`invariant`, `deadlock` or `sometimes`."""
    initial: int
    labels: tuple[str, ...]

    @property
    def length(self) -> int:
        """The length in states, the initial one included."""
        return len(self.labels) + 1


@attrs.frozen
class Result:
    """What a search found."""

    initial: int
    distinct: int
    generated: int
    depth: int
    complete: bool
    violations: tuple[Violation, ...]
    witnesses: tuple[Violation, ...]
    actions: Mapping[str, int]
    bits: int
    engine: str
    keys: int = 0
    """How many keys states may have, where states are told apart by less than what they are; 0 if they are not."""
    longer: frozenset[str] = frozenset()
    """What was found by runs that may not be the shortest."""


def ranked(
    found: Iterable[tuple[Violation, list[int]]], names: Sequence[str]
) -> tuple[tuple[Violation, ...], tuple[Violation, ...]]:
    """Return violations and witnesses, each given with its places: violations in order of length, places and name."""
    in_order = sorted(found, key=lambda each: (each[0].length, each[1], [*names, "Deadlock"].index(each[0].name)))
    violations = [violation for violation, _ in in_order]
    witnesses = sorted((each for each in violations if each.kind == "sometimes"), key=lambda each: each.name)
    return tuple(each for each in violations if each.kind != "sometimes"), tuple(witnesses)


def first_path(
    space: Space, chosen: Sequence[Property], name: str, kind: str, starts: Sequence[int],
    key: Callable[[int], int], ways: Sequence[Set[int]],
) -> tuple[Violation, list[int]]:
    """Return the first path, in the order of the model, through states whose keys are given level by level; its places.

    `starts` are the initial states, packed. A path's places are the number of its initial state, and of each step among
    those that were possible.
    """
    initial = next(n for n, start in enumerate(starts) if key(start) in ways[0])
    at = starts[initial]
    labels: list[str] = []
    places = [initial]
    for targets in ways[1:]:
        edges = enumerate(space.edges(at))
        place, edge = next((n, edge) for n, edge in edges if key(edge.follow(at)) in targets)
        places.append(place)
        labels.append(edge.step.label)
        at = edge.follow(at)
    prop = next((prop for prop in chosen if prop.name == name), None)
    view = View(space.layout.unpack(at))
    if prop is not None and prop.on == "step":
        labels += [edge.step.label for edge in space.edges(at) if prop.check(view, edge.step)][:1]
    if prop is None:
        reason = "no step is possible"
    elif kind == "sometimes":
        reason = WITNESSED
    else:
        reason = space.model.why_not(prop, view) or ""
    return Violation(name, reason, kind, initial, tuple(labels)), places
