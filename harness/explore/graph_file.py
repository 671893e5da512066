"""The whole state graph of a model: built over the reference semantics, and written as the reference graphs are.

What tells states apart are the spec's variables, those aside that are hidden: of states that agree in all others the
first one found, in breadth-first order, stands for the rest, as under the model checker's VIEW. `graph_lines` writes
any graph, however it was built.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain, pairwise
from typing import Any

import attrs

from harness.explore.plain import Traversal
from harness.model import FrozenMap, Model, Refusal, State, Value, unknown
from harness.model.improper import blamed
from harness.record.tla_values import tla_state

Edge = tuple[int, str, int]
Progress = Callable[[int, int, int], None]
REPORT_EVERY = 1000


@attrs.frozen
class Hidden:
    """What does not tell states apart: variables of the spec, and fields of the records in them."""

    variables: frozenset[str] = frozenset()
    fields: Mapping[str, frozenset[str]] = attrs.field(factory=dict)

    def __bool__(self) -> bool:
        return bool(self.variables or self.fields)

    def of(self, variables: Mapping[str, Value]) -> dict[str, Value]:
        """Return the variables of a state without what is hidden; records that lose a field become maps."""
        return {
            name: without(value, self.fields[name]) if name in self.fields else value
            for name, value in variables.items() if name not in self.variables
        }


def without(value: Value, fields: frozenset[str]) -> Value:
    """Return a value whose outermost records have lost the given fields; the value itself if none is lost."""
    if isinstance(value, tuple):
        return tuple(without(item, fields) for item in value)
    if isinstance(value, frozenset):
        return frozenset(without(item, fields) for item in value)
    if isinstance(value, FrozenMap):
        if not fields.isdisjoint(value):
            return FrozenMap({key: item for key, item in value.items() if key not in fields})
        return FrozenMap({key: without(item, fields) for key, item in value.items()})
    if attrs.has(type(value)) and not isinstance(value, str):
        names = [field.name for field in attrs.fields(type(value))]
        if not fields.isdisjoint(names):
            return FrozenMap({name: getattr(value, name) for name in names if name not in fields})
    return value


def hidden(model: Model, names: Iterable[str]) -> Hidden:
    """Return what names like `VARIABLE` and `VARIABLE.field` hide. Raises Refusal for what the model does not have."""
    first = model.variables(model.initial_states()[0])
    whole: set[str] = set()
    fields: dict[str, set[str]] = {}
    for name in names:
        variable, dot, field = name.partition(".")
        if variable not in first:
            said = f"{model.name} has no variable {variable!r} to hide"
            raise Refusal(unknown(said, variable, first, "its variables are"))
        if not dot:
            whole.add(variable)
            continue
        known = sorted({*_fields(first[variable]), *(f.name for cls in model.types for f in attrs.fields(cls))})
        if field not in known:
            said = f"{model.name} has no record with a field {field!r} to hide"
            raise Refusal(unknown(said, field, known, "its records' fields are"))
        fields.setdefault(variable, set()).add(field)
    return Hidden(frozenset(whole), {variable: frozenset(found) for variable, found in fields.items()})


def _fields(value: Value) -> Iterator[str]:
    """The keys of all maps and the fields of all records in a value: what could be hidden in it."""
    if isinstance(value, tuple | frozenset):
        for item in value:
            yield from _fields(item)
    elif isinstance(value, FrozenMap):
        yield from (key for key in value if isinstance(key, str))
        for item in value.values():
            yield from _fields(item)
    elif attrs.has(type(value)) and not isinstance(value, str):
        yield from (field.name for field in attrs.fields(type(value)))


@attrs.frozen(eq=False)
class Graph:
    """All reachable states, by number in breadth-first order, and the steps between them."""

    model: Model
    hidden: Hidden
    slots: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]
    """For each state the values of the slots."""
    initial: tuple[int, ...]
    edges: tuple[Edge, ...]
    """Source, `Action(args)` and target of each step, sorted by source."""
    found_by: tuple[int, ...]
    """For each state the number of the edge by which it was found, -1 for an initial state."""

    def state(self, number: int) -> State:
        """Return a state."""
        return dict(zip(self.slots, self.rows[number], strict=True))

    def states(self) -> Iterator[State]:
        """Yield every state, by number."""
        return map(self.state, range(len(self.rows)))

    def depths(self) -> tuple[int, ...]:
        """Return for each state the number of steps from an initial state."""
        depths: list[int] = []
        for by in self.found_by:
            depths.append(0 if by < 0 else depths[self.edges[by][0]] + 1)
        return tuple(depths)

    def variables(self, number: int) -> dict[str, Value]:
        """Return the spec's variables in a state, without what is hidden."""
        return self.hidden.of(self.model.variables(self.state(number)))


def build_graph(
    model: Model, hide: Hidden, most: int, refusal: Callable[[int], Refusal], progress: Progress | None = None
) -> Graph:
    """Build the graph of a model. Raises what `refusal` makes of `most` if there are more states than that.

    Steps that leave a constraint are left out, as are the states that they lead to.
    """
    slots = tuple(model.initial_states()[0])
    shared: tuple[dict[Value, Value], ...] = tuple({} for _ in slots)

    def row(state: State) -> tuple[Value, ...]:
        try:
            return tuple([table.setdefault(state[name], state[name])
                          for name, table in zip(slots, shared, strict=True)])
        except TypeError as error:
            raise blamed(error, state.items()) from None

    def visible(state: State) -> tuple[Value, ...]:
        return tuple(hide.of(model.variables(state)).values())

    known = Traversal(model, visible if hide else row)
    rows: list[tuple[Value, ...]] = []
    found_by = [-1] * len(known)
    edges: list[Edge] = []
    for number, here, transitions in known:
        rows.append(row(here))
        for choice, _, target in transitions:
            if target == len(found_by):
                found_by.append(len(edges))
            if target is not None:
                edges.append((number, choice.step.name, target))
        if len(known) > most:
            raise refusal(most)
        if progress is not None and (number + 1) % REPORT_EVERY == 0:
            progress(number + 1, len(known), len(edges))
    return Graph(model, hide, slots, tuple(rows), tuple(dict.fromkeys(known.initial)), tuple(edges), tuple(found_by))


def graph_lines(
    model: Model, initial: Iterable[int], states: Iterable[State], edges: Iterable[Edge]
) -> Iterator[str]:
    """Yield the lines of a graph in JSON: `{vars, init, states, edges}`, values as `tla_encode` gives them.

    There is one line per state and per edge. Every state has all its variables, also those that do not tell it apart.
    """
    names = sorted(model.variables(model.initial_states()[0]))
    yield f'{{"vars":{_json(names)},"init":{_json(list(initial))},"states":['
    yield from _separated(_json(tla_state(model, state)) for state in states)
    yield '],"edges":['
    yield from _separated(_json(edge) for edge in edges)
    yield "]}"


def _separated(items: Iterable[str]) -> Iterator[str]:
    """Yield items with a comma after each but the last one."""
    for item, following in pairwise(chain(items, [None])):
        yield f"{item}" if following is None else f"{item},"


def _json(data: Any) -> str:
    return json.dumps(data, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
