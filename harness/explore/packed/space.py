"""A model as tables over one layout: the units there are, the stages that are looked up first, what they counted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from math import prod

from harness.explore.packed.footprints import Answer, Channel, Check, Delivery, Edge, MessageCheck, Steps, Unit
from harness.explore.packed.layout import Field, Layout
from harness.explore.packed.look_ups import WITNESSED, Context, Found, InboxStage, Stage, UnitStage
from harness.explore.packed.silent_checks import Silence, silences
from harness.model import Message, Model, Property, Step, View, canonical_text

GROUPS = 2
"""Groups of checks up to which they are asked apart from the steps."""


class Space:
    """A model as stages over one layout: the roots are looked up for every state, in the order of the model."""

    def __init__(
        self, model: Model, properties: tuple[Property, ...] = (), together: tuple[tuple[str, ...], ...] = ()
    ) -> None:
        self.model = model
        self.layout = Layout(model, together)
        self.actions: dict[str, int] = {}
        self.step_witnesses = [prop for prop in properties if prop.on == "step"]
        self.checks = self._checks([prop for prop in properties if prop.on != "step"])
        self.arrangements: dict[tuple[int, ...], list[Stage]] = {}
        self.groups: dict[tuple[int, ...], Context] = {}
        self.most = 0
        """Combinations of values that a context may have beyond what its stages have anyway."""
        self.quiet: dict[Stage, int] = {}
        """Checks that are asked once per value of their only field, and how many values were asked about."""
        self.loud: set[Stage] = set()
        """Checks that may answer for all that is known."""
        self.listens = False
        """Whether `settle` is told all states before they are looked up, so that all checks can be quiet."""
        self.silent: list[Stage] = []
        """Checks that read several fields and have not answered, where the space listens."""
        self.silences: list[Silence] | None = None
        """The same in groups; None: not decided yet; none: they are looked up with the steps."""
        self.dismissed: set[str] = set()
        """Properties of whose answers nobody wants to know any more."""
        self.stages_made = 0
        self.first_stages: dict[Unit, UnitStage] = {}
        self.orphans: list[Stage] = []
        """Stages that their parents forgot; contexts may still look into them."""
        self.narrowed: list[Stage] = []
        """Stages whose fields changed since the kernel last looked."""
        self.deliveries: dict[tuple[str, str], Delivery] = {}
        self.channels: dict[tuple[int, str], Channel] = {}
        self.receivers = {process.name: process for process in model.everyone() if process.has_inbox}
        self.bases: list[Stage] = []
        """The first stages of all processes and inboxes."""
        self.asked: list[Stage] = []
        """The first stages of all checks."""
        self.bounds: Stage | None = None
        """The first stage of the constraint: it answers for states out of bounds."""
        self.roots: list[Stage] = []
        """What is looked up for every state: bases and checks, each for itself or in contexts."""

    def serial(self) -> int:
        """Return a number for a new stage."""
        self.stages_made += 1
        return self.stages_made

    def start(self, state: int) -> None:
        """Make the roots, each unit for itself, once an initial state is packed. Raises Overflow: call it again."""
        bases: list[Stage] = []
        for process in self.model.everyone():
            bases.append(self.first_stage(Steps(self, process), state))
            if process.has_inbox:
                bases.append(InboxStage(self, process.name, self.layout.channels[process.name]))
        asked: list[Stage] = [self.first_stage(check, state) for check in self.checks]
        if (constraint := self.model.constraint) is not None:
            outside = Check(self, "constraint", lambda view: None if constraint(view) else "out of bounds")
            self.bounds = self.first_stage(outside, state)
        self.bases, self.asked = bases, asked
        self.arrange()

    def first_stage(self, unit: Unit, state: int) -> UnitStage:
        """Return a unit's first stage; a state tells which fields it reads first."""
        stage = self.first_stages.get(unit)
        if stage is None:
            stage = self.first_stages[unit] = UnitStage(self, unit, unit.leaf(state).footprint)
        return stage

    def arrange(self) -> None:
        """Choose anew what is looked up first, and together; what was counted stays counted."""
        for stage in [*self.roots, *self.groups.values()]:
            if isinstance(stage, Context):
                self.retire(stage.table)
        self.groups.clear()
        self.arrangements.clear()
        asked = self._still_asked()
        self.quiet = {stage: 0 for stage in asked if self._is_quiet(stage)}
        loud = [stage for stage in asked if stage not in self.quiet]
        self.silences = None
        self.silent = [stage for stage in loud if stage not in self.loud] if self.listens else []
        loud = [stage for stage in loud if stage not in self.silent]
        self.roots = self.together([*loud, *self.bases])

    def dismiss(self, names: Iterable[str]) -> None:
        """Take note that nobody wants to know the answers of some properties any more."""
        self.dismissed.update(names)
        self.roots = [root for root in self.roots if not self._is_dismissed(root)]

    def _still_asked(self) -> list[Stage]:
        return [stage for stage in self.asked if not self._is_dismissed(stage)]

    def _is_dismissed(self, stage: Stage) -> bool:
        return isinstance(stage, UnitStage) and isinstance(stage.unit, Check) and stage.unit.name in self.dismissed

    def _is_quiet(self, stage: Stage) -> bool:
        """Say whether a check reads one field and has not answered: then it need not be looked up for every state."""
        return len(stage.fields) == 1 and all(
            not found.answers and not found.children for found in stage.table.values()
        ) and stage not in self.loud

    def settle(self, states: Sequence[int] = ()) -> bool:
        """Ask quiet checks about the values that are new; say whether one is not quiet, so that the roots changed."""
        changed = False
        while self._grows_louder():
            changed = True
        if self.silent:
            if self.silences is None:
                self.silences = self._fall_silent(states)
            loud = [stage for silence in self.silences for stage in silence.listen(states)]
            self.silent = [stage for stage in self.silent if stage not in loud]
            self.loud.update(loud)
            self.roots = [*self.roots, *loud]
        return changed

    def _fall_silent(self, states: Sequence[int]) -> list[Silence]:
        """Group the checks that have not answered; where that takes many groups, contexts with the steps do better."""
        groups = silences(self.silent, states)
        if len(groups) <= GROUPS:
            return groups
        self.silent = []
        self.roots = self.together([stage for stage in [*self._still_asked(), *self.bases] if stage not in self.quiet])
        return []

    def _grows_louder(self) -> bool:
        louder = [stage for stage, done in self.quiet.items() if not self._stays_quiet(stage, done)]
        if self.listens and self.silences != []:
            for stage in louder:
                del self.quiet[stage]
                self.silent.append(stage)
                self.silences = None
            return False
        self.loud.update(louder)
        if louder:
            self.arrange()
        return bool(louder)

    def _stays_quiet(self, stage: Stage, done: int) -> bool:
        (field,) = stage.fields.values()
        values = min(len(field.values), field.low + 1)
        self.quiet[stage] = values
        return all(stage.unit.is_quiet(field, at) for at in range(done, values))  # type: ignore[attr-defined]

    def fields_of(self, mask: int) -> list[Field]:
        """Return the fields of a mask."""
        return [field for field in self.layout.fields if field.mask & mask]

    def together(self, stages: list[Stage]) -> list[Stage]:
        """Put stages into contexts: where one reads all that others read, and where few combinations are possible."""
        if len(stages) < 2 and not self.most:
            return stages
        key = tuple([stage.serial for stage in stages])
        known = self.arrangements.get(key)
        if known is not None:
            return known
        groups: list[tuple[int, list[Stage]]] = []
        for stage in sorted(stages, key=lambda stage: -stage.mask.bit_count()):
            wish = stage.mask
            best, least = -1, self.most + 1
            for n, (mask, _) in enumerate(groups):
                possible = 0 if not wish & ~mask else self._possible(mask | wish)
                if possible < least:
                    best, least = n, possible
            if best < 0:
                groups.append((wish, [stage]))
            else:
                mask, members = groups[best]
                groups[best] = (mask | wish, [*members, stage])
        groups = [(self._wish(mask, members), members) for mask, members in groups]
        arranged = [
            members[0] if len(members) == 1 and mask == members[0].mask else self._group(mask, members)
            for mask, members in groups
        ]
        self.arrangements[key] = arranged
        return arranged

    def _wish(self, mask: int, stages: list[Stage]) -> int:
        """Return the mask of the fields by which stages, and what is below them where that is cheap, are looked up."""
        for stage in stages if self.most else ():
            below = list(stage.everything())
            if isinstance(stage, InboxStage):
                firsts = (self.first_stages.get(unit) for unit in self.deliveries.values()
                          if unit.process.name == stage.address)
                below += [inner for first in firsts if first is not None for inner in first.everything()]
            for inner in below:
                if self._possible(mask | inner.mask) <= self.most:
                    mask |= inner.mask
        return mask

    def _possible(self, mask: int) -> int:
        """Return how many combinations the values met so far make possible for some fields."""
        return prod([len(field.values) for field in self.layout.fields if field.mask & mask])

    def _group(self, mask: int, members: list[Stage]) -> Context:
        key = (mask, *(member.serial for member in members))
        group = self.groups.get(key)
        if group is None:
            group = self.groups[key] = Context(self, tuple(members), self.fields_of(mask))
        return group

    def repack(self) -> None:
        """Forget what depends on how states are packed: all tables, but not what the units remember."""
        for channel in self.channels.values():
            channel.clear()
        for stage in self.stages():
            stage.repack()
        self.orphans.clear()
        self.silences = None

    def stages(self) -> list[Stage]:
        """Return every stage there is."""
        bases = [*self.bases, *self.asked, *([self.bounds] if self.bounds is not None else [])]
        found = [stage for base in bases for stage in base.everything()]
        found += [root for root in self.roots if isinstance(root, Context)]
        found += self.groups.values()
        found += [stage for orphan in self.orphans for stage in orphan.everything()]
        for unit in self.deliveries.values():
            if (first := self.first_stages.get(unit)) is not None:
                found += first.everything()
        return found

    def count(self) -> None:
        """Add up what all tables counted."""
        for stage in self.stages():
            self.retire(stage.table)

    def retire(self, table: dict[int, Found]) -> None:
        """Add up what the entries of a table counted, before they are forgotten."""
        for found in table.values():
            if found.hits:
                self.tally(found, found.hits)
                found.hits = 0

    def tally(self, found: Found, states: int) -> None:
        """Count the edges that were found for so many states."""
        for edge in found.edges:
            action = edge.step.action
            self.actions[action] = self.actions.get(action, 0) + states * edge.step.ways

    def changed(self, stage: Stage) -> None:
        """Note that a stage reads other fields now."""
        self.narrowed.append(stage)

    def delivery(self, address: str, message: Message) -> Delivery:
        """Return the unit of one message's delivery."""
        key = (address, canonical_text(message))
        unit = self.deliveries.get(key)
        if unit is None:
            unit = self.deliveries[key] = Delivery(self, self.receivers[address], message)
        return unit

    def channels_of(self, step: Step) -> tuple[Channel, ...]:
        """Return what a step does to the channels, one table per channel."""
        if step.consumed is None and not step.sent:
            return ()
        touched: dict[str, tuple[Message | None, list[Message]]] = {}
        if step.consumed is not None:
            touched[step.consumed.dest] = (step.consumed, [])
        for message in step.sent:
            taken, put = touched.get(message.dest, (None, []))
            touched[message.dest] = (taken, [*put, message])
        found = []
        for address, (taken, put) in touched.items():
            field = self.layout.channels[address]
            key = (field.number, canonical_text((taken, *put)))
            channel = self.channels.get(key)
            if channel is None:
                channel = self.channels[key] = Channel(self, len(self.channels), field, taken, tuple(put))
            found.append(channel)
        return tuple(found)

    def edges(self, state: int) -> list[Edge]:
        """Return every edge of a state, in the order of the model: process by process, own steps first."""
        edges: list[Edge] = []
        ahead = list(reversed(self.bases))
        while ahead:
            found = ahead.pop().at(state)
            edges += found.edges
            ahead += reversed(found.children)
        return edges

    def answers(self, state: int) -> list[Answer]:
        """Return what the checks answer in a state."""
        return [answer for stage in self.asked for answer in self._last(stage, state).answers]

    def is_outside(self, state: int) -> bool:
        """Say whether a state is out of bounds."""
        return self.bounds is not None and bool(self._last(self.bounds, state).answers)

    def _last(self, stage: Stage, state: int) -> Found:
        found = stage.at(state)
        while found.children:
            found = found.children[0].at(state)
        return found

    def hidden_text(self, state: int, hidden: int) -> str:
        """Return the hidden fields of a state as text, by which one of several states with one view is chosen."""
        return canonical_text(tuple(self.layout.at(field, state) for field in self.fields_of(hidden)))

    def _checks(self, properties: list[Property]) -> list[Unit]:
        checks: list[Unit] = []
        of_messages = [prop for prop in properties if prop.on == "message" and prop.is_safety]
        if of_messages:
            checks += [MessageCheck(self, address, of_messages) for address in self.model.addresses]
        for prop in properties:
            if not prop.is_safety:
                checks.append(Check(self, prop.name, partial(_witnessed, prop)))
            elif prop not in of_messages:
                checks += [Check(self, prop.name, check) for check in self.model.split(prop)]
        return checks

    def witnesses_among(self, view: View, steps: Sequence[Step]) -> list[Answer]:
        """Return the answers of those properties for which a step is a witness; what they read counts as read."""
        return [
            (prop.name, WITNESSED) for prop in self.step_witnesses if any([prop.check(view, step) for step in steps])
        ]


def _witnessed(prop: Property, view: View) -> str | None:
    return WITNESSED if prop.check(view) else None
