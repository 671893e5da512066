"""How far workers are with blocks that are not committed yet: for the progress bar of the driver alone."""

from __future__ import annotations

import os
from collections.abc import Container
from contextlib import suppress
from pathlib import Path

SUFFIX = ".making"


class BlockProgress:
    """How many runs of a block a worker has made, and how many of them violate something.

    It is a small file that is written anew each time; where it cannot be written, nothing is reported.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self._path = folder / f"{name}{SUFFIX}"

    def report(self, runs: int, failing: int) -> None:
        """Write how many runs there are now."""
        with suppress(OSError):
            handle = os.open(self._path, os.O_WRONLY | os.O_CREAT, 0o644)
            try:
                os.pwrite(handle, f"{runs:20} {failing:20}\n".encode(), 0)  # of one length: never seen half-written
            finally:
                os.close(handle)

    def clear(self) -> None:
        """Remove the file: the block is committed, or given up."""
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
