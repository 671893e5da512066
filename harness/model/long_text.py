"""Canonical texts of long values, in parts: a value that differs little from one before shares most parts of its text.

The parts are texts that `values` remembers, or `LongTexts` if they are long. So that equal texts have equal parts, only
values decide where a part begins, never what is remembered.
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import add

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


SIMPLE = (str, int, bool, bytes, type(None))
Text = str | LongText
"""A canonical text; `str` of it is the whole."""


class LongTexts:
    """Texts of one value after the other, in parts; what a value has of the one before is not written again."""

    def __init__(self) -> None:
        self._before: dict[int, tuple[Value, Text]] = {}
        self._now: dict[int, tuple[Value, Text]] = {}
        """Long texts of what the value has, by identity."""

    def text(self, value: Value) -> Text:
        """Return the canonical text of the next value, in parts if it is a long one."""
        self._before, self._now = self._now, {}
        return self._text(value)

    def _text(self, value: Value) -> Text:
        known = self._before.get(id(value))
        text = known[1] if known is not None and known[0] is value else self._written(value)
        if len(text) > LONG:
            self._now[id(value)] = value, text
        return text

    def _written(self, value: Value) -> Text:
        known = values._REMEMBERED.get(id(value))
        if known is not None and known[0] is value:
            return str(known[1])
        cls, most, keys = type(value), LONG, None
        if cls is tuple:
            head, items, tail = "[", value, "]"
            most = values._LONGEST_OF_TUPLE if len(value) >= values._WIDE else most
        elif cls is FrozenMap and is_named(value):
            if value._text is not None and len(value._text) <= most:
                return str(value._text)
            names = sorted(value)
            head, tail = "{", "}"
            keys, items = [f"{canonical_text(name)}:" for name in names], [value[name] for name in names]
        elif cls not in SIMPLE and attrs.has(cls):
            head, fields = form_of(cls)
            there = [(key, item) for name, key, optional in fields
                     if (item := getattr(value, name)) is not None or not optional]
            head, keys, items, tail = f"{head},", [key for key, _ in there], [item for _, item in there], "}"
            head = head if there else head[:-1]
        else:
            return canonical_text(value)
        get = values._REMEMBERED.get
        texts: list[Text] = [known[1] if (known := get(id(item))) is not None and known[0] is item else self._text(item)
                             for item in items]
        size = len(head) + sum(map(len, texts)) + sum(map(len, keys or ())) + max(0, len(texts) - 1) + len(tail)
        if size <= most or max(map(len, texts)) < SHORT:
            written = map(str, texts)
            text = head + ",".join(written if keys is None else map(add, keys, written)) + tail
            if size <= most:
                _remember(value, text)
            return text
        return LongText(tuple(_merged(head, keys or [""] * len(texts), texts, tail)))


def _remember(value: Value, text: str) -> None:
    if type(value) is FrozenMap:
        value._text = text
    elif type(value) is not tuple or len(value) >= values._WIDE:
        values._remember(value, text)


def _merged(head: str, keys: list[str], texts: list[Text], tail: str) -> Iterator[str]:
    """Yield the parts of some texts, each with its key before it, short ones joined to those beside them."""
    short = [head]
    for n, (key, text) in enumerate(zip(keys, texts, strict=True)):
        short.append(f",{key}" if n else key)
        for part in (text,) if isinstance(text, str) else text.parts:
            if len(part) < SHORT:
                short.append(part)
                continue
            yield "".join(short)
            yield part
            short.clear()
    yield "".join((*short, tail))


def new_characters(text: Text, last: Text) -> int:
    """Return how many characters a text has that are not in parts of another one."""
    if isinstance(text, str):
        return len(text)
    known = frozenset(last.parts) if isinstance(last, LongText) else ()
    return sum(len(part) for part in text.parts if part not in known)
