"""A plain breadth-first traversal over the reference semantics: slow, short, and the oracle for everything faster.

The caller decides what is done with the states: `graph_file` keeps all of the graph; the search and the graph that the
faster ones are tested against check properties and count, in `tests/support`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterator

from harness.model import Choice, Model, State

Transition = tuple[Choice, State, int | None]
"""A step, the state after it, and that state's number: None if it is outside the constraint."""


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
        """The number of each of `Model.initial_states()`, in its order: a state that is there twice has it twice."""

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
