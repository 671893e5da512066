"""What a search may use of the machine: its cores, and memory as long as others are left some."""

from __future__ import annotations

import os
import resource
import sys
from pathlib import Path

STATM, STATUS, MEMINFO = Path("/proc/self/statm"), Path("/proc/self/status"), Path("/proc/meminfo")
CGROUP = Path("/sys/fs/cgroup")
LEFT = 10
"""One part in so many of what is free is left to others."""
UNDER_WAY = 48_000_000
"""Bytes that a search takes at least between two looks at its memory."""


def cores() -> int:
    """Return how many cores this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def resident() -> int:
    """Return the bytes of memory that this process has; where the system does not say, the most that it ever had."""
    try:
        return int(STATM.read_text().split()[1]) * resource.getpagesize()
    except (OSError, ValueError, IndexError):
        return peak()


def peak() -> int:
    """Return the most bytes that this process ever had; what the system adds up counts its parent's, too, at first."""
    try:
        rows = dict(line.split(":", 1) for line in STATUS.read_text().splitlines())
        return int(rows["VmHWM"].split()[0]) * 1024
    except (OSError, ValueError, KeyError, IndexError):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def free() -> int:
    """Return the bytes that this process may have without harm to others; 0 where that is not known.

    These are what it has already, and nine tenths of what is free.
    """
    found = [*_of_machine(), *_of_group(), *_of_process()]
    return resident() + max(min(found) * (LEFT - 1) // LEFT, 1) if found else 0


def _of_machine() -> list[int]:
    try:
        rows = dict(line.split(":", 1) for line in MEMINFO.read_text().splitlines())
        return [int(rows["MemAvailable"].split()[0]) * 1024]
    except (OSError, ValueError, KeyError, IndexError):
        return []


def _of_group() -> list[int]:
    """What a container's limit leaves."""
    try:
        most, now = ((CGROUP / f"memory.{name}").read_text() for name in ("max", "current"))
        return [int(most) - int(now)]
    except (OSError, ValueError):
        return []


def _of_process() -> list[int]:
    """What `ulimit -v` leaves, which counts what is reserved, too."""
    most, _ = resource.getrlimit(resource.RLIMIT_AS)
    try:
        return [] if most == resource.RLIM_INFINITY else [
            most - int(STATM.read_text().split()[0]) * resource.getpagesize()]
    except (OSError, ValueError, IndexError):
        return []


def is_beyond(most: int, soon: int = 0) -> bool:
    """Say whether this process has nearly so many bytes, given what it will soon take at once; 0 is no limit."""
    return 0 < most < resident() + soon + max(most // LEFT, UNDER_WAY)
