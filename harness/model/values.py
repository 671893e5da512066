"""Values that protocols are made of: frozen, hashable, and canonical.

A value is `None`, a bool, an int, a str (a `StrEnum` member counts as its string), bytes, a tuple, a frozenset, a
`FrozenMap`, or an instance of a frozen attrs class made of values. What lives here: the one canonical encoding that
gives values their order, identity and shipping form, and its inverse. What does not: the ids that drivers intern.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import StrEnum
from functools import cache
from typing import Any, TypeVar, get_args, get_type_hints

import attrs

from harness.model.frozen_map import FrozenMap, sort_keys_by
from harness.model.refusal import NotAValue

Value = Any
V = TypeVar("V")

SET = "$set"
BYTES = "$bytes"
MAP = "$map"
TYPE = "$type"


_INSTEAD: Mapping[type, str] = {list: "a tuple", dict: "a FrozenMap", set: "a frozenset", bytearray: "bytes"}


def instead_of(cls: type) -> str:
    """Return what to use in place of a type whose objects are not values."""
    return _INSTEAD.get(cls, "a frozen attrs class, a tuple, a frozenset or a FrozenMap")


def absent_if_none() -> dict[str, bool]:
    """Metadata of an attrs field that a spec's record has only in some states: `None` means the field is not there."""
    return {"absent_if_none": True}


def fields_there(record: Any) -> Iterator[tuple[str, Value]]:
    """Yield the names and values of a record's fields, without those that are absent."""
    for field in attrs.fields(type(record)):
        value = getattr(record, field.name)
        if value is not None or not field.metadata.get("absent_if_none"):
            yield field.name, value


_ENCODERS: dict[type, Callable[[Any], Any]] = {}


def encode(value: Value) -> Any:
    """Return the JSON form of a value: sets, maps with other keys than strings, and classes are tagged with `$`.

    Raises NotAValue for anything that is no value (a list, a dict, an object that is no frozen attrs class).
    """
    encoder = _ENCODERS.get(type(value))
    if encoder is None:
        encoder = _ENCODERS[type(value)] = _encoder_for(type(value))
    return encoder(value)


def canonical_bytes(value: Value) -> bytes:
    """Return bytes that are equal for two values exactly when they are the same value (`1`, `1.0`, `True` differ)."""
    return canonical_text(value).encode()


def canonical_text(value: Value) -> str:
    """Return `canonical_bytes` as text: compact JSON of `encode(value)`, keys sorted.

    It is written here rather than by `json.dumps(encode(value))`, which it equals, because drivers spend their time on
    it: the text of a record is remembered as long as the record is likely to be met again.
    """
    writer = _WRITERS.get(type(value))
    if writer is None:
        writer = _WRITERS[type(value)] = _writer_for(type(value))
    return writer(value)


_DUMP = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode
_QUOTE = json.encoder.encode_basestring
"""What `_DUMP` does to text, without the way there."""
_WRITERS: dict[type, Callable[[Any], str]] = {}
_REMEMBERED: dict[int, tuple[Any, str]] = {}
"""Texts of records by the identity of the record, which is kept alive with its text."""
_MAX_REMEMBERED = 30_000_000
_REMEMBERED_RECORD, _REMEMBERED_CHARACTER = 250, 2
"""Bytes that may be spent on remembering, and an estimate of what a record and each character of its text take."""
_LONGEST_REMEMBERED = 20_000
"""Characters; a record that has more is another one each time, and its parts are what is met again."""
_WIDE, _LONGEST_OF_TUPLE = 128, 200_000
"""Items from which on a tuple is remembered, as a part of a long sequence; and characters up to which it is."""
_spent = 0


def canonical_sort(values: Iterable[V]) -> list[V]:
    """Sort values of any kind by their canonical bytes: the one order that is the same in every process."""
    return sorted(values, key=canonical_text)


sort_keys_by(canonical_sort)


