"""Is a recorded run consistent in itself? What every run of a model does, whatever its actors decide, and no more.

These are properties of any run, over its events: `RULES` names them. A message that is taken was on its way; what is
sent gets on its way, or is lost or held where a fault says so; nobody writes what is another's; faults are those that
the environment can do; an operation ends after it began; time does not go back. What the actors decide is held against
the spec elsewhere; whether the model's own actors would have decided so, `departure` says.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

import attrs

from harness.model import Kind, Model, Process, Step, Value, View, canonical_text, encode, slot
from harness.model.faults import RULE_COUNTS
from harness.model.process import durable
from harness.model.view import parts
from harness.record import Event
from harness.simulate.tables import Tables

NETWORK = ("inbox", "wire", "held", "discarded")
RULES: Mapping[str, str] = {
    "StartsInInitialState": "a run starts in an initial state of the model",
    "KnownProcess": "only processes of the model take steps",
    "OwnStateOnly": "an actor writes its own state and disk, and nobody else's",
    "DiskIsWhatWasHeld": "what an actor flushes is what it holds after the step",
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
    """Looks at the events of one run in their order, the initial one first, and keeps what is wrong with them."""

    def __init__(self, model: Model, most: int = 1_000_000) -> None:
        self.model = model
        self.most = most
        """So many findings are kept, the first ones."""
        self._environment = {process.name: process for process in model.environment}
        self._protocol = {process.name: process for process in model.processes}
        self._state: dict[str, Value] = {}
        self._at_us = 0
        self._odd: list[Oddity] = []
        self._under_way: set[tuple[str, str]] = set()
        self._begun: set[str] = set()
        self._early: dict[str, list[Oddity]] = {}
        """Ends of operations that have not begun in the run so far, by name; those that never begin take one step."""

    def look(self, event: Event) -> None:
        """Look at the next event."""
        for rule, sentence in self._wrong(event):
            self._keep(self._odd, Oddity(event.n, sentence, rule))
        if event.n:
            self._operation(event)
        self._state.update(event.writes)

    def odd(self) -> tuple[Oddity, ...]:
        """Return what was wrong so far, by step."""
        early = [oddity for name in sorted(self._begun & self._early.keys()) for oddity in self._early[name]]
        return tuple(sorted([*self._odd, *early], key=lambda oddity: oddity.step)[: self.most])

    def _keep(self, kept: list[Oddity], oddity: Oddity) -> None:
        if len(kept) < self.most:
            kept.append(oddity)

    def _wrong(self, event: Event) -> Iterator[tuple[str, str]]:
        """Yield the rules that an event breaks, and how."""
        name = self.model.name
        if event.n == 0:
            if not any(_are_same(start, event.writes) for start in self.model.initial_states()):
                yield "StartsInInitialState", f"{name} does not start like this"
        elif event.process in self._protocol:
            yield from _writes(self.model, event)
            try:
                yield from _messages(self.model, self._protocol[event.process], self._state, event)
            except Exception as error:
                said = f"the state before it is none of {name} ({type(error).__name__}: {error})"
                yield "TakenWasUnderWay", said
        elif event.process in self._environment:
            try:
                yield from _environment(self.model, self._environment[event.process], self._state, event)
            except Exception as error:
                said = f"the state before it is none of {name} ({type(error).__name__}: {error})"
                yield "EnvironmentCanDoThis", said
        else:
            yield "KnownProcess", f"there is no process {event.process!r} in {name}"
        if event.at_us is not None:
            if event.at_us < self._at_us:
                said = f"its time, {event.at_us} us, is before that of the step before it, {self._at_us} us"
                yield "TimeGoesOn", said
            self._at_us = event.at_us

    def _operation(self, event: Event) -> None:
        """Look at what an event is to an operation. Those that never begin in a run take one step each."""
        if event.op is None:
            return
        key, outcome = (event.op["process"], event.op["name"]), event.op["outcome"]
        if outcome == "invoke":
            self._under_way.add(key)
            self._begun.add(key[1])
        elif key in self._under_way:
            self._under_way.discard(key)
        else:
            said = f"its op ends {key[1]} of {key[0]}, which had not begun"
            self._keep(self._early.setdefault(key[1], []), Oddity(event.n, said, "EndsAfterItBegan"))


def _are_same(one: Mapping[str, Value], other: Mapping[str, Value]) -> bool:
    return one.keys() == other.keys() and all(canonical_text(one[name]) == canonical_text(other[name]) for name in one)


def _writes(model: Model, event: Event) -> Iterator[tuple[str, str]]:
    """Yield what a process of the protocol writes that is not its own, or not what it holds."""
    disk = slot("disk", event.process)
    allowed = {event.process, disk}
    foreign = {*model.actors, *(slot(of, name) for of in ("gate", "disk") for name in model.addresses)} - allowed
    for name in event.writes:
        if name in foreign or (event.process in model.actors and name not in allowed and not _is_network(name)):
            yield "OwnStateOnly", f"{event.process} writes {name}, which is not its own"
    if disk in event.writes:
        held = event.writes.get(event.process)
        if not attrs.has(type(held)) or canonical_text(durable(held)) != canonical_text(event.writes[disk]):
            yield "DiskIsWhatWasHeld", f"{event.process} flushes what it does not hold"


def _is_network(name: str) -> bool:
    return parts(name)[0] in NETWORK or name == RULE_COUNTS


def _messages(
    model: Model, process: Process, state: Mapping[str, Value], event: Event
) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with the messages that a process of the protocol takes and sends."""
    view = View(state)
    consumed = event.received
    if model.faulty and process.has_inbox and view.at("gate", process.name).status != "up":
        yield "DownIsSilent", f"{process.name} takes a step while it is {view.at('gate', process.name).status}"
        return
    if consumed is not None and (consumed.dest != event.process or consumed not in model.arrivals(process, view)):
        said = f"{event.process} takes a message that is not on its way to it, or cannot arrive: {consumed.brief()}"
        yield "TakenWasUnderWay", said
        return
    own = tuple((name, value) for name, value in event.writes.items() if not _is_network(name))
    sent: Value = event.sent
    effects = model.effects(view, Step(event.action, event.args, own, sent, consumed, kind=Kind.STEP))
    wanted = {name: value for name, value in effects.writes if _is_network(name)}
    for name in sorted({*wanted, *(name for name in event.writes if _is_network(name))}):
        before = state[name]
        if canonical_text(wanted.get(name, before)) != canonical_text(event.writes.get(name, before)):
            yield "SentGetsUnderWay", f"what it takes and sends leaves {name} otherwise than recorded"
    if effects.lost != event.lost or effects.held != event.held:
        said = "other messages that it sends are lost or held than the network loses or holds"
        yield "SentGetsUnderWay", said


