"""Values and state changes in words, for people: short, generic over protocols, never used for identity.

Fields that have their default value, None and empty collections are left out of a value; so is what is nested more than
one record deep. Changes name only what differs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from harness.model import FrozenMap, Gate, Message, ShownMessage, Value, brief_value, canonical_sort, parts, slot

SILENT = ("inbox", "held", "discarded", "budget", "rule_counts")
"""Variables of the network and the environment whose changes the messages and faults of a step already tell."""


def brief(value: Value) -> str:
    """Return a value as short text: records as `<Empty pid=1>`, tuples as `(a, b)`, sets and maps in braces."""
    if isinstance(value, tuple):
        return "(" + ", ".join(brief(item) for item in value) + ")"
    if isinstance(value, frozenset):
        return "{" + ", ".join(brief(item) for item in canonical_sort(value)) + "}"
    if isinstance(value, FrozenMap):
        return "{" + ", ".join(f"{brief(key)}: {brief(item)}" for key, item in value.items()) + "}"
    if isinstance(value, str) and not value:
        return '""'
    if _is_record(value):
        words = _words(value, nested="flat")
        kind = [type(value).__name__] if isinstance(value, Message) or not words else []
        return "<" + " ".join(kind + words) + ">"
    return brief_value(value)


def brief_message(message: Message, who: str = "") -> str:
    """Return a message as `Type who field...`; `who` is the name worth showing: its source, its destination."""
    if isinstance(message, ShownMessage):
        return " ".join(filter(None, (who, message.name, message.fields)))
    return " ".join([message.type, *([who] if who else []), *_words(message, nested="named")])


def message_fields(message: Message) -> str:
    """Return the fields of a message that are worth showing, or nothing."""
    return message.fields if isinstance(message, ShownMessage) else " ".join(_words(message, nested="named"))


def named_fields(message: Message) -> dict[str, str]:
    """Return the fields of a message with their names."""
    if isinstance(message, ShownMessage):
        return dict(message.about)
    return {field.name: brief(value) for field in attrs.fields(type(message))
            if field.name not in ("source", "dest") and (value := getattr(message, field.name)) is not None}


def changes(before: Mapping[str, Value], writes: Mapping[str, Value]) -> tuple[str, ...]:
    """Return what a step changed, one text per slot: `client[c1]: state Ready->Sent, tid None->tid1`."""
    after = {**before, **writes}
    found = []
    for name in sorted(writes):
        variable, *index = parts(name)
        if variable in SILENT or before[name] == writes[name]:
            continue
        phrases = None
        if variable == "disk" and index:
            phrases = _flushed(before[name], writes[name], after.get(slot(*index)))
        if phrases is None:
            phrases = [phrase.strip() for phrase in difference("", before[name], writes[name])]
        found.append(f"{name}: {', '.join(phrases)}")
    return tuple(found)


def difference(path: str, old: Value, new: Value) -> list[str]:
    """Return the differences of two values as phrases, each led by the path to what differs."""
    if isinstance(old, Gate) and isinstance(new, Gate):
        status = [f"{path} {old.status}->{new.status}"] if old.status != new.status else []
        rest = attrs.evolve(old, status=new.status)
        return status + _fields_differ(path, rest, new)
    if _is_record(old) and type(old) is type(new):
        return _fields_differ(path, old, new)
    if isinstance(old, FrozenMap) and isinstance(new, FrozenMap):
        return _items_differ(path, old, new)
    if isinstance(old, frozenset) and isinstance(new, frozenset):
        gone = [f"{path} - {brief(item)}" for item in canonical_sort(old - new)]
        return gone + [f"{path} + {brief(item)}" for item in canonical_sort(new - old)]
    if isinstance(old, tuple) and isinstance(new, tuple):
        return _entries_differ(path, old, new)
    return [f"{path} {brief(old)}->{brief(new)}"]


def _is_record(value: Value) -> bool:
    return attrs.has(type(value)) and not isinstance(value, str)


def _words(record: Any, nested: str) -> list[str]:
    """The fields worth showing: the first text bare and in front, all others with their names.

    `nested` says what becomes of records inside: their fields come `flat`, they are `named` in brackets, or `none`.
    """
    first: list[str] = []
    rest: list[str] = []
    for field in attrs.fields(type(record)):
        value = getattr(record, field.name)
        if isinstance(record, Message) and field.name in ("source", "dest"):
            continue
        if value is None or (value == field.default and type(value) is type(field.default)):
            continue
        if isinstance(value, tuple | frozenset | FrozenMap) and not value:
            continue
        if _is_record(value):
            if nested == "flat":
                rest += _words(value, nested="none")
            elif nested == "named":
                rest.append(f"{field.name}={brief(value)}")
        elif isinstance(value, str) and not first:
            first.append(brief(value))
        else:
            rest.append(f"{field.name}={brief(value)}")
    return first + rest


def _fields_differ(path: str, old: Any, new: Any) -> list[str]:
    found = []
    for field in attrs.fields(type(old)):
        one, other = getattr(old, field.name), getattr(new, field.name)
        if one != other:
            found += difference(f"{path}.{field.name}" if path else field.name, one, other)
    return found


def _items_differ(path: str, old: FrozenMap[Any, Value], new: FrozenMap[Any, Value]) -> list[str]:
    found = []
    for key in old.update(new):
        where = f"{path}[{brief(key)}]"
        if key not in new:
            found.append(f"{where} - {brief(old[key])}")
        elif key not in old:
            found.append(f"{where} + {brief(new[key])}")
        elif old[key] != new[key]:
            found += difference(where, old[key], new[key])
    return found


def _entries_differ(path: str, old: tuple[Value, ...], new: tuple[Value, ...]) -> list[str]:
    """A log that grew or was cut off; plain tuples with nothing in common are replaced as a whole."""
    same = 0
    while same < min(len(old), len(new)) and old[same] == new[same]:
        same += 1
    if not same and old and new and not any(map(_is_record, (*old, *new))):
        return [f"{path} {brief(old)}->{brief(new)}"]
    gone = [f"{path} - {brief(item)}" for item in old[same:]]
    return gone + [f"{path} + {brief(item)}" for item in new[same:]]


def _flushed(old: Value, new: Value, local: Value) -> list[str] | None:
    """A disk that now holds what its actor holds: the names of what was flushed; None if it is otherwise."""
    if not isinstance(old, FrozenMap) or not isinstance(new, FrozenMap) or local is None:
        return None
    changed = [key for key in new if old.get(key) != new[key]]
    if set(old) != set(new) or any(getattr(local, key, None) != new[key] for key in changed):
        return None
    return [f"flushed {', '.join(changed)}"]