def check_names(model: str, types: Iterable[type]) -> None:
    """Raise ValueError if two types have one name, by which their recorded values are to be read back."""
    names = [cls.__name__ for cls in set(types)]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise ValueError(f"{model} has several types that are called {', '.join(repeated)}: rename all but one")


def decode(data: Any, types: Mapping[str, type]) -> Value:
    """Return the value that `encode` gave `data` for; `types` names the attrs classes that may occur.

    Raises ValueError for an unknown `$type` and for a field that its class does not have.
    """
    if isinstance(data, list):
        return tuple(decode(item, types) for item in data)
    if not isinstance(data, dict):
        return data
    if BYTES in data:
        return _bytes(data[BYTES])
    if SET in data:
        return frozenset(decode(item, types) for item in data[SET])
    if MAP in data:
        return FrozenMap((decode(key, types), decode(item, types)) for key, item in data[MAP])
    if TYPE in data:
        cls = types.get(data[TYPE])
        if cls is None:
            raise ValueError(f"unknown type {data[TYPE]!r}; known are {', '.join(sorted(types))}")
        enums = _enums(cls)
        fields = {name: decode(item, types) for name, item in data.items() if name != TYPE}
        try:
            for name in enums.keys() & fields.keys():
                fields[name] = _members(enums[name], fields[name])
            return cls(**{_aliases(cls).get(name, name): item for name, item in fields.items()})
        except (TypeError, ValueError) as error:
            raise ValueError(f"{data[TYPE]} does not fit its class: {error}") from None
    return FrozenMap({key: decode(item, types) for key, item in data.items()})


@cache
def _aliases(cls: type) -> Mapping[str, str]:
    """Return what a class calls its fields when it is constructed."""
    return {field.name: field.alias or field.name for field in attrs.fields(cls)}


def _bytes(text: Any) -> bytes:
    try:
        return b64decode(text, validate=True)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{BYTES} should be Base64 text: {error}") from None


def _members(kind: type[StrEnum], value: Value) -> Value:
    """Return text as a member of an enumeration, and a tuple, set or map of such texts with members in it."""
    if isinstance(value, str):
        return kind(value)
    if isinstance(value, tuple | frozenset):
        return type(value)(_members(kind, item) for item in value)
    if isinstance(value, FrozenMap):
        return FrozenMap({key: _members(kind, item) for key, item in value.items()})
    return value


@cache
def _enums(cls: type) -> Mapping[str, type[StrEnum]]:
    """Return the fields of a class that hold members of an enumeration, which text becomes when it is read back."""
    found: dict[str, type[StrEnum]] = {}
    for name, hint in get_type_hints(cls).items():
        for kind in (hint, *get_args(hint)):
            if isinstance(kind, type) and issubclass(kind, StrEnum):
                found[name] = kind
    return found


def _encoder_for(cls: type) -> Callable[[Any], Any]:
    if cls in (type(None), bool, int, str, float):
        return lambda value: value
    if issubclass(cls, str):
        return str.__str__
    if cls is bytes:
        return lambda value: {BYTES: b64encode(value).decode()}
    if cls is tuple:
        return lambda value: [encode(item) for item in value]
    if cls is frozenset:
        return lambda value: {SET: sorted((encode(item) for item in value), key=_DUMP)}
    if cls is FrozenMap:
        return _encode_map
    if attrs.has(cls) and cls.__setattr__.__name__ == "_frozen_setattrs":
        names = tuple((field.name, bool(field.metadata.get("absent_if_none"))) for field in attrs.fields(cls))
        return lambda value: _encode_record(cls.__name__, names, value)
    raise NotAValue(f"{cls.__name__} is not a protocol value; use {instead_of(cls)}")


def _encode_map(value: FrozenMap[Any, Any]) -> Any:
    if all(isinstance(key, str) and not key.startswith("$") for key in value):
        return {str(key): encode(item) for key, item in value.items()}
    return {MAP: [[encode(key), encode(item)] for key, item in value.items()]}


