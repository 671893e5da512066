"""Canonical texts of long values, in parts: a value that differs little from one before shares most parts of its text.

The parts are texts that `values` remembers. So that equal texts have equal parts, only values decide where a part
begins, never what is remembered.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import attrs

from harness.model import values
from harness.model.values import FrozenMap, Value, canonical_text, form_of, is_named

LONG = values._LONGEST_REMEMBERED
"""Characters; a text that has more may have parts, and no other one has."""
SHORT = 1_000
"""Characters; parts that have fewer are joined to those beside them."""


@attrs.frozen
class LongText:
    """A canonical text in parts."""

    parts: tuple[str, ...]

    def __len__(self) -> int:
        return sum(map(len, self.parts))

    def __str__(self) -> str:
        return "".join(self.parts)


Text = str | LongText
"""A canonical text; `str` of it is the whole."""


def text_in_parts(value: Value) -> Text:
    """Return the canonical text of a value, in parts if it is a long one."""
    parts = _parts(value)
    if len(parts) == 1:
        return parts[0]
    found: list[str] = []
    short: list[str] = []
    for part in parts:
        if len(part) < SHORT:
            short.append(part)
        else:
            found += ("".join(short), part)
            short.clear()
    return LongText((*found, "".join(short)))


def new_characters(text: Text, last: Text) -> int:
    """Return how many characters a text has that are not in parts of another one."""
    if isinstance(text, str):
        return len(text)
    known = frozenset(last.parts) if isinstance(last, LongText) else ()
    return sum(len(part) for part in text.parts if part not in known)


def _parts(value: Value) -> list[str]:
    known = values._REMEMBERED.get(id(value))
    if known is not None and known[0] is value:
        return [known[1]]
    cls, most = type(value), LONG
    if cls is FrozenMap and is_named(value):
        if value._text is not None and len(value._text) <= most:
            return [value._text]
        parts = _enclosed("{", "", [(f"{canonical_text(key)}:", value[key]) for key in sorted(value)], "}")
    elif cls is tuple:
        most = values._LONGEST_OF_TUPLE if len(value) >= values._WIDE else most
        parts = _enclosed("[", "", [("", item) for item in value], "]")
    elif attrs.has(cls):
        head, fields = form_of(cls)
        there = [(key, getattr(value, name), optional) for name, key, optional in fields]
        parts = _enclosed(head, ",", [(key, item) for key, item, optional in there
                                      if item is not None or not optional], "}")
    else:
        return [canonical_text(value)]
    if sum(map(len, parts)) > most:
        return parts
    text = "".join(parts)
    if cls is FrozenMap:
        value._text = text
    elif cls is not tuple or len(value) >= values._WIDE:
        values._remember(value, text)
    return [text]


def _enclosed(head: str, before: str, items: Iterable[tuple[str, Any]], tail: str) -> list[str]:
    """Return the parts of some items, each with its key; `before` is what separates the first from the head."""
    parts, remembered = [head], values._REMEMBERED.get
    for key, item in items:
        known = remembered(id(item))
        if known is not None and known[0] is item:
            parts += (before + key, known[1])
        else:
            parts.append(before + key)
            parts += _parts(item)
        before = ","
    parts.append(tail)
    return parts
