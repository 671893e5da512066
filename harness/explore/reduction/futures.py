"""What actors may do and send from here on, as far as a search has seen: an automaton of each actor.

A node of an actor is the shape of its own slots. An edge is something that was seen to happen there: a step of its own,
the delivery of a message, a crash, a restart. `Futures.without` says what some actors may ever send while the others
stay as they are: each for itself goes wherever its edges lead, and a message that is once under way is there for good.
That is more than can happen, and never less of what was seen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import attrs

from harness.explore.reduction.shapes import Shapes, placed
from harness.memo.interning import Ids
from harness.model import Message, Model

OWN = -1
FAULT, TIMER = "fault", "timer"
Change = tuple[int, int, int]
"""A slot, and the ids of its value before and after."""


@attrs.define(eq=False)
class Fact:
    """What was seen to come with an edge: changes of slots, and messages that a property on messages is against."""

    changes: set[Change]
    is_bad: bool = False
    is_visible: bool = False


@attrs.frozen
class SeenEdge:
    """What happened at a node: the shape of the message consumed (`OWN`: none), the node after it, what was sent."""

    consumed: int
    after: int
    sent: int
    needs: str = ""
    """What there must be left of so that it can happen: `FAULT`, `TIMER`, or nothing."""


class Futures:
    """The automata of a model's actors; `is_visible` says whether a property may look at a change."""

    def __init__(
        self, model: Model, shapes: Shapes, index: dict[str, int], is_visible: Callable[[Change], bool]
    ) -> None:
        self._shapes = shapes
        self._is_visible = is_visible
        self.actors = tuple(model.actors)
        self.place = {name: n for n, name in enumerate(self.actors)}
        self.slots: list[tuple[int, ...]] = []
        """Of each actor: its slots, and those of its disks."""
        for name in self.actors:
            own = dict.fromkeys((*model.slots_of(name), *model.disks_of(name).values()))
            self.slots.append(tuple([index[slot] for slot in own]))
        self._nodes: list[dict[Ids, int]] = [{} for _ in self.actors]
        self._shapes_of: list[list[Ids]] = [[] for _ in self.actors]
        self._locals: list[dict[Ids, int]] = [{} for _ in self.actors]
        self._edges: list[list[dict[SeenEdge, Fact]]] = [[] for _ in self.actors]
        self._facts: list[Fact] = []
        self._met: list[dict[object, set[Ids]]] = [{} for _ in self.actors]
        self.to = [0] * len(self.actors)
        """Of each actor: the messages to it, as a mask of shapes."""
        self._taken = [0] * len(self.actors)
        """Of each actor: the messages that an edge consumes."""
        self._reached: list[dict[tuple[int, int, tuple[str, ...]], tuple[int, bool]]] = [{} for _ in self.actors]
        self._answers: dict[object, tuple[tuple[int, ...], bool]] = {}
        self.version = 0
        """Grows whenever an answer may have changed."""

    def node(self, actor: int, state: Ids) -> int:
        """Return where an actor is in a state."""
        local = tuple([state[n] for n in self.slots[actor]])
        found = self._locals[actor].get(local)
        if found is None:
            shapes = tuple([self._shapes.of(n, value) for n, value in zip(self.slots[actor], local, strict=True)])
            found = self._locals[actor][local] = self._node(actor, shapes)
        return found

    def _node(self, actor: int, shapes: Ids) -> int:
        found = self._nodes[actor].get(shapes)
        if found is None:
            found = self._nodes[actor][shapes] = len(self._shapes_of[actor])
            self._shapes_of[actor].append(shapes)
            self._edges[actor].append({})
        return found

    def mask(self, messages: Iterable[Message]) -> int:
        """Return messages as a mask of shapes."""
        found = 0
        for message in messages:
            shape = self._shapes.message(message)
            found |= 1 << shape
            to = self.place.get(message.dest)
            if to is not None:
                self.to[to] |= 1 << shape
        return found

    def is_met(self, actor: int, way: object, state: Ids) -> bool:
        """Say whether a step was learned where an actor is, and note that it is."""
        local = tuple([state[n] for n in self.slots[actor]])
        met = self._met[actor].setdefault(way, set())
        if local in met:
            return True
        met.add(local)
        return False

    def learn(
        self, actor: int, before: Ids, after: Ids, consumed: Message | None, sent: Iterable[Message], *,
        is_bad: bool, needs: str = "",
    ) -> None:
        """Note what happened to an actor, given the states before and after it."""
        taken = OWN if consumed is None else self.mask((consumed,)).bit_length() - 1
        edge = SeenEdge(taken, self.node(actor, after), self.mask(sent), needs)
        node = self.node(actor, before)
        fact = self._edges[actor][node].get(edge)
        if fact is None:
            fact = Fact(set())
            self._facts.append(fact)
            self._add(actor, node, edge, fact)
            for k in range(len(self._shapes.images)):
                self._add(*self._image(k, actor, node, edge), fact)
        new = {(n, before[n], after[n]) for n in self.slots[actor] if before[n] != after[n]} - fact.changes
        fact.changes |= new
        fact.is_bad |= is_bad
        if not fact.is_visible and (is_bad or any(self._is_visible(change) for change in new)):
            fact.is_visible = True
            self._forget()

    def _add(self, actor: int, node: int, edge: SeenEdge, fact: Fact) -> None:
        if self._edges[actor][node].setdefault(edge, fact) is fact:
            if edge.consumed != OWN:
                self._taken[actor] |= 1 << edge.consumed
            self._reached[actor].clear()
            self._answers.clear()
            self.version += 1

    def _image(self, k: int, actor: int, node: int, edge: SeenEdge) -> tuple[int, int, SeenEdge]:
        shapes = self._shapes
        name = self.actors[actor]
        other = self.place[shapes.images[k].names.get(name, name)]

        def image(at: int) -> int:
            own = self.slots[actor]
            there = [shapes.image(k, n, shape) for n, shape in zip(own, self._shapes_of[actor][at], strict=True)]
            return self._node(other, placed(there, [shapes.images[k].targets[n] for n in own], self.slots[other]))

        sent = 0
        for shape in bits(edge.sent):
            sent |= self.mask((shapes.messages[shapes.message_image(k, shape)],))
        taken = OWN if edge.consumed == OWN else shapes.message_image(k, edge.consumed)
        return other, image(node), SeenEdge(taken, image(edge.after), sent, edge.needs)

    def look_again(self) -> None:
        """Ask for every change anew whether a property may look at it."""
        for fact in self._facts:
            fact.is_visible = fact.is_bad or any(self._is_visible(change) for change in fact.changes)
        self._forget()

    def _forget(self) -> None:
        for reached in self._reached:
            reached.clear()
        self._answers.clear()
        self.version += 1

    def without(
        self, inside: int, nodes: Ids, under_way: int, hit: int, has_timers: bool
    ) -> tuple[tuple[int, ...], bool]:
        """Return what each actor may ever send while those `inside` (a mask) stay as they are, and whether a property
        may look at any of it; `hit` are those that a fault may still crash or restart."""
        outside = tuple([-1 if inside >> n & 1 else node for n, node in enumerate(nodes)])
        key = (outside, under_way, hit, has_timers)
        found = self._answers.get(key)
        if found is None:
            found = self._answers[key] = self._without(inside, nodes, under_way, hit, has_timers)
        return found

    def _without(
        self, inside: int, nodes: Ids, there: int, hit: int, has_timers: bool
    ) -> tuple[tuple[int, ...], bool]:
        has: tuple[tuple[str, ...], ...] = (("", TIMER), ("", TIMER, FAULT)) if has_timers else (("",), ("", FAULT))
        outside = [n for n in range(len(nodes)) if not inside >> n & 1]
        sent, before, is_visible = [0] * len(nodes), -1, False
        while before != there:
            before, is_visible = there, False
            for n in outside:
                sent[n], sees = self._reach(n, nodes[n], there, has[hit >> n & 1])
                there |= sent[n]
                is_visible |= sees
        return tuple(sent), is_visible

    def _reach(self, actor: int, node: int, there: int, has: tuple[str, ...]) -> tuple[int, bool]:
        there &= self._taken[actor]
        key = (node, there, has)
        found = self._reached[actor].get(key)
        if found is not None:
            return found
        edges, seen, ahead, sent, is_visible = self._edges[actor], {node}, [node], 0, False
        while ahead:
            for edge, fact in edges[ahead.pop()].items():
                if (edge.consumed == OWN or there >> edge.consumed & 1) and edge.needs in has:
                    sent |= edge.sent
                    is_visible |= fact.is_visible
                    if edge.after not in seen:
                        seen.add(edge.after)
                        ahead.append(edge.after)
        found = self._reached[actor][key] = (sent, is_visible)
        return found


def bits(mask: int) -> Iterable[int]:
    """Yield the places of the bits of a mask."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low
