"""How far workers are with blocks that are not committed yet: for the bar of a driver, and for nothing else."""

from __future__ import annotations

import os
from collections.abc import Container
from contextlib import suppress
from pathlib import Path

SUFFIX = ".making"


class Pulse:
    """A worker's word on how many runs of a block it has made, and how many of them violate something.

    It is a small file that is written anew each time; where it cannot be written, nothing is said.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self._path = folder / f"{name}{SUFFIX}"

    def beat(self, runs: int, failing: int) -> None:
        """Say how many runs there are now."""
        with suppress(OSError):
            handle = os.open(self._path, os.O_WRONLY | os.O_CREAT, 0o644)
            try:
                os.pwrite(handle, f"{runs:20} {failing:20}\n".encode(), 0)  # of one length: never seen half-written
            finally:
                os.close(handle)

    def over(self) -> None:
        """Take the word back: the block is committed, or given up."""
        with suppress(OSError):
            self._path.unlink()


def under_way(folder: Path, committed: Container[str]) -> tuple[int, int]:
    """Return how many runs there are of blocks that are not committed, and how many of them violate something."""
    runs = failing = 0
    for path in folder.glob(f"*{SUFFIX}"):
        if path.name.removesuffix(SUFFIX) not in committed:
            with suppress(OSError, ValueError):
                some, violating = map(int, path.read_text(encoding="utf-8").split())
                runs, failing = runs + some, failing + violating
    return runs, failing
