"""Is a recorded run consistent in itself? What every run of a model does, whatever its actors decide, and no more.

A message that is taken was on its way; what is sent gets on its way, or is lost or held where a fault says so; nobody
writes what is another's; an operation ends after it began; time does not go back. What the actors decide is held
against the spec elsewhere; whether the model's own actors would have decided so, `Departures` says.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping

import attrs

from harness.model import Kind, Model, Step, Value, View, canonical_text, encode, slot
from harness.model.faults import RULE_COUNTS
from harness.model.view import parts
from harness.record import Event
from harness.simulate.tables import Tables

NETWORK = ("inbox", "wire", "held", "discarded")


@attrs.frozen
class Oddity:
    """What is wrong with one event of a record."""

    step: int
    sentence: str


def inconsistencies(model: Model, events: Iterable[Event]) -> Iterator[Oddity]:
    """Yield what is inconsistent in a run's events, the initial one first, in order."""
    known = {process.name for process in model.everyone()}
    actors = {process.name for process in model.processes}
    under_way: set[tuple[str, str]] = set()
    state: dict[str, Value] = {}
    at_us = 0
    for event in events:
        said = []
        if event.n:
            if event.process not in known:
                said.append(f"there is no process {event.process!r} in {model.name}")
            if event.process in actors:
                said += _writes(model, event)
                try:
                    said += _messages(model, state, event)
                except Exception as error:
                    said.append(f"the state before it is none of {model.name} ({type(error).__name__}: {error})")
            said += _op(event, under_way)
        if event.at_us is not None:
            if event.at_us < at_us:
                said.append(f"its time, {event.at_us} us, is before that of the step before it, {at_us} us")
            at_us = event.at_us
        yield from (Oddity(event.n, sentence) for sentence in said)
        state.update(event.writes)


def _writes(model: Model, event: Event) -> Iterator[str]:
    """Yield what a process of the protocol writes that is not its own."""
    allowed = {event.process, slot("disk", event.process)}
    foreign = {*model.actors, *(slot(of, name) for of in ("gate", "disk") for name in model.addresses)} - allowed
    for name in event.writes:
        if name in foreign or (event.process in model.actors and name not in allowed and not _is_network(name)):
            yield f"{event.process} writes {name}, which is not its own"


def _is_network(name: str) -> bool:
    return parts(name)[0] in NETWORK or name == RULE_COUNTS


def _messages(model: Model, state: Mapping[str, Value], event: Event) -> Iterator[str]:
    """Yield what is wrong with the messages that a process of the protocol takes and sends."""
    view = View(state)
    consumed = event.received
    if consumed is not None:
        process = next(p for p in model.processes if p.name == event.process)
        if consumed.dest != event.process or consumed not in model.arrivals(process, view):
            yield f"{event.process} takes a message that is not on its way to it, or cannot arrive: {consumed.brief()}"
            return
    own = tuple((name, value) for name, value in event.writes.items() if not _is_network(name))
    sent: Value = event.sent
    effects = model.effects(view, Step(event.action, event.args, own, sent, consumed, kind=Kind.STEP))
    wanted = {name: value for name, value in effects.writes if _is_network(name)}
    for name in sorted({*wanted, *(name for name in event.writes if _is_network(name))}):
        before = state[name]
        if canonical_text(wanted.get(name, before)) != canonical_text(event.writes.get(name, before)):
            yield f"what it takes and sends leaves {name} otherwise than recorded"
    if effects.lost != event.lost or effects.held != event.held:
        yield "other messages that it sends are lost or held than the network loses or holds"


def _op(event: Event, under_way: set[tuple[str, str]]) -> Iterator[str]:
    """Yield what is wrong with the operation that an event begins or ends. One that does both only ends it."""
    if event.op is None:
        return
    key, outcome = (event.op["process"], event.op["name"]), event.op["outcome"]
    if outcome == "invoke":
        under_way.add(key)
    elif key in under_way:
        under_way.discard(key)
    elif event.kind != Kind.COMMAND:
        yield f"its op ends {key[1]} of {key[0]}, which had not begun"


def departures(tables: Tables, events: Iterable[Event], states: Iterable[tuple[int, ...]]) -> Iterator[Oddity]:
    """Yield each event that is none of the model's own choices in the state recorded before it, or has other effects.

    `states` are those after each event, as ids of the tables.
    """
    before: tuple[int, ...] | None = None
    for event, state in zip(events, states, strict=True):
        if before is None:
            if not tables.starts_in(state):
                yield Oddity(0, f"{tables.model.name} does not start like this")
        else:
            sentence = _departs(tables, before, event, state)
            if sentence is not None:
                yield Oddity(event.n, sentence)
        before = state


def _departs(tables: Tables, before: tuple[int, ...], event: Event, after: tuple[int, ...]) -> str | None:
    label = f"{event.name} {event.detail}" if event.detail else event.name
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
