"""A plain breadth-first search over the reference semantics: slow, short, and the oracle for everything faster.

Counts are the TLA+ model checker's: `distinct` states, `generated` = initial states plus one successor per way of every
step, `depth` = states on the longest shortest path. A state outside the constraint is checked, not kept or counted.
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from harness.explore.plain import Traversal
from harness.model import Choice, Model, Property, State, View


@attrs.frozen
class PlainResult:
    """What a search found. `violated` and `path` are set when it stopped at the first violation, by a shortest path."""

    initial: int
    distinct: int
    generated: int
    depth: int
    violated: str | None = None
    reason: str | None = None
    path: tuple[Choice, ...] = ()
    witnessed: frozenset[str] = frozenset()
    states: tuple[State, ...] = ()
    edges: tuple[tuple[int, str, int], ...] = ()


def search(model: Model, invariants: tuple[str, ...] = (), keep_graph: bool = False) -> PlainResult:
    """Search a model completely, or to the first violation of an invariant; `keep_graph`: with all states and edges."""
    checked = tuple(model.property(name) for name in invariants)
    witnesses = [p for p in model.properties if p.form == "sometimes"]
    states: list[State] = []
    edges: list[tuple[int, str, int]] = []
    witnessed: set[str] = set()

    known = Traversal(model, lambda state: tuple(state.values()))
    initial, generated = len(known), len(known.initial)
    parents: list[tuple[int, Choice | None, int]] = [(-1, None, 1)] * initial
    for n, state, transitions in known:
        depth = parents[n][2]
        for prop, why in failures(model, state, checked):
            return PlainResult(initial, len(known), generated, depth, prop.name, why, path_to(n, parents))
        for prop in witnesses:
            if prop.on == "state" and prop.name not in witnessed and prop.check(View(state)):
                witnessed.add(prop.name)
        for choice, after, target in transitions:
            generated += choice.step.ways
            if target is None:
                for prop, why in failures(model, after, checked):
                    path = (*path_to(n, parents), choice)
                    return PlainResult(initial, len(known), generated, depth + 1, prop.name, why, path)
                continue
            for prop in witnesses:
                if prop.on == "step" and prop.name not in witnessed and prop.check(View(state), choice.step):
                    witnessed.add(prop.name)
            if target == len(parents):
                parents.append((n, choice, depth + 1))
            if keep_graph:
                edges.append((n, choice.step.name, target))
        if keep_graph:
            states.append(state)
    deepest = max(depth for _, _, depth in parents)
    return PlainResult(
        initial, len(known), generated, deepest, witnessed=frozenset(witnessed), states=tuple(states),
        edges=tuple(edges),
    )


def failures(model: Model, state: State, checked: tuple[Property, ...]) -> Iterator[tuple[Property, str]]:
    """Yield the properties that a state violates, each with its reason, in the order given."""
    for prop in checked:
        if (why := model.why_not(prop, View(state))) is not None:
            yield prop, why


def path_to(n: int, parents: list[tuple[int, Choice | None, int]]) -> tuple[Choice, ...]:
    """Return the choices that lead from an initial state to state n, by the search's own (shortest) way."""
    steps: list[Choice] = []
    while (by := parents[n][1]) is not None:
        steps.append(by)
        n = parents[n][0]
    return tuple(reversed(steps))
