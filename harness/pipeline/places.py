"""Files that come to their place complete, and what tells them from damaged ones."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

DIGEST = 16
"""Bytes of a file's digest."""


def place(path: Path, put: Callable[[Path], object], parts: Path | None = None) -> None:
    """Let a file be written under a hidden name, in `parts` or else beside it, and rename it to its own.

    Raises OSError, and leaves nothing half-written.
    """
    handle, name = tempfile.mkstemp(dir=parts or path.parent, prefix=f".{path.name}.")
    os.close(handle)
    try:
        put(Path(name))
        os.chmod(name, 0o644)
        os.replace(name, path)
    finally:
        with suppress(OSError):
            os.unlink(name)


def stamp(path: Path) -> dict[str, Any]:
    """Return what tells a file from a damaged one. Raises OSError."""
    sha = hashlib.blake2b(digest_size=DIGEST)
    with path.open("rb") as file:
        while data := file.read(1 << 22):
            sha.update(data)
    return {"bytes": path.stat().st_size, "digest": sha.hexdigest()}
