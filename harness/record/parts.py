"""Hidden files and folders in which something is written until it is complete, and what killed writers left of them.

A writer holds a lock on what it writes, until that is in its place or removed. The system takes the lock away with the
process, however that ends. So a process that gets the lock of such a file knows that its writer is gone, and removes
it. Each writer does so in the folder that it writes to. Where a file system has no locks, nothing is removed.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # a system without such locks
    fcntl = None  # type: ignore[assignment]

MARK = ".kafka-proto.part"
"""How the names of these files end: those of other programs are left alone."""
_MINE: set[str] = set()
"""The parts of this process, so that a program that ends at once can remove them."""


@contextmanager
def part_of(target: Path) -> Iterator[tuple[int, str]]:
    """Give an open hidden file beside a target, and its name, to be written and renamed within the block.

    The handle is the caller's to close. What was not renamed is removed. Raises OSError.
    """
    sweep(target.parent)
    lock, name = _locked(target, False)
    try:
        yield os.dup(lock), name
    finally:
        with suppress(FileNotFoundError):
            os.unlink(name)
        _forget(lock, name)


@contextmanager
def folder_of(target: Path) -> Iterator[Path]:
    """Give a hidden folder beside a target, to be filled and renamed within the block; else it is removed. OSError."""
    sweep(target.parent)
    lock, name = _locked(target, True)
    try:
        yield Path(name)
    finally:
        shutil.rmtree(name, ignore_errors=True)
        _forget(lock, name)


def _locked(target: Path, is_folder: bool) -> tuple[int, str]:
    """Make a hidden file or folder and lock it; try another if a sweeper was faster than the lock."""
    while True:
        beside, begin = target.parent, f".{target.name}."
        if is_folder:
            name = tempfile.mkdtemp(dir=beside, prefix=begin, suffix=MARK)
            _MINE.add(name)
            try:
                handle = os.open(name, os.O_RDONLY)
            except FileNotFoundError:
                _MINE.discard(name)
                continue
        else:
            handle, name = tempfile.mkstemp(dir=beside, prefix=begin, suffix=MARK)
            _MINE.add(name)
        if fcntl is not None:
            with suppress(OSError):
                fcntl.flock(handle, fcntl.LOCK_EX)
        if _is_at(name, handle):
            return handle, name
        _forget(handle, name)


def _forget(handle: int, name: str) -> None:
    os.close(handle)
    _MINE.discard(name)


def _is_at(path: str, handle: int) -> bool:
    """Say whether a path still names the open file."""
    try:
        found = os.lstat(path)
    except OSError:
        return False
    return os.path.samestat(found, os.fstat(handle))


def sweep(folder: Path) -> None:
    """Remove what dead writers left in a folder. What cannot be removed is left."""
    if fcntl is None:
        return
    try:
        with os.scandir(folder) as entries:
            names = sorted(entry.name for entry in entries if entry.name.startswith(".") and entry.name.endswith(MARK))
    except OSError:
        return
    for name in names:
        with suppress(OSError):
            _remove_if_left(os.path.join(folder, name))


def _remove_if_left(path: str) -> None:
    """Remove a file or folder that is not locked. Raises OSError if it is locked, or if it cannot be removed."""
    kind = os.lstat(path).st_mode
    if not (stat.S_ISREG(kind) or stat.S_ISDIR(kind)):
        return
    handle = os.open(path, (os.O_RDONLY if stat.S_ISDIR(kind) else os.O_RDWR) | os.O_NOFOLLOW)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not _is_at(path, handle):
            return
        if stat.S_ISDIR(kind):
            shutil.rmtree(path)
        else:
            os.unlink(path)
    finally:
        os.close(handle)


def remove_parts() -> None:
    """Remove what this process is writing: for a program that ends at once, in the middle of its work."""
    for name in sorted(_MINE):
        with suppress(OSError):
            os.unlink(name)
