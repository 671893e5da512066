"""What can happen in a packed state, as look-ups: units of steps and of checks, memoised on the fields they read.

A unit is a process's own steps, or the delivery of one message. Its result for the values of its fields is a list of
edges; an edge is a difference to add to the packed state, and operations on channels (put, take) that look their own
field up. Protocol code runs once per distinct values read; a footprint that grows forgets what the old one keyed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from harness.explore.layout import Field, Layout, PackedView
from harness.model import Message, Model, Process, Property, Step, View, canonical_text

Op = tuple[int, int, dict[int, int], "Channel"]
"""Shift, low mask and table (field id -> difference) of an operation on a channel, and what fills the table."""


class Channel:
    """What one step does to one channel: messages taken (and discarded) and put, in that order."""

    def __init__(self, space: Space, field: Field, taken: Message | None, put: tuple[Message, ...]) -> None:
        self.space = space
        self.field = field
        self.taken = taken
        self.put = put
        self.table: dict[int, int] = {}

    def fill(self, state: int) -> int:
        """Work the difference out for the channel's value in a state, and remember it."""
        field = self.field
        at = (state >> field.shift) & field.low
        values = field.values[at]
        network = self.space.model.network
        inbox = values[0]
        if self.taken is not None:
            inbox = network.take(inbox, self.taken)
        for message in self.put:
            inbox = network.put(inbox, message)
        after = (inbox,) if len(values) == 1 else (inbox, values[1] | {self.taken} if self.taken else values[1])
        difference = (field.intern(after) - at) << field.shift
        self.table[at] = difference
        return difference


class Edge:
    """One way on from a state: what it adds, does to channels, and which checks it can make fail."""

    __slots__ = ("action", "checks", "delta", "label", "ops", "ways", "written")

    def __init__(self, step: Step, delta: int, ops: tuple[Op, ...], written: int) -> None:
        self.action = step.action
        self.label = step.label
        self.ways = step.ways
        self.delta = delta
        self.ops = ops
        self.written = written
        """The mask of the fields that may change."""
        self.checks: tuple[Check, ...] = ()


class Unit:
    """Steps that are looked up together."""

    def __init__(self, space: Space, process: Process, message: Message | None) -> None:
        self.space = space
        self.process = process
        self.message = message
        self.fields: dict[int, Field] = {}
        self.mask = 0
        self.table: dict[int, tuple[tuple[Edge, ...], list[int]]] = {}
        self.known: dict[tuple[int, ...], list[Step]] = {}

    def restart(self) -> None:
        """Forget what depends on how states are packed."""
        self.table.clear()
        self.mask = sum(field.mask for field in self.fields.values())

    def fill(self, state: int) -> tuple[tuple[Edge, ...], list[int]]:
        """Work out the edges for the values of this unit's fields in a state, and remember them."""
        layout = self.space.layout
        while True:
            key = tuple([(state >> field.shift) & field.low for field in self.fields.values()])
            steps = self.known.get(key)
            if steps is not None:
                break
            view = View(PackedView(layout, state))
            found = self._steps(view)
            touched = [*view.reads(), *(name for step in found for name, _ in step.writes)]
            if self._grow(touched):
                continue
            self.known[key] = found
        edges = tuple(self._edge(state, step) for step in steps)
        result = self.table[state & self.mask] = (edges, [0])
        return result

    def _steps(self, view: View) -> list[Step]:
        model = self.space.model
        if self.message is None:
            return [choice.step for choice in model.own_choices(self.process, view)]
        return [choice.step for choice in model.delivery_choices(self.process, view, self.message)]

    def _grow(self, names: list[str]) -> bool:
        """Take the fields of some slots into the footprint; say whether it grew."""
        before = len(self.fields)
        for name in names:
            field, _ = self.space.layout.where[name]
            self.fields.setdefault(field.number, field)
        if len(self.fields) == before:
            return False
        self.known.clear()
        self.table.clear()
        self.mask = sum(field.mask for field in self.fields.values())
        return True

    def _edge(self, state: int, step: Step) -> Edge:
        layout = self.space.layout
        delta = written = 0
        changed: dict[int, list[Any]] = {}
        for name, value in step.writes:
            field, n = layout.where[name]
            changed.setdefault(field.number, list(layout.at(field, state)))[n] = value
        for number, values in changed.items():
            field = layout.fields[number]
            at = (state >> field.shift) & field.low
            now = field.intern(tuple(values))
            if now != at:
                delta += (now - at) << field.shift
                written |= field.mask
        ops = self.space.channel_ops(step)
        for op in ops:
            written |= op[3].field.mask
        edge = Edge(step, delta, ops, written)
        edge.checks = tuple(check for check in self.space.checks if check.mask & written)
        return edge


