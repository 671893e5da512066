"""A plain breadth-first search over the reference semantics: slow, short, and the oracle for everything faster.

`Traversal` is the loop; what is done with the states is up to whoever iterates over it: `search` checks properties and
counts, `graph_file` and `liveness.graph` keep all of the graph. Counts are the TLA+ model checker's: `distinct` states,
`generated` = initial states plus one successor per way of every step, `depth` = states on the longest shortest path. A
state outside the constraint is checked, not kept or counted.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterator

import attrs

from harness.model import Choice, Model, Property, State, View

Transition = tuple[Choice, State, int | None]
"""A step, the state after it, and that state's number: None where it is outside the constraint."""


class Traversal:
    """Every reachable state of a model, breadth first and numbered from 0, each with the steps out of it.

    Iterate over it once; it goes on only along those transitions of a state that were read. States with one `key` count
    as one: the first that was met stands for it.
    """

    def __init__(self, model: Model, key: Callable[[State], Hashable]) -> None:
        self._model = model
        self._key = key
        self._numbers: dict[Hashable, int] = {}
        self._ahead: deque[State] = deque()
        self.initial = tuple([self._number(state) for state in model.initial_states()])
        """The number of each of `Model.initial_states()`, in its order: one that is there twice has its number twice.
        """

    def __len__(self) -> int:
        """Return how many states were met so far."""
        return len(self._numbers)

    def __iter__(self) -> Iterator[tuple[int, State, Iterator[Transition]]]:
        number = 0
        while self._ahead:
            state = self._ahead.popleft()
            yield number, state, self._transitions(state)
            number += 1

    def _transitions(self, state: State) -> Iterator[Transition]:
        for choice in self._model.choices(state):
            after = self._model.apply(state, choice)
            yield choice, after, self._number(after) if self._model.is_inside(after) else None

    def _number(self, state: State) -> int:
        key = self._key(state)
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self._numbers)
            self._ahead.append(state)
        return number


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
