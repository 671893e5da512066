"""A walk along the edges of a graph that a test draws, with a property of each temporal form."""

from __future__ import annotations

from collections.abc import Iterable

from harness.model import Model, Process, Step, View, always, eventually, leads_to

FAIR = {"A": "weak", "B": "strong", "C": "weak", "D": "strong"}
FORMS = ("Stays", "Again", "Once", "Answered")
Edge = tuple[int, str, int]


class Walker(Process):
    """Goes along the edges of a graph, drawn by the test; the action of an edge is its first letter."""

    name = "walker"

    def __init__(self, edges: Iterable[Edge]) -> None:
        self._edges = tuple(edges)

    def steps(self, view: View) -> Iterable[Step]:
        for n, (source, action, target) in enumerate(self._edges):
            if view["at"] == source:
                yield Step(action[0], tuple(action[1:]), (("at", target),), detail=f"{n}")


def walking(edges: Iterable[Edge], good: Iterable[int], asked: Iterable[int] = (0,), start: int = 0) -> Model:
    """Make a model of a walk: P holds in the good states, and requests are made in those that are asked."""
    fine, request = frozenset(good), frozenset(asked)

    def p(view: View) -> str | None:
        return None if view["at"] in fine else f"at {view['at']}"

    forms = (
        eventually("Stays", p), eventually("Again", p, again=True), eventually("Once", p, stays=False),
        leads_to("Answered", lambda view: view["at"] in request, p), always("Invariant", p),
    )
    return Model("walk", (Walker(edges),), ({"at": start},), properties=forms, fairness=FAIR)
