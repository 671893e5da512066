"""Finds, after an error, the part of a state or a message that could be changed, and so is no value."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import attrs

from harness.model.frozen_map import FrozenMap
from harness.model.refusal import NotAValue
from harness.model.values import Value, encode, instead_of

SHOWN = 60
"""Characters that are shown of what is no value."""


def blamed(error: TypeError, named: Iterable[tuple[str, Value]]) -> TypeError:
    """Return the error that says what in some named values is none, and what to use; the error itself if all are."""
    for name, value in named:
        found = _first(value, name)
        if found is not None:
            place, culprit = found
            shown = repr(culprit)
            shown = shown if len(shown) <= SHOWN else f"{shown[: SHOWN - 3]}..."
            return NotAValue(f"{place} is a {type(culprit).__name__} ({shown}), but nothing in a state or a message "
                             f"may change; use {instead_of(type(culprit))} there")
    return error


def _first(value: Value, path: str) -> tuple[str, Any] | None:
    """Return the first part of a value that is none, with its path."""
    parts: list[tuple[str, Any]] = []
    if isinstance(value, tuple):
        parts = [(f"{path}[{n}]", item) for n, item in enumerate(value)]
    elif isinstance(value, frozenset):
        parts = [(f"an element of {path}", item) for item in value]
    elif isinstance(value, FrozenMap):
        parts = [(f"a key of {path}", key) for key in value] + [(f"{path}[{k!r}]", item) for k, item in value.items()]
    elif attrs.has(type(value)):
        parts = [(f"{path}.{field.name}", getattr(value, field.name)) for field in attrs.fields(type(value))]
    for where, part in parts:
        if (found := _first(part, where)) is not None:
            return found
    try:
        encode(value)
    except TypeError:
        return path, value
    return None
