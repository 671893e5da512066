"""State graphs over the reference semantics: short, slow, and the oracle for every faster builder."""

from __future__ import annotations

from collections.abc import Mapping

from harness.explore.liveness.graph import StateGraph, StepName, load
from harness.explore.plain import Traversal
from harness.model import Model, Value


def plain_graph(model: Model) -> StateGraph:
    """Build the graph of a model over the reference semantics, in breadth-first order. Raises Refusal.

    Steps that leave a constraint are left out, as are the states that they lead to.
    """
    np = load("numpy")
    slots = tuple(model.initial_states()[0])
    values: list[dict[Value, int]] = [{} for _ in slots]
    names: dict[StepName, int] = {}
    sources, targets, labels = [], [], []

    def row(state: Mapping[str, Value]) -> tuple[int, ...]:
        return tuple([table.setdefault(state[name], len(table)) for name, table in zip(slots, values, strict=True)])

    known = Traversal(model, row)
    rows: list[tuple[int, ...]] = []
    for number, here, transitions in known:
        rows.append(row(here))
        for choice, _, target in transitions:
            if target is not None:
                name = StepName(choice.step.action, choice.step.args, choice.label, choice.process)
                sources.append(number)
                targets.append(target)
                labels.append(names.setdefault(name, len(names)))
    listed: list[list[Value]] = [list(table) for table in values]
    table = np.array(rows, dtype=np.int32)
    at = {name: n for n, name in enumerate(slots)}

    def state(number: int) -> dict[str, Value]:
        return {name: value[n] for name, value, n in zip(slots, listed, rows[number], strict=True)}

    return StateGraph(
        np.array(known.initial), np.array(sources, dtype=np.int64), np.array(targets, dtype=np.int64),
        np.array(labels, dtype=np.int64), tuple(names), len(rows), state, lambda name: table[:, at[name]],
    )
