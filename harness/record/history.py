"""Histories: what happened in a run, enough to check it. JSON Lines; docs/reference/formats.md describes every field.

The digest covers the events (from the initial one on), never the header: not the runtime, the seed or the wall time.
The end line has one of the header, too.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TextIO

import attrs

from harness.model import Gate, Model, Refusal, Value
from harness.record.changes import CHANGES
from harness.record.events import RunEvent, op_text
from harness.record.fields import (
    ANY,
    COUNT,
    OBJECT,
    TEXT,
    TEXTS,
    TRUTH,
    FieldKind,
    check_fields,
    check_given,
    one_of,
)
from harness.record.files import compact, each_text, parse_line, write_atomically, writing
from harness.record.recorded_events import EVENT_FIELDS, Event, event_of
from harness.record.trail import HISTORY_FORMAT as FORMAT
from harness.record.trail import RUN_FIELDS, Trail, build_model, check_format, check_line, read_faults, run_fields

VERSION = 3
READABLE = (1, 2, 3)
WITH_HEADER = 3
"""The first version whose end line has a digest of the header."""

HEADER_FIELDS: Mapping[str, FieldKind] = {**RUN_FIELDS, "properties": TEXTS, "runtime": TEXT, "processes": TEXTS}
END_FIELDS: Mapping[str, FieldKind] = {"end": COUNT, "digest": TEXT, "verdict": OBJECT}
VERDICT_FIELDS: Mapping[str, FieldKind] = {"violated": TEXT, "reason": TEXT, "step": COUNT, "kind": TEXT}
"""What the verdict of a violating run has besides `ok`."""
OP_FIELDS: Mapping[str, FieldKind] = {
    "process": TEXT, "name": TEXT, "outcome": one_of("invoke", "ok", "fail", "info"), "value": ANY,
}


class Recorder:
    """Collects the events of a run as lines, and their digest."""

    def __init__(self, keep: bool = True) -> None:
        self.lines: list[str] = []
        self.count = 0
        """The events so far."""
        self._sha = hashlib.sha256()
        self._keep = keep

    def event(self, event: RunEvent) -> None:
        """Add an event."""
        # As `add` does, but without another call: this happens once a step.
        n, at_us, what, failing = event
        head = f'{{"n":{n},' if at_us is None else f'{{"n":{n},"at_us":{at_us},'
        line = f"{head}{what.known_text or what.text}{failing}}}"
        self._sha.update(line.encode())
        self._sha.update(b"\n")
        self.count += 1
        if self._keep:
            self._put(line)

    def add(self, n: int, at_us: int | None, text: str, failing: str) -> None:
        """Add event n, given as the canonical inside of its JSON object."""
        at = "" if at_us is None else f',"at_us":{at_us}'
        line = f'{{"n":{n}{at},{text}{failing}}}'
        self._sha.update(line.encode() + b"\n")
        self.count += 1
        if self._keep:
            self._put(line)

    def _put(self, line: str) -> None:
        self.lines.append(line)

    def digest(self) -> str:
        """Return the digest of the events so far, as hexadecimal SHA-256."""
        return self._sha.hexdigest()

    def fork(self) -> Recorder:
        """Return a recorder that goes on from here with another run, keeping no lines."""
        forked = Recorder(keep=False)
        forked.count, forked._sha = self.count, self._sha.copy()
        return forked


class EventRecorder(Recorder):
    """Keeps events as values, for whoever shows a run that was just made: no text has to be read again."""

    def __init__(self, keep: bool = False) -> None:
        super().__init__(keep)
        self.happened: list[RunEvent] = []

    def event(self, event: RunEvent) -> None:
        self.happened.append(event)
        super().event(event)

    def history(self, header: Mapping[str, Any], verdict: Mapping[str, Any], model: Model) -> History:
        """Return the run as a history, equal to the one that is read from its file."""
        types = {cls.__name__: cls for cls in all_types(model)}
        return History(dict(header), tuple(_kept(each, types) for each in self.happened),
                       _end(self, header, verdict), self.digest())


class HistoryFile(Recorder):
    """Writes the events of a run to a file as they come, so that a run of any length needs no memory for them.

    Use it as a context manager. The file takes its place when the block ends after `end`, and never comes to be when
    the block ends before. Raises Refusal if writing is not possible.
    """

    def __init__(self, path: Path, header: Mapping[str, Any]) -> None:
        super().__init__()
        self.path = path
        self._header = header
        self._exits = ExitStack()
        self._file: TextIO
        self._ended = False

    def __enter__(self) -> HistoryFile:
        self._file = self._exits.enter_context(writing(self.path))
        self._put(compact(self._header))
        return self

    def _put(self, line: str) -> None:
        self._file.write(line + "\n")

    def end(self, verdict: Mapping[str, Any]) -> None:
        """Write the end line; after it only the renaming can fail."""
        self._put(compact(_end(self, self._header, verdict)))
        self._file.flush()
        self._ended = True

    def __exit__(self, kind: type[BaseException] | None, *error: Any) -> None:
        if kind is None and not self._ended:
            early = AssertionError("the history was left without its end line")
            self._exits.__exit__(AssertionError, early, None)
            raise early
        self._exits.__exit__(kind, *error)


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
        "format": FORMAT, "version": VERSION, **run_fields(trail), "runtime": runtime,
        "properties": [p.name for p in model.properties if p.is_safety], "processes": [p.name for p in model.processes],
    }


def write_history(path: Path, header: Mapping[str, Any], recorder: Recorder, verdict: Mapping[str, Any]) -> None:
    """Write a history to a file, atomically."""
    write_atomically(path, [compact(header), *recorder.lines, compact(_end(recorder, header, verdict))])


def _end(recorder: Recorder, header: Mapping[str, Any], verdict: Mapping[str, Any]) -> dict[str, Any]:
    return {"end": recorder.count - 1, "digest": recorder.digest(), "header": digest_of(compact(header)),
            "verdict": dict(verdict)}


def digest_of(line: str) -> str:
    """Return the digest of a header line."""
    return hashlib.sha256(line.encode()).hexdigest()


def read_history(path: Path, model: Model | None = None) -> History:
    """Read a history; with a model, values become the protocol's own classes, else plain maps.

    Raises Refusal for a file that is cut off or damaged, of another format or version, with unknown events, or whose
    events are not the model's.
    """
    header, end, events = open_history(path, model)
    return History(header, tuple(events), end, end["digest"])


def read_events(path: Path, model: Model | None = None) -> Iterator[Event]:
    """Yield the events of a history without keeping them; values and refusals are those of `read_history`.

    The file is gone through once before, so that what is yielded is known to have the digest of the end line, and the
    digest is formed again along the way, since files change.
    """
    _, _, events = open_history(path, model)
    yield from events


def open_history(
    path: Path, model: Model | None = None
) -> tuple[dict[str, Any], dict[str, Any], Iterator[Event]]:
    """Return the header and the end of a history, and its events one by one; they are those of `read_events`."""
    header, end = read_frame(path)
    return header, end, _events(path, model, end["digest"])


def read_frame(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the header and the end of a history. Raises Refusal unless the events between have the end's digest."""
    texts = each_text(path, "history")
    first = next(texts)
    header = _read_header(path, first)
    sha, last, count = hashlib.sha256(), "", 0
    for text in texts:
        if count:
            sha.update(last.encode() + b"\n")
        last, count = text, count + 1
    try:
        end = _read_end(path, last, count, sha.hexdigest())
        if header["version"] >= WITH_HEADER and end.get("header") != digest_of(first):
            said = "its header does not have the digest of its end line"
            raise Refusal(f"{path} is damaged: {said}; record the run again")
        return header, end
    except Refusal:
        for number, line in enumerate(each_text(path, "history"), 1):
            parse_line(path, "history", number, line)  # a line that is not JSON says more than a wrong digest
        raise


