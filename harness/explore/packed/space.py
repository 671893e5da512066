"""A model as tables over one layout: its units, their first look-ups and how these are grouped, what they counted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from math import prod

from harness.explore.packed.footprints import (
    Answer,
    Channel,
    ChannelChange,
    Check,
    Delivery,
    MessageCheck,
    PackedEdge,
    Steps,
    Unit,
)
from harness.explore.packed.layout import PackedField, PackedLayout
from harness.explore.packed.look_ups import WITNESSED, Context, InboxLookUp, LookUp, TableEntry, UnitLookUp, witnessed
from harness.explore.packed.silent_checks import SilentGroup, silent_groups
from harness.model import Message, Model, Process, Property, Step, View, canonical_text, slot
from harness.model.improper import blamed

GROUPS = 2
"""Groups of checks up to which they are asked apart from the steps."""


class Space:
    """A model as look-ups over one layout: those at the roots are made for every state, in the order of the model."""

    def __init__(
        self, model: Model, properties: tuple[Property, ...] = (), together: tuple[tuple[str, ...], ...] = ()
    ) -> None:
        self.model = model
        self.layout = PackedLayout(model, together)
        self.actions: dict[str, int] = {}
        self.step_witnesses = [prop for prop in properties if prop.on == "step"]
        self.checks = self._checks([prop for prop in properties if prop.on != "step"])
        self.arrangements: dict[tuple[LookUp, ...], list[LookUp]] = {}
        self.groups: dict[tuple[int, tuple[LookUp, ...]], Context] = {}
        self.most = 0
        """Combinations of values that a context may have beyond what its look-ups have anyway."""
        self.by_value: dict[LookUp, int] = {}
        """Checks that are asked once per value of their only field, and how many values were asked about."""
        self.answering: set[LookUp] = set()
        """Checks that may answer for all that is known."""
        self.sees_all_states = False
        """Whether `settle` gets all states before they are looked up, so that no check need be among the roots."""
        self.silent: list[LookUp] = []
        """Checks that read several fields and have not answered, where the space sees all states."""
        self.silent_groups: list[SilentGroup] | None = None
        """The same in groups; None: not decided yet; none: they are looked up with the steps."""
        self.filled = 0
        """How often the loop in Python did not find an entry."""
        self.dismissed: set[str] = set()
        """Properties whose answers are not needed any more."""
        self.first_look_ups: dict[Unit, UnitLookUp] = {}
        self.orphans: list[LookUp] = []
        """Look-ups that their parents dropped; contexts may still refer to them."""
        self.narrowed: list[LookUp] = []
        """Look-ups whose fields changed since the kernel last looked."""
        self.deliveries: dict[tuple[str, str], Delivery] = {}
        self.channels: dict[tuple[int, str], Channel] = {}
        self.receivers = {process.name: process for process in model.everyone() if process.has_inbox}
        self.bases: list[LookUp] = []
        """The first look-ups of all processes and inboxes."""
        self.asked: list[LookUp] = []
        """The first look-ups of all checks."""
        self.bounds: LookUp | None = None
        """The first look-up of the constraint: it answers for states out of bounds."""
        self.roots: list[LookUp] = []
        """What is looked up for every state: bases and checks, each for itself or in contexts."""

    def start(self, state: int) -> None:
        """Make the roots, each unit for itself, once an initial state is packed. Raises Overflow: call it again."""
        bases: list[LookUp] = []
        for process in self.model.everyone():
            bases.append(self.first_look_up(Steps(self, process), state))
            if process.has_inbox:
                bases.append(InboxLookUp(self, process, self._fields_of_arrivals(process)))
        asked: list[LookUp] = [self.first_look_up(check, state) for check in self.checks]
        if (constraint := self.model.constraint) is not None:
            outside = Check(self, "constraint", lambda view: None if constraint(view) else "out of bounds")
            self.bounds = self.first_look_up(outside, state)
        self.bases, self.asked = bases, asked
        self.arrange()

    def _fields_of_arrivals(self, process: Process) -> list[PackedField]:
        """Return the fields on which it depends what may arrive at a process: its inboxes, and whether it hears."""
        gate = [self.layout.where[slot("gate", process.name)][0]] if self.model.faulty else []
        return [*gate, self.layout.channels[process.name]]

    def first_look_up(self, unit: Unit, state: int) -> UnitLookUp:
        """Return a unit's first look-up; a state tells which fields it reads first."""
        look_up = self.first_look_ups.get(unit)
        if look_up is None:
            look_up = self.first_look_ups[unit] = UnitLookUp(self, unit, unit.at(state).footprint)
        return look_up

    def arrange(self) -> None:
        """Choose anew what is looked up first, and together; what was counted stays counted."""
        for look_up in [*self.roots, *self.groups.values()]:
            if isinstance(look_up, Context):
                self.retire(look_up.table)
        self.groups.clear()
        self.arrangements.clear()
        asked = self._still_asked()
        self.by_value = {look_up: 0 for look_up in asked if self._goes_by_value(look_up)}
        others = [look_up for look_up in asked if look_up not in self.by_value]
        self.silent_groups = None
        self.silent = [each for each in others if each not in self.answering] if self.sees_all_states else []
        self.roots = self.together([*(each for each in others if each not in self.silent), *self.bases])

    def dismiss(self, names: Iterable[str]) -> None:
        """Take note that the answers of some properties are not needed any more."""
        self.dismissed.update(names)
        self.roots = [root for root in self.roots if not self._is_dismissed(root)]

    def _still_asked(self) -> list[LookUp]:
        return [look_up for look_up in self.asked if not self._is_dismissed(look_up)]

    def _is_dismissed(self, look_up: LookUp) -> bool:
        unit = look_up.unit if isinstance(look_up, UnitLookUp) else None
        return isinstance(unit, Check) and unit.name in self.dismissed

    def _goes_by_value(self, look_up: LookUp) -> bool:
        """Say whether a check reads one field and has not answered: then it need not be looked up for every state."""
        return len(look_up.fields) == 1 and all(
            not found.answers and not found.children for found in look_up.table.values()
        ) and look_up not in self.answering

    def settle(self, states: Sequence[int] = ()) -> bool:
        """Ask checks that go by value about new values; say whether one may answer now, so that the roots changed."""
        changed = False
        while self._ask_new_values():
            changed = True
        if self.silent:
            if self.silent_groups is None:
                self.silent_groups = self._grouped(states)
            answering = [look_up for group in self.silent_groups for look_up in group.ask(states)]
            self.silent = [look_up for look_up in self.silent if look_up not in answering]
            self.answering.update(answering)
            self.roots = [*self.roots, *answering]
        return changed

    def _grouped(self, states: Sequence[int]) -> list[SilentGroup]:
        """Group the checks that have not answered; where that takes many groups, contexts with the steps do better."""
        groups = silent_groups(self.silent, states)
        if len(groups) <= GROUPS:
            return groups
        self.silent = []
        everything = [*self._still_asked(), *self.bases]
        self.roots = self.together([look_up for look_up in everything if look_up not in self.by_value])
        return []

    def _ask_new_values(self) -> bool:
        answering = [look_up for look_up, done in self.by_value.items() if not self._stays_silent(look_up, done)]
        if self.sees_all_states and self.silent_groups != []:
            for look_up in answering:
                del self.by_value[look_up]
                self.silent.append(look_up)
                self.silent_groups = None
            return False
        self.answering.update(answering)
        if answering:
            self.arrange()
        return bool(answering)

    def _stays_silent(self, look_up: LookUp, done: int) -> bool:
        (field,) = look_up.fields.values()
        values = min(len(field.values), field.low + 1)
        self.by_value[look_up] = values
        return all(look_up.unit.is_silent_at(field, at) for at in range(done, values))  # type: ignore[attr-defined]

    def fields_of(self, mask: int) -> list[PackedField]:
        """Return the fields of a mask."""
        return [field for field in self.layout.fields if field.mask & mask]

    def together(self, look_ups: list[LookUp]) -> list[LookUp]:
        """Put look-ups into contexts: where one reads all that others read, and where few combinations are possible."""
        if len(look_ups) < 2 and not self.most:
            return look_ups
        key = tuple(look_ups)
        known = self.arrangements.get(key)
        if known is not None:
            return known
        groups: list[tuple[int, list[LookUp]]] = []
        for look_up in sorted(look_ups, key=lambda look_up: -look_up.mask.bit_count()):
            wish = look_up.mask
            best, least = -1, self.most + 1
            for n, (mask, _) in enumerate(groups):
                possible = 0 if not wish & ~mask else self._possible(mask | wish)
                if possible < least:
                    best, least = n, possible
            if best < 0:
                groups.append((wish, [look_up]))
            else:
                mask, members = groups[best]
                groups[best] = (mask | wish, [*members, look_up])
        groups = [(self._wish(mask, members), members) for mask, members in groups]
        arranged = [
            members[0] if len(members) == 1 and mask == members[0].mask else self._group(mask, members)
            for mask, members in groups
        ]
        self.arrangements[key] = arranged
        return arranged

    def _wish(self, mask: int, look_ups: list[LookUp]) -> int:
        """Return the mask of the fields of some look-ups, and of what is below them where that is cheap."""
        for look_up in look_ups if self.most else ():
            below = list(look_up.everything())
            if isinstance(look_up, InboxLookUp):
                firsts = (self.first_look_ups.get(unit) for unit in self.deliveries.values()
                          if unit.process is look_up.process)
                below += [inner for first in firsts if first is not None for inner in first.everything()]
            for inner in below:
                if self._possible(mask | inner.mask) <= self.most:
                    mask |= inner.mask
        return mask

    def _possible(self, mask: int) -> int:
        """Return how many combinations the values met so far make possible for some fields."""
        return prod([len(field.values) for field in self.layout.fields if field.mask & mask])

    def _group(self, mask: int, members: list[LookUp]) -> Context:
        key = (mask, tuple(members))
        group = self.groups.get(key)
        if group is None:
            group = self.groups[key] = Context(self, tuple(members), self.fields_of(mask))
        return group

    def repack(self) -> None:
        """Forget what depends on how states are packed: all tables, but not what the units remember."""
        for channel in self.channels.values():
            channel.clear()
        for look_up in self.look_ups():
            look_up.repack()
        self.orphans.clear()
        self.silent_groups = None

    def look_ups(self) -> list[LookUp]:
        """Return every look-up there is."""
        firsts = [self.first_look_ups.get(unit) for unit in self.deliveries.values()]
        tops = [*self.bases, *self.asked, self.bounds, *self.orphans, *firsts]
        found = [look_up for top in tops if top is not None for look_up in top.everything()]
        return [*found, *(root for root in self.roots if isinstance(root, Context)), *self.groups.values()]

    def count(self) -> None:
        """Add up what all tables counted."""
        for look_up in self.look_ups():
            self.retire(look_up.table)

    def retire(self, table: dict[int, TableEntry]) -> None:
        """Add up what the entries of a table counted, before they are forgotten."""
        for found in table.values():
            if found.hits:
                self.tally(found, found.hits)
                found.hits = 0

    def tally(self, found: TableEntry, states: int) -> None:
        """Count the edges that were found for so many states."""
        for edge in found.edges:
            action = edge.step.action
            self.actions[action] = self.actions.get(action, 0) + states * edge.step.ways

    def delivery(self, address: str, message: Message) -> Delivery:
        """Return the unit of one message's delivery."""
        key = (address, canonical_text(message))
        unit = self.deliveries.get(key)
        if unit is None:
            unit = self.deliveries[key] = Delivery(self, self.receivers[address], message)
        return unit

    def channel(self, field: PackedField, changes: tuple[ChannelChange, ...]) -> Channel:
        """Return what a step does to a channel, as a table."""
        try:
            key = (field.number, canonical_text(tuple([change.key for change in changes])))
        except TypeError as error:
            raise blamed(error, [(type(change.whom).__name__, change.whom) for change in changes]) from None
        channel = self.channels.get(key)
        if channel is None:
            channel = self.channels[key] = Channel(field, changes)
        return channel

    def edges(self, state: int) -> list[PackedEdge]:
        """Return every edge of a state, in the order of the model: process by process, own steps first."""
        edges: list[PackedEdge] = []
        ahead = list(reversed(self.bases))
        while ahead:
            found = ahead.pop().at(state)
            edges += found.edges
            ahead += reversed(found.children)
        return edges

    def answers(self, state: int) -> list[Answer]:
        """Return what the checks answer in a state."""
        return [answer for look_up in self.asked for answer in self._last(look_up, state).answers]

    def is_outside(self, state: int) -> bool:
        """Say whether a state is out of bounds."""
        return self.bounds is not None and bool(self._last(self.bounds, state).answers)

    def _last(self, look_up: LookUp, state: int) -> TableEntry:
        found = look_up.at(state)
        while found.children:
            found = found.children[0].at(state)
        return found

    def _checks(self, properties: list[Property]) -> list[Unit]:
        checks: list[Unit] = []
        of_messages = [prop for prop in properties if prop.on == "message" and prop.is_safety]
        if of_messages:
            inboxes = (inbox for mine in self.model.inboxes.values() for inbox in mine)
            checks += [MessageCheck(self, inbox, of_messages) for inbox in inboxes]
        for prop in properties:
            if not prop.is_safety:
                checks.append(Check(self, prop.name, partial(witnessed, prop)))
            elif prop not in of_messages:
                checks += [Check(self, prop.name, check) for check in self.model.split(prop)]
        return checks

    def witnesses_among(self, view: View, steps: Sequence[Step]) -> list[Answer]:
        """Return the answers of those properties for which a step is a witness; what they read counts as read."""
        return [
            (prop.name, WITNESSED) for prop in self.step_witnesses if any([prop.check(view, step) for step in steps])
        ]
