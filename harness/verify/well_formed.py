"""Is a recorded run consistent in itself? What every run of a model does, whatever its actors decide, and no more.

These are properties of any run, over its events: `RULES` names them. A message that is taken was on its way; what is
sent gets on its way, or is lost or held where a fault says so; no process writes another's slots; faults are those that
the environment can do; an operation ends after it began; time does not go back. What the actors decide is checked
against the spec elsewhere; whether the model's own actors would have decided so, `departure` says.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import attrs

from harness.model import Choice, Kind, Model, Process, Step, Value, View, canonical_text, durable, encode, slot
from harness.model.faults import RULE_COUNTS
from harness.model.view import parts
from harness.record import Event

Texts = Mapping[str, str]
"""Texts of values that an event writes, by slot, where they are at hand: equal ones need no look at the values."""
NO_TEXTS: Texts = {}
NETWORK = ("inbox", "held", "discarded")
RULES: Mapping[str, str] = {
    "StartsInInitialState": "a run starts in an initial state of the model",
    "KnownProcess": "only processes of the model take steps",
    "OwnStateOnly": "an actor writes its own state and disk, and nobody else's",
    "DiskIsWhatWasHeld": "what an actor flushes is what it holds after the step",
    "AuxiliaryIsAsNoted": "a variable that no process reads is what the model notes of the steps",
    "TakenWasUnderWay": "a message that is taken was on its way and could arrive",
    "SentGetsUnderWay": "what is sent arrives in an inbox, or a fault loses or holds it; nothing else does",
    "DownIsSilent": "who is down or paused takes no step",
    "EnvironmentCanDoThis": "a fault or its mending is one that the environment offers in that state, budget and all",
    "EndsAfterItBegan": "an operation ends after it began, once",
    "TimeGoesOn": "virtual time does not go back",
}
"""The properties of every run of every model: name to what it says."""


@attrs.frozen
class Oddity:
    """What is wrong with one event of a record."""

    step: int
    sentence: str
    rule: str = ""
    """Which of the rules is broken; none for a step that only the model's own actors would not take."""


class Consistency:
    """Takes in the events of one run in their order, the initial one first, and keeps what is wrong with them."""

    def __init__(self, most: int = 1_000_000) -> None:
        self.most = most
        """So many findings are kept, the first ones."""
        self._at_us = 0
        self._odd: list[Oddity] = []
        self._under_way: set[tuple[str, str]] = set()
        self._begun: set[str] = set()
        self._early: dict[str, list[Oddity]] = {}
        """Ends of operations that have not begun in the run so far, by name; those that never begin take one step."""

    def take(self, n: int, at_us: int | None, op: Mapping[str, Any] | None, wrong: Iterable[tuple[str, str]]) -> None:
        """Take in event n, knowing which rules about states and steps it breaks, and how."""
        for rule, sentence in wrong:
            self._keep(self._odd, Oddity(n, sentence, rule))
        if at_us is not None:
            if at_us < self._at_us:
                said = f"its time, {at_us} us, is before that of the step before it, {self._at_us} us"
                self._keep(self._odd, Oddity(n, said, "TimeGoesOn"))
            self._at_us = at_us
        if op is not None and n:
            self._operation(n, op)

    def odd(self) -> tuple[Oddity, ...]:
        """Return what was wrong so far, by step."""
        early = [oddity for name in sorted(self._begun & self._early.keys()) for oddity in self._early[name]]
        return tuple(sorted([*self._odd, *early], key=lambda oddity: oddity.step)[: self.most])

    def _keep(self, kept: list[Oddity], oddity: Oddity) -> None:
        if len(kept) < self.most:
            kept.append(oddity)

    def _operation(self, n: int, op: Mapping[str, Any]) -> None:
        """Look at what event n is to an operation. Those that never begin in a run take one step each."""
        key, outcome = (op["process"], op["name"]), op["outcome"]
        if outcome == "invoke":
            self._under_way.add(key)
            self._begun.add(key[1])
        elif key in self._under_way:
            self._under_way.discard(key)
        else:
            said = f"it ends {key[1]} of {key[0]}, which had not begun"
            self._keep(self._early.setdefault(key[1], []), Oddity(n, said, "EndsAfterItBegan"))


