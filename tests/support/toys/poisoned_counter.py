"""A protocol whose own code raises on some schedules: the counter does not like to be asked three times in a row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs

import harness.model as m

REASON = "three of a kind"


@attrs.frozen
class Asked(m.Message):
    pass


@attrs.frozen
class Counted:
    last: str = ""
    row: int = 0


@attrs.frozen
class Left:
    questions: int = 5


class Counter(m.Actor[Counted]):
    name = "counter"
    initial = Counted()

    def on_message(self, local: Counted, message: m.Message) -> Iterable[m.Turn[Counted]]:
        row = local.row + 1 if message.source == local.last else 1
        if row == 3:
            raise ValueError(REASON)
        yield m.Turn("Count", (message.source,), Counted(message.source, row))


class Asker(m.Actor[Left]):
    initial = Left()

    def __init__(self, name: str) -> None:
        self.name = name

    def step(self, local: Left) -> Iterable[m.Turn[Left]]:
        if local.questions:
            yield m.Turn("Ask", (self.name,), Left(local.questions - 1), (Asked(source=self.name, dest="counter"),))


def build(sizes: Mapping[str, int], settings: Mapping[str, str], net: m.Network, faults: m.Faults, _: bool) -> m.Model:
    processes = (Counter(), *(Asker(name) for name in ("a", "b", "c")))
    return m.Model("poisoned", processes, ({},), net, faults, (m.always("Fine", lambda view: None),), sizes=sizes,
                   settings=settings, types=(Asked, Counted, Left))


def system() -> m.System:
    return m.System("poisoned", (m.ModelSpec("poisoned", "a counter that raises", build, {}, networks=("bag",)),))
