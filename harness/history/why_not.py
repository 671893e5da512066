"""Why a step of a run is no step of the spec: what changed, the nearest action, and the guard that keeps it away."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping
from types import CodeType
from typing import Any

import attrs

from harness.history.refine import Failure, Ids, Refiner, target
from harness.history.tracing import Call, guard_of, watch
from harness.model import Message, Process, Step, View, brief_value
from harness.simulate.tables import IdView, Node, Option

LOOKED_AT = 1_500
"""States of the spec in which it is looked up which slots its actions write."""
MANY = 400
"""Of these, states that runs went through; the rest comes breadth first from the initial states."""
TRIED = 40
"""Instances of actions that are tried in the state where a run left the spec."""


@attrs.frozen
class Explanation:
    """The first step that the spec does not allow, and the nearest thing that it does."""

    step: int
    label: str
    changes: Mapping[str, tuple[str, str]]
    """The slots of the spec that the step changes: from what, to what."""
    nearest: str | None
    """The nearest action of the spec: its label."""
    why: tuple[str, ...]
    """Why that action is not this step, as sentences."""

    def lines(self, width: int = 100) -> list[str]:
        """Return the explanation as lines of text, none longer than `width` columns where words allow it."""
        said = [(0, f"step {self.step} is no step of the spec: {self.label}")]
        said += [(4, f"{name}: {was} -> {now}") for name, (was, now) in self.changes.items()]
        if self.nearest is not None:
            said.append((2, f"nearest in the spec: {self.nearest}"))
        said += [(4, sentence) for sentence in self.why]
        return [line for indent, text in said for line in textwrap.wrap(
            text, width, initial_indent=" " * indent, subsequent_indent=" " * (indent + 4),
            break_on_hyphens=False, break_long_words=True,
        )]

    def to_json(self) -> dict[str, Any]:
        """Return the explanation as a JSON object."""
        return {
            "step": self.step, "label": self.label, "nearest": self.nearest, "why": list(self.why),
            "changes": {name: {"from": was, "to": now} for name, (was, now) in self.changes.items()},
        }


@attrs.frozen
class _Instance:
    """An action of the spec as somebody can take it: what it writes there, and a state where it is possible."""

    process: str
    action: str
    args: tuple[str, ...]
    slots: frozenset[int]
    message: type | None
    """The type of the message that it takes, if any."""
    example: Ids


@attrs.frozen
class _Attempt:
    """An instance tried where it is not possible: how it is called, and what it stops at."""

    instance: str
    sentence: str
    passed: int
    given: tuple[Any, ...] = ()
    """The plain values that the function of the action was called with."""


def explain(refiner: Refiner, failure: Failure) -> Explanation:
    """Explain a failure that the refiner found."""
    if failure.after is None:
        return Explanation(failure.step, failure.label, {}, None, (failure.problem or "",))
    explainer = _Explainer(refiner)
    if failure.before is None:
        changes = explainer.changes(refiner.spec_tables.start(0).state, failure.after)
        return Explanation(failure.step, failure.label, changes, None, ("the spec does not start in this state",))
    changes = explainer.changes(failure.before, failure.after)
    way = refiner.way(failure.before, failure.after)
    if way is not None:
        why = explainer.barred(way, failure.action)
        return Explanation(failure.step, failure.label, changes, " and ".join(way), why)
    nearest, why = explainer.nearest(failure.before, failure.after, refiner.refinement.steps)
    return Explanation(failure.step, failure.label, changes, nearest, why)


class _Explainer:
    def __init__(self, refiner: Refiner) -> None:
        self.refiner = refiner
        self.tables = refiner.spec_tables
        self._processes = {process.name: process for process in refiner.spec.everyone()}
        self._known: list[_Instance] | None = None

    def changes(self, before: Ids, after: Ids) -> dict[str, tuple[str, str]]:
        """Return the slots in which two states differ, with both values as text."""
        return {
            self.tables.slots[slot]: (self._text(before, slot), self._text(after, slot))
            for slot in sorted(_differences(before, after))
        }

    def _value(self, state: Ids, slot: int) -> Any:
        return self.tables.values[slot][state[slot]]

    def _text(self, state: Ids, slot: int) -> str:
        return brief_value(self._value(state, slot))

    def barred(self, way: tuple[str, ...], action: str) -> tuple[str, ...]:
        """Return which steps of a way this action of the actors may not be."""
        by = self.refiner.refinement.by
        return tuple(
            f"only {' or '.join(by[name])} may be {name}, and this step is {action}"
            for name in dict.fromkeys(way) if name in self.refiner.barred(action)
        )

    def nearest(self, before: Ids, after: Ids, steps: int) -> tuple[str | None, tuple[str, ...]]:
        """Return the nearest action of the spec, and why it does not lead from one state to the other."""
        wanted = _differences(before, after)
        node = self.tables.node(before)
        writing = [(option, _differences(before, target(before, option))) for option in node.options]
        same = self._closest([option for option, slots in writing if slots == wanted], before, after)
        if same is not None:
            sentences = self._differs(same, before, after)
            with_values = self._attempt(before, after, exact=True)
            if with_values is not None and all(self._value(after, slot) in with_values.given for slot in wanted):
                sentences = (*sentences, f"for {with_values.instance} {with_values.sentence}")
            return same.label, sentences
        part = self._part(node, after)
        if part is not None and steps > 1:
            between = target(before, part)
            rest, why = self.nearest(between, after, steps - 1)
            left = ", ".join(self.tables.slots[slot] for slot in sorted(_differences(between, after)))
            both = f"{part.label} and {rest}" if rest else part.label
            return both, (f"{part.label} is part of it, but does not do this: {left}", *why)
        attempt = self._attempt(before, after, exact=True)
        if attempt is None:
            near = self._closest([option for option, slots in writing if slots & wanted], before, after)
            if near is not None and len(_differences(target(before, near), after)) < len(wanted):
                return near.label, self._differs(near, before, after)
            attempt = self._attempt(before, after, exact=False)
        if attempt is None:
            return None, ("no action of the spec that was ever seen writes these slots",)
        return attempt.instance, (attempt.sentence,)

    def _closest(self, options: list[Option], before: Ids, after: Ids) -> Option | None:
        """Return the first of the options that leave the fewest slots wrong."""
        return min(options, key=lambda o: len(_differences(target(before, o), after)), default=None)

    def _part(self, node: Node, after: Ids) -> Option | None:
        """Return the possible option that does most of a step and nothing else."""
        wanted = _differences(node.state, after)
        parts = []
        for option in node.options:
            reached = target(node.state, option)
            right = _differences(node.state, reached)
            if right and right < wanted and all(reached[slot] == after[slot] for slot in right):
                parts.append((len(right), option))
        return max(parts, key=lambda found: found[0])[1] if parts else None

    def _differs(self, option: Option, before: Ids, after: Ids) -> tuple[str, ...]:
        reached = target(before, option)
        sentences = []
        for slot in sorted(_differences(reached, after)):
            here, there = self._text(after, slot), self._text(reached, slot)
            sentences.append(f"it would leave {self.tables.slots[slot]} at {there}, this step leaves {here}")
        return tuple(sentences)

    def _attempt(self, before: Ids, after: Ids, exact: bool) -> _Attempt | None:
        """Return the action that usually writes the slots that differ, in the instance that passes the most guards.

        Of those that pass equally many, the one that is given the most of the values that are to be written.
        """
        wanted = _differences(before, after)
        values = [self._value(after, slot) for slot in sorted(wanted)]
        scored = []
        for number, known in enumerate(self._instances(before)):
            common = len(known.slots & wanted)
            if known.slots == wanted if exact else common:
                scored.append((-common / len(known.slots | wanted), number, known))
        scored.sort(key=lambda item: item[:2])
        best = [known for score, _, known in scored if score == scored[0][0]][:TRIED]
        attempts = [attempt for known in best for attempt in self._try(known, before)]
        return max(attempts, key=lambda a: (a.passed, sum(value in a.given for value in values)), default=None)

    def _instances(self, around: Ids) -> list[_Instance]:
        """Return what actions wrote where they were possible: in states of runs, near this one, from the start on."""
        if self._known is not None:
            return self._known
        tables, found = self.tables, {}
        waiting = [tables.node(around)]
        waiting += [tables.node(state) for state in self.refiner.passed(MANY)]
        waiting += [tables.start(n) for n in range(min(tables.initial_count, MANY))]
        met: set[Ids] = set()
        at = 0
        while at < len(waiting) and len(met) < LOOKED_AT:
            node = waiting[at]
            at += 1
            if node.state in met:
                continue
            met.add(node.state)
            for n, option in enumerate(node.options):
                slots = _differences(node.state, target(node.state, option))
                step = option.choice.step
                key = (option.process, step.action, step.args, slots)
                if slots and key not in found:
                    message = type(option.message) if option.message is not None else None
                    found[key] = _Instance(option.process, step.action, step.args, slots, message, node.state)
                if len(waiting) < LOOKED_AT:
                    waiting.append(tables.follow(node, n))
        self._known = list(found.values())
        return self._known

    def _try(self, known: _Instance, before: Ids) -> Iterable[_Attempt]:
        """Yield what an action stops at in a state, for each way in which its process comes to ask for it."""
        process = self._processes[known.process]
        called = known.action if known.process.startswith(known.action) else f"{known.action} of {known.process}"
        called = known.process if known.process.startswith(known.action) else called
        if known.action in self.refiner.refinement.extensions:
            called += " (extension)"
        root, chain = self._root(process, known)
        messages = [m for m in self._arriving(process, before) if type(m) is known.message]
        if known.message is not None and not messages:
            yield _Attempt(called, f"no {known.message.__name__} is on its way to {known.process}", 0)
            return
        for message in messages if known.message is not None else [None]:
            calls = watch(lambda message=message: self._ask(process, before, message))  # type: ignore[misc]
            rooted = [call for call in calls if call.code is root]
            for call in rooted:
                if not call.gave and not call.made:
                    yield _stopped(called, call)
            if not rooted and root is not None:
                outer = next((call for code in chain for call in reversed(calls) if call.code is code), None)
                if outer is not None:
                    guard, passed = guard_of(outer)
                    said = f"{root.co_name} is not asked: {outer.code.co_name} stops at {guard.told()}"
                    yield _Attempt(called, said, passed)

    def _root(self, process: Process, known: _Instance) -> tuple[CodeType | None, list[CodeType]]:
        """Return the function that an action is, and those around it, found where the action is possible."""
        messages: Iterable[Message | None] = [None]
        if known.message is not None:
            messages = [m for m in self._arriving(process, known.example) if type(m) is known.message]
        for message in messages:
            for call in watch(lambda message=message: self._ask(process, known.example, message)):  # type: ignore[misc]
                for action, args, source in call.made:
                    if (action, args) == (known.action, known.args):
                        return _root_of(call, source, action)
        return None, []

    def _arriving(self, process: Process, state: Ids) -> tuple[Message, ...]:
        return self.refiner.spec.arrivals(process, View(IdView(self.tables, state)))

    def _ask(self, process: Process, state: Ids, message: Message | None) -> Iterable[Step]:
        view = View(IdView(self.tables, state))
        return process.steps(view) if message is None else process.receive(view, message)


def _root_of(call: Call, source: Call | None, action: str) -> tuple[CodeType, list[CodeType]]:
    """Return the function of an action that is made into a step in a call, and those around it, the nearest first."""
    chain = [call]
    while chain[-1].parent is not None:
        chain.append(chain[-1].parent)
    named = next((n for n, around in enumerate(chain) if action in around.code.co_consts), None)
    if named is None and source is not None:
        return source.code, [around.code for around in chain]
    at = named or 0
    return chain[at].code, [around.code for around in chain[at + 1 :]]


def _stopped(called: str, call: Call) -> _Attempt:
    """Return an attempt that ends in a function of its own."""
    guard, passed = guard_of(call)
    named = call.code.co_varnames[: call.code.co_argcount]
    given = {n: call.given[n] for n in named if n in call.given and isinstance(call.given[n], str | int | type(None))}
    said = ", ".join(f"{name} = {brief_value(value)}" for name, value in given.items())
    sentence = f"its guard fails: {guard.told()}"
    return _Attempt(f"{called} with {said}" if said else called, sentence, passed + 1, tuple(given.values()))


def _differences(one: Ids, other: Ids) -> frozenset[int]:
    return frozenset(slot for slot, (a, b) in enumerate(zip(one, other, strict=True)) if a != b)