def _read_header(path: Path, text: str) -> dict[str, Any]:
    header = parse_line(path, "history", 1, text)
    check_format(path, header, FORMAT, READABLE)
    check_line(path, 1, header, HEADER_FIELDS)
    return header


def _read_end(path: Path, text: str, count: int, digest: str) -> dict[str, Any]:
    """Return the end line of a history with `count` lines after its header and this digest. Raises Refusal."""
    end = parse_line(path, "history", count + 1, text) if count else {}
    if "end" not in end:
        raise Refusal(f"{path} is cut off: a history ends with an end line after its last event; record the run again")
    check_line(path, count + 1, end, END_FIELDS)
    check_line(path, count + 1, end["verdict"], {"ok": TRUTH})
    check_line(path, count + 1, end["verdict"], {} if end["verdict"]["ok"] else VERDICT_FIELDS)
    if count < 2 or end["end"] != count - 2:
        said = f"it has {count - 1} events but its end line says {end['end'] + 1}"
        raise Refusal(f"{path} is damaged: {said}; record the run again")
    if digest != end["digest"]:
        raise Refusal(f"{path} is damaged: its events do not have the digest of its end line; record the run again")
    return end


def _events(path: Path, model: Model | None, digest: str) -> Iterator[Event]:
    """Yield the events of a history whose frame is good. Raises Refusal."""
    types = {cls.__name__: cls for cls in all_types(model)} if model is not None else None
    slots = frozenset(model.initial_states()[0]) if model is not None else None
    texts = each_text(path, "history")
    next(texts)
    sha, text, values = hashlib.sha256(), next(texts), dict[str, Value]()
    for number, following in enumerate(texts):
        line = parse_line(path, "history", number + 2, text)
        try:
            if line["n"] != number:
                raise ValueError(f"expected event {number}, found {line['n']}")
            check_given(line, EVENT_FIELDS)
            if "op" in line:
                check_fields(line["op"], OP_FIELDS)
            event = event_of(line, types, values)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise Refusal(f"{path}, line {number + 2}: not an event of this history ({error})") from None
        if model is not None and slots is not None:
            _check_slots(path, event, model, slots)
        values.update(event.writes)
        yield event
        sha.update(text.encode() + b"\n")
        text = following
    if sha.hexdigest() != digest:
        raise Refusal(f"{path} changed while it was read; try again when nothing writes to it")


