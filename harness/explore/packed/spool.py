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
    states = list(words[::width])
    for n in range(1, width):
        states = [low | high << 64 * n for low, high in zip(states, words[n::width], strict=True)]
    return states


def for_kernel(state: int, width: int) -> bytes:
    """Return the words of one state, or of a difference, as they are in memory; what `to_words` does, for one."""
    state &= (1 << 64 * width) - 1
    if sys.byteorder == "little":
        return state.to_bytes(8 * width, "little")
    return to_words([state], width).tobytes()


def from_kernel(memory: bytearray) -> int:
    """Return the state whose words are there."""
    if sys.byteorder == "little":
        return int.from_bytes(memory, "little")
    return from_words(array("Q", memory), len(memory) // 8)[0]


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
        self.places: list[tuple[int, int]] = []
        """Of each level: where it begins in the file, and how many words it has."""

    def __del__(self) -> None:
        self.file.close()

    @property
    def count(self) -> int:
        """How many levels are there."""
        return len(self.places)

    def put(self, words: array[int]) -> None:
        """Add a level as words."""
        self.file.seek(0, 2)
        self.places.append((self.file.tell(), len(words)))
        words.tofile(self.file)

    def get(self, number: int) -> array[int]:
        """Return a level as words."""
        at, length = self.places[number]
        self.file.seek(at)
        words = array("Q")
        words.fromfile(self.file, length)
        return words
