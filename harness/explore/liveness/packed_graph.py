"""The graph of a finished search, as the arrays that temporal properties are checked on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.explore.liveness.graph import StateGraph, StepName, load
from harness.explore.packed.layout import PackedField, PackedView
from harness.explore.packed.search import Search
from harness.explore.packed.spool import to_words
from harness.model import Value, canonical_text

WORD = 64


def graph_of(search: Search, in_order: bool = False) -> StateGraph:
    """Return all states and edges that a complete search without symmetry and view has met. Raises Refusal.

    States are numbered as the search met them; `in_order` numbers them, on each level, by their values instead, and
    sorts names and edges, so that the graph is the same whatever the engine.
    """
    np = load("numpy")
    loop, layout = search.loop, search.space.layout
    packed = _PackedStates(search)
    arrows = loop.arrows()
    steps = [StepName(e.step.action, e.step.args, e.step.label, "") for e in arrows.edges]
    unique = list(dict.fromkeys(steps))
    if in_order:
        unique.sort(key=lambda name: (name.label, name.action))
    names = {name: n for n, name in enumerate(unique)}
    place = {packed.at(number): number for number in range(loop.sizes()[0])}
    initial = np.array([place[start] for start in search.starts])
    sources, targets = np.asarray(arrows.sources), np.asarray(arrows.targets)
    labels = np.array([names[step] for step in steps], dtype=np.int64)[np.asarray(arrows.labels)]
    count = sum(loop.sizes())
    numbers = packed.in_order() if in_order else np.arange(count)
    if in_order:
        renumbered = np.empty(count, dtype=np.int64)
        renumbered[numbers] = np.arange(count)
        initial, sources, targets = renumbered[initial], renumbered[sources], renumbered[targets]
        order = np.lexsort((targets, labels, sources))
    else:
        order = np.argsort(sources, kind="stable") if (np.diff(sources) < 0).any() else slice(None)

    def state(number: int) -> Mapping[str, Value]:
        return PackedView(layout, packed.at(int(numbers[number])))

    def column(slot: str) -> Any:
        return packed.column(layout.where[slot][0])[numbers]

    return StateGraph(
        initial, sources[order], targets[order], labels[order], tuple(unique), count, state, column
    )


class _PackedStates:
    """All states of a search, by number: as an array of words, or as integers where they are wider."""

    def __init__(self, search: Search) -> None:
        self.np = load("numpy")
        self.loop, self.layout = search.loop, search.space.layout
        levels = range(len(self.loop.sizes()))
        self.wide = self.layout.bits > 2 * WORD
        if self.wide:
            self.states = [state for level in levels for state in self.loop.level(level)]
        else:
            loop = self.loop
            kept = [loop.words(level) if loop.width == 2 else to_words(loop.level(level), 2) for level in levels]
            words = [self.np.frombuffer(level, dtype=self.np.uint64).reshape(-1, 2) for level in kept]
            self.words = self.np.concatenate(words)

    def at(self, number: int) -> int:
        """Return a packed state."""
        return self.states[number] if self.wide else int(self.words[number, 0]) | int(self.words[number, 1]) << WORD

    def column(self, field: PackedField) -> Any:
        """Return the ids that a field has, one per state."""
        np, shift = self.np, field.shift
        if self.wide:
            return np.array([(state >> shift) & field.low for state in self.states], dtype=np.int64)
        low = np.uint64(field.low)
        if shift >= WORD:
            return ((self.words[:, 1] >> np.uint64(shift - WORD)) & low).astype(np.int64)
        part = self.words[:, 0] >> np.uint64(shift)
        if shift and shift + field.bits > WORD:
            part = part | (self.words[:, 1] << np.uint64(WORD - shift))
        return (part & low).astype(np.int64)

    def in_order(self) -> Any:
        """Return the numbers of the states level by level, on each level by the values of their slots."""
        np = self.np
        keys = [np.repeat(np.arange(len(self.loop.sizes())), self.loop.sizes())]
        combinations = len(self.loop.sizes())
        for field in sorted(self.layout.fields, key=lambda field: field.slots):
            texts = [canonical_text(values) for values in field.values]
            ranks = np.empty(len(texts), dtype=np.int64)
            ranks[sorted(range(len(texts)), key=texts.__getitem__)] = np.arange(len(texts))
            if combinations * len(texts) >= 1 << 62:
                keys.append(np.zeros_like(keys[0]))
                combinations = 1
            keys[-1] = keys[-1] * len(texts) + ranks[self.column(field)]
            combinations *= len(texts)
        return np.lexsort(keys[::-1])
