"""Responses that count when they are served: what a mapping sees of a receiver that has not yet applied one.

From the step that sends such a response to the step that applies it, the receiver is seen with the fields that the
latter changes as it leaves them (of maps, the keys that it changes). One that changes nothing was not applied. Where
several change the same, the one served last is seen: the spec takes them in the order in which they are served. A local
state of several parts is looked at part by part.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from harness.memo.interning import Ids
from harness.model import Exchange, FrozenMap, Message
from harness.simulate.states.tables import Tables


@attrs.define(eq=False)
class Taken:
    """A step of a run: action, label, the served response that it took, and those that it sent and were not lost."""

    action: str
    label: str
    consumed: Message | None = None
    sent: tuple[Message, ...] = ()
    exchange: Exchange | None = None
    """All that it exchanged, where the spec is told of that."""


class Overlays:
    """Works out the states of a run as a mapping sees them."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._laid: dict[tuple[int, int, int, int], int] = {}

    def seen(self, states: Sequence[Ids], steps: Sequence[Taken]) -> Sequence[Ids]:
        """Return the states, each with the responses served and not yet applied in it. Step n leads to state n + 1."""
        first: dict[Message, int] = {}
        windows: list[tuple[int, int, int]] = []
        for n, step in enumerate(steps, 1):
            message = step.consumed
            if message is not None and message in first:
                for slot in changed_of(self._tables, message.dest, states[n - 1], states[n]):
                    windows.append((first[message], n, slot))
            for message in step.sent:
                first.setdefault(message, n)
        if not windows:
            return states
        found = list(states)
        for served, applied, slot in sorted(windows):
            before, after = states[applied - 1][slot], states[applied][slot]
            for at in range(served, applied):
                laid = self.lay(slot, found[at][slot], before, after)
                found[at] = (*found[at][:slot], laid, *found[at][slot + 1 :])
        return found

    def lay(self, slot: int, local: int, before: int, after: int) -> int:
        """Return a receiver's local state, or a part of it, with what a step changes from one to another."""
        if local == before:
            return after
        key = (slot, local, before, after)
        known = self._laid.get(key)
        if known is None:
            values = self._tables.values[slot]
            seen = with_changes(values[local], values[before], values[after])
            known = self._laid[key] = self._tables.intern_value(slot, seen)
        return known


def changed_of(tables: Tables, receiver: str, before: Ids, after: Ids) -> list[int]:
    """Return the slots of a receiver's local state that differ in two states."""
    slots = [tables.index[name] for name in tables.model.slots_of(receiver)]
    return [slot for slot in slots if before[slot] != after[slot]]


def with_changes(local: Any, before: Any, after: Any) -> Any:
    """Return `local` with the fields, and keys of maps, in which `after` differs from `before`, as in `after`."""
    if not type(local) is type(before) is type(after) or not attrs.has(type(after)):
        return local
    changed = {}
    for field in attrs.fields(type(after)):
        was, is_ = getattr(before, field.name), getattr(after, field.name)
        if was == is_:
            continue
        if isinstance(was, FrozenMap) and isinstance(is_, FrozenMap):
            now = dict(getattr(local, field.name))
            for key in [key for key in was if key not in is_]:
                now.pop(key, None)
            now.update({key: value for key, value in is_.items() if key not in was or was[key] != value})
            changed[field.alias or field.name] = FrozenMap(now)
        else:
            changed[field.alias or field.name] = is_
    return attrs.evolve(local, **changed)
