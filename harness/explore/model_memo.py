"""A model whose answers are remembered by the values that were read: numbered values, ways on, checks.

Any model can be asked like this, actors and faults included. It says what the reference semantics says, in its order (a
test compares them), and asks the protocol once per distinct set of values. A state is a tuple of ids, one per slot.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from harness.explore.packed.look_ups import witnessed
from harness.memo.field_view import FieldView
from harness.memo.interning import Derived, Ids, IdView, SlotValues, SlotView, written
from harness.memo.read_memo import Leaf, ReadMemo
from harness.model import Message, Model, Process, Property, State, Step, Value, View

Read = int | Derived
"""A slot that was read, or what a function makes of one."""


class Way:
    """A step that is possible, and what it writes where it was looked at so far."""

    __slots__ = ("_writes", "reads", "step", "unit")

    def __init__(self, remembered: Remembered, step: Step, unit: int, reads: tuple[int, ...]) -> None:
        self.step = step
        self.unit = unit
        """Whose step it is: the place among `Model.everyone()`."""
        self.reads = reads
        """The slots that were read to see that it is possible."""
        self._writes = ReadMemo(remembered, lambda view: remembered.writes(view, step))

    def follow(self, state: Ids) -> Ids:
        """Return the state after this step."""
        return written(state, self._writes.at(state).result)

    def writes(self, state: Ids) -> tuple[tuple[int, int], ...]:
        """Return the slots that this step writes, each with the id of its value after it."""
        return self._writes.at(state).result  # type: ignore[no-any-return]


class Remembered(SlotValues):
    """The tables of one model; they grow with what was seen."""

    def __init__(self, model: Model, checked: Iterable[Property] = ()) -> None:
        starts = model.initial_states()
        super().__init__(tuple(starts[0]))
        self.model = model
        self._messages: dict[tuple[str, Message], ReadMemo] = {}
        self._units = [self._unit(n, process) for n, process in enumerate(model.everyone())]
        self._inside = None if model.constraint is None else ReadMemo(self, model.constraint)
        self.ask(checked)
        self.starts = [self.intern(state) for state in starts]

    def ask(self, checked: Iterable[Property]) -> None:
        """Begin to ask these properties instead of others; values and steps stay known."""
        checked = list(checked)
        self._on_steps: dict[tuple[str, Way], ReadMemo] = {}
        self._checks = [
            (prop.name, ReadMemo(self, partial(self._asked, prop.name, check)))
            for prop in checked if prop.on != "step" for check in self._split(prop)
        ]
        self.notes_fields = False
        """Whether `footprints` are kept."""
        self.footprints: dict[str, dict[Read, None]] = {prop.name: {} for prop in checked}
        """What each property has read so far: slots, and what functions make of them."""

    def _split(self, prop: Property) -> Iterable[Any]:
        return self.model.split(prop) if prop.is_safety else (partial(witnessed, prop),)

    def _asked(self, name: str, check: Any, view: SlotView) -> Any:
        why = check(view)
        if self.notes_fields:
            self.footprints[name] |= self._fields_read(check, view, why)
        return why

    def _fields_read(self, check: Any, view: SlotView, why: Any) -> dict[Read, None]:
        traced = FieldView(self, view.state)
        try:
            if check(traced) == why:
                return traced.fields
        except (AttributeError, TypeError, ValueError):
            pass  # what is asked for is not in a value that is traced
        return view.numbers

    def _unit(self, n: int, process: Process) -> tuple[ReadMemo, ReadMemo | None]:
        model = self.model
        own = ReadMemo(self, lambda view: self._ways(n, view, model.own_steps(process, view)))
        if not process.has_inbox:
            return own, None
        arrivals = model.arrivals
        return own, ReadMemo(self, lambda view: [self._delivery(n, process, each) for each in arrivals(process, view)])

    def _delivery(self, n: int, process: Process, message: Message) -> ReadMemo:
        key = (process.name, message)
        if key not in self._messages:
            self._messages[key] = ReadMemo(
                self, lambda view: self._ways(n, view, self.model.delivery_steps(process, view, message))
            )
        return self._messages[key]

    def _ways(self, n: int, view: View, steps: Iterable[Step]) -> list[Way]:
        found = list(steps)
        reads = tuple([self.index[name] for name in view.reads()])
        return [Way(self, step, n, reads) for step in found]

    def writes(self, view: View, step: Step) -> tuple[tuple[int, int], ...]:
        """Return what a step writes: places of slots, and ids of values."""
        written = self.model.effects(view, step).writes
        return tuple([(self.index[name], self.number(self.index[name], value)) for name, value in written])

    def intern(self, state: State) -> Ids:
        """Return a state as ids."""
        return tuple([self.number(n, state[name]) for n, name in enumerate(self.slots)])

    def mapping(self, state: Ids) -> Mapping[str, Value]:
        """Return a state as a mapping."""
        return IdView(self, state)

    def ways(self, state: Ids) -> list[Way]:
        """Return every step that is possible in a state, in the order of the model."""
        found: list[Way] = []
        for own, arrivals in self._units:
            found += own.at(state).result
            if arrivals is not None:
                for delivery in arrivals.at(state).result:
                    found += delivery.at(state).result
        return found

    def shown(self, prop: Property, way: Way, state: Ids) -> Leaf:
        """Return whether a step shows a property on steps, and what that depends on."""
        key = (prop.name, way)
        if key not in self._on_steps:
            self._on_steps[key] = ReadMemo(self, partial(self._asked, prop.name, partial(_on_step, prop, way.step)))
        return self._on_steps[key].at(state)

    def is_inside(self, state: Ids) -> bool:
        """Say whether a state is within the constraint."""
        return self._inside is None or bool(self._inside.at(state).result)

    def answers(self, state: Ids) -> Iterator[tuple[str, str]]:
        """Yield the properties on states that answer in a state, each with its reason; one may come several times."""
        for name, check in self._checks:
            if (why := check.at(state).result) is not None:
                yield name, why

    def dismiss(self, names: Iterable[str]) -> None:
        """Ask no more about some properties."""
        gone = frozenset(names)
        self._checks = [(name, check) for name, check in self._checks if name not in gone]


def _on_step(prop: Property, step: Step, view: View) -> bool:
    return bool(prop.check(view, step))