def wrong_with(model: Model, state: Mapping[str, Value], event: Event) -> Iterator[tuple[str, str]]:
    """Yield the rules about states and steps that an event breaks after a state, and how."""
    if event.n == 0:
        if not any(_are_same(start, event.writes) for start in model.initial_states()):
            yield "StartsInInitialState", f"{model.name} has no such initial state"
        return
    yield from wrong_writes(model, event)
    yield from wrong_step(model, View(state), event)


def wrong_writes(model: Model, event: Event) -> Iterator[tuple[str, str]]:
    """Yield the rules that a step breaks after any state: which process may write which slots."""
    if any(process.name == event.process for process in model.processes):
        yield from _writes(model, event)
    elif all(process.name != event.process for process in model.environment):
        yield "KnownProcess", f"there is no process {event.process!r} in {model.name}"


def wrong_step(model: Model, view: View, event: Event, texts: Texts = NO_TEXTS) -> Iterator[tuple[str, str]]:
    """Yield the other rules that a step breaks after a state; of the state, nothing counts but what is read of it."""
    protocol = next((process for process in model.processes if process.name == event.process), None)
    environment = next((process for process in model.environment if process.name == event.process), None)
    try:
        if protocol is not None:
            yield from _messages(model, protocol, view, event, texts)
        elif environment is not None:
            yield from _environment(model, environment, view, event, texts)
    except Exception as error:
        said = f"the state before it is not a state of {model.name} ({type(error).__name__}: {error})"
        yield "TakenWasUnderWay" if protocol is not None else "EnvironmentCanDoThis", said


def _are_same(one: Mapping[str, Value], other: Mapping[str, Value]) -> bool:
    return one.keys() == other.keys() and all(canonical_text(one[name]) == canonical_text(other[name]) for name in one)


def _writes(model: Model, event: Event) -> Iterator[tuple[str, str]]:
    """Yield what a process of the protocol writes that is not its own, or not what it holds."""
    disks = model.disks_of(event.process)
    allowed = {*model.slots_of(event.process), *disks.values(), *(variable.name for variable in model.auxiliary)}
    for name in event.writes:
        if name not in allowed and (event.process in model.actors or name in _guarded(model)) and not _is_network(name):
            yield "OwnStateOnly", f"{event.process} writes {name}, which it does not own"
    for where, disk in disks.items():
        if disk in event.writes:
            held = event.writes.get(where)
            if not attrs.has(type(held)) or canonical_text(durable(held)) != canonical_text(event.writes[disk]):
                yield "DiskIsWhatWasHeld", f"{event.process} flushes another value than it holds"


def _guarded(model: Model) -> set[str]:
    """Return the slots that only their owner, or the environment, may write."""
    actors = [slot for name in model.actors for slot in (*model.slots_of(name), *model.disks_of(name).values())]
    return {*actors, *(slot("gate", name) for name in model.addresses)}


def _is_network(name: str) -> bool:
    return parts(name)[0] in NETWORK or name == RULE_COUNTS


