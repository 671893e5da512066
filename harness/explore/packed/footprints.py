"""What the protocol does in a packed state, asked once per distinct values read.

A unit is a process's own steps, the delivery of one message, or a check. What it yields for the values that it read is
found again by walking from field to field in the order of reading; that order depends only on those values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

import attrs

from harness.explore.packed.layout import Look, Overflow, PackedField, PackedLayout
from harness.memo.read_memo import ReadBranch, ReadTree
from harness.model import Message, Model, Process, Property, Step, Value, View, slot
from harness.model.links import Inbox
from harness.model.model import SlotWrites
from harness.model.network import FIFO

Answer = tuple[str, str]
"""The name of a property that answers in a state, and its reason."""


class PackedModel(Protocol):
    """What a unit needs to know of the packed model that it belongs to."""

    model: Model
    layout: PackedLayout
    step_witnesses: list[Property]

    def channel(self, field: PackedField, changes: tuple[ChannelChange, ...]) -> Channel: ...

    def witnesses_among(self, view: View, steps: Sequence[Step]) -> list[Answer]: ...


@attrs.frozen
class ChannelChange:
    """One thing that a step does to a slot of a channel: `take`, `put` or `discard` a message, `reconnect` a source."""

    inbox: Inbox
    """The inbox, or what was discarded of an address; its network does not matter then."""
    what: str
    whom: Any
    """The message, or the source."""

    def of(self, before: Value) -> Value:
        """Return what becomes of the slot's value."""
        if self.what == "put":
            return self.inbox.network.put(before, self.whom)
        if self.what == "take":
            return self.inbox.network.take(before, self.whom)
        return before | {self.whom} if self.what == "discard" else FIFO.reconnect(before, self.whom)

    @property
    def key(self) -> tuple[Value, ...]:
        """A value that tells changes apart."""
        return self.inbox.slot, self.what, self.whom


