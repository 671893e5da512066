"""Temporal properties under fairness, on the graph of all reachable states: a property holds, or here is a lasso.

A lasso is a way from an initial state and a cycle that goes on for ever; an empty cycle stands for staying in the last
state. The lassos are looked for in the graph that remains when all that cannot go on fairly is taken away
(`fairness.Components`); which states are to be looked at depends on the form of the property:

    <>[]P   a cycle with a state without P, anywhere
    []<>P   a cycle without P, anywhere
    <>P     a cycle without P, reached without P
    P ~> Q  a cycle without Q, reached without Q from a state with P
"""

from __future__ import annotations

from collections.abc import Callable

import attrs

from harness.explore.liveness.cycle import Budget, Component, shortest_cycle, some_cycle
from harness.explore.liveness.edges import Edges, Ways
from harness.explore.liveness.fairness import Components, Fairness, FairnessConditions, fairness_of
from harness.explore.liveness.graph import Array, StateGraph, holding, load
from harness.model import Model, Property, Reason, Refusal, View

__all__ = ["Fairness", "FairnessNote", "Lasso", "check_temporal", "fairness_of"]

DISABLED = "disabled in every state of the cycle"
SOMETIMES_DISABLED = "disabled in some state of the cycle"
TAKEN = "taken in the cycle"


@attrs.frozen
class FairnessNote:
    """How a lasso's cycle keeps to one condition of the fairness formula."""

    formula: str
    """`WF(Action(c1,b1))` or `SF(...)`."""
    how: str

    def __str__(self) -> str:
        return f"{self.formula}: {self.how}"


@attrs.frozen
class Lasso:
    """A fair run that violates a temporal property: the labels of its steps, and of the cycle that it ends in."""

    name: str
    """The property's."""
    reason: str
    initial: int
    """Which of the model's initial states it starts in."""
    prefix: tuple[str, ...]
    cycle: tuple[str, ...]
    """Empty where the run stays in its last state for ever."""
    fairness: tuple[FairnessNote, ...]

    @property
    def length(self) -> int:
        """The length in states, as the model checker counts: the last step of the cycle leads to none of its own."""
        return 1 + len(self.prefix) + max(0, len(self.cycle) - 1)

    @property
    def back_to(self) -> int | None:
        """Which state, counted from 1, the cycle leads back to; None if it is empty."""
        return len(self.prefix) + 1 if self.cycle else None


def check_temporal(graph: StateGraph, model: Model, property_name: str, fairness: Fairness) -> Lasso | None:
    """Return a lasso that violates a temporal property, as short as one is found, or None if it holds.

    Raises Refusal for what is no temporal property of the model, for a model with a constraint, and without numpy.
    """
    prop = _temporal(model, property_name)
    edges = Edges(graph)
    instances = FairnessConditions(edges, fairness)
    question = _Question(graph, prop, edges)
    found = _LassoSearch(question, edges, instances).shortest()
    if found is None:
        return None
    start, prefix, cycle = found
    last = int(edges.targets[prefix[-1]]) if prefix else start
    loop = [int(edges.sources[edge]) for edge in cycle] or [last]
    why = next(why for state in loop if (why := question.pending(View(graph.state(state)))) is not None)
    return Lasso(
        prop.name, f"{why}, {_for_how_long(prop, len(cycle), fairness)}", list(graph.initial).index(start),
        _labels(edges, prefix), _labels(edges, cycle), tuple(_notes(edges, instances, loop, cycle)),
    )


def _temporal(model: Model, name: str) -> Property:
    temporal = [prop.name for prop in model.properties if prop.is_temporal]
    if name not in temporal:
        has = f"its temporal properties are {', '.join(temporal)}" if temporal else "it has none"
        raise Refusal(f"{name} is not a temporal property of {model.name}; {has}")
    if model.constraint is not None:
        raise Refusal(
            f"{model.name} is bounded by a constraint, which cuts runs off: no temporal property can be checked on it"
        )
    return model.property(name)


