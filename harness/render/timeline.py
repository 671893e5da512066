"""A history read once: in whose column each step happened, what it changed, and what became of every message.

`in_flight` follows each message from the step that sent it to the one that ended it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import attrs

from harness.model import DELIVERED, Effects, Kind, Message, Model, Refusal, ShownLog, Step, Telling, Value, View, slot
from harness.record import Event, History
from harness.record.wording import counted
from harness.render.changes import changes
from harness.render.in_flight import MessagesInFlight, SentMessage

ENVIRONMENT = "environment"
RECEIVED, LOST, DROPPED, MERGED, UNDER_WAY = "received", "lost", "dropped", "merged", "under way"
ENDS = (LOST, DROPPED, MERGED)
"""The ends that a fate of a message is; what is held or released goes on."""


@attrs.define
class Flight:
    """A message from its send to its end. `source` is the column that sent it: a duplicate comes from its fault's."""

    message: Message
    source: str
    sent_at: int
    end: str = UNDER_WAY
    """`received`, `lost` (it could not be heard, or a crash), `dropped` (a fault took it), `merged` or `under way`."""
    ended_at: int | None = None
    held_at: int | None = None
    """The step from which it was delayed."""
    copy_of: int | None = None
    """For a duplicate: the step that sent the original."""
    reliable: bool = False
    """Whether it travels on a reliable link."""
    is_minor: bool = False

    @property
    def dest(self) -> str:
        return self.message.dest

    @property
    def is_at_once(self) -> bool:
        """Whether it was received in the step that sent it, as a told request or its answer may be."""
        return self.end == RECEIVED and self.ended_at == self.sent_at


@attrs.frozen
class Row:
    """One event of a history with all that a reader wants to see of it."""

    event: Event
    column: str
    changes: tuple[str, ...]
    began: tuple[str, ...]
    """Invariants that fail from this step on."""
    status: Mapping[str, str]
    """What each address is after the step: `up`, `paused` or `down`."""
    received: Flight | None
    sent: tuple[Flight, ...]
    taken: tuple[Flight, ...]
    """Messages under way that this step dropped, lost or delayed."""
    arrived: tuple[Flight, ...] = ()
    """Messages under way that this step tells of as delivered."""
    telling: Telling | None = None

    @property
    def n(self) -> int:
        return self.event.n

    @property
    def is_minor(self) -> bool:
        """Whether the row is folded away where only what matters is shown."""
        return self.telling is not None and self.telling.is_minor and not self.began

    @property
    def drawn(self) -> tuple[Flight, ...]:
        """The messages that were sent in the row and received at once."""
        return tuple(flight for flight in self.sent if flight.is_at_once)

    @property
    def label(self) -> str:
        """The step's name, its detail where no message says the same, and its operation or kind in brackets."""
        event = self.event
        if self.telling is not None:
            return self.telling.headline or event.action
        words = [event.name]
        shown = [flight.message for flight in (self.received, *self.sent, *self.taken) if flight is not None]
        if event.detail and not any(message.brief() == event.detail for message in shown):
            words.append(event.detail)
        if event.op is not None:
            words.append(f"[{event.op['name']} {event.op['outcome']}]")
        if event.kind not in (Kind.STEP, Kind.COMMAND, "initial"):
            words.append(f"[{event.kind}]")
        return " ".join(words)


@attrs.frozen
class Timeline:
    """A run, ready to be drawn. `columns` are the addresses in the model's order, then the environment if it acted."""

    history: History
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    flights: tuple[Flight, ...]
    properties: tuple[str, ...]
    fair_from: int | None
    logs: tuple[ShownLog, ...] = ()
    """Those at the end, where steps tell what they show."""

    @property
    def ending(self) -> str:
        """What the ending is that begins after step `fair_from`."""
        if self.history.header["strategy"] != "check":
            return "the fair ending begins: no more faults, everyone gets their turn"
        is_cycle = self.fair_from is not None and self.fair_from < self.rows[-1].n
        return "from here on, again and again for ever" if is_cycle else "from here on nothing more has to happen"

    @property
    def timed(self) -> bool:
        return bool(self.history.header["mode"] == "timed")

    def shown(self) -> Iterator[Row | Folded]:
        """Yield the rows, minor ones in a row as one."""
        return folded(self.rows)


