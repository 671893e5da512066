"""Where producer ids come from in the specs: one source."""

from __future__ import annotations


def set_back_to_pid(pid_source: int, pid: int) -> int:
    """S1, as written: the source of producer ids becomes the one just used, even that of an existing id."""
    return pid


def never_back(pid_source: int, pid: int) -> int:
    """S1 repaired: the source of producer ids never goes back."""
    return max(pid_source, pid)