def _encode_record(name: str, fields: tuple[tuple[str, bool], ...], value: Any) -> Any:
    record: dict[str, Any] = {TYPE: name}
    for field, may_be_absent in fields:
        item = getattr(value, field)
        if item is not None or not may_be_absent:
            record[field] = encode(item)
    return record


def _writer_for(cls: type) -> Callable[[Any], str]:
    if cls is str:
        return _QUOTE
    if issubclass(cls, str):
        return lambda value: _QUOTE(str.__str__(value))
    if cls is int:
        return int.__repr__
    if cls is bool:
        return lambda value: "true" if value else "false"
    if cls is type(None):
        return lambda value: "null"
    if cls is bytes:
        return lambda value: f'{{"{BYTES}":"{b64encode(value).decode()}"}}'
    if cls is tuple:
        return _write_tuple
    if cls is frozenset:
        return lambda value: '{"$set":[' + ",".join(sorted([canonical_text(item) for item in value])) + "]}"
    if cls is FrozenMap:
        return _write_map
    if attrs.has(cls):
        head, fields = form_of(cls)

        def write(value: Any) -> str:
            remembered = _REMEMBERED.get(id(value))
            if remembered is not None and remembered[0] is value:
                return remembered[1]
            return _write_record(head, fields, value)

        return write
    return lambda value: _DUMP(encode(value))


@cache
def form_of(cls: type) -> tuple[str, tuple[tuple[str, str, bool], ...]]:
    """Return how the text of a record begins, and its fields: name, what is before it, whether it may be absent."""
    _encoder_for(cls)
    names = sorted((f.name, bool(f.metadata.get("absent_if_none"))) for f in attrs.fields(cls))
    return f'{{"{TYPE}":"{cls.__name__}"', tuple((name, _DUMP(name) + ":", optional) for name, optional in names)


def _write_tuple(value: tuple[Any, ...]) -> str:
    if len(value) < _WIDE:
        return "[" + ",".join([canonical_text(item) for item in value]) + "]"
    remembered = _REMEMBERED.get(id(value))
    if remembered is not None and remembered[0] is value:
        return remembered[1]
    text = "[" + ",".join([canonical_text(item) for item in value]) + "]"
    if len(text) <= _LONGEST_OF_TUPLE:
        _remember(value, text)
    return text


def _remember(value: Any, text: str) -> None:
    global _spent
    _spent += _REMEMBERED_RECORD + _REMEMBERED_CHARACTER * len(text)
    if _spent > _MAX_REMEMBERED:
        _REMEMBERED.clear()
        _spent = 0
    _REMEMBERED[id(value)] = (value, text)


def _write_map(value: FrozenMap[Any, Any]) -> str:
    text = value._text
    if text is None:
        text = value._text = _map_text(value)
    return text


def is_named(value: FrozenMap[Any, Any]) -> bool:
    """Say whether a map is written as a JSON object, by its keys."""
    return all([isinstance(key, str) and not key.startswith("$") for key in value._items])


def _map_text(value: FrozenMap[Any, Any]) -> str:
    items = value._items
    if is_named(value):
        return "{" + ",".join([f"{_QUOTE(str(k))}:{canonical_text(v)}" for k, v in sorted(items.items())]) + "}"
    return '{"$map":[' + ",".join([f"[{canonical_text(k)},{canonical_text(v)}]" for k, v in items.items()]) + "]}"


def _write_record(head: str, fields: tuple[tuple[str, str, bool], ...], value: Any) -> str:
    parts = [head]
    for name, key, optional in fields:
        item = getattr(value, name)
        if item is not None or not optional:
            writer = _WRITERS.get(type(item))
            parts.append(key + (canonical_text(item) if writer is None else writer(item)))
    text = ",".join(parts) + "}"
    if len(text) <= _LONGEST_REMEMBERED:
        _remember(value, text)
    return text
