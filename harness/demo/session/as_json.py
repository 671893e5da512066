"""The parts of a demo as JSON objects: steps, messages, what is possible, states. Nothing is decided here."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs

from harness.model import Gate, Kind, Message, Model, ShownLog, Step, Telling, Value, View, parts, slot
from harness.model.faults import FAULT_KINDS, LinkFaults
from harness.render.changes import SILENT, brief, difference, message_fields, named_fields
from harness.render.in_flight import MessageChanges, MessagesInFlight, SentMessage
from harness.render.timeline import ENVIRONMENT
from harness.simulate.states.nodes import Option

Json = dict[str, Any]
VERBS = {
    "Drop": "drop", "Duplicate": "duplicate", "Delay": "delay", "Release": "release", "Reconnect": "reorder",
    "Crash": "crash", "Restart": "restart", "Pause": "pause", "Resume": "resume", "Partition": "partition",
    "Cut": "one_way", "Heal": "heal", "SkewClock": "skew", "SetClock": "skew",
}
"""What a person calls the steps of the environment's faults and mendings."""
KINDS = {Kind.TIMER: "timer", Kind.COMMAND: "command", Kind.PERTURBATION: "elect"}


def text_of(data: Any) -> str:
    """Return data as compact JSON text."""
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"))


def lifelines(model: Model) -> tuple[str, ...]:
    """Return the names that a run's lifelines have: the addresses, or else what processes and slots are indexed by."""
    if model.addresses or model.tells:
        return model.addresses
    slots = {index for name in model.initial_states()[0] for index in parts(name)[1:]}
    indexes = [index for process in model.processes for index in parts(process.name)[1:] if not index.isdigit()]
    found = tuple(dict.fromkeys(index for index in indexes if index in slots))
    return found or tuple(process.name for process in model.processes if "[" not in process.name)


def kind_of_lifeline(model: Model, name: str) -> str:
    """Return what a lifeline is: an actor, a process of a spec, or the environment."""
    if name == ENVIRONMENT:
        return ENVIRONMENT
    return "actor" if name in model.actors or model.tells else "process"


def lifeline_of(lanes: Sequence[str], process: str, step: Step) -> str:
    """Return the lifeline of a step: for a fault the actor it hits, for a step without actor the first it writes to."""
    written = (index for name, _ in step.writes for index in parts(name))
    return next((name for name in (process, *step.args, *parts(process)[1:], *written) if name in lanes), ENVIRONMENT)


def message_json(sent: SentMessage) -> Json:
    """Return a message as JSON."""
    message = sent.message
    found: Json = {
        "id": sent.id, "from": message.source, "to": message.dest, "type": message.type,
        "brief": message_fields(message), "reliable": sent.reliable,
        "fields": named_fields(message),
    }
    if sent.copy_of is not None:
        found["copy_of"] = sent.copy_of
    if sent.is_minor:
        found["minor"] = True
    return found


def step_json(
    n: int, at_us: int | None, lanes: Sequence[str], process: str, step: Step, label: str, moved: MessageChanges,
    failing: Mapping[str, str], changed: Sequence[str], status: Mapping[str, str],
) -> Json:
    """Return a step that was taken as JSON, without what it is in the spec."""
    op = step.op
    return {
        "n": n, "label": label, "action": step.action, "args": list(step.args),
        "process": lifeline_of(lanes, process, step), "kind": str(step.kind), "at_us": at_us,
        "received": moved.received.id if moved.received is not None else None,
        "sent": [message_json(sent) for sent in moved.sent],
        "taken": [{"id": fate.sent.id, "how": fate.how} for fate in moved.taken],
        "op": op and {"process": op.process, "name": op.name, "outcome": op.outcome, "value": brief(op.value)},
        "failing": dict(failing), "changed": list(changed), "status": dict(status),
    }


def told_json(
    n: int, at_us: int | None, step: Step, telling: Telling, moved: MessageChanges, failing: Mapping[str, str]
) -> Json:
    """Return a step that tells what it shows as JSON, without what it is in the spec."""
    return {
        "n": n, "label": telling.headline or step.label, "action": telling.headline or step.action, "args": [],
        "process": telling.lane if telling.lane in telling.lanes else ENVIRONMENT, "kind": str(step.kind),
        "at_us": at_us, "received": None, "sent": [message_json(sent) for sent in moved.sent],
        "taken": [{"id": fate.sent.id, "how": fate.how} for fate in moved.taken], "op": None,
        "failing": dict(failing), "changed": list(telling.changed),
        "status": {name: gate.status for name, gate in telling.gates.items() if gate.status != "up"},
        "sort": telling.sort, "minor": telling.is_minor,
    }


def statuses(model: Model, state: Mapping[str, Value]) -> dict[str, str]:
    """Return the actors that are not up."""
    if not model.faulty:
        return {}
    gates = ((address, state[f"gate[{address}]"]) for address in model.addresses)
    return {address: gate.status for address, gate in gates if gate.status != "up"}


