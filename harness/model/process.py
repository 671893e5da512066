"""Processes: what takes steps. A `Process` may read any slot through a view; an `Actor` sees its own local state only.

An actor's local state is one frozen attrs class, or a `Local` of several parts: see `local_state`. A turn says when
persisted fields are flushed.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Generic, TypeVar

import attrs

from harness.model.local_state import Flush, Layout, layout_of
from harness.model.message import Message
from harness.model.step import Kind, Op, Step
from harness.model.values import Value
from harness.model.view import View

L = TypeVar("L")


class Process:
    """Something that takes steps. `has_inbox` says whether messages can be addressed to its name."""

    name: str
    has_inbox: bool = False

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

    `flush` makes persisted fields of `local` durable before anything sent can leave: all of them, or, where `local` has
    parts, those of the parts that the turn changed or, given as a tuple, of the parts that it names.
    """

    action: str
    args: tuple[str, ...]
    local: L
    sent: tuple[Message, ...] = ()
    flush: Flush = False
    detail: str = ""
    kind: Kind = Kind.STEP
    op: Op | None = None

    @property
    def label(self) -> str:
        """The label of the step that this turn becomes."""
        return Step(self.action, self.args, detail=self.detail).label


class Decided:
    """A decision of a part of an actor that becomes a turn of the actor: a base class, where turns are made elsewhere.

    When guards are explained, a turn that is made of it counts as made where the decision was made.
    """

    __slots__ = ()

    def __attrs_post_init__(self) -> None:
        """Run by attrs when it is made; the tracer of guards watches for this call."""


class Actor(Process, Generic[L]):
    """A process with an inbox and one local state that no other process reads or writes.

    Subclasses define `initial` and override `step`, `on_message`, `on_input`, `timers` and `timer_fired` with pure
    functions.
    """

    has_inbox = True
    may_crash: bool = False
    initial: L
    sent_at_first: tuple[Message, ...] = ()
    """Messages that are under way when a run begins."""

    @cached_property
    def layout(self) -> Layout[L]:
        """Where its local state is kept."""
        return layout_of(self.name, self.initial, self.may_crash)

    def step(self, local: L) -> Iterable[Turn[L]]:
        """Yield the spontaneous turns: the client's own choices, work that was put off."""
        return ()

    def on_message(self, local: L, message: Message) -> Iterable[Turn[L]]:
        """Yield the ways to consume a message; an empty result means not accepted now."""
        return ()

    def on_input(self, local: L, value: Value) -> Iterable[Turn[L]]:
        """Yield the turn that input from outside the model makes possible; an empty result means not accepted now."""
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
                yield Turn(
                    turn.action, turn.args, turn.local, turn.sent, turn.flush, turn.detail, Kind.TIMER, turn.op
                )

    def steps(self, view: View) -> Iterable[Step]:
        local = self.layout.read(view)
        return [self.as_step(local, turn, None) for turn in self.turns(local)]

    def receive(self, view: View, message: Message) -> Iterable[Step]:
        local = self.layout.read(view)
        return [self.as_step(local, turn, message) for turn in self.on_message(local, message)]

    def outside(self, view: View, value: Value) -> Iterable[Step]:
        local = self.layout.read(view)
        return [self.as_step(local, turn, None) for turn in self.on_input(local, value)]

    def as_step(self, before: L, turn: Turn[L], consumed: Message | None) -> Step:
        """Return the step that a turn is: it writes this actor's slots, and their disks where the turn flushes."""
        writes = self.layout.writes(before, turn.local, turn.flush)
        detail = turn.detail or ("" if consumed is None else consumed.brief())
        return Step(turn.action, turn.args, writes, turn.sent, consumed, detail, turn.kind, op=turn.op)