def model_of_history(path: Path) -> Model:
    """Build the model that a history's header names. Raises Refusal."""
    header = _read_header(path, next(each_text(path, "history")))
    return build_model(header["model"], header["sizes"], header["settings"], header["network"],
                       read_faults(path, header), header["claims"])


def _check_slots(path: Path, event: Event, model: Model, slots: frozenset[str]) -> None:
    """Raise Refusal unless an event, if it is the first, has the model's slots, and else writes no others."""
    found = set(event.writes)
    if found - slots or (event.n == 0 and found != slots):
        odd = ", ".join(sorted(found ^ slots if event.n == 0 else found - slots)[:3])
        raise Refusal(
            f"{path}, line {event.n + 2}: this is not an event of {model.name} at the header's sizes and faults "
            f"(see {odd}); record the run again"
        )


def all_types(model: Model | None) -> tuple[type, ...]:
    """Return the classes that recorded values of a model may have: the protocol's and the environment's."""
    if model is None:
        return (Gate, *CHANGES)
    return (Gate, *CHANGES, *model.types, *(each for variable in model.auxiliary for each in variable.types))


def _kept(event: RunEvent, types: Mapping[str, type]) -> Event:
    """Return an event as values."""
    n, at_us, what, failing = event
    step, effects = what.step, what.effects
    if step is None or effects is None:
        line = json.loads(f'{{"n":{n},{what.text}{failing}}}')
        return event_of(line if at_us is None else {**line, "at_us": at_us}, types, {})
    op = None if step.op is None else json.loads(op_text(step))
    violated = json.loads(f"{{{failing[1:]}}}")["violated"] if failing else {}
    return Event(
        n, at_us, str(what.process), what.kind, step.action, step.args, step.detail, step.consumed, step.sent,
        effects.lost, effects.held, op, dict(effects.writes), violated,
        None if step.input is None else step.input.value, step.told,
    )
