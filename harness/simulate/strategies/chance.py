"""The one door for chance: every random decision of a simulation is an `index(n, label)` asked here.

This module is the only home of `random`. Drivers: seeded, enumerating (bounded systematic), scripted by a person.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Protocol


class Chance(Protocol):
    """Something that picks one of n alternatives; `label` says what is being decided."""

    def index(self, n: int, label: str) -> int: ...


class Seeded:
    """Chance from a seed: the same seed gives the same answers in every process and Python version."""

    def __init__(self, seed: int) -> None:
        self._next = random.Random(seed).random

    def index(self, n: int, label: str) -> int:
        return int(self._next() * n)


class Enumerating:
    """Enumerates the first `depth` decisions systematically, run by run, then goes on seeded by the run's number.

    Call `begin()` before each run; it returns False when every prefix has been tried.
    """

    def __init__(self, depth: int) -> None:
        self.depth = depth
        self._odometer: list[tuple[int, int]] = []
        self._runs = 0
        self._at = 0
        self._rest = Seeded(0)

    def begin(self) -> bool:
        """Move on to the next prefix."""
        if self._runs:
            while self._odometer and self._odometer[-1][0] + 1 >= self._odometer[-1][1]:
                self._odometer.pop()
            if not self._odometer:
                return False
            value, n = self._odometer[-1]
            self._odometer[-1] = (value + 1, n)
        self._rest = Seeded(self._runs)
        self._runs += 1
        self._at = 0
        return True

    def index(self, n: int, label: str) -> int:
        at = self._at
        self._at += 1
        if at >= self.depth:
            return self._rest.index(n, label)
        if at == len(self._odometer):
            self._odometer.append((0, n))
        return self._odometer[at][0]


class Led:
    """Chance that begins with given answers, as far as they are possible, and goes on as another one.

    It notes its own first answers in `drawn`, `most` of them, so that another run can be led by them.
    """

    def __init__(self, answers: Sequence[int], rest: Chance, most: int = 2_000) -> None:
        self._answers = answers
        self._rest = rest
        self._most = most
        self._at = 0
        self.drawn: list[int] = []

    def index(self, n: int, label: str) -> int:
        at = self._at
        self._at += 1
        led = at < len(self._answers) and self._answers[at] < n
        answer = self._answers[at] if led else self._rest.index(n, label)
        if at < self._most:
            self.drawn.append(answer)
        return answer


class InteractiveChance:
    """Chance decided by the caller: `ask(n, label)` returns the index, as a person at a terminal does."""

    def __init__(self, ask: Callable[[int, str], int]) -> None:
        self._ask = ask

    def index(self, n: int, label: str) -> int:
        chosen = self._ask(n, label)
        if not 0 <= chosen < n:
            raise ValueError(f"{label}: {chosen} is not one of the {n} alternatives 0 to {n - 1}")
        return chosen


def weighed(chance: Chance, numbers: Sequence[int]) -> int:
    """Return the index of one of some whole numbers, drawn in proportion to them."""
    at = chance.index(sum(numbers), "weight")
    for n, number in enumerate(numbers):
        at -= number
        if at < 0:
            return n
    raise AssertionError("what was drawn is not among the numbers")
