"""Editing recorded histories as a hand would, and putting right what a checksum, or the network's book-keeping, shows.

The events of a history are JSON objects here, event 0 included; an `Edit` makes other ones of them. `written` numbers
them again and forms the digest. `put_right` is a careful hand: after it every inbox holds what was sent and not taken.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import Any

import attrs

from harness.model import Choice, Kind, Model, Process, Step, Value, View, canonical_text, decode, parts
from harness.record import Chosen, Recorder
from harness.record.history import all_types
from harness.simulate.runs.run import Run
from harness.simulate.trails.replay import replay_plain

Line = dict[str, Any]
Lines = list[Line]
Edit = Callable[[], Lines]
Way = tuple[Any, ...]
"""Keys and indexes that lead to a place in JSON data."""
NETWORK = ("inbox", "held", "discarded", "gate", "budget", "rule_counts")
MESSAGES = ("received", "sent")
CODES = ("code", "error")
OF_COORDINATORS = ("InitProducerIdResponse", "AddPartitionsToTxnResponse")
"""Messages whose codes are not those of replicas."""
KEYS = ("n", "at_us", "process", "kind", "action", "args", "detail", "received", "sent", "lost", "held", "op", "writes",
        "violated")
"""The fields of an event in the order in which they are written."""


def compact(line: Mapping[str, Any]) -> str:
    return json.dumps(line, separators=(",", ":"), ensure_ascii=False)


def events_of(path: Path) -> Lines:
    """Return the events of a history as they are in its file."""
    return [json.loads(line) for line in lines_of(path)][1:-1]


def lines_of(path: Path) -> list[str]:
    """Return the lines of a history; a text of a session may have what `splitlines` takes for the end of one."""
    return path.read_text(encoding="utf-8").removesuffix("\n").split("\n")


def written(source: Path, events: Lines, path: Path) -> Path:
    """Write a history with the header and the verdict of another one: numbered again, with the digest that fits."""
    texts = lines_of(source)
    lines = [compact({**event, "n": n}) for n, event in enumerate(events)]
    sha = hashlib.sha256("".join(f"{line}\n" for line in lines).encode())
    end = {**json.loads(texts[-1]), "end": len(lines) - 1, "digest": sha.hexdigest()}
    path.write_text("\n".join([texts[0], *lines, compact(end), ""]), encoding="utf-8")
    return path


def replays(path: Path, run: Run) -> bool:
    """Say whether a history is what a replay of its own labels gives."""
    labels = [f"{e['action']}({','.join(e['args'])})" if e["args"] else e["action"] for e in events_of(path)[1:]]
    details = [event.get("detail", "") for event in events_of(path)[1:]]
    choices = tuple(Chosen(f"{label} {detail}".strip()) for label, detail in zip(labels, details, strict=True))
    recorder = Recorder()
    replay_plain(attrs.evolve(run.trail, choices=choices, fair_from=None), recorder)
    return recorder.digest() == json.loads(lines_of(path)[-1])["digest"]


def swapped(events: Lines) -> list[Edit]:
    """Each two neighbouring events in the other order."""
    return [partial(_order, events, [n + 1, n], n) for n in range(1, len(events) - 1)]


def dropped(events: Lines) -> list[Edit]:
    """Each event left out."""
    return [partial(_order, events, [], n, 1) for n in range(1, len(events))]


def doubled(events: Lines) -> list[Edit]:
    """Each event twice."""
    return [partial(_order, events, [n, n], n, 1) for n in range(1, len(events))]


def numbers_of_states(events: Lines) -> list[Edit]:
    """Each number in what an event leaves of an actor, one higher in that event alone."""
    edits = []
    for n, event in enumerate(events):
        field = "writes" if n else "initial"
        actors = {name: value for name, value in event[field].items() if parts(name)[0] not in NETWORK}
        edits += [partial(_changed, events, n, (field, *path), value + 1) for path, value in numbers(actors)]
    return edits


def numbers_of_messages(events: Lines) -> list[Edit]:
    """Each number of a message, one higher where it is sent, or where it is taken."""
    return [
        partial(_changed, events, n, (field, *path), value + 1)
        for n, event in enumerate(events) for field in MESSAGES for path, value in numbers(event.get(field, []))
    ]


def numbers_everywhere(events: Lines) -> list[Edit]:
    """Each number of a message, one higher wherever that message is from its sending on."""
    return [
        partial(_replaced, events, n, message, with_leaf(message, path, value + 1))
        for message, n in messages_of(events) for path, value in numbers(message)
    ]


def codes_everywhere(events: Lines) -> list[Edit]:
    """Each response code of a message, the next of those that the run has, wherever that message is."""
    sent = [(message, n, path, value) for message, n in messages_of(events) for path, value in leaves(message)
            if path[-1] in CODES]
    known: dict[bool, set[str]] = {True: set(), False: set()}
    for message, _, _, value in sent:
        known[message["$type"] in OF_COORDINATORS].add(value)
    edits = []
    for message, n, path, value in sent:
        codes = sorted(known[message["$type"] in OF_COORDINATORS])
        other = codes[(codes.index(value) + 1) % len(codes)]
        if other != value:
            edits.append(partial(_replaced, events, n, message, with_leaf(message, path, other)))
    return edits


def outcomes(events: Lines) -> list[Edit]:
    """Each end of an operation, with another outcome: what went well failed, and what failed went well."""
    return [
        partial(_changed, events, n, ("op", "outcome"), "fail" if event["op"]["outcome"] == "ok" else "ok")
        for n, event in enumerate(events) if event.get("op", {"outcome": "invoke"})["outcome"] != "invoke"
    ]


def _order(events: Lines, order: Sequence[int], at: int, length: int = 2) -> Lines:
    return [*events[:at], *(events[n] for n in order), *events[at + length :]]


def _changed(events: Lines, n: int, path: Way, value: Any) -> Lines:
    return [*events[:n], with_leaf(events[n], path, value), *events[n + 1 :]]


def _replaced(events: Lines, first: int, old: Line, new: Line) -> Lines:
    """Return events with one message in place of another one, from an event on, as an editor's search would."""
    found, other = compact(old), compact(new)
    return [*events[:first], *(json.loads(compact(event).replace(found, other)) for event in events[first:])]


