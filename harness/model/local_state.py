"""What an actor keeps: fields that survive a crash or do not, and a state of one slot or of several named parts.

A local state is one frozen attrs class in the slot with the actor's name, or a `Local`: several `Part`s, each such a
class in a slot of its own, `b1[coordinator]` or `b1[replica][p1]`. `Layout` says for either where it is kept, what a
step writes of it, and what a crash leaves. Fields are declared `persisted()`, `volatile()`, or `nested()` where they
hold records with declarations of their own. Only this module makes the names of these slots.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, Generic, TypeVar, cast

import attrs

from harness.model.frozen_map import FrozenMap
from harness.model.step import Step
from harness.model.values import Value
from harness.model.view import View, slot

S = TypeVar("S")
T = TypeVar("T")
L = TypeVar("L")
Values = View | Mapping[str, Value]
"""Where the values of slots are looked up."""


def persisted(**field: Any) -> Any:
    """Declare a field of an actor's local state that survives a crash as of the last flush."""
    return attrs.field(metadata={**field.pop("metadata", {}), "persisted": True}, **field)


def volatile(**field: Any) -> Any:
    """Declare a field of an actor's local state that a crash resets to its initial value."""
    return attrs.field(metadata={**field.pop("metadata", {}), "persisted": False}, **field)


def nested(**field: Any) -> Any:
    """Declare a field that survives as of the last flush, but for the volatile fields of the records that it holds.

    It is such a record, or a map or tuple of such; each volatile field of these needs a default, which it has again.
    """
    return attrs.field(metadata={**field.pop("metadata", {}), "persisted": True, "nested": True}, **field)


def durable(local: Any) -> FrozenMap[str, Value]:
    """Return the persisted fields of a local state that are there: what a flush writes to disk."""
    cls: type = type(local)
    fields = ((name, getattr(local, name), is_nested) for name, is_nested in _persisted_fields(cls))
    there = {name: _at_rest(value) if is_nested else value for name, value, is_nested in fields}
    return FrozenMap({name: value for name, value in there.items() if value is not None or name not in _absent(cls)})


def survivor(initial: T, disk: FrozenMap[str, Value]) -> T:
    """Return the local state after a crash: persisted fields as last flushed, everything else initial."""
    return attrs.evolve(initial, **disk)  # type: ignore[misc]


@cache
def _persisted_fields(cls: type) -> tuple[tuple[str, bool], ...]:
    """Return the names of a class's persisted fields, and which of them are nested."""
    return tuple((f.name, "nested" in f.metadata) for f in attrs.fields(cls) if f.metadata.get("persisted"))


@cache
def _absent(cls: type) -> frozenset[str]:
    """Return the fields of a class that are not there while they are None."""
    return frozenset(f.name for f in attrs.fields(cls) if f.metadata.get("absent_if_none"))


def _at_rest(value: Value) -> Value:
    """Return a value with the volatile fields of the records in it reset."""
    if isinstance(value, FrozenMap):
        return FrozenMap({key: _at_rest(item) for key, item in value.items()})
    if isinstance(value, tuple):
        return tuple(_at_rest(item) for item in value)
    fields = {name: _at_rest(item) for name, item in durable(value).items()} if attrs.has(type(value)) else {}
    return type(value)(**fields) if fields else value


class Part(Generic[S]):
    """A named part of the state of an actor, with the value that it has at first. Parts are told apart by identity."""

    __slots__ = ("_slots", "index", "initial")

    def __init__(self, name: str, initial: S, *key: str) -> None:
        self.index = (name, *key)
        self.initial = initial
        self._slots: dict[str, str] = {}

    def of(self, view: View, actor: str) -> S:
        """Return this part of an actor's state."""
        value: S = view[self._slot(actor)]
        return value

    def derived(self, view: View, actor: str, function: Callable[[S], T]) -> T:
        """Return what a pure function makes of this part, and depend on that alone: see `View.derived`."""
        return view.derived(self._slot(actor), function)

    def _slot(self, actor: str) -> str:
        where = self._slots.get(actor)
        if where is None:
            where = self._slots[actor] = slot(actor, *self.index)
        return where

    def written(self, step: Step, actor: str) -> S | None:
        """Return the value that a step gives to this part of an actor's state, None if it leaves it alone."""
        where = self._slot(actor)
        return next((cast(S, value) for name, value in step.writes if name == where), None)

    def __repr__(self) -> str:
        return slot(*self.index)