def _labels(edges: Edges, taken: list[int]) -> tuple[str, ...]:
    return tuple(edges.names[int(edges.labels[edge])].label for edge in taken)


def _for_how_long(prop: Property, length: int, fairness: Fairness) -> str:
    """Say in the words of a reason that nothing will change."""
    if length:
        again = "again and again" if prop.form == "<>[]" else "for ever"
        kept = "" if fairness.asks_for_nothing else ", and fairness asks for no other"
        return f"{again}: {length} steps lead back to the same state{kept}"
    if fairness.asks_for_nothing:
        return "and nothing has to happen any more"
    return "and nothing can happen any more" if fairness.whole else "and no step that has to happen can happen any more"


def _notes(edges: Edges, instances: FairnessConditions, loop: list[int], cycle: list[int]) -> list[FairnessNote]:
    """Say for each condition of the formula how a cycle through the states of a loop keeps to it: what it takes first.

    A step takes every condition that has an edge between the same two states, whatever its label.
    """
    pairs = {(int(edges.sources[edge]), int(edges.targets[edge])) for edge in cycle}
    enabled, taken = set(), set()
    for edge in edges.out_of(load("numpy").unique(loop)).tolist():
        enabled.add(int(instances.of_edge[edge]))
        if (int(edges.sources[edge]), int(edges.targets[edge])) in pairs:
            taken.add(int(instances.of_edge[edge]))
    notes = []
    for n, instance in enumerate(instances.listed):
        how = TAKEN if n in taken else SOMETIMES_DISABLED if n in enabled else DISABLED
        notes.append(FairnessNote(instance.formula, how))
    order = (TAKEN, SOMETIMES_DISABLED, DISABLED)
    return sorted(notes, key=lambda note: (order.index(note.how), note.formula))


class _Question:
    """What has to be found for a property to be violated: a cycle among `allowed` states, with one of `goal` if given.

    The run may come to the cycle by the ways of `to` only.
    """

    def __init__(self, graph: StateGraph, prop: Property, edges: Edges) -> None:
        np = load("numpy")
        self._edges = edges
        self._initial = np.unique(np.asarray(graph.initial))
        self._before: Ways | None = None
        self._to: Ways | None = None
        self.pending: Callable[[View], Reason] = prop.leads_to or prop.reason
        waits = holding(graph, lambda view: self.pending(view) is not None)
        self.goal: Array | None = None
        self.allowed = waits
        match prop.form:
            case "<>[]":
                self.allowed, self.goal = np.ones(graph.count, dtype=bool), waits
            case "<>":
                self._to = self._from_start(waits)
                self.allowed = self._to.distance >= 0
            case "~>":
                self._before = self._from_start()
                first = np.flatnonzero(waits & holding(graph, lambda view: bool(prop.check(view))))
                self._to = Ways(edges, first, self._before.distance[first], waits)
                self.allowed = self._to.distance >= 0

    def _from_start(self, allowed: Array | None = None) -> Ways:
        np = load("numpy")
        seeds = self._initial if allowed is None else self._initial[allowed[self._initial]]
        return Ways(self._edges, seeds, np.zeros_like(seeds), allowed)

    @property
    def to(self) -> Ways:
        if self._to is None:
            self._to = self._from_start()
        return self._to

    def way_to(self, state: int) -> tuple[int, list[int]]:
        """Return an initial state, and the edges of a shortest way from it to a state."""
        start, way = self.to.to(state)
        if self._before is None:
            return start, way
        start, before = self._before.to(start)
        return start, before + way


