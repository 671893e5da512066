"""Fairness over the arrays of a state graph: which steps may not be put off for ever, and where that can be kept up.

Fairness is per action and its arguments, as in the specs; only `action` has one condition for all arguments. An action
counts as enabled, and as taken, only by steps that change the state.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

import attrs

from harness.explore.liveness.edges import Edges
from harness.explore.liveness.graph import Array, load
from harness.model import Model, Refusal, unknown

MODES = ("spec", "none", "action", "weak", "next")
STRENGTHS = ("weak", "strong")
WHOLE = "any step"
"""The name of the one instance of `WF_vars(Next)`."""


@attrs.frozen
class Fairness:
    """What may not be put off for ever: `actions` weakly or strongly fair, or `whole`, WF_vars(Next)."""

    actions: Mapping[str, str] = attrs.field(factory=dict)
    whole: bool = False
    per_arguments: bool = True
    """Whether each choice of an action's arguments has a condition of its own."""

    @property
    def asks_for_nothing(self) -> bool:
        return not self.actions and not self.whole


def fairness_of(model: Model, mode: str) -> Fairness:
    """Return what a mode asks for: `spec` is the model's own formula, `next` WF_vars(Next). Raises Refusal.

    `weak` makes the formula's actions weakly fair, but those strongly that are named behind it (`weak,SendRequest`);
    `action` makes them weakly fair as if their arguments were chosen inside. A fair action that has no step at this
    size asks for nothing.
    """
    base, *strong = mode.split(",")
    if base not in MODES or (strong and base != "weak"):
        raise Refusal(f"fairness must be one of {', '.join(MODES)}, or weak,ACTION for a strong one, not {mode!r}")
    if base in ("none", "next"):
        return Fairness(whole=base == "next")
    for action, strength in model.fairness.items():
        if strength not in STRENGTHS:
            raise Refusal(f"{model.name} has {strength!r} fairness for {action}; it must be weak or strong")
    for action in strong:
        if action not in model.fairness:
            raise Refusal(unknown(f"{action} is not a fair action of {model.name}", action, model.fairness, "they are"))
    if base == "spec":
        return Fairness(model.fairness)
    actions = {action: "strong" if action in strong else "weak" for action in model.fairness}
    return Fairness(actions, per_arguments=base == "weak")


@attrs.frozen
class FairnessCondition:
    """One condition of a fairness formula: an action with its arguments, or every step."""

    name: str
    strong: bool

    @property
    def formula(self) -> str:
        return f"{'SF' if self.strong else 'WF'}({self.name})"


class FairnessConditions:
    """The conditions of a fairness formula that a graph knows: where each is enabled, and which edges take it."""

    def __init__(self, edges: Edges, fairness: Fairness) -> None:
        np = load("numpy")
        number_of: dict[tuple[str, tuple[str, ...]], int] = {}
        found: list[FairnessCondition] = []
        of_label = np.full(len(edges.names), -1, dtype=np.int16 if len(edges.names) < 2**15 else np.int32)
        for label, name in enumerate(edges.names):
            if fairness.whole:
                of_label[label] = 0
            elif name.action in fairness.actions:
                args = name.args if fairness.per_arguments else ()
                key = (name.action, args)
                if key not in number_of:
                    number_of[key] = len(found)
                    shown = f"{name.action}({','.join(args)})" if args else name.action
                    found.append(FairnessCondition(shown, fairness.actions[name.action] == "strong"))
                of_label[label] = number_of[key]
        if fairness.whole:
            found.append(FairnessCondition(WHOLE, strong=False))
        self.listed = tuple(found)
        self.of_edge = of_label[edges.labels]
        """For each edge the number of the condition that it takes, -1 if it takes none."""
        order = np.argsort(self.of_edge, kind="stable")
        bounds = np.searchsorted(self.of_edge[order], np.arange(len(found) + 1)).tolist()
        self.taken_by = [order[low:high] for low, high in pairwise(bounds)]
        """For each condition the edges that take it, by source."""
        self.urgent = np.zeros(edges.count, dtype=bool)
        """States in which some fair step is enabled, so that no fair run stays there for ever."""
        self.urgent[edges.sources[self.of_edge >= 0]] = True


