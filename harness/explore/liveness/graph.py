"""The graph of all reachable states as flat arrays: what a temporal property is checked on, whatever engine built it.

numpy and scipy are loaded here, when first used; nothing else of the project needs them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

import attrs

from harness.model import Refusal, Value, View

Array = Any
"""A one-dimensional numpy array."""


@attrs.frozen
class StepName:
    """What an edge stands for: the spec's action and arguments, the step's full label, and the process that offers it.

    Fairness knows action and arguments only; `label` has the detail that tells the steps of one state apart.
    """

    action: str
    args: tuple[str, ...]
    label: str
    process: str


@attrs.frozen(eq=False)
class StateGraph:
    """Every reachable state, by number, and every step between two of them.

    Edge n leads from `sources[n]` to `targets[n]` and is called `names[labels[n]]`. Any sequences of integers do; numpy
    arrays, sorted by source, cost least. Steps that change nothing may be there, and count for nothing.
    """

    initial: Any
    """The number of each of `Model.initial_states()`, in its order: a state that is there twice has it twice."""
    sources: Any
    targets: Any
    labels: Any
    names: tuple[StepName, ...]
    count: int
    state: Callable[[int], Mapping[str, Value]]
    column: Callable[[str], Any] | None = None
    """Where an engine can: for a slot, one small non-negative integer per state, equal only where its values are equal.

    With it a predicate is evaluated once per combination of the slots that it reads, else once per state.
    """


def load(name: str) -> Any:
    """Return numpy, or a module of scipy. Raises Refusal if it is missing."""
    try:
        return import_module(name)
    except ImportError as error:
        missing = (error.name or name).split(".")[0]
        raise Refusal(
            f"temporal properties are checked with numpy and scipy, but {missing} is missing here; "
            "install both: pip install 'kafka-proto[search]'"
        ) from None


def holding(graph: StateGraph, predicate: Callable[[View], bool]) -> Array:
    """Return where a predicate holds, as one boolean per state.

    With `graph.column` it is evaluated once per combination of the values of the slots that it reads.
    """
    np = load("numpy")
    if graph.column is None:
        return np.fromiter((predicate(View(graph.state(n))) for n in range(graph.count)), bool, graph.count)
    read: set[str] = set()
    group = np.zeros(graph.count, dtype=np.int64)
    while True:
        first = np.zeros(int(group.max(initial=0)) + 1, dtype=np.int64)
        first[group[::-1]] = np.arange(graph.count)[::-1]
        answers = np.zeros(len(first), dtype=bool)
        more: list[str] = []
        for n, representative in enumerate(first.tolist()):
            view = View(graph.state(representative))
            answers[n] = predicate(view)
            more = [slot for slot in view.reads() if slot not in read]
            if more:
                break
        if not more:
            return answers[group]
        for slot in more:
            read.add(slot)
            column = np.asarray(graph.column(slot), dtype=np.int64)
            group = _renumbered(group * (int(column.max(initial=0)) + 1) + column)


def _renumbered(numbers: Array) -> Array:
    """Return the same numbers without gaps, in the same order."""
    np = load("numpy")
    if int(numbers.max(initial=0)) > 8 * len(numbers):
        return np.unique(numbers, return_inverse=True)[1]
    present = np.zeros(int(numbers.max(initial=0)) + 1, dtype=bool)
    present[numbers] = True
    return (np.cumsum(present) - 1)[numbers]
