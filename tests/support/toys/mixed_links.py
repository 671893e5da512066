"""A toy whose links differ: three writers send numbered notes to a hub, each over links of another semantics.

`queue` is reached by reliable links, `stream` by FIFO ones, `post` by the network that is chosen for a run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs

import harness.model as m

HUB = "hub"
WRITERS = ("queue", "stream", "post")
LINKS = (
    *m.both_ways(("queue",), (HUB,), m.RELIABLE), *m.both_ways(("stream",), (HUB,), m.FIFO),
    *m.both_ways(("post",), (HUB,)),
)


@attrs.frozen
class Note(m.Message):
    n: int


@attrs.frozen
class Noted(m.Message):
    n: int


@attrs.frozen
class Written:
    sent: int = m.persisted(default=0)
    noted: tuple[int, ...] = m.persisted(default=())


class Writer(m.Actor[Written]):
    """Sends its notes one after the other, and keeps what the hub has noted, in the order of hearing it."""

    initial = Written()
    may_crash = True

    def __init__(self, name: str, most: int) -> None:
        self.name, self.most = name, most

    def step(self, local: Written) -> Iterable[m.Turn[Written]]:
        if local.sent < self.most:
            note = Note(local.sent, source=self.name, dest=HUB)
            yield m.Turn("Send", (self.name,), attrs.evolve(local, sent=local.sent + 1), (note,), flush=True)

    def on_message(self, local: Written, message: m.Message) -> Iterable[m.Turn[Written]]:
        assert isinstance(message, Noted)
        yield m.Turn("Hear", (self.name,), attrs.evolve(local, noted=(*local.noted, message.n)))


class Hub(m.Actor[m.FrozenMap[str, tuple[int, ...]]]):
    """Keeps what it hears from each writer, in order, and says so."""

    name = HUB
    initial = m.FrozenMap({writer: () for writer in WRITERS})

    def on_message(
        self, local: m.FrozenMap[str, tuple[int, ...]], message: m.Message
    ) -> Iterable[m.Turn[m.FrozenMap[str, tuple[int, ...]]]]:
        assert isinstance(message, Note)
        after = local.set(message.source, (*local[message.source], message.n))
        yield m.Turn("Note", (message.source,), after, (Noted(message.n, source=HUB, dest=message.source),))


def in_order(view: m.View, writer: str) -> m.Reason:
    heard: tuple[int, ...] = view[HUB][writer]
    return None if heard == tuple(range(len(heard))) else f"heard {heard} from {writer}"


def out_of_order(view: m.View) -> bool:
    heard: tuple[int, ...] = view[HUB]["post"]
    return heard != tuple(sorted(heard))


def all_heard(view: m.View) -> m.Reason:
    waiting = [w for w in WRITERS if not view[w].sent == len(view[w].noted) == len(view[HUB][w])]
    return f"not all is heard from {', '.join(waiting)}" if waiting else None


def small(message: m.Message) -> m.Reason:
    return None if isinstance(message, Note | Noted) and 0 <= message.n < 9 else message.brief()


def build(
    sizes: Mapping[str, int], settings: Mapping[str, str], net: m.Network, faults: m.Faults, history_variables: bool
) -> m.Model:
    actors = (*(Writer(name, sizes["notes"]) for name in WRITERS), Hub())
    properties = (
        m.always("Small", small, on="message"), m.always("QueueInOrder", lambda view: in_order(view, "queue")),
        m.always("StreamInOrder", lambda view: in_order(view, "stream")),
        m.sometimes("OutOfOrder", out_of_order), m.eventually("AllHeard", all_heard),
    )
    return m.Model("mixed-links", actors, ({},), net, faults, properties, history_variables=history_variables,
                   sizes=sizes, settings=settings, types=(Note, Noted, Written), links=LINKS)


SYSTEM = m.System("mixed-links", (
    m.ModelSpec("mixed-links", "notes over links that differ", build, {"notes": m.Size(2)},
                networks=("unordered-set", "bag", "fifo"), may_fault=True),
))
