"""Numbers that are only compared: the protocol declares them once, where a field of a state or a message holds one.

Correlation ids are compared for equality only, incarnations also for order; the numbers themselves do not matter.
States that differ in the choice of such numbers only are one. `renamed` is a state under another choice; -1, 0 and None
mean none, or the first, and stay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import attrs

from harness.model.frozen_map import FrozenMap
from harness.model.local_state import survivor
from harness.model.model import Model
from harness.model.network import Network
from harness.model.values import Value, canonical_sort
from harness.model.view import State, parts

BESIDE = "beside"
SPECIAL = (-1, 0)
"""Numbers that are never renamed."""
Namespace = tuple[str, str]
"""A sort of numbers and their owner: numbers of two namespaces are never compared."""
Rename = Callable[[Namespace, int], int]


@attrs.frozen
class Number:
    """What a field's declaration says of the numbers in it, in whatever tuples, sets and maps they stand."""

    sort: str
    ordered: bool
    """Whether numbers are ordered, or compared for equality only; a new number is greater than all either way."""
    per: tuple[str, ...] = ()
    """Their owner: `self` (the actor in whose state they stand), `part` (the key of the part of that state), `key` (of
    the map in which they or their record stand), `beside` (the text that begins their tuple; others stay), or fields of
    their record that name it, as `source` and `dest` of a message; none for one namespace."""


def fresh(sort: str, *per: str) -> dict[str, Any]:
    """Return metadata of a field whose numbers are compared for equality only; | combines it with other."""
    return {"number": Number(sort, False, per)}


def ordered(sort: str, *per: str) -> dict[str, Any]:
    """Return metadata of a field whose numbers are compared for equality and order."""
    return {"number": Number(sort, True, per)}


@attrs.frozen
class Sort:
    """The declaration of a sort of numbers: whether order counts, and the fields that hold them with their `per`."""

    ordered: bool
    fields: dict[str, tuple[str, ...]]


def declared(types: Iterable[type]) -> dict[str, Sort]:
    """Return the sorts of numbers that the fields of some classes hold. Raises ValueError if declarations differ."""
    found: dict[str, Sort] = {}
    for cls in types:
        for field in attrs.fields(cls) if attrs.has(cls) else ():
            number: Number | None = field.metadata.get("number")
            if number is not None:
                name = f"{cls.__name__}.{field.name}"
                sort = found.setdefault(number.sort, Sort(number.ordered, {}))
                if sort.ordered is not number.ordered:
                    raise ValueError(f"{number.sort} is ordered in {min(sort.fields)} or in {name}, not in both")
                sort.fields[name] = number.per
    return dict(sorted(found.items()))


class NumberSlots:
    """The slots of a model, each with what its numbers mean there: its owner, and how its value is put together."""

    def __init__(self, model: Model) -> None:
        self._owners: dict[str, str] = {}
        self._disks: dict[str, str] = {}
        self._initial = model.initial_states()[0]
        for actor in model.actors.values():
            self._owners |= dict.fromkeys(actor.layout.slots, actor.name)
            self._disks |= {disk: where for where, disk in actor.layout.disks.items()}
        self._networks = networks(model)

    def renamed(self, name: str, value: Value, rename: Rename) -> Value:
        """Return the value of a slot under another choice of its declared numbers."""
        if name in self._disks:
            where = self._disks[name]
            renaming = _Renaming(rename, self._owners[where], part_of(where))
            return _disk(survivor(self._initial[where], value), value, renaming)
        after = renamed_value(value, rename, self._owners.get(name, ""), part_of(name))
        return in_order(name, after, self._networks.get(name))


def part_of(slot: str) -> str:
    """Return the key of the part of an actor that a slot holds, of `b1[replica][p1]` it is p1; empty without one."""
    return " ".join(parts(slot)[2:])


def networks(model: Model) -> dict[str, Network]:
    """Return the semantics of each slot that is an inbox."""
    return {inbox.slot: inbox.network for mine in model.inboxes.values() for inbox in mine}


