"""Where the boxes and labels of a layered drawing go: Sugiyama's method, with labels of arrows as boxes of their own.

Even layers hold the given boxes, by their depth. Between them are odd layers with the labels of arrows, and bends where
an arrow passes by. Within a layer, barycentres decide the order (fewest crossings found), and isotonic regression the
places: as close to the neighbours' as the order and the widths allow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import attrs

SWEEPS = 24
STRAIGHTENINGS = 40
GAP = 18.0
"""Between two things of a layer."""
BEND = 8.0
"""Width of a bend."""
SLOPE, STEEPEST = 0.07, 60.0
"""Layers are this much further apart, of how far an arrow between them goes sideways; and at most so much."""


@attrs.define
class Item:
    """A box, a label or a bend, in its layer. `x` and `y` are its middle and its upper edge.

    A bend is as high as its layer, which reaches from `top` to `bottom`.
    """

    layer: int
    width: float
    height: float
    x: float = 0.0
    y: float = 0.0
    top: float = 0.0
    bottom: float = 0.0
    above: list[int] = attrs.field(factory=list)
    below: list[int] = attrs.field(factory=list)


@attrs.frozen
class LayoutLink:
    """An arrow between two boxes to be laid out: their numbers, and the size of its label."""

    source: int
    target: int
    width: float
    height: float


@attrs.frozen
class Route:
    """How an arrow runs: the items from its upper end to its lower one, and whether it points upwards.

    An arrow between two boxes of one layer goes down to its label and up again: `label` is its lowest item.
    """

    items: tuple[int, ...]
    label: int
    is_up: bool


@attrs.frozen
class Layers:
    """A finished layout: the items, given boxes first, the routes of the links, and the size of it all."""

    items: tuple[Item, ...]
    routes: tuple[Route, ...]
    width: float
    height: float


def lay_out(boxes: Sequence[tuple[int, float, float]], links: Sequence[LayoutLink], spacing: float) -> Layers:
    """Lay boxes, given by depth, width and height, and the links between them out; layers are at least `spacing` apart.

    There is at least one box.
    """
    items = [Item(2 * depth, width, height) for depth, width, height in boxes]
    routes = [_route(items, link) for link in links]
    layers = _in_order(items)
    _place(items, layers)
    left = min(item.x - item.width / 2 for item in items)
    for item in items:
        item.x -= left
    y = 0.0
    for layer in layers:
        height = max(items[n].height for n in layer)
        for n in layer:
            item = items[n]
            item.height = item.height or height
            item.top, item.bottom = y, y + height
            item.y = y + (height - item.height) / 2 if item.layer % 2 else y
        sideways = max((abs(items[n].x - items[m].x) for n in layer for m in items[n].below), default=0.0)
        y += height + spacing + min(sideways * SLOPE, STEEPEST)
    width = max(item.x + item.width / 2 for item in items)
    return Layers(tuple(items), tuple(routes), width, max(item.bottom for item in items))


def _route(items: list[Item], link: LayoutLink) -> Route:
    """Add the label and the bends of a link, and join them."""
    one, other = items[link.source].layer, items[link.target].layer
    is_up = other < one
    top, bottom = (link.target, link.source) if is_up else (link.source, link.target)
    between = range(items[top].layer + 1, max(items[bottom].layer, items[top].layer + 2))
    if one == other:
        label = _added(items, one + 1, link.width, link.height)
        for end in (link.source, link.target):
            _join(items, end, label)
        return Route((link.source, label, link.target), label, False)
    at = between[len(between) // 2 // 2 * 2]
    path = [top]
    label = -1
    for layer in between:
        if layer == at:
            label = _added(items, layer, link.width, link.height)
        path.append(label if layer == at else _added(items, layer, BEND, 0.0))
        _join(items, path[-2], path[-1])
    path.append(bottom)
    _join(items, path[-2], bottom)
    return Route(tuple(path), label, is_up)


def _added(items: list[Item], layer: int, width: float, height: float) -> int:
    items.append(Item(layer, width, height))
    return len(items) - 1


def _join(items: list[Item], upper: int, lower: int) -> None:
    items[upper].below.append(lower)
    items[lower].above.append(upper)


def _in_order(items: list[Item]) -> list[list[int]]:
    """Return the layers, each in an order with few crossings."""
    layers: list[list[int]] = [[] for _ in range(max((item.layer for item in items), default=-1) + 1)]
    for n, item in enumerate(items):
        layers[item.layer].append(n)
    best, fewest = [list(layer) for layer in layers], crossings(items, layers)
    for sweep in range(SWEEPS):
        downwards = sweep % 2 == 0
        place = {n: at for layer in layers for at, n in enumerate(layer)}
        for layer in layers[1:] if downwards else reversed(layers[:-1]):
            layer.sort(key=lambda n: _barycentre(items[n].above if downwards else items[n].below, place, place[n]))
            place.update({n: at for at, n in enumerate(layer)})
        found = crossings(items, layers)
        if found < fewest:
            best, fewest = [list(layer) for layer in layers], found
        if not fewest:
            break
    return best


def _barycentre(neighbours: Sequence[int], place: Mapping[int, int], own: int) -> float:
    return sum(place[n] for n in neighbours) / len(neighbours) if neighbours else float(own)


def crossings(items: Sequence[Item], layers: Sequence[Sequence[int]]) -> int:
    """Return how often two lines between neighbouring layers cross."""
    count = 0
    for upper, lower in pairwise(layers):
        place = {n: at for at, n in enumerate(lower)}
        ends = [sorted(place[m] for m in items[n].below) for n in upper]
        seen: list[int] = []
        for targets in ends:
            count += sum(sum(other > target for other in seen) for target in targets)
            seen += targets
    return count


def _place(items: list[Item], layers: Sequence[Sequence[int]]) -> None:
    """Give every item its x: in order, apart, and as near to the middle of its neighbours as that allows."""
    for layer in layers:
        _settle(items, layer, [0.0 for _ in layer])
    for turn in range(STRAIGHTENINGS):
        downwards = turn % 2 == 0
        for layer in layers if downwards else reversed(layers):
            wanted = []
            for n in layer:
                near = items[n].above if downwards else items[n].below
                near = near or (items[n].below if downwards else items[n].above)
                wanted.append(sum(items[m].x for m in near) / len(near) if near else items[n].x)
            _settle(items, layer, wanted)


def _settle(items: list[Item], layer: Sequence[int], wanted: Sequence[float]) -> None:
    """Place a layer nearest to what is wanted, by least squares: isotonic regression of the places less the widths."""
    offsets = [0.0]
    for one, other in pairwise(layer):
        offsets.append(offsets[-1] + (items[one].width + items[other].width) / 2 + GAP)
    blocks: list[tuple[float, int]] = []
    for target, offset in zip(wanted, offsets, strict=True):
        total, count = target - offset, 1
        while blocks and blocks[-1][0] / blocks[-1][1] > total / count:
            before, members = blocks.pop()
            total, count = total + before, count + members
        blocks.append((total, count))
    free = [total / count for total, count in blocks for _ in range(count)]
    for n, base, offset in zip(layer, free, offsets, strict=True):
        items[n].x = base + offset
