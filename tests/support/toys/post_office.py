"""A toy whose message class gets another field: clients send numbered letters that a post office takes or loses.

`system(stamped=False)` is the protocol as it was when its trails were recorded; with `stamped` letters carry a stamp.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import attrs

import harness.model as m


@attrs.frozen
class Letter(m.Message):
    number: int


@attrs.frozen
class StampedLetter(m.Message):
    number: int
    stamp: str = "none"

    @property
    def type(self) -> str:
        return "Letter"


class Sender(m.Actor[int]):
    initial = 0

    def __init__(self, name: str, letter: Any, most: int) -> None:
        self.name, self.letter, self.most = name, letter, most

    def step(self, local: int) -> Iterable[m.Turn[int]]:
        if local < self.most:
            sent = tuple(self.letter(local + n, source=self.name, dest="office") for n in (0, 1))
            yield m.Turn("Post", (self.name,), local + 2, sent)


class Office(m.Actor[tuple[int, ...]]):
    name = "office"
    initial = ()

    def on_message(self, local: tuple[int, ...], message: Any) -> Iterable[m.Turn[tuple[int, ...]]]:
        yield m.Turn("Take", ("office",), (*local, message.number))


def twice(view: m.View) -> m.Reason:
    taken = view["office"]
    return f"{taken[-1]} was taken three times" if taken and taken.count(taken[-1]) > 2 else None


def system(stamped: bool = False) -> m.System:
    letter = StampedLetter if stamped else Letter

    def build(
        sizes: Mapping[str, int], settings: Mapping[str, str], net: m.Network, faults: m.Faults, _: bool
    ) -> m.Model:
        actors = (Sender("a", letter, sizes["letters"]), Sender("b", letter, sizes["letters"]), Office())
        return m.Model("post", actors, ({},), net, faults, (m.always("NotThrice", twice),), sizes=sizes,
                       settings=settings, types=(letter,))

    return m.System("post", (m.ModelSpec("post", "letters", build, {"letters": m.Size(4)}, networks=("bag", "fifo"),
                                         may_fault=True),))