def folded(rows: Iterable[Row]) -> Iterator[Row | Folded]:
    """Yield rows, minor ones in a row as one."""
    minor: list[Row] = []
    for row in rows:
        if row.is_minor:
            minor.append(row)
            continue
        if minor:
            yield Folded(tuple(minor))
            minor = []
        yield row
    if minor:
        yield Folded(tuple(minor))


@attrs.frozen
class Folded:
    """Minor steps one after the other."""

    rows: tuple[Row, ...]

    @property
    def label(self) -> str:
        """How many there are, and of what."""
        return f"... {counted(len(self.rows), 'step')}: {counts(row.label.partition(':')[0] for row in self.rows)}"


def counts(words: Iterable[str]) -> str:
    """Return how often each word is there, the most frequent first."""
    return ", ".join(f"{count} {word}" if count > 1 else word for word, count in Counter(words).most_common())


def check_typed(history: History) -> None:
    """Raise Refusal for a history that was read without its model, so that its values have no classes."""
    for event in history.events:
        for message in (event.received, *event.sent):
            if message is not None and not isinstance(message, Message):
                raise Refusal("this history was read without its model; read it with read_history(path, model)")


def timeline_of(history: History, model: Model, fair_from: int | None = None, whole: bool = False) -> Timeline:
    """Read a history with its model; `whole` leaves nothing out as minor. Raises Refusal if it was read without it."""
    check_typed(history)
    flights = _Flights(model)
    rows: list[Row] = []
    state: dict[str, Value] = {}
    failing: set[str] = set()
    lanes = model.addresses
    for event in history.events:
        began = tuple(name for name in event.violated if name not in failing)
        failing = set(event.violated)
        telling = _telling(model, event, state)
        if telling is not None:
            lanes = max(lanes, telling.lanes, key=len)
            rows.append(flights.tell(event, attrs.evolve(telling, is_minor=False) if whole else telling, began, whole))
            state.update(event.writes)
            continue
        column = column_of(event, model.addresses)
        changed = changes(state, event.writes) if event.n else ()
        state.update(event.writes)
        received, sent, taken = flights.follow(event, column, state)
        status = {a: state[slot("gate", a)].status for a in model.addresses if slot("gate", a) in state}
        rows.append(Row(event, column, changed, began, status, received, sent, taken))
    acted = any(row.column == ENVIRONMENT and not row.is_minor for row in rows[1:])
    columns = (*lanes, *((ENVIRONMENT,) if acted or not lanes else ()))
    return Timeline(history, columns, tuple(rows), tuple(flights.all), tuple(history.header["properties"]), fair_from,
                    model.logs(View(state)) if model.logs is not None and model.tells else ())


def told_rows(model: Model, tellings: Iterable[tuple[int, Telling]]) -> list[Row]:
    """Return steps that are told, each with its number, as rows: what was sent before them is not known."""
    flights = _Flights(model)
    return [flights.tell(Event(n, None, "", str(Kind.INPUT), "", (), "", None, (), (), (), None, {}, {}), telling,
                         (), whole=False) for n, telling in tellings]


def _telling(model: Model, event: Event, before: Mapping[str, Value]) -> Telling | None:
    """Return what a step shows, if its process tells it; that of a history from a file gets its input once more."""
    told = event.told
    if told is None and event.input is not None:
        process = next(process for process in model.processes if process.name == event.process)
        told = next((choice.step.told for choice in model.input_choices(process, View(before), event.input)), None)
    return None if told is None else told()


def column_of(event: Event, addresses: tuple[str, ...]) -> str:
    """Return the column of an event: its process, else the first address among its arguments."""
    return next((name for name in (event.process, *event.args) if name in addresses), ENVIRONMENT)