class _LassoSearch:
    """The search for a lasso of few states: staying somewhere, or a cycle in one of the fair parts."""

    def __init__(self, question: _Question, edges: Edges, instances: FairnessConditions) -> None:
        self._question, self._edges, self._instances = question, edges, instances
        self._parts = Components(edges, instances, question.allowed, question.goal)

    def shortest(self) -> tuple[int, list[int], list[int]] | None:
        """Return the initial state and the edges of prefix and cycle, or None if the property holds.

        The length in states is the distance of the cycle's first state plus the length of the cycle, which is 1 for
        staying. Where that ties, staying wins.
        """
        np = load("numpy")
        question, parts = self._question, self._parts
        stays = question.allowed & ~self._instances.urgent
        if question.goal is not None:
            stays &= question.goal
        resting = np.flatnonzero(stays)
        if not len(resting) and not len(parts.states):
            return None
        distance = question.to.distance
        shortest: int | None = None
        where, cycle = -1, list[int]()
        if len(resting):
            where = int(resting[np.argmin(distance[resting])])
            shortest = int(distance[where]) + 1
        nearest = np.minimum.reduceat(distance[parts.states], parts.bounds[:-1]) if len(parts.states) else resting[:0]
        for n in np.lexsort((parts.states[parts.bounds[:-1]], nearest)).tolist():  # SciPy's order is its own affair
            if shortest is not None and int(nearest[n]) + 2 >= shortest:
                break
            better = self._shortest_in(parts.states[parts.bounds[n] : parts.bounds[n + 1]], shortest)
            if better is not None:
                where, cycle = better
                shortest = int(distance[where]) + len(cycle)
        start, prefix = question.way_to(where)
        return start, prefix, cycle

    def _shortest_in(self, states: Array, shortest: int | None) -> tuple[int, list[int]] | None:
        """Return a state of a part and a fair cycle through it, if that makes a shorter lasso than is known."""
        np = load("numpy")
        distance = self._question.to.distance[states]
        order = np.lexsort((states, distance))
        part = self._part(states)
        best: tuple[int, list[int]] | None = None
        if shortest is None:
            start = int(states[order[0]])
            best = start, some_cycle(part, start)
            shortest = int(distance[order[0]]) + len(best[1])
        budget = Budget()
        for n in order.tolist():
            limit = shortest - int(distance[n]) - 1
            if limit < 2 or budget.left < 0:
                break
            cycle = shortest_cycle(part, int(states[n]), limit, budget)
            if cycle is not None:
                best = int(states[n]), cycle
                shortest = int(distance[n]) + len(cycle)
        return best

    def _part(self, states: Array) -> Component:
        """Return a part of the graph with the duties of a cycle in it, one bit each."""
        edges, instances, goal = self._edges, self._instances, self._question.goal
        enabled: dict[int, set[int]] = {}
        out = edges.out_of(states)
        ends = list(zip(edges.sources[out].tolist(), edges.targets[out].tolist(), strict=True))
        takes = instances.of_edge[out].tolist()
        for (source, _), n in zip(ends, takes, strict=True):
            if n >= 0:
                enabled.setdefault(n, set()).add(source)
        weak = [n for n in sorted(enabled) if not instances.listed[n].strong]
        strong = [n for n in sorted(enabled) if instances.listed[n].strong]
        done = {n: 1 << at for at, n in enumerate(weak)}
        reached = 1 << len(weak)
        was_enabled = {n: reached << (1 + at) for at, n in enumerate(strong)}
        done |= {n: bit << len(strong) for n, bit in was_enabled.items()}
        members = states.tolist()
        bits = dict.fromkeys(members, reached if goal is None else 0)
        for state in members if goal is None else states[goal[states]].tolist():
            bits[state] |= reached
        for state in members:
            for n in weak:
                if state not in enabled[n]:
                    bits[state] |= done[n]
        for n in strong:
            for state in enabled[n]:
                bits[state] |= was_enabled[n]
        inside: dict[int, dict[int, tuple[int, int, int]]] = {state: {} for state in members}
        for edge, (source, target), n in zip(out.tolist(), ends, takes, strict=True):
            if target in bits:
                _, kept, more = inside[source].get(target, (target, edge, 0))
                inside[source][target] = (target, kept, more | done.get(n, 0))
        listed = {state: tuple(found.values()) for state, found in inside.items()}
        return Component(listed, bits, 2 * reached - 1, sum(was_enabled.values()), len(strong))
