"""Temporal properties checked on the plain graph of a model; the independent check takes every lasso."""

from __future__ import annotations

from harness.explore.liveness.check import Lasso, check_temporal, fairness_of
from harness.explore.liveness.graph import StateGraph
from harness.explore.liveness.lasso import why_no_counterexample
from harness.model import Model
from support.searches.plain_graph import plain_graph


def why_not(model: Model, lasso: Lasso, fairness: str = "spec") -> str | None:
    """Return why a lasso is no counterexample."""
    return why_no_counterexample(model, lasso.initial, lasso.prefix, lasso.cycle, lasso.name, fairness)


def checked(model: Model, name: str, fairness: str = "spec", graph: StateGraph | None = None) -> Lasso | None:
    """Check a property; the independent check must take the lasso, if there is one."""
    lasso = check_temporal(graph or plain_graph(model), model, name, fairness_of(model, fairness))
    assert lasso is None or why_not(model, lasso, fairness) is None
    return lasso


def violated(model: Model, name: str, fairness: str = "spec", graph: StateGraph | None = None) -> Lasso:
    """Check a property that does not hold."""
    lasso = checked(model, name, fairness, graph)
    assert lasso is not None
    return lasso
