"""A state graph as a standalone SVG picture: nothing fetched, readable in light, in dark and without colour.

States stand in layers by their distance from the initial ones, which have a double frame. A thick arrow leads to a
state from the one before it that its box compares it with; arrows that do not lead a layer down are dashed.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from itertools import pairwise

from harness.render.graph_layout import Item, Layers, LayoutLink, Route, lay_out
from harness.render.graph_picture import Arrow, Box, Picture

CHAR, LABEL_CHAR = 6.65, 6.05
LINE, LABEL_LINE = 14.0, 13.0
MARGIN, PAD = 18.0, 9.0
SPACING = 20.0
TURN = 8.0
"""How far from the middle of its label an arrow within a layer goes down and up."""
HEAD = 17.0
LEGEND = "double frame: initial; a box lists what is new since the state of its thick arrow; dashed: not a layer down"

STYLE = """
text { font-family: ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace; fill: #1b1f24; font-size: 11px; }
.title { font-size: 14px; font-weight: bold; }
.name { font-size: 12px; font-weight: bold; }
.label { font-size: 10px; text-anchor: middle; }
.quiet { fill: #57606a; }
.page { fill: #ffffff; }
.box { fill: #f6f8fa; stroke: #1b1f24; stroke-width: 1.3; }
.inner { fill: none; stroke: #1b1f24; stroke-width: 1.3; }
.arrow { fill: none; stroke: #57606a; stroke-width: 1.2; }
.first { stroke: #1b1f24; stroke-width: 2.4; }
.back { stroke-dasharray: 5 3; }
.tip { fill: #57606a; }
.tip-first { fill: #1b1f24; }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3; }
  .quiet { fill: #9aa4af; }
  .page { fill: #0f141a; }
  .box { fill: #171d25; stroke: #e6edf3; }
  .inner { stroke: #e6edf3; }
  .arrow { stroke: #9aa4af; }
  .first { stroke: #e6edf3; }
  .tip { fill: #9aa4af; }
  .tip-first { fill: #e6edf3; }
}
"""


def write_svg(shown: Picture) -> str:
    """Return a picture as an XML document."""
    boxes = [(box.depth, *_size(box)) for box in shown.boxes]
    links = [
        LayoutLink(arrow.source, arrow.target, max(map(len, arrow.labels)) * LABEL_CHAR + 6,
             len(arrow.labels) * LABEL_LINE + 4)
        for arrow in shown.arrows
    ]
    layers = lay_out(boxes, links, SPACING)
    head = [*shown.facts, LEGEND]
    top = MARGIN + 14 + len(head) * HEAD + 14
    width = max(layers.width, *(len(line) * CHAR for line in head), len(shown.title) * 8.5) + 2 * MARGIN
    height = top + layers.height + MARGIN
    left = (width - layers.width) / 2
    return "\n".join([
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" role="img">',
        f"<title>{escape(shown.title, quote=False)}</title>",
        f"<style>{STYLE}</style>",
        f'<rect class="page" width="{width:.0f}" height="{height:.0f}"/>',
        _text(MARGIN, MARGIN + 14, shown.title, "title"),
        *(_text(MARGIN, MARGIN + 14 + n * HEAD, line, "quiet") for n, line in enumerate(head, 1)),
        f'<g transform="translate({left:.1f} {top:.1f})">',
        *_arrows(shown, layers),
        *(part for box in shown.boxes for part in _box(box, layers.items[box.number])),
        "</g>",
        "</svg>",
    ]) + "\n"


def _size(box: Box) -> tuple[float, float]:
    longest = max(len(box.name) * 1.1, *map(len, box.text), 3) if box.text else max(len(box.name) * 1.1, 3)
    return longest * CHAR + 2 * PAD, (len(box.text) + 1) * LINE + 2 * PAD - 4


def _text(x: float, y: float, text: str, css: str = "") -> str:
    style = f' class="{css}"' if css else ""
    return f'<text x="{x:.1f}" y="{y:.1f}"{style}>{escape(text, quote=False)}</text>'


def _box(box: Box, item: Item) -> Iterable[str]:
    left, width, height = item.x - item.width / 2, item.width, item.height
    yield f'<rect class="box" x="{left:.1f}" y="{item.y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="4"/>'
    if box.is_initial:
        yield (f'<rect class="inner" x="{left + 3:.1f}" y="{item.y + 3:.1f}" width="{width - 6:.1f}" '
               f'height="{height - 6:.1f}" rx="2"/>')
    yield _text(left + PAD, item.y + PAD + 9, box.name, "name")
    for n, line in enumerate(box.text, 1):
        words = line.lstrip()
        yield _text(left + PAD + (len(line) - len(words)) * CHAR, item.y + PAD + 9 + n * LINE, words)


def _arrows(shown: Picture, layers: Layers) -> Iterable[str]:
    """The lines, then their labels on a ground of their own, so that no line runs through a label."""
    ports = _ports(shown, layers)
    for number, (arrow, route) in enumerate(zip(shown.arrows, layers.routes, strict=True)):
        yield from _line(number, arrow, route, layers.items, ports)
    for arrow, route in zip(shown.arrows, layers.routes, strict=True):
        item = layers.items[route.label]
        yield (f'<rect class="page" x="{item.x - item.width / 2:.1f}" y="{item.y:.1f}" width="{item.width:.1f}" '
               f'height="{item.height:.1f}"/>')
        for n, label in enumerate(arrow.labels, 1):
            yield _text(item.x, item.y + n * LABEL_LINE - 2, label, "label")


Ports = dict[tuple[int, int, bool], float]
"""Where the lines meet the boxes: x by number of the arrow, number of the box, and whether at the lower edge."""


def _ports(shown: Picture, layers: Layers) -> Ports:
    """Spread the ends of the lines over the edges of the boxes, in the order of where they come from."""
    ends: dict[tuple[int, bool], list[tuple[float, int]]] = {}
    for number, route in enumerate(layers.routes):
        first, last = route.items[0], route.items[-1]
        same = layers.items[first].layer == layers.items[last].layer
        ends.setdefault((first, True), []).append((layers.items[route.items[1]].x, number))
        ends.setdefault((last, same), []).append((layers.items[route.items[-2]].x, number))
    ports: Ports = {}
    for (box, lower), found in ends.items():
        item = layers.items[box]
        step = min(26.0, (item.width - 12) / len(found))
        for n, (_, number) in enumerate(sorted(found)):
            ports[number, box, lower] = item.x + (n - (len(found) - 1) / 2) * step
    return ports


def _line(number: int, arrow: Arrow, route: Route, items: tuple[Item, ...], ports: Ports) -> Iterable[str]:
    first, last = route.items[0], route.items[-1]
    same = items[first].layer == items[last].layer
    start = (ports[number, first, True], items[first].y + items[first].height)
    end = (ports[number, last, same], items[last].y + (items[last].height if same else 0))
    is_back = same or route.is_up
    css = "arrow" + (" first" if arrow.first else "") + (" back" if is_back else "")
    tip = "tip-first" if arrow.first else "tip"
    if same:
        label, to_the_right = items[route.label], start[0] < end[0]
        near, far = (label.x + (side if to_the_right else -side) for side in (-TURN, TURN))
        down = [start, (start[0], items[first].bottom), (near, label.y)]
        up = [(far, label.y), (end[0], items[last].bottom), (end[0], end[1] + 7)]
        path = f"{_curve(down)} {_curve(up)}"
        yield f'<path class="{css}" d="{path}"/>'
        yield _tip(end, upwards=True, css=tip)
        return
    yield f'<path class="{css}" d="{_curve(_points(start, end, route, items))}"/>'
    yield _tip(start if route.is_up else end, upwards=route.is_up, css=tip)


Point = tuple[float, float]


def _points(start: Point, end: Point, route: Route, items: tuple[Item, ...]) -> list[Point]:
    """Where a line runs: straight through its layers, so that it stays clear of the boxes there, up to its tip."""
    first, *between = route.items[:-1]
    points = [(start[0], start[1] + 7) if route.is_up else start, (start[0], items[first].bottom)]
    for n in between:
        points += [(items[n].x, items[n].top), (items[n].x, items[n].bottom)]
    return [*points, (end[0], end[1]) if route.is_up else (end[0], end[1] - 7)]


def _curve(points: list[Point]) -> str:
    path = f"M{_at(points[0])}"
    for one, other in pairwise(points):
        middle = (one[1] + other[1]) / 2
        straight = abs(one[0] - other[0]) < 0.05
        path += f" L{_at(other)}" if straight else f" C{_at((one[0], middle))} {_at((other[0], middle))} {_at(other)}"
    return path


def _at(point: Point) -> str:
    return f"{point[0]:.1f} {point[1]:.1f}"


def _tip(point: Point, upwards: bool, css: str) -> str:
    x, y = point
    back = y + 8 if upwards else y - 8
    return f'<path class="{css}" d="M{x:.1f} {y:.1f} L{x - 4:.1f} {back:.1f} L{x + 4:.1f} {back:.1f} Z"/>'