class Components:
    """The parts of a graph, each strongly connected, in which a run can go round for ever and be fair.

    `states` are those of all parts, part by part; part n is `states[bounds[n]:bounds[n + 1]]`. Every fair cycle of more
    than one state lies in a part; staying in one state for ever is not a matter of parts.
    """

    def __init__(self, edges: Edges, instances: FairnessConditions, allowed: Array, goal: Array | None) -> None:
        """Find the parts among the `allowed` states, each with a state of `goal` if that is given.

        Parts that break weak fairness are dropped whole. If a strongly fair step is enabled but never taken inside, the
        states that enable it go, and the rest falls into new parts.
        """
        np = load("numpy")
        self._goal = goal
        self._sources, self._targets = edges.sources, edges.targets
        self._conditions = [
            (instance.strong, edges.sources[taken], edges.targets[taken])
            for instance, taken in zip(instances.listed, instances.taken_by, strict=True)
        ]
        self._enabled = [_without_repeats(sources) for _, sources, _ in self._conditions]
        parts: list[Array] = [np.zeros(0, dtype=np.int64)]
        sizes: list[Array] = [np.zeros(1, dtype=np.int64)]
        local = np.empty(edges.count, dtype=np.int32)
        states = np.flatnonzero(allowed)
        while len(states):
            _number(local, states)
            states, part = self._strongly_connected(local, states)
            _number(local, states)
            gone, open_ = self._unfair(local, part)
            closed = ~open_[part]
            parts.append(states[closed][np.argsort(part[closed], kind="stable")])
            sizes.append(np.bincount(part)[~open_])
            states = states[~closed & ~gone]
        self.states = np.concatenate(parts)
        self.bounds = np.cumsum(np.concatenate(sizes))

    def _strongly_connected(self, local: Array, states: Array) -> tuple[Array, Array]:
        """Return the states in strongly connected parts of two or more, and the number of each one's part."""
        np, sparse, csgraph = load("numpy"), load("scipy.sparse"), load("scipy.sparse.csgraph")
        self._sources, self._targets = _among(local, self._sources, self._targets)
        rows, columns = local[self._sources], local[self._targets]
        first = np.zeros(len(states) + 1, dtype=np.int32)
        np.cumsum(np.bincount(rows, minlength=len(states)), out=first[1:])
        matrix = sparse.csr_matrix((np.ones(len(rows)), columns, first), shape=(len(states), len(states)))
        matrix.sum_duplicates()  # SciPy never comes to an end where an edge is there twice
        _, part = csgraph.connected_components(matrix, directed=True, connection="strong")
        several = (np.bincount(part) >= 2)[part]
        return states[several], np.unique(part[several], return_inverse=True)[1]

    def _unfair(self, local: Array, part: Array) -> tuple[Array, Array]:
        """Return, as masks, the states to take out and the parts that lose some."""
        np = load("numpy")
        size = np.bincount(part)
        dropped = np.zeros(len(size), dtype=bool)
        if self._goal is not None:
            dropped[:] = True
            dropped[part[local[self._goal & (local >= 0)]]] = False
        gone = np.zeros(len(part), dtype=bool)
        for n, (strong, sources, targets) in enumerate(self._conditions):
            sources, targets = _among(local, sources, targets)
            enabled = self._enabled[n][local[self._enabled[n]] >= 0]
            self._conditions[n], self._enabled[n] = (strong, sources, targets), enabled
            home, where = part[local[sources]], part[local[enabled]]
            taken = np.zeros(len(size), dtype=bool)
            taken[home[home == part[local[targets]]]] = True
            if strong:
                gone[local[enabled[~taken[where]]]] = True
            else:
                dropped |= (np.bincount(where, minlength=len(size)) == size) & ~taken
        gone |= dropped[part]
        open_ = np.zeros(len(size), dtype=bool)
        open_[part[gone]] = True
        return gone, open_


def _without_repeats(ordered: Array) -> Array:
    np = load("numpy")
    return ordered[np.concatenate((np.ones(min(len(ordered), 1), dtype=bool), ordered[1:] != ordered[:-1]))]


def _number(local: Array, states: Array) -> None:
    """Give the states numbers from 0 on, and all others -1."""
    local.fill(-1)
    local[states] = load("numpy").arange(len(states))


def _among(local: Array, sources: Array, targets: Array) -> tuple[Array, Array]:
    """Return the ends of the edges that lie among the numbered states."""
    inside = (local[sources] >= 0) & (local[targets] >= 0)
    return sources[inside], targets[inside]