def messages_of(events: Lines) -> Iterator[tuple[Line, int]]:
    """Yield each message that is sent, once, with the first event that sends it."""
    met = set()
    for n, event in enumerate(events):
        for message in event.get("sent", ()):
            if compact(message) not in met:
                met.add(compact(message))
                yield message, n


def numbers(data: Any) -> Iterator[tuple[Way, int]]:
    """Yield every number in JSON data with the way to it."""
    return ((path, value) for path, value in leaves(data) if type(value) is int)


def leaves(data: Any, path: Way = ()) -> Iterator[tuple[Way, Any]]:
    """Yield every number, text and truth value in JSON data with the way to it, types of records left out."""
    if isinstance(data, dict):
        for name in sorted(data):
            if name != "$type":
                yield from leaves(data[name], (*path, name))
    elif isinstance(data, list):
        for n, item in enumerate(data):
            yield from leaves(item, (*path, n))
    elif data is not None:
        yield path, data


def with_leaf(data: Any, path: Way, value: Any) -> Any:
    """Return a copy of JSON data with something else at one place."""
    copy = deepcopy(data)
    at = copy
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    return copy


def put_right(model: Model, events: Lines) -> Lines:
    """Return events with what follows from their messages: inboxes, what is lost and held, and the words that tell it.

    Where a message is taken that is not there, or the environment does what it cannot, the event stays as it is.
    """
    types = {cls.__name__: cls for cls in all_types(model)}
    processes = {process.name: process for process in model.everyone()}
    protocol = {process.name for process in model.processes}
    state = {name: decode(value, types) for name, value in events[0]["initial"].items()}
    result = [events[0]]
    for event in events[1:]:
        process = processes[event["process"]]
        right = _of_protocol if process.name in protocol else _of_environment
        result.append(right(model, process, View(state), event, types))
        state.update({name: decode(value, types) for name, value in result[-1]["writes"].items()})
    return result


