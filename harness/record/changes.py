"""What has changed from one value to the next, as a value: of what grows, only what is new is written again.

Two values decide what their change is, never which objects they share; what they share only needs no look.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

import attrs

from harness.model import FrozenMap, Value, canonical_text, values


@attrs.frozen
class Unchanged:
    """The value is the one before."""


@attrs.frozen
class ChangedRecord:
    """Fields of a record that are others, or have changed."""

    fields: FrozenMap[str, Value]


@attrs.frozen
class ChangedMap:
    """Keys of a map that are gone, and items that are new, others, or have changed."""

    gone: tuple[Value, ...]
    items: tuple[tuple[Value, Value], ...]


@attrs.frozen
class ChangedTuple:
    """Items from `start` to `stop` are replaced; where as many come as go, each may be a change of the one before."""

    start: int
    stop: int
    items: tuple[Value, ...]


CHANGES = (Unchanged, ChangedRecord, ChangedMap, ChangedTuple)
SAME = Unchanged()


def change(before: Value, after: Value) -> Value:
    """Return what makes one value of another: one of `CHANGES`, or else the new value itself."""
    if before is after:
        return SAME
    cls = type(after)
    if type(before) is not cls:
        return after
    if cls is tuple:
        return _of_tuple(before, after)
    if cls is FrozenMap:
        return _of_map(before, after)
    if attrs.has(cls):
        fields = [(field.name, new) for field in attrs.fields(cls)
                  if (new := change(getattr(before, field.name), getattr(after, field.name))) is not SAME]
        return ChangedRecord(FrozenMap(fields)) if fields else SAME
    return SAME if before == after and canonical_text(before) == canonical_text(after) else after


def changed(before: Value, told: Value) -> Value:
    """Return what a change makes of the value before; what is no change is the new value itself.

    Records may have been read as maps. Raises ValueError if the change does not fit the value.
    """
    try:
        return _changed(before, told)
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(f"{type(told).__name__} does not fit the value before it: {error}") from None


def _changed(before: Value, told: Value) -> Value:
    if isinstance(told, Unchanged):
        return before
    if isinstance(told, ChangedRecord):
        if isinstance(before, FrozenMap):
            return before.update({name: _changed(before.get(name), item) for name, item in told.fields.items()})
        return _with_fields(before, {name: _changed(getattr(before, name), item) for name, item in told.fields.items()})
    if isinstance(told, ChangedMap):
        kept = {key: item for key, item in before.items() if key not in told.gone}
        return FrozenMap({**kept, **{key: _changed(kept.get(key), item) for key, item in told.items}})
    if isinstance(told, ChangedTuple):
        went, came = before[told.start : told.stop], told.items
        if len(went) == len(came):
            came = tuple(map(_changed, went, came))
        return (*before[: told.start], *came, *before[told.stop :])
    return told


def _with_fields(record: Any, fields: Mapping[str, Value]) -> Any:
    """Return a record with other values in some fields; where one holds members of an enumeration, texts become these.
    """
    cls: type = type(record)
    enums, aliases = values._enums(cls), values._aliases(cls)
    return attrs.evolve(record, **{aliases[name]: values._members(enums[name], item) if name in enums else item
                                   for name, item in fields.items()})


def _of_map(before: FrozenMap[Value, Value], after: FrozenMap[Value, Value]) -> Value:
    gone = tuple([key for key in before if key not in after])
    keys = {key: key for key in before}
    items = []
    for key, item in after.items():
        if key not in keys:
            items.append((key, item))
        elif change(keys[key], key) is not SAME:  # 1 and True
            return after
        elif (known := before[key]) is not item and (new := change(known, item)) is not SAME:
            items.append((key, new))
    return ChangedMap(gone, tuple(items)) if gone or items else SAME


def _of_tuple(before: tuple[Value, ...], after: tuple[Value, ...]) -> Value:
    """Leave out what both begin and end with; the rest is replaced."""
    most = min(len(before), len(after))
    first = _alike(zip(before, after, strict=False))
    last = _alike(islice(zip(reversed(before), reversed(after), strict=False), most - first))
    went, came = before[first : len(before) - last], after[first : len(after) - last]
    if not went and not came:
        return SAME
    return ChangedTuple(first, first + len(went), tuple(map(change, went, came)) if len(went) == len(came) else came)


def _alike(pairs: Iterator[tuple[Value, Value]]) -> int:
    """Return how many pairs come before the first one that is not alike."""
    count = 0
    for one, other in pairs:
        if one is not other and change(one, other) is not SAME:
            break
        count += 1
    return count