class Channel(dict[int, int]):
    """What one step does to one channel, an address's inboxes: bits of the field -> difference to add."""

    __slots__ = ("changes", "field", "ids")
    __hash__ = object.__hash__  # type: ignore[assignment]  # each is itself, whatever it has

    def __init__(self, field: PackedField, changes: tuple[ChannelChange, ...]) -> None:
        super().__init__()
        self.field = field
        self.changes = changes
        self.ids: dict[int, int] = {}

    def __missing__(self, bits: int) -> int:
        field = self.field
        at = bits >> field.shift
        after = self.ids.get(at)
        if after is None:
            after = self.ids[at] = field.intern(self._after(field.values[at]))
        elif after > field.low:
            raise Overflow(field)
        difference = self[bits] = (after - at) << field.shift
        return difference

    def _after(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        slots = self.field.slots
        after = list(values)
        for change in self.changes:
            at = slots.index(change.inbox.slot)
            after[at] = change.of(after[at])
        return tuple(after)


class Sorted(SlotWrites):
    """What a step writes, where what it does to a channel is kept apart, so that the step need not know the inbox.

    A step that writes an inbox itself (a crash, a message that is given back) does depend on it.
    """

    def __init__(self, layout: PackedLayout, view: View, own: Iterable[tuple[str, Value]]) -> None:
        super().__init__(view, own)
        self._where = layout.where
        self._own = {layout.where[name][0] for name in self}
        self.changes: dict[PackedField, list[ChannelChange]] = {}

    def _is_apart(self, change: ChannelChange) -> bool:
        field, _ = self._where[change.inbox.slot]
        if field in self._own:
            return False
        self.changes.setdefault(field, []).append(change)
        return True

    def take(self, inbox: Inbox, message: Message) -> None:
        if not self._is_apart(ChannelChange(inbox, "take", message)):
            super().take(inbox, message)

    def discard(self, message: Message) -> None:
        if not self._is_apart(ChannelChange(Inbox(slot("discarded", message.dest), FIFO), "discard", message)):
            super().discard(message)

    def put(self, inbox: Inbox, message: Message) -> None:
        if not self._is_apart(ChannelChange(inbox, "put", message)):
            super().put(inbox, message)

    def reconnect(self, inbox: Inbox, source: str) -> None:
        if not self._is_apart(ChannelChange(inbox, "reconnect", source)):
            super().reconnect(inbox, source)


class PackedEdge:
    """One way on from a state: the step, what it adds to the packed state, and the channels it changes besides."""

    __slots__ = ("channels", "delta", "step")

    def __init__(self, step: Step, delta: int, channels: tuple[Channel, ...]) -> None:
        self.step = step
        self.delta = delta
        self.channels = channels

    def follow(self, state: int) -> int:
        """Return the state after this step."""
        after = state + self.delta
        for channel in self.channels:
            after += channel[state & channel.field.mask]
        return after


class InternedStep:
    """A step with the ids of what it writes, whatever the packing."""

    __slots__ = ("channels", "step", "writes")

    def __init__(self, space: PackedModel, step: Step, state: int, written: Sorted) -> None:
        layout = space.layout
        changed: dict[PackedField, list[tuple[int, Any]]] = {}
        for name, value in written.items():
            field, n = layout.where[name]
            changed.setdefault(field, []).append((n, value))
        self.step = step
        self.writes = [
            (field, field.replaced((state >> field.shift) & field.low, changes)) for field, changes in changed.items()
        ]
        self.channels = tuple([space.channel(field, tuple(each)) for field, each in written.changes.items()])

    def edge(self, state: int) -> PackedEdge:
        """Return the step as an edge from a state. Raises Overflow if a field is too narrow for what it writes."""
        delta = 0
        for field, after in self.writes:
            if after > field.low:
                raise Overflow(field)
            delta += (after - ((state >> field.shift) & field.low)) << field.shift
        return PackedEdge(self.step, delta, self.channels)


class UnitResult:
    """What a unit yields for the values it read: steps or answers, and the fields that matter, in order of reading."""

    __slots__ = ("answers", "footprint", "steps")

    def __init__(
        self, footprint: tuple[PackedField, ...], steps: tuple[InternedStep, ...], answers: tuple[Answer, ...]
    ) -> None:
        self.footprint = footprint
        self.steps = steps
        self.answers = answers


class Unit(ReadTree):
    """Steps or answers that are worked out together, remembered by the values that were read, whatever the packing."""

    def __init__(self, space: PackedModel) -> None:
        super().__init__()
        self.space = space

    def steps(self, view: View) -> tuple[Step, ...]:
        """Return the steps that are possible."""
        return ()

    def answers(self, view: View) -> tuple[Answer, ...]:
        """Return the answers there are."""
        return ()

    def at(self, state: int) -> UnitResult:
        """Return what the unit yields in a state; the protocol is asked once per distinct values read."""
        node = self.root
        while node.__class__ is ReadBranch:
            field = node.read
            node = node.children.get((state >> field.shift) & field.low)
        return self._ask(state) if node is None else node

    def is_silent_at(self, field: PackedField, at: int) -> bool:
        """Say whether the value of one field alone settles that there is no answer; the others are as at the start."""
        try:
            result = self.at(at << field.shift)
        except Exception:  # the other fields' values need not fit: whatever happens, more than one field was read
            return False
        return not result.answers and result.footprint in ((), (field,))

    def _ask(self, state: int) -> UnitResult:
        """Ask the protocol, and remember what it said by the values that it read."""
        space = self.space
        view = Look(space.layout, state)
        steps = self.steps(view)
        answers = self.answers(view)
        if steps and space.step_witnesses:
            answers = (*answers, *space.witnesses_among(view, steps))
        layout = space.layout
        writes = [self._written(view, step) for step in steps]
        where = layout.where
        read: list[PackedField] = list(dict.fromkeys([where[name][0] for name in view.reads()]))
        footprint = read
        if steps:
            written = dict.fromkeys([where[name][0] for each in writes for name in each])
            read += [field for field in written if len(field.slots) > 1 and field not in read]
            footprint = [*read, *(field for field in written if field not in read)]
        interned = [InternedStep(space, step, state, each) for step, each in zip(steps, writes, strict=True)]
        result = UnitResult(tuple(footprint), tuple(interned), answers)
        self.insert(read, [(state >> field.shift) & field.low for field in read], result)
        return result

    def _written(self, view: View, step: Step) -> Sorted:
        """Return what a step writes; faults that its messages meet are read from the view."""
        found: list[Sorted] = []

        def writing(view: View, own: Iterable[tuple[str, Value]]) -> Sorted:
            found.append(Sorted(self.space.layout, view, own))
            return found[0]

        self.space.model.effects(view, step, writing)
        return found[0]


class Steps(Unit):
    """A process's own steps."""

    def __init__(self, space: PackedModel, process: Process) -> None:
        super().__init__(space)
        self.process = process

    def steps(self, view: View) -> tuple[Step, ...]:
        return tuple(self.space.model.own_steps(self.process, view))


class Delivery(Unit):
    """The delivery of one message."""

    def __init__(self, space: PackedModel, process: Process, message: Message) -> None:
        super().__init__(space)
        self.process = process
        self.message = message

    def steps(self, view: View) -> tuple[Step, ...]:
        return tuple(self.space.model.delivery_steps(self.process, view, self.message))


class Check(Unit):
    """One index of a property: its answer is a reason, or nothing."""

    def __init__(self, space: PackedModel, name: str, ask: Callable[[View], str | None]) -> None:
        super().__init__(space)
        self.name = name
        self.ask = ask

    def answers(self, view: View) -> tuple[Answer, ...]:
        why = self.ask(view)
        return () if why is None else ((self.name, why),)


class MessageCheck(Unit):
    """All properties of messages, for those of one inbox: each message is looked at once."""

    def __init__(self, space: PackedModel, inbox: Inbox, properties: Sequence[Property]) -> None:
        super().__init__(space)
        self.inbox = inbox
        self.properties = properties
        self.good: set[Message] = set()

    def answers(self, view: View) -> tuple[Answer, ...]:
        network = self.inbox.network
        inbox = view[self.inbox.slot]
        new = set(network.each(inbox)) - self.good  # a set keeps the hashes of another
        if all(prop.check(message) is None for message in new for prop in self.properties):
            self.good.update(new)
            return ()
        reasons = ((prop.name, prop.check(message)) for prop in self.properties for message in network.contents(inbox))
        return tuple({name: (name, why) for name, why in reasons if why is not None}.values())

    def is_silent_at(self, field: PackedField, at: int) -> bool:
        inbox = field.values[at][field.slots.index(self.inbox.slot)]
        return self.good.issuperset(self.inbox.network.each(inbox)) or super().is_silent_at(field, at)
