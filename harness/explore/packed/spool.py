"""Levels of states in a temporary file: for searches that keep only fingerprints in memory."""

from __future__ import annotations

import sys
import tempfile
from array import array
from collections.abc import Sequence

WORD = (1 << 64) - 1


def to_words(states: Sequence[int], width: int) -> array[int]:
    """Return states as 64-bit words, the lowest first, `width` of them each."""
    if width == 1:
        return array("Q", states)
    words = array("Q", bytes(8 * width * len(states)))
    for n in range(width):
        words[n::width] = array("Q", [(state >> (64 * n)) & WORD for state in states])
    return words


def from_words(words: Sequence[int], width: int) -> list[int]:
    """Return the states that `to_words` made words of."""
    if width == 1:
        return list(words)
    if width == 2:
        return [low | high << 64 for low, high in zip(words[::2], words[1::2], strict=True)]
    pieces = (words[at : at + width] for at in range(0, len(words), width))
    return [sum(word << (64 * n) for n, word in enumerate(piece)) for piece in pieces]


def little_endian(words: array[int]) -> array[int]:
    """Return words in the byte order of files, or back."""
    if sys.byteorder == "big":
        words = words[:]
        words.byteswap()
    return words


class Spool:
    """Levels in the order in which they were put."""

    def __init__(self) -> None:
        self.file = tempfile.TemporaryFile(prefix="kafka-proto-levels-")  # noqa: SIM115  (as long as we live)
        self.sizes: list[int] = []
        self.places: list[tuple[int, int]] = []

    def __del__(self) -> None:
        self.file.close()

    @property
    def count(self) -> int:
        """How many levels are there."""
        return len(self.sizes)

    def put(self, states: Sequence[int], width: int) -> None:
        """Add a level of states."""
        self.put_words(to_words(states, width), width)

    def put_words(self, words: array[int], width: int) -> None:
        """Add a level as words."""
        self.file.seek(0, 2)
        self.places.append((self.file.tell(), width))
        self.sizes.append(len(words) // width)
        words.tofile(self.file)

    def get_words(self, number: int) -> array[int]:
        """Return a level as words."""
        at, width = self.places[number]
        self.file.seek(at)
        words = array("Q")
        words.fromfile(self.file, self.sizes[number] * width)
        return words

    def get(self, number: int) -> list[int]:
        """Return a level."""
        return from_words(self.get_words(number), self.places[number][1])