class Parts(Generic[S]):
    """Parts of one kind, by key: `Parts("replica", ReplicaState)["p1"]` of the actor b1 is in `b1[replica][p1]`."""

    def __init__(self, name: str, initial: Callable[[], S]) -> None:
        self.name = name
        self._initial = initial
        self._made: dict[str, Part[S]] = {}

    def __getitem__(self, key: str) -> Part[S]:
        part = self._made.get(key)
        if part is None:
            part = self._made[key] = Part(self.name, self._initial(), key)
        return part


MOST_PUT = 64
"""Parts that were put into a state, before it is made anew."""


class Local:
    """The state of an actor of several parts, as a small immutable mapping from parts to their values.

    It looks at a state through whatever that is read through, so that a turn depends on the parts that it reads only.
    """

    __slots__ = ("_base", "_put", "_slots")

    def __init__(self, slots: Mapping[Part[Any], str], base: Values, put: Mapping[Part[Any], Value]) -> None:
        self._slots = slots
        self._base = base
        self._put = put

    @staticmethod
    def first(actor: str, *parts: Part[Any]) -> Local:
        """Return the state of an actor with these parts, each as it is at first."""
        slots = {part: slot(actor, *part.index) for part in parts}
        names = {part.index for part in parts}
        if len(names) < len(parts) or any(name[:n] in names for name in names for n in range(1, len(name))):
            raise ValueError(f"one name must not lead to two parts of {actor}: {', '.join(map(repr, parts))}")
        return Local(slots, {slots[part]: part.initial for part in parts}, {})

    def __getitem__(self, part: Part[S]) -> S:
        value: S = self._put[part] if part in self._put else self._base[self._slot(part)]
        return value

    def __contains__(self, part: object) -> bool:
        return part in self._slots

    def __iter__(self) -> Iterator[Part[Any]]:
        return iter(self._slots)

    def put(self, part: Part[S], value: S) -> Local:
        """Return this state with another value of a part."""
        self._slot(part)
        return Local(self._slots, self._base, {**self._put, part: value})

    def put_all(self, values: Mapping[Part[Any], Value]) -> Local:
        """Return this state with other values of several parts."""
        for part in values:
            self._slot(part)
        return Local(self._slots, self._base, {**self._put, **values})

    def folded(self) -> Local:
        """Return this state, but by itself once many parts were put into it one by one: each `put` copies them."""
        if len(self._put) <= MOST_PUT:
            return self
        return Local(self._slots, {where: self[part] for part, where in self._slots.items()}, _NOTHING)

    def touched(self, before: Local) -> list[Part[Any]]:
        """Return the parts whose values are not the very ones of a state before; few are looked at after few puts."""
        if self._base is before._base and before._put.keys() <= self._put.keys():
            old = before._put
            return [part for part, value in self._put.items() if part not in old or old[part] is not value]
        return [part for part in self if part not in before or self[part] is not before[part]]

    def _slot(self, part: Part[Any]) -> str:
        found = self._slots.get(part)
        if found is None:
            raise KeyError(f"{part!r} is none of the parts {', '.join(map(repr, self._slots))}")
        return found

    def changed(self, before: Local) -> Mapping[Part[Any], Value]:
        """Return the parts in which this state differs from the one before it, with their values."""
        if self._base is before._base and not before._put:
            base, slots = self._base, self._slots
            return {part: value for part, value in self._put.items() if value != base[slots[part]]}
        return {part: self[part] for part in self if self[part] != before[part]}


Flush = bool | tuple[Part[Any], ...]
"""What a turn makes durable: nothing, what it changed, or the parts that it names."""


