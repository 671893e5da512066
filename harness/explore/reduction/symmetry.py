"""Symmetry: states that differ by a renaming of interchangeable names count as one (the exact quotient).

A model declares sets of interchangeable names. Renaming acts on every value and on the slots' indexes. The least image
under all renamings stands for its class. It is found part by part: fields that renamings exchange form an orbit; for
the values of an orbit, given which renamings are still candidates, a table says what the least image of that part is
and which candidates give it. Few candidates are left after few orbits, so a look-up per orbit is all it takes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import permutations, product
from math import prod
from typing import Any

import attrs

from harness.explore.packed.layout import PackedField, PackedLayout
from harness.model import FrozenMap, Value, parts, slot

Renaming = Mapping[str, str]


def renamings(groups: Iterable[tuple[str, ...]]) -> list[dict[str, str]]:
    """Return every renaming that permutes names within their group, the one that changes nothing first."""
    each = [[dict(zip(group, images, strict=True)) for images in permutations(group)] for group in groups]
    found = []
    for choice in product(*each):
        found.append({name: image for part in choice for name, image in part.items() if name != image})
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
        changes = {
            field.alias or field.name: rename(getattr(value, field.name), names) for field in attrs.fields(type(value))
        }
        return attrs.evolve(value, **changes)
    return value


def renamed_slot(name: str, names: Renaming) -> str:
    """Return the slot that a slot becomes."""
    return slot(*(names.get(part, part) for part in parts(name)))


class Image:
    """One renaming: to which field each field goes, and to which id each id."""

    def __init__(self, layout: PackedLayout, names: Renaming) -> None:
        self.names = names
        self.targets = [layout.where[renamed_slot(field.slots[0], names)][0] for field in layout.fields]
        self.ids: list[dict[int, int]] = [{} for _ in layout.fields]

    def id(self, field: PackedField, at: int) -> int:
        """Return the id, in the target field, of a renamed value. Raises Overflow."""
        ids = self.ids[field.number]
        found = ids.get(at)
        if found is None:
            found = ids[at] = self.targets[field.number].intern(rename(field.values[at], self.names))
        return found


MANY = 5_000
"""Combinations of an orbit's values beyond which its fields are looked up one by one, where that can be."""
FEW = 100
"""Combinations up to which neighbouring orbits are looked up as one."""


OrbitImage = tuple[int, int, "OrbitTable | None", int, Callable[[int], Any]]
"""The image of a part, the mask of what stays as it is, and the node to look in next with its mask and look-up."""


class OrbitTable:
    """A table for one orbit, or one field of it, and the renamings that are still candidates."""

    __slots__ = ("candidates", "fields", "mask", "place", "table")

    def __init__(self, place: tuple[int, int], candidates: tuple[int, ...], fields: list[PackedField]) -> None:
        self.place = place
        """The number of the orbit, and of the field in it (0 if the whole orbit is looked up)."""
        self.candidates = candidates
        self.fields = fields
        self.mask = sum(field.mask for field in fields)
        self.table: dict[int, OrbitImage] = {}


