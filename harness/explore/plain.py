"""A plain breadth-first search over the reference semantics: slow, short, and the oracle for everything faster.

Counts are the TLA+ model checker's: `distinct` states, `generated` = initial states plus one successor per way of every
step, `depth` = states on the longest shortest path. A state outside the constraint is checked, not kept or counted.
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from harness.model import Choice, Model, Property, State, View


@attrs.frozen
class Found:
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


def search(
    model: Model, invariants: tuple[str, ...] = (), keep_graph: bool = False, hide: tuple[str, ...] = ()
) -> Found:
    """Search a model completely, or to the first violation of an invariant.

    `keep_graph` returns states and labelled edges; `hide` names slot variables that do not tell states apart.
    """
    checked = tuple(model.property(name) for name in invariants)
    witnesses = [p for p in model.properties if p.form == "sometimes"]
    index: dict[tuple[object, ...], int] = {}
    states: list[State] = []
    parents: list[tuple[int, Choice | None, int]] = []
    edges: list[tuple[int, str, int]] = []
    witnessed: set[str] = set()

    def visit(state: State, parent: int, by: Choice | None, depth: int) -> int:
        key = tuple(value for name, value in state.items() if name.split("[")[0] not in hide)
        if key not in index:
            index[key] = len(states)
            states.append(state)
            parents.append((parent, by, depth))
        return index[key]

    for state in model.initial_states():
        visit(state, -1, None, 1)
    initial, generated, n = len(states), len(model.initial_states()), 0
    while n < len(states):
        state = states[n]
        for prop, why in failures(model, state, checked):
            return Found(initial, len(states), generated, parents[n][2], prop.name, why, path_to(n, parents))
        for prop in witnesses:
            if prop.on == "state" and prop.name not in witnessed and prop.check(View(state)):
                witnessed.add(prop.name)
        for choice in model.choices(state):
            generated += choice.step.ways
            after = model.apply(state, choice)
            if not model.is_inside(after):
                for prop, why in failures(model, after, checked):
                    path = (*path_to(n, parents), choice)
                    return Found(initial, len(states), generated, parents[n][2] + 1, prop.name, why, path)
                continue
            for prop in witnesses:
                if prop.on == "step" and prop.name not in witnessed and prop.check(View(state), choice.step):
                    witnessed.add(prop.name)
            target = visit(after, n, choice, parents[n][2] + 1)
            if keep_graph:
                edges.append((n, choice.step.name, target))
        if not keep_graph:
            states[n] = {}
        n += 1
    kept = (tuple(states), tuple(edges)) if keep_graph else ((), ())
    return Found(initial, n, generated, max(d for _, _, d in parents), None, None, (), frozenset(witnessed), *kept)


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
