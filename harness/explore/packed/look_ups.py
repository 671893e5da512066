"""Tables of what can happen, by the values of some fields: each look-up is keyed on what is always read next.

A guard that fails early is found failing by few fields. An entry has edges, answers of checks, look-ups to go on with,
or nothing. A context answers for many look-ups at once where its fields decide.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from harness.explore.packed.footprints import Answer, Delivery, PackedEdge, PackedModel, Unit, UnitResult
from harness.explore.packed.layout import Look, PackedField
from harness.model import Message, Process, Property, View


class TableEntry:
    """What a look-up has for some values: edges, answers of checks, and look-ups to go on with.

    `hits` counts the states that it was found for.
    """

    __slots__ = ("answers", "children", "edges", "hits", "ways")

    def __init__(
        self, edges: tuple[PackedEdge, ...], children: tuple[LookUp, ...] = (), answers: tuple[Answer, ...] = ()
    ) -> None:
        self.edges = edges
        self.children = children
        self.answers = answers
        self.ways = sum([edge.step.ways for edge in edges])
        self.hits = 0


WITNESSED = "witnessed"
"""The answer of a `sometimes` property that is true."""
NOTHING = TableEntry(())


def witnessed(prop: Property, view: View) -> str | None:
    """Return the answer of a `sometimes` property on states."""
    return WITNESSED if prop.check(view) else None


class ArrangedModel(PackedModel, Protocol):
    """What a look-up needs to know of the space that it belongs to."""

    orphans: list[LookUp]
    narrowed: list[LookUp]

    def retire(self, table: dict[int, TableEntry]) -> None: ...

    def first_look_up(self, unit: Unit, state: int) -> UnitLookUp: ...

    def delivery(self, address: str, message: Message) -> Delivery: ...

    def together(self, look_ups: list[LookUp]) -> list[LookUp]: ...


class LookUp:
    """A table of `TableEntry` by the values of some fields; `fill` adds what is missing."""

    def __init__(self, space: ArrangedModel, fields: Iterable[PackedField]) -> None:
        self.space = space
        self.fields = {field.number: field for field in fields}
        self.table: dict[int, TableEntry] = {}
        self.mask = 0
        self.repack()

    def repack(self) -> None:
        """Forget what depends on how states are packed."""
        self.space.retire(self.table)
        self.table.clear()
        self.mask = sum(field.mask for field in self.fields.values())

    def at(self, state: int) -> TableEntry:
        """Return what is found for a state."""
        found = self.table.get(state & self.mask)
        return self.fill(state) if found is None else found

    def fill(self, state: int) -> TableEntry:
        """Work out what is found for a state, and remember it."""
        raise NotImplementedError

    def everything(self) -> Iterable[LookUp]:
        """Yield this look-up and those below it."""
        yield self


class UnitLookUp(LookUp):
    """A look-up of a unit: by the fields that it always reads, given what led here."""

    def __init__(self, space: ArrangedModel, unit: Unit, path: tuple[PackedField, ...]) -> None:
        self.unit = unit
        self.path = path
        """In the order of reading, what led here first."""
        self.children: dict[int, UnitLookUp] = {}
        super().__init__(space, path)

    def fill(self, state: int) -> TableEntry:
        known = self.table.get(state & self.mask)
        if known is not None:  # the caller may not know yet that the look-up reads less now
            return known
        return self._put(state, self.unit.at(state))

    def _put(self, state: int, result: UnitResult) -> TableEntry:
        """Enter what the unit yields, here and in the look-ups below, which are asked for the same state next."""
        reads = result.footprint
        if reads[: len(self.path)] != self.path:
            self._narrow(reads)
        if len(reads) > len(self.path):
            following = reads[len(self.path)].number
            child = self.children.get(following)
            if child is None:
                child = self.children[following] = UnitLookUp(self.space, self.unit, reads)
            found = TableEntry((), (child,))
            child._put(state, result)
        elif result.steps or result.answers:
            found = TableEntry(tuple([step.edge(state) for step in result.steps]), (), result.answers)
        else:
            found = NOTHING
        self.table[state & self.mask] = found
        return found

    def _narrow(self, reads: tuple[PackedField, ...]) -> None:
        """Keep only the first fields that are read in this order too; the others go to look-ups below."""
        common = 0
        while common < len(reads) and self.path[common] is reads[common]:
            common += 1
        self.path = self.path[:common]
        self.fields = {field.number: field for field in self.path}
        self.space.orphans += self.children.values()
        self.children.clear()
        self.repack()
        self.space.narrowed.append(self)

    def everything(self) -> Iterable[LookUp]:
        yield self
        for child in self.children.values():
            yield from child.everything()


class InboxLookUp(LookUp):
    """Which messages may arrive at a process: the look-ups of their deliveries, by the inboxes and whether it hears."""

    def __init__(self, space: ArrangedModel, process: Process, fields: Iterable[PackedField]) -> None:
        self.process = process
        super().__init__(space, fields)

    def fill(self, state: int) -> TableEntry:
        space, process = self.space, self.process
        arriving = space.model.arrivals(process, Look(space.layout, state))
        children = tuple([space.first_look_up(space.delivery(process.name, each), state) for each in arriving])
        found = self.table[state & self.mask] = TableEntry((), children) if children else NOTHING
        return found


class Context(LookUp):
    """What many units yield, as far as a few fields decide it; the others' look-ups are left to look further in."""

    def __init__(self, space: ArrangedModel, members: tuple[LookUp, ...], fields: Iterable[PackedField]) -> None:
        self.members = members
        super().__init__(space, fields)

    def fill(self, state: int) -> TableEntry:
        edges: list[PackedEdge] = []
        children: list[LookUp] = []
        answers: list[Answer] = []
        outside = ~self.mask
        ahead = list(reversed(self.members))
        while ahead:
            look_up = ahead.pop()
            if look_up.mask & outside:
                children.append(look_up)
                continue
            found = look_up.at(state)
            edges += found.edges
            answers += found.answers
            ahead += reversed(found.children)
        children = self.space.together(children)
        found = TableEntry(tuple(edges), tuple(children), tuple(answers)) if edges or children or answers else NOTHING
        self.table[state & self.mask] = found
        return found
