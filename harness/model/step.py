"""One possible step of a process, and the operations of clients that steps begin and end."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

import attrs

from harness.model.message import Message
from harness.model.telling import Telling
from harness.model.values import Value


class Kind(StrEnum):
    """What decides that a step happens, which tells drivers when they may take it."""

    STEP = "step"
    """The protocol itself."""
    COMMAND = "command"
    """An application asks a client for something: `Action(client,...)`, the client's name first."""
    TIMER = "timer"
    """A named timer of an actor fires; its deadline lives in the driver."""
    PERTURBATION = "perturbation"
    """The environment does something spurious that the protocol allows (an election). Limited, never fair."""
    FAULT = "fault"
    """A fault is injected. Limited by a budget, never fair."""
    HEAL = "heal"
    """The environment mends something. Never limited."""
    INPUT = "input"
    """Something comes to a process from outside the model. No search or strategy invents it."""


@attrs.frozen
class Op:
    """A client operation as a history sees it (Jepsen's invoke, ok, fail, info)."""

    process: str
    name: str
    outcome: str
    """`invoke`, `ok`, `fail` (definitely did not happen) or `info` (unknown)."""
    value: Value = None


@attrs.frozen
class Input:
    """What comes to a process from outside: a message of a real client, a command with arguments of any kind."""

    process: str
    value: Value


@attrs.frozen
class Step:
    """A step that a process offers: what it writes, consumes and sends, and in how many ways the spec allows it.

    `action` and `args` are the spec's names; `detail` tells apart steps that share them (a witness, a message). `ways`
    is the number of witnesses and satisfied arms that lead here, so that generated counts equal the model checker's.
    """

    action: str
    args: tuple[str, ...] = ()
    writes: tuple[tuple[str, Value], ...] = ()
    sent: tuple[Message, ...] = ()
    consumed: Message | None = None
    detail: str = ""
    kind: Kind = Kind.STEP
    ways: int = 1
    op: Op | None = None
    about: Message | None = None
    """The message that the environment copies or gives back, which the step neither consumes nor sends for the first
    time."""
    input: Input | None = None
    """What came from outside, in a step of kind `INPUT`."""
    told: Callable[[], Telling] | None = attrs.field(default=None, eq=False, repr=False)
    """Makes what the step shows to people, where that is not the messages that it consumes and sends."""

    @property
    def subject(self) -> Message | None:
        """The message that the label names, if any."""
        return self.consumed or self.about

    @property
    def name(self) -> str:
        """The spec's label of the step: `Action(arg,...)`."""
        return f"{self.action}({','.join(self.args)})" if self.args else self.action

    @property
    def label(self) -> str:
        """The step's name and detail: unique among the steps possible in one state."""
        return f"{self.name} {self.detail}" if self.detail else self.name
