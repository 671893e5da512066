"""Processes: what takes steps. A `Process` may read any slot through a view; an `Actor` sees its own local state only.

An actor's local state is one frozen attrs class. Its fields are declared `persisted()` or `volatile()`; a turn says
when persisted fields are flushed, and `survivor` derives what a crash leaves.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Generic, TypeVar

import attrs

from harness.model.message import Message
from harness.model.step import Kind, Op, Step
from harness.model.values import FrozenMap, Value
from harness.model.view import View, slot

L = TypeVar("L")
T = TypeVar("T")


class Process:
    """Something that takes steps. `has_inbox` says whether messages can be addressed to its name."""

    name: str
    has_inbox: bool = False
    is_service: bool = False
    """A service modelled as atomic: it speaks by reliable messages only, so no partition can separate it."""

    def steps(self, view: View) -> Iterable[Step]:
        """Yield every step the process may take of its own accord in this state."""
        return ()

    def receive(self, view: View, message: Message) -> Iterable[Step]:
        """Yield every way to consume a message that can arrive now; none means it is not accepted in this state."""
        return ()

    def outside(self, view: View, value: Value) -> Iterable[Step]:
        """Yield the step that input from outside the model makes possible; none means it is not accepted now."""
        return ()


@attrs.frozen
class Turn(Generic[L]):
    """One step of an actor: its next local state and the messages it sends. Fields are those of `Step`.

    `flush` makes the persisted fields of `local` durable before anything sent can leave.
    """

    action: str
    args: tuple[str, ...]
    local: L
    sent: tuple[Message, ...] = ()
    flush: bool = False
    detail: str = ""
    kind: Kind = Kind.STEP
    op: Op | None = None

    @property
    def label(self) -> str:
        """The label of the step that this turn becomes."""
        return Step(self.action, self.args, detail=self.detail).label


class Actor(Process, Generic[L]):
    """A process with one local state that nobody else reads or writes, and an inbox.

    Subclasses define `initial` and override `step`, `on_message`, `on_input`, `timers` and `timer_fired` with pure
    functions.
    """

    has_inbox = True
    may_crash: bool = False
    initial: L

    def step(self, local: L) -> Iterable[Turn[L]]:
        """Yield the spontaneous turns: the client's own choices, work that was put off."""
        return ()

    def on_message(self, local: L, message: Message) -> Iterable[Turn[L]]:
        """Yield the ways to consume a message; none means not accepted now."""
        return ()

    def on_input(self, local: L, value: Value) -> Iterable[Turn[L]]:
        """Yield the turn that input from outside the model makes possible; none means not accepted now."""
        return ()

    def timers(self, local: L) -> tuple[str, ...]:
        """Return the names of the timers that are armed in this local state."""
        return ()

    def timer_fired(self, local: L, timer: str) -> Iterable[Turn[L]]:
        """Yield the turns of an armed timer that fires."""
        return ()

    def restarted(self, local: L) -> L:
        """Return the local state in which a survivor starts again."""
        return local

    def turns(self, local: L) -> Iterable[Turn[L]]:
        """Yield every turn without a message: spontaneous ones, then fired timers marked as such."""
        yield from self.step(local)
        for timer in self.timers(local):
            for turn in self.timer_fired(local, timer):
                yield attrs.evolve(turn, kind=Kind.TIMER)

    def steps(self, view: View) -> Iterable[Step]:
        return [self.as_step(turn, None) for turn in self.turns(view[self.name])]

    def receive(self, view: View, message: Message) -> Iterable[Step]:
        return [self.as_step(turn, message) for turn in self.on_message(view[self.name], message)]

    def outside(self, view: View, value: Value) -> Iterable[Step]:
        return [self.as_step(turn, None) for turn in self.on_input(view[self.name], value)]

    def as_step(self, turn: Turn[L], consumed: Message | None) -> Step:
        """Return the step that a turn is: it writes this actor's slot, and its disk where the turn flushes."""
        writes: tuple[tuple[str, Value], ...] = ((self.name, turn.local),)
        if turn.flush and self.may_crash:
            writes = (*writes, (slot("disk", self.name), durable(turn.local)))
        return Step(
            turn.action, turn.args, writes, turn.sent, consumed, turn.detail, turn.kind, op=turn.op
        )


def persisted(**field: Any) -> Any:
    """Declare a field of an actor's local state that survives a crash as of the last flush."""
    return attrs.field(metadata={"persisted": True}, **field)


def volatile(**field: Any) -> Any:
    """Declare a field of an actor's local state that a crash resets to its initial value."""
    return attrs.field(metadata={"persisted": False}, **field)


def durable(local: Any) -> FrozenMap[str, Value]:
    """Return the persisted fields of a local state: what a flush writes to disk."""
    return FrozenMap({f.name: getattr(local, f.name) for f in attrs.fields(type(local)) if f.metadata.get("persisted")})


def survivor(initial: T, disk: FrozenMap[str, Value]) -> T:
    """Return the local state after a crash: persisted fields as last flushed, everything else initial."""
    return attrs.evolve(initial, **disk)  # type: ignore[misc]
