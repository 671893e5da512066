"""Is this lasso a counterexample? An answer from the reference semantics alone, which the checker does not share.

The states are rebuilt by `Model.choices` and `Model.apply`. A step between two states is one of an action if the action
has a choice that leads from the one to the other, whatever the lasso calls it; a choice that changes nothing is no step
at all, for fairness neither enabled nor taken.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import attrs

from harness.model import Model, Property, State, View
from harness.record.trail import FAIRNESS

Fair = tuple[str, tuple[str, ...]]
"""An action and its arguments."""
ANY_STEP: Fair = ("any step", ())


@attrs.frozen
class Behaviour:
    """A run that goes on for ever: states up to where the cycle begins, then those of the cycle, over and over.

    A cycle of one state stands for staying there.
    """

    before: tuple[State, ...]
    cycle: tuple[State, ...]


def why_no_counterexample(
    model: Model, initial: int, prefix: Sequence[str], cycle: Sequence[str], property_name: str,
    fairness: str = "spec",
) -> str | None:
    """Return the first reason why a lasso does not refute a temporal property, or None: it does.

    `initial` says which of `model.initial_states()` it starts in, `prefix` and `cycle` are labels of choices; an empty
    cycle stands for staying. `fairness` is a mode of `fairness_of`, as `spec` (the model's own).
    """
    prop = {p.name: p for p in model.properties}.get(property_name)
    if prop is None or not prop.is_temporal:
        return f"{property_name} is not a temporal property of {model.name}"
    if not FAIRNESS["fairness"].fits(fairness):
        return f"there is no fairness {fairness!r}, only spec, none, action, weak and next"
    starts = model.initial_states()
    if not 0 <= initial < len(starts):
        return f"there is no initial state {initial}, only 0 to {len(starts) - 1}"
    states, problem = _replay(model, starts[initial], [*prefix, *cycle])
    if problem is not None:
        return problem
    if cycle:
        if states[-1] != states[len(prefix)]:
            return f"the cycle does not close: its last step does not lead back to state {len(prefix) + 1}"
        states.pop()
    behaviour = Behaviour(tuple(states[: len(prefix)]), tuple(states[len(prefix) :]))
    return _why_it_holds(prop, behaviour) or _why_unfair(model, behaviour, fairness)


def _replay(model: Model, state: State, labels: Iterable[str]) -> tuple[list[State], str | None]:
    """Return the states that the labels lead through, or what is wrong with them."""
    if not model.is_inside(state):
        return [], "state 1 is out of the model's bounds"
    states = [state]
    for number, label in enumerate(labels, 1):
        after = [model.apply(state, choice) for choice in model.choices(state) if choice.label == label]
        if not after:
            return states, f"step {number}, {label}, is not possible in state {number}"
        if any(other != after[0] for other in after):
            return states, f"step {number}, {label}, names several steps of state {number} with different effects"
        state = after[0]
        if not model.is_inside(state):
            return states, f"step {number}, {label}, leads out of the model's bounds"
        states.append(state)
    return states, None


def _why_it_holds(prop: Property, run: Behaviour) -> str | None:
    """Say why a run that goes on for ever satisfies a property, or return None: it violates it."""
    first, cycle_from = prop.check, len(run.before) + 1
    then = prop.leads_to if prop.leads_to is not None else prop.reason
    waits_before = [then(View(state)) is not None for state in run.before]
    waits = [then(View(state)) is not None for state in run.cycle]
    match prop.form:
        case "<>[]":
            return None if any(waits) else f"{prop.name} is not violated: it is true in every state of the cycle"
        case "[]<>":
            if all(waits):
                return None
            return f"{prop.name} is not violated: it is true in state {cycle_from + waits.index(False)}, over and over"
        case "<>":
            everywhere = [*waits_before, *waits]
            if all(everywhere):
                return None
            return f"{prop.name} is not violated: it is true in state {everywhere.index(False) + 1}"
    if not all(waits):
        return f"{prop.name} is not violated: its end is true in state {cycle_from + waits.index(False)}, over and over"
    open_from = max((n for n, waiting in enumerate(waits_before, 1) if not waiting), default=0)
    if any(first(View(state)) for state in [*run.before, *run.cycle][open_from:]):
        return None
    return f"{prop.name} is not violated: its beginning is not true anywhere after state {open_from}"


def _why_unfair(model: Model, run: Behaviour, fairness: str) -> str | None:
    """Say which fairness assumption the cycle breaks, and how, or return None."""
    if fairness == "none":
        return None
    base, *strong = fairness.split(",")
    strengths = {ANY_STEP[0]: "weak"} if base == "next" else model.fairness if base == "spec" else {
        action: "strong" if action in strong else "weak" for action in model.fairness
    }
    following = (*run.cycle[1:], run.cycle[0])
    enabled: list[set[Fair]] = []
    taken: set[Fair] = set()
    for state, after in zip(run.cycle, following, strict=True):
        possible: set[Fair] = set()
        for choice in model.choices(state):
            reached = model.apply(state, choice)
            if reached != state:
                args = choice.step.args if base != "action" else ()
                fair = ANY_STEP if base == "next" else (choice.step.action, args)
                possible.add(fair)
                if reached == after:
                    taken.add(fair)
        enabled.append(possible)
    for fair in sorted(set().union(*enabled) - taken):
        strength = strengths.get(fair[0])
        name = f"{fair[0]}({','.join(fair[1])})" if fair[1] else fair[0]
        if strength == "weak" and all(fair in possible for possible in enabled):
            return f"the cycle is not fair: {name} is weakly fair and enabled all the time, but never taken"
        if strength == "strong":
            return f"the cycle is not fair: {name} is strongly fair and enabled again and again, but never taken"
    return None
