"""Histories: what happened in a run, enough to check it afterwards. JSON Lines; docs/history.md describes every field.

The digest covers the events (from the initial one on), never the header: not the runtime, the seed or the wall time.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs

from harness.model import Model, Refusal, Value, decode
from harness.record.fields import COUNT, NAMES, OBJECT, TEXT, TEXTS, TRUTH, Kind, check_given
from harness.record.files import compact, parse_lines, read_texts, write_atomically
from harness.record.trail import RUN_FIELDS, Trail, build_model, check_format, check_line, faults_to_json, read_faults

FORMAT = "kafka-proto/history"
VERSION = 1

HEADER_FIELDS: Mapping[str, Kind] = {**RUN_FIELDS, "properties": TEXTS, "runtime": TEXT, "processes": TEXTS}
END_FIELDS: Mapping[str, Kind] = {"end": COUNT, "digest": TEXT, "verdict": OBJECT}
VERDICT_FIELDS: Mapping[str, Kind] = {"violated": TEXT, "reason": TEXT, "step": COUNT, "kind": TEXT}
"""What the verdict of a run that violates something has beside `ok`."""
EVENT_FIELDS: Mapping[str, Kind] = {
    "n": COUNT, "at_us": COUNT, "process": TEXT, "kind": TEXT, "action": TEXT, "args": TEXTS, "detail": TEXT,
    "op": OBJECT, "violated": NAMES, "initial": OBJECT, "writes": OBJECT,
}


class Recorder:
    """Collects the events of a run as lines, and their digest."""

    def __init__(self, keep: bool = True) -> None:
        self.lines: list[str] = []
        self._sha = hashlib.sha256()
        self._keep = keep

    def event(self, n: int, at_us: int | None, part: str, failing: str) -> None:
        """Add event n; `part` and `failing` are the canonical inside of its JSON object."""
        at = "" if at_us is None else f',"at_us":{at_us}'
        line = f'{{"n":{n}{at},{part}{failing}}}'
        self._sha.update(line.encode() + b"\n")
        if self._keep:
            self.lines.append(line)

    def digest(self) -> str:
        """Return the digest of the events so far, as hexadecimal SHA-256."""
        return self._sha.hexdigest()


@attrs.frozen
class Event:
    """One event of a history, read back: step 0 is the initial state."""

    n: int
    at_us: int | None
    process: str
    kind: str
    action: str
    args: tuple[str, ...]
    detail: str
    received: Value
    sent: tuple[Value, ...]
    lost: tuple[Value, ...]
    held: tuple[Value, ...]
    op: Mapping[str, Any] | None
    writes: Mapping[str, Value]
    violated: Mapping[str, str]

    @property
    def name(self) -> str:
        """The spec's label of the step."""
        return f"{self.action}({','.join(self.args)})" if self.args else self.action


@attrs.frozen
class History:
    """A run as it was recorded: header, events, and how it ended."""

    header: Mapping[str, Any]
    events: tuple[Event, ...]
    end: Mapping[str, Any]
    digest: str

    def states(self) -> Iterator[Mapping[str, Value]]:
        """Yield the state after each event, the initial state first."""
        state: dict[str, Value] = {}
        for event in self.events:
            state = {**state, **event.writes}
            yield state


def header_of(trail: Trail, model: Model, runtime: str) -> dict[str, Any]:
    """Return the header line of a run's history."""
    return {
        "format": FORMAT, "version": VERSION, "model": trail.model, "sizes": dict(trail.sizes),
        "settings": dict(trail.settings), "network": trail.network, "faults": faults_to_json(trail.faults),
        "claims": list(trail.claims), "properties": [p.name for p in model.properties if p.is_safety],
        "mode": trail.mode, "scenario": trail.scenario, "strategy": trail.strategy, "seed": trail.seed,
        "runtime": runtime, "processes": [p.name for p in model.processes],
    }


def write_history(path: Path, header: Mapping[str, Any], recorder: Recorder, verdict: Mapping[str, Any]) -> None:
    """Write a history to a file, atomically."""
    end = {"end": len(recorder.lines) - 1, "digest": recorder.digest(), "verdict": dict(verdict)}
    write_atomically(path, [compact(header), *recorder.lines, compact(end)])


def history_of(header: Mapping[str, Any], recorder: Recorder, verdict: Mapping[str, Any], model: Model) -> History:
    """Return a run just recorded as a history, without a file."""
    import json

    end = {"end": len(recorder.lines) - 1, "digest": recorder.digest(), "verdict": dict(verdict)}
    types = {cls.__name__: cls for cls in all_types(model)}
    events = tuple(_event(json.loads(line), types) for line in recorder.lines)
    return History(dict(header), events, end, recorder.digest())


