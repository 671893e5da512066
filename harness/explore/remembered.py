"""A model whose answers are remembered by the values that were read: numbered values, ways on, checks.

Any model can be asked like this, actors and faults included. It says what the reference semantics says, in its order (a
test compares them), and asks the protocol once per distinct set of values. A state is a tuple of ids, one per slot.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from harness.explore.packed.look_ups import WITNESSED
from harness.memo.interning import Ids, IdView, SlotValues, written
from harness.memo.read_memo import ReadMemo
from harness.model import Message, Model, Process, Property, State, Step, Value, View

BYTES_PER_WAY, BYTES_PER_EFFECT = 1_200, 300
"""What is kept, on CPython 3.11 and rounded up."""


class Way:
    """A step that is possible, and what it writes where it was looked at so far."""

    __slots__ = ("_writes", "step")

    def __init__(self, remembered: Remembered, step: Step) -> None:
        remembered.used += BYTES_PER_WAY
        self.step = step
        self._writes = ReadMemo(remembered, lambda view: remembered.writes(view, step))

    def follow(self, state: Ids) -> Ids:
        """Return the state after this step."""
        return written(state, self._writes.at(state).result)


class Remembered(SlotValues):
    """The tables of one model; they grow with what was seen."""

    def __init__(self, model: Model, checked: Iterable[Property] = ()) -> None:
        starts = model.initial_states()
        super().__init__(tuple(starts[0]))
        self.model = model
        self._messages: dict[tuple[str, Message], ReadMemo] = {}
        self._units = [self._unit(process) for process in model.everyone()]
        self._inside = None if model.constraint is None else ReadMemo(self, model.constraint)
        self._checks = [
            (prop.name, ReadMemo(self, check)) for prop in checked if prop.on != "step" for check in self._split(prop)
        ]
        self.starts = [self.intern(state) for state in starts]

    def _split(self, prop: Property) -> Iterable[Any]:
        return self.model.split(prop) if prop.is_safety else (partial(_witnessed, prop),)

    def _unit(self, process: Process) -> tuple[ReadMemo, ReadMemo | None]:
        model = self.model
        own = ReadMemo(self, lambda view: [Way(self, step) for step in model.own_steps(process, view)])
        if not process.has_inbox:
            return own, None
        arrivals = model.arrivals
        return own, ReadMemo(self, lambda view: [self._delivery(process, each) for each in arrivals(process, view)])

    def _delivery(self, process: Process, message: Message) -> ReadMemo:
        key = (process.name, message)
        if key not in self._messages:
            self._messages[key] = ReadMemo(
                self, lambda view: [Way(self, step) for step in self.model.delivery_steps(process, view, message)]
            )
        return self._messages[key]

    def writes(self, view: View, step: Step) -> tuple[tuple[int, int], ...]:
        """Return what a step writes: places of slots, and ids of values."""
        self.used += BYTES_PER_EFFECT
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


def _witnessed(prop: Property, view: View) -> str | None:
    return WITNESSED if prop.check(view) else None