def _environment(
    model: Model, process: Process, state: Mapping[str, Value], event: Event
) -> Iterator[tuple[str, str]]:
    """Yield why a fault, or its mending, is none that the environment can do in a state, or does something else."""
    label, view = label_of(event), View(state)
    choice = next((choice for choice in model.own_choices(process, view) if choice.label == label), None)
    if choice is None:
        yield "EnvironmentCanDoThis", f"{event.process} cannot do this in the state before it"
        return
    step, effects = choice.step, model.effects(view, choice.step)
    told = (step.consumed, step.sent, effects.lost, effects.held, str(step.kind))
    recorded = (event.received, event.sent, event.lost, event.held, event.kind)
    if told != recorded or not _are_same({**state, **dict(effects.writes)}, {**state, **event.writes}):
        yield "EnvironmentCanDoThis", f"{event.process} does this otherwise: what is written or hit differs"


def label_of(event: Event) -> str:
    """Return the label of the step that an event records."""
    return f"{event.name} {event.detail}" if event.detail else event.name


def departure(
    tables: Tables, before: tuple[int, ...] | None, event: Event, after: tuple[int, ...]
) -> Oddity | None:
    """Return what is wrong with an event that is none of the model's own choices in a state, or has other effects.

    States are given as ids of the tables; that before the initial event is None.
    """
    if before is None:
        return None if tables.starts_in(after) else Oddity(event.n, f"{tables.model.name} does not start like this")
    sentence = _departs(tables, before, event, after)
    return Oddity(event.n, sentence) if sentence is not None else None


def _departs(tables: Tables, before: tuple[int, ...], event: Event, after: tuple[int, ...]) -> str | None:
    label = label_of(event)
    try:
        options = [o for o in tables.node(before).options if o.label == label and o.process == event.process]
    except Exception as error:
        return f"the actors of {tables.model.name} cannot go on from the state before it ({type(error).__name__})"
    if not options:
        return f"{event.process} does not do this in the state before it"
    for option in options:
        step, edge = option.choice.step, option.edge(before)
        left = list(before)
        for at, value in edge.writes:
            left[at] = value
        told = (step.consumed, step.sent, edge.effects.lost, edge.effects.held, str(step.kind))
        recorded = (event.received, event.sent, event.lost, event.held, event.kind)
        if tuple(left) == after and told == recorded and _op_of(step) == event.op:
            return None
    return f"{event.process} does this otherwise: what is written, sent or told differs"


def _op_of(step: Step) -> dict[str, Value] | None:
    """Return a step's operation as a history has it."""
    if step.op is None:
        return None
    told = {name: encode(getattr(step.op, name)) for name in ("process", "name", "outcome", "value")}
    return json.loads(json.dumps(told))  # type: ignore[no-any-return]