def read_history(path: Path, model: Model | None = None) -> History:
    """Read a history; with a model, values become the protocol's own classes, else plain maps.

    Raises Refusal for a file that is cut off or damaged, of another format or version, with unknown events, or whose
    events are not the model's.
    """
    texts = read_texts(path, "history")
    header, *rest = parse_lines(path, "history", texts)
    check_format(path, header, FORMAT, VERSION)
    if not rest or "end" not in rest[-1]:
        raise Refusal(f"{path} is cut off: a history ends with an end line after its last event; record the run again")
    *lines, end = rest
    check_line(path, 1, header, HEADER_FIELDS)
    check_line(path, len(texts), end, END_FIELDS)
    check_line(path, len(texts), end["verdict"], {"ok": TRUTH})
    check_line(path, len(texts), end["verdict"], {} if end["verdict"]["ok"] else VERDICT_FIELDS)
    if not lines or end["end"] != len(lines) - 1:
        said = f"it has {len(lines)} events but its end line says {end['end'] + 1}"
        raise Refusal(f"{path} is damaged: {said}; record the run again")
    digest = _digest(texts[1:-1])
    if digest != end["digest"]:
        raise Refusal(f"{path} is damaged: its events do not have the digest of its end line; record the run again")
    types = {cls.__name__: cls for cls in all_types(model)} if model is not None else None
    events = []
    for number, line in enumerate(lines):
        try:
            if line["n"] != number:
                raise ValueError(f"expected event {number}, found {line['n']}")
            check_given(line, EVENT_FIELDS)
            events.append(_event(line, types))
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise Refusal(f"{path}, line {number + 2}: not an event of this history ({error})") from None
    if model is not None:
        _check_slots(path, events, model)
    return History(header, tuple(events), end, digest)


def model_of_history(path: Path) -> Model:
    """Build the model that a history's header names. Raises Refusal."""
    header = parse_lines(path, "history", read_texts(path, "history")[:1])[0]
    check_format(path, header, FORMAT, VERSION)
    check_line(path, 1, header, HEADER_FIELDS)
    return build_model(header["model"], header["sizes"], header["settings"], header["network"],
                       read_faults(path, header), header["claims"])


def _digest(lines: Iterable[str]) -> str:
    sha = hashlib.sha256()
    for line in lines:
        sha.update(line.encode() + b"\n")
    return sha.hexdigest()


def _check_slots(path: Path, events: Iterable[Event], model: Model) -> None:
    """Raise Refusal unless the events start with the model's slots and write no others."""
    slots = set(model.initial_states()[0])
    for event in events:
        found = set(event.writes)
        if found - slots or (event.n == 0 and found != slots):
            odd = ", ".join(sorted(found ^ slots if event.n == 0 else found - slots)[:3])
            raise Refusal(
                f"{path}, line {event.n + 2}: this is not an event of {model.name} at the header's sizes and faults "
                f"(see {odd}); record the run again"
            )


def all_types(model: Model | None) -> tuple[type, ...]:
    """Return the classes that recorded values of a model may have: the protocol's and the environment's."""
    from harness.model import Gate

    return (Gate, *(model.types if model is not None else ()))


def _event(line: Mapping[str, Any], types: Mapping[str, type] | None) -> Event:
    def value(data: Any) -> Value:
        return decode(data, types) if types is not None else decode(_untyped(data), {})

    def values(name: str) -> tuple[Value, ...]:
        return tuple(value(item) for item in line.get(name, ()))

    slots = line["initial"] if line["n"] == 0 else line["writes"]
    known = {"n", "at_us", "initial", "process", "kind", "action", "args", "detail", "received", "sent", "lost",
             "held", "op", "writes", "violated"}
    unknown = set(line) - known
    if unknown:
        raise ValueError(f"unknown fields {', '.join(sorted(unknown))}")
    first = line["n"] == 0
    return Event(
        line["n"], line.get("at_us"), "" if first else line["process"], "initial" if first else line["kind"],
        "Initial predicate" if first else line["action"], tuple(line.get("args", ())), line.get("detail", ""),
        value(line["received"]) if "received" in line else None, values("sent"), values("lost"), values("held"),
        line.get("op"), {name: value(item) for name, item in slots.items()}, line.get("violated", {}),
    )


def _untyped(data: Any) -> Any:
    """Turn typed records into plain maps whose `type` field is their class's name."""
    if isinstance(data, list):
        return [_untyped(item) for item in data]
    if isinstance(data, dict):
        return {("type" if name == "$type" else name): _untyped(item) for name, item in data.items()}
    return data


