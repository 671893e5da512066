"""What the fields of a recorded line may hold, as tables of kinds. A field that does not fit becomes a sentence."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import attrs

LONGEST_SHOWN = 60


@attrs.frozen
class FieldKind:
    """What a field may hold: in words, and as a test."""

    words: str
    fits: Callable[[Any], bool]


def _is_number(value: Any) -> bool:
    return type(value) is int


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_text, value))


TEXT = FieldKind("text", _is_text)
NUMBER = FieldKind("a whole number", _is_number)
COUNT = FieldKind("a whole number, at least 0", lambda value: _is_number(value) and value >= 0)
TRUTH = FieldKind("true or false", lambda value: isinstance(value, bool))
TEXTS = FieldKind("a list of texts", _is_texts)
PAIRS = FieldKind("a list of pairs of texts",
             lambda value: isinstance(value, list) and all(_is_texts(pair) and len(pair) == 2 for pair in value))
OBJECT = FieldKind("an object", lambda value: isinstance(value, dict))
OBJECTS = FieldKind("a list of objects",
               lambda value: isinstance(value, list) and all(isinstance(item, dict) for item in value))
NUMBERS = FieldKind("an object of whole numbers",
               lambda value: isinstance(value, dict) and all(map(_is_number, value.values())))
ANY = FieldKind("any value", lambda value: True)
NAMES = FieldKind("an object of texts", lambda value: isinstance(value, dict) and all(map(_is_text, value.values())))


def one_of(*texts: str) -> FieldKind:
    """Return the kind of a field that is one of some texts."""
    return FieldKind(" or ".join(texts), lambda value: _is_text(value) and value in texts)


def optional(kind: FieldKind) -> FieldKind:
    """Return the kind of a field that may also be null."""
    return FieldKind(f"{kind.words} or null", lambda value: value is None or kind.fits(value))


def check_fields(data: Mapping[str, Any], wanted: Mapping[str, FieldKind]) -> None:
    """Raise ValueError unless an object has all wanted fields, each of its kind."""
    for name, kind in wanted.items():
        if name not in data:
            raise ValueError(f'the field "{name}" is missing, it should be {kind.words}')
    check_given(data, wanted)


def check_given(data: Mapping[str, Any], wanted: Mapping[str, FieldKind]) -> None:
    """Raise ValueError unless each wanted field that an object has is of its kind."""
    for name, kind in wanted.items():
        if name in data and not kind.fits(data[name]):
            raise ValueError(f'"{name}" should be {kind.words}, found {shown(data[name])}')


def shown(value: Any) -> str:
    """Return a value as JSON text, cut short."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}..."