class Symmetry:
    """The quotient of a layout's states under renamings."""

    def __init__(
        self, layout: PackedLayout, groups: Iterable[tuple[str, ...]], order: Sequence[tuple[list[int], bool]] = ()
    ) -> None:
        self.layout = layout
        self.images = [Image(layout, names) for names in renamings(groups)]
        self.orbits: list[list[PackedField]] = []
        self.order(order)

    def ordered(self) -> list[tuple[list[int], bool]]:
        """Return the order that was decided: the fields of each orbit, and whether they are looked up one by one."""
        numbers = [[field.number for field in orbit] for orbit in self.orbits]
        return list(zip(numbers, self.splits, strict=True))

    def order(self, decided: Sequence[tuple[list[int], bool]] = ()) -> None:
        """Put orbits with few values first: they say cheaply which renamings remain. Decided once per search.

        Channels come last: at the start of a search they have few values, and most in the end.
        """
        if decided:
            self.orbits = [[self.layout.fields[number] for number in numbers] for numbers, _ in decided]
            self.splits = [split for _, split in decided]
            return self.repack()
        orbits: dict[int, list[PackedField]] = {}
        for field in self.layout.fields:
            orbit = sorted({image.targets[field.number].number for image in self.images})
            orbits[orbit[0]] = [self.layout.fields[number] for number in orbit]

        def combinations(orbit: list[PackedField]) -> int:
            most = max(len(field.values) for field in orbit)
            return int(most ** len(orbit))

        channels = set(self.layout.channels.values())
        self.orbits = []
        for fields in sorted(
            orbits.values(), key=lambda orbit: (orbit[0] in channels, combinations(orbit), orbit[0].number)
        ):
            joined = [*self.orbits[-1], *fields] if self.orbits else fields
            if self.orbits and fields[0] not in channels and prod(len(field.values) for field in joined) <= FEW:
                self.orbits[-1] = joined
            else:
                self.orbits.append(fields)
        self.splits = [orbit[0] in channels or combinations(orbit) > MANY for orbit in self.orbits]
        self.repack()

    def repack(self) -> None:
        """Forget what depends on how states are packed; the order of the orbits stays."""
        self.masks = [sum(field.mask for field in orbit) for orbit in self.orbits]
        self.nodes: dict[tuple[int, int, tuple[int, ...]], OrbitTable] = {}
        self.root = self._node(0, 0, tuple(range(len(self.images))))

    def _node(self, number: int, at: int, candidates: tuple[int, ...]) -> OrbitTable:
        key = (number, at, candidates)
        node = self.nodes.get(key)
        if node is None:
            fields = self.orbits[number]
            if self.splits[number] and (ordered := self._one_by_one(fields, candidates)):
                fields = [ordered[at]]
            node = self.nodes[key] = OrbitTable((number, at), candidates, fields)
        return node

    def _one_by_one(self, orbit: list[PackedField], candidates: tuple[int, ...]) -> list[PackedField]:
        """Return the fields of an orbit in the order of where they go, if all candidates agree on it; else nothing."""
        first, *others = [[self.images[n].targets[field.number].number for field in orbit] for n in candidates]
        if any(other != first for other in others):
            return []
        return [field for _, field in sorted(zip(first, orbit, strict=True), key=lambda pair: pair[0])]

    def fill(self, node: OrbitTable, state: int) -> OrbitImage:
        """Work out the least image of a part of a state, and which candidates give it. Raises Overflow."""
        number, at = node.place
        bits, left = self._least_part(node, state)
        at += len(node.fields)
        if at == len(self.orbits[number]):
            number, at = number + 1, 0
        stays, after = 0, None
        if number < len(self.orbits):
            if left == (0,) and not at:
                stays = sum(self.masks[number:])
            else:
                after = self._node(number, at, left)
        following = after or node
        result = (bits, stays, after, following.mask, following.table.get)
        node.table[state & node.mask] = result
        return result

    def _least_part(self, node: OrbitTable, state: int) -> tuple[int, tuple[int, ...]]:
        """Return the least image of the node's fields, compared in the order of the fields it fills."""
        ids = [(field, (state >> field.shift) & field.low) for field in node.fields]
        best: list[tuple[int, int]] | None = None
        left: list[int] = []
        for candidate in node.candidates:
            image = self.images[candidate]
            part = sorted((image.targets[field.number].number, image.id(field, at)) for field, at in ids)
            if best is None or part < best:
                best, left = part, [candidate]
            elif part == best:
                left.append(candidate)
        assert best is not None
        fields = self.layout.fields
        return sum(at << fields[number].shift for number, at in best), tuple(left)

    def least(self, state: int) -> int:
        """Return the state that stands for the class of a state."""
        image = 0
        node: OrbitTable | None = self.root
        mask: int = self.root.mask
        get: Callable[[int], Any] = self.root.table.get
        while node is not None:
            found = get(state & mask)
            if found is None:
                found = self.fill(node, state)
            bits, stays, node, mask, get = found
            image += bits
        return image + (state & stays) if stays else image
