"""Asking processes why a step is not possible: where its action was seen to be possible, and what it stops at here.

What an action writes, and which function of the protocol it is, is found out in states where it is possible: some that
the caller knows, then breadth first from the initial ones. Then its process is asked in the state in question, watched.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from types import CodeType
from typing import Any

import attrs

from harness.memo.interning import Ids, differences
from harness.model import Message, Model, Process, Step, brief_value
from harness.simulate.states.tables import Tables
from harness.verify.conditions import guard_of, turn_refused
from harness.verify.guard_trace import TracedCall, watch

LOOKED_AT = 1_500
"""States in which it is looked up which slots actions write."""
MANY = 400
"""Of these, states that the caller knows; the rest comes breadth first from the initial states."""


@attrs.frozen
class ActionInstance:
    """An instance of a spec's action: what it writes there, and a state where it is possible."""

    process: str
    action: str
    args: tuple[str, ...]
    slots: frozenset[int]
    message: type | None
    """The type of the message that it takes, if any."""
    example: Ids


@attrs.frozen
class Attempt:
    """An instance tried where it is not possible: how it is called, and what it stops at."""

    instance: str
    sentence: str
    passed: int
    given: tuple[Any, ...] = ()
    """The plain values that the function of the action was called with."""


@attrs.define(eq=False)
class Asking:
    """The actions of one model as they are possible somewhere, and why each is not in a given state."""

    model: Model
    tables: Tables
    states: Callable[[], Sequence[Ids]] = tuple
    extensions: Container[str] = ()
    most: int = LOOKED_AT
    telling: bool = False
    """Whether values of fields are given, too."""
    _known: list[ActionInstance] | None = attrs.field(default=None, init=False)

    def instances(self, around: Ids) -> list[ActionInstance]:
        """Return what actions wrote where they were possible: in states of runs, near this one, from the start on."""
        if self._known is not None:
            return self._known
        tables, found = self.tables, {}
        waiting = [tables.node(around)]
        waiting += [tables.node(state) for state in self.states()]
        waiting += [tables.start(n) for n in range(min(tables.initial_count, MANY))]
        met: set[Ids] = set()
        at = 0
        while at < len(waiting) and len(met) < self.most:
            node = waiting[at]
            at += 1
            if node.state in met:
                continue
            met.add(node.state)
            for n, option in enumerate(node.options):
                slots = differences(node.state, option.after(node.state))
                step = option.choice.step
                key = (option.process, step.action, step.args, slots)
                if slots and key not in found:
                    message = type(option.message) if option.message is not None else None
                    found[key] = ActionInstance(option.process, step.action, step.args, slots, message, node.state)
                if len(waiting) < self.most:
                    waiting.append(tables.follow(node, n))
        self._known = list(found.values())
        return self._known

    def attempts(self, known: ActionInstance, before: Ids) -> Iterable[Attempt]:
        """Yield what an action stops at in a state, for each way in which its process asks for it."""
        process = next(process for process in self.model.everyone() if process.name == known.process)
        called = known.action if known.process.startswith(known.action) else f"{known.action} of {known.process}"
        called = known.process if known.process.startswith(known.action) else called
        if known.action in self.extensions:
            called += " (extension)"
        root, chain = self._root(process, known)
        messages = self._messages(process, known, before)
        if known.message is not None and not messages:
            yield Attempt(called, f"no {known.message.__name__} is on its way to {known.process}", 0)
            return
        for message in messages:
            calls = watch(lambda message=message: self._ask(process, before, message))  # type: ignore[misc]
            rooted = [call for call in calls if call.code is root]
            rooted = [call for call in rooted if set(known.args) <= set(map(str, call.given.values()))] or rooted
            for call in rooted:
                if not call.gave and not call.made:
                    yield _stopped(called, call, known, self.telling)
                elif self.telling and (turn := turn_refused(call, (known.action,), known.args)) is not None:
                    yield Attempt(called, f"its guard fails: {turn[0].sentence()}", turn[1] + 1)
            if not rooted and root is not None:
                outer = next((call for code in chain for call in reversed(calls) if call.code is code), None)
                if outer is not None:
                    guard, passed = guard_of(outer, self.telling, (known.action, root.co_name), known.args)
                    said = f"{root.co_name} is not asked: {outer.code.co_name} stops at {guard.sentence()}"
                    yield Attempt(called, said, passed)

    def _root(self, process: Process, known: ActionInstance) -> tuple[CodeType | None, list[CodeType]]:
        """Return the function that an action is, and those around it, found where the action is possible."""
        for message in self._messages(process, known, known.example):
            for call in watch(lambda message=message: self._ask(process, known.example, message)):  # type: ignore[misc]
                for action, args, source in call.made:
                    if (action, args) == (known.action, known.args):
                        return _root_of(call, source, action)
        return None, []

    def _messages(self, process: Process, known: ActionInstance, state: Ids) -> Sequence[Message | None]:
        """Return the messages that an action could take in a state; None for an action that takes none."""
        if known.message is None:
            return [None]
        return [m for m in self.model.arrivals(process, self.tables.view(state)) if type(m) is known.message]

    def _ask(self, process: Process, state: Ids, message: Message | None) -> Iterable[Step]:
        view = self.tables.view(state)
        return process.steps(view) if message is None else process.receive(view, message)


def _root_of(call: TracedCall, source: TracedCall | None, action: str) -> tuple[CodeType, list[CodeType]]:
    """Return the function of an action that is made into a step in a call, and those around it, the nearest first."""
    chain = [call]
    while chain[-1].parent is not None:
        chain.append(chain[-1].parent)
    named = next((n for n, around in enumerate(chain) if action in around.code.co_consts), None)
    if named is None and source is not None:
        return source.code, [around.code for around in chain]
    at = named or 0
    return chain[at].code, [around.code for around in chain[at + 1 :]]


def _stopped(called: str, call: TracedCall, known: ActionInstance, telling: bool) -> Attempt:
    """Return an attempt that ends in a function of its own."""
    guard, passed = guard_of(call, telling, (known.action,), known.args)
    named = call.code.co_varnames[: call.code.co_argcount]
    given = {n: call.given[n] for n in named if n in call.given and isinstance(call.given[n], str | int | type(None))}
    said = ", ".join(f"{name} = {brief_value(value)}" for name, value in given.items())
    sentence = f"its guard fails: {guard.sentence()}"
    return Attempt(f"{called} with {said}" if said else called, sentence, passed + 1, tuple(given.values()))
