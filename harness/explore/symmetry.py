"""Symmetry: states that differ by a renaming of interchangeable names count as one (the exact quotient).

A model declares sets of interchangeable names. Renaming acts on every value and on the slots' indexes. The least packed
image under all renamings stands for its class: deterministic, and the same for every order of exploration.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from itertools import permutations, product
from typing import Any

import attrs

from harness.explore.layout import Field, Layout
from harness.model import FrozenMap, Value, parts, slot

Renaming = Mapping[str, str]


def renamings(groups: Iterable[tuple[str, ...]]) -> list[dict[str, str]]:
    """Return every renaming that permutes names within their group, but for the one that changes nothing."""
    each = [[dict(zip(group, images, strict=True)) for images in permutations(group)] for group in groups]
    found = []
    for choice in product(*each):
        merged = {name: image for part in choice for name, image in part.items() if name != image}
        if merged:
            found.append(merged)
    return found


def rename(value: Value, names: Renaming) -> Value:
    """Return a value with every name in it renamed."""
    if isinstance(value, str):
        return names.get(value, value)
    if isinstance(value, tuple):
        return tuple(rename(item, names) for item in value)
    if isinstance(value, frozenset):
        return frozenset(rename(item, names) for item in value)
    if isinstance(value, FrozenMap):
        return FrozenMap((rename(key, names), rename(item, names)) for key, item in value.items())
    if attrs.has(type(value)):
        fields = {field.name: rename(getattr(value, field.name), names) for field in attrs.fields(type(value))}
        return type(value)(**fields)
    return value


class Image:
    """One renaming, as tables from field ids to their place in the renamed packed state."""

    def __init__(self, layout: Layout, names: Renaming) -> None:
        self.layout = layout
        self.names = names
        targets = [layout.where[_renamed_slot(field.slots[0], names)][0] for field in layout.fields]
        self.lookups: list[tuple[int, int, dict[int, int], Any]] = []
        for field, target in sorted(zip(layout.fields, targets, strict=True), key=lambda pair: -pair[1].shift):
            table: dict[int, int] = {}
            self.lookups.append((field.shift, field.low, table, partial(self._fill, field, target, table)))

    def _fill(self, field: Field, target: Field, table: dict[int, int], at: int) -> int:
        found = target.intern(rename(field.values[at], self.names)) << target.shift
        table[at] = found
        return found


class Symmetry:
    """The quotient of a layout's states under renamings."""

    def __init__(self, layout: Layout, groups: Iterable[tuple[str, ...]]) -> None:
        self.layout = layout
        self.names = renamings(groups)
        self.restart()

    def restart(self) -> None:
        """Forget what depends on how states are packed."""
        self.images = [Image(self.layout, names).lookups for names in self.names]

    def least(self, state: int) -> int:
        """Return the state that stands for the class of a state."""
        best = state
        for lookups in self.images:
            image = 0
            for shift, low, table, fill in lookups:
                at = (state >> shift) & low
                found = table.get(at)
                image += fill(at) if found is None else found
                if image > best:
                    break
            else:
                if image < best:
                    best = image
        return best


def _renamed_slot(name: str, names: Renaming) -> str:
    variable, *index = parts(name)
    return slot(variable, *(names.get(part, part) for part in index))
