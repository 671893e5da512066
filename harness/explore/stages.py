"""Tables of what can happen, by the values of some fields: each stage is keyed on what is always read next.

A guard that fails early is found failing by few fields. A stage answers with edges, with answers of checks, with stages
to look further in, or with nothing. A context answers for many stages at once where its fields decide.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from harness.explore.layout import Field
from harness.explore.units import Answer, Edge, Unit

if TYPE_CHECKING:
    from harness.explore.space import Space


class Found:
    """What a look-up gives: edges, answers of checks, and stages in which to look further.

    `hits` counts the states it was given for.
    """

    __slots__ = ("answers", "children", "edges", "hits")

    def __init__(
        self, edges: tuple[Edge, ...], children: tuple[Stage, ...] = (), answers: tuple[Answer, ...] = ()
    ) -> None:
        self.edges = edges
        self.children = children
        self.answers = answers
        self.hits = 0


WITNESSED = "witnessed"
"""The answer of a `sometimes` property that is true."""
NOTHING = Found(())


class Stage:
    """A table of `Found` by the values of some fields; `fill` adds what is missing."""

    def __init__(self, space: Space, fields: Iterable[Field]) -> None:
        self.space = space
        self.serial = space.serial()
        self.fields = {field.number: field for field in fields}
        self.table: dict[int, Found] = {}
        self.mask = 0
        self.repack()

    def repack(self) -> None:
        """Forget what depends on how states are packed."""
        self.space.retire(self.table)
        self.table.clear()
        self.mask = sum(field.mask for field in self.fields.values())

    def at(self, state: int) -> Found:
        """Return what is found for a state."""
        found = self.table.get(state & self.mask)
        return self.fill(state) if found is None else found

    def fill(self, state: int) -> Found:
        """Work out what is found for a state, and remember it."""
        raise NotImplementedError

    def everything(self) -> Iterable[Stage]:
        """Yield this stage and those below it."""
        yield self


class UnitStage(Stage):
    """A stage of a unit: the fields that it always reads, given what led here."""

    def __init__(self, unit: Unit, parent: tuple[Field, ...], order: tuple[Field, ...]) -> None:
        self.unit = unit
        self.parent = parent
        self.order = order
        self.children: dict[int, UnitStage] = {}
        super().__init__(unit.space, (*self.parent, *order))

    def fill(self, state: int) -> Found:
        known = self.table.get(state & self.mask)
        if known is not None:  # who asks may not know yet that the stage reads less now
            return known
        leaf = self.unit.leaf(state)
        reads = leaf.footprint[len(self.parent) :]
        if reads[: len(self.order)] != self.order:
            self._narrow(reads)
            if (known := self.table.get(state & self.mask)) is not None:
                return known
        rest = reads[len(self.order) :]
        if rest:
            found = Found((), (self._child(rest),))
        elif leaf.moves or leaf.answers:
            found = Found(tuple([move.edge(state) for move in leaf.moves]), (), leaf.answers)
        else:
            found = NOTHING
        self.table[state & self.mask] = found
        return found

    def _child(self, rest: tuple[Field, ...]) -> UnitStage:
        """Return the stage that reads on."""
        child = self.children.get(rest[0].number)
        if child is None:
            child = self.children[rest[0].number] = UnitStage(self.unit, (*self.parent, *self.order), rest)
        return child

    def _narrow(self, reads: tuple[Field, ...]) -> None:
        """Keep only the first fields that are read in this order too; the others go to stages below."""
        common = 0
        while common < len(reads) and self.order[common] is reads[common]:
            common += 1
        self.order = self.order[:common]
        self.fields = {field.number: field for field in (*self.parent, *self.order)}
        self.space.orphans += self.children.values()
        self.children.clear()
        self.repack()
        self.space.changed(self)

    def everything(self) -> Iterable[Stage]:
        yield self
        for child in self.children.values():
            yield from child.everything()


class InboxStage(Stage):
    """Which messages may arrive at an address: the stages of their deliveries, by the channel's value."""

    def __init__(self, space: Space, address: str, field: Field) -> None:
        self.address = address
        self.field = field
        super().__init__(space, (field,))

    def fill(self, state: int) -> Found:
        inbox = self.space.layout.at(self.field, state)[0]
        arriving = self.space.model.network.deliverable(inbox)
        space = self.space
        children = tuple([space.first_stage(space.delivery(self.address, message), state) for message in arriving])
        found = self.table[state & self.mask] = Found((), children) if children else NOTHING
        return found


class Context(Stage):
    """What many units yield, as far as a few fields decide it; the others' stages are left to look further in."""

    def __init__(self, space: Space, members: tuple[Stage, ...], fields: Iterable[Field]) -> None:
        self.members = members
        super().__init__(space, fields)

    def fill(self, state: int) -> Found:
        edges: list[Edge] = []
        children: list[Stage] = []
        answers: list[Answer] = []
        outside = ~self.mask
        ahead = list(reversed(self.members))
        while ahead:
            stage = ahead.pop()
            if stage.mask & outside:
                children.append(stage)
                continue
            found = stage.at(state)
            edges += found.edges
            answers += found.answers
            ahead += reversed(found.children)
        children = self.space.together(children)
        found = Found(tuple(edges), tuple(children), tuple(answers)) if edges or children or answers else NOTHING
        self.table[state & self.mask] = found
        return found