def _of_protocol(model: Model, process: Process, view: View, event: Line, types: Mapping[str, type]) -> Line:
    own = [(name, decode(value, types)) for name, value in event["writes"].items() if parts(name)[0] not in NETWORK]
    taken = decode(event["received"], types) if "received" in event else None
    sent = tuple(decode(message, types) for message in event.get("sent", ()))
    step = Step(event["action"], tuple(event["args"]), tuple(own), sent, taken, kind=Kind(event["kind"]))
    try:
        effects = model.effects(view, step)
    except (KeyError, ValueError):
        return event
    writes = {name: plain(value) for name, value in sorted(effects.writes)}
    right = {name: value for name, value in event.items() if name not in ("lost", "held")} | {"writes": writes}
    hurt = {"lost": effects.lost, "held": effects.held}
    right |= {name: [plain(message) for message in messages] for name, messages in hurt.items() if messages}
    details = [choice.step.detail for choice in _choices(model, process, view, taken) if choice.step.name == step.name]
    if details and event.get("detail", "") not in details:
        right["detail"] = details[0]
    return {name: right[name] for name in KEYS if name in right}


def plain(value: Value) -> Any:
    """Return a value as JSON data, in the order in which it is written."""
    return json.loads(canonical_text(value))


def _choices(model: Model, process: Process, view: View, taken: Value) -> list[Choice]:
    """Return what a process can do, with a message or without; nothing where its state is none."""
    try:
        return model.own_choices(process, view) if taken is None else model.delivery_choices(process, view, taken)
    except Exception:
        return []


def _of_environment(model: Model, process: Process, view: View, event: Line, types: Mapping[str, type]) -> Line:
    label = f"{event['action']}({','.join(event['args'])})" if event["args"] else event["action"]
    label = f"{label} {event['detail']}" if event.get("detail") else label
    choice = next((choice for choice in _choices(model, process, view, None) if choice.label == label), None)
    if choice is None:
        return event
    writes = model.effects(view, choice.step).writes
    return {**event, "writes": {name: plain(value) for name, value in sorted(writes)}}


RUNS: Mapping[str, tuple[str, int, int]] = {
    "kafka/4.4": ("fencing-battle", 0, 60),
    "replication/kip-320/actors": ("rp-06-first-try-repaired", 0, 60),
    "compaction/pulsar/actors": ("pc-01-leaked-ledger-repaired", 0, 60),
    "compaction/pulsar-trimming/actors": ("pc-03-trimmed-too-early-repaired", 0, 60),
}
"""Model to scenario, seed, and the steps before the fair ending."""
EACH_RUN = tuple(RUNS)
"""The models, as parameters."""
ORDER: Mapping[str, Callable[[Lines], list[Edit]]] = {
    "swapped": swapped, "dropped": dropped, "doubled": doubled,
}
CONTENT: Mapping[str, Callable[[Lines], list[Edit]]] = {
    "numbers-of-states": numbers_of_states, "numbers-of-messages": numbers_of_messages,
    "numbers-everywhere": numbers_everywhere, "codes-everywhere": codes_everywhere,
    "outcomes": outcomes,
}
RIGHT = ("numbers-everywhere", "codes-everywhere")
"""Families that are only judged after a careful hand has put right what follows; those of `ORDER` with and without."""


def families(model: Model, events: Lines) -> Iterator[tuple[str, list[Edit]]]:
    """Yield every family of edits of a history, and those that a careful hand puts right."""
    for name, family in {**ORDER, **CONTENT}.items():
        made = family(events)
        yield name, made
        if name in RIGHT or name in ORDER:
            yield f"{name}, put right", [partial(_right, model, edit) for edit in made]


def _right(model: Model, edit: Edit) -> Lines:
    return put_right(model, edit())


def evenly(edits: list[Edit], most: int) -> list[Edit]:
    """Return so many evenly chosen edits at most."""
    return edits[:: -(-len(edits) // most) or 1]
