"""Messages under way along an interactive run: who sent each, what became of it, forwards and backwards.

What is under way is known from the state's inboxes, so that copies, merged sends and messages lost in a crash are told
as they happened. A step's `Moved` says all that it did to messages, and can be taken back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

import attrs

from harness.model import Effects, Kind, Message, Model, Step, Value, parts, slot
from harness.model.network import FIFO

NETWORK_SLOTS = ("inbox", "wire", "held")


@attrs.frozen(eq=False)
class Flight:
    """A message from its send on. `id` is the step that sent it and its place there: the same on every branch."""

    id: str
    message: Message
    sent_at: int
    copy_of: str | None = None
    """For a duplicate: the flight of the original."""


@attrs.frozen
class Fate:
    """What befell a message under way: `dropped`, `lost`, `held`, `released` or `merged`."""

    flight: Flight
    how: str
    was_held: bool = False


@attrs.frozen
class Moved:
    """What a step did to messages."""

    received: Flight | None = None
    was_held: bool = False
    sent: tuple[Flight, ...] = ()
    taken: tuple[Fate, ...] = ()


class Flights:
    """The messages under way in one state of a run."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._open: dict[str, dict[Flight, bool]] = {address: {} for address in model.addresses}
        """By destination: each flight, and whether it is held."""

    def under_way(self) -> list[tuple[Flight, bool]]:
        """Return the flights, and whether each is held, in the order of their sending."""
        found = [pair for flights in self._open.values() for pair in flights.items()]
        return sorted(found, key=lambda pair: (pair[0].sent_at, int(pair[0].id.partition(".")[2])))

    def find(self, message: Message, held: bool = False) -> Flight | None:
        """Return the oldest flight of a message, or None; one that is held, or is not, where there is such a one."""
        same = [(flight, is_held) for flight, is_held in self._open[message.dest].items() if flight.message == message]
        return next((f for f, is_held in same if is_held is held), same[0][0] if same else None)

    def start(self, state: Mapping[str, Value]) -> Moved:
        """Note the messages under way in the first state."""
        found = [
            message for address in self._model.addresses for messages in self._contents(address, state)
            for message in messages
        ]
        moved = Moved(sent=tuple(Flight(f"0.{k}", message, 0) for k, message in enumerate(found)))
        self.apply(moved)
        return moved

    def follow(self, n: int, step: Step, effects: Effects, after: Mapping[str, Value]) -> Moved:
        """Note what step n does to messages, and return it. `after` is the state after it."""
        received, was_held, taken = self._consumed(step)
        lost, held = Counter(effects.lost), Counter(effects.held)
        sent: list[Flight] = []
        for message in step.sent:
            original = self.find(message) if step.kind is Kind.FAULT else None
            flight = Flight(f"{n}.{len(sent)}", message, n, original.id if original is not None else None)
            sent.append(flight)
            for how, which in (("lost", lost), ("held", held)):
                if which[message]:
                    which[message] -= 1
                    taken.append(Fate(flight, how))
                    break
        self.apply(Moved(received, was_held, tuple(sent), tuple(taken)))
        for name in dict(effects.writes):
            variable, *index = parts(name)
            if variable in NETWORK_SLOTS:
                self._reconcile(n, step, index[0], after, sent, taken)
        return Moved(received, was_held, tuple(sent), tuple(taken))

    def _consumed(self, step: Step) -> tuple[Flight | None, bool, list[Fate]]:
        if step.action == "Release" and step.kind is Kind.HEAL:
            return None, False, self._released(step)
        flight = self.find(step.consumed) if step.consumed is not None else None
        if flight is None:
            return None, False, []
        was_held = self._open[flight.message.dest][flight]
        if step.kind is not Kind.FAULT:
            return flight, was_held, []
        return None, False, [Fate(flight, "held" if step.action == "Delay" else "dropped", was_held)]

    def _released(self, step: Step) -> list[Fate]:
        for name, _ in step.writes:
            variable, *index = parts(name)
            if variable == "held":
                for flight, is_held in self._open[index[0]].items():
                    if is_held and flight.message.brief() == step.detail:
                        return [Fate(flight, "released", True)]
        return []

    def _reconcile(
        self, n: int, step: Step, address: str, state: Mapping[str, Value], sent: list[Flight], taken: list[Fate]
    ) -> None:
        """Make the flights to an address agree with what the state says is under way to it."""
        wanted = Counter(message for messages in self._contents(address, state) for message in messages)
        here = self._open[address]
        known = Counter(flight.message for flight in here)
        if wanted == known:
            return
        for message in dict.fromkeys((*wanted, *known)):
            surplus = known[message] - wanted[message]
            same = [flight for flight in here if flight.message == message]
            merged = surplus > 0 and message in step.sent
            for flight in (same[-surplus:] if merged else same[: max(surplus, 0)]):
                fate = Fate(flight, "merged" if merged else "lost", here[flight])
                taken.append(fate)
                self.apply(Moved(taken=(fate,)))
            for _ in range(-surplus):
                flight = Flight(f"{n}.{len(sent)}", message, n, same[0].id if same else None)
                sent.append(flight)
                here[flight] = False

    def _contents(self, address: str, state: Mapping[str, Value]) -> Iterator[tuple[Message, ...]]:
        yield tuple(self._model.network.contents(state[slot("inbox", address)]))
        for variable in ("wire", "held"):
            name = slot(variable, address)
            if name in state:
                yield tuple(FIFO.contents(state[name])) if variable == "wire" else tuple(state[name])

    def apply(self, moved: Moved) -> None:
        """Do to the messages what a step does."""
        for flight in moved.sent:
            self._open[flight.message.dest][flight] = False
        if moved.received is not None:
            del self._open[moved.received.message.dest][moved.received]
        for fate in moved.taken:
            here = self._open[fate.flight.message.dest]
            if fate.how in ("held", "released"):
                here[fate.flight] = fate.how == "held"
            else:
                del here[fate.flight]

    def take_back(self, moved: Moved) -> None:
        """Undo what a step did to the messages."""
        for fate in reversed(moved.taken):
            self._open[fate.flight.message.dest][fate.flight] = fate.was_held
        if moved.received is not None:
            self._open[moved.received.message.dest][moved.received] = moved.was_held
        for flight in moved.sent:
            del self._open[flight.message.dest][flight]