def in_order(name: str, value: Value, network: Network | None) -> Value:
    """Return the value of a slot with what it keeps in canonical order in that order again, after a renaming.

    `network` is the semantics of an inbox.
    """
    if parts(name)[0] == "held":
        return tuple(canonical_sort(value))
    return value if network is None else network.in_order(value)


def renamed(model: Model, state: State, rename: Rename) -> dict[str, Value]:
    """Return a state in which each declared number that is not special is replaced as `rename` says."""
    slots = NumberSlots(model)
    return {name: slots.renamed(name, value, rename) for name, value in state.items()}


def numbers(model: Model, state: State) -> dict[Namespace, set[int]]:
    """Return the declared numbers of a state that are not special, by namespace."""
    found: dict[Namespace, set[int]] = {}

    def note(where: Namespace, number: int) -> int:
        found.setdefault(where, set()).add(number)
        return number

    renamed(model, state, note)
    return found


def renamed_value(value: Value, rename: Rename, owner: str = "", part: str = "") -> Value:
    """Return a value, a part of the state of `owner` or a message, under another choice of its declared numbers."""
    return _Renaming(rename, owner, part).of(value, None, (), "")


def _disk(local: Value, disk: FrozenMap[str, Value], renaming: _Renaming) -> Value:
    """Return the persisted fields of a local state, as its class declares them."""
    fields = attrs.fields_dict(type(local))
    return FrozenMap({name: renaming.of_field(local, fields[name], value) for name, value in disk.items()})


class _Renaming:
    """A way through the values of one slot."""

    def __init__(self, rename: Rename, owner: str, part: str) -> None:
        self.rename = rename
        self.whose = {"key": "key", BESIDE: BESIDE, "self": owner, "part": part}
        """What the words of a declaration mean that are no fields of a record."""

    def of(self, value: Any, number: Number | None, whose: tuple[str, ...], key: str) -> Value:
        """Return a value; `number` is the declaration of its field, `key` that of the nearest map."""
        if value is None or isinstance(value, bool | str | bytes):
            return value
        if isinstance(value, int):
            if number is None or value in SPECIAL:
                return value
            return self.rename((number.sort, " ".join(key if name == "key" else name for name in whose)), value)
        if isinstance(value, tuple):
            if BESIDE in whose:
                return self.of_tuple(value, number, whose, key)
            return tuple(self.of(item, number, whose, key) for item in value)
        if isinstance(value, frozenset):
            return frozenset(self.of(item, number, whose, key) for item in value)
        if isinstance(value, FrozenMap):
            return FrozenMap({
                self.of(k, number, whose, key): self.of(item, number, whose, k if isinstance(k, str) else key)
                for k, item in value.items()
            })
        changes = {field.alias or field.name: self.of_field(value, field, getattr(value, field.name), key)
                   for field in attrs.fields(type(value))}
        return attrs.evolve(value, **changes)

    def of_tuple(self, value: tuple[Any, ...], number: Number | None, whose: tuple[str, ...], key: str) -> Value:
        """Return a tuple in which numbers are of the text that begins it, if one does."""
        if value and isinstance(value[0], str):
            owner = str(value[0])
            return tuple(self.of(item, number, tuple(owner if w == BESIDE else w for w in whose), key)
                         for item in value)
        return tuple(item if isinstance(item, int) else self.of(item, number, whose, key) for item in value)

    def of_field(self, record: Any, field: attrs.Attribute[Any], value: Value, key: str = "") -> Value:
        """Return what a field of a record holds."""
        number: Number | None = field.metadata.get("number")
        return self.of(value, number, tuple(self._owner(record, name) for name in number.per) if number else (), key)

    def _owner(self, record: Any, name: str) -> str:
        if name in self.whose:
            return self.whose[name]
        said = getattr(record, name)
        return "" if said is None else str(said)