class Group:
    """Units looked up as one: what any of them yields, keyed on all their fields together.

    It pays while the combinations of the fields are few against the states; `splits` says when they are not.
    """

    def __init__(self, units: list[Unit]) -> None:
        self.units = units
        self.mask = 0
        self.table: dict[int, tuple[tuple[tuple[Edge, ...], list[int]], ...]] = {}

    def restart(self) -> None:
        """Forget what depends on how states are packed."""
        self.table.clear()
        self.mask = 0
        for unit in self.units:
            self.mask |= unit.mask

    def fill(self, state: int) -> tuple[tuple[tuple[Edge, ...], list[int]], ...]:
        """Gather the results of the units that yield anything in a state, and remember them."""
        results = [unit.table.get(state & unit.mask) or unit.fill(state) for unit in self.units]
        mask = 0
        for unit in self.units:
            mask |= unit.mask
        if mask != self.mask:
            self.restart()
        found = self.table[state & self.mask] = tuple(result for result in results if result[0])
        return found

    def splits(self, states: int) -> bool:
        """Say whether the group has so many combinations that its units are better looked up one by one."""
        return len(self.units) > 1 and len(self.table) > 1_000 and len(self.table) * 4 > states


class Check:
    """Invariants that are looked at together: one index of one property, or all message properties of one channel."""

    def __init__(self, space: Space, name: str, check: Callable[[View], Any]) -> None:
        self.space = space
        self.name = name
        self.check = check
        self.fields: dict[int, Field] = {}
        self.mask = 0
        self.table: dict[int, str] = {}

    def restart(self) -> None:
        self.table.clear()
        self.mask = sum(field.mask for field in self.fields.values())

    def fill(self, state: int) -> str:
        """Return why the check fails in a state, or nothing; remember it."""
        view = View(PackedView(self.space.layout, state))
        why = self.check(view) or ""
        grew = False
        for name in view.reads():
            field, _ = self.space.layout.where[name]
            if field.number not in self.fields:
                self.fields[field.number] = field
                grew = True
        if grew:
            self.restart()
            self.space.checks_grew()
        self.table[state & self.mask] = why
        return why


class Space:
    """A model as units and checks over one layout."""

    def __init__(self, model: Model, invariants: tuple[Property, ...]) -> None:
        self.model = model
        self.layout = Layout(model)
        self.own = [Unit(self, process, None) for process in model.everyone()]
        self.groups = self._groups()
        self.deliveries: dict[tuple[str, str], Unit] = {}
        self.channels: dict[tuple[int, str], Channel] = {}
        self.checks: list[Check] = []
        self.grown = False
        self.receivers = {process.name: process for process in model.everyone() if process.has_inbox}
        for prop in invariants:
            self.checks += [Check(self, prop.name, check) for check in model.split(prop)]
        self.bounds = None if model.constraint is None else Check(self, "constraint", partial(_outside, model))

    def checks_grew(self) -> None:
        """A check depends on more than was known: edges must list it anew."""
        self.grown = True

    def relist(self) -> None:
        """List anew which checks each known edge can make fail."""
        self.grown = False
        for unit in [*self.own, *self.deliveries.values()]:
            for edges, _ in unit.table.values():
                for edge in edges:
                    edge.checks = tuple(check for check in self.checks if check.mask & edge.written)

    def restart(self) -> None:
        """Forget what depends on how states are packed."""
        for unit in [*self.own, *self.deliveries.values()]:
            unit.restart()
        for group in self.groups:
            group.restart()
        for check in [*self.checks, *([self.bounds] if self.bounds else [])]:
            check.restart()
        self.channels.clear()

    def _groups(self) -> list[Group]:
        """Group the units: each client or broker alone, everything without an inbox together."""
        alone = [Group([unit]) for unit in self.own if unit.process.has_inbox]
        together = [unit for unit in self.own if not unit.process.has_inbox]
        return [*alone, Group(together)] if together else alone

    def regroup(self, states: int) -> bool:
        """Take groups apart that have too many combinations; say whether there were any."""
        split = [group for group in self.groups if group.splits(states)]
        for group in split:
            self.groups.remove(group)
            self.groups += [Group([unit]) for unit in group.units]
        for group in self.groups:
            if not group.table:
                group.restart()
        return bool(split)

    def arrivals(self, field: Field, address: str, at: int) -> tuple[Unit, ...]:
        """Return the delivery units of the messages in a channel value."""
        inbox = field.values[at][0]
        return tuple(self.delivery(address, m) for m in self.model.network.deliverable(inbox))

    def delivery(self, address: str, message: Message) -> Unit:
        """Return the unit of one message's delivery."""
        key = (address, canonical_text(message))
        unit = self.deliveries.get(key)
        if unit is None:
            unit = self.deliveries[key] = Unit(self, self.receivers[address], message)
        return unit

    def channel_ops(self, step: Step) -> tuple[Op, ...]:
        """Return what a step does to the channels, one operation per channel."""
        touched: dict[str, tuple[Message | None, list[Message]]] = {}
        if step.consumed is not None:
            touched[step.consumed.dest] = (step.consumed, [])
        for message in step.sent:
            taken, put = touched.get(message.dest, (None, []))
            touched[message.dest] = (taken, [*put, message])
        ops = []
        for address, (taken, put) in touched.items():
            field = self.layout.channels[address]
            key = (field.number, canonical_text((taken, *put)))
            channel = self.channels.get(key)
            if channel is None:
                channel = self.channels[key] = Channel(self, field, taken, tuple(put))
            ops.append((field.shift, field.low, channel.table, channel))
        return tuple(ops)



def _outside(model: Model, view: View) -> str | None:
    assert model.constraint is not None
    return None if model.constraint(view) else "out of bounds"
