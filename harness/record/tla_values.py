"""Values and states in the encoding of the specs' published state graphs: JSON as TLC's own values map to it.

What lives here: the encoding, to compare a graph, a trace or a single state with the model checker's. What does not:
the TLA+ text of a value, and the harness's own encoding (`harness.model.values`). This one cannot replace it: it
forgets classes, and None and the empty map alias with a string and the empty sequence, as they do in the specs.
"""

from __future__ import annotations

import json
from typing import Any

import attrs

from harness.model import FrozenMap, Model, State, Value, record_of

NONE = "None"
SET = "$set"


def tla_encode(value: Value) -> Any:
    """Return a value as the reference graphs write it.

    int and bool stay; a str (or StrEnum member) is a JSON string; Python's None is the model value `None`; tuples and
    maps over 1..n (so the empty map, too) are lists, other maps and records are objects; a frozenset is
    `{"$set": [...]}`, its items sorted by their JSON text. A message's record has its class name as `type`; a field
    with metadata `absent_if_none` that is None is left out. Raises TypeError for a value that TLA+ does not have.
    """
    if value is None:
        return NONE
    if isinstance(value, str):
        return str(value)
    if isinstance(value, bool | int):
        return value
    if isinstance(value, tuple):
        return [tla_encode(item) for item in value]
    if isinstance(value, frozenset):
        return {SET: sorted((tla_encode(item) for item in value), key=_text)}
    if isinstance(value, FrozenMap):
        return _function(value)
    if attrs.has(type(value)):
        return {name: tla_encode(item) for name, item in record_of(value).items()}
    raise TypeError(f"a {type(value).__name__} has no form in TLA+; use the values of harness.model.values")


def tla_state(model: Model, state: State) -> dict[str, Any]:
    """Return a state as `{variable: encoded value}`, for the spec's variables as `Model.variables` names them."""
    return {variable: tla_encode(value) for variable, value in model.variables(state).items()}


def _function(value: FrozenMap[Any, Any]) -> Any:
    """A function over 1..n is the same thing as a sequence in TLA+, and TLC prints it as one."""
    n = len(value)
    if all(type(key) is int and 1 <= key <= n for key in value):
        return [tla_encode(value[index]) for index in range(1, n + 1)]
    if not all(isinstance(key, str) for key in value):
        raise TypeError(f"a map must have the keys 1 to n, or strings, to be written as JSON, not {list(value)!r}")
    return {str(key): tla_encode(item) for key, item in value.items()}


def _text(data: Any) -> str:
    return json.dumps(data, sort_keys=True)
