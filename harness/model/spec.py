"""One idiom for the actions of a spec: decorated functions, and a next-state relation that lists them.

    @action("CommitTxnLogAppend", each("brokers", "txn_log_partitions"))
    def commit_txn_log_append(k, view, b, p):
        if ...:                                     # the guards, in the order of the module
            yield Change(writes, sent=...)          # one per witness: what it does

    NEXT = (send_init_pid_request, ..., (commit_txn_log_append, elect_leader, become_follower))
    FAIRNESS = {"SendInitPidRequest": "strong", "CommitTxnLogAppend": "weak"}

`k` holds the constants of the model. A tuple in `NEXT` ranges over its parameters once, and over its actions for each
choice of them. An action that consumes a message names its type in `receives`, and gets the message last; its
parameters are who receives it, and from whom.
Extension actions stand beside a relation, chosen by name: the modules of a spec know nothing of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import product
from typing import Any

import attrs

from harness.model.message import Message
from harness.model.process import Process
from harness.model.refusal import Refusal
from harness.model.step import Kind, Op, Step
from harness.model.values import Value
from harness.model.view import View, slot

Writes = tuple[tuple[str, Value], ...]
"""Slots and what they hold after a step."""
Index = tuple[str, ...]
Over = Callable[[Any], Iterable[Index]]
"""The choices of parameters or witnesses, given the constants."""
ITSELF = "{0}"
"""The process that takes a step: the actor that the first parameter names."""


@attrs.frozen
class Change:
    """What an action does for one choice of its witnesses; fields as in `Step`."""

    writes: Writes = ()
    detail: str = ""
    ways: int = 1
    sent: tuple[Message, ...] = ()
    op: Op | None = None
    consumed: Message | None = None
    """A message that the action takes off the network although no actor receives it."""


Changes = Callable[..., Iterable[Change]]
"""A function of constants, view, parameters or witnesses, and the message where one is received."""


@attrs.frozen(eq=False)
class Action:
    """An action of a module: its name there, what it ranges over, and what it does for one choice of that."""

    name: str
    over: Over
    changes: Changes
    kind: Kind = Kind.STEP
    shown: bool = True
    """Whether what it ranges over are its parameters, shown in labels; witnesses are bound inside."""
    by: str = ""
    """The process whose steps these are, a format of what it ranges over; without one, each choice is a process."""
    receives: tuple[type[Message], ...] = ()
    reason: str = ""
    """Of an extension action: why the truth has it."""

    def process(self, index: Index) -> str:
        """Return the name of the process that takes the step for one choice."""
        return self.by.format(*index) if self.by else slot(self.name, *map(str, index))

    def steps(self, k: Any, view: View, index: Index, *message: Message) -> Iterable[Step]:
        """Yield the steps that it allows for one choice, and of that message, if any."""
        args = index if self.shown else ()
        for change in self.changes(k, view, *index, *message):
            yield Step(
                self.name, args, change.writes, change.sent, change.consumed, change.detail, self.kind, change.ways,
                change.op,
            )


Next = tuple["Action | tuple[Action, ...]", ...]
"""A next-state relation."""


def action(
    name: str, over: Over | None = None, kind: Kind = Kind.STEP, *, exists: Over | None = None, by: str = "",
    receives: type[Message] | tuple[type[Message], ...] = (), reason: str = "",
) -> Callable[[Changes], Action]:
    """Make an action of a function that yields the changes it allows: `over` parameters, or where witnesses `exist`."""
    types = receives if isinstance(receives, tuple) else (receives,)
    ranges = over or exists or once
    return lambda changes: Action(
        name, ranges, changes, kind, over is not None, by or (ITSELF if types else ""), types, reason
    )


def each(*constants: str) -> Over:
    """Range over the members of constants: `each("brokers", "clients")` is every pair of them.

    Raises TypeError for what is no name.
    """
    for name in constants:
        if not isinstance(name, str):
            raise TypeError(f'each takes the names of constants, as each("brokers"), not {name!r}')
    return lambda k: product(*(getattr(k, name) for name in constants))


def once(k: Any) -> Iterable[Index]:
    """Nothing to choose."""
    return ((),)


def rows(next_state: Next) -> Iterable[tuple[Action, ...]]:
    """Yield the rows of a relation; a single action becomes a tuple of one."""
    return (row if isinstance(row, tuple) else (row,) for row in next_state)


def flat(next_state: Next) -> tuple[Action, ...]:
    """Return the actions of a relation one by one."""
    return tuple(one for row in rows(next_state) for one in row)


class SpecProcess(Process):
    """A process that takes steps of a spec: an actor, or one choice of an action's parameters or witnesses.

    The finer, the less each reads: what a process may do is remembered by the values that it read.
    """

    def __init__(self, name: str, k: Any, actions: tuple[tuple[Action, Index], ...]) -> None:
        self.name = name
        self.k = k
        self.actions = actions
        self.own = tuple(one for one in actions if not one[0].receives)
        self.receiving = tuple(one for one in actions if one[0].receives)
        self.has_inbox = bool(self.receiving)

    def steps(self, view: View) -> Iterable[Step]:
        for one, index in self.own:
            yield from one.steps(self.k, view, index)

    def receive(self, view: View, message: Message) -> Iterable[Step]:
        for one, index in self.receiving:
            if isinstance(message, one.receives) and index == (message.dest, message.source)[: len(index)]:
                yield from one.steps(self.k, view, index, message)


def processes(next_state: Next, k: Any) -> tuple[SpecProcess, ...]:
    """Return the processes that take the steps of a next-state relation, in order; a tuple in it goes choice by choice.

    Raises Refusal for parameters that are no text.
    """
    found: dict[str, list[tuple[Action, Index]]] = {}
    for together in rows(next_state):
        choices = [(at, n, index) for n, one in enumerate(together) for at, index in enumerate(one.over(k))]
        for _, n, index in choices:
            _check_text(together[n], index)
        for _, n, index in sorted(choices):
            found.setdefault(together[n].process(index), []).append((together[n], index))
    return tuple(SpecProcess(name, k, tuple(actions)) for name, actions in found.items())


def _check_text(one: Action, index: Index) -> None:
    """Refuse parameters that labels cannot show, and that are not read back from a trail as they were."""
    for value in index if one.shown else ():
        if not isinstance(value, str):
            raise Refusal(f"the action {one.name} has the parameter {value!r}, of the type {type(value).__name__}, but "
                          f"parameters of actions are text; let its constant hold {str(value)!r}")


def chosen(extensions: Next, names: Iterable[str]) -> Next:
    """Return the extension actions with the given names."""
    on = frozenset(names)
    return tuple(left for row in rows(extensions) if (left := tuple(one for one in row if one.name in on)))


def reasons(extensions: Next) -> dict[str, str]:
    """Return the names of extension actions, and why the truth has each."""
    return {one.name: one.reason for one in flat(extensions)}
