"""A model of peers that exchange notes, keep a diary and reset under faults: what tests of faults look at."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import attrs

from harness import model as m
from harness.record import Event

EVERYTHING = m.Faults(
    drop=2, duplicate=2, delay=2, reorder=2, partition=2, one_way=2, pause=2, skew=2,
    rules=(m.Rule("drop"), m.Rule("duplicate"), m.Rule("delay"), m.Rule("reorder")),
)


@attrs.frozen
class Note(m.Message):
    n: int


@attrs.frozen
class Memo(m.Message):
    n: int


@attrs.frozen
class Diary:
    heard: tuple[int, ...] = m.persisted(default=())
    outbox: tuple[m.Message, ...] = m.volatile(default=())
    dirty: bool = m.volatile(default=False)


class Peer(m.Actor[Diary]):
    """Sends what is in its outbox, writes down what it hears, and flushes that when it likes."""

    may_crash = True

    def __init__(self, name: str, *outbox: m.Message) -> None:
        self.name = name
        self.initial = Diary(outbox=outbox)

    def step(self, local: Diary) -> Iterable[m.Turn[Diary]]:
        if local.outbox:
            first, *rest = local.outbox
            yield m.Turn("Send", (self.name,), attrs.evolve(local, outbox=tuple(rest)), (first,))
        if local.dirty:
            yield m.Turn("Flush", (self.name,), attrs.evolve(local, dirty=False), flush=True)

    def on_message(self, local: Diary, message: m.Message) -> Iterable[m.Turn[Diary]]:
        assert isinstance(message, Note | Memo)
        yield m.Turn("Hear", (self.name,), attrs.evolve(local, heard=(*local.heard, message.n), dirty=True))


class World:
    """A model and the state it is in: takes steps by the beginning of their labels, by the reference semantics."""

    def __init__(self, model: m.Model) -> None:
        self.model = model
        self.state: m.State = model.initial_states()[0]
        self.before = self.state

    @property
    def labels(self) -> list[str]:
        return [choice.label for choice in self.model.choices(self.state)]

    def take(self, *labels: str) -> m.Choice:
        """Take steps; each label must be the beginning of exactly one that is possible. Returns the last."""
        for label in labels:
            (choice,) = (c for c in self.model.choices(self.state) if c.label.startswith(label))
            self.before, self.state = self.state, self.model.apply(self.state, choice)
        return choice

    def lost(self, label: str) -> tuple[m.Message, ...]:
        """Return the messages that are lost when a step is taken, and take it."""
        before = self.state
        return self.model.effects(m.View(before), self.take(label).step).lost

    def event(self, choice: m.Choice) -> Event:
        """Return the event that the last step is."""
        step, effects = choice.step, self.model.effects(m.View(self.before), choice.step)
        return Event(
            1, None, choice.process, str(step.kind), step.action, step.args, step.detail, step.consumed, step.sent,
            effects.lost, effects.held, None, dict(effects.writes), {},
        )

    def settle(self) -> None:
        """Send and deliver until nothing is left to do without faults and mending."""
        self.go_on(lambda choice: choice.step.kind is m.Kind.STEP)

    def go_on(self, wanted: Callable[[m.Choice], bool], at: int = 0) -> None:
        """Take steps of a kind until there are none, whichever of those that are possible stands at this place."""
        while going := list(filter(wanted, self.model.choices(self.state))):
            self.state = self.model.apply(self.state, going[at])

    def offers(self, action: str) -> bool:
        return any(label.split("(")[0].split(" ")[0] == action for label in self.labels)

    def heard(self, name: str = "z") -> tuple[int, ...]:
        found: tuple[int, ...] = self.state[name].heard
        return found

    def gate(self, name: str = "z") -> m.Gate:
        found: m.Gate = self.state[f"gate[{name}]"]
        return found


def note(n: int, source: str = "a", dest: str = "z") -> Note:
    return Note(n, source=source, dest=dest)


def world(*sent: m.Message, faults: m.Faults, network: m.Network = m.BAG) -> World:
    """Return a world of a, b, y and z, in which the sources of the given messages have them to send."""
    peers = [Peer(name, *(message for message in sent if message.source == name)) for name in ("a", "b", "y", "z")]
    return World(m.Model("peers", tuple(peers), ({},), network, faults))