def _messages(
    model: Model, process: Process, view: View, event: Event, texts: Texts
) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with the messages that a process of the protocol takes and sends."""
    consumed = event.received
    if model.faulty and process.has_inbox and view.at("gate", process.name).status != "up":
        yield "DownIsSilent", f"{process.name} takes a step while it is {view.at('gate', process.name).status}"
        return
    if consumed is not None and (consumed.dest != event.process or consumed not in model.arrivals(process, view)):
        said = f"{event.process} takes a message that is not under way to it, or cannot arrive: {consumed.brief()}"
        yield "TakenWasUnderWay", said
        return
    own = tuple((name, value) for name, value in event.writes.items() if not _is_network(name))
    sent: Value = event.sent
    step = Step(event.action, event.args, own, sent, consumed, kind=Kind.STEP)
    for variable in model.auxiliary:
        if not _leave_alike(view, dict(variable.write(view, step)), event, variable.name, texts):
            yield "AuxiliaryIsAsNoted", f"it leaves {variable.name} with another value than the model notes"
    effects = model.effects(view, step)
    wanted = {name: value for name, value in effects.writes if _is_network(name)}
    for name in sorted({*wanted, *(name for name in event.writes if _is_network(name))}):
        if not _leave_alike(view, wanted, event, name, texts):
            yield "SentGetsUnderWay", f"its messages leave {name} with another value than recorded"
    if effects.lost != event.lost or effects.held != event.held:
        said = "the network loses or holds other messages than recorded"
        yield "SentGetsUnderWay", said


def _environment(
    model: Model, process: Process, view: View, event: Event, texts: Texts
) -> Iterator[tuple[str, str]]:
    """Yield why a fault, or its mending, is none that the environment can do in a state, or does something else."""
    choice = next((choice for choice in model.own_choices(process, view) if choice.label == event.label), None)
    if choice is None:
        yield "EnvironmentCanDoThis", f"{event.process} cannot do this in the state before it"
    elif not _does(model, view, choice.step, event, texts):
        yield "EnvironmentCanDoThis", f"{event.process} does this with other effects: what is written or hit differs"


def _does(model: Model, view: View, step: Step, event: Event, texts: Texts) -> bool:
    """Say whether a step takes, sends and writes in a state what an event says."""
    effects = model.effects(view, step)
    derived = (step.consumed, step.sent, effects.lost, effects.held, str(step.kind))
    if derived != (event.received, event.sent, event.lost, event.held, event.kind):
        return False
    writes = dict(effects.writes)
    return all(_leave_alike(view, writes, event, name, texts) for name in sorted({*writes, *event.writes}))


def _leave_alike(view: View, one: Mapping[str, Value], event: Event, name: str, texts: Texts) -> bool:
    """Say whether writes leave in a slot what an event does; the state is read only where one leaves it alone."""
    left = canonical_text(one[name] if name in one else view[name])
    if texts.get(name) == left:
        return True
    return left == canonical_text(event.writes[name] if name in event.writes else view[name])


def departure(model: Model, view: View, event: Event, texts: Texts = NO_TEXTS) -> str | None:
    """Return why a step is none of the model's own in a state, or has other effects; None if it is one.

    Only the process that takes the step is asked. Of the state, only what is read of it counts.
    """
    try:
        own = _own(model, view, event)
    except Exception as error:
        return f"{event.process} cannot go on from the state before it ({type(error).__name__})"
    if not own:
        return f"{event.process} does not do this in the state before it"
    if any(_op_of(choice.step) == event.op and _does(model, view, choice.step, event, texts) for choice in own):
        return None
    return f"{event.process} does this with other effects: what is written, sent or reported differs"


def _own(model: Model, view: View, event: Event) -> list[Choice]:
    """Return the steps that are possible in a state and have the process, the message and the label of an event."""
    found: list[Choice] = []
    for process in model.everyone():
        if process.name == event.process:
            if event.kind == Kind.INPUT:
                found += model.input_choices(process, view, event.input)
            found += model.own_choices(process, view)
            if event.received is not None and event.received in model.arrivals(process, view):
                found += model.delivery_choices(process, view, event.received)
    named = [choice for choice in found if choice.label == event.label]
    if model.constraint is None:
        return named
    return [choice for choice in named
            if model.is_inside(Changed(view, dict(model.effects(view, choice.step).writes)))]


class Changed(Mapping[str, Value]):
    """A state that is looked at through a view, with something else in some of its slots."""

    def __init__(self, view: View, writes: Mapping[str, Value]) -> None:
        self._view = view
        self._writes = writes

    def __getitem__(self, name: str) -> Value:
        return self._writes[name] if name in self._writes else self._view[name]

    def __iter__(self) -> Iterator[str]:
        raise TypeError("of a state that is looked at through a view, only slots that are named are known")

    def __len__(self) -> int:
        raise TypeError("of a state that is looked at through a view, only slots that are named are known")


def _op_of(step: Step) -> dict[str, Value] | None:
    """Return a step's operation as a history has it."""
    if step.op is None:
        return None
    op = {name: encode(getattr(step.op, name)) for name in ("process", "name", "outcome", "value")}
    return json.loads(json.dumps(op))  # type: ignore[no-any-return]
