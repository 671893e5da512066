"""Where producer ids come from: one source in the specs, blocks from the controller among actors (KIP-730)."""

from __future__ import annotations

BLOCK = 100
"""Producer ids in a block; Kafka's is 1000."""


def set_back_to_pid(pid_source: int, pid: int) -> int:
    """S1, as written: the source of producer ids becomes the one just used, even that of an existing id."""
    return pid


def never_back(pid_source: int, pid: int) -> int:
    """S1 repaired: the source of producer ids never goes back."""
    return max(pid_source, pid)


def next_pid(pid_source: int, pid_limit: int) -> int | None:
    """Return the next producer id of a coordinator's block, None where a new block is needed."""
    return pid_source + 1 if pid_source < pid_limit else None


def block(number: int) -> tuple[int, int]:
    """Return the block of a number, counted from 0: what comes before its first producer id, and its last one."""
    return number * BLOCK, number * BLOCK + BLOCK