class _Flights:
    """What a reader sees of the messages of one history, step by step."""

    def __init__(self, model: Model) -> None:
        self.all: list[Flight] = []
        self._in_flight = MessagesInFlight(model)
        self._by_id: dict[str, Flight] = {}

    def follow(
        self, event: Event, column: str, after: Mapping[str, Value]
    ) -> tuple[Flight | None, tuple[Flight, ...], tuple[Flight, ...]]:
        """Note what an event does to messages; return the one received, those sent, and those taken from the air."""
        done = self._in_flight.follow(event.n, *_happened(event), after) if event.n else self._in_flight.start(after)
        for message in done.sent:
            self._launch(message, column if event.n else message.message.source)
        received = self._by_id[done.received.id] if done.received is not None else None
        if received is not None:
            received.end, received.ended_at = RECEIVED, event.n
        for fate in done.taken:
            flight = self._by_id[fate.sent.id]
            if fate.how == "held":
                flight.held_at = event.n
            elif fate.how in ENDS:
                flight.end, flight.ended_at = fate.how, event.n
        hit = [fate.sent for fate in done.taken if fate.how in ("held", DROPPED, LOST) and fate.sent not in done.sent]
        return received, tuple(self._by_id[one.id] for one in done.sent), tuple(self._by_id[one.id] for one in hit)

    def tell(self, event: Event, telling: Telling, began: tuple[str, ...], whole: bool) -> Row:
        """Note the messages that an event tells of, and return its row."""
        done = self._in_flight.tell(event.n, telling)
        for one in done.sent:
            self._launch(one, one.message.source, not whole and one.is_minor)
        arrived, hit = [], []
        for fate in done.taken:
            flight = self._by_id[fate.sent.id]
            if fate.how == "held":
                flight.held_at = event.n
                hit.append(flight)
            elif fate.how == DELIVERED:
                flight.end, flight.ended_at = RECEIVED, event.n
                arrived += [flight] if fate.sent not in done.sent else []
            elif fate.how in ENDS:
                flight.end, flight.ended_at = fate.how, event.n
                hit.append(flight)
        sent = tuple(self._by_id[one.id] for one in done.sent)
        hit = [flight for flight in hit if flight not in sent]
        status = {name: gate.status for name, gate in telling.gates.items()}
        column = telling.lane if telling.lane in telling.lanes else ENVIRONMENT
        return Row(event, column, telling.changed, began, status, None,
                   tuple(flight for flight in sent if not flight.is_minor), tuple(hit),
                   tuple(flight for flight in arrived if not flight.is_minor), telling)

    def _launch(self, sent: SentMessage, column: str, is_minor: bool = False) -> None:
        original = self._by_id[sent.copy_of] if sent.copy_of is not None else None
        copy_of = original.sent_at if original is not None else None
        flight = Flight(sent.message, column, sent.sent_at, copy_of=copy_of, reliable=sent.reliable, is_minor=is_minor)
        if not is_minor:
            self.all.append(flight)
        self._by_id[sent.id] = flight


def _happened(event: Event) -> tuple[Step, Effects]:
    """Return the step that an event records, and what it did."""
    step = Step(event.action, event.args, (), event.sent, event.received, event.detail, Kind(event.kind))
    return step, Effects(tuple(event.writes.items()), event.lost, event.held)


def facts(timeline: Timeline) -> list[tuple[str, str]]:
    """Return what a run was: name and value of everything a reader needs to judge or repeat it."""
    header = timeline.history.header
    found = [
        ("model", str(header["model"])),
        ("sizes", _pairs(header["sizes"])),
        ("settings", _pairs({name: value for name, value in header["settings"].items() if value != ""})),
        ("network", f"{header['network']}, {header['mode']} mode"),
        ("faults", _faults(header["faults"])),
        ("strategy", f"{header['strategy']}, seed {header['seed']}"),
        ("scenario", str(header["scenario"] or "")),
    ]
    return [(name, value) for name, value in found if value]


def verdict(timeline: Timeline) -> str:
    """Return the outcome of a run, as a sentence."""
    end = timeline.history.end["verdict"]
    steps = counted(len(timeline.rows) - 1, "step")
    if end["ok"]:
        claims = len(timeline.history.header["claims"])
        return f"ok after {steps}: nothing violates the {claims} claimed properties" if claims else f"ok after {steps}"
    where = f"at step {end['step']}" if end.get("kind") != "liveness" else f"after {steps}"
    return f"violates {end['violated']} {where}: {end['reason']}"


def _pairs(values: Mapping[str, Any]) -> str:
    return " ".join(f"{name}={value}" for name, value in sorted(values.items()))


def _faults(faults: Mapping[str, Any]) -> str:
    words = []
    for name, value in sorted(faults.items()):
        if name in ("rules", "timed"):
            rows = [_pairs({field: _flat(part) for field, part in row.items() if part}) for row in value]
            words += [f"{name.removesuffix('s')}({row})" for row in rows]
        else:
            words.append(f"{name}={_flat(value)}")
    return " ".join(words)


def _flat(value: Any) -> str:
    return ",".join(_flat(item) for item in value) if isinstance(value, list | tuple) else str(value)
