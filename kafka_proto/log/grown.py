"""What is noted of a sequence item by item, remembered: of the same sequence grown longer only what is new is noted."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

from kafka_proto.log.chunks import NOTHING, Chunks

T = TypeVar("T")
K = TypeVar("K")
R = TypeVar("R")


class Grown(Generic[T, K, R]):
    """Notes items in `start(seed)`, by a name for each sequence; sequences are compared by the identity of their items.

    What `note` returns besides None the first time stays the answer while the sequence grows.
    """

    def __init__(self, start: Callable[[Any], K], note: Callable[[str, Iterable[T], K], R | None]) -> None:
        self._start = start
        self._note = note
        self._last: dict[str, tuple[Chunks[T], int, K, R | None]] = {}

    def noted(
        self, name: str, items: Chunks[T], count: int | None = None, seed: Any = None
    ) -> tuple[K, R | None]:
        """Return what there is to know of a sequence, or of its first items, and the answer.

        `seed` is what there was to know before them.
        """
        stop = len(items) if count is None else count
        before, at, known, answer = self._last.pop(name, (NOTHING, 0, None, None))
        if known is not None and items is before and at == stop:
            self._last[name] = before, at, known, answer
            return known, answer
        if known is None or at > stop or not items.begins_with(before, at):
            at, known, answer = 0, self._start(seed), None
        new = items.between(at, stop)
        answer = self._note(name, new, known) if answer is None else answer
        self._last[name] = items, stop, known, answer
        return known, answer
