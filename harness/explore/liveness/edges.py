"""The edges of a state graph over arrays: out of which state they lead, and shortest ways along them."""

from __future__ import annotations

from harness.explore.liveness.graph import Array, StateGraph, load


class Edges:
    """The edges of a graph that change the state, sorted by source; edge numbers are those of this order."""

    def __init__(self, graph: StateGraph) -> None:
        np = load("numpy")
        sources, targets, labels = (np.asarray(a, dtype=np.int64) for a in (graph.sources, graph.targets, graph.labels))
        change = sources != targets
        if not change.all():
            sources, targets, labels = sources[change], targets[change], labels[change]
        if len(sources) and (sources[1:] < sources[:-1]).any():
            order = np.argsort(sources, kind="stable")
            sources, targets, labels = sources[order], targets[order], labels[order]
        self.count = graph.count
        self.names = graph.names
        self.sources, self.targets, self.labels = sources, targets, labels
        self.first = np.zeros(self.count + 1, dtype=np.int64)
        np.cumsum(np.bincount(sources, minlength=self.count), out=self.first[1:])

    def out_of(self, states: Array) -> Array:
        """Return the numbers of all edges out of some states, in the order of the states."""
        np = load("numpy")
        first = self.first[states]
        lengths = self.first[states + 1] - first
        before = np.cumsum(lengths) - lengths
        return np.repeat(first - before, lengths) + np.arange(int(lengths.sum()))


class Ways:
    """A shortest way to every state that can be reached from some states through allowed ones, by breadth first."""

    def __init__(self, edges: Edges, seeds: Array, levels: Array, allowed: Array | None) -> None:
        """Start at each of the `seeds` as if it took `levels` steps to get there."""
        np = load("numpy")
        self._sources = edges.sources
        self.distance = np.full(edges.count, -1, dtype=np.int64)
        """The length of a way to each state, -1 if it is unreachable."""
        self._came = np.full(edges.count, -1, dtype=np.int64)
        order = np.lexsort((seeds, levels))
        seeds, levels = seeds[order], levels[order]
        frontier, depth, at = seeds[:0], 0, 0
        while len(frontier) or at < len(seeds):
            depth = depth if len(frontier) else int(levels[at])
            upto = int(np.searchsorted(levels, depth, side="right"))
            new = seeds[at:upto][self.distance[seeds[at:upto]] < 0]
            at = upto
            self.distance[new] = depth
            followed = edges.out_of(np.union1d(frontier, new))
            targets = edges.targets[followed]
            fresh = self.distance[targets] < 0
            if allowed is not None:
                fresh &= allowed[targets]
            frontier, first = np.unique(targets[fresh], return_index=True)
            self._came[frontier] = followed[fresh][first]
            depth += 1
            self.distance[frontier] = depth

    def to(self, state: int) -> tuple[int, list[int]]:
        """Return the seed at which the way to a state begins, and its edges."""
        edges = []
        while (edge := int(self._came[state])) >= 0:
            edges.append(edge)
            state = int(self._sources[edge])
        return state, edges[::-1]
