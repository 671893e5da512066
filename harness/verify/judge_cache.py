"""Judging many histories of one model: what was seen of a step that was met before is not looked at again.

Runs of a model repeat the same steps over and over, mostly in states that were never met. A `KnownEvent` is an
event without its number and its time. What rules and actors say of it is remembered by the values of the slots that
they read; what invariants say, by those that these read; a `Place` is a state that was met, with what was seen of each
event that happened there. What is said is what `Scan.look` says; a test compares them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.memo.interning import Ids
from harness.memo.read_memo import Leaf, ReadMemo
from harness.model import Model
from harness.record import Event
from harness.simulate.states.tables import Tables
from harness.verify.linearization import Taken
from harness.verify.refinement import ROOM, Refiner, state_after
from harness.verify.scan import SeenStep, failing_in, unusual_start
from harness.verify.well_formed import departure, wrong_step, wrong_with, wrong_writes

MOST_PLACES = 40_000
"""States with their events that are remembered; beyond, these start over, and nothing else."""
BYTES_PER_EVENT, BYTES_PER_CHARACTER = 2_000, 3
"""What an event and its text take, on CPython 3.11 and rounded up."""


class KnownEvent:
    """An event without its number and time, and what is known of it whatever the state."""

    __slots__ = ("always", "departs", "event", "mask", "op", "taken", "text", "writes", "wrong")

    def __init__(
        self, of: Tables, event: Event, text: str, writes: tuple[tuple[int, int], ...], model: Model, wrong: ReadMemo,
        taken: Taken | None, texts: Mapping[str, str],
    ) -> None:
        self.event = event
        self.op = event.op
        self.text = text
        """The inside of the event's JSON object, without its number, its time and what fails after it."""
        self.writes = writes
        """Slots and values, as ids."""
        self.mask = 0
        for at, _ in writes:
            self.mask |= 1 << at
        self.always = tuple(wrong_writes(model, event))
        """The rules that it breaks after any state, and how."""
        self.wrong = wrong
        """The rules that it breaks after a state."""
        self.departs = ReadMemo(of, lambda view: departure(model, view, event, texts))
        """Why the model's own actors would not take it in a state."""
        self.taken = taken
        """The move as a refiner takes it."""


class Place:
    """A state, and what was seen of the moves that were made there."""

    __slots__ = ("checked", "failing", "met", "state")

    def __init__(self, state: Ids, failing: Mapping[str, str], checked: list[Leaf] | None) -> None:
        self.state = state
        self.failing = failing
        self.checked = checked
        """What each check of the invariants says; None if one of them fails on the state."""
        self.met: dict[KnownEvent, tuple[SeenStep, Place]] = {}


class Recall:
    """What was seen of the steps of one model's runs, within a bound on memory."""

    def __init__(self, model: Model, tables: Tables, refiner: Refiner | None) -> None:
        self.model = model
        self.tables = tables
        self.refiner = refiner
        self.moves: dict[Any, KnownEvent] = {}
        """Events by whatever distinguishes them for the process that takes them."""
        self._wrong: dict[Any, ReadMemo] = {}
        self._places: dict[Ids, Place] = {}
        self._renewals = tables.renewals

    def make_room(self) -> None:
        """Let start over what takes too much memory; to be called between runs."""
        if self.refiner is not None:
            self.refiner.make_room()
        elif self.tables.used >= ROOM:
            self.tables.start_over()
        if self._renewals != self.tables.renewals:
            self._renewals = self.tables.renewals
            self._forget_places()
            self.moves.clear()
            self._wrong.clear()
        elif len(self._places) >= MOST_PLACES:
            self._forget_places()

    def _forget_places(self) -> None:
        for place in self._places.values():
            place.met.clear()  # places lead to each other in circles
        self._places.clear()

    def move(self, key: Any, turn: str, text: str, event: Event, texts: Mapping[str, str]) -> KnownEvent:
        """Remember a move by a key. `turn` is its text but for the values that it writes, and `texts` are these."""
        tables = self.tables
        writes = []
        for name, value in event.writes.items():
            at = tables.index[name]
            known = tables.known(at, texts[name])
            writes.append((at, tables.intern_value(at, value) if known is None else known))
        taken = self.refiner.taken(event) if self.refiner is not None else None
        rules = self._rules(turn, event, writes, texts)
        found = KnownEvent(tables, event, text, tuple(writes), self.model, rules, taken, texts)
        self.moves[key] = found
        tables.used += BYTES_PER_EVENT + BYTES_PER_CHARACTER * len(text)
        return found

    def _rules(
        self, turn: str, event: Event, writes: list[tuple[int, int]], texts: Mapping[str, str]
    ) -> ReadMemo:
        """Return what the rules say of a move: moves that differ in what an actor leaves of itself share it."""
        own = (*self.model.slots_of(event.process), *self.model.disks_of(event.process).values())
        key = turn, tuple([write for write in writes if self.tables.slots[write[0]] not in own])
        found = self._wrong.get(key)
        if found is None:
            model = self.model
            found = self._wrong[key] = ReadMemo(self.tables, lambda view: tuple(wrong_step(model, view, event, texts)))
        return found

    def start(self, move: KnownEvent) -> tuple[SeenStep, Place]:
        """Return what is seen of the first event of a run."""
        state = state_after(self.tables, None, move.event)
        place = self._place(state, None, 0)
        wrong = tuple(wrong_with(self.model, {}, move.event))
        return SeenStep(state, place.failing, wrong, unusual_start(self.tables, state), move.taken), place

    def see(self, before: Place, move: KnownEvent) -> tuple[SeenStep, Place]:
        """Return what is seen of a move in a place, and the place after it."""
        state = before.state
        after = list(state)
        for at, value in move.writes:
            after[at] = value
        wrong = move.always + move.wrong.at(state).result
        departs = move.departs.at(state).result
        place = self._place(tuple(after), before.checked, move.mask)
        found = before.met[move] = SeenStep(place.state, place.failing, wrong, departs, move.taken), place
        return found

    def _place(self, state: Ids, checked: list[Leaf] | None, written: int) -> Place:
        place = self._places.get(state)
        if place is None:
            place = self._places[state] = self._checked(state, checked, written)
        return place

    def _checked(self, state: Ids, before: list[Leaf] | None, written: int) -> Place:
        tables = self.tables
        try:
            checked = tables.checked(state, before, written)
        except Exception:
            return Place(state, failing_in(tables, state), None)
        failing = tables.said(checked) if any(leaf.result is not None for leaf in checked) else _NOTHING
        return Place(state, failing, checked)


_NOTHING: Mapping[str, str] = {}
