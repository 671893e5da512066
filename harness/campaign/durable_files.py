"""Files that are renamed into place complete and survive a power cut, with the digests by which damage is noticed."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

DIGEST = 16
"""Bytes of a file's digest."""
MISSING, DAMAGED = "missing", "damaged"


def place(path: Path, put: Callable[[Path], object]) -> None:
    """Let a file be written under a hidden name beside its own, and put it into its place.

    Raises OSError, and leaves nothing half-written.
    """
    part = hidden(path, path.parent)
    try:
        put(part)
        to_disk(part)
        show(part, path)
    finally:
        with suppress(OSError):
            part.unlink()


def hidden(path: Path, parts: Path) -> Path:
    """Make an empty file in a folder in which a file can be written until it is shown. Raises OSError."""
    handle, name = tempfile.mkstemp(dir=parts, prefix=f".{path.name}.")
    os.close(handle)
    os.chmod(name, 0o644)
    return Path(name)


def show(part: Path, path: Path) -> None:
    """Give a file that is on the disk its own name, for good. Raises OSError."""
    os.replace(part, path)
    to_disk(path.parent)


def make_folder(path: Path) -> None:
    """Make a folder, and those above it, for good. Raises OSError."""
    if not path.is_dir():
        make_folder(path.parent)
        path.mkdir(exist_ok=True)
        to_disk(path.parent)


def to_disk(path: Path) -> None:
    """Wait until the content of a file, or the names in a folder, would outlive a power cut. Raises OSError."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def stamp(path: Path) -> dict[str, Any]:
    """Return the size and digest by which damage to a file is noticed. Raises OSError."""
    sha = hashlib.blake2b(digest_size=DIGEST)
    with path.open("rb") as file:
        while data := file.read(1 << 22):
            sha.update(data)
    return {"bytes": path.stat().st_size, "digest": sha.hexdigest()}


def damage(path: Path, written: Mapping[str, Any]) -> str | None:
    """Return what is wrong with a file that is not as its stamp says that it was written, or None."""
    try:
        found = stamp(path)
    except OSError:
        return MISSING
    return DAMAGED if any(found[name] != written[name] for name in found) else None