def gates(model: Model, state: Mapping[str, Value], telling: Telling | None = None) -> Json:
    """Return what stands between each address and the world, or between each lifeline that the last step tells of."""
    known: Mapping[str, Gate] = {} if telling is None else telling.gates
    if model.faulty:
        known = {address: state[f"gate[{address}]"] for address in model.addresses}
    found = {}
    for address, gate in known.items():
        assert isinstance(gate, Gate)
        found[address] = {"status": gate.status, "partitioned_from": sorted(gate.deaf_to), "skew": gate.skew}
    return found


def enabled_json(index: int, option: Option, lanes: Sequence[str], in_flight: MessagesInFlight) -> Json:
    """Return a step that is possible now as JSON."""
    step = option.choice.step
    message = step.subject
    sent = in_flight.find(message, step.action == "Release") if message is not None else None
    others = () if option.is_timer else step.args  # a timer belongs to the actor that it fires at, not to its arguments
    who = dict.fromkeys(name for name in (lifeline_of(lanes, option.process, step), *others) if name in lanes)
    action, args, lane = step.action, list(step.args), lifeline_of(lanes, option.process, step)
    if step.told is not None:
        telling = step.told()
        action, args, lane = telling.headline, [], telling.lane if telling.lane in telling.lanes else ENVIRONMENT
    return {
        "index": index, "label": option.label, "action": action, "args": args, "process": lane,
        "kind": str(step.kind), "verb": _verb(option),
        "message": sent.id if sent is not None else None, "actors": list(who), "spec": None,
    }


def _verb(option: Option) -> str:
    if option.kind in (Kind.FAULT, Kind.HEAL) and option.action in VERBS:
        return VERBS[option.action]
    if option.message is not None:
        return "deliver"
    return KINDS.get(option.kind, "act")


def in_flight_json(in_flight: MessagesInFlight, deliverable: Iterable[Message]) -> list[Json]:
    """Return the messages under way: those that can arrive now are `under way`, those behind others `waiting`."""
    ready = set(deliverable)
    return [
        {**message_json(sent), "state": "held" if is_held else "under way" if sent.message in ready else "waiting"}
        for sent, is_held in in_flight.all()
    ]


def possible_faults(model: Model) -> dict[str, bool]:
    """Return which kinds of faults can happen in a model."""
    return {kind: model.faults.reaches(kind) for kind in FAULT_KINDS}


def links(model: Model) -> list[list[str]]:
    """Return the pairs that a partition may separate."""
    return [list(process.pair) for process in model.environment if isinstance(process, LinkFaults)]


def state_json(
    lanes: Sequence[str], before: Mapping[str, Value] | None, after: Mapping[str, Value], actor: str | None
) -> Json:
    """Return a state as text, slot by slot under the lifeline it belongs to, and what the last step changed in it."""
    actors: dict[str, list[Json]] = {name: [] for name in lanes if actor in (None, name)}
    shared: list[Json] = []
    for name, value in after.items():
        variable, *index = parts(name)
        if variable in SILENT:
            continue
        was = before[name] if before is not None else value
        owner = next((part for part in (variable, *index) if part in lanes), None)
        shown = _slot_json(name, was, value)
        if variable in actors and index:
            shown["part"] = slot(*index)
        if owner in actors:
            actors[owner].append(shown)
        elif owner is None:
            shared.append(shown)
    return {"actors": actors, "shared": shared}


def _slot_json(name: str, was: Value, value: Value) -> Json:
    found = _value_json("slot", name, was, value)
    if was != value:
        found["difference"] = [phrase.strip() for phrase in difference("", was, value)]
    if attrs.has(type(value)) and type(was) is type(value) and not isinstance(value, str):
        found["fields"] = [_value_json("name", field.name, getattr(was, field.name), getattr(value, field.name))
                           for field in attrs.fields(type(value))]
    return found


def _value_json(kind: str, name: str, was: Value, value: Value) -> Json:
    changed = {"changed": True, "was": brief(was)} if was != value else {"changed": False}
    return {kind: name, "text": brief(value), **changed}


def logs_json(model: Model, state: Mapping[str, Value]) -> list[Json]:
    """Return the logs of a model in a state, none if it has none."""
    return [_log_json(log) for log in model.logs(View(state))] if model.logs is not None else []


def _log_json(log: ShownLog) -> Json:
    return {
        "partition": log.partition, "holder": log.holder, "end": log.end,
        "entries": [
            {"offset": entry.offset, "text": entry.text, "kind": str(entry.kind), "note": entry.note,
             "seen_by": list(entry.seen_by), "details": dict(entry.details)}
            for entry in log.entries
        ],
        "marks": [{"name": mark.name, "label": mark.label, "offset": mark.offset} for mark in log.marks],
        "details": dict(log.details), "facts": dict(log.facts),
    }
