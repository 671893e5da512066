"""The graph of a finished search, as the arrays that temporal properties are checked on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.explore.graph import StateGraph, StepName, load
from harness.explore.layout import PackedView
from harness.explore.search import Search
from harness.model import Value

WORD = 64


def graph_of(search: Search) -> StateGraph:
    """Return all states and edges that a complete search without symmetry and view has met. Raises Refusal."""
    np = load("numpy")
    loop, layout = search.loop, search.space.layout
    states = [state for level in range(len(loop.sizes())) for state in loop.level(level)] if layout.bits > 128 else []
    words = [] if states else [np.frombuffer(_words(search, level), dtype=np.uint64).reshape(-1, 2)
                               for level in range(len(loop.sizes()))]
    packed = np.concatenate(words) if words else None
    arrows = loop.arrows()
    names: dict[StepName, int] = {}
    label = np.array([
        names.setdefault(StepName(edge.step.action, edge.step.args, edge.step.label, ""), len(names))
        for edge in arrows.edges
    ], dtype=np.int64)

    def at(number: int) -> int:
        return states[number] if packed is None else int(packed[number, 0]) | int(packed[number, 1]) << WORD

    def state(number: int) -> Mapping[str, Value]:
        return PackedView(layout, at(number))

    def column(slot: str) -> Any:
        field, _ = layout.where[slot]
        if packed is None:
            return np.array([(state >> field.shift) & field.low for state in states], dtype=np.int64)
        shift, low = field.shift, np.uint64(field.low)
        if shift >= WORD:
            return ((packed[:, 1] >> np.uint64(shift - WORD)) & low).astype(np.int64)
        part = packed[:, 0] >> np.uint64(shift)
        if shift and shift + field.bits > WORD:
            part = part | (packed[:, 1] << np.uint64(WORD - shift))
        return (part & low).astype(np.int64)

    count = sum(loop.sizes())
    place = {at(number): number for number in range(loop.sizes()[0])}
    sources = np.asarray(arrows.sources)
    order = np.argsort(sources, kind="stable") if len(sources) and (np.diff(sources) < 0).any() else slice(None)
    return StateGraph(
        np.array([place[start] for start in search.starts]), sources[order], np.asarray(arrows.targets)[order],
        label[np.asarray(arrows.labels)][order] if len(sources) else label[:0], tuple(names), count, state, column,
    )


def _words(search: Search, level: int) -> Any:
    from harness.explore.kernel import KernelLoop
    from harness.explore.spool import to_words

    loop = search.loop
    return loop.words(level) if isinstance(loop, KernelLoop) else to_words(loop.level(level), 2)
