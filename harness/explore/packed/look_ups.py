"""Tables of what can happen, by the values of some fields: each stage is keyed on what is always read next.

A guard that fails early is found failing by few fields. A stage answers with edges, with answers of checks, with stages
to look further in, or with nothing. A context answers for many stages at once where its fields decide.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from harness.explore.packed.footprints import Answer, Delivery, Edge, Leaf, Packed, Unit
from harness.explore.packed.layout import Field
from harness.model import Message


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


class Arranged(Packed, Protocol):
    """What a stage needs to know of the space that it is looked up in."""

    orphans: list[Stage]

    def serial(self) -> int: ...

    def retire(self, table: dict[int, Found]) -> None: ...

    def changed(self, stage: Stage) -> None: ...

    def first_stage(self, unit: Unit, state: int) -> UnitStage: ...

    def delivery(self, address: str, message: Message) -> Delivery: ...

    def together(self, stages: list[Stage]) -> list[Stage]: ...


class Stage:
    """A table of `Found` by the values of some fields; `fill` adds what is missing."""

    def __init__(self, space: Arranged, fields: Iterable[Field]) -> None:
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

    def __init__(self, space: Arranged, unit: Unit, path: tuple[Field, ...]) -> None:
        self.unit = unit
        self.path = path
        """In the order of reading, what led here first."""
        self.children: dict[int, UnitStage] = {}
        super().__init__(space, path)

    def fill(self, state: int) -> Found:
        known = self.table.get(state & self.mask)
        if known is not None:  # who asks may not know yet that the stage reads less now
            return known
        return self._put(state, self.unit.leaf(state))

    def _put(self, state: int, leaf: Leaf) -> Found:
        """Enter what the unit yields, here and in the stages below, which are asked for the same state next."""
        reads = leaf.footprint
        if reads[: len(self.path)] != self.path:
            self._narrow(reads)
        if len(reads) > len(self.path):
            child = self._child(reads)
            found = Found((), (child,))
            child._put(state, leaf)
        elif leaf.moves or leaf.answers:
            found = Found(tuple([move.edge(state) for move in leaf.moves]), (), leaf.answers)
        else:
            found = NOTHING
        self.table[state & self.mask] = found
        return found

    def _child(self, reads: tuple[Field, ...]) -> UnitStage:
        """Return the stage that reads on."""
        following = reads[len(self.path)].number
        child = self.children.get(following)
        if child is None:
            child = self.children[following] = UnitStage(self.space, self.unit, reads)
        return child

    def _narrow(self, reads: tuple[Field, ...]) -> None:
        """Keep only the first fields that are read in this order too; the others go to stages below."""
        common = 0
        while common < len(reads) and self.path[common] is reads[common]:
            common += 1
        self.path = self.path[:common]
        self.fields = {field.number: field for field in self.path}
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

    def __init__(self, space: Arranged, address: str, field: Field) -> None:
        self.address = address
        self.field = field
        super().__init__(space, (field,))

    def fill(self, state: int) -> Found:
        inbox = self.space.layout.at(self.field, state)[0]
        arriving = self.space.model.network.deliverable(inbox)
        space, address = self.space, self.address
        children = tuple([space.first_stage(space.delivery(address, message), state) for message in arriving])
        found = self.table[state & self.mask] = Found((), children) if children else NOTHING
        return found


class Context(Stage):
    """What many units yield, as far as a few fields decide it; the others' stages are left to look further in."""

    def __init__(self, space: Arranged, members: tuple[Stage, ...], fields: Iterable[Field]) -> None:
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