class Layout(ABC, Generic[L]):
    """Where the local state of an actor is kept."""

    slots: tuple[str, ...]
    """The slots of the state, those of disks aside."""
    disks: Mapping[str, str]
    """Of each slot that a crash does not reset altogether: the slot of its disk."""

    @abstractmethod
    def start(self) -> dict[str, Value]:
        """Return every slot, disks included, as it is at first."""

    @abstractmethod
    def values(self, local: L) -> dict[str, Value]:
        """Return a state as the values of its slots."""

    @abstractmethod
    def read(self, values: Values) -> L:
        """Return the state that slots hold."""

    @abstractmethod
    def settled(self, local: L) -> L:
        """Return a state by itself, without whatever it is read through."""

    @abstractmethod
    def writes(self, before: L, after: L, flush: Flush) -> tuple[tuple[str, Value], ...]:
        """Return what a step from one state to another one writes."""

    @abstractmethod
    def survivor(self, disks: Values) -> dict[str, Value]:
        """Return the values of the slots after a crash."""


class OneSlot(Layout[L]):
    """The layout of a state that is one frozen attrs class: a turn writes all of it, and a flush all of the disk."""

    def __init__(self, name: str, initial: L, may_crash: bool) -> None:
        self.name = name
        self.initial = initial
        self.slots = (name,)
        self.disk = slot("disk", name)
        self.disks = {name: self.disk} if may_crash else {}

    def start(self) -> dict[str, Value]:
        return {self.name: self.initial, **({self.disk: durable(self.initial)} if self.disks else {})}

    def values(self, local: L) -> dict[str, Value]:
        return {self.name: local}

    def read(self, values: Values) -> L:
        return cast(L, values[self.name])

    def settled(self, local: L) -> L:
        return local

    def writes(self, before: L, after: L, flush: Flush) -> tuple[tuple[str, Value], ...]:
        if flush and self.disks:
            return ((self.name, after), (self.disk, durable(after)))
        return ((self.name, after),)

    def survivor(self, disks: Values) -> dict[str, Value]:
        return {self.name: survivor(self.initial, disks[self.disk])}


class ManySlots(Layout[Local]):
    """The layout of a state of several parts: a turn writes the parts that it changed, a flush their disks."""

    def __init__(self, name: str, initial: Local, may_crash: bool) -> None:
        self._slots = {part: slot(name, *part.index) for part in initial}
        self._disks = {
            part: slot("disk", name, *part.index) for part in initial
            if may_crash and durable(initial[part])
        }
        self._initial = {part: initial[part] for part in initial}
        self.slots = tuple(self._slots.values())
        self.disks = {self._slots[part]: disk for part, disk in self._disks.items()}

    def start(self) -> dict[str, Value]:
        disks = {disk: durable(self._initial[part]) for part, disk in self._disks.items()}
        return {**{self._slots[part]: value for part, value in self._initial.items()}, **disks}

    def values(self, local: Local) -> dict[str, Value]:
        return {where: local[part] for part, where in self._slots.items()}

    def read(self, values: Values) -> Local:
        return Local(self._slots, values, _NOTHING)

    def settled(self, local: Local) -> Local:
        return self.read(self.values(local))

    def writes(self, before: Local, after: Local, flush: Flush) -> tuple[tuple[str, Value], ...]:
        changed = after.changed(before)
        flushed: Mapping[Part[Any], Value] = changed if flush else _NOTHING
        if isinstance(flush, tuple):
            flushed = {part: after[part] for part in flush}
            changed = {**changed, **flushed}
        disks, slots = self._disks, self._slots
        writes = [(slots[part], value) for part, value in changed.items()]
        writes += [(disks[part], durable(value)) for part, value in flushed.items() if part in disks]
        return tuple(writes)

    def survivor(self, disks: Values) -> dict[str, Value]:
        return {
            self._slots[part]: survivor(value, disks[self._disks[part]]) if part in self._disks else value
            for part, value in self._initial.items()
        }


def layout_of(name: str, initial: L, may_crash: bool) -> Layout[L]:
    """Return where the state of an actor is kept that begins like this."""
    if isinstance(initial, Local):
        return cast(Layout[L], ManySlots(name, initial, may_crash))
    return OneSlot(name, initial, may_crash)


_NOTHING: Mapping[Part[Any], Value] = {}
