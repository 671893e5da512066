"""What is to be seen of a state graph: a box per state with what is new in it, an arrow per pair of states; and as DOT.

Pure functions of a graph. Where things go is the affair of `graph_layout`, how they look that of `graph_svg`.
"""

from __future__ import annotations

import attrs

from harness.explore.graph_file import Graph
from harness.model import FrozenMap, Message, Value, canonical_sort
from harness.record.wording import counted
from harness.render.changes import difference
from harness.render.text import wrap

LINE = 46
"""Characters of a line in a box."""
MOST_LINES = 9
"""Lines about what is new in a state; what is more is counted."""


@attrs.frozen
class Box:
    """A state: its number, its distance from the initial ones, what is new, and the steps that lead back to itself."""

    number: int
    depth: int
    is_initial: bool
    lines: tuple[str, ...]
    loops: tuple[str, ...]

    @property
    def name(self) -> str:
        """What the box is called."""
        return f"{self.number} initial" if self.is_initial else str(self.number)

    @property
    def text(self) -> tuple[str, ...]:
        """All that is written in the box below its name."""
        return (*self.lines, *(f"loop: {label}" for label in self.loops))


@attrs.frozen
class Arrow:
    """The steps from one state to another one: their labels, and whether the state was found by them."""

    source: int
    target: int
    labels: tuple[str, ...]
    first: bool


@attrs.frozen
class Picture:
    """A graph, ready to be drawn. `facts` are lines that say what it is the graph of."""

    title: str
    facts: tuple[str, ...]
    boxes: tuple[Box, ...]
    arrows: tuple[Arrow, ...]


def picture(graph: Graph) -> Picture:
    """Return what is to be seen of a graph."""
    labels: dict[tuple[int, int], dict[str, None]] = {}
    for source, label, target in graph.edges:
        labels.setdefault((source, target), {})[label] = None
    parents = [graph.edges[by][0] if by >= 0 else None for by in graph.found_by]
    depths = graph.depths()
    boxes = []
    for number, parent in enumerate(parents):
        before = parent if parent is not None else graph.initial[0]
        lines = _lines(news(graph, before, number))
        loops = tuple(labels.get((number, number), {}))
        boxes.append(Box(number, depths[number], parent is None, lines, loops))
    arrows = [
        Arrow(source, target, tuple(found), parents[target] == source)
        for (source, target), found in labels.items() if source != target
    ]
    return Picture(graph.model.name, facts(graph), tuple(boxes), tuple(arrows))


def facts(graph: Graph) -> tuple[str, ...]:
    """Return what a graph is the graph of, and how large it is."""
    model = graph.model
    given = [f"{name}={value}" for name, value in (*model.sizes.items(), *model.settings.items()) if value != ""]
    shown = [" ".join(given)] if given else []
    names = [*sorted(graph.hidden.variables),
             *(f"{v}.{f}" for v, fields in sorted(graph.hidden.fields.items()) for f in sorted(fields))]
    if names:
        shown.append(f"not told apart by {', '.join(names)}")
    size = f"{counted(len(graph.rows), 'state')}, {counted(len(graph.edges), 'step')}, depth {max(graph.depths()) + 1}"
    return (*shown, size)


def news(graph: Graph, before: int, after: int) -> list[str]:
    """Return what is different in a state, in the spec's variables, a phrase each; not what is hidden."""
    old, new = (graph.model.variables(graph.state(number)) for number in (before, after))
    found: list[str] = []
    for name in new:
        if name in graph.hidden.variables or old[name] == new[name]:
            continue
        fields = graph.hidden.fields.get(name, frozenset())
        found += [phrase for phrase in _differences(name, old[name], new[name]) if not _is_about(phrase, fields)]
    return found


def _differences(name: str, old: Value, new: Value) -> list[str]:
    if isinstance(old, frozenset) and isinstance(new, frozenset) and any(isinstance(m, Message) for m in old | new):
        gone = [f"{name} - {_brief(item)}" for item in canonical_sort(old - new)]
        return gone + [f"{name} + {_brief(item)}" for item in canonical_sort(new - old)]
    return [phrase.replace("->", " -> ") for phrase in difference(name, _plain(old), _plain(new))]


def _plain(value: Value) -> Value:
    """Return a value whose strings of TLA+, `{"$str": x}`, are plain text."""
    if isinstance(value, tuple):
        return tuple(_plain(item) for item in value)
    if isinstance(value, frozenset):
        return frozenset(_plain(item) for item in value)
    if isinstance(value, FrozenMap):
        plain = FrozenMap((key, _plain(item)) for key, item in value.items())
        return plain["$str"] if set(plain) == {"$str"} else plain
    return value


def _brief(value: Value) -> str:
    return value.brief() if isinstance(value, Message) else str(value)


def _is_about(phrase: str, fields: frozenset[str]) -> bool:
    """Say whether the path that a phrase begins with ends in one of the fields."""
    path = phrase.split(" ")[0]
    return any(path.endswith((f".{field}", f"[{field}]")) for field in fields)


def _lines(phrases: list[str]) -> tuple[str, ...]:
    lines: list[str] = []
    for n, phrase in enumerate(phrases):
        wrapped = wrap(phrase, LINE, "  ", 3)
        if len(lines) + len(wrapped) > MOST_LINES:
            return (*lines, f"... and {len(phrases) - n} more")
        lines += wrapped
    return tuple(lines)


def write_dot(shown: Picture) -> str:
    """Return a picture in the language of Graphviz."""
    lines = [
        f"digraph {_quoted(shown.title)} {{",
        f"  label={_quoted('; '.join((shown.title, *shown.facts)))}; labelloc=t; rankdir=TB;",
        "  node [shape=box fontname=monospace fontsize=10]; edge [fontname=monospace fontsize=9];",
    ]
    for box in shown.boxes:
        text = "".join(_escaped(line) + r"\l" for line in (box.name, *box.text))
        double = " peripheries=2" if box.is_initial else ""
        lines.append(f'  s{box.number} [label="{text}"{double}];')
    for arrow in shown.arrows:
        text = r"\n".join(map(_escaped, arrow.labels))
        bold = " style=bold" if arrow.first else ""
        back = " constraint=false" if shown.boxes[arrow.target].depth <= shown.boxes[arrow.source].depth else ""
        lines.append(f'  s{arrow.source} -> s{arrow.target} [label="{text}"{bold}{back}];')
    return "\n".join([*lines, "}"]) + "\n"


def _quoted(text: str) -> str:
    return f'"{_escaped(text)}"'


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
